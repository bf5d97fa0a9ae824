"""The tables, and whether a database has them: one schema, whose version stands in a table of its own.

A change of the tables needs a new VERSION, and a way to bring databases of the version before up to date: since 0.1.0
every later version of dobandit opens every log.
"""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from dobandit.checks import shown
from dobandit.errors import StorageError
from dobandit.experiment.storage.base import ABANDONED, ASKED, FAILED, IMPORTED, PENDING, RECORDED, TOLD
from dobandit.experiment.storage.engines import NOTHING_STORED, Database

VERSION = "1"
VERSION_TABLE = "dobandit_version"

metadata = sa.MetaData()


def _of_experiment(constraint: str) -> sa.Column[int]:
    """The experiment that a row belongs to, and goes with."""
    refers = sa.ForeignKey("experiments.id", name=constraint, ondelete="CASCADE")
    return sa.Column("experiment", sa.Integer, refers, primary_key=True, autoincrement=False, nullable=False)


experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("trials", sa.Integer, nullable=False),
    sa.Column("closed", sa.Integer, nullable=False),
    sa.Column("tallied", sa.Integer),  # closed trials that `tally` sums up
    sa.Column("tally", sa.Text),  # as `experiment.status_sums` writes it: only to save reading these trials again
    sa.UniqueConstraint("name", name="experiments_name"),
    sa.CheckConstraint("closed >= 0 AND closed <= trials", name="experiments_counters"),
    sqlite_autoincrement=True,  # without it, SQLite gives the id of a deleted experiment to a new one
)

trials = sa.Table(
    "trials",
    metadata,
    _of_experiment("trials_experiment"),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("source", sa.String(16), nullable=False),
    sa.Column("do", sa.Text, nullable=False),
    sa.Column("asked_after", sa.Integer, nullable=False),
    sa.Column("available", sa.Text),
    sa.Column("predicted", sa.Double),
    sa.Column("low", sa.Double),
    sa.Column("high", sa.Double),
    sa.Column("optimistic", sa.Double),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("asked_at", sa.Double),
    sa.Column("lease_expires", sa.Double),
    sa.Column("issued", sa.Integer, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("position", sa.Integer),
    sa.Column("observation", sa.Text),
    sa.Column("closed_at", sa.Double),
    sa.Column("late", sa.Boolean, nullable=False),
    sa.Column("partial", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("context", sa.Text),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("control", sa.Boolean, nullable=False),
    sa.Column("counts", sa.Text),
    sa.Column("rounds", sa.Integer, nullable=False),
    sa.Column("checksum", sa.BigInteger),  # of what a learner takes from a closed trial
    sa.UniqueConstraint("experiment", "position", name="trials_position"),
    sa.CheckConstraint(f"source IN ('{ASKED}', '{RECORDED}', '{IMPORTED}')", name="trials_source"),
    sa.CheckConstraint(f"state IN ('{PENDING}', '{TOLD}', '{FAILED}', '{ABANDONED}')", name="trials_state"),
    sa.CheckConstraint(f"(state = '{PENDING}') = (position IS NULL)", name="trials_closed"),
    sa.CheckConstraint("(position IS NULL) = (checksum IS NULL)", name="trials_checksum"),
    sqlite_with_rowid=False,  # one B-tree less to write to at every commit
)

tokens = sa.Table(
    "dobandit_tokens",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("scope", sa.String(16), nullable=False),
    sa.Column("experiment", sa.Integer),
    sa.Column("hashed", sa.String(64), nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double),
    sa.Column("revoked_at", sa.Double),
    sa.CheckConstraint("scope IN ('read', 'work', 'manage')", name="dobandit_tokens_scope"),
    sqlite_autoincrement=True,  # a token's id is never used twice
)

answers = sa.Table(
    "dobandit_answers",
    metadata,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sqlite_with_rowid=False,
)
sa.Index("dobandit_answers_at", answers.c.at)

audit = sa.Table(  # refers to experiments by id only: its lines outlive them
    "dobandit_audit",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("what", sa.String(32), nullable=False),
    sa.Column("experiment", sa.Integer),
    sa.Column("name", sa.Text),
    sa.Column("detail", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)

version = sa.Table(VERSION_TABLE, metadata, sa.Column("version_num", sa.String(32), primary_key=True))
_NAMES = sorted({*metadata.tables} - {VERSION_TABLE})


def check_version(connection: sa.Connection, database: Database) -> bool:
    """Whether our tables are there. Raises StorageError where they are of another version, and where tables of other
    programs have our names."""
    names = database.table_names(connection)
    if VERSION_TABLE not in names:
        foreign = sorted(names & {*_NAMES})
        if foreign:
            raise StorageError(
                f"{database.url} must have no tables of other programs named {' or '.join(_NAMES)}, but has "
                f"{' and '.join(foreign)}. Choose another database."
            )
        return False
    found = connection.execute(sa.select(version.c.version_num)).scalar()
    if found != VERSION:
        raise StorageError(
            f"{database.url} must have tables of schema {VERSION}, but has those of schema {shown(found)}. "
            f"{NOTHING_STORED} Open it with the dobandit that wrote it, or a newer one; to begin anew, choose another "
            "file or database."
        )
    return True


def make_tables(connection: sa.Connection, database: Database) -> None:
    """Make the tables, unless another process was faster."""
    database.keep_out(connection)
    if not check_version(connection, database):
        _whole_metadata().create_all(connection, checkfirst=False)
        connection.execute(sa.insert(version), {"version_num": VERSION})


@cache
def _whole_metadata() -> sa.MetaData:
    """The tables with all their indices. An index with a condition loads the code of both databases, which only those
    who make tables need."""
    untold = trials.c.state != TOLD  # few are; with the state in it, SQLite prefers this index to the primary key
    columns = (trials.c.experiment, trials.c.state, trials.c.number)
    sa.Index("trials_untold", *columns, sqlite_where=untold, postgresql_where=untold)
    return metadata
