"""The checks that many doors make, and values as messages show them."""

import numpy as np
import pytest

from dobandit.checks import is_whole, shown, whole_number
from dobandit.errors import ModelError


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_whole_numbers_become_ints(value):
    assert is_whole(value)
    assert type(whole_number("size", value, 3, ModelError)) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, np.float64(3), "3", None, np.array(3)])
def test_nothing_else_is_whole(value):
    assert not is_whole(value)
    with pytest.raises(ModelError, match="size must be a whole number from 0, but got"):
        whole_number("size", value, 0, ModelError)


def test_too_small_a_number_is_refused():
    with pytest.raises(ModelError, match=r"size must be a whole number from 1, but got 0\."):
        whole_number("size", 0, 1, ModelError)


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError


def test_every_value_can_be_shown():
    assert shown("a" * 78) == repr("a" * 78)
    assert shown("a" * 79) == "'" + "a" * 76 + "..."
    assert shown(10**5000) == shown(-(10**5000)) == "a number of thousands of digits"
    assert shown(Silent()) == "something of type Silent"
