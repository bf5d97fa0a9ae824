"""What every storage must give to readers: pages, columns, counters, sums; a part of `StorageSuite`."""

from __future__ import annotations

from dobandit.errors import ExperimentError
from dobandit.experiment.storage.base import (
    ABANDONED,
    FAILED,
    STATES,
    TOLD,
    Storage,
)
from dobandit.testing.stored import ASK, BATCH, FULL, SEEN, add, close, refused, spring_in


class ReadingSuite:
    """Every method gets a storage without experiments."""

    def test_an_experiment_is_found_by_its_id(self, storage: Storage) -> None:
        spring = spring_in(storage)
        other = storage.create("other", "{}", 1.0)
        storage.rename("spring", "summer")
        add(storage, spring, ASK, SEEN)
        assert storage.by_id(spring) == storage.find("summer")
        storage.delete("summer")
        assert storage.by_id(spring) is None
        assert storage.by_id(other.id) == other
        assert storage.by_id(other.id + 1000) is None

    def test_pages_are_parts_of_the_whole(self, storage: Storage) -> None:
        """Every page, and every last few, by what Python says of the list of all rows."""
        spring = spring_in(storage)
        other = storage.create("other", "{}", 1.0).id
        add(storage, other, *[ASK, SEEN] * 3)
        add(storage, spring, *[ASK, SEEN, ASK, ASK] * 3)
        close(storage, spring, 8)
        close(storage, spring, 0, state=FAILED, reason="rain")
        close(storage, spring, 11, state=ABANDONED)
        every = list(storage.rows(spring))
        assert [trial.number for trial in every] == list(range(12))
        for state in (None, *STATES):
            some = [trial for trial in every if state in (None, trial.state)]
            assert list(storage.rows(spring, state=state)) == some
            for after in (-5, -1, 0, 4, 10, 11, 100):
                behind = [trial for trial in some if trial.number > after]
                assert list(storage.rows(spring, after, state=state)) == behind
                for limit in (0, 1, 2, 5, 100):
                    assert list(storage.rows(spring, after, limit, state)) == behind[:limit]
            for count in (0, 1, 2, 5, 100):
                assert list(storage.last(spring, count, state)) == some[max(len(some) - count, 0) :]

    def test_counters_pending_and_closed_trials(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, ASK, SEEN, ASK, BATCH)
        close(storage, spring, 2, observation="[1,1]")
        assert storage.counters(spring) == (4, 3)
        assert [trial.number for trial in storage.pending(spring)] == [0]
        closed = list(storage.closed_since(spring, 0))
        for position in (0, 1, 2, 3, 9):
            for most in (1, 2, 9):
                some = closed[position : position + most]
                assert list(storage.closed_since(spring, position, most)) == some
                assert bool(some) == (position < 3)
        storage.delete("spring")
        with refused(ExperimentError):
            storage.counters(spring)
        assert list(storage.pending(spring)) == []
        assert not storage.closed_since(spring, 0, 5)

    def test_trials_that_enter_together_are_as_those_that_enter_one_by_one(self, storage: Storage) -> None:
        """However many, and whatever they share."""
        spring, other = spring_in(storage), storage.create("other", "{}", 1.0).id
        odd = [FULL, ASK, SEEN._replace(closed_at=-0.0, low=0.0), SEEN._replace(closed_at=0.0, low=-0.0), BATCH]
        for trials in ([ASK] * 3, [SEEN] * 200, [SEEN] * 2, odd, odd * 8, [SEEN._replace(do=f"[{i}]") for i in "01"]):
            add(storage, spring, *trials)
            for trial in trials:
                add(storage, other, trial)
        together, one_by_one = list(storage.rows(spring)), list(storage.rows(other))
        assert [repr(trial) for trial in together] == [repr(trial) for trial in one_by_one]
        assert storage.counters(spring) == storage.counters(other)

    def test_a_tally_only_moves_on(self, storage: Storage) -> None:
        spring = spring_in(storage)
        assert storage.tally(spring) is None
        storage.keep_tally(spring, 5, "five ü")
        assert storage.tally(spring) == (5, "five ü")
        storage.keep_tally(spring, 4, "four")
        storage.keep_tally(spring, 5, "another")
        assert storage.tally(spring) == (5, "five ü")
        storage.keep_tally(spring, 6, "six")
        assert storage.tally(spring) == (6, "six")
        storage.delete("spring")
        assert storage.tally(spring) is None
        storage.keep_tally(spring, 7, "seven")
        assert storage.tally(spring_in(storage)) is None

    def test_pages_of_an_experiment_that_was_deleted(self, storage: Storage) -> None:
        spring = spring_in(storage)
        storage.delete("spring")
        with refused(ExperimentError):
            storage.rows(spring, 3, 2, TOLD)
        with refused(ExperimentError):
            storage.last(spring, 2)
