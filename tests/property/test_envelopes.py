"""What E[f(x)] can be where the range and the mean of x are known, against all points of a grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dobandit.model.link_kernels import link_arrays
from dobandit.model.links import exponential, logistic, probit
from dobandit.oracle.bounds import concave_at
from dobandit.oracle.envelopes import envelope

LINKS = {"logistic": logistic(0.3), "probit": probit(-0.2), "exponential": exponential}
_CELLS = 400


@pytest.mark.parametrize("name", LINKS)
@given(st.floats(-9.0, 9.0), st.floats(0.01, 12.0), st.floats(0.0, 1.0))
@settings(max_examples=150, deadline=None)
def test_envelopes_against_a_grid(name, left, width, share):
    link = LINKS[name]
    left = abs(left) if name == "exponential" else left
    right, mean = left + width, left + share * width
    arrays = link_arrays([link], [1.0])
    x = np.linspace(left, right, _CELLS + 1)
    f = np.asarray(link.value(x), dtype=float)
    low, high = (envelope(arrays, 1, left, right, mean, end) for end in (0, 1))
    coarse = width / _CELLS  # no link is steeper than 1
    assert -1e-9 <= high - concave_at(x, f, mean) <= coarse
    assert -1e-9 <= -concave_at(x, -f, mean) - low <= coarse


@pytest.mark.parametrize("name", LINKS)
def test_a_range_of_one_point_is_f(name):
    arrays = link_arrays([LINKS[name]], [1.0])
    for end in (0, 1):
        assert envelope(arrays, 1, 0.7, 0.7, 0.9, end) == pytest.approx(float(LINKS[name].value(0.7)), abs=1e-12)
