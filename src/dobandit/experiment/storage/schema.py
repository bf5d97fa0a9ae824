"""The tables. Changing anything here needs a migration beside it, and its name at the end of VERSIONS."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from dobandit.experiment.storage.base import ABANDONED, ASKED, FAILED, IMPORTED, PENDING, RECORDED, TOLD

VERSIONS = ("0001", "0002", "0003", "0004", "0005")  # all there ever were, oldest first
# To bring these up to date only adds columns, tables and an index: it takes no time, and is done when they are opened.
ADDED_TO = ("0001", "0002", "0003", "0004")
VERSION_TABLE = "dobandit_version"  # other programs may keep an alembic_version in the same database

metadata = sa.MetaData()


def _belongs_to(name: str, other: str, constraint: str, key: bool = True) -> sa.Column[int]:
    """A column that refers to a row of another table, and goes with it."""
    refers = sa.ForeignKey(other, name=constraint, ondelete="CASCADE")
    return sa.Column(name, sa.Integer, refers, primary_key=key, autoincrement=False, nullable=False)


experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("trials", sa.Integer, nullable=False),
    sa.Column("closed", sa.Integer, nullable=False),
    sa.Column("choosing_until", sa.Double),  # somebody works out the next trial, at most until then, since 1970
    sa.UniqueConstraint("name", name="experiments_name"),
    sa.CheckConstraint("closed >= 0 AND closed <= trials", name="experiments_counters"),
    sqlite_autoincrement=True,  # without it, SQLite gives the id of a deleted experiment to a new one
)

trials = sa.Table(
    "trials",
    metadata,
    _belongs_to("experiment", "experiments.id", "trials_experiment"),
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
    # Defaults of the tables, not of this program: an older dobandit that is still running writes rows without these.
    sa.Column("context", sa.Text),
    sa.Column("size", sa.Integer, nullable=False, server_default=sa.text("1")),
    sa.Column("control", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("counts", sa.Text),
    sa.Column("rounds", sa.Integer, nullable=False, server_default=sa.text("1")),
    sa.Column("checksum", sa.BigInteger),  # of what a learner takes from a closed trial; older rows have none
    sa.UniqueConstraint("experiment", "position", name="trials_position"),
    sa.CheckConstraint(f"source IN ('{ASKED}', '{RECORDED}', '{IMPORTED}')", name="trials_source"),
    sa.CheckConstraint(f"state IN ('{PENDING}', '{TOLD}', '{FAILED}', '{ABANDONED}')", name="trials_state"),
    sa.CheckConstraint(f"(state = '{PENDING}') = (position IS NULL)", name="trials_closed"),
    sqlite_with_rowid=False,  # one B-tree less to write to at every commit
)

# Sums over the first `position` closed trials, as `experiment.tally` writes them: only to save reading these again.
tallies = sa.Table(
    "tallies",
    metadata,
    _belongs_to("experiment", "experiments.id", "tallies_experiment"),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("sums", sa.Text, nullable=False),
)

# Trials that enter the log together, `size` of them: from `number` and `position` on, or nobody's business as long as
# these are not given. `expires`: whoever writes the parts is taken to be alive until then (seconds since 1970).
imports = sa.Table(
    "dobandit_imports",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    _belongs_to("experiment", "experiments.id", "dobandit_imports_experiment", key=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
    sa.Column("number", sa.Integer),
    sa.Column("position", sa.Integer),
    sa.Column("checksum", sa.BigInteger),
    sa.CheckConstraint("(number IS NULL) = (position IS NULL)", name="dobandit_imports_place"),
    sqlite_autoincrement=True,
)
sa.Index("dobandit_imports_of", imports.c.experiment, imports.c.number)

import_parts = sa.Table(  # see `parts`
    "dobandit_import_parts",
    metadata,
    _belongs_to("import", "dobandit_imports.id", "dobandit_import_parts_import"),
    sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),  # its first trial, counted from 0
    sa.Column("trials", sa.Text, nullable=False),
    sa.Column("checksum", sa.BigInteger, nullable=False),
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

# Alembic makes and reads this one; it is no part of `metadata`, which migrations are compared with.
version_metadata = sa.MetaData()
version = sa.Table(
    VERSION_TABLE,
    version_metadata,
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)


@cache
def whole_metadata() -> sa.MetaData:
    """The tables with all their indices, for whoever makes or compares them: an index with a condition loads the code
    of both databases, which nobody else needs."""
    untold = trials.c.state != TOLD  # few are; with the state in it, SQLite prefers this index to the primary key
    columns = (trials.c.experiment, trials.c.state, trials.c.number)
    sa.Index("trials_untold", *columns, sqlite_where=untold, postgresql_where=untold)
    return metadata
