"""A storage that enters, with every change, who made it, and the answer where the request had a key.

`making` says what is being changed, around the call of an experiment's method: the line of the audit and the answer are
then stored in the transaction of the change. A second change with the same key is refused, and nothing of it is stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from dobandit.rows.stored_trial import StoredTrial
from dobandit.storage.access import AuditLine, Books, KeptAnswer
from dobandit.storage.contract import Storage, StoredExperiment, Within, Writer

_making: ContextVar[Change | None] = ContextVar("making", default=None)


@dataclass
class Change:
    """What a visitor changes.

    name                of the experiment
    answer              what is answered, from the experiment or trials that were written; None: nothing is kept
    owner, key, digest  of the request, where it may be repeated
    """

    who: str
    what: str
    at: float
    name: str | None = None
    answer: Callable[[Any], Any] | None = None
    owner: str = ""
    key: str | None = None
    digest: str = ""
    text: str | None = field(default=None, init=False)  # the answer as JSON

    def enter(self, books: Books, experiment: int, name: str | None, written: Any, detail: str) -> None:
        """The line of the audit, and the answer."""
        books.note(AuditLine(0, self.at, self.who, self.what, experiment, name, detail))
        if self.answer is not None:
            self.text = dumped(self.answer(written))
            if self.key is not None:
                books.keep_answer(KeptAnswer(self.owner, self.key, self.digest, self.text, self.at))


@contextmanager
def making(change: Change) -> Iterator[None]:
    """What is written inside is this change."""
    token = _making.set(change)
    try:
        yield
    finally:
        _making.reset(token)


class AuditedStorage:
    """A storage around another one."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @contextmanager
    def writing(self, experiment: int) -> Iterator[Writer]:
        change = _making.get()
        with self._storage.writing(experiment) as writer:
            watching = _Watching(writer)
            yield cast(Writer, watching)
            if change is not None and watching.touched:
                change.enter(writer, experiment, change.name, watching.written, _trials(watching.touched))

    def create(self, name: str, document: str, at: float, trials: Sequence[StoredTrial] = ()) -> StoredExperiment:
        return self._storage.create(name, document, at, trials, _entered(f"{len(trials)} trials"))

    def rename(self, name: str, new: str) -> None:
        self._storage.rename(name, new, _entered(f"now {new}"))

    def delete(self, name: str) -> None:
        self._storage.delete(name, _entered(""))


Storage.register(AuditedStorage)


def dumped(document: Any) -> str:
    """JSON without NaN and infinity, which it has no words for."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class _Watching:
    """A writer that remembers what it wrote: `touched` has the numbers, `written` the trials that somebody gets."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.touched: list[int] = []
        self.written: list[StoredTrial] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def add(self, trials: Sequence[StoredTrial]) -> int:
        first = self._writer.add(trials)
        numbered = [trial._replace(number=number) for number, trial in enumerate(trials, first)]
        self.written += numbered
        self.touched += [trial.number for trial in numbered]
        return first

    def reissue(self, number: int, lease_expires: float | None) -> None:
        self._writer.reissue(number, lease_expires)
        trial = self._writer.trial(number)
        if trial is not None:
            self.written.append(trial)
        self.touched.append(number)

    def close(self, trial: StoredTrial) -> int:
        position = self._writer.close(trial)
        self.touched.append(trial.number)
        return position


def _trials(numbers: Sequence[int]) -> str:
    return f"trial {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} trials from {min(numbers)} on"


def _entered(detail: str) -> Within | None:
    change = _making.get()
    if change is None:
        return None
    return lambda stored, books: change.enter(books, stored.id, stored.name, stored, detail)
