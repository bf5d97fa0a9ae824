"""What every storage must do for many at once, where something fails half-way, and with what it keeps beside the log:
tokens, answers to requests, the audit. A part of `StorageSuite`, with the trials that the suite stores and short ways
to store them."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from dobandit.errors import ConflictError, ExperimentError
from dobandit.rows.stored_trial import ASKED, FAILED, IMPORTED, RECORDED, TOLD, StoredTrial
from dobandit.storage.access import AuditLine, Books, KeptAnswer, StoredToken
from dobandit.storage.contract import Storage, Written, entering

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
_TOKEN = StoredToken(0, "Ünïcode '; 🎲", "work", None, "ab" * 32, 1700000000.25)
_ANSWER = KeptAnswer("token 1", "a key", "cd" * 32, '{"trials": ["🎲"]}', 5.5)
_LINE = AuditLine(0, 7.25, "token 1", "ask", 3, "spring", "trial 0")


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


class TransactionSuite:
    """Every method gets a storage without experiments; its books may hold what earlier ones entered."""

    def test_an_exception_undoes_the_whole_block(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, ASK, ASK, ASK, SEEN)
        close(storage, spring, 1)
        before, stored = list(storage.rows(spring)), storage.find("spring")

        def block(error: type[BaseException]) -> None:
            with storage.writing(spring) as writer:
                writer.reissue(2, 5.0)
                writer.close(ASK._replace(number=2, state=TOLD))
                writer.reissue(0, 6.0)
                writer.add([ASK, SEEN])
                writer.reissue(4, 7.0)
                writer.close(ASK._replace(number=4, state=FAILED))
                raise error

        for error in (ValueError, KeyboardInterrupt):
            with refused(error):
                block(error)
            assert (list(storage.rows(spring)), storage.find("spring")) == (before, stored)
        with storage.writing(spring) as writer:
            assert [trial.number for trial in writer.pending()] == [0, 2]
            assert [trial.number for trial in writer.closed_since(0)] == [3, 1]
            assert writer.add([ASK]) == 4

    def test_rows_are_of_one_moment(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, *[ASK, SEEN] * 5)
        before = list(storage.rows(spring))
        rows = storage.rows(spring)
        got = [next(rows)]
        for number in (0, 8, 2):
            close(storage, spring, number, state=FAILED, reason="rain", late=True, partial=True, closed_at=1.0)
        add(storage, spring, SEEN)
        assert got + list(rows) == before

    def test_an_abandoned_iteration_holds_nothing(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, *[SEEN] * 10)
        rows = storage.rows(spring)
        next(rows)
        storage.delete("spring")

    def test_threads_take_turns(self, storage: Storage) -> None:
        spring = spring_in(storage)
        other = storage.create("other", "{}", 1.0).id
        numbers: list[int] = []
        errors: list[Exception] = []

        def work() -> None:
            try:
                for _ in range(50):
                    with storage.writing(spring) as writer:
                        first = writer.trials
                        numbers.append(writer.add([ASK]))
                        assert numbers[-1] == first
                        writer.close(there(writer.trial(first))._replace(state=TOLD))
                    storage.closed_since(spring, first)
                add(storage, other, SEEN)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert sorted(numbers) == list(range(200))
        assert [(trial.number, trial.position) for trial in storage.rows(spring)] == [(i, i) for i in range(200)]
        assert storage.counters(other) == (4, 4)

    def test_a_storage_can_be_used_after_it_was_closed(self, storage: Storage) -> None:
        spring = spring_in(storage)
        storage.close()
        assert add(storage, spring, ASK) == 0
        storage.close()
        assert there(storage.find("spring")).trials == 1

    # -- tokens, answers and the audit ---------------------------------------------------------------------------

    def test_a_token_is_kept_until_it_is_revoked(self, storage: Storage) -> None:
        with storage.booking() as books:
            first = books.add_token(_TOKEN)
            second = books.add_token(_TOKEN._replace(scope="read", experiment=7, expires_at=9.5))
        assert first != second
        assert storage.token(first) == _TOKEN._replace(id=first)
        assert [token.id for token in storage.tokens()][-2:] == [first, second]
        with storage.booking() as books:
            assert books.revoke_token(second, 8.0)
            assert not books.revoke_token(second + 1000, 8.0)
        with storage.booking() as books:
            assert not books.revoke_token(second, 8.5)
        revoked = storage.token(second)
        assert revoked == _TOKEN._replace(id=second, scope="read", experiment=7, expires_at=9.5, revoked_at=8.0)
        assert storage.token(second + 1000) is None

    def test_an_answer_is_stored_with_the_deed_or_not_at_all(self, storage: Storage) -> None:
        spring = spring_in(storage)
        key = f"key of {spring}"
        answer = _ANSWER._replace(key=key)

        def undone() -> None:
            with storage.writing(spring) as writer:
                writer.add([SEEN])
                writer.keep_answer(answer)
                writer.note(_LINE._replace(experiment=spring))
                raise UndoneError

        with refused(UndoneError):
            undone()
        assert storage.answer("token 1", key) is None
        assert list(storage.audit(experiment=spring)) == []
        with storage.writing(spring) as writer:
            writer.add([SEEN])
            writer.keep_answer(answer)
            writer.note(_LINE._replace(experiment=spring))
        assert storage.answer("token 1", key) == answer
        assert storage.answer("token 2", key) is None
        with refused(ConflictError), storage.writing(spring) as writer:
            writer.add([SEEN])
            writer.keep_answer(answer._replace(answer="another"))
        assert there(storage.find("spring")).trials == 1

    def test_answers_are_forgotten_in_time(self, storage: Storage) -> None:
        with storage.booking() as books:
            books.forget_answers(1e9)
            books.keep_answer(_ANSWER._replace(key="old", at=1.0))
            books.keep_answer(_ANSWER._replace(key="new", at=2.0))
        with storage.booking() as books:
            assert books.forget_answers(2.0) == 1
        assert storage.answer("token 1", "old") is None
        assert storage.answer("token 1", "new") is not None
        with storage.booking() as books:
            books.forget_answers(1e9)

    def test_every_change_may_enter_a_line(self, storage: Storage) -> None:
        def enter(written: Written, books: Books) -> None:
            detail = "" if written.stored is None else str(written.stored.trials)
            books.note(_LINE._replace(experiment=written.experiment, what=str(len(written.trials)), detail=detail))

        with entering(enter):
            created = storage.create("spring", "{}", 1.5, [SEEN, SEEN])
            with storage.writing(created.id) as writer:
                writer.add([ASK])
                writer.reissue(2, None)
                writer.close(SEEN._replace(number=2))
            with storage.writing(created.id):
                pass  # nothing is written, so nothing is entered
            storage.rename("spring", "summer")
            assert (created.trials, created.closed) == (2, 2)
            assert [trial.number for trial in storage.rows(created.id)] == [0, 1, 2]
            storage.delete("summer")
        lines = storage.audit(experiment=created.id)
        assert [(line.what, line.detail) for line in lines] == [("2", "2"), ("3", ""), ("0", "3"), ("0", "3")]
        assert [line.number for line in lines] == sorted({line.number for line in lines})

        def fail(written: Written, books: Books) -> None:
            enter(written, books)
            raise UndoneError

        with entering(fail), refused(UndoneError):
            storage.create("spring", "{}", 1.5, [SEEN])
        assert storage.find("spring") is None
        kept = storage.create("spring", "{}", 1.5)
        with entering(fail), refused(UndoneError):
            storage.rename("spring", "winter")
        with entering(fail), refused(UndoneError):
            storage.delete("spring")
        with entering(fail), refused(UndoneError), storage.writing(kept.id) as writer:
            writer.add([SEEN])
        with entering(enter), refused(ExperimentError):
            storage.delete("nothing")
        assert storage.find("spring") == kept
        assert list(storage.audit(experiment=kept.id)) == []

    def test_the_audit_comes_in_pages(self, storage: Storage) -> None:
        before = storage.audit(most=10**9)
        entered = [_LINE._replace(at=float(i), experiment=None, name=None) for i in range(7)]
        start = before[-1].number if before else 0
        with storage.booking() as books:
            for line in entered:
                books.note(line)
        found: list[AuditLine] = []
        after = start
        while page := storage.audit(after, 3):
            assert len(page) <= 3
            found += page
            after = page[-1].number
        assert [line._replace(number=0) for line in found] == entered
