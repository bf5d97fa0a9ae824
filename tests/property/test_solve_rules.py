"""`solve` under mixed rules, zero costs and limits, against every subset; and what it says to bad input."""

import inspect
import math
import time
from itertools import combinations

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import DobanditWarning, InferenceError, InterventionError
from dobandit.oracle.actions import MANY, Allowed, capped_comb
from dobandit.oracle.rules import Rules
from helpers.worlds import quietly

FACTOR = 1 - 1 / math.e
NAMES = tuple("ABCDEF")


def random_model(rng):
    """A small linear model with many zero weights and ties, two layers."""
    settable = NAMES[: int(rng.integers(2, 7))]
    weights = {"Y": 0.0}
    parents = {"Y": settable}
    if len(settable) > 3 and rng.random() < 0.5:
        parents[settable[-1]] = settable[:2]
    for child, causes in parents.items():
        raw = rng.choice([0.0, 0.1, 0.3, 0.3, 1.0, rng.random()], size=len(causes))
        raw = raw / max(1.0, raw.sum())
        weights |= {(cause, child): float(w) for cause, w in zip(causes, raw, strict=True)}
    return quietly(dob.BinaryGLM.blm, weights, "Y", controllable=settable)


def random_rules(rng, names, mixed=True):
    rules = {"costs": {name: float(rng.choice([0, 0, 0.001, 1, 1, 2, 3])) for name in names}}
    rules["total_cost"] = float(rng.choice([0, 1, 2, 3, 4]))
    if mixed and rng.random() < 0.5:
        rules["budget"] = int(rng.integers(0, len(names) + 1))
    if mixed and rng.random() < 0.4:
        order = rng.permutation(names).tolist()
        rules["exclusive"] = [order[:2]] + ([order[2:4]] if len(order) > 3 else [])
    return rules


def values_of(model, rules):
    """Every allowed set with its value, straight from the words of the rules, best first."""
    names, costs = model.graph.controllable, rules.get("costs", {})
    found = {}
    for size in range(min(rules.get("budget", len(names)), len(names)) + 1):
        for chosen in combinations(names, size):
            cost = sum(costs.get(name, 1.0) for name in chosen)
            alone = all(len(set(chosen) & set(group)) <= 1 for group in rules.get("exclusive", ()))
            if cost <= rules.get("total_cost", math.inf) * (1 + 1e-12) and alone:
                found[chosen] = dob.expect(model, chosen).value
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def independent(weights, **options):
    graph = quietly(dob.CausalGraph, [(name, "Y") for name in weights], target="Y", bias=[], **options)
    return dob.BinaryGLM(graph, {(name, "Y"): w for name, w in weights.items()})


def test_what_is_free_and_useless_does_not_mislead_the_search():
    model = independent({"A": 0.3, "B": 0.0, "C": 0.0, "D": 0.3})
    costs = {"A": 0, "B": 1, "C": 0, "D": 1}
    for oracle in ("branch-and-bound", "greedy", "exhaustive"):
        result = dob.solve(model, costs=costs, total_cost=1, oracle=oracle)
        assert set(result.set) >= {"A", "D"}
        assert result.value == pytest.approx(0.6)


def test_costs_too_small_for_a_ratio_are_still_compared():
    model = independent({"A": 0.4, "B": 0.2, "C": 0.2, "D": 0.19})
    costs = {"A": 3e-320, "B": 1e-320, "C": 1e-320, "D": 1e-320}
    result = dob.solve(model, costs=costs, total_cost=3e-320, oracle="branch-and-bound")
    assert set(result.set) == {"B", "C", "D"}


@pytest.mark.parametrize("seed", range(6))
def test_zero_costs_and_zero_weights_against_all_subsets(seed):
    """150 instances a seed: what is proved is the best, and lists are the best ones."""
    rng = np.random.default_rng(seed)
    for _ in range(150):
        model = random_model(rng)
        rules = random_rules(rng, model.graph.controllable)
        truth = values_of(model, rules)
        top = int(rng.choice([1, 1, 2, 3, 7]))
        result = dob.solve(model, oracle="branch-and-bound", top=top, **rules)
        assert result.status == "optimal"
        assert result.set in truth
        assert [value for _, value in result.top] == pytest.approx(list(truth.values())[:top], abs=1e-9)
        for chosen, value in result.top:
            assert truth[tuple(chosen)] == pytest.approx(value, abs=1e-9)
        assert len({tuple(chosen) for chosen, _ in result.top}) == len(result.top)


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_a_stopped_search_is_allowed_no_worse_than_greedy_and_bounded(limit):
    rng = np.random.default_rng(limit)
    for _ in range(120):
        model = random_model(rng)
        names = model.graph.controllable
        rules = random_rules(rng, names) if rng.random() < 0.7 else {"budget": int(rng.integers(0, len(names) + 1))}
        truth, top = values_of(model, rules), int(rng.choice([1, 2, 4]))
        result = dob.solve(model, oracle="branch-and-bound", node_limit=limit, top=top, **rules)
        greedy = dob.solve(model, oracle="greedy", **rules)
        best = max(truth.values())
        assert greedy.value - 1e-9 <= result.value <= best + 1e-9
        assert best - 1e-9 <= result.bound <= 1.0 + 1e-9
        assert result.factor is None or result.value >= result.factor * best - 1e-9
        assert result.status == "approximate" or result.value == pytest.approx(best, abs=1e-9)
        assert 1 <= len(result.top) <= top
        assert all(truth[tuple(chosen)] == pytest.approx(value, abs=1e-9) for chosen, value in result.top)
        assert len({tuple(chosen) for chosen, _ in result.top}) == len(result.top)


@pytest.mark.parametrize("top", [1, 2])
def test_no_time_is_time_for_greedy(top):
    model = dob.random_model("erdos-renyi", 60, seed=1)
    greedy = dob.solve(model, 4, oracle="greedy")
    for limits in (
        {"time_limit": 1e-9},
        {"node_limit": 1},
        {"time_limit": np.float32(1e-9), "node_limit": np.int64(1)},
    ):
        result = dob.solve(model, 4, oracle="branch-and-bound", top=top, **limits)
        assert result.value >= greedy.value - 1e-12
        assert result.value <= result.bound <= 1.0


def test_a_target_that_nothing_moves_has_no_gap():
    model = independent({"A": 0.0, "B": 0.0, "C": 0.0})
    for top in (1, 2, 3):
        result = dob.solve(model, 2, oracle="branch-and-bound", node_limit=1, top=top)
        assert (result.value, result.bound) == (0.0, 0.0)


# -- greedy ---------------------------------------------------------------------------------------------------


def test_greedy_by_plain_gain_where_cheap_variables_would_use_up_the_budget():
    names = {f"c{i}": 0.002 for i in range(4)} | {f"b{i}": 0.24 for i in range(4)}
    costs = {name: 0.001 if name[0] == "c" else 1.0 for name in names}
    result = dob.solve(independent(names), 4, costs=costs, total_cost=4, oracle="greedy")
    assert set(result.set) == {"b0", "b1", "b2", "b3"}
    assert result.factor is None
    assert result.value == pytest.approx(0.96)
    assert result.bound >= 0.96


@pytest.mark.parametrize("seed", range(6))
def test_a_factor_and_a_bound_of_greedy_always_hold(seed):
    rng = np.random.default_rng(100 + seed)
    factors = set()
    for _ in range(160):
        model = random_model(rng)
        names = model.graph.controllable
        rules = random_rules(rng, names, mixed=rng.random() < 0.6)
        if rng.random() < 0.3:
            rules = {key: rule for key, rule in rules.items() if key == "exclusive"}
            rules["budget"] = int(rng.integers(0, len(names) + 1))
        truth = values_of(model, rules)
        best, base = max(truth.values()), truth[()]
        result = dob.solve(model, oracle="greedy", **rules)
        factors.add(result.factor)
        assert truth[result.set] == pytest.approx(result.value, abs=1e-9)
        assert best - 1e-9 <= result.bound <= 1.0 + 1e-9
        assert result.value >= max([v for s, v in truth.items() if len(s) == 1], default=base) - 1e-9
        if result.factor is not None:
            assert result.value - base >= result.factor * (best - base) - 1e-9
        if result.status == "optimal":
            assert result.value == pytest.approx(best, abs=1e-9)
        if "total_cost" not in rules:
            assert result.factor == pytest.approx(0.5 if "exclusive" in rules else FACTOR)
        elif "exclusive" in rules:
            assert result.factor is None
    assert factors == {None, 0.5, FACTOR, FACTOR / 2}


def test_a_stopped_greedy_claims_no_factor():
    model = dob.random_model("erdos-renyi", 80, seed=2)
    best = dob.solve(model, 5)
    for limits in ({"time_limit": 1e-9}, {"node_limit": 1}):
        result = dob.solve(model, 5, oracle="greedy", **limits)
        assert result.factor is None
        assert result.value <= best.value + 1e-9 <= result.bound + 2e-9


def test_greedy_says_that_it_lists_one_set():
    with pytest.warns(DobanditWarning, match="one set"):
        result = dob.solve(dob.paper.G1, 2, oracle="greedy", top=3)
    assert len(result.top) == 1


# -- limits of the other oracles ------------------------------------------------------------------------------


def cascade(n):
    weights = {(f"X{i:02}", "Y"): 0.1 + 0.01 * i for i in range(n)}
    return dob.BinaryGLM.independent_cascade(weights, "Y")


def test_exhaustive_stops_at_a_limit_with_an_allowed_set():
    model = cascade(8)
    rules = {"budget": 3, "total_cost": 6, "costs": {"X00": 7, "X01": 2}, "exclusive": [["X02", "X03"]]}
    truth = values_of(model, rules)
    for limit in (1, 2, 10):
        result = dob.solve(model, oracle="exhaustive", node_limit=limit, **rules)
        assert (result.status, result.explored) == ("approximate", limit)
        assert max(truth.values()) <= result.bound < 1.0
        assert truth[result.set] == pytest.approx(result.value)
    whole = dob.solve(model, oracle="exhaustive", node_limit=len(truth), **rules)
    assert whole.status == "optimal"
    assert whole.value == pytest.approx(max(truth.values()))
    late = dob.solve(model, oracle="exhaustive", time_limit=1e-9, top=3, **rules)
    assert late.status == "approximate"
    assert late.set in truth


def test_an_exhaustive_search_ends_in_time():
    model = cascade(24)
    start, told = time.perf_counter(), []
    result = dob.solve(
        model, 5, oracle="exhaustive", time_limit=0.6, progress=lambda looked, seconds: told.append((looked, seconds))
    )
    assert time.perf_counter() - start < 5.0
    assert (result.status, result.stopped) == ("approximate", True)
    assert result.value <= result.bound
    assert told
    assert told == sorted(told)


def test_a_search_without_end_is_stopped_unless_that_was_asked_for():
    assert inspect.signature(dob.solve).parameters["time_limit"].default == 60.0
    model = cascade(8)
    for limit in (None, 60.0):
        assert not dob.solve(model, 2, time_limit=limit).stopped
    cut = dob.solve(model, 2, oracle="exhaustive", node_limit=1)
    assert cut.stopped


@pytest.mark.parametrize("seed", range(4))
def test_where_tables_are_not_all_looked_at_the_bound_holds(seed):
    rng, sharp = np.random.default_rng(seed), 0
    for _ in range(10):
        model = random_tables(rng)
        truth = max(values_of(model, {"budget": 2}).values())
        cut = dob.solve(model, 2, oracle="exhaustive", node_limit=1)
        assert cut.value <= truth <= cut.bound + 1e-12
        sharp += cut.bound < max(table.max() for table in model.tables.values()) - 1e-9
    assert sharp > 0


def random_tables(rng):
    names = [f"X{i}" for i in range(5)] + ["Y"]
    edges = [(a, b) for i, b in enumerate(names) for a in names[:i] if b == "Y" or rng.random() < 0.5]
    graph = dob.CausalGraph(edges, target="Y", nodes=names)
    return dob.TableModel(graph, {name: 0.9 * rng.random((2,) * len(graph.parents(name))) for name in names})


def test_lazy_greedy_keeps_what_it_has_at_a_limit():
    model = cascade(12)
    whole = dob.solve(model, 4, oracle="greedy")
    for limit in (1, 2, 14, 15, 10_000):
        result = dob.solve(model, 4, oracle="greedy", node_limit=limit)
        assert result.explored <= limit
        assert len(result.set) <= 4
        assert result.value <= whole.value + 1e-12
    assert result.set == whole.set
    assert dob.solve(model, 4, oracle="greedy", time_limit=1e-9).value <= whole.value


# -- groups ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "left"),
    [
        ([["A"]], []),
        ([[], ["A"], ["A"]], []),
        ([["A", "B"], ["B", "A"]], [("A", "B")]),
        ([["A", "B"], ["C", "B", "A"]], [("A", "B", "C")]),
        ([["A", "B"], ["B", "C"]], [("A", "B"), ("B", "C")]),
        ([["A", "F"], ["B", "C"]], [("B", "C")]),
    ],
)
def test_groups_that_rule_nothing_out_do_not_count(groups, left):
    rules = Rules(2, exclusive=tuple(map(tuple, groups)))
    assert sorted(rules.groups(tuple("ABCDE"))) == left
    model = independent(dict(zip("ABCDEF", [0.2, 0.19, 0.15, 0.1, 0.05, 0.01], strict=True)))
    rules = {"budget": 3, "exclusive": groups}
    best = max(values_of(model, rules).values())
    assert dob.solve(model, **rules).value == pytest.approx(best)
    result = dob.solve(model, oracle="branch-and-bound", **rules)
    assert (result.status, result.value) == ("optimal", pytest.approx(best))


def test_counting_stops_before_numbers_become_unprintable():
    assert [capped_comb(n, k) for n, k in ((5, 2), (5, 0), (5, 5), (3, 4), (60, 30))] == [
        10,
        1,
        1,
        0,
        math.comb(60, 30),
    ]
    assert capped_comb(50_000, 25_000) == MANY
    names = [f"X{i}" for i in range(5_000)]
    graph = dob.CausalGraph([(name, "Y") for name in names], target="Y")
    for rules in (Rules(total_cost=4_000.0), Rules(2_000, levers=dict.fromkeys(names, (0, 1)))):
        assert Allowed(graph, rules, monotone=True).count() == MANY
        assert Allowed(graph, rules, monotone=False).count() == MANY
    model = dob.random_model("erdos-renyi", 300, seed=1)
    with pytest.raises(InferenceError, match="or more sets"):
        dob.solve(model, 150, oracle="exhaustive")


# -- what is said ---------------------------------------------------------------------------------------------

HIDDEN = quietly(
    dob.BinaryGLM.blm,
    {("U", "Y"): 0.2, ("A", "U"): 0.5, ("A", "Y"): 0.3, ("B", "Y"): 0.2, ("N", "Y"): 0.1},
    "Y",
    latent=["U"],
    controllable=["A", "B"],
)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"total_cost": 1, "costs": {"A": None}}, "cost is a number, 0 or more.*A is None"),
        ({"total_cost": 1, "costs": {"A": 10**5000}}, "cost is at most 1e\\+300, but that of A"),
        ({"total_cost": 1, "costs": {"A": True}}, "cost is a number"),
        ({"total_cost": 1, "costs": {"A": "2"}}, "cost is a number"),
        ({"total_cost": "1"}, "total cost is a number"),
        ({"total_cost": 1, "costs": [1, 2]}, "by name"),
        ({"total_cost": 1, "costs": "A"}, "by name"),
        ({"total_cost": 1, "costs": 3}, "by name"),
        ({"exclusive": None}, "list of groups"),
        ({"exclusive": 5}, "list of groups"),
        ({"exclusive": "A,B"}, "list of groups"),
        ({"exclusive": ["A", "B"]}, r"Write \[\['A', 'B'\]\]"),
        ({"exclusive": [["A"], "B"]}, "exclusive is a list of names"),
        ({"exclusive": [3]}, "exclusive is a list of names"),
        ({"exclusive": [["Z"]]}, "excludes each other .*'Z'"),
        ({"require": [["A"]]}, r"require .*\['A'\]"),
        ({"require": None}, "require is a list of names"),
        ({"forbid": 3}, "forbid is a list of names"),
        ({"available": 5}, "available is a list of names"),
        ({"require": ["Y"]}, "required .* 'Y' is the target"),
        ({"forbid": ["U"]}, "forbidden .* 'U' is hidden"),
        ({"available": ["N"]}, "available .* 'N' is not controllable"),
        ({"total_cost": 2, "costs": {"a": 1}}, "Did you mean 'A'"),
        ({"budget": 3}, "Lower it"),
        ({"budget": 2.0}, "got 2.0.$"),
        ({"budget": "2"}, "got '2'.$"),
        ({"budget": -1}, "got -1.$"),
        ({"budget": True}, "got True.$"),
        ({"budget": np.array([1, 2])}, "whole number"),
        ({"budget": 10**5000}, "whole number"),
        ({"budget": None}, "budget or a total cost, but got neither. Give one of them.$"),
    ],
)
def test_bad_rules_are_refused_with_the_reason(rules, says):
    with pytest.raises(InterventionError, match=says):
        dob.solve(HIDDEN, **{"budget": 1, **rules})


def test_a_variable_of_the_context_is_not_to_be_made_controllable():
    graph = dob.CausalGraph([("A", "Y"), ("C", "Y")], target="Y", context=["C"])
    for rules in ({"levers": {"C": (0, 1)}}, {"require": ["C"]}, {"available": ["C"]}):
        with pytest.raises(
            InterventionError, match=r"'C' is of the context, which is seen and not set. Leave it out.$"
        ):
            dob.solve(
                dob.BinaryGLM(graph, {"A": 0.5, "C": 0.5, "Y": 0.1, ("A", "Y"): 0.2, ("C", "Y"): 0.1}), 1, **rules
            )


@pytest.mark.parametrize(
    "options",
    [
        *({"top": top} for top in (None, 0, True, 2.0, "2", 10**10, 10**5000)),
        *({"node_limit": limit} for limit in (0, True, 1.5, math.nan, "3")),
        *({"time_limit": limit} for limit in (0, -1, True, math.nan, "3", [1])),
        *({"oracle": oracle} for oracle in (None, ["auto"], np.array(["auto", "greedy"]))),
    ],
)
def test_bad_options_are_refused(options):
    (name,) = options
    with pytest.raises(InferenceError, match=name):
        dob.solve(HIDDEN, 1, **options)


def test_numbers_of_numpy_are_numbers():
    result = dob.solve(
        HIDDEN,
        np.int64(1),
        total_cost=np.float32(1),
        costs={"A": np.int8(1)},
        top=np.int16(2),
        node_limit=np.uint8(200),
        time_limit=np.float64(9),
    )
    assert result.set == ("A",)
    assert len(result.top) == 2


@pytest.mark.parametrize("what", [HIDDEN.graph, None, "model.json", {}])
def test_only_models_with_weights_are_solved(what):
    with pytest.raises(InferenceError, match="the best set is that of a model"):
        dob.solve(what, 1)
