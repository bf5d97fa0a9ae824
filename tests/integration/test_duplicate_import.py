"""Rounds that were imported before are imported again, and pointed out."""

import warnings

import pytest

from dobandit import CausalGraph, create_experiment
from dobandit.errors import DobanditWarning
from dobandit.storage import MemoryStorage, open_storage

GRAPH = CausalGraph([("ad", "visit"), ("visit", "buy")], target="buy", bias=["ad", "visit", "buy"])
ROWS = [{"do:ad": i % 2, "ad": i % 2, "visit": i % 3 % 2, "buy": i % 5 % 2} for i in range(50)]
SUMS = [
    {"do:ad": 1, "ad": 1, "visit": 1, "buy": 1, "count": 30},
    {"do:ad": 1, "ad": 1, "visit": 0, "buy": 0, "count": 20},
    {"do:ad": 0, "ad": 0, "visit": 0, "buy": 0, "count": 50},
]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def storage(request, tmp_path):
    if request.param == "postgresql":
        return open_storage(request.getfixturevalue("postgres_server").new_database())
    return MemoryStorage() if request.param == "memory" else open_storage(f"sqlite:///{tmp_path}/spring.db")


def brought(experiment, rows):
    """Which trials a warning names, if one came, and that the rounds are in the log all the same."""
    before = experiment.status().rounds
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DobanditWarning)
        numbers = experiment.import_history(rows)
    assert experiment.status().rounds == before + sum(row.get("count", 1) for row in rows)
    assert experiment.rounds_in(numbers) == sum(row.get("count", 1) for row in rows)
    said = [str(warning.message) for warning in caught if "imported before" in str(warning.message)]
    assert all(warning.filename == __file__ for warning in caught)
    return [text.split("imported before, as ")[1].split(",")[0] for text in said]


def test_the_same_rounds_twice(storage):
    experiment = create_experiment("spring", GRAPH, 1, storage=storage, seed=1)
    assert brought(experiment, ROWS) == []
    size = experiment.status().trials
    experiment.record({}, {"visit": 1, "buy": 1})
    assert brought(experiment, SUMS) == []  # twice as many rounds
    sums = experiment.status().trials
    assert brought(experiment, [*ROWS[:-1], ROWS[0]]) == []  # one of them differs
    assert brought(experiment, ROWS) == [f"trials 0 to {size - 1}"]
    assert brought(experiment, ROWS[::-1]) == [f"trials 0 to {size - 1}"]  # in another order
    assert brought(experiment, SUMS) == [f"trials {size + 1} to {sums - 1}"]
    assert brought(experiment, ROWS[:9]) == brought(experiment, ROWS[:9]) == []  # so few may be equal by chance
    numbered = [{**row, "trial.number": 7} for row in SUMS[:2]]
    assert brought(experiment, numbered) == []
    assert brought(experiment, numbered)[0].startswith("trial ")
    experiment.storage.close()


def test_what_the_log_began_with(storage):
    """A history is summed up and shuffled; they are the same rounds."""
    experiment = create_experiment("spring", GRAPH, 1, storage=storage, seed=1, history=ROWS)
    last = experiment.status().trials - 1
    assert brought(experiment, ROWS) == [f"trials 0 to {last}"]
    other = create_experiment("other", GRAPH, 1, storage=storage, seed=1)
    assert brought(other, ROWS) == []  # what another experiment has is its own affair
    experiment.storage.close()


def test_who_makes_an_error_of_it_imports_nothing():
    experiment = create_experiment("spring", GRAPH, 1, storage=MemoryStorage(), seed=1)
    size = len(experiment.import_history(ROWS))
    with pytest.raises(DobanditWarning, match="import the rest into a new experiment"):
        experiment.import_history(ROWS)
    assert experiment.status().trials == size
