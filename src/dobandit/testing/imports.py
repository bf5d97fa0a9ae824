"""What every storage must do with trials that enter the log together: a part of `StorageSuite`."""

from __future__ import annotations

import math
from typing import Any

from dobandit.errors import ConflictError
from dobandit.experiment.storage.base import FAILED, IMPORTED, STATES, TOLD, Arrival, Storage, StoredTrial
from dobandit.testing.random_steps import UndoneError
from dobandit.testing.refusing import refused
from dobandit.testing.stored import ASK, add

_ROUND = StoredTrial(0, IMPORTED, "[1,null]", state=TOLD, observation="[1,0]", closed_at=1700000000.123456)
_OTHERS = [
    _ROUND._replace(do="[null,null]", observation="[0,1]"),
    _ROUND._replace(observation="[[1,0],[1,1]]", counts="[980,20]", rounds=1000),
    _ROUND._replace(observation="[1,null]", partial=True),
    _ROUND._replace(why="Ünïcode ' \" ; -- \n \\ %s :x ? 🎲", low=-1e-300, high=float("inf"), closed_at=0.1 + 0.2),
]
_FIELDS = ("position", "number", "source", "do", "observation", "counts", "rounds", "partial", "closed_at", "late")


def _rounds(count: int) -> list[StoredTrial]:
    """Rounds of which some are equal, plain ones in between."""
    return [_ROUND if i % 3 else _OTHERS[i // 3 % 4] for i in range(count)]


def everything(storage: Storage, experiment: int) -> list[Any]:
    """All that can be read of a log, in every way in which it can be read."""
    trials, closed = storage.counters(experiment)
    places = sorted({*(place for place in (0, 1, 4, 7, 8, 11) if place < trials), trials - 1, trials, trials + 3})
    return [
        (trials, closed),
        [storage.trial(experiment, number) for number in range(-1, trials + 1)],
        list(storage.closed_since(experiment, 0)),
        [list(storage.closed_since(experiment, place, most)) for place in places for most in (1, 6, 99)],
        [list(storage.closed_fields(experiment, place, most, _FIELDS)) for place in places for most in (1, 6, 99)],
        [groups_of(storage, experiment, place, most) for place in places for most in (1, 6, 99)],
        [list(storage.rows(experiment, place, most)) for place in places for most in (None, 0, 1, 6)],
        [
            list(storage.rows(experiment, place, most, state))
            for place in places[::2]
            for most in (None, 6)
            for state in STATES
        ],
        [list(storage.last(experiment, count, state)) for count in (0, 1, 6, 99) for state in (None, *STATES)],
    ]


def groups_of(storage: Storage, experiment: int, position: int, most: int) -> dict[tuple[Any, ...], tuple[int, float]]:
    """How often fields have which values, and until when: as the storage says, compared with the trials one by one."""
    fields = ("source", "state", "do", "observation", "counts", "rounds")
    found: dict[tuple[Any, ...], tuple[int, float]] = {}
    for *values, times, latest in storage.closed_groups(experiment, position, most, fields):
        before, until = found.get(tuple(values), (0, -math.inf))
        found[tuple(values)] = before + times, max(until, -math.inf if latest is None else latest)
    plain: dict[tuple[Any, ...], tuple[int, float]] = {}
    for *values, closed_at in storage.closed_fields(experiment, position, most, (*fields, "closed_at")):
        before, until = plain.get(tuple(values), (0, -math.inf))
        plain[tuple(values)] = before + 1, max(until, -math.inf if closed_at is None else closed_at)
    assert found == plain
    return found


class ImportsSuite:
    """Every method gets a storage without experiments."""

    def test_staged_trials_are_unseen_until_all_are_seen(self, storage: Storage) -> None:
        """What is written meanwhile comes before them. Published, they are as those that are added one by one."""
        spring, other = (storage.create(name, "{}", 1.5).id for name in ("spring", "other"))
        first, second = _rounds(17), _rounds(8)
        for before in ([], [ASK, _ROUND, ASK]):
            add(storage, spring, *before)
            for trials in (first, second):
                arrival = storage.stage(spring, trials)
                add(storage, spring, ASK, _ROUND)
                _close(storage, spring)
                with storage.writing(spring) as writer:
                    number = writer.publish(arrival)
                    assert (writer.trials, number) == (storage_size(writer), writer.trials - len(trials))
                assert storage.counters(spring)[0] == number + len(trials)
            for trials in (first, second):
                add(storage, other, *(before if trials is first else []))
                add(storage, other, ASK, _ROUND)
                _close(storage, other)
                for trial in trials:
                    add(storage, other, trial)
            assert everything(storage, spring) == everything(storage, other)

    def test_nothing_of_staged_trials_is_seen(self, storage: Storage) -> None:
        spring = storage.create("spring", "{}", 1.5).id
        add(storage, spring, ASK, _ROUND)
        before = everything(storage, spring)
        arrival = storage.stage(spring, _rounds(9))
        assert everything(storage, spring) == before
        for error in (UndoneError, KeyboardInterrupt):
            with refused(error):
                _undone(storage, spring, arrival, error, (2, 1))
            assert everything(storage, spring) == before
        storage.discard(arrival)
        assert everything(storage, spring) == before
        again = storage.stage(spring, _rounds(9))
        with storage.writing(spring) as writer:
            assert writer.publish(again) == 2
        storage.discard(again)  # which is published, and stays
        assert storage.counters(spring) == (11, 10)
        storage.delete("spring")
        assert storage.trial(spring, 5) is None

    def test_a_writer_sees_what_it_published(self, storage: Storage) -> None:
        spring = storage.create("spring", "{}", 1.5).id
        add(storage, spring, ASK, _ROUND)
        arrival = storage.stage(spring, _rounds(9))
        with storage.writing(spring) as writer:
            writer.publish(arrival)
            assert [trial.number for trial in writer.closed_since(0)] == list(range(1, 11))
            assert [trial.position for trial in writer.closed_since(4)] == list(range(4, 10))
            found = writer.trial(5)
            assert found == _rounds(9)[3]._replace(number=5, position=4)
            for refusing in (
                lambda: writer.reissue(5, None),
                lambda: writer.close(ASK._replace(number=5, state=FAILED)),
            ):
                with refused(ConflictError):
                    refusing()
            assert writer.add([_ROUND]) == 11
            assert [trial.number for trial in writer.pending()] == [0]
        assert storage.counters(spring) == (12, 11)

    def test_imports_of_so_many_rounds_are_found(self, storage: Storage) -> None:
        """Also that with which a log begins; not what was asked, recorded or undone."""
        past = [_ROUND._replace(observation="[[1,0],[0,0]]", counts="[2,4]", rounds=6, closed_at=1.0), _ROUND]
        spring = storage.create("spring", "{}", 1.5, [trial._replace(closed_at=1.0) for trial in past]).id
        for at, size in ((2.0, 7), (3.0, 4), (4.0, 7)):
            add(storage, spring, _ROUND._replace(source="recorded", closed_at=at), ASK)
            arrival = storage.stage(spring, [_ROUND._replace(closed_at=at)] * size)
            with refused(UndoneError):
                _undone(storage, spring, arrival, UndoneError, storage.counters(spring))
            with storage.writing(spring) as writer:
                writer.publish(arrival)
            _close(storage, spring)
        assert set(storage.imports_like(spring, 7, 7)) - {(0, 2)} == {(3, 7), (18, 7)}
        assert (0, 2) in storage.imports_like(spring, 2, 7)
        assert storage.imports_like(spring, 4, 4) == [(12, 4)]
        assert storage.imports_like(spring, 5, 5) == storage.imports_like(spring + 1, 7, 7) == []

    def test_any_trials_can_be_staged(self, storage: Storage) -> None:
        """Also failed ones, and such as wait for an observation."""
        spring, other = (storage.create(name, "{}", 1.5).id for name in ("spring", "other"))
        trials = [_ROUND, ASK, _ROUND._replace(state=FAILED, observation=None, reason="rain"), _ROUND] * 2
        arrival = storage.stage(spring, trials)
        with storage.writing(spring) as writer:
            assert writer.publish(arrival) == 0
        add(storage, other, *trials)
        assert everything(storage, spring) == everything(storage, other)


def storage_size(writer: Any) -> int:
    """How many trials a writer sees, one by one."""
    return sum(writer.trial(number) is not None for number in range(writer.trials + 2))


def _undone(
    storage: Storage, experiment: int, arrival: Arrival, error: type[BaseException], counters: tuple[int, int]
) -> None:
    """Publish in a block that is undone."""
    with storage.writing(experiment) as writer:
        assert writer.publish(arrival) == counters[0]
        assert len(writer.closed_since(0)) == counters[1] + len(arrival.trials)
        raise error


def _close(storage: Storage, experiment: int) -> None:
    """Close the last pending trial."""
    with storage.writing(experiment) as writer:
        writer.close(writer.pending()[-1]._replace(state=TOLD, observation="[1,1]"))
