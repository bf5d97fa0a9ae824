"""BestSet and LUCB: the bound on differences against brute force, searches against the plain loop, live experiments."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

import dobandit as dob
from dobandit import LUCB, CausalGraph, CausalUCB, TableModel, create_experiment, find_best, paper
from dobandit.cli.main import main
from dobandit.errors import ExperimentError, PolicyError, SimulationError
from dobandit.estimation.belief import cells_of
from dobandit.estimation.kept_intervals import look_again
from dobandit.oracle.difference_bound import advantage, pair_scratch
from dobandit.oracle.interval_pass import bound_actions
from dobandit.policy.best_set import tighten
from dobandit.policy.engine import Draws, Pending, Rounds, Situation, copied, no_context
from dobandit.policy.problem import problem_of
from dobandit.policy.questions import best
from dobandit.policy.world import World
from dobandit.simulation.find_best import Found, rounds_until
from helpers.worlds import THOROUGH

BestSet = partial(dob.BestSet, proof=True)
DIAMOND = CausalGraph([("A", "M"), ("B", "M"), ("A", "N"), ("M", "Y"), ("N", "Y")], target="Y")
SMALL = TableModel(
    CausalGraph([("A", "Y"), ("B", "Y")], target="Y"), {"A": 0.5, "B": 0.5, "Y": [[0.2, 0.4], [0.3, 0.9]]}
)


def mean_by_worlds(graph, tables, action):
    """E[Y] by adding up all worlds; tables: P(X = 1) by node and the values of its parents."""
    total = 0.0
    for values in itertools.product((0, 1), repeat=len(graph.nodes)):
        world, chance = dict(zip(graph.nodes, values, strict=True)), 1.0
        for name in graph.nodes:
            if name in action:
                chance *= world[name] == action[name]
            else:
                p = tables[name, tuple(world[parent] for parent in graph.parents(name))]
                chance *= p if world[name] else 1 - p
        total += chance * world[graph.target]
    return total


def boxes(plan, graph, rng, widest):
    """Random intervals in the plan, and by node and the values of its parents."""
    plan.low[:] = rng.random(len(plan.low))
    plan.high[:] = np.minimum(plan.low + widest * rng.random(len(plan.low)), 1.0)
    found = {}
    for depth, v in enumerate(plan.actions.order.tolist()):
        name = graph.nodes[v - 1]
        for k in range(2 ** len(graph.parents(name))):
            at = plan.steps["table"][0, depth] + k
            ends = float(plan.low[at]), float(plan.high[at])
            found[name, tuple((k >> j) & 1 for j in range(len(graph.parents(name))))] = ends
    return found


@pytest.mark.parametrize("widest", [0.0, 0.3, 1.0])
def test_no_tables_within_the_intervals_beat_the_bound_on_a_difference(widest):
    """Exact where the intervals are points; never above what the ends of two intervals give."""
    rng, nothing = np.random.default_rng(int(10 * widest)), no_context(len(DIAMOND))
    plan = BestSet().start(DIAMOND, 2, levers={"B": (0, 1)}).engine.evaluator.plan
    actions, scores, work, tighter = plan.actions.actions, plan.actions.scores, pair_scratch(plan), 0
    for _ in range(4 * THOROUGH):
        ends = boxes(plan, DIAMOND, rng, widest)
        bound_actions(plan, nothing)
        draws = [{key: rng.choice([low, high, rng.uniform(low, high)]) for key, (low, high) in ends.items()}]
        draws += [{key: rng.choice(pair) for key, pair in ends.items()} for _ in range(20)]
        for i, j in rng.integers(0, len(scores), (8, 2)):
            most = advantage(plan, work, nothing, i, j)
            one, other = (actions.row(int(row)).named(DIAMOND) for row in (i, j))
            real = [mean_by_worlds(DIAMOND, t, one) - mean_by_worlds(DIAMOND, t, other) for t in draws]
            assert max(real) <= most + 1e-12
            by_ends = scores["high"][i] - scores["low"][j]
            assert most <= by_ends + 1e-12
            tighter += most < by_ends - 1e-6
            if widest == 0.0:
                assert real[0] == pytest.approx(most, abs=1e-12)
    assert tighter > 0 or widest == 0.0


def test_own_outcomes_only_bring_ends_in():
    """Each end is the tighter of two, the own one by its definition: n KL(mean, q) = log(11 K n^1.1 / delta)."""
    engine = BestSet(0.1, 0.2).start(SMALL.graph, 1).engine
    scores, plays, total = engine.listed.scores, np.array([0.0, 40.0, 500.0]), np.array([0.0, 10.0, 300.0])
    count = len(scores)
    scores["low"], scores["high"] = 0.0, 1.0
    tighten(scores, plays, total, count, 0.1)
    for i in range(count):
        low, high, n = scores["low"][i], scores["high"][i], plays[i]
        if not n:
            assert (low, high) == (0.0, 1.0)
            continue
        mean = total[i] / n
        for q in (low, high):
            distance = mean * np.log(mean / q) + (1 - mean) * np.log((1 - mean) / (1 - q))
            assert n * distance == pytest.approx(np.log(11 * count * n**1.1 / 0.1), rel=1e-6)
    scores["low"], scores["high"] = 0.3, 0.31
    tighten(scores, plays, total, count, 0.1)
    assert (scores["low"] >= 0.3).all()
    assert (scores["high"] <= 0.31).all()


def test_what_is_kept_depends_on_the_rows_and_their_order_alone():
    """One by one, as a batch, and in a copy: the same state, own outcomes and choices; asking changes nothing."""
    rng, problem = np.random.default_rng(5), BestSet(0.1).start(SMALL.graph, 1).problem
    values, was_set = np.ones((300, 4)), np.zeros((300, 4), dtype=bool)
    values[:, 1:], which = rng.random((300, 3)) < 0.5, rng.integers(0, 3, 300)
    for v in (1, 2):
        was_set[which == v, v], values[which == v, v] = True, 1.0
    one, other, half = (BestSet(0.1).engine(problem) for _ in range(3))
    other.update(Rounds(values, was_set, np.ones(300, dtype=np.int64)))
    half.update(Rounds(values[:151], was_set[:151], np.ones(151, dtype=np.int64)))
    now, twin = Situation(np.full(3, 0.3), no_context(3)), one
    for t in range(300):
        one.update(Rounds(values[t : t + 1], was_set[t : t + 1], np.ones(1, dtype=np.int64)))
        if t == 150:
            one.choose(now._replace(pending=(Pending(best(one, now).action, no_context(3), 7),)))
            one, twin = one.copy(), one
    for left, right in ((one, other), (twin, half)):
        np.testing.assert_array_equal(left.state.cells, right.state.cells)
        actions = left.actions()
        for action in (actions.row(i) for i in range(len(actions.ids))):  # own outcomes count in every gap
            assert left.gap(action, now) == right.gap(action, now)
        assert left.rounds == right.rounds
    assert twin.gap(best(twin, now).action, now) != one.gap(best(one, now).action, now)


@pytest.mark.parametrize(
    ("links", "share", "nodes"), [("auto", 0.02, "AB"), ("identity", 0.02, "AB"), ("identity", 0.05, "Y")]
)
def test_kept_intervals_are_those_of_the_last_look(links, share, nodes):
    """The rows at which one looks again tell when that was; after counts, which have lost their order, it is now.
    A and B have no causes: a link says nothing of them, and they are looked at as tables are."""
    problem, values = problem_of(SMALL.graph, 1, links=links), np.ones((800, 4))
    values[:, 1:] = np.random.default_rng(2).random((800, 3)) < 0.4
    told = Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(800, dtype=np.int64))
    engine, earlier = CausalUCB(guarantee=True).engine(problem), CausalUCB(guarantee=True).engine(problem)
    engine.update(told)
    for v in map(SMALL.graph.index, nodes):
        part = cells_of(engine.state, v)
        rows = round(engine.state.cells["due"][part.start] / (1 + share))
        assert 800 / (1 + share) - 1 <= rows <= 800
        then = earlier.copy()
        then.update(Rounds(*(column[:rows] for column in told)))
        look_again(then.state)
        np.testing.assert_array_equal(engine.state.cells["low"][part], then.state.cells["low"][part])
        np.testing.assert_array_equal(engine.state.cells["high"][part], then.state.cells["high"][part])
    engine.update(told._replace(counts=np.full(800, 3)))
    now = copied(engine.state)
    look_again(now)
    np.testing.assert_array_equal(engine.state.cells["low"], now.cells["low"])
    np.testing.assert_array_equal(engine.state.cells["high"], now.cells["high"])


@pytest.mark.parametrize(
    "policy", [BestSet(epsilon=0.3, delta=0.2), LUCB(epsilon=0.3, delta=0.2)], ids=lambda p: p.name
)
def test_a_search_ends_with_the_answer(policy):
    problem = policy.start(SMALL.graph, 1, levers={"A": (0, 1)}).problem
    rng, world = np.random.default_rng(3), World(SMALL, problem.graph)
    draws = Draws(rng.random((800, 3)), rng.random((800, 3)))
    one, other = policy.engine(problem), policy.engine(problem)
    found = rounds_until(one, world, draws, 0.3)
    assert found == rounds_until(other, world, draws, 0.3)
    assert found is not None
    now = Situation(draws.policy[found], no_context(3))
    assert one.choose(now).action == best(one, now).action == best(other, now).action
    assert one.gap(best(one, now).action, now).gap <= 0.3
    assert "answer" in one.reason(now)


def test_runs_and_their_table():
    most = {"seed": 1, "most_rounds": 2000}
    found = find_best(SMALL, {"arms": LUCB(0.3), "never": LUCB(0.001)}, 5, 1, **most)
    arms, never = found["arms"], found["never"]
    assert arms.finished.all()
    assert not never.finished.any()
    assert (arms.rounds < 2000).all()
    assert (never.rounds == 2000).all()
    assert arms.error == never.error == 0.0
    assert set(np.round(arms.shortfall, 12)) <= {0.0, 0.05}  # P(Y) = .65 for B, .6 for A
    lines = found.summary().splitlines()
    assert lines[0].split()[:2] == ["policy", "rounds"]
    assert ">2,000" in lines[2]
    again = find_best(SMALL, LUCB(0.3), 5, 1, **most)
    np.testing.assert_array_equal(again["LUCB (0.3)"].rounds, arms.rounds)


def test_wrong_answers_are_counted():
    """Only an answer that falls short by more than was allowed is wrong; no answer is not."""
    found = Found(np.array([3, 4, 9, 9]), np.array([True, True, True, False]), np.array([0, 0.2, 0.1, 0.5]), 0.1, 0.05)
    assert found.wrong.tolist() == [False, True, False, False]
    assert found.error == 0.25
    assert found.error_interval.low < 0.25 < found.error_interval.high


def test_refusals():
    for broken in (lambda: BestSet(epsilon=0), lambda: BestSet(epsilon=1), lambda: LUCB(epsilon=-0.1)):
        with pytest.raises(PolicyError, match="epsilon"):
            broken()
    for broken in (lambda: BestSet(delta=0), lambda: LUCB(delta=1)):
        with pytest.raises(dob.errors.ModelError, match="delta"):
            broken()
    with pytest.raises(PolicyError, match="LUCB"):
        BestSet().start(SMALL.graph, 1, continuous=True)
    with pytest.raises(SimulationError, match="BestSet"):
        find_best(paper.G4, "ucb", 2, 2)
    with pytest.raises(ExperimentError, match="epsilon"):
        create_experiment("x", SMALL.graph, 1, policy=BestSet(0.1), storage="memory", stop_within=0.2)
    context = CausalGraph([("A", "Y"), ("C", "Y")], target="Y", context=["C"])
    with pytest.raises(SimulationError, match="context"):
        find_best(TableModel(context, {"A": 0.5, "C": 0.5, "Y": [[0.2, 0.4], [0.3, 0.9]]}), LUCB(), 2, 1)


def drawn(do, rounds, rng):
    """Rows of so many rounds."""
    seen = SMALL.sample(do, rounds, rng)
    return [{name: int(seen[name][t]) for name in SMALL.graph.nodes} for t in range(rounds)]


@pytest.mark.parametrize(
    "policy", [BestSet(epsilon=0.3, delta=0.1), LUCB(epsilon=0.3, delta=0.1)], ids=lambda p: p.name
)
def test_an_experiment_says_when_it_has_the_answer(policy, tmp_path, capsys):
    """With the level of the policy's delta, in ask, recommend and show."""
    url = f"sqlite:///{tmp_path / 'e.db'}"
    test = create_experiment("best", SMALL.graph, 1, policy=policy, storage=url, seed=0, lease=None)
    assert test.definition.stop_within == 0.3
    first = test.ask()
    assert "may stop" not in first.why
    assert "may be better by up to 1.000; a coin chose between them" in first.why
    rng = np.random.default_rng(0)
    for do in ({}, {"A": 1}, {"B": 1}):
        test.record(do, drawn(do, 900, rng))
    for trial in test.ask(n=60, size=10):
        test.tell(trial, drawn(trial.do, 10, rng))
    trial = test.ask()
    assert trial.why.endswith(
        "may stop if recommend says so too: no allowed action is better by more than 0.3, with 90%, at every look"
    )
    assert "the answer" in trial.why
    assert test.status().may_stop
    told = test.recommend()
    assert told.gap <= 0.3
    for what in ("show", "recommend"):
        with pytest.raises(SystemExit) as ended:
            main(["experiment", what, "best", "--storage", url])
        assert not ended.value.code
        text = capsys.readouterr().out
        assert "with 90%, at every look" in " ".join(text.split())
        assert "may stop" in text
        assert "95%, at every round" not in text
