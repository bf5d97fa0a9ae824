"""Fixtures that several files use."""

import pytest

from helpers.reports import result_of


@pytest.fixture(scope="module")
def usual():
    return result_of({"BLM-LR": 12.0, "BLM-OFU": 15.0, "UCB": 110.0, "UCB (scaled)": 108.0, "eps-greedy (0.1)": 70.0})
