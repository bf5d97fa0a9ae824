"""The tables. Changing anything here needs a migration beside it, and its name at the end of VERSIONS."""

from __future__ import annotations

from functools import cache

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from dobandit.experiment.storage.base import ABANDONED, ASKED, FAILED, IMPORTED, PENDING, RECORDED, TOLD

VERSIONS = ("0001", "0002", "0003", "0004", "0005")  # all there ever were, oldest first
# To bring these up to date only adds columns, tables and an index: it takes no time, and is done when they are opened.
ADDED_TO = ("0001", "0002", "0003", "0004")
VERSION_TABLE = "dobandit_version"  # other programs may keep an alembic_version in the same database

metadata = MetaData()

experiments = Table(
    "experiments",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("trials", Integer, nullable=False),
    Column("closed", Integer, nullable=False),
    Column("choosing_until", Double),  # somebody works out the next trial, at most until then (seconds since 1970)
    UniqueConstraint("name", name="experiments_name"),
    CheckConstraint("closed >= 0 AND closed <= trials", name="experiments_counters"),
    sqlite_autoincrement=True,  # without it, SQLite gives the id of a deleted experiment to a new one
)

trials = Table(
    "trials",
    metadata,
    Column(
        "experiment",
        Integer,
        ForeignKey("experiments.id", name="trials_experiment", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("source", String(16), nullable=False),
    Column("do", Text, nullable=False),
    Column("asked_after", Integer, nullable=False),
    Column("available", Text),
    Column("predicted", Double),
    Column("low", Double),
    Column("high", Double),
    Column("optimistic", Double),
    Column("why", Text, nullable=False),
    Column("asked_at", Double),
    Column("lease_expires", Double),
    Column("issued", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("position", Integer),
    Column("observation", Text),
    Column("closed_at", Double),
    Column("late", Boolean, nullable=False),
    Column("partial", Boolean, nullable=False),
    Column("reason", Text),
    # Defaults of the tables, not of this program: an older dobandit that is still running writes rows without these.
    Column("context", Text),
    Column("size", Integer, nullable=False, server_default=text("1")),
    Column("control", Boolean, nullable=False, server_default=false()),
    Column("counts", Text),
    Column("rounds", Integer, nullable=False, server_default=text("1")),
    Column("checksum", BigInteger),  # of what a learner takes from a closed trial; rows of older versions have none
    UniqueConstraint("experiment", "position", name="trials_position"),
    CheckConstraint(f"source IN ('{ASKED}', '{RECORDED}', '{IMPORTED}')", name="trials_source"),
    CheckConstraint(f"state IN ('{PENDING}', '{TOLD}', '{FAILED}', '{ABANDONED}')", name="trials_state"),
    CheckConstraint(f"(state = '{PENDING}') = (position IS NULL)", name="trials_closed"),
    sqlite_with_rowid=False,  # one B-tree less to write to at every commit
)

# Sums over the first `position` closed trials, as `experiment.tally` writes them: only to save reading these again.
tallies = Table(
    "tallies",
    metadata,
    Column(
        "experiment",
        Integer,
        ForeignKey("experiments.id", name="tallies_experiment", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("position", Integer, nullable=False),
    Column("sums", Text, nullable=False),
)

# Trials that enter the log together, `size` of them: from `number` and `position` on, or nobody's business as long as
# these are not given. `expires`: whoever writes the parts is taken to be alive until then (seconds since 1970).
imports = Table(
    "dobandit_imports",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column(
        "experiment",
        Integer,
        ForeignKey("experiments.id", name="dobandit_imports_experiment", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("size", Integer, nullable=False),
    Column("expires", Double, nullable=False),
    Column("number", Integer),
    Column("position", Integer),
    Column("checksum", BigInteger),
    CheckConstraint("(number IS NULL) = (position IS NULL)", name="dobandit_imports_place"),
    sqlite_autoincrement=True,
)
Index("dobandit_imports_of", imports.c.experiment, imports.c.number)

import_parts = Table(  # see `parts`
    "dobandit_import_parts",
    metadata,
    Column(
        "import",
        Integer,
        ForeignKey("dobandit_imports.id", name="dobandit_import_parts_import", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("first", Integer, primary_key=True, autoincrement=False),  # its first trial, counted from 0
    Column("trials", Text, nullable=False),
    Column("checksum", BigInteger, nullable=False),
)

tokens = Table(
    "dobandit_tokens",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("scope", String(16), nullable=False),
    Column("experiment", Integer),
    Column("hashed", String(64), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    CheckConstraint("scope IN ('read', 'work', 'manage')", name="dobandit_tokens_scope"),
    sqlite_autoincrement=True,  # a token's id is never used twice
)

answers = Table(
    "dobandit_answers",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("answer", Text, nullable=False),
    Column("at", Double, nullable=False),
    sqlite_with_rowid=False,
)
Index("dobandit_answers_at", answers.c.at)

audit = Table(  # refers to experiments by id only: its lines outlive them
    "dobandit_audit",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("what", String(32), nullable=False),
    Column("experiment", Integer),
    Column("name", Text),
    Column("detail", Text, nullable=False),
    sqlite_autoincrement=True,
)

# Alembic makes and reads this one; it is no part of `metadata`, which migrations are compared with.
version_metadata = MetaData()
version = Table(
    VERSION_TABLE,
    version_metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)


@cache
def whole_metadata() -> MetaData:
    """The tables with all their indices, for whoever makes or compares them: an index with a condition loads the code
    of both databases, which nobody else needs."""
    untold = trials.c.state != TOLD  # few are; with the state in it, SQLite prefers this index to the primary key
    columns = (trials.c.experiment, trials.c.state, trials.c.number)
    Index("trials_untold", *columns, sqlite_where=untold, postgresql_where=untold)
    return metadata
