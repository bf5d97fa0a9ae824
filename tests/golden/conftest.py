"""Every recorded answer is one of many."""

import pytest


@pytest.fixture(autouse=True)
def _case(one_of_many):
    """See `one_of_many` in tests/conftest.py."""
