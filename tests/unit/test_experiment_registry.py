"""The registry of a service: the log of an experiment is read once, and no more experiments are kept than there is room
for."""

import gc
import weakref

import numpy as np
import pytest

from dobandit import CausalGraph, create_experiment
from dobandit.errors import MissingError
from dobandit.service.experiment_registry import ExperimentRegistry
from dobandit.service.service_settings import Settings
from dobandit.storage import MemoryStorage
from helpers.experiments import rounds_learned

GRAPH = CausalGraph([("a", "c"), ("b", "c"), ("c", "y"), ("a", "y")], target="y")


def told(experiment, rounds, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        trial = experiment.ask()
        experiment.tell(trial, {name: int(rng.random() < 0.5) for name in "abcy"} | trial.do)


@pytest.fixture
def storage():
    return MemoryStorage()


@pytest.fixture
def registry(storage):
    return ExperimentRegistry(storage, Settings())


def made(storage, name, rounds=0):
    experiment = create_experiment(name, GRAPH, budget=1, storage=storage, seed=3)
    told(experiment, rounds)
    return storage.find(name).id


def test_no_more_experiments_are_kept_than_there_is_room_for(storage):
    registry = ExperimentRegistry(storage, Settings(most_kept=3))
    ids = [made(storage, f"one {i}") for i in range(5)]
    first = registry.experiment(ids[0])
    assert registry.experiment(ids[0]) is registry.pages(ids[0]).experiment is first
    old, second = registry.pages(ids[0]), registry.pages(ids[1])
    registry.pages(ids[2])
    assert registry.experiment(ids[0]) is first  # it was used meanwhile
    for one in ids[3:]:
        registry.pages(one)
    assert registry.pages(ids[0]) is old
    assert registry.pages(ids[1]) is not second
    for one in ids[1:4]:
        registry.experiment(one)
    assert registry.experiment(ids[0]) is not first
    assert registry.pages(ids[0]) is not old
    gone = weakref.ref(second)
    del second
    gc.collect()
    assert gone() is None  # a page of an experiment that had to make room is not kept either


def test_an_experiment_that_had_to_make_room_goes_on_where_it_was(storage):
    registry = ExperimentRegistry(storage, Settings(most_kept=1))
    one, other = made(storage, "one"), made(storage, "other")
    undisturbed = create_experiment("undisturbed", GRAPH, budget=1, storage=MemoryStorage(), seed=3)
    rng = np.random.default_rng(1)
    for _ in range(12):
        trial, same = registry.experiment(one).ask(), undisturbed.ask()
        assert (trial.do, trial.predicted, trial.why) == (same.do, same.predicted, same.why)
        registry.experiment(other)
        seen = {name: int(rng.random() < 0.5) for name in "abcy"} | trial.do
        registry.experiment(one).tell(trial, seen)
        undisturbed.tell(same, seen)
        registry.experiment(other)
    assert registry.experiment(one).recommend() == undisturbed.recommend()


def test_what_was_deleted_is_not_kept(registry, storage):
    one = made(storage, "one")
    registry.experiment(one)
    storage.delete("one")
    with pytest.raises(MissingError):
        registry.experiment(one)
    with pytest.raises(MissingError):
        registry.pages(one)


def test_the_log_is_read_once_for_asking_and_for_answering(registry, storage, monkeypatch):
    one = made(storage, "one", 40)
    learned = rounds_learned(monkeypatch)
    asked = registry.experiment(one).ask()
    answer = registry.experiment(one).recommend()
    registry.pages(one).follow()
    assert sum(learned) == 40
    monkeypatch.undo()
    same = create_experiment("same", GRAPH, budget=1, storage=MemoryStorage(), seed=3)
    told(same, 40)
    assert asked == same.ask()
    assert answer == same.recommend()
