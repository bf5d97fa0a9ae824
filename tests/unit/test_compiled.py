"""Kernels where compiled code cannot be kept."""

import numba
import pytest

from dobandit import compiled


def test_kernels_compile_without_a_place_for_a_cache(monkeypatch):
    njit = numba.njit

    def without_a_cache(*function, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*function, **options)

    monkeypatch.setattr(numba, "njit", without_a_cache)

    def double(x):
        return 2.0 * x

    assert compiled.kernel(double)(1.5) == pytest.approx(3.0)
