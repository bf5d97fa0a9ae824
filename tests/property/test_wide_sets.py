"""Ellipsoids around the likelihood-ratio sets of nodes with many parents, against the sets themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dobandit import CausalGraph, CausalUCB
from dobandit.estimation.anytime import find_centre, highest, likelihood_sets
from dobandit.estimation.log_likelihood import pattern_loss
from dobandit.estimation.wide_sets import MANY_PARENTS, inverted, least_bend
from dobandit.model.link_kernels import CODES
from dobandit.model.links import exponential, identity, logistic, probit
from dobandit.policy.engine import Rounds
from dobandit.policy.problem import problem_of

LINKS = {"identity": identity, "logistic": logistic(0.3), "probit": probit(-0.2), "exponential": exponential}
ENDS = {"identity": (0.01, 0.99), "logistic": (-6.0, 6.0), "probit": (-5.0, 5.0), "exponential": (0.01, 4.0)}
PARENTS = MANY_PARENTS + 2
NATS = math.log(20 / 0.05)


def weights_of(link, rng):
    """The bias first."""
    if link in ("identity", "exponential"):
        return np.array([0.15, *rng.dirichlet(np.ones(PARENTS)) * 0.7])
    return np.array([-1.0, *rng.normal(0.0, 0.7, PARENTS)])


def learned(link, rounds, rng):
    """The engine, and the rows that it was told: the constant and the parents of Y, and Y."""
    graph = CausalGraph([(f"P{i}", "Y") for i in range(PARENTS)], target="Y")
    values = np.ones((rounds, len(graph) + 1))
    parents = [graph.index(name) for name in graph.parents("Y")]
    values[:, parents] = rng.random((rounds, PARENTS)) < 0.4
    rows = np.column_stack([np.ones(rounds), values[:, parents]])
    p = np.asarray(LINKS[link].probability(rows @ weights_of(link, rng)), dtype=float)
    values[:, graph.index("Y")] = rng.random(rounds) < p
    engine = CausalUCB().engine(problem_of(graph, 1, links=LINKS[link], effects="any"))
    engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(rounds, dtype=np.int64)))
    return engine, rows, values[:, graph.index("Y")]


def sets_of(engine, searched=False):
    """The sets, Y's centre, and a function that says the end of Y's set in a direction."""
    layout, y = engine.plan.layout, engine.problem.graph.index("Y")
    sets = likelihood_sets(layout, engine.plan.estimator)
    assert sets.wide[y]
    if searched:
        sets.wide[y] = False
    centre = find_centre(layout, sets, engine.state, y, NATS)
    assert centre.status == 1

    def end(along):
        sets.along[:] = along
        return highest(layout, sets, engine.state, y, centre, -1)

    return sets.centre.copy(), centre, end


def loss_at(link, rows, x, theta):
    """-log P of Y's values; infinite where a probability is not one."""
    sums = rows @ theta
    low, high = LINKS[link].domain
    if (sums < low).any() or (sums > high).any():
        return math.inf
    p = np.asarray(LINKS[link].value(sums), dtype=float)
    with np.errstate(divide="ignore"):
        return -np.log(np.where(x > 0.5, p, 1.0 - p)).sum()


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("rounds", [400, 6_000])
def test_no_point_of_the_set_is_outside(link, rounds):
    rng = np.random.default_rng(rounds)
    engine, rows, x = learned(link, rounds, rng)
    middle, centre, end = sets_of(engine)
    assert centre.radius > 0.0
    for turn in range(40):  # points at the border of the set, found by bisection along rays from its centre
        ray = rng.normal(size=PARENTS + 1) * (rng.random(PARENTS + 1) < (0.2 if turn % 2 else 1.0))
        inside, outside = 0.0, 60.0
        for _ in range(50):
            half = 0.5 * (inside + outside)
            if loss_at(link, rows, x, middle + half * ray) <= centre.budget and np.abs(middle + half * ray).max() <= 30:
                inside = half
            else:
                outside = half
        point = middle + inside * ray
        for along in (ray, *rng.normal(size=(5, PARENTS + 1)), np.eye(PARENTS + 1)[turn % PARENTS]):
            assert end(along) >= along @ point - 1e-7 * (1.0 + abs(along @ point))


@pytest.mark.parametrize(("link", "most"), [("identity", 1.35), ("logistic", 1.25), ("probit", 1.35)])
def test_many_rows_make_it_nearly_the_set(link, most):
    rng = np.random.default_rng(7)
    engine, _, _ = learned(link, 40_000, rng)
    middle, _, wide = sets_of(engine)
    _, _, searched = sets_of(engine, searched=True)
    for along in (*np.eye(PARENTS + 1)[:6], *-np.eye(PARENTS + 1)[:6], *rng.random((4, PARENTS + 1))):
        reach = searched(along) - along @ middle
        assert 0.99 * reach <= wide(along) - along @ middle <= most * reach


def test_few_rows_say_nothing():
    engine, _, _ = learned("logistic", 20, np.random.default_rng(1))
    _, _, end = sets_of(engine)
    assert end(np.eye(PARENTS + 1)[2]) == 30.0  # the most that a weight is taken to be


@given(
    st.sampled_from(sorted(LINKS)),
    st.floats(0.0, 1.0),
    st.integers(0, 30),
    st.integers(0, 30),
    st.floats(1e-4, 8.0),
    st.floats(-1.0, 1.0),
)
@settings(max_examples=600, deadline=None)
def test_a_loss_bends_at_least_that_much(link, share, ones, zeros, far, part):
    low, high = ENDS[link]
    x, code, shift = low + share * (high - low), CODES[link], float(dict(LINKS[link].parameters).get("shift", 0.0))
    if ones + zeros == 0:
        return
    bend = least_bend(code, shift, x, float(ones + zeros), float(ones), far)
    loss, _, slope, _ = pattern_loss(code, shift, x, float(ones + zeros), float(ones), 0.0)
    h = part * far
    there = pattern_loss(code, shift, x + h, float(ones + zeros), float(ones), 0.0)[0]
    assert bend >= 0.0
    assert there >= loss + slope * h + 0.5 * bend * h * h - 1e-9 * (1.0 + abs(loss) + abs(slope * h))


@given(st.integers(1, 9), st.integers(0, 1_000))
@settings(max_examples=100, deadline=None)
def test_whole_inverses(d, seed):
    half = np.random.default_rng(seed).normal(size=(d, d))
    a = half @ half.T + np.eye(d)
    flat = a.ravel().copy()
    assert inverted(flat, d)
    np.testing.assert_allclose(flat.reshape(d, d) @ a, np.eye(d), atol=1e-9)
    assert not inverted(-np.eye(d).ravel(), d)
