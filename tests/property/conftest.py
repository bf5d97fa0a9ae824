"""Every test here is one of many cases of a law."""

import pytest


@pytest.fixture(autouse=True)
def _case(one_of_many):
    """See `one_of_many` in tests/conftest.py."""
