"""What the tests of storages share: a round, and processes that use a storage."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import sqlalchemy as sa

from dobandit.rows.stored_trial import RECORDED, TOLD, StoredTrial
from dobandit.storage import open_database
from helpers import forked

SEEN = StoredTrial(0, RECORDED, "[null,null]", state=TOLD, observation="[0,1]", closed_at=5.0)
PRELUDE = """
import os, sys, time
from dobandit.errors import ExperimentError, StorageError
from dobandit.storage import open_storage
from dobandit.rows.stored_trial import RECORDED, TOLD, StoredTrial
SEEN = StoredTrial(0, RECORDED, "[null,null]", state=TOLD, observation="[0,1]", closed_at=5.0)
storage = open_storage(sys.argv[1])
def add(experiment, *trials):
    with storage.writing(experiment) as writer:
        return writer.add(trials)
"""


def id_of(experiment):
    """The id under which the storage keeps an experiment."""
    return experiment.storage.find(experiment.name).id


def schema_version(url):
    """The version of the tables in a database; None where there are none."""
    database = open_database(url)
    if not database.present():
        return None
    with database.engine.connect() as connection:
        there = sa.inspect(connection).has_table("dobandit_version")
        version = connection.exec_driver_sql("SELECT version_num FROM dobandit_version").scalar() if there else None
    database.engine.dispose()
    return version


def start(script, *arguments):
    command = [sys.executable, "-W", "error", "-c", PRELUDE + script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def carried_out(zygote, script, *arguments):
    """What a script prints in a process that is forked from one that has loaded storages."""
    code, out, err = zygote.run(forked.python, PRELUDE + script, list(map(str, arguments)), [])
    assert code == 0, err
    return out.split()


def finish(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.split()


def add(storage, experiment, *trials):
    with storage.writing(experiment) as writer:
        return writer.add(trials)


def sound(path):
    """Whether SQLite finds nothing wrong, and numbers and positions have no gaps."""
    with closing(sqlite3.connect(path)) as connection:
        check = connection.execute("PRAGMA integrity_check").fetchall()
        rows = connection.execute("SELECT number, position FROM trials ORDER BY number").fetchall()
        counters = connection.execute("SELECT trials, closed FROM experiments").fetchall()
    return check == [("ok",)] and rows == [(i, i) for i in range(len(rows))] and counters == [(len(rows), len(rows))]
