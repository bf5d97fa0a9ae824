"""What the tests of rounds under way share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from dobandit import BGLMOFU, BLMLR, KLUCB, UCB, EpsilonGreedy, Random
from dobandit.model.links import logistic
from dobandit.policy.engine import Rounds

LOGISTIC = logistic(1.5)
NAN = math.nan
seeds = st.integers(0, 2**32 - 1)
LINEAR = {
    "BLMLR": BLMLR(radius_scale=0.1),
    "BLMLR boxed": BLMLR(radius_scale=0.1, region="boxed", oracle="exhaustive"),
    "BLMLR search": BLMLR(radius_scale=0.1, region="boxed", oracle="greedy"),
    "BLMOFU": BGLMOFU(radius_scale=0.1, initial=2),
    "BLMOFU boxed": BGLMOFU(radius_scale=0.1, initial=2, region="boxed", oracle="exhaustive"),
}
GENERAL = BGLMOFU(radius_scale=0.1, initial=2, kappa=0.1)
MODEL_FREE = {"UCB": UCB(), "KL-UCB": KLUCB(), "eps-greedy": EpsilonGreedy(0.3), "Random": Random()}
OPTIMISTS = {**LINEAR, "BGLMOFU logistic": GENERAL}
EVERY = {**OPTIMISTS, **MODEL_FREE}
every_policy = pytest.mark.parametrize("name", EVERY)


def started(name, graph, budget, horizon=1000, seed=0, **options):
    links = LOGISTIC if name == "BGLMOFU logistic" else None
    options = {"effects": "nonnegative", **options}  # the paper's arms: exactly K
    return EVERY[name].start(graph, budget, horizon=horizon, seed=seed, links=links, **options)


def arrays_of(state):
    """Every array of a state, in order."""
    if isinstance(state, np.ndarray):
        return [state]
    return [array for part in state for array in arrays_of(part)] if isinstance(state, tuple) else []


def assert_same_bits(left, right):
    for one, other in zip(left, right, strict=True):
        assert one.tobytes() == other.tobytes()


def rounds_of(rng, graph, count, missing=0.0, likely=0.5, continuous=False):
    """(values, was_set), a row per round: any set, now and then to 0, and values that were not seen."""
    shape = (count, len(graph) + 1)
    values = rng.random(shape) if continuous else (rng.random(shape) < likely).astype(float)
    settable = np.isin(np.arange(shape[1]), graph.arrays.controllable)
    was_set = settable & (rng.random(shape) < 0.25)
    values[was_set] = np.where(rng.random(shape) < 0.8, 1.0, 0.0)[was_set]
    values[(rng.random(shape) < missing) & ~was_set] = NAN
    values[:, 0] = 1.0
    return Rounds(values, was_set, np.ones(count, dtype=np.int64))
