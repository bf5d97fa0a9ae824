"""The best of the sets that the rules allow, also of what can be set now."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given

import transcription as tr
from dobandit import BGLMOFU, BLMLR, UCB, CausalGraph, Random, paper
from dobandit.errors import DobanditError, InterventionError
from dobandit.policy.arms import ArmsEngine
from helpers.ruled import (
    CASES,
    LOGISTIC,
    Case,
    Game,
    a_round,
    data,
    every_policy,
    games,
    index_of,
    now,
    searched,
    seeds,
)
from helpers.worlds import relaxed

# -- rules, and what they allow, straight from their words ----------------------------------------------------


def names_of(learner, choice):
    return frozenset(choice.action.named(learner.graph))


def arms_of(learner):
    actions = learner.engine.actions()
    return [frozenset(actions.row(i).named(learner.graph)) for i in range(len(actions.ids))]


# -- the best of the allowed sets -----------------------------------------------------------------------------


def values_by_transcription(case, game, engine, sets):
    """The paper's value of every set, from the engine's estimate."""
    beliefs = engine.beliefs()
    nodes = {name: beliefs.node(game.graph.index(name)) for name in game.graph.nodes}
    theta, M = ({name: getattr(node, part) for name, node in nodes.items()} for part in ("theta", "gram"))
    rho = next(iter(nodes.values())).radius
    inverse = {name: tr.pseudo_inverse(m) if m.size else m for name, m in M.items()}
    graph = game.graph
    if case.links is not None:
        links = dict.fromkeys(graph.nodes, LOGISTIC)
        return [tr.per_pattern_value(graph, links, theta, inverse, rho, tuple(S)) for S in sets]
    if "boxed" in case.name or "search" in case.name:
        return tr.boxed_values(graph, theta, M, rho, map(tuple, sets))
    return [tr.closed_form_value(graph, theta, inverse, rho, tuple(S)) for S in sets]


def assert_best(case, game, learner, available=None, tolerance=1e-8):
    engine = learner.engine
    sets = game.maximal(game.relevant(), available)
    values = values_by_transcription(case, game, engine, sets)
    slack = tolerance * max(1.0, abs(max(values)))
    compared = {frozenset(a.named(game.graph)): value for a, value in engine.compare(now(learner, available))}
    for S, value in zip(sets, values, strict=True):
        assert index_of(learner, S) == pytest.approx(value, abs=slack)
        assert compared.get(S, value) == pytest.approx(value, abs=slack)
    assert not compared or set(compared) == set(sets)
    for uniform in (0.0, 0.37, 0.999):
        choice = engine.choose(now(learner, available, (uniform, 0.0, 0.0)))
        chosen = names_of(learner, choice)
        assert choice.value == pytest.approx(max(values), abs=slack)
        assert values[sets.index(chosen)] >= max(values) - slack


@pytest.mark.parametrize("case", [CASES[0], CASES[4], CASES[6]], ids=lambda case: case.name)
@relaxed(max_examples=40)
@given(games(most=6), seeds)
def test_the_choice_is_the_best_of_the_allowed_sets(case, game, seed):
    rng = np.random.default_rng(seed)
    learner = case.start(game)
    learner.update_many(data(rng, game, int(rng.choice([3, 8, 60]))))
    assert_best(case, game, learner)
    available = [name for name in game.graph.controllable if name in game.require or rng.random() < 0.6]
    assert_best(case, game, learner, available)


@relaxed(max_examples=15)
@given(games(most=6), seeds)
def test_the_choice_within_the_box_is_the_best_of_the_allowed_sets(game, seed):
    rng = np.random.default_rng(seed)
    learner = CASES[1].start(game)
    learner.update_many(data(rng, game, int(rng.choice([0, 8, 60]))))
    assert_best(CASES[1], game, learner, tolerance=1e-7)


@relaxed(max_examples=25)
@given(games(most=6), seeds)
def test_best_is_the_best_under_the_plain_estimate(game, seed):
    learner = CASES[0].start(game)
    learner.update_many(data(np.random.default_rng(seed), game, 20))
    beliefs = learner.engine.beliefs()
    theta = {name: beliefs.node(game.graph.index(name)).theta for name in game.graph.nodes}
    nothing = {name: np.zeros((len(t), len(t))) for name, t in theta.items()}
    value = {S: tr.closed_form_value(game.graph, theta, nothing, 0.0, tuple(S)) for S in game.maximal(game.relevant())}
    assert value[frozenset(learner.best().do)] == pytest.approx(max(value.values()), abs=1e-9)


SEARCHES = [
    *(case for case in CASES if "search" in case.name),
    Case("BGLMOFU search", lambda g: BGLMOFU(radius_scale=0.1, initial=3, kappa=0.1, oracle="greedy"), LOGISTIC),
]


@pytest.mark.parametrize("case", SEARCHES, ids=lambda case: case.name)
@relaxed(max_examples=25)
@given(games(most=8), seeds)
def test_a_search_reports_an_allowed_set_that_no_exchange_betters(case, game, seed):
    rng = np.random.default_rng(seed)
    learner = case.start(game)
    learner.update_many(data(rng, game, int(rng.choice([3, 30, 200]))))
    engine, graph = learner.engine, game.graph
    assert engine.searches
    assert engine.actions() is None
    limited = [name for name in graph.controllable if name in game.require or rng.random() < 0.6]
    for available in (None, tuple(limited), None):
        choice = engine.choose(now(learner, available, (rng.random(), 0.0, 0.0)))
        chosen = names_of(learner, choice)
        assert game.allows(chosen, available)
        assert not choice.proved
        slack = 1e-7 * max(1.0, abs(choice.value))
        assert index_of(learner, chosen) == pytest.approx(choice.value, abs=slack)
        for other in game.allowed(game.relevant(), available):
            if len(other) == len(chosen) and len(chosen - set(other)) == 1:
                assert index_of(learner, other) <= choice.value + slack


def test_a_choice_carries_its_own_certificate():
    """Not that of a list of variables used before, nor of the question which set is best without optimism."""
    game = Game(paper.G5.graph, budget=2)
    learner = CASES[2].start(game)
    learner.update_many(data(np.random.default_rng(1), game, 60))
    free = learner.engine.choose(now(learner))
    limited = learner.engine.choose(now(learner, ["X6"]))
    assert limited.value < free.value - 1e-3
    learner.best()
    assert learner.engine.choose(now(learner)) == free
    assert learner.engine.choose(now(learner, ["X6"])) == limited


# -- what can be set now --------------------------------------------------------------------------------------


@every_policy
@relaxed(max_examples=20)
@given(games(), seeds)
def test_available_is_as_if_all_else_were_forbidden(case, game, seed):
    rng = np.random.default_rng(seed)
    names = game.graph.controllable
    available = [name for name in names if name in game.require or rng.random() < 0.7]
    rows = data(rng, game, 12)
    learner = case.start(game, seed=7)
    learner.update_many(rows)
    if not isinstance(learner.engine, ArmsEngine):
        fresh = case.start(game.without(set(names) - set(available)), seed=7)
        fresh.update_many(rows)
        rng.shuffle(available)
        answer = learner.propose(available=available)
        assert answer == fresh.propose()
        assert game.allows(answer, available)
        assert learner.best(available).do == fresh.best().do
        return
    playable = [arm for arm in arms_of(learner) if arm <= set(available)]
    narrower = game.without(set(names) - set(available))
    if not playable and case.name in ("Fixed", "Oracle"):
        with pytest.raises(InterventionError, match="available"):
            learner.propose(available=available)
        return
    if not playable:  # smaller sets become arms
        playable = narrower.maximal(names)
    assert frozenset(learner.propose(available=available)) in playable
    assert frozenset(learner.best(available).do) in playable
    if case.name not in ("Fixed", "Oracle") and set(playable) == set(narrower.maximal(names)):
        fresh = case.start(narrower, seed=7)
        fresh.update_many(rows)
        assert learner.propose(available=available) == fresh.propose()


@every_policy
def test_the_arms_are_the_maximal_allowed_sets(case):
    if case.name not in ("UCB", "KL-UCB", "eps-greedy", "Random"):
        return
    game = Game(paper.G5.graph, None, {"X2": 0, "X3": 15, "X4": 7}, 25, ["X4"], ["X5"], [["X2", "X6"], ["X6", "X3"]])
    assert set(arms_of(case.start(game))) == set(game.maximal(game.graph.controllable))
    every = arms_of(case.start(game, effects="any"))
    assert set(every) == set(game.allowed(game.graph.controllable))
    assert len(every) == len(set(every))


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.name in ("UCB", "KL-UCB", "eps-greedy", "Random")], ids=lambda c: c.name
)
@pytest.mark.parametrize("effects", ["nonnegative", "any"])
def test_smaller_sets_are_arms_where_no_larger_one_can_be_played(case, effects):
    """A learner that is told the rounds anew knows of them too."""
    game = Game(paper.G4.graph, budget=3, exclusive=[["X2", "X3"]])
    learner, rows = case.start(game, effects=effects), []
    wanted = [{"X2"}, {"X3"}] if effects == "nonnegative" else [{"X2"}, {"X3"}, set()]
    for number in range(30):
        action = learner.propose(available=["X2", "X3"])
        assert set(action) in wanted
        rows.append((action, {"Y": int(action == {"X3": 1} or number % 3 == 0)}))
        learner.update(*rows[-1])
    again = case.start(game, effects=effects)
    again.update_many(rows)
    for names in wanted:
        seen = [values["Y"] for action, values in rows if set(action) == names]
        assert len(seen) > 0
        assert learner.predict(names).value == pytest.approx(np.mean(seen))
        assert again.predict(names) == learner.predict(names)
    assert learner.best(["X2", "X3"]).do == again.best(["X2", "X3"]).do == {"X3": 1}
    for available in (["X2", "X3"], ["X2"], None):
        assert again.propose(available=available) == learner.propose(available=available)
    if case.name == "UCB":
        compared = learner.engine.compare(now(learner, ["X2", "X3"]))
        assert [set(action.named(game.graph)) for action, _ in compared] == sorted(wanted, key=len)
        for action, value in compared:
            plays = sum(set(do) == set(action.named(game.graph)) for do, _ in rows)
            mean = learner.predict(action.named(game.graph)).value
            assert value == pytest.approx(mean + 0.5 * np.sqrt(np.log(31) / plays))


def test_smaller_sets_under_way_count_as_played():
    """X2 and X3 exclude each other, so that each is an arm where nothing else is available: workers try both."""
    game = Game(paper.G4.graph, budget=3, exclusive=[["X2", "X3"]])
    for seed in range(8):
        learner = UCB().start(game.graph, seed=seed, effects="nonnegative", **game.keywords)
        first = learner.propose(available=["X2", "X3"])
        second = learner.propose(available=["X2", "X3"], pending=[first])
        assert {*first, *second} == {"X2", "X3"}


@every_policy
def test_asking_with_available_changes_no_later_answer(case):
    game = Game(paper.G5.graph, budget=2, exclusive=[["X2", "X3"]])
    quiet, asked = (case.start(game, seed=3) for _ in range(2))
    rng = np.random.default_rng(5)
    names = game.graph.controllable
    lists = [S for k in range(len(names) + 1) for S in itertools.combinations(names, k)]
    assert len(lists) >= 16
    first = {}
    for _ in range(8):
        action = quiet.propose()
        for S in lists if asked.rounds in (0, 5) else lists[::7]:
            try:
                first[S] = asked.propose(available=S)
                asked.best(S)
            except InterventionError:
                assert case.name in ("Fixed", "Oracle")
                continue
            assert set(first[S]) <= set(S)
            assert asked.propose(available=list(S)[::-1]) == first[S]
        assert asked.propose() == action
        seen = a_round(rng, game.graph, action)
        for learner in (quiet, asked):
            learner.update(action, seen)


def test_more_lists_than_are_remembered():
    graph = CausalGraph([(f"X{i}", "Y") for i in range(7)], target="Y")
    learner = BLMLR(radius_scale=0.1).start(graph, 2)
    learner.update_many(data(np.random.default_rng(0), Game(graph, 2), 40))
    lists = list(itertools.combinations(graph.controllable, 4))
    assert len(lists) > 32
    answers = [learner.propose(available=S) for S in lists]
    assert [learner.propose(available=S) for S in lists] == answers
    assert [learner.propose(available=S) for S in lists[::-1]] == answers[::-1]


@every_policy
def test_nothing_available_is_nothing_proposed(case):
    learner = case.start(Game(paper.G4.graph, budget=2))
    learner.update_many(data(np.random.default_rng(0), Game(paper.G4.graph, budget=2), 8))
    if case.name in ("Fixed", "Oracle"):
        with pytest.raises(InterventionError, match="available"):
            learner.propose(available=[])
        assert case.start(Game(paper.G4.graph, budget=0)).propose(available=[]) == {}
    else:
        assert learner.propose(available=[]) == {}
        assert learner.best([]).do == {}


@every_policy
def test_what_is_required_must_be_available(case):
    learner = case.start(Game(paper.G4.graph, budget=2, require=["X3"]))
    for ask in (lambda names: learner.propose(available=names), learner.best):
        with pytest.raises(InterventionError, match="'X3' is required, but not available"):
            ask(["X2"])
        with pytest.raises(InterventionError, match="not available"):
            ask([])
    assert "X3" in learner.propose(available=learner.graph.controllable)


@every_policy
@pytest.mark.parametrize("names", [["X99"], ["Y"], ["X2", "nobody"], "X2", 5, ["fixed"]])
def test_only_controllable_variables_are_available(case, names):
    graph = CausalGraph(
        [("X2", "Y"), ("X3", "Y"), ("fixed", "Y")], target="Y", controllable=["X2", "X3"], nodes=["X2", "X3", "fixed"]
    )
    learner = case.start(Game(graph, budget=1))
    with pytest.raises(InterventionError):
        learner.propose(available=names)
    with pytest.raises(InterventionError):
        learner.best(names)


def test_hidden_variables_and_rules_go_together():
    graph = CausalGraph([("A", "U"), ("U", "Y"), ("B", "Y"), ("C", "Y")], target="Y", latent=["U"])
    game = Game(graph, budget=2, require=["A"], exclusive=[["A", "B"]])
    for policy in (BLMLR(), searched(oracle="greedy"), BGLMOFU(initial=2), UCB(), Random()):
        learner = policy.start(graph, effects="nonnegative", **game.keywords)
        for _ in range(4):
            action = learner.propose()
            assert set(action) in ({"A", "C"}, {"A"})
            learner.update(action, a_round(np.random.default_rng(0), learner.graph, action))
        assert set(learner.propose()) == {"A", "C"}


@pytest.mark.parametrize("case", [CASES[0], CASES[2]], ids=lambda case: case.name)
def test_too_many_ruled_sets_are_searched_or_refused(case):
    names = [f"X{i}" for i in range(24)]
    graph = CausalGraph([(name, "Y") for name in names], target="Y")
    game = Game(graph, budget=8, exclusive=[names[:3]])
    learner = case.start(game)
    assert game.allows(learner.propose())
    assert not learner.engine.choose(now(learner)).proved
    with pytest.raises(DobanditError, match="sets"):
        Case("", lambda g: dataclasses.replace(case.make(g), oracle="exhaustive")).start(game)
