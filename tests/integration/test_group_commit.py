"""What comes at the same time is stored together: each by itself is done or not, and nobody is answered before."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from functools import partial

import pytest
from sqlalchemy import event

from dobandit import CausalGraph, Random
from dobandit.errors import ConflictError, ExperimentError, StorageError
from dobandit.experiment.replica import Replica
from dobandit.experiment.storage import MemoryStorage, open_storage
from dobandit.experiment.storage.connected import Connected
from dobandit.experiment.storage.together import TakesLongError, shared_in
from dobandit.testing.stored import ASK, SEEN, add
from helpers.experiments import G5, again, knowledge, make, said, whole_log
from helpers.serving import FUNNEL, served

API = "/api/v1"


@pytest.fixture
def unhurried(monkeypatch):
    """However busy this machine is, no choice of a known kind counts as long."""
    monkeypatch.setattr("dobandit.experiment.choosing._QUICK", 60.0)


@pytest.fixture
def file(tmp_path):
    storage = open_storage(f"sqlite:///{tmp_path}/spring.db")
    yield storage
    storage.close()


def read(storage, query):
    """What another program finds in the file."""
    with closing(sqlite3.connect(storage.database.path)) as connection:
        return connection.execute(query).fetchall()


# -- the storage -----------------------------------------------------------------------------------------------------


def test_others_see_all_of_it_at_once(file):
    spring = file.create("spring", "{}", 1.0).id
    commits = []
    event.listen(file.database.engine, "commit", commits.append)
    with file.together():
        for _ in range(3):
            add(file, spring, SEEN)
        assert read(file, "SELECT count(*) FROM trials") == [(0,)]
    assert read(file, "SELECT count(*) FROM trials") == [(3,)]
    assert len(commits) == 1


def test_what_ends_badly_outside_of_its_parts_is_not_stored(storage):
    if isinstance(storage, MemoryStorage):
        pytest.skip("Memory stores at once.")
    spring, done = storage.create("spring", "{}", 1.0).id, []

    def badly():
        with storage.together():
            add(storage, spring, SEEN)
            storage.once_stored(lambda: done.append(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        badly()
    assert storage.counters(spring) == (0, 0)
    assert not done
    assert not storage.shared
    assert add(storage, spring, ASK) == 0


def test_a_transaction_that_the_database_gives_up_is_lost_as_a_whole(file):
    """SQLite undoes everything where the disk is full. What came before and after that is not stored either."""
    spring = file.create("spring", "{}", 1.0).id
    add(file, spring, SEEN)
    pages = read(file, "PRAGMA page_count")[0][0]

    def too_much():
        with file.together():
            add(file, spring, SEEN)
            shared_in(file).connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
            with pytest.raises(StorageError, match="no room left"):
                add(file, spring, SEEN._replace(why="x" * 100_000))
            with pytest.raises(StorageError):
                add(file, spring, SEEN)

    with pytest.raises(StorageError):
        too_much()
    file.close()
    assert file.counters(spring) == (1, 1)
    assert add(file, spring, SEEN) == 1


# -- experiments -----------------------------------------------------------------------------------------------------


def played_in(experiment, together):
    """Rounds of three workers, of whom two at a time tell and ask."""
    for _ in range(2):  # by themselves: then it is known how long an ask takes
        experiment.tell(experiment.ask(), {"Y": 1})
    under_way = [experiment.ask() for _ in range(3)]
    for number in range(20):
        with together():
            for _ in range(2):
                trial = under_way.pop(0)
                experiment.tell(trial, {**dict.fromkeys(experiment.graph.nodes, number % 2), **trial.do})
                under_way.append(experiment.ask())
    return [trial._replace(asked_at=0, closed_at=0) for trial in whole_log(experiment)]


def test_what_is_asked_and_told_together_is_as_one_by_one(storage, unhurried):
    """The same choices, predictions and sentences, and a log that gives the same next ask."""
    one, other = make(MemoryStorage(), G5.graph), make(storage, G5.graph)
    assert played_in(one, nullcontext) == played_in(other, storage.together)
    assert again(other).ask()[1:5] == one.ask()[1:5]


def test_a_refused_tell_leaves_the_others_as_they_are(storage):
    experiment = make(storage, G5.graph)
    trials = experiment.ask(n=3)
    with storage.together():
        experiment.tell(trials[0], {"Y": 1})
        with pytest.raises(ExperimentError, match="no trial 9"):
            experiment.tell(9, {"Y": 1})
        experiment.tell(trials[1], {"Y": 0})
        with pytest.raises(ConflictError):
            experiment.tell(trials[0], {"Y": 0})
    assert [row["state"] for row in experiment.trials()] == ["told", "told", "pending"]
    assert experiment.status().told == 2


def test_what_was_learned_and_never_stored_is_forgotten(file, unhurried):
    """The same object goes on as one to which that was never told."""
    experiment, other = make(file, G5.graph), make(MemoryStorage(), G5.graph)
    for one in (experiment, other):
        for _ in range(3):
            one.tell(one.ask(), {"Y": 1})
    under_way = [experiment.ask() for _ in range(2)]
    assert [said(trial) for trial in under_way] == [said(other.ask()) for _ in range(2)]

    def lost():
        with file.together():
            for trial in under_way:
                experiment.tell(trial, {**dict.fromkeys(experiment.graph.nodes, 1), **trial.do})
            experiment.ask()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lost()
    assert file.counters(experiment._id) == (5, 3)
    assert said(experiment.ask()) == said(other.ask())
    assert knowledge(experiment) == knowledge(other)


def test_nobody_thinks_long_while_others_wait(storage, unhurried, monkeypatch):
    experiment = make(storage)

    def asked_together():
        with storage.together():
            return experiment.ask()

    with pytest.raises(TakesLongError):  # nothing is known yet: a kernel may have to be compiled
        asked_together()
    experiment.ask()
    experiment.ask()
    assert asked_together().number == 2
    monkeypatch.setattr("dobandit.experiment.choosing._QUICK", 0.0)
    with pytest.raises(TakesLongError):
        asked_together()
    assert experiment.ask().number == 3


# -- the service -----------------------------------------------------------------------------------------------------


@pytest.fixture
def house(file, unhurried):
    with served(file) as one:
        one.spring = one.create(policy="random")
        yield one


def ask(house, **more):
    return house.call("POST", f"{API}/experiments/{house.spring}/ask", {}, **more)


def tell(house, trial):
    told = {"observation": {"visit": 1, "buy": 0}, "issued": 1}
    return house.call("POST", f"{API}/experiments/{house.spring}/trials/{trial}/tell", told)


def at_once(*calls):
    """What each of the calls returns, all of them made at the same time."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [one.result(timeout=60) for one in [threads.submit(call) for call in calls]]


def test_a_repetition_beside_the_first(house, monkeypatch):
    """A key that comes twice in one transaction is one deed, and a wrong request beside others harms nobody."""
    ask(house)
    key = {"Idempotency-Key": "once"}
    calls = [partial(ask, house, headers=key)] * 4 + [partial(tell, house, 77)] * 2 + [partial(ask, house)] * 2
    answers = at_once(*calls)
    assert [answer.status_code for answer in answers] == [201] * 4 + [404] * 2 + [201] * 2
    assert len({answer.json()["trials"][0]["trial"] for answer in answers[:4]}) == 1
    assert house.storage.counters(house.spring) == (4, 0)


def test_nobody_is_answered_for_what_could_not_be_stored(house, monkeypatch):
    ask(house), ask(house)
    plain = Connected._commit

    def fails(storage, connection):
        raise StorageError("the disk is full.")

    monkeypatch.setattr(Connected, "_commit", fails)
    key = {"Idempotency-Key": "lost"}
    refused = at_once(partial(ask, house, headers=key), partial(tell, house, 0), partial(tell, house, 77))
    assert [answer.status_code for answer in refused] == [503, 503, 404]
    monkeypatch.setattr(Connected, "_commit", plain)
    assert house.storage.counters(house.spring) == (2, 0)
    assert read(house.storage, "SELECT count(*) FROM dobandit_answers") == [(0,)]
    assert tell(house, 0).json()["repeated"] is False
    third = ask(house, headers=key).json()["trials"][0]
    edges = [tuple(line.split(" -> ")) for line in FUNNEL["graph"].splitlines()]
    plainly = make(MemoryStorage(), CausalGraph(edges, target="buy"), 1, Random())
    for _ in range(2):
        plainly.ask()
    plainly.tell(0, {"visit": 1, "buy": 0})
    assert (third["trial"], third["do"]) == (2, plainly.ask().do)


def test_a_long_choice_keeps_nobody_from_telling(house, monkeypatch):
    """Nor does it stand in the way of those who ask after it: they wait for their turn, and tells do not."""
    thinking, over, plain = threading.Event(), threading.Event(), Replica.situation
    for _ in range(2):
        ask(house)

    def situation(replica, *arguments):
        thinking.set()
        assert over.wait(30)
        return plain(replica, *arguments)

    experiment = house.app.state.house.at_work(house.spring)
    experiment._seconds = dict.fromkeys(experiment._seconds, 100.0)
    monkeypatch.setattr("dobandit.experiment.choosing._SLOW", 1000.0)  # no turns of other processes
    monkeypatch.setattr(Replica, "situation", situation)
    with ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(ask, house) for _ in range(3)]
        assert thinking.wait(30)
        assert [tell(house, number).status_code for number in (0, 1)] == [200, 200]
        assert not any(one.done() for one in waiting)
        over.set()
        assert {one.result(30).json()["trials"][0]["trial"] for one in waiting} == {2, 3, 4}


def test_a_transaction_ends_in_time_and_a_fault_is_its_own_alone(house, monkeypatch):
    """Whoever finds no room in a transaction is in the next one."""
    ask(house), ask(house)
    monkeypatch.setattr("dobandit.service.changes._SECONDS", 0.0)

    def broken(experiment, *arguments):
        raise RuntimeError("a fault")

    monkeypatch.setattr("dobandit.experiment.experiment.Experiment.tell_failed", broken)
    fail = partial(house.call, "POST", f"{API}/experiments/{house.spring}/trials/1/fail", {})
    answers = at_once(partial(tell, house, 0), fail, *[partial(ask, house)] * 4)
    assert [answer.status_code for answer in answers] == [200, 500] + [201] * 4
    assert {answer.json()["trials"][0]["trial"] for answer in answers[2:]} == {2, 3, 4, 5}
    assert house.storage.counters(house.spring) == (6, 1)
