"""`solve` with effects of any sign and variables set to 0 or other values, against every action in every world."""

import math
from itertools import combinations, product

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import DobanditError, InferenceError, InterventionError
from dobandit.model.weights import keys_in_order
from dobandit.oracle.objectives import CommonWorlds
from helpers.worlds import joint, quietly

EXACT = ("auto", "exhaustive", "branch-and-bound")


def signed(edges, weights, links=None, kind=dob.BinaryGLM, **options):
    """A model with weights of any sign; models are still made with nonnegative ones, so they are put in afterwards."""
    graph = quietly(dob.CausalGraph, edges, target="Y", **options)
    zero = dict.fromkeys(keys_in_order(graph), 0.0)
    model = kind(graph, zero) if links is None else kind(graph, zero, links=links)
    theta = np.array([weights.get(key, 0.0) for key in keys_in_order(graph)])
    theta.setflags(write=False)
    model.theta = theta
    return model


def random_edges(rng, names, density=0.5):
    edges = [(a, b) for a, b in combinations(names, 2) if rng.random() < density]
    return edges if any(b == "Y" for _, b in edges) else [*edges, (names[0], "Y")]


def random_linear(rng, most=6, kind=dob.BinaryGLM, density=0.5):
    """Probabilities stay within [0, 1] for all parents: the bias outweighs the negative effects, and all positive ones
    together with it are at most 1."""
    names = [f"X{i}" for i in range(int(rng.integers(3, most + 1)))] + ["Y"]
    edges = random_edges(rng, names, density)
    weights = {}
    for name in names:
        parents = [a for a, b in edges if b == name]
        raw = rng.random(len(parents) + 1)
        if rng.random() < 0.3:
            raw = np.round(raw * 2) / 2 + 1e-3  # ties
        share = raw / raw.sum() * rng.uniform(0.5, 1.0)
        sign = np.where(rng.random(len(parents)) < 0.5, -1.0, 1.0)
        down = float(share[1:][sign < 0].sum())
        weights[name] = float(share[0]) + down
        weights |= {(a, name): float(s * w) for a, s, w in zip(parents, sign, share[1:], strict=True)}
    if min(weights.values()) >= 0.0:
        return random_linear(rng, most, kind, density)
    return signed(edges, weights, kind=kind, nodes=names)


def random_logistic(rng, most=5):
    names = [f"X{i}" for i in range(int(rng.integers(3, most + 1)))] + ["Y"]
    edges = random_edges(rng, names)
    weights = {key: float(rng.normal(0.0, 2.0)) for key in [*names, *edges]}
    weights[edges[-1]] = -abs(weights[edges[-1]])
    return signed(edges, weights, links="logistic", nodes=names)


def random_rules(rng, names, values=(0.0, 1.0)):
    rules = {}
    if rng.random() < 0.7:
        rules["budget"] = int(rng.integers(0, len(names) + 1))
    if "budget" not in rules or rng.random() < 0.3:
        rules["costs"] = {name: float(rng.choice([0, 0.5, 1, 2, 3])) for name in names if rng.random() < 0.8}
        rules["total_cost"] = float(rng.integers(1, 6))
    if rng.random() < 0.6:
        rules["levers"] = {name: values for name in names if rng.random() < 0.6}
        rules["levers"] |= {name: (0,) for name in names if rng.random() < 0.1}
    if rng.random() < 0.3:
        rules["forbid"] = [names[0]]
    elif rng.random() < 0.5:
        cheap = rules.get("costs", {}).get(names[1], 1.0) <= rules.get("total_cost", math.inf)
        if rules.get("budget", 1) >= 1 and cheap:
            rules["require"] = [names[1]]
    if rng.random() < 0.4 and len(names) > 3:
        rules["exclusive"] = [names[1:3], names[2:4]] if rng.random() < 0.5 else [names[2:4]]
    if rng.random() < 0.2:
        rules["smaller"] = bool(rng.random() < 0.5)
    if rng.random() < 0.2 and "require" not in rules:
        rules["available"] = names[: max(1, len(names) // 2 + 1)]
    return rules


def allowed(rules, names, chosen):
    """The rules in plain words."""
    chosen = set(chosen)
    cost = sum(rules.get("costs", {}).get(name, 1.0) for name in chosen)
    return (
        len(chosen) <= rules.get("budget", len(names))
        and cost <= rules.get("total_cost", math.inf) + 1e-9
        and not chosen & set(rules.get("forbid", ()))
        and set(rules.get("require", ())) <= chosen
        and all(len(chosen & set(group)) <= 1 for group in rules.get("exclusive", ()))
        and chosen <= set(rules.get("available", names))
    )


def by_worlds(model, do):
    """E[Y] over all worlds; a continuous linear model has the means of the binary one."""
    return sum(p for world, p in joint(model, do) if world["Y"])


def by_recursion(model, do):
    """E[Y] of a linear model from the weights by name, for values other than 0 and 1."""

    def mean(name):
        if name in do:
            return do[name]
        bias, parents = model.parent_weights(name)
        return bias + sum(w * mean(parent) for parent, w in parents.items())

    return mean("Y")


def every_action(model, rules, value=by_worlds):
    """Every allowed action that sets nothing irrelevant unless it must, with its value; best first."""
    names = model.graph.controllable
    useful = {*rules.get("require", ()), *(n for n in names if n not in model.graph.irrelevant)}
    sets = [s for size in range(len(names) + 1) for s in combinations(names, size) if set(s) <= useful]
    sets = [s for s in sets if allowed(rules, names, s)]
    if rules.get("smaller") is False:
        full = [s for s in sets if not any(set(s) < set(other) for other in sets)]
        if "total_cost" not in rules and "exclusive" not in rules:
            assert len({len(s) for s in full}) <= 1
        sets = full
    actions = []
    for chosen in sets:
        options = [
            rules.get("levers", {}).get(n, (1,))[-1:]
            if n in model.graph.irrelevant
            else rules.get("levers", {}).get(n, (1,))
            for n in chosen
        ]
        for values in product(*options):
            do = dict(zip(chosen, values, strict=True))
            actions.append((do, value(model, do)))
    return sorted(actions, key=lambda entry: -entry[1])


def key(do):
    return tuple(sorted((name, float(to)) for name, to in do.items()))


def check(result, truth, top):
    """What an exact oracle must give."""
    table = {key(do): value for do, value in truth}
    assert result.status == "optimal"
    assert result.value == pytest.approx(truth[0][1], abs=1e-9)
    assert result.bound == pytest.approx(truth[0][1], abs=1e-9)
    assert [value for _, value in result.top] == pytest.approx([value for _, value in truth[:top]], abs=1e-9)
    for do, value in result.top:
        assert table[key(do)] == pytest.approx(value, abs=1e-9)
    assert len({key(do) for do, _ in result.top}) == len(result.top)
    assert result.set == tuple(result.do)


@pytest.mark.parametrize("seed", range(6))
def test_signed_linear_models_against_every_action(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        model = random_linear(rng)
        rules, top = random_rules(rng, model.graph.controllable), int(rng.choice([1, 1, 2, 5]))
        truth = every_action(model, rules)
        for oracle in EXACT:
            check(dob.solve(model, oracle=oracle, top=top, **rules), truth, top)
        greedy = dob.solve(model, oracle="greedy", **rules)
        table = {key(do): value for do, value in truth}
        assert table[key(greedy.do)] == pytest.approx(greedy.value, abs=1e-9)
        assert greedy.value <= truth[0][1] + 1e-9 <= greedy.bound + 2e-9
        assert greedy.factor is None


@pytest.mark.parametrize("seed", range(4))
def test_levers_on_models_without_negative_effects(seed):
    """Setting to 0 makes even these problems neither monotone nor a matter of sets of full size."""
    rng = np.random.default_rng(50 + seed)
    for _ in range(40):
        model = random_linear(rng)
        theta = np.abs(model.theta)
        child = np.repeat(np.arange(len(model.graph) + 1), np.diff(model.graph.arrays.parent_ptr))
        theta = theta / np.maximum(np.bincount(child, weights=theta, minlength=len(model.graph) + 1), 1.0)[child]
        model.theta = theta
        rules, top = random_rules(rng, model.graph.controllable), int(rng.choice([1, 3]))
        truth = every_action(model, rules)
        for oracle in EXACT:
            result = dob.solve(model, oracle=oracle, top=top, **rules)
            assert result.status == "optimal"
            assert result.value == pytest.approx(truth[0][1], abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_continuous_models_take_any_value(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(40):
        model = random_linear(rng, kind=dob.LinearModel)
        rules = random_rules(rng, model.graph.controllable, values=(0.25, 0.75, 1.0)[: int(rng.integers(1, 4))])
        truth = every_action(model, rules, by_recursion)
        for oracle in EXACT:
            check(dob.solve(model, oracle=oracle, top=2, **rules), truth, 2)


@pytest.mark.parametrize("seed", range(4))
def test_logistic_models_of_any_sign(seed):
    rng = np.random.default_rng(200 + seed)
    for _ in range(15):
        model = random_logistic(rng)
        rules, top = random_rules(rng, model.graph.controllable), int(rng.choice([1, 3]))
        truth = every_action(model, rules)
        check(dob.solve(model, top=top, **rules), truth, top)
        table = {key(do): value for do, value in truth}
        for limits in ({"oracle": "greedy"}, {"oracle": "exhaustive", "node_limit": 1}):
            result = dob.solve(model, **limits, **rules)
            assert table[key(result.do)] == pytest.approx(result.value, abs=1e-9)
            assert result.value <= truth[0][1] + 1e-9 <= result.bound + 2e-9
            assert result.bound <= 1.0


@pytest.mark.parametrize("limit", [1, 2, 5, 20])
def test_a_stopped_search_is_allowed_and_honest(limit):
    rng = np.random.default_rng(300 + limit)
    stopped = 0
    for _ in range(60):
        model = random_linear(rng, most=7, density=0.7)
        rules, top = random_rules(rng, model.graph.controllable), int(rng.choice([1, 3]))
        truth = every_action(model, rules, by_recursion)
        table = {key(do): value for do, value in truth}
        result = dob.solve(model, oracle="branch-and-bound", node_limit=limit, top=top, **rules)
        assert result.value <= truth[0][1] + 1e-9 <= result.bound + 2e-9
        assert all(table[key(do)] == pytest.approx(value, abs=1e-9) for do, value in result.top)
        assert result.value >= dob.solve(model, oracle="greedy", **rules).value - 1e-9
        assert result.factor is None or result.value >= result.factor * truth[0][1] - 1e-9
        stopped += result.status == "approximate"
    assert limit > 5 or stopped > 2


@pytest.mark.parametrize("kind", ["signed", "nonnegative", "logistic"])
@pytest.mark.parametrize("smaller", [True, False])
def test_whether_smaller_sets_count_holds_for_every_oracle_at_every_limit(kind, smaller):
    rng = np.random.default_rng(7)
    for _ in range(25):
        model = random_logistic(rng) if kind == "logistic" else random_linear(rng)
        if kind == "nonnegative":
            model.theta = np.where(model.theta < 0.0, 0.0, model.theta)
        rules = random_rules(rng, model.graph.controllable, values=(1,)) | {"smaller": smaller}
        rules.pop("levers", None)
        table = {key(do): value for do, value in every_action(model, rules)}
        for oracle in ("exhaustive", "greedy") if kind == "logistic" else ("exhaustive", "branch-and-bound", "greedy"):
            for limits in ({}, {"node_limit": 1}, {"node_limit": 3}):
                result = dob.solve(model, oracle=oracle, **limits, **rules)
                assert table[key(result.do)] == pytest.approx(result.value, abs=1e-9)
                assert result.value <= max(table.values()) + 1e-9 <= result.bound + 2e-9


@pytest.mark.parametrize("seed", range(3))
def test_the_search_equals_looking_at_all_on_larger_models(seed):
    rng = np.random.default_rng(400 + seed)
    for _ in range(8):
        model = random_linear(rng, most=13, density=0.4)
        names = model.graph.controllable
        budget = min(3, len(names))
        rules = {"levers": {name: (0, 1) for name in names if rng.random() < 0.5}}
        slow, fast = (dob.solve(model, budget, oracle=oracle, top=4, **rules) for oracle in EXACT[1:])
        assert [v for _, v in fast.top] == pytest.approx([v for _, v in slow.top], abs=1e-9)
        assert fast.explored < slow.explored or slow.explored < 50


def harmful():
    """Everything that can be set lowers Y, but setting A to 0 helps."""
    edges = [("A", "Y"), ("B", "Y")]
    return signed(edges, {"Y": 0.9, "A": 0.5, "B": 0.5, ("A", "Y"): -0.3, ("B", "Y"): -0.2})


@pytest.mark.parametrize("oracle", [*EXACT, "greedy"])
def test_doing_nothing_is_an_action(oracle):
    model = harmful()
    assert dob.solve(model, 2, oracle=oracle).do == {}
    assert dob.solve(model, 2, oracle=oracle, levers={"A": (0, 1)}).do == {"A": 0}
    assert dob.solve(model, 1, oracle=oracle, smaller=False).do == {"B": 1}
    assert dob.solve(model, 2, oracle=oracle, smaller=False).do == {"A": 1, "B": 1}
    assert dob.solve(model, 2, oracle=oracle, require=["B"]).do == {"B": 1}


def test_variables_without_a_path_are_never_set():
    model = signed([("A", "Y"), ("A", "W")], {"Y": 0.1, ("A", "Y"): 0.5})
    assert dob.solve(model, 2, levers={"W": (0, 1)}).do == {"A": 1}
    assert dob.solve(model, 2, levers={"W": (0, 1)}, require=["W"]).do == {"A": 1, "W": 1}


def test_binary_models_refuse_other_values():
    with pytest.raises(InterventionError, match=r"set to 0 or 1.*'X3' to 0\.5"):
        dob.solve(dob.paper.G1, 1, levers={"X3": (0.5, 1)})
    with pytest.raises(InterventionError, match="levers are of controllable"):
        dob.solve(dob.paper.G1, 1, levers={"Q": (0, 1)})
    with pytest.raises(TypeError, match="'lever'"):
        dob.solve(dob.paper.G1, 1, lever={"X3": (0, 1)})


def test_rules_come_as_they_are():
    from dobandit.oracle.rules import Rules

    rules = Rules(2, levers={"X3": (0, 1)}, forbid=["X5"], available=["X2", "X3", "X4", "X5"])
    result = dob.solve(dob.paper.G1, rules)
    assert result.do == dob.solve(dob.paper.G1, 2, levers={"X3": (0, 1)}, forbid=["X5", "X6", "X7"]).do
    assert dob.solve(dob.paper.G1, rules, available=["X3", "X6"]).set == ("X3",)
    with pytest.raises(InterventionError, match="Put it into the Rules"):
        dob.solve(dob.paper.G1, rules, forbid=["X2"])


def test_greedy_steps_on_signed_logistic_models_have_a_bound():
    rng = np.random.default_rng(5)
    below = 0
    for _ in range(10):
        model = random_logistic(rng)
        budget = min(2, len(model.graph.controllable))
        result = dob.solve(model, budget, oracle="greedy")
        truth = every_action(model, {"budget": budget})[0][1]
        assert result.value <= truth + 1e-9 <= result.bound + 2e-9
        below += result.bound < 0.99
    assert below >= 3  # the interval pass says more than 1


@pytest.mark.parametrize("seed", range(3))
def test_worlds_of_any_sign_agree_with_the_truth_and_keep_no_trace(seed):
    rng = np.random.default_rng(600 + seed)
    for _ in range(8):
        model = random_logistic(rng, most=6)
        worlds, taken = CommonWorlds(model), {}
        for v in rng.permutation(np.arange(1, len(worlds.ids) - 1)).tolist():
            name = model.graph.nodes[worlds.ids[v] - 1]
            need, on = worlds.need.copy(), worlds.on.copy()
            for to in (0.0, 1.0):
                truth = by_worlds(model, {**taken, name: to})
                simulated = worlds.value + worlds.gains([v], np.array([to]))[0]
                assert simulated == pytest.approx(truth, abs=0.035)  # 7 standard errors at least
                np.testing.assert_array_equal(worlds.need, need)
                np.testing.assert_array_equal(worlds.on, on)
            worlds.set(v, float(v % 2))
            taken[name] = float(v % 2)


@pytest.mark.parametrize("smaller", [None, False])
def test_greedy_on_worlds_keeps_the_rules(monkeypatch, smaller):
    monkeypatch.setattr("dobandit.limits.MAX_EXACT_WORK", 0)
    rng = np.random.default_rng(8)
    for _ in range(15):
        model = random_logistic(rng)
        rules = random_rules(rng, model.graph.controllable) | {"smaller": smaller}
        table = {key(do): value for do, value in every_action(model, rules)}
        result = dob.solve(model, oracle="greedy", **rules)
        assert table[key(result.do)] == pytest.approx(result.value, abs=1e-9)
        assert max(table.values()) <= result.bound + 1e-9


def test_limits_and_lists_of_the_search_are_checked():
    model = harmful()
    with pytest.raises(InferenceError):
        dob.solve(model, 1, node_limit=0)
    with pytest.raises(DobanditError, match="linear"):
        dob.solve(random_logistic(np.random.default_rng(0)), 1, oracle="branch-and-bound")
