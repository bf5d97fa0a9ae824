"""A storage that enters, with everything that is done to it, who did it, and the answer where the request had a key.

What is being done is said by `doing`, around the call of an experiment's method: the line of the audit and the answer
are then stored in the very transaction of the deed. A deed that was done before under its key is not done again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from dobandit.experiment.storage.base import Storage, StoredExperiment, StoredTrial, Within, Writer
from dobandit.experiment.storage.books import AuditLine, Books, KeptAnswer
from dobandit.service.problems import Refusal

_doing: ContextVar[Deed | None] = ContextVar("doing", default=None)


class AnsweredError(Exception):
    """The deed was done before, under the same key; nothing was done now."""

    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.answer = answer


@dataclass
class Deed:
    """What a visitor does.

    owner, key, digest  of the request, where it may be repeated
    answer              what is answered, from the experiment or trials that were written; None: nothing is kept
    """

    who: str
    what: str
    now: float
    owner: str = ""
    key: str | None = None
    digest: str = ""
    answer: Callable[[Any], Any] | None = None
    name: str | None = None  # of the experiment
    text: str | None = field(default=None, init=False)  # the answer as JSON

    def refuse_repetition(self, kept: KeptAnswer | None) -> None:
        """Raises AnsweredError where this was done, and a Refusal where another deed has its key."""
        if kept is not None:
            if kept.digest != self.digest:
                raise Refusal(
                    422,
                    f"an Idempotency-Key belongs to one request, but {self.key!r} came with another one before. Take a "
                    "new key for a new request.",
                    error="ConflictError",
                )
            raise AnsweredError(kept.answer)

    def enter(self, books: Books, experiment: int, name: str | None, written: Any, detail: str) -> None:
        """The line of the audit, and the answer."""
        books.note(AuditLine(0, self.now, self.who, self.what, experiment, name, detail))
        if self.answer is not None:
            self.text = dumped(self.answer(written))
            if self.key is not None:
                books.keep_answer(KeptAnswer(self.owner, self.key, self.digest, self.text, self.now))


@contextmanager
def doing(deed: Deed) -> Iterator[None]:
    """What is written inside is this deed."""
    token = _doing.set(deed)
    try:
        yield
    finally:
        _doing.reset(token)


class AuditedStorage:
    """A storage around another one."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    @contextmanager
    def writing(self, experiment: int) -> Iterator[Writer]:
        deed = _doing.get()
        with self._storage.writing(experiment) as writer:
            if deed is None:
                yield writer
                return
            if deed.key is not None:
                deed.refuse_repetition(writer.answered(deed.owner, deed.key))
            watching = _Watching(writer)
            yield cast(Writer, watching)
            if watching.touched:
                deed.enter(writer, experiment, deed.name, watching.written, _trials(watching.touched))

    def create(
        self,
        name: str,
        document: str,
        created_at: float,
        trials: Sequence[StoredTrial] = (),
        within: Within | None = None,
    ) -> StoredExperiment:
        return self._storage.create(name, document, created_at, trials, within or _entered(f"{len(trials)} trials"))

    def rename(self, name: str, new: str, within: Within | None = None) -> None:
        self._storage.rename(name, new, within or _entered(f"now {new}"))

    def delete(self, name: str, within: Within | None = None) -> None:
        self._storage.delete(name, within or _entered(""))


Storage.register(AuditedStorage)


def audited(storage: Storage) -> Storage:
    return cast(Storage, AuditedStorage(storage))


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
    deed = _doing.get()
    if deed is None:
        return None
    return lambda stored, books: deed.enter(books, stored.id, stored.name, stored, detail)
