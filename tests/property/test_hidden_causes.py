"""Hidden causes that cannot be removed: hiding a mediator and setting a variable always give E[Y | do(S)] exactly."""

from itertools import chain, combinations, product

import numpy as np
import pytest

import dobandit as dob
from dobandit import BinaryGLM, CausalGraph, TableModel, expect
from dobandit.errors import GraphError, InterventionError, ModelError, PolicyError
from dobandit.graph.hiding import names_to_hide, smallest_to_hide, unshared, with_hidden, without_causes
from dobandit.graph.latent import admissible
from dobandit.model.links import auto, identity, logistic
from dobandit.model.projection import project
from dobandit.policy.engine import Rounds
from dobandit.policy.graph_evidence import GraphEvidence
from dobandit.policy.hidden_causes import visible
from helpers.enumeration import confounded_graph, fitted, mean, random_tables
from helpers.plain_paths import hidden_paths
from helpers.worlds import brute_force_means, hidden_structure, quietly, random_shares

SHOP = CausalGraph(
    [("email", "visit"), ("coupon", "visit"), ("visit", "buy"), ("season", "visit"), ("season", "buy")],
    target="buy",
    latent=["season"],
    controllable=["email", "coupon"],
)


def subsets(names):
    names = sorted(names)
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))


def actions(names):
    for chosen in subsets(names):
        for values in product((0, 1), repeat=len(chosen)):
            yield dict(zip(chosen, values, strict=True))


# -- which variables to hide ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [admissible, unshared])
def test_what_is_hidden_is_a_smallest_set(rule):
    rng, found = np.random.default_rng(0), []
    for _ in range(150):
        graph = confounded_graph(rng, size=8, settable=0.3)
        hideable = set(graph.observed) - {graph.target, *graph.controllable}
        best = next((one for one in subsets(hideable) if rule(with_hidden(graph, one))), None)
        answer = smallest_to_hide(graph, rule)
        found.append(None if answer is None else len(answer))
        if best is None:
            assert answer is None
        else:
            assert len(answer) == len(best)
            assert rule(with_hidden(graph, answer))
    assert {None, 0, 1, 2} <= set(found), "every kind must be met"


def test_unshared_is_what_it_says():
    rng, answers = np.random.default_rng(1), []
    for _ in range(200):
        graph = confounded_graph(rng, size=8, hidden=3)
        matter = {*graph.ancestors(graph.target), graph.target}
        ends = [{path[-1] for path in hidden_paths(graph.edges, graph.latent, u)} & matter for u in graph.latent]
        answers.append(bool(unshared(graph)))
        assert answers[-1] == all(len(some) <= 1 for some in ends)
    assert 5 < sum(answers) < 195


def test_a_graph_with_too_much_to_hide_says_so():
    pairs = [(f"A{i}", f"B{i}") for i in range(16)]
    edges = [(u, end) for i, pair in enumerate(pairs) for end in pair for u in (f"U{i}",)]
    edges += [*pairs, *((b, "Y") for _, b in pairs), ("X", "Y")]
    graph = CausalGraph(edges, target="Y", latent=[f"U{i}" for i in range(16)], controllable=["X"])
    with pytest.raises(GraphError, match=r"Name what is to be hidden"):
        smallest_to_hide(graph)
    with pytest.raises(GraphError, match=r"\(1\) .*policy='causal-ucb'.*policy='ucb'"):
        dob.BLMLR().start(graph, 1)
    with pytest.raises(PolicyError, match=r"too wide for one.*policy='ucb'"):
        dob.CausalUCB().start(graph, 1)
    assert dob.UCB().start(graph, 1, hide=[a for a, _ in pairs]).problem.obstacle is None


@pytest.mark.parametrize(
    ("hide", "words"),
    [
        ("visit", r"Write \['visit'\]"),
        (["vist"], "Did you mean 'visit'"),
        (["buy"], "the target"),
        (3, "list of names"),
    ],
)
def test_a_wrong_hide_is_refused(hide, words):
    with pytest.raises(GraphError, match=words):
        names_to_hide(SHOP, hide)


# -- the lemmas -----------------------------------------------------------------------------------------------------


def test_hiding_gives_every_expectation_of_a_linear_model_exactly():
    rng, hidden = np.random.default_rng(2), 0
    for _ in range(200):
        structure = hidden_structure(rng, size=7)
        settable = [name for name in structure["nodes"] if name[0] == "X" and rng.random() < 0.4]
        try:
            model = BinaryGLM(quietly(CausalGraph, **structure, controllable=settable), random_shares(rng, structure))
        except GraphError:
            continue
        names = smallest_to_hide(model.graph)
        if not names:
            continue
        hidden += 1
        left = project(model, hide="auto")
        assert not set(names) & set(left.graph.nodes)
        for do in list(actions(settable))[:9]:
            assert expect(left, do).value == pytest.approx(brute_force_means(model, do)["Y"], abs=1e-12)
    assert hidden >= 15


def test_hiding_gives_every_expectation_of_any_model_exactly():
    rng, hidden = np.random.default_rng(3), 0
    for seed in range(300):
        graph = confounded_graph(rng, size=7, settable=0.4)
        seen = visible(graph, (auto,) * len(graph), "auto")
        if seen.whole is None or not unshared(seen.whole):
            continue
        hidden += bool(seen.hidden)
        model = random_tables(rng, graph, sharp=bool(seed % 2))
        learned = fitted(model, seen.graph, {})
        for do in actions(seen.graph.controllable):
            assert mean(learned, do) == pytest.approx(mean(model, do), abs=1e-9)
    assert hidden >= 30


def test_setting_always_gives_every_expectation_exactly():
    """Of rounds in which the variable is set by a coin; those in which it came by itself would mislead."""
    rng, helped, misled = np.random.default_rng(4), 0, 0
    for _ in range(150):
        graph = confounded_graph(rng, size=7, settable=0.7)
        always = [name for name in graph.controllable if rng.random() < 0.7]
        seen = visible(graph, (auto,) * len(graph), "auto", always)
        if not always or seen.whole is None or not unshared(seen.whole) or unshared(graph):
            continue
        helped += 1
        model = random_tables(rng, graph, sharp=True)
        learned = fitted(model, seen.graph, dict.fromkeys(always, 0.5))
        natural = fitted(model, seen.graph, {})
        for do in actions(seen.graph.controllable):
            if set(always) <= do.keys():
                truth = mean(model, do)
                assert mean(learned, do) == pytest.approx(truth, abs=1e-9)
                misled += abs(mean(natural, do) - truth) > 0.05
    assert helped >= 15
    assert misled >= 10


def test_a_variable_without_causes_is_the_same_when_it_is_set():
    rng = np.random.default_rng(5)
    for _ in range(40):
        graph = confounded_graph(rng, size=7, settable=0.7)
        always = graph.controllable[:2]
        free = without_causes(graph, always)
        assert not any(free.parents(name) for name in always)
        model = random_tables(rng, graph)
        turn = {n: [graph.parents(n).index(parent) for parent in free.parents(n)] for n in graph.nodes}
        tables = {n: 0.5 if n in always else model.tables[n].transpose(turn[n]) for n in graph.nodes}
        cut = TableModel(free, tables)
        for values in product((0, 1), repeat=len(always)):
            do = dict(zip(always, values, strict=True))
            assert mean(cut, do) == pytest.approx(mean(model, do), abs=1e-12)


# -- what a learner makes of it -------------------------------------------------------------------------------------


def test_links_after_hiding():
    """A node with hidden causes of its own is learned as a table. Where they are shared, links that are learned have
    mechanisms, and a model must be linear."""
    promised = tuple(logistic() for _ in SHOP.nodes)
    seen = visible(SHOP, promised, "auto")
    by_name = dict(zip(seen.graph.nodes, seen.links, strict=True))
    assert seen.hidden == ("visit",)
    assert by_name["buy"] == auto
    assert by_name["email"] == logistic()
    assert visible(SHOP, (identity,) * len(SHOP), "auto").links == (identity,) * 4
    assert isinstance(visible(SHOP, promised).obstacle, ModelError)
    shared = CausalGraph([("U", "a"), ("U", "b"), ("a", "Y"), ("b", "Y")], target="Y", latent=["U"])
    linear = visible(shared, (identity,) * len(shared))
    assert linear.obstacle is None
    assert linear.mechanisms is None
    assert set(linear.links) == {identity}
    learned = visible(shared, (auto,) * len(shared))
    assert set(learned.links) == {auto}
    a, b = (learned.graph.index(name) for name in "ab")
    assert learned.mechanisms.shared == {a: 1 << b, b: 1 << a}


def test_a_hidden_mediator_stays_in_the_learners_graph_without_causes_and_effects():
    learner = dob.BLMLR(clipped=True).start(SHOP, 1, hide="auto")
    assert learner.graph.edges == (("coupon", "buy"), ("email", "buy"))
    assert "visit" in learner.graph
    assert "visit" not in learner.modelled
    learner.update({"email": 1}, {"coupon": 0, "visit": 1, "buy": 1})
    assert learner.rounds == 1


@pytest.mark.parametrize("policy", [dob.CausalUCB(), dob.BLMLR(clipped=True)])
def test_rounds_that_must_not_enter_change_nothing(policy):
    graph = CausalGraph([("a", "b"), ("b", "Y"), ("c", "Y"), ("U", "b"), ("U", "Y")], target="Y", latent=["U"])
    good = [({"b": i % 2, "c": 1}, {"a": 1, "Y": i % 3 == 0}) for i in range(8)]
    bad = [({"c": 1}, {"a": 1, "b": 1, "Y": 1}), ({}, {"a": 0, "b": 0, "c": 0, "Y": 1})]
    plain, mixed = (policy.start(graph, 2, links="identity", always_set=["b"]) for _ in range(2))
    plain.update_many(good)
    mixed.update_many([*good[:3], *bad, *good[3:]])
    for row in bad:
        mixed.update(*row)
    assert mixed.rounds == plain.rounds == 8
    do = {"b": 1, "c": 1}
    assert mixed.predict(do) == plain.predict(do)
    assert mixed.propose() == plain.propose()
    assert "b" in mixed.propose()


def test_a_model_of_rounds_that_always_set_a_variable_knows_nothing_of_others():
    graph = CausalGraph([("b", "Y"), ("c", "Y"), ("U", "b"), ("U", "Y")], target="Y", latent=["U"])
    learner = dob.BLMLR(clipped=True).start(graph, 2, always_set=["b"])
    assert learner.problem.rules.values_of("b") == (0.0, 1.0)
    assert learner.problem.rules.require == ("b",)
    told = learner.assess()
    assert told.nothing is None
    assert told.uplift is None
    with pytest.raises(InterventionError, match=r"'b' is always set.*Add 'b'"):
        learner.predict({"c": 1})
    assert dob.UCB().start(graph, 2, always_set=["b"]).predict({"c": 1}).value == 0.5


@pytest.mark.parametrize("words", [{"hide": "auto"}, {"always_set": ["X"]}, {}])
def test_the_evidence_on_the_graph_does_not_blame_what_was_said(words):
    """A strong hidden cause that the user named: no finding, whatever was done about it."""
    edges = [("Z", "M"), ("M", "Y"), ("X", "Y"), ("U", "Y"), ("U", "X" if "always_set" in words else "M")]
    graph = CausalGraph(edges, target="Y", latent=["U"], controllable=["X", "Z"])
    rng = np.random.default_rng(6)
    tables = {"U": 0.5, "Z": 0.5, "X": 0.5}
    model = random_tables(np.random.default_rng(6), graph, sharp=True)
    model = TableModel(graph, {**model.tables, **{n: p for n, p in tables.items() if not graph.parents(n)}})
    policy = dob.CausalUCB() if words else dob.UCB()
    learner = policy.start(graph, 2, **words)
    evidence = GraphEvidence(learner.problem)
    drawn = model.sample({}, 400, rng=rng)
    names = learner.graph.nodes
    values = np.ones((800, len(names) + 1))
    was_set = np.zeros(values.shape, dtype=bool)
    forced = model.sample({"X": 1}, 400, rng=rng)
    for i, name in enumerate(names, start=1):
        values[:400, i], values[400:, i] = drawn[name], forced[name]
    was_set[400:, learner.graph.index("X")] = True
    evidence.update(Rounds(values, was_set, np.ones(800, dtype=np.int64)))
    assert evidence.findings() == []


def test_ignoring_the_hidden_cause_picks_the_wrong_set():
    """Season brings visits and purchases; email brings visits that buy nothing, coupon a few that do."""
    graph = CausalGraph(
        [*product(("coupon", "season"), ("visit", "buy")), ("email", "visit"), ("visit", "buy")],
        target="buy",
        latent=["season"],
        controllable=["email", "coupon"],
    )
    at = {effect: {name: i for i, name in enumerate(graph.parents(effect))} for effect in ("visit", "buy")}
    patterns = list(product((0, 1), repeat=3))
    visit = {k: 0.05 + 0.4 * k[at["visit"]["email"]] + 0.5 * k[at["visit"]["season"]] for k in patterns}
    buy = {k: 0.05 + 0.1 * k[at["buy"]["coupon"]] + 0.8 * k[at["buy"]["season"]] for k in patterns}
    model = TableModel(graph, {"season": 0.5, "email": 0.2, "coupon": 0.2, "visit": visit, "buy": buy})
    careless = CausalGraph(
        [edge for edge in graph.edges if "season" not in edge], target="buy", controllable=["email", "coupon"]
    )
    believed = fitted(model, careless, {})
    hidden = fitted(model, visible(graph, (auto,) * len(graph), "auto").graph, {})
    sets = [{"email": 1}, {"coupon": 1}]
    assert max(sets, key=lambda do: mean(model, do)) == {"coupon": 1}
    assert max(sets, key=lambda do: mean(believed, do)) == {"email": 1}
    assert max(sets, key=lambda do: mean(hidden, do)) == {"coupon": 1}
