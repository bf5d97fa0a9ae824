"""One contract, three storages."""

import math
import threading
import time

import pytest

from dobandit.errors import ConflictError, ExperimentError, StorageError
from dobandit.experiment.storage import MemoryStorage
from dobandit.experiment.storage.base import (
    ABANDONED,
    ASKED,
    FAILED,
    IMPORTED,
    PENDING,
    RECORDED,
    TOLD,
    ClosedTrial,
    StoredTrial,
)

ASK = StoredTrial(0, ASKED, "[null,1]", why="because")
SEEN = StoredTrial(0, RECORDED, "[null,null]", state=TOLD, observation="[0,1]", closed_at=5.0)
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
)
NAMES = ["spring", "Ünïcode ' ; DROP TABLE trials; --", "🎲", "a" * 200, " x", "%s :name ?", "line\nbreak", "B", "a"]


@pytest.fixture
def spring(storage):
    return storage.create("spring", "{}", 1.5).id


def add(storage, experiment, *trials):
    with storage.writing(experiment) as writer:
        return writer.add(trials)


def close(storage, experiment, number, state=TOLD, **changes):
    with storage.writing(experiment) as writer:
        return writer.close(writer.trial(number)._replace(state=state, **changes))


def test_an_experiment_is_found_as_it_was_created(storage):
    assert storage.find("spring") is None
    assert list(storage.experiments()) == []
    created = storage.create("spring", '{"é": "🎲"}', 1700000000.123456)
    assert created[1:] == ("spring", '{"é": "🎲"}', 1700000000.123456, 0, 0)
    assert storage.find("spring") == created
    assert list(storage.experiments()) == [created]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_only_a_name(storage, name):
    storage.create("other", "{}", 1.0)
    created = storage.create(name, "{}", 1.0)
    assert storage.find(name) == created
    with pytest.raises(ExperimentError, match="already has one"):
        storage.create(name, "{}", 2.0)
    storage.rename(name, "summer")
    assert storage.find("summer") == created._replace(name="summer")
    storage.rename("summer", name)
    storage.delete(name)
    assert storage.find(name) is None
    assert [experiment.name for experiment in storage.experiments()] == ["other"]


def test_experiments_come_by_name(storage):
    for name in NAMES:
        storage.create(name, "{}", 1.0)
    assert [experiment.name for experiment in storage.experiments()] == sorted(NAMES)


@pytest.mark.parametrize("name", ["", "  \n", "a" * 201, "a\0b", "a\ud800", None, 7])
def test_names_that_no_database_keeps_are_refused(storage, spring, name):
    with pytest.raises(ExperimentError, match="name must have"):
        storage.create(name, "{}", 1.0)
    with pytest.raises(ExperimentError, match="name must have"):
        storage.rename("spring", name)
    if isinstance(name, str):
        assert storage.find(name) is None
        with pytest.raises(ExperimentError, match="none named"):
            storage.delete(name)


def test_renaming(storage, spring):
    storage.create("autumn", "{}", 1.0)
    with pytest.raises(ExperimentError, match="already has one named 'autumn'"):
        storage.rename("spring", "autumn")
    with pytest.raises(ExperimentError, match="Did you mean 'spring'"):
        storage.rename("sprign", "summer")
    storage.rename("spring", "spring")
    storage.rename("spring", "summer")
    assert storage.find("summer").id == spring
    assert add(storage, spring, ASK) == 0


def test_deleting_takes_the_trials_along_and_ids_are_never_given_again(storage, spring):
    add(storage, spring, ASK, SEEN)
    storage.delete("spring")
    with pytest.raises(ExperimentError, match="none named 'spring'"):
        storage.delete("spring")
    anew = storage.create("spring", "{}", 1.0)
    assert anew.id > spring
    assert list(storage.rows(anew.id)) == []
    assert list(storage.closed_since(spring, 0)) == []
    assert storage.trial(spring, 0) is None
    with pytest.raises(ExperimentError, match="deleted"):
        storage.rows(spring)
    with pytest.raises(ExperimentError, match="deleted"), storage.writing(spring):
        pass


def test_numbers_and_positions_have_no_gaps(storage, spring):
    assert add(storage, spring, ASK, SEEN._replace(number=77, position=99), ASK) == 0
    assert add(storage, spring) == 3
    assert add(storage, spring, SEEN) == 3
    assert [(trial.number, trial.position) for trial in storage.rows(spring)] == [(0, None), (1, 0), (2, None), (3, 1)]
    assert close(storage, spring, 2, observation="[1,1]", closed_at=9.0) == 2
    assert close(storage, spring, 0, FAILED, reason="rain") == 3
    assert list(storage.closed_since(spring, 1)) == [
        ClosedTrial(1, 3, TOLD, "[null,null]", "[0,1]"),
        ClosedTrial(2, 2, TOLD, "[null,1]", "[1,1]"),
        ClosedTrial(3, 0, FAILED, "[null,1]", None),
    ]
    assert list(storage.closed_since(spring, 4)) == []
    assert storage.find("spring")[4:] == (4, 4)


def test_a_trial_comes_back_as_it_went_in(storage, spring):
    add(storage, spring, FULL, ASK)
    assert storage.trial(spring, 0) == FULL
    assert [type(value) for value in storage.trial(spring, 0)] == [type(value) for value in FULL]
    assert list(storage.rows(spring)) == [FULL, ASK._replace(number=1)]
    assert storage.trial(spring, 2) is None
    assert storage.trial(spring, -1) is None


def test_a_writer_sees_its_own_work(storage, spring):
    with storage.writing(spring) as writer:
        assert (writer.trials, writer.closed) == (0, 0)
        writer.add([ASK, SEEN, ASK])
        assert (writer.trials, writer.closed) == (3, 1)
        assert [trial.number for trial in writer.pending()] == [0, 2]
        assert writer.close(writer.trial(0)._replace(state=ABANDONED)) == 1
        writer.add([SEEN])
        assert [trial.number for trial in writer.closed_since(0)] == [1, 0, 3]
        assert list(writer.closed_since(3)) == []
        assert [trial.number for trial in writer.pending()] == [2]
        assert writer.trial(4) is None
    assert [trial.state for trial in storage.rows(spring)] == [ABANDONED, TOLD, PENDING, TOLD]


def test_closing_stores_the_result_and_nothing_else(storage, spring):
    add(storage, spring, ASK)
    result = ASK._replace(
        state=TOLD, observation="[0,1]", closed_at=3.5, late=True, partial=True, reason="r", do="[0,0]", why="other"
    )
    with storage.writing(spring) as writer:
        assert writer.close(result) == 0
    assert storage.trial(spring, 0) == result._replace(do=ASK.do, why=ASK.why, position=0)


def test_a_trial_is_closed_once(storage, spring):
    add(storage, spring, ASK, SEEN, ASK)
    close(storage, spring, 0, observation="[1,1]")
    before = list(storage.rows(spring))
    with storage.writing(spring) as writer:
        for number in (0, 1):
            with pytest.raises(ConflictError, match="is told"):
                writer.close(ASK._replace(number=number, state=FAILED))
            with pytest.raises(ConflictError, match="is told"):
                writer.reissue(number, 1.0)
        with pytest.raises(ExperimentError, match="no trial 9"):
            writer.close(ASK._replace(number=9, state=TOLD))
        with pytest.raises(ExperimentError, match="came as pending"):
            writer.close(ASK._replace(number=2))
        assert (writer.trials, writer.closed) == (3, 2)
    assert list(storage.rows(spring)) == before


def test_reissuing(storage, spring):
    add(storage, spring, ASK, ASK)
    with storage.writing(spring) as writer:
        writer.reissue(0, 12.5)
        assert [(trial.number, trial.issued) for trial in writer.pending()] == [(0, 2), (1, 1)]
        writer.reissue(0, None)
        writer.reissue(0, 13.5)
    assert storage.trial(spring, 0) == ASK._replace(lease_expires=13.5, issued=4)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_undoes_the_whole_block(storage, spring, error):
    add(storage, spring, ASK, ASK, ASK, SEEN)
    close(storage, spring, 1)
    before, stored = list(storage.rows(spring)), storage.find("spring")

    def block():
        with storage.writing(spring) as writer:
            writer.reissue(2, 5.0)
            writer.close(ASK._replace(number=2, state=TOLD))
            writer.reissue(0, 6.0)
            writer.add([ASK, SEEN])
            writer.reissue(4, 7.0)
            writer.close(ASK._replace(number=4, state=FAILED))
            raise error

    with pytest.raises(error):
        block()
    assert (list(storage.rows(spring)), storage.find("spring")) == (before, stored)
    with storage.writing(spring) as writer:
        assert [trial.number for trial in writer.pending()] == [0, 2]
        assert [trial.number for trial in writer.closed_since(0)] == [3, 1]
        assert writer.add([ASK]) == 4


def test_rows_are_of_one_moment(storage, spring, monkeypatch):
    monkeypatch.setattr("dobandit.experiment.storage.sql._PAGE", 3)
    add(storage, spring, *[ASK, SEEN] * 5)
    rows = storage.rows(spring)
    before = [trial._replace(number=number) for number, trial in enumerate([ASK, SEEN] * 5)]
    before = [trial._replace(position=None if trial.state == PENDING else trial.number // 2) for trial in before]
    got = [next(rows)]
    for number in (0, 8, 2):
        close(storage, spring, number, FAILED, reason="rain", late=True, partial=True, closed_at=1.0, observation="[]")
    add(storage, spring, SEEN)
    assert got + list(rows) == before


def test_an_abandoned_iteration_holds_nothing(storage, spring):
    add(storage, spring, *[SEEN] * 10)
    rows = storage.rows(spring)
    next(rows)
    storage.delete("spring")


def test_threads_take_turns(storage, spring):
    other = storage.create("other", "{}", 1.0).id
    numbers, errors = [], []

    def work():
        try:
            for _ in range(50):
                with storage.writing(spring) as writer:
                    first = writer.trials
                    numbers.append(writer.add([ASK]))
                    assert numbers[-1] == first
                    writer.close(writer.trial(first)._replace(state=TOLD))
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
    assert storage.find("other")[4:] == (4, 4)


def test_a_reader_sees_nothing_before_the_end_of_a_block(storage, spring):
    if isinstance(storage, MemoryStorage):
        pytest.skip("In memory, a reader waits for the end of the block.")
    with storage.writing(spring) as writer:
        writer.add([SEEN])
        assert storage.find("spring").trials == 0
        assert list(storage.closed_since(spring, 0)) == []
    assert storage.find("spring").trials == 1


def test_a_storage_can_be_used_after_it_was_closed(storage, spring):
    storage.close()
    assert add(storage, spring, ASK) == 0
    storage.close()
    assert storage.find("spring").trials == 1


def test_many_trials_enter_and_come_back_quickly(storage, spring):
    add(storage, spring, *[SEEN] * 20_000)
    started = time.perf_counter()
    closed = storage.closed_since(spring, 0)
    assert time.perf_counter() - started < 2.0
    assert [trial.position for trial in closed] == list(range(20_000))
    assert sum(1 for _ in storage.rows(spring)) == 20_000


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
