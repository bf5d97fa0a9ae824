"""What every storage must do. Inherit from the suite, give it a fixture, and pytest runs it over a storage of your own:

    import pytest
    from dobandit.testing.storage import StorageSuite

    class TestMyStorage(StorageSuite):
        @pytest.fixture
        def storage(self):
            storage = MyStorage()  # without experiments
            yield storage
            storage.close()

Nothing here needs pytest: a method may also be called with a storage. The contract in prose is in
`dobandit.experiment.storage.base`; the words of errors are free, `dobandit.experiment.storage.refusals` has ours.
"""

from __future__ import annotations

import math
import random
import threading

from dobandit.errors import ConflictError, ExperimentError
from dobandit.experiment.storage.base import (
    ABANDONED,
    ASKED,
    FAILED,
    IMPORTED,
    PENDING,
    RECORDED,
    STATES,
    TOLD,
    ClosedTrial,
    Storage,
    StoredTrial,
)
from dobandit.experiment.storage.memory import MemoryStorage
from dobandit.testing.books import BooksSuite
from dobandit.testing.imports import ImportsSuite
from dobandit.testing.random_steps import UndoneError, contents, random_block, random_step
from dobandit.testing.refusing import refused

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
NAMES = ["spring", "Ünïcode ' ; DROP TABLE trials; --", "🎲", "a" * 200, " x", "%s :name ?", "line\nbreak", "B", "a"]
NO_NAMES = ["", "  \n", "a" * 201, "a\0b", "a\ud800", None, 7]


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


def there(trial: StoredTrial | None) -> StoredTrial:
    assert trial is not None
    return trial


class StorageSuite(BooksSuite, ImportsSuite):
    """One contract for all storages. Every method gets a storage without experiments."""

    # -- experiments ---------------------------------------------------------------------------------------------

    def test_an_experiment_is_found_as_it_was_created(self, storage: Storage) -> None:
        assert storage.find("spring") is None
        assert list(storage.experiments()) == []
        created = storage.create("spring", '{"é": "🎲"}', 1700000000.123456)
        assert created[1:] == ("spring", '{"é": "🎲"}', 1700000000.123456, 0, 0)
        assert storage.find("spring") == created
        assert list(storage.experiments()) == [created]

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
            return [experiment.name for experiment in storage.experiments_page(after, before, limit)]

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
        found = storage.find("summer")
        assert found is not None
        assert found.id == spring
        assert add(storage, spring, ASK) == 0

    def test_deleting_takes_the_trials_along_and_ids_are_never_given_again(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, ASK, SEEN)
        storage.delete("spring")
        with refused(ExperimentError):
            storage.delete("spring")
        anew = storage.create("spring", "{}", 1.0)
        assert anew.id > spring
        assert list(storage.rows(anew.id)) == []
        assert list(storage.closed_since(spring, 0)) == []
        assert storage.trial(spring, 0) is None
        with refused(ExperimentError):
            storage.rows(spring)
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
            ClosedTrial(1, 3, TOLD, "[null,null]", "[0,1]"),
            ClosedTrial(2, 2, TOLD, "[null,1]", "[1,1]"),
            ClosedTrial(3, 0, FAILED, "[null,1]", None),
        ]
        assert list(storage.closed_since(spring, 4)) == []
        stored = storage.find("spring")
        assert stored is not None
        assert (stored.trials, stored.closed) == (4, 4)

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
            ClosedTrial(0, 1, TOLD, "[null,null]", "[[0,0],[0,1]]", "[980,20]", 1000),
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

    # -- pages -----------------------------------------------------------------------------------------------------

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

    def test_counters_pending_trials_and_columns(self, storage: Storage) -> None:
        spring = spring_in(storage)
        add(storage, spring, ASK, SEEN, ASK, BATCH)
        close(storage, spring, 2, observation="[1,1]")
        assert storage.counters(spring) == (4, 3)
        assert [trial.number for trial in storage.pending(spring)] == [0]
        closed = list(storage.closed_since(spring, 0))
        for position in (0, 1, 2, 3, 9):
            for most in (1, 2, 9):
                columns = storage.closed_columns(spring, position, most)
                assert list(columns.trials()) == closed[position : position + most]
                assert bool(columns) == (position < 3)
        storage.delete("spring")
        with refused(ExperimentError):
            storage.counters(spring)
        assert list(storage.pending(spring)) == []
        assert not storage.closed_columns(spring, 0, 5)

    def test_single_rounds_are_the_closed_trials(self, storage: Storage) -> None:
        """In the order of their positions, which need not be that of their numbers; a storage may also say None."""
        spring = spring_in(storage)
        add(storage, spring, SEEN, *([ASK] * 8), SEEN)
        for number in (2, 1, 4, 3, 6, 8, 5, 7):
            close(storage, spring, number, observation=f"[{number % 2},{number % 3 % 2}]")
        add(storage, spring, SEEN, SEEN._replace(do="[1,null]"), SEEN, SEEN, BATCH, SEEN, SEEN)
        closed = list(storage.closed_since(spring, 0))
        for position in range(len(closed)):
            for most in range(1, len(closed) + 2):
                found = storage.single_rounds(spring, position, most)
                if found is not None:
                    said = [(found.do[i], found.observations[i], None, TOLD) for i in found.which.tolist()]
                    some = closed[position : position + most]
                    assert said == [(trial.do, trial.observation, trial.counts, trial.state) for trial in some]
                    assert (found.position, len(said)) == (position, most)

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

    def test_one_chooses_at_a_time(self, storage: Storage) -> None:
        spring, other = spring_in(storage), storage.create("other", "{}", 1.0).id
        assert storage.take_turn(spring, 100.0, 130.25)
        assert not storage.take_turn(spring, 101.0, 131.0)
        assert storage.take_turn(other, 101.0, 131.0)
        storage.end_turn(spring, 131.0)  # somebody else's
        assert not storage.take_turn(spring, 101.0, 131.0)
        storage.end_turn(spring, 130.25)
        assert storage.take_turn(spring, 101.0, 131.0)
        assert storage.take_turn(spring, 131.0, 150.0)  # it was over
        assert add(storage, spring, ASK) == 0  # nobody is kept from writing

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

    # -- all or nothing, and many at once ------------------------------------------------------------------------

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

    def test_what_is_done_together_is_done_or_undone_one_by_one(self, storage: Storage) -> None:
        """And stored in the end. Random blocks, some of which are undone, are as those in memory, one after another."""

        def outcome(where: Storage, experiment: int, seed: float) -> object:
            try:
                return random_block(where, experiment, random.Random(seed))
            except UndoneError:
                return UndoneError

        for seed in range(6):
            memory, rng = MemoryStorage(), random.Random(seed)
            kept, plain = spring_in(storage), spring_in(memory)
            for _ in range(5):
                with storage.together():
                    for number in [rng.random() for _ in range(rng.randrange(6))]:
                        assert outcome(storage, kept, number) == outcome(memory, plain, number)
                assert contents(storage) == contents(memory)
            storage.delete("spring")

    def test_what_waits_until_it_is_stored(self, storage: Storage) -> None:
        spring, shared, seen = spring_in(storage), [storage.shared], []
        storage.once_stored(lambda: seen.append(storage.counters(spring)))
        with storage.together():
            add(storage, spring, SEEN)
            storage.once_stored(lambda: seen.append(storage.counters(spring)))
            add(storage, spring, ASK)
            shared.append(storage.shared)
            assert seen == [(0, 0)]
        assert seen == [(0, 0), (2, 1)]
        assert [*shared, storage.shared] == [False, True, False]

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
        found = storage.find("other")
        assert found is not None
        assert (found.trials, found.closed) == (4, 4)

    def test_a_storage_can_be_used_after_it_was_closed(self, storage: Storage) -> None:
        spring = spring_in(storage)
        storage.close()
        assert add(storage, spring, ASK) == 0
        storage.close()
        found = storage.find("spring")
        assert found is not None
        assert found.trials == 1

    def test_it_does_as_memory_does(self, storage: Storage) -> None:
        """Random calls, some of which are refused or undone, have the same outcome as in memory."""
        for seed in range(8):
            memory = MemoryStorage()
            for experiment in storage.experiments():
                storage.delete(experiment.name)
            for number in range(60):
                one, two = (random.Random(f"{seed} {number}") for _ in range(2))
                assert random_step(storage, two) == random_step(memory, one)
                if number % 10 == 9:
                    assert contents(storage) == contents(memory)
            before = contents(storage)
            storage.close()
            assert contents(storage) == before
