"""Lazy greedy for any link: plain greedy where E[Y] is submodular, the rules kept, worlds that agree with the truth."""

import math

import numpy as np
import pytest

import dobandit as dob
from dobandit import limits
from dobandit.model.inference import expect
from dobandit.oracle.greedy import greedy
from dobandit.oracle.objectives import WORLDS, ByExpectation, CommonWorlds, objective_of, thresholds
from dobandit.oracle.rules import Rules
from dobandit.oracle.search_space import Limits, Options
from dobandit.oracle.solve import allowed_actions
from helpers.worlds import ARCTAN, quietly, random_bglm


def random_cascade(rng, most=9):
    """Independent cascades and linear thresholds mixed, some nodes without a path to Y: E[Y] is submodular."""
    names = [f"X{i}" for i in range(int(rng.integers(3, most)))] + ["Y"]
    weights, links = {}, {}
    for i, name in enumerate(names):
        parents = [names[j] for j in range(i) if rng.random() < 0.5] or ([names[0]] if name == "Y" else [])
        raw = rng.random(len(parents) + 1) * (rng.random(len(parents) + 1) < 0.8)
        if rng.random() < 0.4:
            raw = np.round(raw * 2) / 2  # ties
        links[name] = "exponential" if name == "Y" or rng.random() < 0.6 else "identity"
        if links[name] == "identity":
            raw = raw / max(1.0, raw.sum())
        weights |= dict(zip([name, *((parent, name) for parent in parents)], raw.tolist(), strict=True))
    edges = [key for key in weights if not isinstance(key, str)]
    graph = quietly(dob.CausalGraph, edges, target="Y", nodes=names)
    return dob.BinaryGLM(graph, weights, links=links)


def plain_greedy(candidates, rules, value):
    """Every candidate in every step, by gain per cost and with costs also by gain; (chosen, evaluations). `value` is
    E[Y] of a set."""
    runs = [steps_of(candidates, rules, value, by_rate) for by_rate in (True, False)[: 1 + ("total_cost" in rules)]]
    best = max(runs, key=lambda run: round(run[1], 11))
    return set(best[0]), sum(looked for _, _, looked in runs)


def steps_of(candidates, rules, value, by_rate):
    costs = rules.get("costs", {}) if by_rate and "total_cost" in rules else dict.fromkeys(candidates, 1.0)
    chosen, looked = list(rules.get("require", ())), 0
    now = value(chosen)
    while True:
        best = None
        for name in candidates:
            if name in chosen or not keeps(rules, [*chosen, name]):
                continue
            new = value([*chosen, name])
            looked += 1
            cost, gain = costs.get(name, 1.0), round(new - now, 12)
            rate = (gain / cost if cost else gain * 1e300, gain)
            if best is None or rate > best[0]:
                best = (rate, name, new)
        if best is None or (best[0][1] <= 0.0 and "total_cost" in rules):
            return chosen, now, looked
        chosen, now = [*chosen, best[1]], best[2]


def keeps(rules, chosen):
    """The rules in plain words."""
    cost = sum(rules.get("costs", {}).get(name, 1.0) for name in chosen)
    return (
        len(chosen) <= rules.get("budget", math.inf)
        and cost <= rules.get("total_cost", math.inf) + 1e-9
        and not set(chosen) & set(rules.get("forbid", ()))
        and all(len(set(chosen) & set(group)) <= 1 for group in rules.get("exclusive", ()))
    )


def random_rules(rng, model):
    names = model.graph.controllable
    rules = {"budget": int(rng.integers(1, len(names) + 1))}
    if rng.random() < 0.5:
        rules["costs"] = {name: float(rng.integers(0, 4)) for name in names if rng.random() < 0.8}
        rules["total_cost"] = float(rng.integers(3, 8))
    if rng.random() < 0.4:
        rules["require"] = [names[int(rng.integers(len(names)))]]
    elif rng.random() < 0.3:
        rules["forbid"] = [names[0]]
    if rng.random() < 0.5 and len(names) > 3:
        rules["exclusive"] = [names[1:3], names[2:4]]
    return rules


def useful(model, rules):
    out = {*model.graph.irrelevant, *rules.get("require", ())}
    return [name for name in model.graph.controllable if name not in out]


@pytest.mark.parametrize("seed", range(6))
def test_lazy_is_plain_greedy_where_gains_never_grow(seed):
    rng = np.random.default_rng(seed)
    saved = 0
    for _ in range(25):
        model = random_cascade(rng)
        rules = random_rules(rng, model)
        result = dob.solve(model, oracle="greedy", **rules)
        chosen, looked = plain_greedy(useful(model, rules), rules, lambda s: expect(model, s).value)  # noqa: B023
        assert set(result.set) == chosen
        assert result.explored <= looked
        assert result.value == pytest.approx(expect(model, result.set).value, abs=1e-12)
        saved += looked - result.explored
    assert saved > 0  # on so few candidates there is little to save


@pytest.mark.parametrize("seed", range(2))
def test_far_fewer_sets_are_looked_at_on_forty_nodes(seed):
    """As many variables as Y has causes: with more, all gains are 0 and each is looked at once more to see it."""
    model = dob.random_model("tree", 40, seed=seed, parents=4, link="exponential")
    budget = len(model.graph.parents("Y"))
    assert isinstance(objective_of(model, Options(allowed_actions(model, Rules(budget)))), ByExpectation)
    result = dob.solve(model, budget, oracle="greedy")
    rules = {"budget": budget}
    chosen, looked = plain_greedy(model.graph.controllable, rules, lambda s: expect(model, s).value)
    assert set(result.set) == chosen
    assert looked == sum(39 - step for step in range(budget))
    first = 39  # nobody gets around the first step
    assert 4 * (result.explored - first) <= looked - first


@pytest.mark.parametrize("link", ["exponential", "logistic", {"name": "logistic", "shift": 3.0}])
def test_large_graphs_are_solved_on_common_worlds_the_same_way_every_time(link):
    model = dob.random_model("scale-free", 70, seed=2, parents=8, link=link)
    options = Options(allowed_actions(model, Rules(4)))
    assert isinstance(objective_of(model, options), CommonWorlds)
    first, again = (dob.solve(model, 4, oracle="greedy") for _ in range(2))
    assert (first.set, first.value, first.explored) == (again.set, again.value, again.explored)
    assert (first.status, first.factor) == ("approximate", None)
    assert first.value <= first.bound <= 1.0
    plainly = greedy(CommonWorlds(model), options, Limits(), lazy=False)
    assert plainly.looked == sum(69 - step for step in range(4))
    assert first.explored < plainly.looked / 1.5
    if link == "exponential":
        assert first.do == options.action(plainly.chosen).named(model.graph)
    # The reported value is a mean of numbers in [0, 1] over fresh worlds (Hoeffding, error 1e-9 twice).
    far = 2 * math.sqrt(math.log(2e9) / (2 * WORLDS))
    assert first.value == pytest.approx(expect(model, first.set, "monte-carlo", seed=7).value, abs=far)


@pytest.mark.parametrize("seed", range(5))
def test_worlds_agree_with_exact_values(seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        model = random_bglm(rng, int(rng.integers(4, 10)))
        worlds = CommonWorlds(model)
        order = rng.permutation(np.arange(1, len(worlds.ids) - 1)).tolist()
        names = [model.graph.nodes[worlds.ids[v] - 1] for v in order]
        for step, v in enumerate(order):
            simulated = worlds.value + worlds.gains([v], np.ones(1))[0]
            error = model.link(model.target).value(worlds.sums).std() / math.sqrt(worlds.count)
            truth = expect(model, names[: step + 1], "enumeration").value
            assert abs(simulated - truth) <= 6 * error + 1e-9  # 2e-9 of normal errors are farther out
            worlds.set(v, 1.0)


@pytest.mark.parametrize("seed", range(4))
def test_a_trial_leaves_no_trace_and_the_order_of_setting_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    model = random_bglm(rng, 12)
    worlds, other = CommonWorlds(model, worlds=500), CommonWorlds(model, worlds=500)
    ids = np.arange(1, len(worlds.ids) - 1)
    need, on, start = worlds.need.copy(), worlds.on.copy(), worlds.value
    assert np.all(worlds.gains(ids, np.ones(len(ids))) >= 0.0)
    np.testing.assert_array_equal(worlds.need, need)
    np.testing.assert_array_equal(worlds.on, on)
    chosen = rng.permutation(ids)[:4].tolist()
    for v in chosen:
        worlds.set(v, 1.0)
    for v in chosen[::-1]:
        other.set(v, 1.0)
    assert worlds.value == pytest.approx(other.value, abs=1e-12)
    for v in chosen:  # and setting them free leads back
        worlds.set(v, np.nan)
    np.testing.assert_array_equal(worlds.on, on)
    assert worlds.value == pytest.approx(start, abs=1e-12)


@pytest.mark.parametrize("link", ["identity", "exponential", "logistic", "probit", "rational", ARCTAN])
def test_thresholds_invert_the_link(link):
    f = dob.model.links.link_from_document(link) if isinstance(link, str) else link
    u = np.linspace(0.0, 0.999, 400)
    at = thresholds(f, u, (0.0, 1.0 if link == "identity" else 1e4))
    inside = np.isfinite(at)
    np.testing.assert_allclose(f.value(at[inside]), u[inside], atol=1e-9)
    assert inside.sum() > 150
    assert not np.any(f.value(np.zeros(1)) <= u[at == -np.inf])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [ByExpectation, CommonWorlds])
def test_every_rule_is_kept_for_any_link(seed, kind, monkeypatch):
    rng = np.random.default_rng(100 + seed)
    if kind is CommonWorlds:
        monkeypatch.setattr(limits, "MAX_EXACT_WORK", 0)
    for _ in range(25):
        model = quietly(random_bglm, rng, int(rng.integers(4, 9)))
        rules = random_rules(rng, model)
        assert isinstance(objective_of(model, Options(allowed_actions(model, Rules(**rules)))), kind)
        result = dob.solve(model, oracle="greedy", **rules)
        required, candidates = list(rules.get("require", ())), useful(model, rules)
        assert set(required) <= set(result.set) <= {*candidates, *required}
        assert keeps(rules, result.set)
        assert list(result.set) == sorted(result.set, key=model.graph.index)
        assert result.value == pytest.approx(expect(model, result.set).value, abs=1e-12)
        if kind is ByExpectation:
            alone = [[*required, name] for name in candidates if keeps(rules, [*required, name])]
            assert result.value >= max([expect(model, s).value for s in alone], default=0.0) - 1e-9
        if "total_cost" not in rules:  # nothing that still fits is left out
            left = [name for name in candidates if name not in result.set]
            assert not any(keeps(rules, [*result.set, name]) for name in left)


def test_a_value_that_meets_the_bound_proves_a_greedy_answer():
    names = [f"X{i}" for i in range(6)]
    rng = np.random.default_rng(4)
    weights = dict.fromkeys(names, 0.3) | {"Y": -0.5} | {(name, "Y"): float(rng.normal()) for name in names}
    model = dob.BinaryGLM(dob.CausalGraph([(name, "Y") for name in names], target="Y"), weights, "logistic")
    rules = {"levers": dict.fromkeys(names, (0, 1)), "oracle": "greedy"}
    best = dob.links.logistic().value(-0.5 + sum(max(weights[name, "Y"], 0.0) for name in names))
    result = dob.solve(model, 6, **rules)
    assert (result.status, result.value) == ("optimal", pytest.approx(best))
    assert dob.solve(model, 3, **rules).status == "approximate"


def test_a_simulated_value_proves_nothing():
    """Y has too many causes for exact inference, and is 1 in every world once A is set."""
    causes = [f"X{i}" for i in range(30)]
    graph = dob.CausalGraph([(name, "Y") for name in ("A", *causes)], target="Y", controllable=["A"], bias=causes)
    weights = dict.fromkeys(causes, 0.5) | {(name, "Y"): 0.1 for name in causes} | {("A", "Y"): 50.0}
    result = dob.solve(dob.BinaryGLM(graph, weights, "exponential"), 1, oracle="greedy")
    assert (result.do, result.value, result.bound) == ({"A": 1}, 1.0, 1.0)
    assert result.status == "approximate"
