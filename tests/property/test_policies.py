"""One suite for every policy: what it may propose, that it is reproducible, that it never breaks, what it refuses."""

from __future__ import annotations

import copy
import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dobandit as dob
from dobandit import (
    BGLMOFU,
    BLMLR,
    KLUCB,
    UCB,
    BinaryGLM,
    CausalGraph,
    EpsilonGreedy,
    Fixed,
    LinearModel,
    Oracle,
    Random,
    paper,
)
from dobandit.errors import GraphError, InterventionError, ModelError, ObservationError, PolicyError
from dobandit.model.links import exponential, logistic
from dobandit.policy.engine import Rounds, Situation
from worlds import ARCTAN, graphs, quietly, relaxed

LOGISTIC = logistic(1.5)


class Case:
    """A policy with the links it is started with. `make` gets the graph: Fixed and Oracle depend on it."""

    def __init__(self, name, make, links=None):
        self.name, self.make, self.links = name, make, links

    def start(self, graph, budget, horizon=1000, seed=0, **options):
        return self.make(graph, budget).start(graph, budget, horizon=horizon, seed=seed, links=self.links, **options)


def a_model(graph, links):
    """Any model on the graph."""
    sizes = np.diff(graph.arrays.parent_ptr)
    theta = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    return BinaryGLM(graph, theta, links=links)


CASES = [
    Case("BLMLR", lambda g, k: BLMLR(radius_scale=0.1)),
    Case("BLMLR boxed", lambda g, k: BLMLR(radius_scale=0.1, region="boxed")),
    Case("BLMLR search", lambda g, k: BLMLR(radius_scale=0.1, region="boxed", oracle="branch-and-bound")),
    Case("BLMLR lemma", lambda g, k: BLMLR(radius="lemma")),
    Case("BLMOFU after 5", lambda g, k: BGLMOFU(radius_scale=0.1, initial=5)),
    Case("BLMOFU lambda-min", lambda g, k: BGLMOFU(radius_scale=0.1)),
    Case("BLMOFU boxed", lambda g, k: BGLMOFU(radius_scale=0.1, initial=3, region="boxed")),
    Case("BGLMOFU logistic", lambda g, k: BGLMOFU(radius_scale=0.1, initial=4, kappa=0.1, samples=64), LOGISTIC),
    Case("BGLMOFU exponential", lambda g, k: BGLMOFU(radius_scale=0.1, initial=4, kappa=0.1, samples=64), exponential),
    Case("BGLMOFU custom", lambda g, k: BGLMOFU(radius_scale=0.1, initial=4, kappa=0.1, samples=64), ARCTAN),
    Case("UCB", lambda g, k: UCB(scale=0.5)),
    Case("KL-UCB", lambda g, k: KLUCB()),
    Case("eps-greedy", lambda g, k: EpsilonGreedy(0.2)),
    Case("Fixed", lambda g, k: Fixed(g.controllable[:k])),
    Case("Random", lambda g, k: Random()),
    Case("Oracle", lambda g, k: Oracle(a_model(g, None))),
]
every_policy = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
optimists = pytest.mark.parametrize("case", CASES[:10], ids=[case.name for case in CASES[:10]])


def arrays_of(state):
    """Every array of a state, in order."""
    if isinstance(state, np.ndarray):
        return [state]
    return [array for part in state for array in arrays_of(part)]


SCRATCH = {"row", "scratch", "work"}


def kept(state):
    """The arrays that count: not the scratch."""
    if isinstance(state, np.ndarray):
        return [state]
    return [array for name in state._fields if name not in SCRATCH for array in kept(getattr(state, name))]


def now(learner, context=None, draws=(0.37, 0.9, 0.5), **rest):
    """A situation; the second number lets epsilon-greedy compare."""
    return Situation(np.array(draws), learner.context(context), **rest)


def assert_same_bits(one, other):
    """Two learners that know the same, to the last bit, and say so too."""
    for left, right in zip(arrays_of(one.engine.state), arrays_of(other.engine.state), strict=True):
        np.testing.assert_array_equal(left, right)
    assert one.rounds == other.rounds
    graph = one.graph
    for names in itertools.chain.from_iterable(itertools.combinations(graph.controllable, k) for k in range(3)):
        assert repr(one.predict(names)) == repr(other.predict(names))


def assert_sound(learner, action, budget):
    """At most K controllable variables, each set to 1, and no NaN anywhere."""
    assert len(action) <= budget
    assert set(action) <= set(learner.graph.controllable)
    assert set(action.values()) <= {1}
    for array in kept(learner.engine.state):
        assert np.all(np.isfinite(array))
    if learner.keeps_model:
        assert np.all(np.isfinite([value for _, value in learner.engine.compared(now(learner))]))


def random_round(rng, graph, action, missing=0.0, never=()):
    """Values of a round: what was set is 1, `never` is 0, and some are not seen."""
    values = {name: int(rng.integers(2)) for name in graph.nodes} | dict.fromkeys(never, 0) | action
    return {name: value for name, value in values.items() if rng.random() >= missing}


def play(learner, rng, rounds, missing=0.0, never=(), always=None):
    """Propose, draw anything, update; returns the actions. `always` is set whatever is proposed."""
    actions = []
    for _ in range(rounds):
        action = learner.propose()
        assert_sound(learner, action, learner.problem.budget)
        done = dict(action) | (always or {})
        learner.update(done, random_round(rng, learner.graph, done, missing, never))
        actions.append(action)
    return actions


# -- what may be proposed -------------------------------------------------------------------------------------


@every_policy
@relaxed(max_examples=12)
@given(graphs(most=6), st.data())
def test_at_most_k_controllable_variables_and_never_nan(case, graph, data):
    some = data.draw(st.lists(st.sampled_from([n for n in graph.nodes if n != graph.target]), unique=True))
    relevant = [name for name in graph.controllable if name not in graph.irrelevant]
    keep = [n for n in graph.nodes if n in {*some, relevant[0]}]
    graph = quietly(CausalGraph, graph.edges, graph.target, controllable=keep, bias=graph.bias, nodes=graph.nodes)
    budget = data.draw(st.integers(0, len(keep)))
    learner = case.start(graph, budget)
    play(learner, np.random.default_rng(data.draw(st.integers(0, 999))), 25)


@every_policy
def test_full_budget_is_used_once_learning_has_begun(case):
    learner = case.start(paper.G5.graph, 2, effects="nonnegative")
    actions = play(learner, np.random.default_rng(0), 60)
    assert len(actions[-1]) == 2


# -- reproducible ---------------------------------------------------------------------------------------------


@every_policy
def test_the_same_seed_gives_the_same_choices_and_another_seed_others(case):
    def choices(seed):
        learner = case.start(paper.G1.graph, 3, seed=seed)
        return play(learner, np.random.default_rng(1), 40)

    assert choices(5) == choices(5)
    never_tied = ("BLMOFU after 5", "BLMOFU lambda-min", "BGLMOFU custom", "Fixed", "Oracle")
    if case.name not in never_tied:
        assert choices(5) != choices(6)


@every_policy
def test_asking_twice_gives_the_same_answer_and_changes_nothing(case):
    learner = case.start(paper.G4.graph, 2)
    play(learner, np.random.default_rng(2), 30)
    before = [array.copy() for array in kept(learner.engine.state)]
    first = learner.propose()
    learner.best()
    if learner.keeps_model:
        learner.interval(first)
        learner.estimate("Y")
    assert learner.propose() == first
    for array, now in zip(before, kept(learner.engine.state), strict=True):
        np.testing.assert_array_equal(array, now)


@every_policy
@pytest.mark.parametrize("horizon", [500, None])
def test_one_by_one_and_in_a_batch_are_the_same_to_the_bit(case, horizon):
    rng = np.random.default_rng(3)
    graph = paper.G5.graph
    with np.errstate(all="raise"):
        one, many = (quietly(case.start, graph, 2, horizon=horizon) for _ in range(2))
    rows = []
    for _ in range(80):
        chosen = rng.choice(graph.controllable, size=rng.integers(3), replace=False)
        action = {str(name): 1 for name in chosen}
        rows.append((action, random_round(rng, graph, action, missing=0.1)))
    for action, observation in rows:
        one.update(action, observation)
    many.update_many(rows[:30])
    many.update_many(rows[30:])
    assert_same_bits(one, many)
    assert one.propose() == many.propose()
    assert one.rounds == many.rounds == 80


@every_policy
def test_a_batch_with_an_error_is_not_taken_in_at_all(case):
    learner = case.start(paper.G4.graph, 2)
    good = ({}, {"Y": 1})
    with pytest.raises(ObservationError):
        learner.update_many([good, ({}, {"Y": 2})])
    assert learner.rounds == 0


@every_policy
def test_choices_do_not_depend_on_questions_in_between(case):
    quiet, asked = (case.start(paper.G4.graph, 2) for _ in range(2))
    rng = np.random.default_rng(4)
    for _ in range(40):
        action = quiet.propose()
        assert asked.propose() == action
        asked.best()
        seen = random_round(rng, quiet.graph, action)
        for learner in (quiet, asked):
            learner.update(action, seen)


# -- rows that happened often ---------------------------------------------------------------------------------


def counted_rows(rng, graph, count, continuous=False):
    """Rounds with any action, values not seen, and how often each happened."""
    shape = (count, len(graph) + 1)
    values = rng.random(shape) if continuous else rng.integers(0, 2, shape).astype(float)
    was_set = np.isin(np.arange(shape[1]), graph.arrays.controllable) & (rng.random(shape) < 0.2)
    values[was_set & (rng.random(shape) < 0.8)] = 1.0
    values[(rng.random(shape) < 0.1) & ~was_set] = np.nan
    values[:, 0] = 1.0
    return Rounds(values, was_set, rng.integers(1, 9, count))


def repeated(rounds):
    """The same rows without counts."""
    total = int(rounds.counts.sum())
    rows = np.repeat(np.arange(len(rounds.counts)), rounds.counts)
    return Rounds(rounds.values[rows], rounds.was_set[rows], np.ones(total, dtype=np.int64))


@every_policy
@pytest.mark.parametrize("seed", range(3))
def test_a_row_with_a_count_leaves_the_bits_of_the_repeated_rows(case, seed):
    graph, rng = paper.G5.graph, np.random.default_rng(seed)
    counted, one_by_one = (case.start(graph, 2) for _ in range(2))
    for rounds in (counted_rows(rng, graph, 25), counted_rows(rng, graph, 1), counted_rows(rng, graph, 40)):
        counted.engine.update(rounds)
        one_by_one.engine.update(repeated(rounds))
    assert_same_bits(counted, one_by_one)
    assert counted.propose() == one_by_one.propose()
    assert counted.best()[:2] == one_by_one.best()[:2]  # counts have no order, on which intervals may rest


@pytest.mark.parametrize("case", [*CASES[:7], *CASES[10:]], ids=lambda case: case.name)
def test_numbers_with_counts_leave_the_bits_of_the_repeated_rows(case):
    """Three times 0.1 is not 0.1 + 0.1 + 0.1."""
    graph, rng = paper.G4.graph, np.random.default_rng(0)
    counted, one_by_one = (case.start(graph, 1, continuous=True) for _ in range(2))
    rounds = counted_rows(rng, graph, 60, continuous=True)
    counted.engine.update(rounds)
    one_by_one.engine.update(repeated(rounds))
    assert_same_bits(counted, one_by_one)


@pytest.mark.parametrize("room", [1, 2, 256])
def test_counts_go_with_patterns_that_run_out_of_room(monkeypatch, room):
    """Room apart, which is not knowledge: repeated rows cannot know that they need no more of it."""
    monkeypatch.setattr("dobandit.estimation.estimators._FIRST_ROOM", room)
    graph, rng = parallel(9), np.random.default_rng(room)
    counted, one_by_one = (quietly(CASES[7].start, graph, 2, horizon=None) for _ in range(2))
    rounds = counted_rows(rng, graph, 1000)
    counted.engine.update(rounds)
    one_by_one.engine.update(repeated(rounds))
    assert counted.rounds == one_by_one.rounds == rounds.counts.sum()
    for v in range(1, len(graph) + 1):
        left, right = (learner.engine.beliefs().node(v) for learner in (counted, one_by_one))
        for part in ("theta", "gram", "inverse", "null"):
            np.testing.assert_array_equal(getattr(left, part), getattr(right, part))
        assert (left.rows, left.status, left.radius) == (right.rows, right.status, right.radius)
    used = [learner.engine.state.patterns.used for learner in (counted, one_by_one)]
    np.testing.assert_array_equal(*used)
    assert used[0].max() > 256
    assert counted.propose() == one_by_one.propose()


# -- what is compared -----------------------------------------------------------------------------------------


COMPARING = [case for case in CASES if case.name not in ("Fixed", "Random", "Oracle")]


@pytest.mark.parametrize("case", COMPARING, ids=lambda case: case.name)
@pytest.mark.parametrize("effects", ["nonnegative", None])
@relaxed(max_examples=15)
@given(graphs(most=6), st.data())
def test_the_largest_index_compared_is_that_of_the_choice(case, effects, graph, data):
    budget = data.draw(st.integers(0, len(graph.controllable)))
    learner = case.start(graph, budget, effects=effects)
    learner.engine.update(counted_rows(np.random.default_rng(data.draw(st.integers(0, 999))), graph, 12))
    draw = data.draw(st.sampled_from([0.0, 0.4, 0.999]))
    some = data.draw(st.sampled_from([None, graph.controllable[:-1]]))
    situation = now(learner, draws=(draw, 0.95, 0.0), available=learner.available(some))
    compared = learner.engine.compared(situation)
    choice = learner.engine.choose(situation)
    if case.name == "BLMOFU lambda-min" and not compared:
        assert choice.action.ids == ()  # still initialising
        assert np.isnan(choice.value)
        return
    values = dict(compared)
    assert len(values) >= 1
    largest = max(values.values())
    assert choice.value == largest or choice.value == pytest.approx(largest, rel=2e-9, abs=2e-9)  # ties
    assert values[choice.action] == choice.value
    actions = learner.engine.actions()
    if some is None and actions is not None:
        assert [action for action, _ in compared] == [actions.row(i) for i in range(len(actions.ids))]


@pytest.mark.parametrize("case", [c for c in CASES if c not in COMPARING], ids=lambda case: case.name)
def test_policies_that_compare_nothing_say_so(case):
    learner = case.start(paper.G4.graph, 2)
    assert list(learner.engine.compared(now(learner))) == []
    assert np.isnan(learner.engine.choose(now(learner)).value)


# -- effects that do harm -------------------------------------------------------------------------------------

HARM = BinaryGLM(
    CausalGraph([("good", "Y"), ("bad", "Y")], target="Y"),
    {"good": 0.5, "bad": 0.5, "Y": 0.4, ("good", "Y"): 0.3, ("bad", "Y"): -0.3},
)


@pytest.mark.parametrize("policy", [UCB(0.3), KLUCB(), EpsilonGreedy(0.1)], ids=["UCB", "KL-UCB", "eps-greedy"])
@pytest.mark.parametrize("seed", range(3))
def test_what_does_harm_is_left_alone(policy, seed):
    """P(Y) = .4 + .3 good - .3 bad: two may be set, but good alone is best."""
    learner, rng, actions = policy.start(HARM.graph, 2, seed=seed), np.random.default_rng(seed), []
    for _ in range(3000):
        actions.append(learner.propose())
        drawn = HARM.sample(actions[-1], 1, rng)
        learner.update(actions[-1], {name: int(values[0]) for name, values in drawn.items()})
    assert {tuple(action) for action in actions} == {(), ("good",), ("bad",), ("bad", "good")}
    assert actions[1000:].count({"good": 1}) > 0.6 * 2000
    assert learner.best().do == {"good": 1}
    assert learner.best().interval.low <= 0.55 <= learner.best().interval.high


def test_with_levers_harm_is_switched_off():
    learner, rng = UCB(0.3).start(HARM.graph, 2, levers={"bad": (0, 1)}), np.random.default_rng(1)
    for _ in range(4000):
        action = learner.propose()
        drawn = HARM.sample(action, 1, rng)
        learner.update(action, {name: int(values[0]) for name, values in drawn.items()})
    assert learner.best().do == {"bad": 0, "good": 1}


@pytest.mark.parametrize("policy", [BLMLR(), BGLMOFU(initial=3)], ids=["BLM-LR", "BLM-OFU"])
def test_the_papers_policies_take_for_granted_that_nothing_does_harm(policy):
    assert policy.effects == "nonnegative"
    assert policy.start(HARM.graph, 2).problem.effects == "nonnegative"
    with pytest.raises(PolicyError, match="clipped=True"):
        policy.start(HARM.graph, 2, effects="any")
    clipped = dataclasses.replace(policy, clipped=True).start(HARM.graph, 2, effects="any")
    for _ in range(4):
        clipped.update(clipped.propose(), {"Y": 1})
    assert clipped.propose() == {"bad": 1, "good": 1}
    for other in (UCB(), KLUCB(), EpsilonGreedy(), Random(), Fixed(["good"])):
        assert other.start(HARM.graph, 2).problem.effects == "any"
    with pytest.raises(PolicyError, match="'nonnegative'"):
        policy.start(HARM.graph, 2, effects="positive")


# -- what is known before acting ------------------------------------------------------------------------------


@st.composite
def graphs_with_context(draw, most=6):
    """Roots and what only they cause may be context."""
    graph = draw(graphs(most=most))
    context, rng = [], np.random.default_rng(draw(st.integers(0, 999)))
    for name in graph.nodes:
        if name != graph.target and all(parent in context for parent in graph.parents(name)) and rng.random() < 0.6:
            context.append(name)
    free = [name for name in graph.controllable if name not in context]
    relevant = [name for name in free if graph.target in graph.descendants(name)]
    if not relevant:
        context, free = [], graph.controllable
    return quietly(CausalGraph, graph.edges, graph.target, (), free, graph.bias, graph.nodes, context=context)


@relaxed(max_examples=60)
@given(graphs_with_context(), st.data())
def test_blm_lr_in_a_context_is_the_recursion_where_known_means_are_what_they_are(graph, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 9999)))
    budget = data.draw(st.integers(0, min(3, len(graph.controllable))))
    zeros = [name for name in graph.controllable if rng.random() < 0.4]
    learner = BLMLR(radius_scale=0.3).start(graph, budget, horizon=500, levers=dict.fromkeys(zeros, (0, 1)))
    learner.engine.update(counted_rows(rng, graph, int(rng.integers(0, 30))))
    beliefs = learner.engine.beliefs()

    def optimistic(given):
        means = {}
        for name in graph.nodes:
            node = beliefs.node(graph.index(name))
            row = np.array([means[graph.nodes[p - 1]] if p else 1.0 for p in node.parents])
            spread = np.sqrt(max(row @ np.linalg.inv(node.gram) @ row, 0.0)) if len(row) else 0.0
            mean = row @ node.theta + node.radius * spread
            if zeros and name != graph.target:  # otherwise no set would beat a variable that is left alone
                mean = min(mean, 1.0)
            means[name] = given.get(name, mean)
        return float(means[graph.target])

    relevant = [name for name in graph.controllable if graph.target in graph.descendants(name)]
    choices = [
        dict(zip(names, values, strict=True))
        for k in range(min(budget, len(relevant)) + 1)
        for names in itertools.combinations(relevant, k)
        for values in itertools.product(*((0, 1) if name in zeros else (1,) for name in names))
    ]
    if not zeros:  # nothing does harm, and everything is set to 1: the largest sets
        choices = [do for do in choices if len(do) == min(budget, len(relevant))]
    for _ in range(3):
        context = {name: int(rng.integers(2)) for name in graph.context}
        truth = {tuple(do.items()): optimistic({**context, **do}) for do in choices}
        found = {tuple(a.named(graph).items()): v for a, v in learner.engine.compared(now(learner, context))}
        assert found.keys() == truth.keys()
        for key, value in found.items():
            assert value == pytest.approx(truth[key], rel=1e-8, abs=1e-8)
        chosen = learner.propose(context=context)
        assert truth[tuple(chosen.items())] >= max(truth.values()) - 1e-8 * max(1.0, abs(max(truth.values())))


@every_policy
def test_a_context_has_to_be_given_whole(case):
    graph = CausalGraph([("day", "a"), ("a", "Y"), ("b", "Y")], target="Y", context=["day"])
    learner = case.start(graph, 1)
    with pytest.raises(ObservationError, match="'day' is missing"):
        learner.propose()
    with pytest.raises(ObservationError, match="'a' is none"):
        learner.propose(context={"day": 1, "a": 1})
    with pytest.raises(ObservationError, match="0 or 1"):
        learner.propose(context={"day": 2})
    for day in (0, 1):
        assert set(learner.propose(context={"day": day})) <= {"a", "b"}
        assert set(learner.best(context={"day": day}).do) <= {"a", "b"}
    with pytest.raises(InterventionError):
        learner.propose(context={"day": 1}, available=["day"])


# -- never breaks ---------------------------------------------------------------------------------------------


def parallel(parents: int, **options):
    return CausalGraph([(f"P{i}", "Y") for i in range(parents)], target="Y", **options)


SITUATIONS = {
    "a parent that is never 1": (paper.G4.graph, 2, {"never": ["X2"]}),
    "nothing is ever 1": (paper.G4.graph, 2, {"never": ["X2", "X3", "X4", "X5", "Y"]}),
    "a node always intervened on": (paper.G5.graph, 2, {"always": {"X4": 1}}),
    "a node always set to 0": (paper.G5.graph, 1, {"always": {"X6": 0}}),
    "K = all": (paper.G4.graph, 4, {}),
    "K = 0": (paper.G4.graph, 0, {}),
    "one parent": (parallel(1), 1, {}),
    "one parent, no bias": (parallel(1, bias=[]), 1, {}),
    "missing values": (paper.G5.graph, 2, {"missing": 0.4}),
    "nothing is ever seen": (paper.G5.graph, 2, {"missing": 1.0}),
    "no parents and no bias": (CausalGraph([("a", "b"), ("b", "Y")], target="Y", bias=["b", "Y"]), 1, {}),
    "a chain": (CausalGraph([("a", "b"), ("b", "c"), ("c", "Y")], target="Y"), 2, {"missing": 0.1}),
}


@every_policy
@pytest.mark.parametrize("situation", SITUATIONS)
def test_no_situation_breaks_it(case, situation):
    graph, budget, options = SITUATIONS[situation]
    learner = case.start(graph, budget)
    always = options.get("always", {})
    if case.name in ("Fixed", "Oracle") and 0 in always.values():
        always = {}
    for _ in range(60):
        action = learner.propose()
        assert_sound(learner, action, budget)
        done = {name: value for name, value in action.items() if name not in always} | always
        rng = np.random.default_rng(learner.rounds)
        seen = random_round(rng, graph, done, options.get("missing", 0.0), options.get("never", ()))
        seen.update({name: value for name, value in done.items() if name in seen})
        learner.update(done, seen)
    best = learner.best()
    assert set(best.do) <= set(graph.controllable)
    if learner.keeps_model:
        assert 0.0 <= best.interval.low <= best.interval.high <= 1.0
        assert best.interval.low - 1e-9 <= best.value <= best.interval.high + 1e-9
        for name in graph.nodes:
            estimate = learner.estimate(name)
            for weight in [*estimate.parents.values(), *([estimate.bias] if estimate.bias else [])]:
                assert not np.isnan([weight.value, weight.low, weight.high]).any()
                assert weight.low <= weight.high


@every_policy
def test_twenty_parents_do_not_break_it(case):
    graph = parallel(20)
    learner = case.start(graph, 2, horizon=200, effects="nonnegative")
    play(learner, np.random.default_rng(5), 12)
    assert len(learner.best().do) == 2


@every_policy
def test_it_runs_without_a_horizon_and_beyond_it(case):
    for horizon in (None, 10):
        learner = case.start(paper.G4.graph, 2, horizon=horizon)
        play(learner, np.random.default_rng(6), 40)
        assert learner.rounds == 40


@pytest.mark.parametrize("case", CASES[7:10], ids=[case.name for case in CASES[7:10]])
def test_a_table_of_patterns_that_runs_out_grows(case):
    graph = parallel(12)
    grows, roomy = (case.start(graph, 1, horizon=horizon) for horizon in (5, 5000))
    rng = np.random.default_rng(7)
    for _ in range(600):
        seen = random_round(rng, graph, {})
        for learner in (grows, roomy):
            learner.update({}, seen)
    assert grows.engine.state.patterns.used.max() > 500
    np.testing.assert_allclose(grows.engine.beliefs().theta, roomy.engine.beliefs().theta, atol=1e-9)


@optimists
def test_data_on_foreign_interventions_are_welcome(case):
    """Sets to 0, sets larger than K, and settings of uncontrollable variables say something about the other nodes."""
    graph = CausalGraph([("a", "b"), ("b", "Y"), ("c", "Y")], target="Y", controllable=["a", "c"])
    learner = case.start(graph, 1)
    learner.update({"a": 0, "c": 1}, {"b": 1, "Y": 0})
    learner.update({"b": 1}, {"a": 0, "c": 1, "Y": 1})
    assert learner.estimate("b").rows == 1
    assert learner.estimate("a").rows == 1
    assert learner.estimate("Y").rows == 2
    assert_sound(learner, learner.propose(), 1)


@pytest.mark.parametrize("case", CASES[:7], ids=[case.name for case in CASES[:7]])
def test_continuous_observations_are_welcome_on_linear_models(case):
    model = LinearModel.of_weights({"a": 0.5, "b": 0.3, ("a", "b"): 0.4, ("a", "Y"): 0.3, ("b", "Y"): 0.6}, target="Y")
    learner = case.start(model.graph, 1, continuous=True)
    rng = np.random.default_rng(8)
    for _ in range(50):
        action = learner.propose()
        assert_sound(learner, action, 1)
        drawn = model.sample(action, 1, rng)
        learner.update(action, {name: float(values[0]) for name, values in drawn.items()})
    assert learner.estimate("Y").parents["a"].low <= 0.3 <= learner.estimate("Y").parents["a"].high


@pytest.mark.parametrize("case", CASES[:7], ids=[case.name for case in CASES[:7]])
def test_hidden_variables_are_removed_first(case):
    model = BinaryGLM.blm(
        {
            "U": 0.5,
            ("U", "a"): 0.4,
            ("U", "c"): 0.5,
            "a": 0.1,
            "b": 0.2,
            ("a", "b"): 0.5,
            ("b", "Y"): 0.5,
            ("c", "Y"): 0.4,
        },
        target="Y",
        latent=["U"],
    )
    learner = case.start(model.graph, 1)
    assert "U" not in learner.graph
    with pytest.raises(ObservationError, match="'U' is none"):
        learner.update({}, {"U": 1})
    rng = np.random.default_rng(9)
    for _ in range(30):
        action = learner.propose()
        assert_sound(learner, action, 1)
        learner.update(action, {name: int(values[0]) for name, values in model.sample(action, 1, rng).items()})


def test_policies_are_values():
    assert BLMLR(0.1) == BLMLR(radius_scale=0.1) != BLMLR(0.2)
    assert len({BLMLR(0.1), BLMLR(0.1), UCB(), UCB(1.0), Random(), Fixed(["a"]), Fixed(("a",))}) == 4
    with pytest.raises(AttributeError):
        BLMLR().radius_scale = 2.0
    assert copy.deepcopy(BGLMOFU(initial=7)) == BGLMOFU(initial=7)


def test_labels_follow_the_paper():
    learner = BGLMOFU(initial=1).start(paper.G1.graph, 3)
    assert learner.label == "BLM-OFU"
    assert BGLMOFU(initial=1, kappa=0.1).start(paper.G1.graph, 3, links=LOGISTIC).label == "BGLM-OFU"
    policies = (BLMLR(), UCB(), UCB(0.1), KLUCB(), KLUCB(3), EpsilonGreedy(0.01), Random(), Fixed(["X2"]))
    labels = [policy.label for policy in policies]
    assert labels == ["BLM-LR", "UCB", "UCB (0.1)", "KL-UCB", "KL-UCB (3)", "eps-greedy (0.01)", "Random", "Fixed {X2}"]


# -- refusals -------------------------------------------------------------------------------------------------


@every_policy
@pytest.mark.parametrize(
    ("action", "observation", "error", "words"),
    [
        ({}, {"X99": 1}, ObservationError, "'X99' is none"),
        ({"X99": 1}, {}, InterventionError, "'X99' is none"),
        ({"X2": 1}, {"X2": 0}, ObservationError, "was set to 1"),
        ({}, {"Y": 2}, ObservationError, "0 or 1"),
        ({}, {"Y": 0.5}, ObservationError, "0 or 1"),
        ({}, {"Y": "1"}, ObservationError, "0 or 1"),
        ({}, {"Y": float("inf")}, ObservationError, "0 or 1"),
        ({"X2": 0.5}, {}, InterventionError, "0 or 1"),
        ("X2", {}, InterventionError, "list of names"),
    ],
)
def test_a_wrong_round_is_refused_and_not_taken_in(case, action, observation, error, words):
    learner = case.start(paper.G4.graph, 2)
    with pytest.raises(error, match=words):
        learner.update(action, observation)
    assert learner.rounds == 0
    assert not any(array.any() for array in kept(learner.engine.state)[-1:])


@every_policy
@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan"), np.float32("nan")])
def test_none_and_nan_are_values_not_seen(case, missing):
    with_it, without = (case.start(paper.G4.graph, 2) for _ in range(2))
    with_it.update({}, {"X2": 1, "X3": missing, "Y": 1})
    without.update({}, {"X2": 1, "Y": 1})
    assert_same_bits(with_it, without)


@every_policy
@pytest.mark.parametrize("budget", [-1, 5, 1.5, True, "2", None])
def test_a_budget_out_of_range_is_refused(case, budget):
    rule = "needs a budget or a total cost" if budget is None else "from 0 to 4"
    with pytest.raises(InterventionError, match=rule):
        case.make(paper.G4.graph, 1).start(paper.G4.graph, budget, links=case.links)


@every_policy
@pytest.mark.parametrize(
    ("options", "words"), [({"horizon": 0}, "horizon"), ({"horizon": 1.5}, "horizon"), ({"seed": -1}, "seed")]
)
def test_a_wrong_horizon_or_seed_is_refused(case, options, words):
    with pytest.raises(PolicyError, match=words):
        case.start(paper.G4.graph, 2, **options)


INADMISSIBLE = CausalGraph([("U", "a"), ("U", "b"), ("a", "b"), ("b", "Y")], target="Y", latent=["U"])


@every_policy
def test_an_inadmissible_graph_is_refused_with_its_witness(case):
    if case.links is not None:
        return
    policy = Oracle(paper.G4) if case.name == "Oracle" else case.make(INADMISSIBLE, 1)
    if policy.any_graph:
        assert policy.name == "oracle" or policy.start(INADMISSIBLE, 1).propose().keys() <= {"a", "b"}
        return
    with pytest.raises(GraphError, match=r"(?s)'U'.*'a'.*'b'.*always_set=\['a'\].*policy='ucb'"):
        policy.start(INADMISSIBLE, 1)


@pytest.mark.parametrize("policy", [BGLMOFU(initial=3), dob.CausalUCB()])
def test_hidden_variables_that_are_shared_are_refused_with_another_link(policy):
    graph = CausalGraph([("U", "a"), ("U", "c"), ("a", "Y"), ("c", "Y")], target="Y", latent=["U"])
    with pytest.raises(ModelError, match="linear models only"):
        policy.start(graph, 1, links=LOGISTIC)
    with pytest.raises(ModelError, match="'Y' has the"):
        policy.start(graph, 1, links={"Y": "exponential"})


@pytest.mark.parametrize("policy", [BGLMOFU(initial=3), UCB()])
def test_continuous_variables_with_another_link_are_refused(policy):
    with pytest.raises(ModelError, match="continuous"):
        policy.start(paper.G4.graph, 1, links=LOGISTIC, continuous=True)


def test_blm_lr_is_for_linear_models():
    with pytest.raises(PolicyError, match="BGLMOFU"):
        BLMLR().start(paper.G4.graph, 2, links={"Y": LOGISTIC})


def test_an_initialisation_that_cannot_end_is_refused():
    with pytest.raises(PolicyError, match=r"lambda_min >= .* horizon is 500.*lambda_scale"):
        BGLMOFU().start(paper.G4.graph, 2, horizon=500, links=LOGISTIC)
    with pytest.warns(dob.errors.DobanditWarning, match="nothing will be set"):
        BGLMOFU().start(paper.G4.graph, 2, links=LOGISTIC)
    learner = BGLMOFU(lambda_scale=1e-9).start(paper.G4.graph, 2, horizon=500, links=LOGISTIC)
    assert learner.propose() == {}


def test_a_flat_link_needs_a_kappa():
    with pytest.raises(PolicyError, match="kappa"):
        BGLMOFU(initial=3).start(paper.G4.graph, 2, links=ARCTAN)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BLMLR(radius_scale=-1), "radius_scale"),
        (lambda: BLMLR(radius_scale=float("nan")), "radius_scale"),
        (lambda: BLMLR(radius_scale="1"), "radius_scale"),
        (lambda: BLMLR(region="box"), "Did you mean 'boxed'"),
        (lambda: BLMLR(radius="papr"), "Did you mean 'paper'"),
        (lambda: BGLMOFU(initial=-1), "initial"),
        (lambda: BGLMOFU(initial=True), "initial"),
        (lambda: BGLMOFU(initial="lambda"), "lambda-min"),
        (lambda: BGLMOFU(initial="formula"), "zeta"),
        (lambda: BGLMOFU(kappa=0.0), "kappa"),
        (lambda: BGLMOFU(samples=0), "samples"),
        (lambda: UCB(scale=-0.1), "scale"),
        (lambda: KLUCB(c=-1), "c must be"),
        (lambda: EpsilonGreedy(1.5), "epsilon"),
        (lambda: EpsilonGreedy(True), "epsilon"),
        (lambda: Fixed("X2"), "list of names"),
    ],
)
def test_wrong_settings_are_refused(make, words):
    with pytest.raises(PolicyError, match=words):
        make()


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, float("nan"), True])
@pytest.mark.parametrize("policy", [BLMLR, BGLMOFU])
def test_a_delta_that_is_no_probability_is_refused(policy, delta):
    with pytest.raises(ModelError, match="delta"):
        policy(delta=delta)


@pytest.mark.parametrize(
    ("names", "words"), [(["Y"], "'Y' is none"), (["X2", "X2"], "different"), (["X2", "X3", "X4"], "at most 2")]
)
def test_a_fixed_set_that_cannot_be_played_is_refused(names, words):
    with pytest.raises(InterventionError, match=words):
        Fixed(names).start(paper.G4.graph, 2)


def test_baselines_keep_no_model():
    learner = UCB().start(paper.G4.graph, 2)
    with pytest.raises(PolicyError, match="keeps no model"):
        learner.estimate("Y")
    assert not learner.keeps_model
    assert learner.predict({"X2": 1}) == (0.5, 0.0, 1.0)  # never tried: nothing is known


# -- when the initialisation ends -----------------------------------------------------------------------------


def test_the_formula_needs_as_many_rounds_as_it_says():
    learner = BGLMOFU(initial="formula", zeta=0.5).start(paper.G4.graph, 2, horizon=100)
    n, rounds = 6, learner.engine.plan.index.initial
    assert rounds == (8 * n**2 - 16 * n + 2) / 0.5
    assert learner.propose() == {}


def test_lambda_min_ends_it_when_every_node_has_seen_enough():
    learner = BGLMOFU().start(parallel(2), 1, horizon=100)
    for values in itertools.product((0, 1), repeat=2):
        assert learner.propose() == {}
        learner.update({}, dict(zip(("P0", "P1"), values, strict=True)) | {"Y": 1})
    rows = np.array([[1, *values] for values in itertools.product((0, 1), repeat=2)], dtype=float)
    done = np.linalg.eigvalsh(rows.T @ rows)[0] >= 1.0
    assert bool(learner.propose()) == done
    for values in [(0, 0), (0, 1), (1, 0)] * 3:
        learner.update({}, dict(zip(("P0", "P1"), values, strict=True)) | {"Y": 1})
    assert len(learner.propose()) == 1
