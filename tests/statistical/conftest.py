"""Every test here plays many simulated runs and compares a frequency with what it is said to be."""

import pytest


@pytest.fixture(autouse=True)
def fixed_seeds():
    """Marks the tests of this folder (see `NEEDS` in tests/conftest.py); each fixes its own seeds."""
