"""The answers of BestSet and LUCB are wrong no more often than delta allows."""

from __future__ import annotations

import pytest
from scipy.stats import binom

from dobandit import LUCB, BestSet, CausalGraph, TableModel, find_best

SURE, RUNS = 0.999, 24
GRAPH = CausalGraph([("A", "Y"), ("B", "Y")], target="Y")
# E[Y]: 0.6 for A, 0.45 for B, 0.4 for nothing: only A is within 0.1 of the best
WORLD = TableModel(GRAPH, {"A": 0.3, "B": 0.5, "Y": [[0.25, 0.38], [0.6, 0.61]]})


@pytest.mark.parametrize("policy", [BestSet(0.1, 0.3), LUCB(0.1, 0.3)], ids=lambda policy: policy.name)
def test_errors_are_at_most_delta(policy):
    """Wrong answers are at most binomial(RUNS, delta), of which more come with probability below 1 - SURE."""
    found = find_best(WORLD, {"it": policy}, RUNS, 1, seed=7, most_rounds=20_000, links="auto", effects="any")["it"]
    assert found.finished.all()
    assert found.wrong.sum() <= binom.ppf(SURE, RUNS, policy.delta)
    assert found.shortfall.max() < 0.3
