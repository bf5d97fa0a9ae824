"""An experiment is its log: recorded rounds, reopening, simulated and live runs, exports and replay."""

import csv
import io
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import (
    ConflictError,
    ExperimentError,
    InterventionError,
    ObservationError,
    ParseError,
    StorageError,
)
from dobandit.policy.base import round_draws
from dobandit.policy.engine import Draws
from dobandit.policy.recording import Recorder, blank_tape
from dobandit.policy.world import World
from dobandit.simulation.study_worlds import Truth
from dobandit.storage import MemoryStorage
from helpers.experiments import (
    ARMS,
    CASES,
    G4,
    G5,
    Clock,
    again,
    case,
    drawn,
    flat,
    knowledge,
    make,
    numbered,
    played,
    refused,
    said,
    whole_log,
)
from helpers.worlds import THOROUGH

pytestmark = pytest.mark.usefixtures("one_of_many")

# -- rounds that nobody asked for -----------------------------------------------------------------------------------


def test_recorded_rounds(storage):
    experiment = make(storage)
    experiment.ask()
    assert experiment.record({"X2": 1, "X3": 0}, {"X4": 1, "Y": 1}) == 1
    assert experiment.record(None, {"Y": 0}) == 2
    assert experiment.record(["X2", "X3", "X4"], {"Y": 1}) == 3
    assert experiment.import_history([({"X5": 1}, {"Y": 1}), {"do:X2": 1, "Y": 0}]) == range(4, 6)
    assert experiment.ask().number == 6
    rows = experiment.trials()
    assert [row["source"] for row in rows] == ["asked", *["recorded"] * 3, *["imported"] * 2, "asked"]
    assert [row["position"] for row in rows] == [None, 0, 1, 2, 3, 4, None]
    assert rows[1]["do"] == {"X2": 1, "X3": 0}
    assert rows[1]["observation"] == {"X2": 1, "X3": 0, "X4": 1, "Y": 1}
    assert rows[1]["partial"]
    assert rows[6]["asked_after"] == 5
    before = whole_log(experiment)
    refused(InterventionError, lambda: experiment.record({"Y": 1}, {"X2": 1}), "Y")
    refused(InterventionError, lambda: experiment.record({"X9": 1}, {"Y": 1}), "X9")
    refused(ObservationError, lambda: experiment.record({"X2": 1}, {"X2": 0, "Y": 1}), "X2")
    refused(ObservationError, lambda: experiment.record({"X2": 1}, {}))
    refused(
        ParseError, lambda: experiment.import_history([({}, {"Y": 1}), ({}, {"Y": 2}), ({"Q": 1}, {"Y": 1})]), "row 1"
    )
    refused(ParseError, lambda: experiment.import_history(io.StringIO("X2,Y\n1,0\n1,7\n")), "line 3")
    refused(ParseError, lambda: experiment.import_history(io.StringIO("X2,Z\n1,0\n")), "line 1", "Z")
    assert whole_log(experiment) == before
    refused(ExperimentError, lambda: experiment.explain(1), "recorded")
    refused(ExperimentError, lambda: experiment.explain(4), "imported")
    assert experiment.tell(1, {"X4": 1, "Y": 1}).repeated
    refused(ConflictError, lambda: experiment.tell(1, {"Y": 1}))
    refused(ConflictError, lambda: experiment.abandon(1))


@pytest.mark.parametrize("name", CASES)
def test_a_warm_start_knows_what_tells_would_have_taught(name):
    """Told, recorded one by one, or imported at once: the same knowledge and the same next ask."""
    model = CASES[name][0]
    told, recorded, imported = (case(name) for _ in range(3))
    rng = np.random.default_rng(5)
    rounds = []
    for _ in range(40):
        trial = told.ask()
        seen = drawn(model, trial.do, rng.random(len(model.graph)))
        if rng.random() < 0.2:
            seen.pop(model.graph.nodes[0])
        told.tell(trial.number, seen)
        recorded.record(trial.do, seen)
        rounds.append((trial.do, seen))
    assert imported.import_history(numbered(rounds)) == range(40)
    assert knowledge(told) == knowledge(recorded) == knowledge(imported)
    asked = [experiment.ask(n=3) for experiment in (told, recorded, imported)]
    assert [said(t) for t in asked[0]] == [said(t) for t in asked[1]] == [said(t) for t in asked[2]]


# -- a pure function of the log --------------------------------------------------------------------------------------


def session(model, experiments, clock, rounds, rng, first=0, pending=()):
    """Rounds with all that can happen, each by one of `experiments`; what every ask said, and what is still pending."""
    heard, pending = [], list(pending)
    for step in range(first, first + rounds):
        clock.now += 1.0
        experiment = experiments[step % len(experiments)]
        for _ in range(1 + (step % 5 == 0)):
            trial = experiment.ask(lease=4.0 if step % 3 == 0 else None)
            heard.append(said(trial))
            if trial.issued == 1:
                pending.append((trial.number, trial.do))
        while len(pending) > 3:
            number, do = pending.pop(int(rng.integers(len(pending))))
            fate, uniforms = rng.random(), rng.random(len(model.graph))
            teller = experiments[(step + number) % len(experiments)]
            if fate < 0.08:
                teller.tell_failed(number, "rain")
            elif fate < 0.16:
                teller.abandon(number)
            else:
                seen = drawn(model, do, uniforms)
                if fate < 0.3:
                    seen.pop(next(name for name in seen if name not in do))
                teller.tell(number, seen)
        if step % 7 == 0:
            experiment.record({}, drawn(model, {}, rng.random(len(model.graph))))
    return heard, pending


@pytest.mark.parametrize("name", CASES)
def test_reopening_changes_nothing(name):
    model = CASES[name][0]

    def run(how):
        clock, rng = Clock(0.0), np.random.default_rng(11)
        one = case(name, clock=clock)
        if how == "once":
            heard, _ = session(model, [one], clock, 50, rng)
        elif how == "reopened":
            heard, pending = session(model, [one], clock, 25, rng)
            later, _ = session(model, [again(one, clock)], clock, 25, rng, 25, pending)
            heard += later
        else:
            heard, _ = session(model, [one, again(one, clock)], clock, 50, rng)
        # Whether a tell is late hangs on who holds the trial, and the learner does not care.
        log = [t._replace(late=False) for t in whole_log(one)]
        return heard, log, knowledge(again(one)), knowledge(one), said(again(one, clock).ask())

    once = run("once")
    assert run("reopened") == once
    assert run("two") == once
    assert once[2] == once[3]
    states = {t.state for t in once[1]}
    assert states == {"pending", "told", "failed", "abandoned"}
    assert any(t.partial for t in once[1])
    assert any(t.issued > 1 for t in once[1])
    order = [t.number for t in sorted(once[1], key=lambda t: -1 if t.position is None else t.position)]
    assert order != sorted(order)


def test_storages_agree(storage):
    """The same session over this storage and over memory."""

    def run(kept):
        clock, rng = Clock(0.0), np.random.default_rng(3)
        one = make(kept, G5.graph, clock=clock)
        heard, _ = session(G5, [one, again(one, clock)], clock, 25, rng)
        return heard, whole_log(one), knowledge(again(one)), one.to_csv(), one.trials(), one.best_observed()

    assert run(storage) == run(MemoryStorage())


# -- one implementation: simulated and live runs make the same choices -------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_live_and_simulated_runs_choose_alike(name):
    model, _, policy, _ = CASES[name]
    rounds, seed = (120 if name == "greedy" else 60) * THOROUGH, 7  # until it has changed its mind
    experiment = case(name, horizon=rounds)
    problem = experiment.definition.problem
    assert (problem.seed, problem.horizon) == (seed, rounds)
    engine, world, truth = policy.engine(problem), World(model, problem.graph), Truth(model, problem)
    table = truth.table(engine.actions())
    recorder = Recorder(blank_tape(table, truth.best, np.array([rounds])), truth.value, problem.context_ids)
    world_draws = np.random.default_rng(21).random((rounds, len(model.graph)))
    policy_draws = np.array([round_draws(seed, t, engine.draws) for t in range(rounds)])
    different = set()
    for t in range(rounds):
        at = slice(t, t + 1)
        before = recorder.tape.plays.copy()
        engine.run(world, recorder, Draws(world_draws[at], policy_draws[at]))
        if name in ARMS:  # they look at nothing but the target
            index = int(np.argmax(recorder.tape.plays - before))
            played = engine.actions().row(index).named(problem.graph) if index < len(engine.actions().ids) else {}
            values = world.arrays.nodes["value"][world.arrays.seen["node"]]
        else:
            ids = np.flatnonzero(world.arrays.was_set)
            values = world.arrays.values
            played = {problem.graph.nodes[i - 1]: values[i] for i in ids}
        trial = experiment.ask()
        assert trial.do == played, t
        seen = drawn(model, trial.do, world_draws[t])
        assert list(seen.values()) == pytest.approx(values[1:].tolist(), abs=1e-15)
        experiment.tell(t, seen)
        different.add(frozenset(played.items()))
    assert knowledge(experiment) == flat(engine.state)
    assert recorder.tape.curve["reward"][0] == pytest.approx(
        sum(row["observation"]["Y"] for row in experiment.trials())
    )
    assert len(different) > 1 or name == "fixed"


# -- the log for people ------------------------------------------------------------------------------------------------


def test_status(storage):
    clock = Clock(5000.0)
    experiment = make(storage, lease=10, horizon=99, clock=clock)
    empty = experiment.status()
    assert (empty.trials, empty.pending, empty.mean_target, empty.last_told_at) == (0, 0, None, None)
    assert (empty.created_at, empty.seed, empty.horizon, empty.budget) == (5000.0, 7, 99, 2)
    assert (empty.target, empty.policy) == ("Y", "blm-lr:radius_scale=0.1")
    experiment.ask(n=6)
    clock.now = 5005.0
    experiment.tell(0, dict.fromkeys(G4.graph.nodes, 1))
    experiment.tell(1, {"Y": 0})
    experiment.tell_failed(2, "rain")
    experiment.abandon(3)
    clock.now = 5011.0
    experiment.tell(4, {"X2": 1} if "X2" not in experiment.trial(4)["do"] else {"X3": 1, "X4": 1})
    experiment.record({}, {"Y": 0})
    clock.now = 5012.0
    status = again(experiment, clock).status()
    assert (status.trials, status.pending, status.told, status.failed, status.abandoned) == (7, 1, 4, 1, 1)
    assert (status.late, status.expired, status.partial) == (1, 1, 3)
    assert status.mean_target == pytest.approx(1 / 3)
    assert status.last_told_at == 5011.0
    assert status.storage == storage.url
    listed = dob.list_experiments(storage)[0]
    assert (listed.trials, listed.closed) == (7, 6)


@pytest.mark.parametrize("name", CASES)
def test_exports_agree_and_come_back(name, tmp_path):
    pandas, parquet = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    model, clock, rng = CASES[name][0], Clock(0.0), np.random.default_rng(8)
    experiment = case(name, clock=clock)
    session(model, [experiment], clock, 30, rng)
    rows = experiment.trials()
    text = experiment.to_csv()
    experiment.to_csv(tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_text(encoding="utf-8") == text
    table = list(csv.DictReader(io.StringIO(text)))
    frame = experiment.to_pandas()
    experiment.to_parquet(tmp_path / "log.parquet")
    packed = parquet.read_table(tmp_path / "log.parquet").to_pylist()
    assert len(rows) == len(table) == len(frame) == len(packed)
    for row, line, framed, stored in zip(rows, table, frame.to_dict("records"), packed, strict=True):
        assert int(line["trial.number"]) == row["trial"] == framed["trial.number"] == stored["trial.number"]
        assert line["trial.state"] == row["state"] == framed["trial.state"] == stored["trial.state"]
        for x in experiment.columns.names:
            seen = (row["observation"] or {}).get(x)
            assert (float(line[x]) if line[x] else None) == seen == stored[x]
            assert framed[x] == seen or (seen is None and pandas.isna(framed[x]))
            if x != "Y":
                done = row["do"].get(x)
                assert (float(line[f"do:{x}"]) if line[f"do:{x}"] else None) == done == stored[f"do:{x}"]
        if row["predicted"] is not None:
            assert float(line["trial.predicted"]) == row["predicted"] == stored["trial.predicted"]
    # Imported, the told rounds stand in the order of their numbers: the same sums where order does not matter.
    told = [row for row in rows if row["state"] == "told"]
    in_order = case(name)
    for row in told:
        in_order.record(row["do"], row["observation"])
    known, wanted = knowledge(in_order), said(in_order.ask())
    for source in (tmp_path / "log.csv", io.StringIO(text), frame, rows):
        fresh = case(name)
        assert fresh.import_history(source) == range(len(told))
        assert knowledge(fresh) == known
        assert said(fresh.ask()) == wanted


@pytest.mark.parametrize("name", CASES)
def test_a_log_told_in_order_comes_back_to_the_bit(name):
    experiment = played(name, 30 * THOROUGH)
    fresh = case(name)
    fresh.import_history(io.StringIO(experiment.to_csv()))
    assert knowledge(fresh) == knowledge(experiment)
    assert said(fresh.ask()) == said(experiment.ask())


# -- replay ------------------------------------------------------------------------------------------------------------


def test_a_long_log_is_replayed_quickly(tmp_path):
    """In SQLite; in seconds of this process, however busy the machine is."""
    rounds, rng = 30_000, np.random.default_rng(1)
    values = (rng.random((rounds, 7)) < 0.4).astype(int)
    names = dob.paper.G1.graph.nodes
    url = f"sqlite:///{tmp_path}/long.db"
    log = numbered([({}, dict(zip(names, row, strict=True))) for row in values.tolist()])
    short = make(graph=dob.paper.G1.graph, budget=3)  # compiles
    short.import_history(log[:9])
    short.ask()
    with closing(make(url, dob.paper.G1.graph, 3)) as experiment:
        experiment.import_history(log)
    with closing(dob.open_experiment("spring", url)) as opened:
        start = time.process_time()
        trial = opened.ask()
        seconds = time.process_time() - start
        assert trial.number == rounds
        assert opened.learner.rounds == rounds
    assert seconds < 3.0
    with closing(sqlite3.connect(tmp_path / "long.db")) as raw:
        assert raw.execute("SELECT trials, closed FROM experiments").fetchone() == (rounds + 1, rounds)


def test_the_learner_that_is_handed_out_is_a_copy():
    experiment = make()
    for _ in range(5):
        experiment.tell(experiment.ask(), {"Y": 1})
    before = experiment.recommend()
    learner = experiment.learner
    for _ in range(50):
        learner.update(["X2"], {"X3": 0, "X4": 0, "X5": 0, "Y": 1})
    assert learner.rounds == 55
    assert experiment.recommend() == before
    assert experiment.learner.rounds == 5


def test_a_hole_in_the_log_is_damage(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    with make(url) as experiment:
        for _ in range(5):
            experiment.tell(experiment.ask(), {"Y": 1})
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("DELETE FROM trials WHERE number = 2")
    with dob.open_experiment("spring", url) as experiment:
        for question in (experiment.ask, experiment.status, experiment.recommend, experiment.trials):
            refused(StorageError, question, "damaged")
