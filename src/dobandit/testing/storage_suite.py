"""What every storage must do. Inherit from the suite, give it a fixture, and pytest runs it over a storage of your own:

    import pytest
    from dobandit.testing.storage_suite import StorageSuite

    class TestMyStorage(StorageSuite):
        @pytest.fixture
        def storage(self):
            storage = MyStorage()  # without experiments
            yield storage
            storage.close()

Nothing here needs pytest: a method may also be called with a storage. The contract in prose is in
`dobandit.storage.contract`; the words of errors are free, `dobandit.storage.storage_errors` has ours.
"""

from __future__ import annotations

from dobandit.errors import ConflictError, ExperimentError
from dobandit.rows.stored_trial import ABANDONED, FAILED, PENDING, STATES, TOLD, ClosedTrial
from dobandit.storage.contract import Storage
from dobandit.testing.storage_transactions import (
    ASK,
    BATCH,
    FULL,
    SEEN,
    TransactionSuite,
    add,
    close,
    refused,
    spring_in,
    there,
)

NAMES = ["spring", "Ünïcode ' ; DROP TABLE trials; --", "🎲", "a" * 200, " x", "%s :name ?", "line\nbreak", "B", "a"]
NO_NAMES = ["", "  \n", "a" * 201, "a\0b", "a\ud800", None, 7]


class StorageSuite(TransactionSuite):
    """One contract for all storages. Every method gets a storage without experiments."""

    # -- experiments ---------------------------------------------------------------------------------------------

    def test_an_experiment_is_found_as_it_was_created(self, storage: Storage) -> None:
        assert storage.find("spring") is None
        assert list(storage.experiments()) == []
        created = storage.create("spring", '{"é": "🎲"}', 1700000000.123456)
        assert created[1:] == ("spring", '{"é": "🎲"}', 1700000000.123456, 0, 0)
        assert storage.find("spring") == storage.by_id(created.id) == created
        assert list(storage.experiments()) == [created]
        assert storage.by_id(created.id + 1000) is None

    def test_any_name_is_only_a_name(self, storage: Storage) -> None:
        storage.create("other", "{}", 1.0)
        for name in NAMES:
            created = storage.create(name, "{}", 1.0)
            assert storage.find(name) == created
            with refused(ExperimentError):
                storage.create(name, "{}", 2.0)
            storage.rename(name, "summer")
            assert storage.find("summer") == created._replace(name="summer")
            storage.rename("summer", name)
            storage.delete(name)
            assert storage.find(name) is None
            assert [experiment.name for experiment in storage.experiments()] == ["other"]

    def test_experiments_come_by_name(self, storage: Storage) -> None:
        for name in NAMES:
            storage.create(name, "{}", 1.0)
        names = sorted(NAMES)
        assert [experiment.name for experiment in storage.experiments()] == names

        def page(after: str | None = None, before: str | None = None, limit: int | None = None) -> list[str]:
            return [experiment.name for experiment in storage.experiments(after, before, limit)]

        assert page() == names
        assert page(limit=3) == names[:3]
        assert page(limit=0) == []
        for i, name in enumerate(names):
            assert page(after=name, limit=2) == names[i + 1 : i + 3]
            assert page(before=name, limit=2) == names[max(i - 2, 0) : i]
        assert page(after=names[1], before=names[6], limit=2) == names[4:6]
        assert page(after="a\0", limit=1) == page(after="a", limit=1)  # what no database keeps is still a place

    def test_names_that_no_database_keeps_are_refused(self, storage: Storage) -> None:
        spring_in(storage)
        for name in NO_NAMES:
            with refused(ExperimentError):
                storage.create(name, "{}", 1.0)  # type: ignore[arg-type]
            with refused(ExperimentError):
                storage.rename("spring", name)  # type: ignore[arg-type]
            if isinstance(name, str):
                assert storage.find(name) is None
                with refused(ExperimentError):
                    storage.delete(name)

    def test_renaming(self, storage: Storage) -> None:
        spring = spring_in(storage)
        storage.create("autumn", "{}", 1.0)
        with refused(ExperimentError):
            storage.rename("spring", "autumn")
        with refused(ExperimentError):
            storage.rename("sprign", "summer")
        storage.rename("spring", "spring")
        storage.rename("spring", "summer")
        assert there(storage.find("summer")).id == spring
        assert add(storage, spring, ASK) == 0
        assert storage.by_id(spring) == storage.find("summer")

    def test_deleting_takes_the_trials_along_and_ids_are_never_given_again(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, ASK, SEEN)
        storage.delete("spring")
        with refused(ExperimentError):
            storage.delete("spring")
        anew = storage.create("spring", "{}", 1.0)
        assert anew.id > spring
        assert storage.by_id(spring) is None
        assert list(storage.rows(anew.id)) == []
        assert [*storage.closed_since(spring, 0), *storage.closed_since(spring, 0, 5), *storage.pending(spring)] == []
        assert storage.trial(spring, 0) is None
        for read in (
            storage.counters,
            storage.rows,
            lambda i: storage.rows(i, 3, 2, TOLD),
            lambda i: storage.last(i, 2),
        ):
            with refused(ExperimentError):
                read(spring)
        with refused(ExperimentError), storage.writing(spring):
            pass

    # -- trials --------------------------------------------------------------------------------------------------

    def test_numbers_and_positions_have_no_gaps(self, storage: Storage) -> None:
        spring = spring_in(storage)
        assert add(storage, spring, ASK, SEEN._replace(number=77, position=99), ASK) == 0
        assert add(storage, spring) == 3
        assert add(storage, spring, SEEN) == 3
        found = [(trial.number, trial.position) for trial in storage.rows(spring)]
        assert found == [(0, None), (1, 0), (2, None), (3, 1)]
        assert close(storage, spring, 2, observation="[1,1]", closed_at=9.0) == 2
        assert close(storage, spring, 0, state=FAILED, reason="rain") == 3
        assert list(storage.closed_since(spring, 1)) == [
            ClosedTrial(1, 3, TOLD, "[null,null]", "[0,1]", source=SEEN.source),
            ClosedTrial(2, 2, TOLD, "[null,1]", "[1,1]"),
            ClosedTrial(3, 0, FAILED, "[null,1]", None),
        ]
        assert list(storage.closed_since(spring, 4)) == []
        assert storage.counters(spring) == (4, 4)

    def test_a_trial_comes_back_as_it_went_in(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, FULL, ASK)
        found = there(storage.trial(spring, 0))
        assert found == FULL
        assert [type(value) for value in found] == [type(value) for value in FULL]
        assert list(storage.rows(spring)) == [FULL, ASK._replace(number=1)]
        assert storage.trial(spring, 2) is None
        assert storage.trial(spring, -1) is None

    def test_trials_of_many_rounds(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, ASK._replace(size=1000, context="[1,null]", control=True), BATCH)
        close(storage, spring, 0, observation="[[1,0],[1,1]]", counts="[1,2]", rounds=3)
        told = there(storage.trial(spring, 0))
        assert (told.size, told.context, told.control, told.rounds) == (1000, "[1,null]", True, 3)
        assert list(storage.closed_since(spring, 0)) == [
            ClosedTrial(0, 1, TOLD, "[null,null]", "[[0,0],[0,1]]", "[980,20]", 1000, BATCH.source),
            ClosedTrial(1, 0, TOLD, "[null,1]", "[[1,0],[1,1]]", "[1,2]", 3),
        ]

    def test_a_writer_sees_its_own_work(self, storage: Storage) -> None:
        spring = spring_in(storage)
        with storage.writing(spring) as writer:
            assert (writer.trials, writer.closed) == (0, 0)
            writer.add([ASK, SEEN, ASK])
            assert (writer.trials, writer.closed) == (3, 1)
            assert [trial.number for trial in writer.pending()] == [0, 2]
            assert writer.close(there(writer.trial(0))._replace(state=ABANDONED)) == 1
            writer.add([SEEN])
            assert [trial.number for trial in writer.closed_since(0)] == [1, 0, 3]
            assert list(writer.closed_since(3)) == []
            assert [trial.number for trial in writer.pending()] == [2]
            assert writer.trial(4) is None
        assert [trial.state for trial in storage.rows(spring)] == [ABANDONED, TOLD, PENDING, TOLD]

    def test_closing_stores_the_result_and_nothing_else(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, ASK)
        result = ASK._replace(
            state=TOLD,
            observation="[[0,1]]",
            counts="[2]",
            rounds=2,
            closed_at=3.5,
            late=True,
            partial=True,
            reason="r",
        )
        with storage.writing(spring) as writer:
            assert writer.close(result._replace(do="[0,0]", why="other", context="[1,1]", size=7, control=True)) == 0
        assert storage.trial(spring, 0) == result._replace(position=0)

    def test_a_trial_is_closed_once(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, ASK, SEEN, ASK)
        close(storage, spring, 0, observation="[1,1]")
        before = list(storage.rows(spring))
        with storage.writing(spring) as writer:
            for number in (0, 1):
                with refused(ConflictError):
                    writer.close(ASK._replace(number=number, state=FAILED))
                with refused(ConflictError):
                    writer.reissue(number, 1.0)
            with refused(ExperimentError):
                writer.close(ASK._replace(number=9, state=TOLD))
            with refused(ExperimentError):
                writer.close(ASK._replace(number=2))
            assert (writer.trials, writer.closed) == (3, 2)
        assert list(storage.rows(spring)) == before

    def test_reissuing(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, ASK, ASK)
        with storage.writing(spring) as writer:
            writer.reissue(0, 12.5)
            assert [(trial.number, trial.issued) for trial in writer.pending()] == [(0, 2), (1, 1)]
            writer.reissue(0, None)
            writer.reissue(0, 13.5)
        assert storage.trial(spring, 0) == ASK._replace(lease_expires=13.5, issued=4)

    # -- reading -------------------------------------------------------------------------------------------------

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
