"""The intervals that people act on leave the truth out in at most 5% of the runs, looked at again and again.

The worlds are those of benchmarks/bench_coverage.py, which plays more and longer runs, with seeds of its own. The
number of runs with a miss is compared with the 99.9% quantile of Binomial(runs, 0.05). Seeds are fixed.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from scipy.stats import binom

LOOKS = (50, 100, 200, 400)
RUNS = 6
KINDS = ("linear", "logistic", "tables", "rare causes", "parity", "deterministic", "counts", "history")


@pytest.fixture(scope="module")
def bench():
    path = Path(__file__).parents[2] / "benchmarks" / "bench_coverage.py"
    spec = importlib.util.spec_from_file_location("bench_coverage", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_coverage"] = module
    spec.loader.exec_module(module)
    return module


def test_intervals_hold_at_every_look_and_decide(bench):
    runs = {kind: [bench.run(kind, 90_000 + seed, LOOKS) for seed in range(RUNS)] for kind in KINDS}
    everything = [looks for of in runs.values() for looks in of]
    for which in range(3):  # the value, the uplift, the gap
        missed = sum(any(one.missed[0][which] for one in looks) for looks in everything)
        assert missed <= binom.ppf(0.999, len(everything), 0.05)
        assert not any(one.missed[1][which] for looks in everything for one in looks)  # what is proved
    last = [looks[-1] for looks in everything]
    assert sum(one.decided[0] for one in last) > 0.4 * len(last)  # after 400 rounds; of what is proved next to none
    assert sum(one.decided[1] for one in last) < 0.2 * len(last)
