"""What is promised of experiments: nothing acknowledged is lost, whoever is killed, and races end in one order."""

import math
import os
import random
import time
from functools import partial

import pytest

import dobandit as dob
from dobandit.errors import ConflictError
from dobandit.storage import sqlite
from helpers.storages import id_of
from helpers.worlds import THOROUGH
from helpers.zygote import GRAPH, NAME, Child, create, intact, open_at, refused, some_observation, told, write_for_ever

# -- kill -9 -----------------------------------------------------------------------------------------------------


def kills(storage, lives):
    """The last tell of a life may be stored without an answer, and then it is stored whole."""
    rng, log, unanswered = random.Random(1), [], None
    counts = dict.fromkeys(("told", "unanswered", "unanswered but stored", "looked through"), 0)
    create(storage, lease=10.0).close()

    def settle(count):
        nonlocal unanswered
        if count == len(log) + 1 and unanswered:
            log.append(unanswered)
            counts["unanswered but stored"] += 1
        assert count == len(log), f"{count} trials are stored, but {len(log)} were acknowledged"
        unanswered = None

    for life in range(lives):
        write = write_with_checkpoints if life % 2 else write_for_ever
        child = Child(partial(write, storage=storage, life=life))
        settle(child.line()[1])
        lines = [child.line() for _ in range(rng.randrange(8))]
        time.sleep(rng.uniform(0.0, rng.choice([0.002, 0.01])))
        for kind, number, observation in lines + child.kill():
            unanswered = [number, observation] if kind == "telling" else None
            log += [[number, observation]] if kind == "told" else []
        counts["unanswered"] += unanswered is not None
        if rng.random() < 0.1 or life == lives - 1:  # seldom, so that logs beside the file live on
            experiment = open_at(storage, 1000.0 * life)
            stored = told(experiment)
            settle(len(stored))
            assert stored == log
            assert experiment.status().pending <= 1
            experiment.close()
            assert "://" in storage or intact(storage)
            counts["looked through"] += 1
    return {**counts, "told": len(log)}


def write_with_checkpoints(send, storage, life):
    """As usual, but with the log brought into the file at every few commits, so that kills hit that too."""
    plain = sqlite.connect

    def eager(*arguments, **settings):
        connection = plain(*arguments, **settings)
        connection.execute("PRAGMA wal_autocheckpoint=8")
        return connection

    sqlite.connect = eager
    write_for_ever(send, storage, life)


@pytest.mark.parametrize(("url", "lives"), [("sqlite", 16), ("disk", 6), ("postgresql", 6)], indirect=["url"])
def test_an_acknowledged_tell_survives_kill_9(zygote, url, lives):
    lives *= THOROUGH
    done = zygote.run(kills, url, lives)
    assert done["told"] > lives


# -- eight processes ---------------------------------------------------------------------------------------------


def eight_processes(storage, each):
    create(storage).close()
    children = [Child(partial(rounds, storage=storage, worker=worker, each=each)) for worker in range(8)]
    for child in children:
        assert child.line() == ["ready"]
    for child in children:
        child.say("go")
    reported = sorted(line for child in children for line in child.finish())
    assert [number for number, _ in reported] == list(range(8 * each))
    experiment = open_at(storage, 1.0)
    assert sorted(told(experiment)) == reported
    under_way = check_every_ask(experiment)
    fresh = experiment.ask()
    assert repr(fresh) == repr(asked_after_replay(experiment))
    experiment.close()
    return {"other trials under way, on average": under_way}


def rounds(send, storage, worker, each):
    experiment, rng = open_at(storage, 1.0), random.Random(worker)
    experiment.learner  # noqa: B018
    send("ready")
    os.read(0, 10)
    for _ in range(each):
        trial = experiment.ask()
        observation = some_observation(rng, trial.do)
        experiment.tell(trial.number, observation)
        send(trial.number, observation)
    experiment.close()


def check_every_ask(experiment):
    """What each of the processes was handed out follows from the log: what was closed, and what was under way."""
    from dobandit.experiment.replayed_learner import ReplayedLearner

    columns, replica = experiment.columns, ReplayedLearner(experiment.definition, experiment.columns)
    trials, closed = list(experiment.log.stored_trials()), experiment.storage.closed_since(id_of(experiment), 0)
    others = 0
    for trial in trials:
        replica.add(closed[replica.position : trial.asked_after])
        pending = [replica.pending(t) for t in trials[: trial.number] if t.position >= trial.asked_after]
        now = replica.situation(trial.number, None, pending, replica.known(None))
        choice = replica.learner.engine.choose(now)
        assert choice.action.named(GRAPH) == columns.decode(trial.do)
        expected, low, high = replica.predict(choice.action, now.context)
        assert (trial.predicted, trial.low, trial.high) == (None if math.isnan(expected) else expected, low, high)
        others += len(pending)
    return others / len(trials)


def asked_after_replay(experiment):
    """What is asked next by one process that lived through the log, a round at a time."""
    alone = create("memory")
    for trial in experiment.storage.closed_since(id_of(experiment), 0):
        do, observation = map(alone.columns.decode, (trial.do, trial.observation))
        alone.record(do, observation)
        assert alone.learner.rounds == trial.position + 1
    return alone.ask()


def test_eight_processes_ask_and_tell_many_times_each(zygote, url):
    zygote.run(eight_processes, url, 8 * THOROUGH)


# -- races -------------------------------------------------------------------------------------------------------


def races(storage, turns):
    now = 0.0
    asker = create(storage, lease=10.0, clock=lambda: now)
    racers = [Child(partial(race, storage=storage, turns=turns)) for _ in range(2)]
    wins = [0, 0]
    for _ in range(turns):
        old = asker.ask()
        for racer in racers:
            assert racer.line() == ["ready"]
        start = time.monotonic() + 0.02
        for racer in racers:
            racer.say(start)
        answers = [racer.line() for racer in racers]
        assert sorted(answers) == [[old.number, 2, False], [old.number + 1, 1, False]]
        wins[answers[1][0] == old.number] += 1
        refused(ConflictError, asker.tell, old.number, {"Y": 1})  # it was told without the first holder
        now += 1000.0
    asker.close()
    assert [racer.finish() for racer in racers] == [[], []]
    return wins


def race(send, storage, turns):
    now = 500.0
    experiment = dob.open_experiment(NAME, storage, clock=lambda: now)
    for _ in range(turns):
        experiment.learner  # noqa: B018
        send("ready")
        start = float(os.read(0, 100))
        while time.monotonic() < start:
            pass
        trial = experiment.ask()
        answer = experiment.tell(trial.number, {"Y": 0})
        send(trial.number, trial.issued, answer.late)
        now += 1000.0
    experiment.close()


def test_an_expired_lease_is_handed_out_once(zygote, url):
    zygote.run(races, url, 8 * THOROUGH)
