"""What a storage offers. The trials of an experiment are its log, and nothing else is kept.

Trials are numbered 0, 1, 2, ... in the order in which they entered. A trial is pending until it is closed, once, as
told, failed or abandoned; closing gives it the next `position` 0, 1, 2, ... What a learner knows is a function of the
closed trials in the order of their positions. Rounds that nobody asked for enter closed.

Values are JSON arrays over the experiment's columns (its observed variables, in the order of its document), null where
a variable was not set or not seen: "[null,1,0]". A trial that was carried out many times over has its distinct rows,
"[[null,0,0],[null,1,0]]", and how often each was seen, "[980,20]". A storage keeps these texts and reads none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from dobandit.errors import StorageError
from dobandit.rows.stored_trial import ClosedTrial, StoredTrial
from dobandit.storage.access import AuditLine, Books, KeptAnswer, StoredToken

EVERY = 2**31 - 1  # trials: no limit


class StoredExperiment(NamedTuple):
    """An experiment as it is kept. `id` is never used twice, so that a name given anew is another experiment."""

    id: int
    name: str
    document: str  # JSON; never changes
    created_at: float  # seconds since 1970
    trials: int  # how many there are: the next number
    closed: int  # how many of them are closed: the next position

    def __repr__(self) -> str:
        """Without the document, which fills a screen."""
        return f"StoredExperiment(id={self.id}, name={self.name!r}, trials={self.trials}, closed={self.closed})"


class Writer(Books):
    """One experiment, with nobody else writing to it. What is done here is stored together, or not at all."""

    trials: int  # the next number
    closed: int  # the next position

    @abstractmethod
    def closed_since(self, position: int) -> Sequence[ClosedTrial]:
        """The closed trials from `position` on, in order."""

    @abstractmethod
    def pending(self) -> Sequence[StoredTrial]:
        """The pending trials, by number."""

    @abstractmethod
    def trial(self, number: int) -> StoredTrial | None:
        """One trial."""

    @abstractmethod
    def add(self, trials: Sequence[StoredTrial]) -> int:
        """Append trials; their numbers, and the positions of those that enter closed, are given here, in order,
        whatever they carry. Returns the first number."""

    @abstractmethod
    def reissue(self, number: int, lease_expires: float | None) -> None:
        """Hand a pending trial out again."""

    @abstractmethod
    def close(self, trial: StoredTrial) -> int:
        """Store what closing changes (CLOSING) of a pending trial, and give it the next position, which is returned."""


Fields = tuple[str, ...]  # names of fields of a trial
Values = Sequence[tuple[Any, ...]]  # theirs, of each trial


class Written(NamedTuple):
    """What a transaction changed of one experiment.

    trials  those that were added, handed out again or closed
    stored  the experiment, where it was created, renamed or deleted
    """

    experiment: int
    trials: Sequence[StoredTrial] = ()
    stored: StoredExperiment | None = None


_entering: ContextVar[Callable[[Written, Books], None] | None] = ContextVar("entering", default=None)


@contextmanager
def entering(enter: Callable[[Written, Books], None]) -> Iterator[None]:
    """In this block, every transaction that changes an experiment also stores what `enter` enters into its books."""
    token = _entering.set(enter)
    try:
        yield
    finally:
        _entering.reset(token)


def entered(written: Written, books: Books) -> None:
    """Called by storages at the end of a transaction that changed an experiment."""
    enter = _entering.get()
    if enter is not None:
        enter(written, books)


def page_of(
    experiments: Sequence[StoredExperiment], after: str | None, before: str | None, limit: int | None
) -> Sequence[StoredExperiment]:
    """The page that `Storage.experiments` gives, of all experiments by name."""
    found = [
        one for one in experiments if (after is None or one.name > after) and (before is None or one.name < before)
    ]
    if limit is None:
        return found
    return found[:limit] if before is None else found[max(len(found) - limit, 0) :]


class Storage(ABC):
    """Experiments by name. Every method is one transaction; errors of the database become StorageError.

    What the arguments of its methods are:
    experiment       an experiment's id;  name: its name;  document: its definition, as JSON
    number           a trial's;  position: its place among the closed trials, from 0;  most: how many at most
    now, until, created_at   seconds since 1970

    >>> from dobandit.storage import MemoryStorage
    >>> storage = MemoryStorage()
    >>> made = storage.create("spring", "{}", created_at=0.0)
    >>> storage.rename("spring", "summer")
    >>> storage.find("summer").id == made.id, storage.counters(made.id), storage.files()
    (True, (0, 0), ())
    >>> storage.delete("summer")
    >>> storage.experiments()
    []
    """

    url: str  # for people: without a password

    @abstractmethod
    def create(
        self, name: str, document: str, created_at: float, trials: Sequence[StoredTrial] = ()
    ) -> StoredExperiment:
        """A new experiment, whose log begins with `trials`. Raises TakenError where the name is taken."""

    @abstractmethod
    def experiments(
        self, after: str | None = None, before: str | None = None, limit: int | None = None
    ) -> Sequence[StoredExperiment]:
        """All of them, by name; or a page: the first `limit` behind `after`, or the last `limit` before `before`."""

    @abstractmethod
    def find(self, name: str) -> StoredExperiment | None:
        """The experiment of that name; None where there is none."""

    @abstractmethod
    def by_id(self, experiment: int) -> StoredExperiment | None:
        """The experiment of that id, which is never used twice, whatever its name is now; None where there is none."""

    @abstractmethod
    def rename(self, name: str, new: str) -> None:
        """Give it the name `new`. Raises MissingError where there is none, TakenError where that name is taken."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete it with all its trials. Raises MissingError where there is none."""

    @abstractmethod
    def writing(self, experiment: int) -> AbstractContextManager[Writer]:
        """Exclusive for this experiment, as short as possible; commits at the end, or undoes all on an exception.
        Raises ExperimentError where the experiment was deleted."""

    @abstractmethod
    def counters(self, experiment: int) -> tuple[int, int]:
        """How many trials there are, and how many of them are closed. Raises ExperimentError where the experiment was
        deleted."""

    @abstractmethod
    def closed_since(self, experiment: int, position: int, most: int = EVERY) -> Sequence[ClosedTrial]:
        """The first `most` closed trials from `position` on, in order, without keeping others out. Raises StorageError
        where what comes back is not what was stored."""

    @abstractmethod
    def closed_fields(self, experiment: int, position: int, most: int, fields: Fields) -> Values:
        """These fields of the first `most` closed trials from `position` on, in order, without keeping others out."""

    @abstractmethod
    def pending(self, experiment: int) -> Sequence[StoredTrial]:
        """The pending trials, by number, without keeping others out."""

    @abstractmethod
    def trial(self, experiment: int, number: int) -> StoredTrial | None:
        """The trial of that number; None where there is none."""

    @abstractmethod
    def rows(
        self, experiment: int, after: int = -1, limit: int | None = None, state: str | None = None
    ) -> Iterator[StoredTrial]:
        """Trials by number, of one moment, without holding them all in memory where that can be helped. Raises
        ExperimentError where the experiment was deleted.

        after  only trials with larger numbers: the last number of a page gives the next page
        limit  at most so many
        state  only trials in this state; a pending trial that is closed meanwhile may be left out
        """

    @abstractmethod
    def last(self, experiment: int, count: int, state: str | None = None) -> Sequence[StoredTrial]:
        """The `count` trials with the largest numbers, by number; only those in `state`, where one is given. Raises
        ExperimentError where the experiment was deleted."""

    @abstractmethod
    def tally(self, experiment: int) -> tuple[int, str] | None:
        """What `keep_tally` kept last: a position, and sums over the closed trials before it."""

    @abstractmethod
    def keep_tally(self, experiment: int, position: int, sums: str) -> None:
        """Keep sums over the first `position` closed trials, unless those that are kept reach further. Whoever finds
        none, or old ones, adds up the closed trials: they are there to save time, and nothing else."""

    # -- beside the log --------------------------------------------------------------------------------------------

    @abstractmethod
    def booking(self) -> AbstractContextManager[Books]:
        """A transaction about no experiment."""

    @abstractmethod
    def answer(self, owner: str, key: str) -> KeptAnswer | None:
        """What was answered under a key of its owner; None where nothing was."""

    @abstractmethod
    def token(self, token: int) -> StoredToken | None:
        """The token of that id; None where there is none."""

    @abstractmethod
    def tokens(self) -> Sequence[StoredToken]:
        """All of them, by id."""

    @abstractmethod
    def audit(self, after: int = 0, most: int = 1000, experiment: int | None = None) -> Sequence[AuditLine]:
        """At most `most` lines with numbers larger than `after`, in order; of one experiment, or of all."""

    def files(self) -> tuple[str, ...]:
        """The files that hold the log, which nothing else may write."""
        return ()

    def backup(self, target: Path) -> None:
        """Copy the storage, as it is at one moment, into a new file, while others go on writing to it."""
        raise StorageError(f"Only an SQLite file can be backed up, but got {self.url}. Export its trials.")

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""
