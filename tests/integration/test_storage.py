"""One contract, three storages; and what only databases do, and how refusals are worded."""

import random
import threading
import time

import pytest

from dobandit.errors import ConflictError, ExperimentError, StorageError
from dobandit.rows.stored_trial import FAILED, TOLD
from dobandit.storage import MemoryStorage
from dobandit.testing.storage_suite import StorageSuite
from dobandit.testing.storage_transactions import ASK, SEEN, add, close
from helpers.storage_steps import contents, random_step
from helpers.worlds import THOROUGH


class TestStorages(StorageSuite):
    """The fixture `storage` gives each kind in turn."""

    def test_it_does_as_memory_does(self, storage):
        """Random calls, some of which are refused or undone, have the same outcome as in memory."""
        for seed in range(3 * THOROUGH):
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

    def test_a_long_log_is_read_as_a_short_one_is(self, storage):
        """Databases read 2,000 trials at a time."""
        spring = storage.create("spring", "{}", 1.5).id
        add(storage, spring, *[ASK, SEEN] * 2100)
        every = list(storage.rows(spring))
        assert [trial.number for trial in every] == list(range(4200))
        for after, limit, state in ((7, 4100, None), (-1, None, TOLD), (10, 2050, TOLD), (1999, 2000, None)):
            behind = [trial for trial in every if trial.number > after and state in (None, trial.state)]
            assert list(storage.rows(spring, after, limit, state)) == behind[:limit]
        rows = storage.rows(spring)
        got = [next(rows)]
        close(storage, spring, 4100, state=FAILED, reason="rain", late=True, closed_at=1.0)
        add(storage, spring, SEEN)
        assert got + list(rows) == every  # as of one moment


@pytest.fixture
def spring(storage):
    return storage.create("spring", "{}", 1.5).id


def test_refusals_say_what_to_do(storage, spring):
    storage.create("autumn", "{}", 1.0)
    add(storage, spring, SEEN, ASK)
    with pytest.raises(ExperimentError, match="already has one named 'autumn'"):
        storage.rename("spring", "autumn")
    with pytest.raises(ExperimentError, match="Did you mean 'spring'"):
        storage.rename("sprign", "summer")
    with pytest.raises(ExperimentError, match="name must have"):
        storage.create("", "{}", 1.0)
    with storage.writing(spring) as writer:
        with pytest.raises(ConflictError, match="is told"):
            writer.close(ASK._replace(number=0, state=FAILED))
        with pytest.raises(ExperimentError, match="no trial 9"):
            writer.close(ASK._replace(number=9, state=TOLD))
        with pytest.raises(ExperimentError, match="came as pending"):
            writer.close(ASK._replace(number=1))
    storage.delete("spring")
    with pytest.raises(ExperimentError, match="none named 'spring'"):
        storage.delete("spring")
    with pytest.raises(ExperimentError, match="deleted"):
        storage.rows(spring)


def test_a_reader_sees_nothing_before_the_end_of_a_block(storage, spring):
    if isinstance(storage, MemoryStorage):
        pytest.skip("In memory, a reader waits for the end of the block.")
    with storage.writing(spring) as writer:
        writer.add([SEEN])
        assert storage.find("spring").trials == 0
        assert list(storage.closed_since(spring, 0)) == []
    assert storage.find("spring").trials == 1


def test_many_trials_enter_and_come_back_quickly(storage, spring):
    add(storage, spring, *[SEEN] * 10_000)
    started = time.perf_counter()
    closed = storage.closed_since(spring, 0)
    assert time.perf_counter() - started < 1.0
    assert [trial.position for trial in closed] == list(range(10_000))
    assert sum(1 for _ in storage.rows(spring)) == 10_000


def test_what_a_database_refuses_becomes_a_storage_error(storage, spring):
    if isinstance(storage, MemoryStorage):
        pytest.skip("Memory trusts its callers.")
    for wrong in (ASK._replace(source="guessed"), ASK._replace(state="lost"), ASK._replace(why="\ud800")):
        with pytest.raises(StorageError, match="Nothing of this was stored"):
            add(storage, spring, ASK, wrong)
    assert list(storage.rows(spring)) == []


def test_a_block_may_call_its_storage_while_another_thread_deletes(storage, spring):
    storage.create("other", "{}", 1.0)
    outcome = []

    def delete():
        storage.delete("spring")
        outcome.append(storage.find("spring"))

    thread = threading.Thread(target=delete)
    with storage.writing(spring) as writer:
        thread.start()
        time.sleep(0.05)
        assert storage.find("other") is not None
        assert len(storage.experiments()) == 2
        writer.add([ASK])
    thread.join(timeout=30)
    assert outcome == [None]
