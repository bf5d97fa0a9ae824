"""Rounds that are under way when others are asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

import transcription as tr
from dobandit import BGLMOFU, BLMLR, UCB, CausalGraph, paper
from dobandit.errors import InterventionError
from dobandit.oracle.actions import Action
from dobandit.policy.arms import ArmsEngine
from dobandit.policy.beliefs import Beliefs
from dobandit.policy.engine import Pending, Rounds, Situation, no_context
from helpers.indices import index_of
from helpers.under_way import (
    LINEAR,
    LOGISTIC,
    MODEL_FREE,
    NAN,
    OPTIMISTS,
    arrays_of,
    assert_same_bits,
    every_policy,
    rounds_of,
    seeds,
    started,
)
from helpers.worlds import graphs, relaxed

optimists = pytest.mark.parametrize("name", OPTIMISTS)


def setting(ids):
    """The action that sets these ids to 1."""
    return Action(tuple(ids), (1.0,) * len(ids))


def as_pending(graph, pending):
    return tuple(Pending(setting(ids), no_context(len(graph))) for ids in pending)


def now(graph, pending=(), draws=(0.0, 0.0, 0.0)):
    """A situation in which these sets are under way."""
    return Situation(np.array(draws), no_context(len(graph)), None, as_pending(graph, pending))


# -- rounds under way -----------------------------------------------------------------------------------------


def expected_grams(engine, pending, link=None, varies=True):
    """M of every node with e e^T + diag(e (1 - e)) of its parents' means for each pending set."""
    nodes, beliefs = len(engine.problem.graph) + 1, engine.beliefs()
    grams = {v: beliefs.node(v).gram.copy() for v in range(1, nodes)}
    for ids in pending:
        means = np.ones(nodes)
        for v in range(1, nodes):
            parents = beliefs.node(v).parents
            x = float(beliefs.node(v).theta @ means[parents])
            means[v] = 1.0 if v in ids else np.clip(x if link is None else link.value(x), 0.0, 1.0)
            if v not in ids:
                e = means[parents]
                spread = np.array([0.0 if p == 0 else means[p] * (1.0 - means[p]) for p in parents])
                grams[v] = grams[v] + np.outer(e, e) + (np.diag(spread) if varies else 0.0)
    return grams


def state_with(engine, pending):
    """The state with what is under way, of a model or of arms."""
    if isinstance(engine, ArmsEngine):
        return engine.playable(now(engine.problem.graph)._replace(pending=pending))[1:]
    return engine.state_with_pending(pending)


def expecting(engine, pending):
    """What the engine would know with the expected news of these sets."""
    return beliefs_in(engine, state_with(engine, as_pending(engine.problem.graph, pending)))


def beliefs_in(engine, state):
    return Beliefs(engine.estimator, engine.layout, state, engine.optimism, engine.believed.links)


def assert_expected(engine, pending, link=None, varies=True):
    before = [array.copy() for array in arrays_of(engine.state)]
    expected = expecting(engine, pending)
    assert_same_bits(before, arrays_of(engine.state))
    np.testing.assert_allclose(expected.theta, engine.beliefs().theta, rtol=1e-9, atol=1e-9)
    for v, gram in expected_grams(engine, pending, link, varies).items():
        node = expected.node(v)
        np.testing.assert_allclose(node.gram, gram, rtol=1e-9, atol=1e-9)
        # The inverse and the directions never seen follow.
        inverse, null = node.inverse, node.null
        scale = max(1.0, np.abs(inverse).max(initial=0.0))
        np.testing.assert_allclose(
            gram @ inverse @ gram, gram, atol=1e-9 * scale * max(1.0, np.abs(gram).max(initial=0.0))
        )
        rows = gram - engine.estimator.ridge * np.eye(len(gram))  # a prior has shown nothing
        np.testing.assert_allclose(rows @ null, 0.0, atol=1e-7 * max(1.0, np.abs(gram).max(initial=0.0)))
    state = state_with(engine, as_pending(engine.problem.graph, pending))
    assert state.clock[0] == engine.rounds + len(pending)
    assert_same_bits(before, arrays_of(engine.state))


def sets_under_way(rng, graph, count):
    names = graph.controllable
    return [sorted(graph.index(n) for n in names if rng.random() < 0.4) for _ in range(count)]


@optimists
@relaxed(max_examples=25)
@given(graphs(most=6), seeds)
def test_pending_sets_add_their_expected_news_and_leave_the_estimate(name, graph, seed):
    rng = np.random.default_rng(seed)
    engine = started(name, graph, 1).engine
    engine.update(rounds_of(rng, graph, int(rng.choice([0, 2, 5, 40])), missing=0.1, likely=rng.random()))
    assert_expected(engine, sets_under_way(rng, graph, int(rng.integers(1, 6))), None if name in LINEAR else LOGISTIC)


@pytest.mark.parametrize("name", ["BLMLR", "BLMOFU"])
@relaxed(max_examples=20)
@given(graphs(most=5), seeds)
def test_continuous_parents_count_as_fixed_at_their_means(name, graph, seed):
    rng = np.random.default_rng(seed)
    engine = started(name, graph, 1, continuous=True).engine
    engine.update(rounds_of(rng, graph, 12, continuous=True))
    assert_expected(engine, sets_under_way(rng, graph, 3), varies=False)


@optimists
@pytest.mark.parametrize("context", [0.0, 1.0])
def test_what_is_known_and_set_to_0_counts_in_what_is_expected(name, context):
    """A round under way with do(A = 0) in a context: parents at these values, the others at their means."""
    edges = [("day", "A"), ("day", "B"), ("A", "C"), ("B", "C"), ("C", "Y"), ("B", "Y"), ("day", "Y")]
    graph = CausalGraph(edges, target="Y", context=["day"])
    engine = started(name, graph, 1).engine
    engine.update(rounds_of(np.random.default_rng(3), graph, 30))
    known = no_context(len(graph))
    known[graph.index("day")] = context
    one = Pending(Action((graph.index("A"),), (0.0,)), known)
    link, before = (None if name in LINEAR else LOGISTIC), engine.beliefs()
    means, state = {"day": context, "A": 0.0}, state_with(engine, (one,))
    now_known = beliefs_in(engine, state)
    for node in graph.nodes:
        belief = before.node(graph.index(node))
        e = np.array([1.0] * graph.has_bias(node) + [means[parent] for parent in graph.parents(node)])
        x = float(e @ belief.theta)
        means.setdefault(node, float(np.clip(x if link is None else link.value(x), 0.0, 1.0)))
        news = np.outer(e, e) + np.diag(e * (1.0 - e)) if node != "A" else 0.0
        np.testing.assert_allclose(now_known.node(graph.index(node)).gram, belief.gram + news, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(now_known.theta, before.theta, rtol=1e-9, atol=1e-9)


@every_policy
def test_a_pending_batch_is_as_many_pending_rounds(name):
    graph = paper.G5.graph
    engine, other = (started(name, graph, 2).engine for _ in range(2))
    for each in (engine, other):
        each.update(rounds_of(np.random.default_rng(2), graph, 20))
    actions = [setting(sorted(map(graph.index, names))) for names in (("X2", "X3"), ("X4", "X6"))]
    batch = tuple(Pending(action, no_context(len(graph)), 3) for action in actions)
    single = tuple(Pending(action, no_context(len(graph))) for action in actions for _ in range(3))
    assert_same_bits(arrays_of(state_with(engine, batch)), arrays_of(state_with(other, single)))
    left, right = engine.choose(now(graph)._replace(pending=batch)), other.choose(now(graph)._replace(pending=single))
    assert repr(left) == repr(right)  # an index may be NaN


def test_rounding_is_no_news():
    """X was 1 in every round: its estimate is 1 but for rounding, and the data cannot tell it from the constant.
    Neither can a round under way: what it adds to that direction is 0, not 1e-16."""
    graph = CausalGraph([("X", "Y"), ("Z", "Y")], target="Y")
    rounding = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        engine = BGLMOFU(radius_scale=0.1, initial=1).start(graph, 1, horizon=100).engine
        rounds = rounds_of(rng, graph, int(rng.integers(3, 60)))
        rounds.was_set[:], rounds.values[:, graph.index("X")] = False, 1.0
        engine.update(rounds)
        x, y = graph.index("X"), graph.index("Y")
        rounding += engine.beliefs().node(x).theta[0] != 1.0
        alone = index_of(engine, setting([x]), now(graph))
        for ids in ([], [graph.index("Z")]):
            expected = expecting(engine, [ids])
            assert np.abs(expected.node(y).inverse).max() < 1e3
            np.testing.assert_allclose(expected.theta, engine.beliefs().theta, rtol=1e-9, atol=1e-9)
            assert index_of(engine, setting([x]), now(graph, [ids])) <= alone + 0.1
    assert rounding > 3


@every_policy
@relaxed(max_examples=12)
@given(graphs(most=6), seeds)
def test_asking_with_pending_sets_changes_nothing(name, graph, seed):
    rng = np.random.default_rng(seed)
    learner = started(name, graph, 1)
    learner.engine.update(rounds_of(rng, graph, 8))
    before, answer = [array.copy() for array in arrays_of(learner.engine.state)], learner.propose()
    under_way = [[graph.nodes[i - 1] for i in ids] for ids in sets_under_way(rng, graph, 4)]
    asked = learner.propose(pending=under_way)
    assert learner.propose(pending=[dict.fromkeys(names, 1) for names in under_way]) == asked
    assert_same_bits(before, arrays_of(learner.engine.state))
    assert learner.propose() == answer
    assert learner.propose(pending=[]) == answer
    assert learner.rounds == 8


SYMMETRIC = CausalGraph([(f"X{i}", "Y") for i in range(6)], target="Y")


@every_policy
@pytest.mark.parametrize("seed", range(3))
def test_workers_in_parallel_try_different_sets(name, seed):
    learner = started(name, SYMMETRIC, 2, seed=seed)
    if "OFU" in name:
        nothing = {f"X{i}": 0 for i in range(6)} | {"Y": 0}
        learner.update_many([({}, nothing)] * 2)
    under_way = []
    for _ in range(8):
        under_way.append(learner.propose(pending=under_way))
    assert len({frozenset(action) for action in under_way}) > 1
    if name in ("BLMLR", "BLMLR boxed", "UCB"):  # what was asked lately is known best: the other causes come first
        assert len({frozenset(action) for action in under_way[:3]}) == 3


@pytest.mark.parametrize("scale", [0.01, 1.0])
@pytest.mark.parametrize("policy", [BLMLR, BGLMOFU])
@pytest.mark.parametrize("region", ["closed-form", "boxed"])
def test_workers_in_parallel_try_different_sets_whatever_the_radius(policy, region, scale):
    initial = {"initial": 7} if policy is BGLMOFU else {}
    learner = policy(radius_scale=scale, region=region, **initial).start(SYMMETRIC, 2, horizon=1000)
    if policy is BGLMOFU:  # each cause was seen once, alone
        never = dict.fromkeys(SYMMETRIC.nodes, 0)
        learner.update_many([({}, never), *(({}, {**never, f"X{i}": 1}) for i in range(6))])
    under_way = []
    for _ in range(8):
        under_way.append(learner.propose(pending=under_way))
    assert len({frozenset(action) for action in under_way}) > 1


@pytest.mark.parametrize("links", [None, LOGISTIC], ids=["linear", "logistic"])
def test_pending_rounds_pass_the_initialisation(links):
    policy = BGLMOFU(radius_scale=0.1, initial=5, kappa=0.1)
    learner = policy.start(paper.G5.graph, 2, horizon=1000, links=links)
    under_way = []
    for number in range(7):
        action = learner.propose(pending=under_way)
        assert bool(action) == (number >= 5)
        under_way.append(action)
    learner.update({}, dict.fromkeys(learner.graph.nodes, 0))
    assert learner.propose(pending=under_way[:3]) == {}
    assert learner.propose(pending=under_way[:4]) != {}
    assert learner.propose() == {}


def test_pending_rounds_count_towards_the_smallest_eigenvalue():
    graph = CausalGraph([("A", "Y"), ("B", "Y")], target="Y")
    learner = BGLMOFU(radius_scale=0.1).start(graph, 1, horizon=1000)
    rng = np.random.default_rng(0)
    ahead = [30]  # rounds under way that would end the initialisation
    while learner.engine.state.clock[1] == 0:
        values = rng.integers(0, 2, 3)
        learner.update({}, dict(zip(("A", "B", "Y"), values.tolist(), strict=True)))
        ahead.append(len(list(itertools.takewhile(lambda n: not learner.propose(pending=[[]] * n), range(30)))))
    assert ahead[-1] == 0
    assert any(0 < rounds < 30 for rounds in ahead)
    assert learner.propose()


def sums_of(state):
    pairs, slots = state.pairs, state.slots
    return [part.copy() for part in (pairs["gram"], pairs["inverse"], slots["rhs"], slots["line"])]


@optimists
@relaxed(max_examples=15)
@given(graphs(most=6), seeds)
def test_the_order_of_pending_sets_does_not_matter(name, graph, seed):
    rng = np.random.default_rng(seed)
    engine = started(name, graph, 1).engine
    engine.update(rounds_of(rng, graph, 25))
    pending = sets_under_way(rng, graph, 4)
    shuffled = [pending[i] for i in rng.permutation(4)]
    one, other = (sums_of(state_with(engine, as_pending(graph, sets))) for sets in (pending, shuffled))
    for left, right in zip(one, other, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-7, atol=1e-8)
    values = [engine.choose(now(graph, sets)).value for sets in (pending, shuffled)]
    assert values[0] == pytest.approx(values[1], rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("name", ["BLMLR", "BLMLR boxed", "BLMOFU"])
@relaxed(max_examples=25)
@given(graphs(most=5), seeds)
def test_a_choice_with_pending_sets_is_the_best_under_the_expected_regions(name, graph, seed):
    rng = np.random.default_rng(seed)
    engine = started(name, graph, 1).engine
    engine.update(rounds_of(rng, graph, 12))
    pending, beliefs = sets_under_way(rng, graph, 3), engine.beliefs()
    M = {graph.nodes[v - 1]: gram for v, gram in expected_grams(engine, pending).items()}
    theta = {n: beliefs.node(graph.index(n)).theta.copy() for n in graph.nodes}
    nothing = np.full((3, len(graph) + 1), NAN), np.zeros((3, len(graph) + 1), dtype=bool)
    engine.update(Rounds(*nothing, np.ones(3, dtype=np.int64)))  # time passes
    rho = engine.beliefs().radii[1]
    fresh = started(name, graph, 1).engine
    rng = np.random.default_rng(seed)
    fresh.update(rounds_of(rng, graph, 12))
    relevant = [n for n in graph.controllable if graph.target in graph.descendants(n)]
    if name == "BLMLR boxed":
        values = tr.boxed_values(graph, theta, M, rho, [(n,) for n in relevant])
    else:
        inverse = {n: tr.pseudo_inverse(m) if m.size else m for n, m in M.items()}
        values = [tr.closed_form_value(graph, theta, inverse, rho, (n,)) for n in relevant]
    choice = fresh.choose(now(graph, pending))
    assert choice.value == pytest.approx(max(values), rel=1e-7, abs=1e-7)
    slack = 1e-7 * max(1.0, abs(max(values)))
    assert values[relevant.index(graph.nodes[choice.action.ids[0] - 1])] >= max(values) - slack
    compared = dict(fresh.compare(now(graph, pending)))
    for n, value in zip(relevant, values, strict=True):
        action = setting([graph.index(n)])
        assert index_of(fresh, action, now(graph, pending)) == pytest.approx(value, rel=1e-7, abs=1e-7)
        assert compared[action] == pytest.approx(value, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", MODEL_FREE)
def test_a_pending_arm_counts_as_played_with_the_mean_it_has(name):
    learner = started(name, paper.G4.graph, 2)
    engine, graph = learner.engine, paper.G4.graph
    for y in (1, 1, 0):
        learner.update({"X2": 1, "X3": 1}, {"Y": y})
    known, new = ([graph.index(n) for n in names] for names in (("X2", "X3"), ("X3", "X4")))
    plays, total = state_with(engine, as_pending(graph, [known, new, known, [graph.index("X2")]]))
    arms = [engine.actions().row(i) for i in range(len(engine.actions().ids))]
    known_arm, new_arm = arms.index(setting(known)), arms.index(setting(new))
    assert (plays[known_arm], plays[new_arm], plays.sum()) == (5, 1, 6)
    assert total[known_arm] == pytest.approx(5 * 2 / 3)
    assert total[new_arm] == 0.5
    assert engine.state.plays.sum() == 3


def test_rounds_under_way_count_as_time():
    """The index of an arm is mean + sqrt(log(t) / plays), t with the rounds that are under way elsewhere."""
    learner = UCB().start(paper.G4.graph, 1, effects="nonnegative")
    engine, graph = learner.engine, paper.G4.graph
    for y in (1, 0, 0, 1):
        learner.update({"X2": 1}, {"Y": y})
    other = [[graph.index("X3")]] * 9
    index = dict(engine.compare(now(graph, other)))[setting([graph.index("X2")])]
    assert index == pytest.approx(0.5 + np.sqrt(np.log(4 + 9 + 1) / 4))


def test_ucb_tries_every_arm_before_any_twice():
    learner = UCB().start(paper.G4.graph, 2, effects="nonnegative")
    under_way = []
    for _ in range(6):
        under_way.append(learner.propose(pending=under_way))
    assert len({frozenset(action) for action in under_way}) == 6


@every_policy
@pytest.mark.parametrize("pending", [[["X99"]], [{"X2": 7}], ["X2"], [5]])
def test_pending_sets_are_checked(name, pending):
    learner = started(name, paper.G4.graph, 2)
    with pytest.raises(InterventionError):
        learner.propose(pending=pending)


@every_policy
def test_pending_and_available_go_together(name):
    learner = started(name, SYMMETRIC, 2)
    learner.engine.update(rounds_of(np.random.default_rng(1), SYMMETRIC, 4))
    under_way = [["X0", "X1"], ["X2", "X3"]]
    limited = ["X1", "X4", "X5"]
    fresh = started(name, SYMMETRIC, 2, forbid=["X0", "X2", "X3"])
    fresh.engine.update(rounds_of(np.random.default_rng(1), SYMMETRIC, 4))
    assert learner.propose(available=limited, pending=under_way) == fresh.propose(pending=under_way)
