"""The oracles of known models: branch and bound = exhaustive, greedy within its factor, bounds that bound."""

import math
from itertools import combinations

import numpy as np
import pytest

import dobandit as dob
from cover import cover_model
from dobandit.errors import DobanditError, InferenceError, InterventionError
from dobandit.estimation.estimators import Sums
from dobandit.estimation.statistics import add_round, layout_of, start_statistics
from dobandit.oracle.actions import Allowed, order_of
from dobandit.oracle.boxed import BoxedForm, boxed
from dobandit.oracle.closed_form import closed_form
from dobandit.oracle.listing import listing_of, score
from dobandit.oracle.optimistic_greedy import greedy_search
from dobandit.oracle.optimistic_plan import optimistic_search
from dobandit.oracle.optimistic_search import search
from dobandit.oracle.rules import Rules
from dobandit.policy.engine import Situation, no_context
from worlds import quietly, random_bglm

FACTOR = 1 - 1 / math.e


def random_blm(rng, most=9):
    """A random linear model with zero weights, rows that add up to 1, and nodes without a path to Y."""
    names = [f"X{i}" for i in range(int(rng.integers(2, most)))] + ["Y"]
    weights = {}
    for i, name in enumerate(names):
        parents = [names[j] for j in range(i) if rng.random() < 0.5] or ([names[0]] if name == "Y" else [])
        raw = rng.random(len(parents) + 1) * (rng.random(len(parents) + 1) < 0.8)
        if rng.random() < 0.3:
            raw = np.round(raw * 2) / 2  # ties
        raw = raw / (raw.sum() or 1.0) * (1.0 if rng.random() < 0.2 else rng.random())
        weights[name] = float(raw[0])
        weights |= {(parent, name): float(w) for parent, w in zip(parents, raw[1:], strict=True)}
    return quietly(dob.BinaryGLM.blm, weights, "Y")


def random_rules(rng, model):
    settable = model.graph.controllable
    rules = {}
    if rng.random() < 0.5:
        rules["budget"] = int(rng.integers(0, len(settable) + 1))
    else:
        rules["costs"] = {name: float(rng.integers(0, 4)) for name in settable if rng.random() < 0.8}
        rules["total_cost"] = float(rng.integers(0, 8))
        if rng.random() < 0.3:
            rules["budget"] = int(rng.integers(0, len(settable) + 1))
    if rng.random() < 0.3:
        rules["forbid"] = [settable[0]]
    if rng.random() < 0.3 and len(settable) > 2:
        rules["exclusive"] = [settable[1:3]]
    if rng.random() < 0.2 and "forbid" not in rules and rules.get("budget", 0) > 0 and "costs" not in rules:
        rules["require"] = [settable[-1]]
    if rng.random() < 0.2 and "require" not in rules:
        rules["available"] = settable[: max(1, len(settable) // 2)]
    return rules


def brute_force(model, rules):
    """Every subset, every rule, straight from the words of the rules."""
    settable = model.graph.controllable
    costs, best = rules.get("costs", {}), -1.0
    for size in range(len(settable) + 1):
        for chosen in combinations(settable, size):
            fits = (
                size <= rules.get("budget", len(settable))
                and sum(costs.get(name, 1.0) for name in chosen) <= rules.get("total_cost", math.inf)
                and not set(chosen) & set(rules.get("forbid", ()))
                and set(rules.get("require", ())) <= set(chosen)
                and all(len(set(chosen) & set(group)) <= 1 for group in rules.get("exclusive", ()))
                and set(chosen) <= set(rules.get("available", settable))
            )
            if fits:
                best = max(best, dob.expect(model, chosen).value)
    return best


@pytest.mark.parametrize("seed", range(8))
def test_every_oracle_against_all_subsets(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        model = random_blm(rng, most=8)
        rules = random_rules(rng, model)
        truth = brute_force(model, rules)
        for oracle in ("exhaustive", "branch-and-bound"):
            result = dob.solve(model, oracle=oracle, **rules)
            assert result.status == "optimal"
            assert result.value == pytest.approx(truth, abs=1e-9)
            assert dob.expect(model, result.set).value == pytest.approx(truth, abs=1e-9)
        greedy = dob.solve(model, oracle="greedy", **rules)
        assert greedy.value <= truth + 1e-9
        assert greedy.bound >= truth - 1e-9
        assert dob.expect(model, greedy.set).value == pytest.approx(greedy.value, abs=1e-9)
        if set(rules) <= {"budget", "forbid", "available"}:
            assert greedy.value >= FACTOR * truth - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_branch_and_bound_equals_exhaustive_on_larger_graphs(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(60):
        model = random_blm(rng, most=14)
        budget = int(rng.integers(1, 5))
        budget = min(budget, len(model.graph.controllable))
        top = int(rng.integers(1, 5))
        slow = dob.solve(model, budget, oracle="exhaustive", top=top)
        fast = dob.solve(model, budget, oracle="branch-and-bound", top=top)
        assert [value for _, value in fast.top] == pytest.approx([value for _, value in slow.top], abs=1e-9)
        for chosen, value in fast.top:
            assert dob.expect(model, chosen).value == pytest.approx(value, abs=1e-9)
        assert len({frozenset(chosen.items()) for chosen, _ in fast.top}) == len(fast.top)


def test_a_limit_leaves_a_true_gap():
    rng = np.random.default_rng(5)
    stopped = 0
    for _ in range(60):
        model = random_blm(rng, most=14)
        budget = min(4, len(model.graph.controllable))
        truth = dob.solve(model, budget, oracle="exhaustive").value
        result = dob.solve(model, budget, oracle="branch-and-bound", node_limit=2)
        assert result.value <= truth + 1e-9 <= result.bound + 2e-9
        stopped += result.status == "approximate"
    assert stopped > 5


def test_the_search_is_deterministic_and_independent_of_the_limits():
    model = random_blm(np.random.default_rng(3), most=14)
    results = [dob.solve(model, 3, oracle="branch-and-bound", time_limit=limit) for limit in (None, 100.0)]
    assert results[0].set == results[1].set
    assert results[0].explored == results[1].explored


@pytest.mark.parametrize("seed", range(5))
def test_cover_instances_are_solved(seed):
    rng = np.random.default_rng(seed)
    elements = 6
    sets = [set(np.flatnonzero(rng.random(elements) < 0.4).tolist()) or {0} for _ in range(5)]
    uncovered = set(range(elements)) - set().union(*sets)
    sets[0] |= uncovered
    best = max(len(set().union(*chosen)) for chosen in combinations(sets, 2))
    result = dob.solve(cover_model(sets), 2)
    chosen = [sets[int(name[1:])] for name in result.set]
    assert len(set().union(*chosen)) == best
    assert result.status == "optimal"


def test_other_links_are_looked_at_one_by_one_or_greedily(monkeypatch):
    rng = np.random.default_rng(1)
    model = quietly(random_bglm, rng, 6)
    budget = min(2, len(model.graph.controllable))
    exact = dob.solve(model, budget)
    assert exact.oracle == "exhaustive"
    monkeypatch.setattr("dobandit.oracle.task._SETS_BY_INFERENCE", 0)
    greedy = dob.solve(model, budget)
    if not model.is_linear:
        assert (greedy.oracle, greedy.status) == ("greedy", "approximate")
    assert greedy.value <= exact.value + 1e-9


def test_a_thousand_nodes_are_no_trouble():
    rng = np.random.default_rng(0)
    n = 1000
    ends = [(int(j), i) for i in range(1, n + 1) for j in rng.choice(i, size=min(i, 8), replace=False)]
    sources, destinations = np.array(ends).T
    graph = dob.CausalGraph.from_arrays([f"X{i}" for i in range(n)] + ["Y"], sources, destinations, "Y")
    theta = rng.random(len(graph.arrays.parent))
    child = np.repeat(np.arange(n + 2), np.diff(graph.arrays.parent_ptr))
    theta /= 1.1 * np.bincount(child, weights=theta, minlength=n + 2)[child]
    model = dob.BinaryGLM(graph, theta)
    result = dob.solve(model, 5)
    assert (result.oracle, result.status) == ("branch-and-bound", "optimal")
    assert dob.expect(model, result.set).value == pytest.approx(result.value, abs=1e-12)
    assert dob.solve(model, 5, oracle="greedy").value <= result.value + 1e-12


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({}, "budget or a total cost"),
        ({"budget": 7}, "from 0 to 6"),
        ({"budget": 2.5}, "whole number"),
        ({"budget": 1, "require": ["X2", "X3"]}, "No set is allowed"),
        ({"budget": 2, "require": ["X2"], "forbid": ["X2"]}, "No set is allowed"),
        ({"budget": 2, "require": ["X2"], "available": ["X3"]}, "No set is allowed"),
        ({"budget": 2, "require": ["X2", "X3"], "exclusive": [["X2", "X3"]]}, "No set is allowed"),
        ({"total_cost": 1, "costs": {"X2": 2}, "require": ["X2"]}, "No set is allowed"),
        ({"budget": 2, "forbid": ["X9"]}, "X9"),
        ({"budget": 2, "require": ["Y"]}, "'Y'"),
        ({"budget": 2, "costs": {"X2": 1}}, "total cost"),
        ({"total_cost": 1, "costs": {"X2": -1}}, "0 or more"),
        ({"total_cost": math.nan}, "0 or more"),
    ],
)
def test_impossible_problems_are_refused_with_the_reason(rules, says):
    with pytest.raises(InterventionError, match=says):
        dob.solve(dob.paper.G1, **rules)


@pytest.mark.parametrize("arguments", [{"oracle": "magic"}, {"top": 0}, {"time_limit": -1}, {"node_limit": 0}])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(InferenceError):
        dob.solve(dob.paper.G1, 2, **arguments)


def test_branch_and_bound_refuses_other_links():
    model = quietly(random_bglm, np.random.default_rng(2), 5)
    if not model.is_linear:
        with pytest.raises(DobanditError, match="linear"):
            dob.solve(model, 1, oracle="branch-and-bound")


def region_of(model, rounds, rng):
    """Statistics of so many rounds of pure observation, with M = I at the start."""
    layout = layout_of(model.graph)
    stats = start_statistics(layout, 1.0)
    nothing = np.zeros(len(model.graph) + 1, dtype=bool)
    if rounds:
        drawn = model.sample(size=rounds, rng=rng)
        rows = np.stack([np.ones(rounds), *(drawn[name] for name in model.graph.nodes)], axis=1).astype(float)
        for row in rows:
            add_round(layout, stats, row, nothing)
    return layout, stats


def sets_of(graph, size):
    """The list of every set of `size` variables that can matter."""
    order = order_of(graph)
    return listing_of(order, Allowed(graph, Rules(size), monotone=True, relevant=set(order)).rows())


@pytest.mark.parametrize("seed", range(6))
def test_the_optimistic_search_finds_the_best_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        model = random_blm(rng, most=9)
        graph = model.graph
        budget = min(int(rng.integers(1, 4)), len(graph.controllable))
        layout, stats = region_of(model, int(rng.choice([0, 3, 30, 300])), rng)
        rho = np.full(len(graph) + 1, float(rng.choice([0.02, 0.2, 1.0, 3.0])))
        truth, free = -1.0, no_context(len(graph))
        for size in range(budget + 1):
            listing = sets_of(graph, size)
            sums = Sums(stats.theta, stats, np.zeros(2, dtype=np.int64))
            score(BoxedForm(listing, boxed(layout)), layout, sums, rho, free)
            truth = max(truth, listing.values.max())
        found = optimistic_search(graph, Rules(budget), boxed(layout), 10**9, greedy=False)
        count = search(layout, found, stats, stats.theta, rho, free, float(rng.random()))
        assert found.report[0] == pytest.approx(truth, abs=1e-7 * max(1.0, truth))
        assert found.report[1] >= truth - 1e-7 * max(1.0, truth)
        assert count <= budget
        chosen = {int(v) for v in found.best[:count]}
        assert chosen <= set(graph.arrays.controllable.tolist())


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
        rho = np.concatenate([[0.0], 0.25 / reach])  # no weight leaves [0.05, 0.75]
        truth, free = -1.0, no_context(len(graph))
        for size in range(budget + 1):
            listing = sets_of(graph, size)
            score(closed_form(graph, listing), layout, Sums(stats.theta, stats, np.zeros(2, dtype=np.int64)), rho, free)
            truth = max(truth, listing.values.max())
        found = optimistic_search(graph, Rules(budget), boxed(layout), 10**9, greedy=False)
        search(layout, found, stats, stats.theta, rho, free, float(rng.random()))
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
        rho = np.full(len(model.graph) + 1, 0.5)
        box, free = boxed(layout), no_context(len(model.graph))
        whole, cut = (optimistic_search(model.graph, Rules(budget), box, most, greedy=False) for most in (10**9, 2))
        for found in (whole, cut):
            search(layout, found, stats, stats.theta, rho, free, 0.5)
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
        rho, free = np.full(len(graph) + 1, 1.0), no_context(len(graph))
        known, truth = Sums(stats.theta, stats, np.zeros(2, dtype=np.int64)), -1.0
        for size in range(budget + 1):
            listing = sets_of(graph, size)
            score(BoxedForm(listing, boxed(layout)), layout, known, rho, free)
            truth = max(truth, listing.values.max())
        for most in (1, 2, 4, 8):
            cut = optimistic_search(graph, Rules(budget), boxed(layout), most, greedy=False)
            search(layout, cut, stats, stats.theta, rho, free, 0.5)
            assert cut.report[0] <= truth + 1e-7 <= cut.report[1] + 2e-7
        cut = optimistic_search(graph, Rules(budget), boxed(layout), 1, greedy=False)
        search(layout, cut, stats, stats.theta, rho, free, 0.5)
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
        rho, free = np.full(len(graph) + 1, 0.5), no_context(len(graph))
        found = optimistic_search(graph, Rules(budget), boxed(layout), 0, greedy=True)
        count = greedy_search(layout, found, stats, stats.theta, rho, free, 0.5)
        truth = max(
            at_weights(graph, found.highest, chosen)
            for size in range(budget + 1)
            for chosen in combinations(graph.arrays.controllable.tolist(), size)
        )
        assert at_weights(graph, found.highest, found.best[:count].tolist()) == pytest.approx(found.report[0])
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
