"""SQLite files that are long, foreign, or no longer what was stored."""

import random
import sqlite3
import zlib
from contextlib import closing

import pytest
from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

import dobandit as dob
from dobandit.errors import DobanditError, StorageError
from dobandit.rows.stored_trial import ClosedTrial
from dobandit.storage import open_storage
from dobandit.storage import statements as do
from dobandit.storage.checksums import checksum
from dobandit.testing.storage_transactions import ASK, BATCH, SEEN, add, close
from helpers.worlds import THOROUGH

GRAPH = dob.CausalGraph([("A", "C"), ("B", "C"), ("A", "Y"), ("C", "Y")], target="Y")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spring.db"


def run(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        found = [connection.execute(statement).fetchall() for statement in statements]
        connection.commit()
    return found[-1]


def filled(path):
    """An experiment with trials of each kind, in a storage that is closed."""
    storage = open_storage(str(path))
    spring = storage.create("spring", "{}", 1.0).id
    add(storage, spring, SEEN, ASK, BATCH, ASK)
    close(storage, spring, 1, observation="[1,1]")
    storage.close()
    return spring


# -- long logs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", [do.PENDING_TRIALS, do.PAGE["failed"], do.LAST["abandoned"]])
def test_what_is_not_told_is_found_without_reading_the_log(path, statement):
    filled(path)
    text = str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))
    values = {"of_experiment": 1, "after": -1, "stop": 9, "most": 5, "param_1": 0}
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {text}", values).fetchall()
    assert len(plan) == 1
    assert "USING INDEX trials_untold (experiment=? AND state=?" in plan[0][3]


def test_rows_read_with_one_pending_do_not_grow_with_the_log(path):
    """SQLite counts its own steps."""
    storage = open_storage(str(path))
    spring, steps = storage.create("spring", "{}", 1.0).id, []
    add(storage, spring, ASK)
    text = str(do.PENDING_TRIALS.compile(dialect=sqlite.dialect(paramstyle="named")))
    for _ in range(2):
        add(storage, spring, *[SEEN] * 2000)
        with closing(sqlite3.connect(path)) as connection:
            steps.append(0)

            def count():
                steps[-1] += 1

            connection.set_progress_handler(count, 1)
            assert len(connection.execute(text, {"of_experiment": spring}).fetchall()) == 1
    storage.close()
    assert steps[0] == steps[1] < 200


# -- flipped values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "observation = '[1,1]' WHERE number = 0",
        "observation = NULL WHERE number = 0",
        "do = '[null,null]' WHERE number = 1",
        "state = 'failed' WHERE number = 0",
        "counts = '[979,21]' WHERE number = 2",
        "rounds = 999 WHERE number = 2",
        "checksum = checksum + 1 WHERE number = 2",
        "checksum = -7 WHERE number = 2",
        "position = 7 WHERE number = 1",
        "number = 9 WHERE number = 2",
        "checksum = 'x' WHERE number = 2",
    ],
)
def test_a_closed_trial_that_was_changed_is_not_learned_from(path, change):
    spring = filled(path)
    storage = open_storage(str(path))
    assert len(storage.closed_since(spring, 0)) == 3
    run(path, f"UPDATE trials SET {change}")
    with pytest.raises(StorageError, match=r"is not what was stored|damaged"):
        storage.closed_since(spring, 0)
    with pytest.raises(StorageError, match=r"is not what was stored|damaged"), storage.writing(spring) as writer:
        writer.closed_since(0)
    storage.close()


def test_the_checksum_stays_what_it_is():
    """Files hold it: CRC-32 of the texts, with the places mixed in."""
    texts = zlib.crc32(b"told\0[null,1]\0[0,1]\0\x001")
    assert texts ^ (3 * 2_654_435_761 + 2 * 2_246_822_519) % 2**32 == 0xD552_2A13
    assert checksum(ClosedTrial(2, 3, "told", "[null,1]", "[0,1]", None, 1)) == 0xD552_2A13


# -- foreign and damaged files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", ["before", "after"])
def test_triggers_are_refused(path, made):
    """They would run at every write, with all that whoever sent the file wants."""
    if made == "after":
        filled(path)
    run(
        path,
        "CREATE TABLE IF NOT EXISTS theirs (x)",
        f"CREATE TRIGGER spy AFTER INSERT ON {'trials' if made == 'after' else 'theirs'} BEGIN DELETE FROM theirs; END",
    )
    storage = open_storage(str(path))
    calls = [lambda: storage.create("x", "{}", 1.0)]
    calls += [lambda: storage.find("spring"), lambda: add(storage, 1, SEEN)] if made == "after" else []
    for call in calls:
        with pytest.raises(StorageError, match=r"no triggers.*has 'spy'"):
            call()
    storage.close()


def test_an_fsync_that_fails_leaves_open_whether_it_was_stored(path, monkeypatch):
    spring = filled(path)
    storage = open_storage(str(path))
    commit = Connection.commit

    def failing(connection):
        commit(connection)  # the pages are written; whether they reached the disk is the question
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        raise DBAPIError("COMMIT", {}, error)

    monkeypatch.setattr(Connection, "commit", failing)
    with pytest.raises(StorageError, match="not known whether it was") as caught:
        add(storage, spring, SEEN)
    monkeypatch.undo()
    assert "Nothing of this was stored" not in str(caught.value)
    assert storage.counters(spring) == (5, 4)
    storage.close()


def test_damaged_pages_are_our_errors(tmp_path):
    """Bytes of a file are overwritten at random: what is then refused is refused in our words."""
    whole = tmp_path / "whole.db"
    experiment = dob.create_experiment("spring", GRAPH, 1, dob.BLMLR(), str(whole), seed=1)
    for i in range(30):
        trial = experiment.ask(lease=60.0)
        if i % 5:
            experiment.tell(trial, {"C": i % 2, "Y": i % 3 % 2})
        elif i % 2:
            experiment.tell_failed(trial.number, "rain")
    experiment.close()
    run(whole, "PRAGMA wal_checkpoint(TRUNCATE)")
    data, rng, refusals = whole.read_bytes(), random.Random(5), set()
    for i in range(20 * THOROUGH):
        damaged = bytearray(data)
        for _ in range(rng.choice([1, 4, 40])):
            damaged[rng.randrange(100, len(data))] = rng.choice([0, 255, rng.randrange(256)])
        path = tmp_path / f"{i}.db"
        path.write_bytes(damaged)
        for use in (
            lambda e: e.trials(),
            lambda e: e.trials(last=3, state="pending"),
            lambda e: e.status(),
            lambda e: e.best_observed(),
            lambda e: e.ask(),
            lambda e: e.tell(29, {"Y": 1}),
            lambda e: e.record({"A": 1}, {"C": 1, "Y": 1}),
            lambda e: e.to_csv(),
            lambda e: e.recommend(),
        ):
            storage = open_storage(str(path))
            try:
                use(dob.open_experiment("spring", storage))
            except DobanditError as error:
                refusals.add(type(error))
            finally:
                storage.close()
    assert StorageError in refusals
