"""The course of an experiment: sums over the log agree with the log, and what was known then is known again."""

import math

import numpy as np
import pytest

from dobandit import CausalGraph, create_experiment
from dobandit.experiment import ledger
from dobandit.experiment.answers import edge_estimates
from dobandit.experiment.replica import Replica
from dobandit.experiment.storage import MemoryStorage
from dobandit.service.pages import course as module
from dobandit.service.pages.course import Course

GRAPH = CausalGraph([("a", "c"), ("b", "c"), ("c", "y"), ("a", "y")], target="y")


def played(rounds, seed=0):
    """An experiment with rounds of every kind: asked, recorded, failed, abandoned, told late, of many rows."""
    rng = np.random.default_rng(seed)
    experiment = create_experiment("spring", GRAPH, budget=1, storage=MemoryStorage(), seed=seed)
    waiting = None
    for k in range(rounds):
        trial = experiment.ask()
        seen = {name: int(rng.random() < 0.5) for name in "abcy"} | trial.do
        if k % 11 == 5:
            experiment.tell_failed(trial.number)
        elif k % 13 == 7:
            experiment.abandon(trial.number)
        elif k % 17 == 3:
            waiting = (trial, seen)  # it is told after others that were asked later
        elif k % 19 == 2:
            experiment.record({"a": 1}, [{**seen, "a": 1, "count": 3}, {"a": 1, "y": None, "c": 0}])
            experiment.tell(trial, seen)
        else:
            experiment.tell(trial, seen)
        if waiting and k % 17 == 9:
            experiment.tell(*waiting)
            waiting = None
    return experiment


@pytest.fixture(scope="module")
def experiment():
    return played(160)


def number_of(experiment):
    return experiment.storage.find("spring").id


def direct(experiment, first, last):
    """Sums over the closed trials from position first up to last, from the rows of the log."""
    rows = sorted((t for t in experiment.stored_trials() if t.position is not None), key=lambda t: t.position)[
        first:last
    ]
    rounds = total = predicted = foretold = 0.0
    for trial in rows:
        if trial.state != "told":
            continue
        seen = experiment.columns.decode_batch(trial.observation, trial.counts)
        seen = seen if isinstance(seen, list) else [{**seen, "count": 1}]
        here = sum(row["count"] for row in seen if "y" in row)
        rounds += here
        total += sum(row["count"] * row["y"] for row in seen if "y" in row)
        if trial.predicted is not None:
            foretold += here
            predicted += here * trial.predicted
    return len(rows), rounds, total, foretold, predicted


def check(course, experiment):
    for i, stretch in enumerate(course.stretches):
        wanted = direct(experiment, i * course.width, (i + 1) * course.width)
        found = (stretch.trials, stretch.rounds, stretch.total, stretch.foretold, stretch.predicted)
        assert found == pytest.approx(wanted)
        assert sum(stretch.tried.values()) == stretch.trials


def test_stretches_are_sums_over_the_log(experiment, monkeypatch):
    course = Course(experiment, number_of(experiment))
    course.follow()
    assert course.position == sum(t.position is not None for t in experiment.stored_trials())
    check(course, experiment)
    for stretches, chunk in ((5, 7), (1, 1), (64, 50)):
        monkeypatch.setattr(module, "STRETCHES", stretches)
        monkeypatch.setattr(ledger, "PART", chunk)
        short = Course(experiment, number_of(experiment))
        short.follow()
        assert len(short.stretches) <= stretches
        check(short, experiment)


def test_a_course_that_follows_in_steps_is_the_same():
    experiment = played(3)
    course = Course(experiment, number_of(experiment))
    for _ in range(20):
        trial = experiment.ask()
        experiment.tell(trial, {"a": 0, "b": 0, "c": 1, "y": 1} | trial.do)
        course.follow()
    again = Course(experiment, number_of(experiment))
    again.follow()
    assert course.stretches == again.stretches
    assert [p.position for p in course.points] == [p.position for p in again.points]
    assert [p.estimates for p in course.points] == [p.estimates for p in again.points]


@pytest.mark.parametrize("points", [4, 64])
def test_what_was_known_then_is_known_again(experiment, points, monkeypatch):
    monkeypatch.setattr(module, "POINTS", points)
    course = Course(experiment, number_of(experiment))
    course.follow()
    assert len(course.points) <= points
    closed = experiment.storage.closed_since(number_of(experiment), 0)
    for position in (0, 1, 37, 96, len(closed) - 1, len(closed), len(closed) + 5):
        then = Replica(experiment.definition, experiment.columns)
        then.follow(closed[:position])
        known = course.at(position)
        assert known.position == min(position, len(closed))
        assert known.learner.rounds == then.learner.rounds
        assert known.estimates == edge_estimates(then.learner)
    kept = [known.position for known in course.history()]
    assert kept == sorted(set(kept))
    assert kept[-1] == len(closed)


def test_a_long_log_is_shown_at_the_positions_that_are_kept(experiment, monkeypatch):
    monkeypatch.setattr(module, "EXACT", 50)
    monkeypatch.setattr(module, "POINTS", 8)
    course = Course(experiment, number_of(experiment))
    course.follow()
    kept = {point.position for point in course.points}
    for position in range(course.position):
        at = course.at(position).position
        assert at == max(p for p in kept if p <= position)
    assert math.log2(course.stride) % 1 == 0


def test_sets_are_counted_most_frequent_first(experiment):
    course = Course(experiment, number_of(experiment))
    course.follow()
    texts, different = course.sets(2)
    counts = {}
    for trial in experiment.stored_trials():
        if trial.position is not None:
            counts[trial.do] = counts.get(trial.do, 0) + 1
    assert different == len(counts)
    assert [counts[text] for text in texts] == sorted(counts.values(), reverse=True)[:2]
