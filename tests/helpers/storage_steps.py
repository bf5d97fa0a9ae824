"""Random calls to a storage, for the comparison of two: the same random numbers make the same calls."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, get_type_hints

from dobandit.errors import ExperimentError
from dobandit.rows.stored_trial import ABANDONED, ASKED, FAILED, IMPORTED, PENDING, RECORDED, TOLD, StoredTrial
from dobandit.storage.contract import Storage
from dobandit.testing.storage_transactions import UndoneError

_NAMES = ["spring", "Ünïcode ' ; DROP TABLE", "🎲", "a"]
_WORDS = ["", "it's", "ß🎲", "line\nbreak", "%s :x ?", "[1,null]"]


def random_step(storage: Storage, rng: random.Random) -> Any:
    """One random call, and what came of it, without the ids of experiments, which differ between storages."""
    name, other = rng.choice(_NAMES), rng.choice(_NAMES)
    kind = rng.choice(["create", "rename", "delete"] + ["write"] * 8)
    try:
        if kind == "create":
            return storage.create(name, rng.choice(_WORDS), rng.random())._replace(id=0)
        if kind == "rename":
            return storage.rename(name, other)
        if kind == "delete":
            return storage.delete(name) if rng.random() < 0.5 else None
        found = storage.find(name)
        return found and _block(storage, found.id, rng)
    except (ExperimentError, UndoneError) as error:
        return type(error)


def contents(storage: Storage) -> list[Any]:
    """All that a storage holds, without ids."""
    return [
        (experiment._replace(id=0), list(storage.rows(experiment.id)), list(storage.closed_since(experiment.id, 0)))
        for experiment in storage.experiments()
    ]


def _block(storage: Storage, experiment: int, rng: random.Random) -> list[Any]:
    """A block of random steps, some of which are refused, and some blocks undone."""
    seen: list[Any] = []
    with storage.writing(experiment) as writer:
        for _ in range(rng.randrange(5)):
            step, number = rng.randrange(5), rng.randrange(writer.trials + 2)
            try:
                if step <= 1:
                    seen.append(writer.add([_some_trial(rng) for _ in range(rng.randrange(4))]))
                elif step == 2:
                    writer.reissue(number, _some_float(rng))
                else:
                    seen.append(writer.close(_some_trial(rng, number)))
            except ExperimentError as error:
                seen.append(type(error))
            since = rng.randrange(writer.closed + 1)
            seen += [writer.trials, writer.closed, list(writer.pending()), list(writer.closed_since(since))]
            seen.append(writer.trial(number))
        if rng.random() < 0.2:
            raise UndoneError
    return seen


def _some_float(rng: random.Random) -> float | None:
    return rng.choice([None, 0.0, -1.5, rng.random(), 10 ** rng.uniform(-300, 300)])


def _some_trial(rng: random.Random, number: int = 0) -> StoredTrial:
    """A trial with random values in every field."""
    by_type: dict[Any, Callable[[], Any]] = {
        int: lambda: rng.randrange(1, 1000),
        bool: lambda: rng.random() < 0.5,
        str: lambda: rng.choice(_WORDS),
        str | None: lambda: rng.choice([None, *_WORDS]),
        float | None: lambda: _some_float(rng),
        int | None: lambda: None,  # the position, which the storage gives
    }
    fields = {name: by_type[kind]() for name, kind in get_type_hints(StoredTrial).items()}
    states = PENDING, PENDING, TOLD, FAILED, ABANDONED
    chosen = {"number": number, "source": rng.choice([ASKED, RECORDED, IMPORTED]), "state": rng.choice(states)}
    return StoredTrial(**fields | chosen)
