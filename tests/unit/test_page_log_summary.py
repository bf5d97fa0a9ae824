"""The pages of an experiment: sums over the log agree with the log, and what was known then is known again."""

import numpy as np
import pytest

from dobandit import CausalGraph, create_experiment, open_experiment
from dobandit.experiment.answers import edge_estimates
from dobandit.experiment.replayed_learner import ReplayedLearner
from dobandit.service.page_cache import PageCache
from dobandit.storage import MemoryStorage
from helpers.experiments import rounds_learned

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
    rows = sorted((t for t in experiment.log.stored_trials() if t.position is not None), key=lambda t: t.position)[
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


def check(cache, experiment):
    for i, stretch in enumerate(cache.stretches.every):
        wanted = direct(experiment, i * cache.stretches.width, (i + 1) * cache.stretches.width)
        found = (stretch.trials, stretch.rounds, stretch.total, stretch.foretold, stretch.predicted)
        assert found == pytest.approx(wanted)
        assert sum(stretch.tried.values()) == stretch.trials


def test_stretches_are_sums_over_the_log(experiment):
    cache = PageCache(experiment)
    cache.follow()
    assert cache.position == sum(t.position is not None for t in experiment.log.stored_trials())
    assert cache.stretches.width > 1
    assert 48 <= len(cache.stretches.every) <= 96
    check(cache, experiment)


def test_pages_that_follows_in_steps_is_the_same():
    experiment = played(3)
    cache = PageCache(experiment)
    for _ in range(20):
        trial = experiment.ask()
        experiment.tell(trial, {"a": 0, "b": 0, "c": 1, "y": 1} | trial.do)
        cache.follow()
    again = cache_of(experiment)
    assert cache.stretches.every == again.stretches.every
    assert [(p.position, p.estimates) for p in cache.history] == [(p.position, p.estimates) for p in again.history]


def cache_of(experiment):
    """Read anew, by an object that knows nothing yet."""
    fresh = PageCache(open_experiment("spring", experiment.storage))
    fresh.follow()
    return fresh


def test_what_was_known_then_is_known_again_at_every_round(experiment):
    cache = cache_of(experiment)
    closed = experiment.storage.closed_since(number_of(experiment), 0)
    positions = (*range(len(closed) + 6), 96, 1, 37, 0, len(closed) - 1, len(closed))
    then = ReplayedLearner(experiment.definition, experiment.columns)
    for position in positions:
        if position < then.position:
            then = ReplayedLearner(experiment.definition, experiment.columns)
        then.add(closed[then.position : position])
        found = cache.at(position)
        assert found.position == min(position, len(closed))
        assert found.rounds == then.learner.rounds
        assert found.estimates == edge_estimates(then.learner)
    kept = [one.position for one in cache.history]
    assert kept == sorted(set(kept))
    assert kept[0] == 0
    assert kept[-1] == len(closed)
    assert len(kept) <= 64 + 2


def test_how_much_is_learned_anew_is_bounded(experiment, monkeypatch):
    """Between two places that are kept: the length of the log over half of their number."""
    cache = cache_of(experiment)
    learned = rounds_learned(monkeypatch)
    for position in np.random.default_rng(0).permutation(cache.position).tolist():
        learned.clear()
        assert cache.at(position).position == position
        assert sum(learned) <= cache.position / 32


def test_sets_are_counted_most_frequent_first(experiment):
    cache = cache_of(experiment)
    texts, different = cache.stretches.sets(2)
    counts = {}
    for trial in experiment.log.stored_trials():
        if trial.position is not None:
            counts[trial.do] = counts.get(trial.do, 0) + 1
    assert different == len(counts)
    assert [counts[text] for text in texts] == sorted(counts.values(), reverse=True)[:2]


def test_rounds_are_counted_by_context():
    graph = CausalGraph([("a", "y"), ("m", "y"), ("n", "y")], target="y", controllable=["a"], context=["m", "n"])
    experiment = create_experiment("spring", graph, budget=1, storage=MemoryStorage(), seed=0)
    wanted, cache = {}, PageCache(experiment)
    assert cache.contexts == ((), 0, 0)
    for k in range(30):
        known, size = (k % 3 % 2, k % 5 % 2), 1 + k % 4
        trial = experiment.ask(context={"m": known[0], "n": known[1]}, size=size)
        if k % 7 == 2:
            experiment.tell_failed(trial.number)
            continue
        experiment.tell(trial, [{"a": 0, **trial.do, "y": 1, "count": size}, {"a": 0, **trial.do, "y": 0}])
        wanted[known] = wanted.get(known, 0) + size + 1
        cache.follow()
    experiment.record({"a": 1}, {"m": 1, "y": 0})  # of which the context is not wholly known
    cache.follow()
    found = {tuple(context.values()): rounds for context, rounds in cache.contexts.most}
    assert found == wanted
    assert list(found.values()) == sorted(wanted.values(), reverse=True)
    assert cache.contexts[1:] == (4, sum(wanted.values()) + 1)
    assert cache.stretches.rounds_in({"m": 1.0, "n": 0.0}) == wanted[1, 0]
    assert cache_of(experiment).contexts == cache.contexts
