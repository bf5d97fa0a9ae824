"""Trials that the suite of storages stores, and short ways to store them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from dobandit.rows.stored_trial import ASKED, FAILED, IMPORTED, RECORDED, TOLD, StoredTrial
from dobandit.storage.contract import Storage

T = TypeVar("T")
ASK = StoredTrial(0, ASKED, "[null,1]", why="because")
SEEN = StoredTrial(0, RECORDED, "[null,null]", state=TOLD, observation="[0,1]", closed_at=5.0)
BATCH = SEEN._replace(observation="[[0,0],[0,1]]", counts="[980,20]", rounds=1000)
FULL = StoredTrial(
    number=0,
    source=IMPORTED,
    do="[1,null]",
    asked_after=3,
    available='["X1","Ü"]',
    predicted=0.1 + 0.2,
    low=-1e-300,
    high=math.inf,
    optimistic=1e300,
    why="Ünïcode ' \" ; -- \n \\ %s :x ? 🎲",
    asked_at=1700000000.123456,
    lease_expires=1700000060.1,
    issued=7,
    state=FAILED,
    position=0,
    observation="[1,null]",
    closed_at=1700000001.7,
    late=True,
    partial=True,
    reason="it rained",
    context="[null,0]",
    size=1000,
    control=True,
    counts="[1,2]",
    rounds=2_000_000_000,
)


class UndoneError(Exception):
    """Raised in a block, so that nothing of it is stored."""


def spring_in(storage: Storage) -> int:
    """A new experiment."""
    return storage.create("spring", "{}", 1.5).id


def add(storage: Storage, experiment: int, *trials: StoredTrial) -> int:
    with storage.writing(experiment) as writer:
        return writer.add(trials)


def close(storage: Storage, experiment: int, number: int, **changes: object) -> int:
    """Close a pending trial; as told, unless the changes say otherwise."""
    with storage.writing(experiment) as writer:
        return writer.close(there(writer.trial(number))._replace(**{"state": TOLD, **changes}))  # type: ignore[arg-type]


def there(found: T | None) -> T:
    assert found is not None
    return found


@contextmanager
def refused(error: type[BaseException]) -> Iterator[None]:
    """The block must raise this error."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"{error.__name__} must be raised here, but nothing was refused.")
