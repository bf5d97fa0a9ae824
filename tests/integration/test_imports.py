"""Imports of many rounds: others write meanwhile, readers see all or nothing, and whoever is killed leaves nothing."""

import os
import signal
import sqlite3
import time
from contextlib import closing

import pytest

from dobandit import CausalGraph, Random
from dobandit.errors import MissingError, StorageError
from dobandit.experiment.storage import open_storage, staging
from dobandit.experiment.storage.sql import SQLStorage
from dobandit.experiment.storage.writer import SQLWriter
from helpers.experiments import Clock, again, case, knowledge, make, said

ROUNDS = [({"X3": i % 2}, {"X2": i % 3 % 2, "X4": i // 5 % 2, "X5": 0, "Y": i // 2 % 2}) for i in range(100)]


@pytest.fixture
def small_parts(monkeypatch):
    """Every import is staged: parts of seven trials, a slice per part or two."""
    for name, value in {"FEW": 0, "MOST": 7, "SLICE": 300, "PAUSE": 0.0, "CLEARED": 2}.items():
        monkeypatch.setattr(staging, name, value)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """A database of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/spring.db"
    return request.getfixturevalue("postgres_server").new_database()


def in_child(run):
    """The status of a forked process."""
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(1)
    return child


def left_in(storage):
    """How many imports there are that nobody sees, and how many parts in all."""
    with closing(storage.database.engine.raw_connection()) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM dobandit_imports WHERE number IS NULL")
        [(imports,)] = cursor.fetchall()
        cursor.execute("SELECT count(*) FROM dobandit_import_parts")
        [(parts,)] = cursor.fetchall()
    return imports, parts


def everything(experiment):
    return experiment.trials(), again(experiment).status(), experiment.storage.counters(experiment._id)


# -- the same log ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["closed-form", "causal", "random"])
@pytest.mark.filterwarnings("ignore:just these rounds were imported before")
def test_an_import_in_slices_is_as_one_in_one_transaction(name, tmp_path, monkeypatch):
    """Every answer, the next ask and all that was learned, to the last bit; whatever was told while it came is before
    it in the log."""
    logs = []
    for few in (10**9, 0):
        for setting, value in {"FEW": few, "MOST": 7, "SLICE": 300, "PAUSE": 0.0}.items():
            monkeypatch.setattr(staging, setting, value)
        experiment = case(name, open_storage(f"{tmp_path}/{few}.db"), clock=Clock())
        nodes = experiment.columns.names
        rounds = [
            ({}, {node: (i >> k) % 2 for k, node in enumerate(nodes) if node in experiment.columns.to_see})
            for i in range(90)
        ]
        for _ in range(2):
            held = experiment.ask()
            meanwhile = SQLStorage.stage

            def stage(self, experiment, trials, held=held, log=experiment, meanwhile=meanwhile):
                found = meanwhile(self, experiment, trials)
                log.tell(held, {log.graph.target: 1})
                return found

            with monkeypatch.context() as patch:
                patch.setattr(SQLStorage, "stage", stage)
                numbers = experiment.import_history(rounds)
            assert experiment.stored_trial(held.number).position == experiment.stored_trial(numbers[0]).position - 1
            assert len(numbers) == experiment.rounds_in(numbers) == 90
            experiment.tell(experiment.ask(), {experiment.graph.target: 0})
        assert bool(left_in(experiment.storage)[1]) == (few == 0)
        other = again(experiment, experiment._clock)
        logs.append(
            (
                experiment.trials(),
                experiment.to_csv(),
                experiment.trials(last=95),
                experiment.trials(50, 70, "told"),
                other.status()._replace(storage=""),
                other.best_observed(),
                repr(other.recommend()),
                repr(other.diagnose()),
                repr(other.explain(held.number)),
                knowledge(other),
                said(other.ask()),
                said(experiment.ask()),
            )
        )
        experiment.close()
    for rows, parts in zip(*logs, strict=True):
        assert rows == parts


def test_a_file_with_counts(tmp_path, small_parts):
    experiment = make(open_storage(str(tmp_path / "spring.db")))
    (tmp_path / "history.csv").write_text("do:X3,X3,X2,X4,X5,Y,count\n" + "1,1,0,1,,1,3\n,0,0,1,1,1,1\n" * 20)
    numbers = experiment.import_history(tmp_path / "history.csv")
    assert (len(numbers), experiment.rounds_in(numbers)) == (40, 80)
    assert experiment.status().rounds == 80
    assert experiment.status().partial == 20
    assert experiment.trial(38)["observation"] == [{"X2": 0, "X3": 1, "X4": 1, "Y": 1, "count": 3}]
    with pytest.raises(MissingError, match="no trial 40"):
        experiment.trial(40)
    experiment.close()


# -- others ----------------------------------------------------------------------------------------------------------


def test_others_ask_and_tell_between_slices(url, small_parts, monkeypatch):
    """After each slice somebody asks and tells, and sees nothing of the import."""
    experiment = make(open_storage(url))
    worker, seen = again(experiment), []
    keep = SQLStorage._keep

    def slowly(self, *arguments):
        keep(self, *arguments)
        worker.tell(worker.ask(), {"Y": 1})
        seen.append(again(experiment).status().told)

    monkeypatch.setattr(SQLStorage, "_keep", slowly)
    numbers = experiment.import_history(ROUNDS)
    assert len(seen) >= 5
    assert seen == list(range(1, len(seen) + 1))
    assert numbers == range(len(seen), len(seen) + 100)
    assert worker.status().told == len(seen) + 100
    experiment.close()


def test_nobody_waits_for_the_whole_import(url, monkeypatch):
    """Somebody asks and tells all the while another process imports: the longest wait is a fraction of the import, and
    all or nothing of it is seen."""
    for name, value in {"FEW": 0, "MOST": 100, "SLICE": 2_000}.items():
        monkeypatch.setattr(staging, name, value)
    experiment, size = make(open_storage(url)), 4_000
    experiment.tell(experiment.ask(), {"Y": 1})  # now nothing is left to be compiled
    experiment.close()
    child = in_child(lambda: os._exit(0 if len(experiment.import_history(ROUNDS * (size // 100))) == size else 2))
    started, own, longest, status = time.monotonic(), 1, 0.0, None
    while status is None:
        before = time.monotonic()
        experiment.tell(experiment.ask(), {"Y": own % 2})
        own += 1
        longest = max(longest, time.monotonic() - before)
        assert experiment.storage.counters(experiment._id)[1] in (own, own + size)
        done, code = os.waitpid(child, os.WNOHANG)
        status = code if done else None
    took = time.monotonic() - started
    assert status == 0
    assert own > 10
    assert longest < took / 2
    assert again(experiment).status().told == own + size
    experiment.close()


def test_a_slice_is_short_however_many_variables_there_are(tmp_path, monkeypatch):
    """A part holds fewer trials where each is long."""
    monkeypatch.setattr(staging, "FEW", 0)
    monkeypatch.setattr(staging, "SLICE", 20_000)
    graph = CausalGraph([(f"a cause {i}", "Y") for i in range(500)], target="Y")
    experiment = make(open_storage(str(tmp_path / "spring.db")), graph, 1, Random())
    sizes, keep = [], SQLStorage._keep
    monkeypatch.setattr(SQLStorage, "_keep", lambda *all_of: (sizes.append(len(str(all_of[-1]))), keep(*all_of)))
    experiment.import_history([({f"a cause {i}": 1}, {"Y": i % 2}) for i in range(200)])
    assert len(sizes) > 10
    assert max(sizes) < 3 * 20_000
    assert experiment.trial(150)["do"] == {"a cause 150": 1}
    experiment.close()


# -- killed ----------------------------------------------------------------------------------------------------------


def killing(function, times):
    """The function, in which the process is killed when it is called for the n-th time: before or after its work."""
    calls = []

    def killed(*arguments):
        calls.append(1)
        if len(calls) == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)

    return killed


def killed_after_publishing(self, arrival, plain=SQLWriter.publish):
    plain(self, arrival)
    os.kill(os.getpid(), signal.SIGKILL)


POINTS = {
    "before the first slice": (SQLStorage, "_keep", 1),
    "between slices": (SQLStorage, "_keep", 4),
    "inside a slice": (staging, "time", 4),
    "before it is published": (SQLWriter, "publish", 1),
    "before the commit": (SQLWriter, "publish", None),
}


class _Times:
    """The module `time`, whose time() kills: it is called inside each slice, and once before."""

    def __init__(self, times):
        self.time, self.sleep = killing(time.time, times), time.sleep


def test_a_killed_import_leaves_nothing_and_can_be_repeated(url, small_parts, monkeypatch):
    experiment = make(open_storage(url), clock=Clock())
    experiment.tell(experiment.ask(), {"Y": 1})
    before = everything(experiment)
    monkeypatch.setattr(staging, "ALIVE", 0.0)
    for where, name, times in POINTS.values():
        with monkeypatch.context() as patch:
            replaced = killed_after_publishing if times is None else killing(getattr(where, name), times)
            patch.setattr(where, name, _Times(times) if name == "time" else replaced)
            status = os.waitpid(in_child(lambda: experiment.import_history(ROUNDS)), 0)[1]
        assert os.WTERMSIG(status) == signal.SIGKILL
        assert everything(experiment) == before
        assert left_in(experiment.storage)[0] == 1  # what earlier ones left was cleared away
    monkeypatch.setattr(staging, "ALIVE", 60.0)
    assert experiment.import_history(ROUNDS) == range(1, 101)
    assert left_in(experiment.storage) == (0, 15)
    other = make(name="other", clock=Clock())
    other.tell(other.ask(), {"Y": 1})
    other.import_history(ROUNDS)
    assert knowledge(experiment) == knowledge(other)
    assert said(experiment.ask()) == said(other.ask())
    experiment.close()


def test_an_import_that_fails_clears_up_after_itself(tmp_path, small_parts, monkeypatch):
    experiment = make(open_storage(str(tmp_path / "spring.db")))

    def failing(*_):
        raise StorageError("the disk is full")

    for where, name in ((SQLStorage, "_keep"), (SQLWriter, "publish")):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, failing)
            with pytest.raises(StorageError, match="disk is full"):
                experiment.import_history(ROUNDS)
        assert left_in(experiment.storage) == (0, 0)
    experiment.close()


def test_an_import_that_was_taken_to_be_dead_is_refused(tmp_path, small_parts, monkeypatch):
    """Another has cleared it away: it is not published with what is left."""
    experiment = make(open_storage(str(tmp_path / "spring.db")))
    other = open_storage(str(tmp_path / "spring.db"))
    monkeypatch.setattr(staging, "ALIVE", 0.0)
    for name in ("_keep", "stage"):
        plain = getattr(SQLStorage, name)

        def slow(self, *arguments, plain=plain):
            found = plain(self, *arguments)
            other._clear_what_was_left_behind()
            return found

        with monkeypatch.context() as patch:
            patch.setattr(SQLStorage, name, slow)
            with pytest.raises(StorageError, match="cleared away"):
                experiment.import_history(ROUNDS)
        assert experiment.status().trials == 0
        assert left_in(experiment.storage) == (0, 0)
    other.close()
    experiment.close()


@pytest.mark.parametrize("name", ["_keep", "stage"])
def test_an_experiment_that_was_deleted_meanwhile(name, url, small_parts, monkeypatch):
    """Before the import, between its slices, and before it is published: nothing of it is left."""
    experiment = make(open_storage(url))
    plain, there = getattr(SQLStorage, name), ["spring"]

    def deleting(self, *arguments):
        found = plain(self, *arguments)
        if there:
            self.delete(there.pop())
        return found

    monkeypatch.setattr(SQLStorage, name, deleting)
    with pytest.raises(MissingError, match="was deleted"):
        experiment.import_history(ROUNDS)
    with pytest.raises(MissingError, match="was deleted"):
        experiment.import_history(ROUNDS)
    assert left_in(experiment.storage) == (0, 0)
    experiment.close()


def test_a_page_that_cannot_be_read_while_others_are_kept_out(tmp_path, monkeypatch):
    experiment = make(open_storage(str(tmp_path / "spring.db")))
    experiment.record({}, {"Y": 1})

    def failing(*_):
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr("dobandit.experiment.storage.plainly.rows", failing)
    with pytest.raises(StorageError, match="malformed"), experiment.storage.writing(experiment._id) as writer:
        writer.closed_since(0)
    experiment.close()


# -- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE dobandit_import_parts SET trials = replace(trials, '[0,1,', '[1,1,') WHERE first = 14",
        "UPDATE dobandit_import_parts SET checksum = checksum + 1 WHERE first = 14",
        "UPDATE dobandit_import_parts SET trials = X'00ff' WHERE first = 14",
        "DELETE FROM dobandit_import_parts WHERE first = 14",
        "DELETE FROM dobandit_import_parts WHERE first = 98",
        "UPDATE dobandit_imports SET size = 90",
        "UPDATE dobandit_imports SET size = 101",
        "UPDATE dobandit_imports SET position = position + 1",
        "UPDATE dobandit_imports SET number = 'first'",
        "DELETE FROM dobandit_imports",
    ],
)
def test_damage_is_found_before_it_is_learned_from(tmp_path, small_parts, damage):
    experiment = make(open_storage(str(tmp_path / "spring.db")))
    experiment.tell(experiment.ask(), {"Y": 1})
    experiment.import_history(ROUNDS)
    experiment.tell(experiment.ask(), {"Y": 1})
    with closing(experiment.storage.database.engine.raw_connection()) as connection:
        connection.execute(damage)
        connection.commit()
    with pytest.raises(StorageError, match=r"damaged|is not what was stored"):
        again(experiment).ask()
    with pytest.raises(StorageError, match=r"damaged|is not what was stored"):
        list(experiment.storage.rows(experiment._id))
    experiment.close()
