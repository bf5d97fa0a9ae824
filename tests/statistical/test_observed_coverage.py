"""Intervals of what was observed, looked at after every round, leave the truth out in at most 5% of the runs.

The number of runs with a miss is at most Binomial(runs, 0.05), and has to be within its 99.9% quantile. Seeds are
fixed. Wilson's interval, which is for one look, misses in about a quarter of such runs.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

import dobandit as dob
from dobandit.estimation.confidence import beta_binomial


def few(misses, runs):
    return misses <= binom.ppf(0.999, runs, 0.05)


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5])
def test_a_share_looked_at_every_round(p):
    runs, rounds, interval = 600, 500, cache(beta_binomial)
    ones = np.cumsum(np.random.default_rng(1).random((runs, rounds)) < p, axis=1).tolist()
    missed = [
        any(not low <= p <= high for low, high in (interval(s / n, n) for n, s in enumerate(run, 1))) for run in ones
    ]
    assert few(sum(missed), runs)


def test_amounts_looked_at_every_round():
    """Numbers from 0 to 1 that hardly vary, and that are nearly 0 or 1."""
    runs, rounds = 120, 200
    for a, b in ((6.0, 14.0), (0.03, 0.07)):
        totals = np.cumsum(np.random.default_rng(2).beta(a, b, (runs, rounds)), axis=1).tolist()
        missed = 0
        for run in totals:
            ends = [beta_binomial(total / n, n) for n, total in enumerate(run, 1)]
            missed += any(not low <= 0.3 <= high for low, high in ends)
        assert few(missed, runs)


def test_the_best_of_several_sets_looked_at_every_round():
    """All sets are equally good, so that whichever looks best is there by luck; rounds come singly and in lumps."""
    graph, runs, rng = dob.CausalGraph([("A", "Y"), ("B", "Y")], target="Y"), 60, np.random.default_rng(3)
    missed = control_missed = 0
    for run in range(runs):
        experiment = dob.create_experiment(f"e{run}", graph, budget=2, storage="memory", control=0.3, policy="random")
        out = out_of_control = False
        for _ in range(80):
            trial, lump = experiment.ask(), int(rng.integers(1, 4))
            levers = {name: trial.do.get(name, 0) for name in "AB"}
            experiment.tell(trial, [{**levers, "Y": int(rng.random() < 0.3)} for _ in range(lump)])
            best, control = experiment.best_observed(), experiment.status().control
            out |= not best.interval.low <= 0.3 <= best.interval.high
            out_of_control |= control is not None and not control.interval.low <= 0.3 <= control.interval.high
        missed, control_missed = missed + out, control_missed + out_of_control
    assert few(missed, runs)
    assert few(control_missed, runs)
