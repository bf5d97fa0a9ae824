"""Rows of a history teach the model, but are no action's own outcomes, unless they were randomised."""

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import ExperimentError
from dobandit.policy.engine import Action, Rounds
from dobandit.storage import MemoryStorage

SPREAD = 0.1  # how much better b is than a
GRAPH = dob.CausalGraph(
    [("rich", "a"), ("rich", "b"), ("rich", "buy"), ("a", "buy"), ("b", "buy")],
    target="buy",
    controllable=["a", "b"],
    bias=["rich", "a", "b", "buy"],
)


def chance(rich, a, b):
    return 0.1 + 0.5 * rich + 0.05 * a + (0.05 + SPREAD) * b


def rows_of(rich, a, b, rng):
    buy = rng.random(len(rich)) < chance(rich, a, b)
    return [{"rich": int(z), "a": a, "b": b, "buy": int(y)} for z, y in zip(rich, buy, strict=True)]


def misleading(rng, rows=4_000):
    """Mostly a for the rich, who buy anyway, and b for the others."""
    rich = (rng.random(rows) < 0.5).astype(int)
    chose_a = rng.random(rows) < np.where(rich, 0.8, 0.2)
    pairs = [({"a": 1}, row) for row in rows_of(rich[chose_a], 1, 0, rng)]
    return pairs + [({"b": 1}, row) for row in rows_of(rich[~chose_a], 0, 1, rng)]


def played(policy, seed, rounds=2_000, size=20, **said):
    """An experiment that begins with a misleading history, and what it lost in its live rounds."""
    rng = np.random.default_rng(seed)
    experiment = dob.create_experiment(
        "own", GRAPH, 1, policy, MemoryStorage(), seed=seed, stop_within=0.08, history=misleading(rng), **said
    )
    lost = 0.0
    for _ in range(rounds // size):
        trial = experiment.ask(size=size)
        a, b = (int(trial.do.get(name, 0)) for name in "ab")
        experiment.tell(trial, rows_of((rng.random(size) < 0.5).astype(int), a, b, rng))
        lost += size * (chance(0, 0, 1) - chance(0, a, b))
    return experiment, lost


@pytest.mark.statistics
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_history_that_something_recorded_decided_on_misleads_nobody(seed):
    plain, lost_by_plain = played(dob.CausalUCB(), seed)
    safe, lost_by_safe = played(dob.CausalUCB(safe=True), seed)
    assert lost_by_plain <= 10
    assert lost_by_safe <= 30  # random play loses 2,000 / 3 times 0.1 and 0.15
    for experiment in (plain, safe):
        assert experiment.recommend().do == {"b": 1}
        assert (experiment.status().may_stop, experiment.status().doubts) == (True, ())


def test_said_to_be_randomised_it_would():
    experiment, lost = played(dob.CausalUCB(safe=True), 1, randomised=True)
    assert lost > 80
    assert experiment.status().may_stop is False


def test_observed_counts_asked_and_randomised_rounds_only():
    experiment = dob.create_experiment("seen", GRAPH, 1, storage=MemoryStorage(), seed=1)
    seen = {"rich": 0, "a": 0, "b": 1}
    experiment.record({"b": 1}, {**seen, "buy": 1, "count": 30})
    experiment.import_history([({"b": 1}, {**seen, "buy": 1})] * 12)
    told = experiment.evaluate({"b": 1})
    assert told.observed is None
    assert any("No asked or randomised round with exactly this action" in one for one in told.warnings)
    assert experiment.best_observed() is None
    assert experiment.learner.rounds == 42
    experiment.record({"b": 1}, {**seen, "buy": 0, "count": 10}, randomised=True)
    experiment.import_history([({"b": 1}, {**seen, "buy": 1})] * 10, randomised=True)
    assert experiment.evaluate({"b": 1}).observed[:2] == (0.5, 20)
    assert experiment.best_observed()[:2] == ({"b": 1}, 0.5)
    sources = [trial["source"] for trial in experiment.trials()]
    assert sources[0] == "recorded"
    assert set(sources[1:-11]) == {"imported"}
    assert set(sources[-11:]) == {"randomised"}
    with pytest.raises(ExperimentError, match="was randomised, not asked for"):
        experiment.explain(len(sources) - 1)
    with pytest.raises(ExperimentError, match="randomised is True or False"):
        experiment.record({"b": 1}, seen, randomised="yes")


def test_a_history_that_is_said_to_be_randomised_is_another_beginning():
    storage, rows = MemoryStorage(), [({"b": 1}, {"rich": 0, "a": 0, "b": 1, "buy": 1})] * 12
    words = {"storage": storage, "seed": 1, "history": rows, "if_exists": "open"}
    assert dob.create_experiment("twice", GRAPH, 1, randomised=True, **words).evaluate({"b": 1}).observed.rounds == 12
    with pytest.raises(ExperimentError, match="begun with other rounds"):
        dob.create_experiment("twice", GRAPH, 1, **words)


def test_an_engine_keeps_live_outcomes_alone_also_on_a_revised_graph():
    """The graph lacks a cause of the target, and the log is learned anew once that was found."""
    graph = dob.CausalGraph([("b", "a"), ("a", "buy")], target="buy", controllable=["a", "b"], bias=["a", "b", "buy"])
    rng = np.random.default_rng(5)
    b = rng.random(400) < 0.5
    rows = [({"b": int(one)}, {"a": int(rng.random() < 0.5), "buy": int(one)}) for one in b]
    learner = dob.CausalUCB(safe=True).start(graph, 1, levers={"b": (0, 1)}, seed=1)
    told = rounds_of(learner.graph, rows)
    learner.take(told.part(slice(0, 150)), history=True)
    learner.take(told.part(slice(150, None)))
    assert learner.engine.revisions
    own, actions = learner.engine.own, learner.engine.actions()
    kept = {
        actions.row(i): (n, total) for i, (n, total) in enumerate(zip(own.plays[0], own.total[0], strict=True)) if n
    }
    set_to = [Action((learner.graph.index("b"),), (value,)) for value in (0.0, 1.0)]
    assert kept == {set_to[0]: (np.sum(~b[150:]), 0.0), set_to[1]: (np.sum(b[150:]),) * 2}


def test_a_proof_by_own_outcomes_does_not_rest_on_a_history():
    graph = dob.CausalGraph([("a", "visit"), ("b", "visit"), ("visit", "buy")], target="buy", controllable=["a", "b"])
    rows = [({"a": 1}, {"b": 0, "buy": 1}), ({"b": 1}, {"a": 0, "buy": 0})] * 60  # the model misses visit
    gaps = []
    for history in (False, True):
        learner = dob.BestSet(proof=True).start(graph, 1, seed=1)
        learner.take(rounds_of(learner.graph, rows), history=history)
        gaps.append(learner.gap())
    assert gaps[0] < gaps[1]


def rounds_of(graph, rows):
    values = np.array([[1.0, *({**seen, **do}.get(name, np.nan) for name in graph.nodes)] for do, seen in rows])
    was_set = np.array([[False, *(name in do for name in graph.nodes)] for do, _ in rows])
    return Rounds(values, was_set, np.ones(len(rows), dtype=np.int64))
