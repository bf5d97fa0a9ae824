"""The house of a service: the log of an experiment is read once, and no more experiments are kept than there is room
for."""

import gc
import weakref

import numpy as np
import pytest

from dobandit import CausalGraph, create_experiment
from dobandit.errors import MissingError
from dobandit.experiment.storage import MemoryStorage
from dobandit.service.house import House
from dobandit.service.settings import Settings
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
def house(storage):
    return House(storage, Settings())


def made(storage, name, rounds=0):
    experiment = create_experiment(name, GRAPH, budget=1, storage=storage, seed=3)
    told(experiment, rounds)
    return storage.find(name).id


def test_no_more_experiments_are_kept_than_there_is_room_for(storage):
    house = House(storage, Settings(most_kept=3))
    ids = [made(storage, f"one {i}") for i in range(5)]
    first = house.experiment(ids[0])
    assert house.experiment(ids[0]) is house.at_work(ids[0]) is first
    old, second = house.pages(ids[0]), house.pages(ids[1])
    house.pages(ids[2])
    assert house.experiment(ids[0]) is first  # it was used meanwhile
    for one in ids[3:]:
        house.pages(one)
    assert house.pages(ids[0]) is old
    assert house.pages(ids[1]) is not second
    for one in ids[1:4]:
        house.at_work(one)
    assert house.experiment(ids[0]) is not first
    assert house.pages(ids[0]) is not old
    gone = weakref.ref(second)
    del second
    gc.collect()
    assert gone() is None  # a page of an experiment that had to make room is not kept either


def test_an_experiment_that_had_to_make_room_goes_on_where_it_was(storage):
    house = House(storage, Settings(most_kept=1))
    one, other = made(storage, "one"), made(storage, "other")
    undisturbed = create_experiment("undisturbed", GRAPH, budget=1, storage=MemoryStorage(), seed=3)
    rng = np.random.default_rng(1)
    for _ in range(12):
        trial, same = house.at_work(one).ask(), undisturbed.ask()
        assert (trial.do, trial.predicted, trial.why) == (same.do, same.predicted, same.why)
        house.at_work(other)
        seen = {name: int(rng.random() < 0.5) for name in "abcy"} | trial.do
        house.at_work(one).tell(trial, seen)
        undisturbed.tell(same, seen)
        house.experiment(other)
    assert house.experiment(one).recommend() == undisturbed.recommend()


def test_what_was_deleted_is_not_kept(house, storage):
    one = made(storage, "one")
    house.at_work(one)
    house.experiment(one)
    storage.delete("one")
    with pytest.raises(MissingError):
        house.experiment(one)
    with pytest.raises(MissingError):
        house.counted(one)


def test_the_log_is_read_once_for_asking_and_for_answering(house, storage, monkeypatch):
    one = made(storage, "one", 40)
    learned = rounds_learned(monkeypatch)
    asked = house.at_work(one).ask()
    answer = house.experiment(one).recommend()
    house.pages(one).follow()
    assert sum(learned) == 40
    monkeypatch.undo()
    same = create_experiment("same", GRAPH, budget=1, storage=MemoryStorage(), seed=3)
    told(same, 40)
    assert asked == same.ask()
    assert answer == same.recommend()
