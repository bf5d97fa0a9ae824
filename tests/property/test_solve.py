"""The oracles of known models: branch and bound = exhaustive, greedy within its factor, bounds that bound."""

import math
from itertools import combinations

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import DobanditError, InferenceError, InterventionError
from helpers.cover import cover_model
from helpers.worlds import quietly, random_bglm, random_blm

FACTOR = 1 - 1 / math.e


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


def test_other_links_are_looked_at_one_by_one_or_greedily():
    rng = np.random.default_rng(1)
    model = quietly(random_bglm, rng, 6)
    budget = min(2, len(model.graph.controllable))
    exact = dob.solve(model, budget)
    assert exact.oracle == "exhaustive"
    assert dob.solve(model, budget, oracle="greedy").value <= exact.value + 1e-9
    edges = [(f"X{i}", f"Z{i // 3}") for i in range(24)] + [(f"Z{i}", "Y") for i in range(8)]
    graph = dob.CausalGraph(edges, target="Y", controllable=[f"X{i}" for i in range(24)])
    tree = dob.BinaryGLM(graph, dict.fromkeys([*graph.nodes, *edges], 0.1), "exponential")
    many = dob.solve(tree, 5)  # 42,504 sets
    assert (many.oracle, many.status) == ("greedy", "approximate")


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
