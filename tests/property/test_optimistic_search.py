"""The search for the best optimistic set: against all sets one by one, and bounds that bound."""

import math
from itertools import combinations

import numpy as np
import pytest

import dobandit as dob
import dobandit.oracle.optimistic_search  # what learners that search do with such an oracle
from dobandit.errors import DobanditError
from dobandit.estimation.estimators import LeastSquares, Sums
from dobandit.estimation.kept_intervals import Unwatched
from dobandit.estimation.statistics import layout_of, start_statistics
from dobandit.oracle.actions import Allowed, order_of
from dobandit.oracle.boxed import BoxedForm, boxed
from dobandit.oracle.closed_form import closed_form
from dobandit.oracle.listing import listing_of, score
from dobandit.oracle.optimistic_plan import optimistic_search
from dobandit.oracle.rules import Rules
from dobandit.policy.engine import Situation, no_context
from dobandit.policy.model_rounds import ModelPlan, learn_rounds, propose_action
from dobandit.policy.region import RHO_MLE, Region
from helpers.worlds import random_blm

FACTOR = 1 - 1 / math.e  # of greedy


def region_of(model, rounds, rng):
    """Statistics of so many rounds of pure observation, with M = I at the start."""
    layout = layout_of(model.graph)
    stats = start_statistics(layout, 1.0)
    if rounds:
        drawn = model.sample(size=rounds, rng=rng)
        rows = np.stack([np.ones(rounds), *(drawn[name] for name in model.graph.nodes)], axis=1).astype(float)
        was_set, once = np.zeros(rows.shape, dtype=bool), np.ones(rounds, dtype=np.int64)
        learn_rounds(
            LeastSquares(1.0), layout, Unwatched(), 0, np.zeros(len(rows[0])), known(stats), rows, was_set, once
        )
    return layout, stats


def known(stats):
    """What a learner knows by these statistics."""
    return Sums(stats.theta, stats, np.zeros(2, dtype=np.int64))


def searched(layout, stats, found, rho, draw=0.5):
    """Let a search choose as that of a learner whose regions all have the radius rho: in compiled code that learners
    need as well. Returns the variables that it sets; the rest stands in its report."""
    nobody, nodes = (np.zeros(0, dtype=np.int32), np.zeros(0)), len(layout.ptr) - 1
    region = Region(RHO_MLE, rho, math.exp(-1.0), False, nodes, 3.0, 0)  # 3 / kappa sqrt(log(1 / delta)) is 1
    plan = ModelPlan(LeastSquares(1.0), region, found, layout, np.zeros(nodes), np.zeros(nodes), *nobody)
    row = propose_action(plan, known(stats), no_context(nodes - 1), np.full(3, draw), 0)
    return [int(v) for v in found.listing.ids[row] if v > 0]


def sets_of(graph, size):
    """The list of every set of `size` variables that can matter."""
    order = order_of(graph)
    return listing_of(order, Allowed(graph, Rules(size), monotone=True, relevant=set(order)).rows())


def best_in_the_box(graph, budget, layout, stats, rho):
    """The largest index of all sets of at most so many variables, one by one."""
    truth = -1.0
    for size in range(budget + 1):
        listing = sets_of(graph, size)
        radii, free = np.full(len(graph) + 1, rho), no_context(len(graph))
        score(BoxedForm(listing, boxed(layout)), layout, known(stats), radii, free)
        truth = max(truth, listing.values.max())
    return truth


@pytest.mark.parametrize("seed", range(6))
def test_the_optimistic_search_finds_the_best_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        model = random_blm(rng, most=9)
        graph = model.graph
        budget = min(int(rng.integers(1, 4)), len(graph.controllable))
        layout, stats = region_of(model, int(rng.choice([0, 3, 30, 300])), rng)
        rho = float(rng.choice([0.02, 0.2, 1.0, 3.0]))
        truth = best_in_the_box(graph, budget, layout, stats, rho)
        found = optimistic_search(graph, Rules(budget), boxed(layout), 10**9, greedy=False)
        chosen = searched(layout, stats, found, rho, float(rng.random()))
        assert found.report[0] == pytest.approx(truth, abs=1e-7 * max(1.0, truth))
        assert found.report[1] >= truth - 1e-7 * max(1.0, truth)
        assert len(chosen) <= budget
        assert set(chosen) <= set(graph.arrays.controllable.tolist())


def test_where_regions_lie_within_the_box_the_search_is_exact_for_the_closed_form():
    """Then the box cuts nothing off, so Algorithm 4's values are the boxed ones, and the search's bounds hold."""
    rng = np.random.default_rng(11)
    for _ in range(60):
        model = random_blm(rng, most=9)
        graph = model.graph
        budget = min(int(rng.integers(1, 4)), len(graph.controllable))
        layout, stats = region_of(model, 60, rng)
        stats.theta[:] = rng.uniform(0.3, 0.5, len(stats.theta))
        reach = np.sqrt(
            [stats.inverse[layout.square[v] :][: d * d : d + 1].max(initial=1e-9) for v, d in degrees(layout)]
        )
        for (v, d), far in zip(degrees(layout), reach, strict=True):  # no weight leaves [0.05, 0.75]
            block = slice(layout.square[v], layout.square[v] + d * d)
            stats.inverse[block] /= far**2
            stats.gram[block] *= far**2
        rho, free, truth = np.full(len(graph) + 1, 0.25), no_context(len(graph)), -1.0
        for size in range(budget + 1):
            listing = sets_of(graph, size)
            score(closed_form(graph, listing), layout, known(stats), rho, free)
            truth = max(truth, listing.values.max())
        found = optimistic_search(graph, Rules(budget), boxed(layout), 10**9, greedy=False)
        searched(layout, stats, found, 0.25, float(rng.random()))
        assert found.report[0] == pytest.approx(truth, abs=1e-7 * max(1.0, truth))
        assert found.report[1] == pytest.approx(found.report[0], abs=1e-7 * max(1.0, truth))


def degrees(layout):
    return [(v, int(layout.ptr[v + 1] - layout.ptr[v])) for v in range(1, len(layout.ptr) - 1)]


def test_a_stopped_optimistic_search_bounds_what_it_has_not_seen():
    rng = np.random.default_rng(9)
    stopped = 0
    for _ in range(60):
        model = random_blm(rng, most=12)
        budget = min(3, len(model.graph.controllable))
        layout, stats = region_of(model, 300, rng)
        box = boxed(layout)
        whole, cut = (optimistic_search(model.graph, Rules(budget), box, most, greedy=False) for most in (10**9, 2))
        for found in (whole, cut):
            searched(layout, stats, found, 0.5)
        assert cut.report[0] <= whole.report[0] + 1e-9 <= cut.report[1] + 1e-7
        stopped += cut.report[2] < whole.report[2]
    assert stopped > 5


def test_the_bound_of_a_stopped_search_holds_and_is_the_smaller_of_both():
    """Against every set, one by one; where weights of paths explode, the first bound alone would say nothing."""
    rng, useless = np.random.default_rng(21), 0
    for _ in range(60):
        model = random_blm(rng, most=9)
        graph, budget = model.graph, min(3, len(model.graph.controllable))
        layout, stats = region_of(model, 30, rng)
        truth = best_in_the_box(graph, budget, layout, stats, 1.0)
        for most in (1, 2, 4, 8):
            cut = optimistic_search(graph, Rules(budget), boxed(layout), most, greedy=False)
            searched(layout, stats, cut, 1.0)
            assert cut.report[0] <= truth + 1e-7 <= cut.report[1] + 2e-7
        cut = optimistic_search(graph, Rules(budget), boxed(layout), 1, greedy=False)
        searched(layout, stats, cut, 1.0)
        gains = np.sort(cut.gain[0, : cut.width[0]])[::-1][:budget].sum()
        assert cut.report[1] <= cut.report[0] + gains + 1e-9
        useless += cut.report[1] < cut.report[0] + 0.5 * gains
    assert useless > 10


def test_the_bound_of_greedy_holds_for_every_set_at_the_highest_weights():
    rng, short = np.random.default_rng(22), 0
    for _ in range(60):
        model = random_blm(rng, most=9)
        graph, budget = model.graph, min(2, len(model.graph.controllable))
        layout, stats = region_of(model, 300, rng)
        found = optimistic_search(graph, Rules(budget), boxed(layout), 0, greedy=True)
        best = searched(layout, stats, found, 0.5)
        truth = max(
            at_weights(graph, found.highest, chosen)
            for size in range(budget + 1)
            for chosen in combinations(graph.arrays.controllable.tolist(), size)
        )
        assert at_weights(graph, found.highest, best) == pytest.approx(found.report[0])
        assert found.report[0] - 1e-9 <= truth <= found.report[1] + 1e-9
        short += found.report[1] > found.report[0] + 1e-9
    assert short > 5


def at_weights(graph, weights, chosen):
    """E[Y | do(chosen = 1)] of a linear model, node by node."""
    means, ptr, parent = [1.0], graph.arrays.parent_ptr, graph.arrays.parent
    for v in range(1, len(graph) + 1):
        caused = sum(weights[slot] * means[parent[slot]] for slot in range(ptr[v], ptr[v + 1]))
        means.append(1.0 if v in chosen else caused)
    return means[graph.arrays.target]


def test_a_learner_on_a_hundred_nodes_runs_exact_rounds():
    model = dob.random_model("erdos-renyi", 100, seed=3)
    learner = dob.BLMLR(radius_scale=0.02, region="boxed").start(model.graph, budget=5, horizon=2000, seed=1)
    drawn = model.sample(size=1500, rng=4)
    learner.update_many([({}, {n: int(drawn[n][t]) for n in drawn}) for t in range(1500)])
    for number in range(30):
        action = learner.propose()
        _, bound, _ = learner.engine.plan.oracle.report.tolist()
        choice = learner.engine.choose(Situation(np.zeros(3), no_context(len(model.graph))))
        assert len(action) <= 5
        assert choice.proved
        assert bound <= choice.value * (1 + 1e-9)
        seen = model.sample(action, 1, number)
        learner.update(action, {name: int(values[0]) for name, values in seen.items()})
    assert learner.best().value > dob.expect(model).value


def test_the_greedy_variant_learns_too():
    model = dob.random_model("layered", 40, seed=2)
    best = dob.solve(model, 4).value
    learner = dob.BLMLR(radius_scale=0.02, region="boxed", oracle="greedy").start(model.graph, 4, horizon=1500, seed=1)
    rewards, values = [], {}
    for number in range(1500):
        action = learner.propose()
        assert len(action) <= 4
        if tuple(action) not in values:
            values[tuple(action)] = dob.expect(model, action).value
        rewards.append(values[tuple(action)])
        seen = model.sample(action, 1, number)
        learner.update(action, {name: int(values[0]) for name, values in seen.items()})
    assert np.mean(rewards[-300:]) >= FACTOR * best
    assert np.mean(rewards[-300:]) > np.mean(rewards[:300])


@pytest.mark.parametrize("oracle", ["branch-and-bound", "greedy"])
def test_searches_need_the_box(oracle):
    with pytest.raises(DobanditError, match="boxed"):
        dob.BLMLR(oracle=oracle).start(dob.paper.G1.graph, 3)
