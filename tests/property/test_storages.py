"""Whatever is done to them, all storages hold the same."""

import random

import pytest

from dobandit.errors import ExperimentError
from dobandit.experiment.storage import MemoryStorage, open_storage
from dobandit.experiment.storage.base import ABANDONED, ASKED, FAILED, IMPORTED, RECORDED, TOLD, StoredTrial

NAMES = ["spring", "Ünïcode ' ; DROP TABLE", "🎲", "a"]
WORDS = ["", "it's", "ß🎲", "line\nbreak", "%s :x ?", "[1,null]"]


class UndoneError(Exception):
    pass


def some_float(rng):
    return rng.choice([None, 0.0, -1.5, rng.random(), 10 ** rng.uniform(-300, 300)])


def some_trial(rng, number=0):
    state = rng.choice(["pending", "pending", TOLD, FAILED, ABANDONED])
    return StoredTrial(
        number=number,
        source=rng.choice([ASKED, RECORDED, IMPORTED]),
        do=rng.choice(WORDS),
        asked_after=rng.randrange(100),
        available=rng.choice([None, *WORDS]),
        predicted=some_float(rng),
        low=some_float(rng),
        high=some_float(rng),
        optimistic=some_float(rng),
        why=rng.choice(WORDS),
        asked_at=some_float(rng),
        lease_expires=some_float(rng),
        issued=rng.randrange(1, 5),
        state=state,
        observation=rng.choice([None, *WORDS]),
        closed_at=some_float(rng),
        late=rng.random() < 0.5,
        partial=rng.random() < 0.5,
        reason=rng.choice([None, *WORDS]),
    )


def write(storage, experiment, rng):
    """A block of random steps, some of which are refused, and some blocks undone."""
    seen = []
    with storage.writing(experiment) as writer:
        for _ in range(rng.randrange(5)):
            step, number = rng.randrange(5), rng.randrange(writer.trials + 2)
            try:
                if step <= 1:
                    seen.append(writer.add([some_trial(rng) for _ in range(rng.randrange(4))]))
                elif step == 2:
                    writer.reissue(number, some_float(rng))
                else:
                    seen.append(writer.close(some_trial(rng, number)))
            except ExperimentError as error:
                seen.append((type(error), str(error)))
            since = rng.randrange(writer.closed + 1)
            seen += [writer.trials, writer.closed, list(writer.pending()), list(writer.closed_since(since))]
            seen.append(writer.trial(number))
        if rng.random() < 0.2:
            raise UndoneError
    return seen


def step(storage, rng):
    """One random call, and what came of it."""
    name, other = rng.choice(NAMES), rng.choice(NAMES)
    kind = rng.choice(["create", "rename", "delete"] + ["write"] * 8)
    try:
        if kind == "create":
            return storage.create(name, rng.choice(WORDS), rng.random())
        if kind == "rename":
            return storage.rename(name, other)
        if kind == "delete":
            return storage.delete(name) if rng.random() < 0.5 else None
        found = storage.find(name)
        return found and write(storage, found.id, rng)
    except (ExperimentError, UndoneError) as error:
        return type(error), str(error).replace(storage.url, "")


def contents(storage):
    return [
        (experiment, list(storage.rows(experiment.id)), list(storage.closed_since(experiment.id, 0)))
        for experiment in storage.experiments()
    ]


def without_ids(found):
    return [(experiment._replace(id=0), rows, closed) for experiment, rows, closed in found]


@pytest.fixture(scope="module")
def database(postgres_server):
    return postgres_server.new_database()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("seed", range(8))
def test_every_storage_does_as_memory_does(kind, seed, tmp_path, request):
    url = f"{tmp_path}/spring.db" if kind == "sqlite" else request.getfixturevalue("database")
    memory, stored = MemoryStorage(), open_storage(url)
    for experiment in stored.experiments():
        stored.delete(experiment.name)
    for number in range(60):
        one, two = random.Random(f"{seed} {number}"), random.Random(f"{seed} {number}")
        expected, got = step(memory, one), step(stored, two)
        if hasattr(got, "_replace"):
            expected, got = expected._replace(id=0), got._replace(id=0)
        assert got == expected
        if number % 10 == 9:
            assert without_ids(contents(stored)) == without_ids(contents(memory))
    before = contents(stored)
    assert any(rows for _, rows, _ in before)
    stored.close()
    again = open_storage(url)
    assert contents(again) == before
    again.close()
