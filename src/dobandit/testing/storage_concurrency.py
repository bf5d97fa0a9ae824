"""What every storage must do for many at once, and where something fails half-way; a part of `StorageSuite`."""

from __future__ import annotations

import random
import threading

from dobandit.experiment.storage import MemoryStorage
from dobandit.experiment.storage.base import FAILED, TOLD, Storage
from dobandit.testing.random_steps import contents, random_step
from dobandit.testing.stored import ASK, SEEN, add, close, refused, spring_in, there


class ConcurrencySuite:
    """Every method gets a storage without experiments.

    random_runs  how many random courses of events are compared with those in memory
    """

    random_runs = 8

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

    def test_it_does_as_memory_does(self, storage: Storage) -> None:
        """Random calls, some of which are refused or undone, have the same outcome as in memory."""
        for seed in range(self.random_runs):
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
