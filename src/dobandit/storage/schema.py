"""The tables, and whether a database has them: one schema, whose version stands in a table of its own.

A change of the tables needs a new VERSION, and a way to bring databases of the version before up to date: since 0.1.0
every later version of dobandit opens every log.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

import sqlalchemy as sa

from dobandit.checks import shown
from dobandit.errors import StorageError
from dobandit.rows.stored_trial import PENDING, SOURCES, STATES, TOLD, StoredTrial, types_of
from dobandit.storage.access import SCOPES, AuditLine, KeptAnswer, StoredToken
from dobandit.storage.contract import StoredExperiment
from dobandit.storage.storage_errors import NOTHING_STORED

VERSION = "1"
VERSION_TABLE = "dobandit_version"

metadata = sa.MetaData()


_TYPES: dict[type, sa.types.TypeEngine[Any]] = {int: sa.Integer(), float: sa.Double(), bool: sa.Boolean()}
_SHORT = {"source": 16, "state": 16, "scope": 16, "what": 32, "hashed": 64, "digest": 64}  # letters
# Texts are compared by their characters' numbers, as Python does, and not as some language sorts.
_TYPES[str] = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _columns(row: type, *keys: str) -> Iterator[sa.Column[Any]]:
    """A column for each field of what a storage takes and gives. keys: those of the primary key"""
    for name, (kind, *none) in types_of(row).items():
        kept = sa.String(_SHORT[name]) if name in _SHORT else _TYPES[kind]
        yield sa.Column(name, kept, primary_key=name in keys, nullable=bool(none))


experiments = sa.Table(
    "experiments",
    metadata,
    *_columns(StoredExperiment, "id"),
    sa.Column("tallied", sa.Integer),  # closed trials that `tally` sums up
    sa.Column("tally", sa.Text),  # as `StatusSums` writes it: only to save reading these trials again
    sa.UniqueConstraint("name", name="experiments_name"),
    sa.CheckConstraint("closed >= 0 AND closed <= trials", name="experiments_counters"),
    sqlite_autoincrement=True,  # without it, SQLite gives the id of a deleted experiment to a new one
)
_owner = sa.ForeignKey("experiments.id", name="trials_experiment", ondelete="CASCADE")

trials = sa.Table(
    "trials",
    metadata,
    sa.Column("experiment", sa.Integer, _owner, primary_key=True),
    *_columns(StoredTrial, "number"),
    sa.Column("checksum", sa.BigInteger),  # of what a learner takes from a closed trial
    sa.UniqueConstraint("experiment", "position", name="trials_position"),
    # A tuple of texts is written as SQL writes it.
    sa.CheckConstraint(f"source IN {SOURCES}", name="trials_source"),
    sa.CheckConstraint(f"state IN {STATES}", name="trials_state"),
    sa.CheckConstraint(f"(state = '{PENDING}') = (position IS NULL)", name="trials_closed"),
    sa.CheckConstraint("(position IS NULL) = (checksum IS NULL)", name="trials_checksum"),
    sqlite_with_rowid=False,  # one B-tree less to write to at every commit
)
# Few trials are not told. With the state in it, SQLite prefers this index to the primary key.
_untold = sa.text(f"state != '{TOLD}'")
sa.Index(
    "trials_untold",
    *(trials.c[name] for name in ("experiment", "state", "number")),
    sqlite_where=_untold,
    postgresql_where=_untold,
)

tokens = sa.Table(
    "dobandit_tokens",
    metadata,
    *_columns(StoredToken, "id"),
    sa.CheckConstraint(f"scope IN {SCOPES}", name="dobandit_tokens_scope"),
    sqlite_autoincrement=True,  # a token's id is never used twice
)

answers = sa.Table("dobandit_answers", metadata, *_columns(KeptAnswer, "owner", "key"), sqlite_with_rowid=False)
sa.Index("dobandit_answers_at", answers.c.at)

# It refers to experiments by id only: its lines outlive them.
audit = sa.Table("dobandit_audit", metadata, *_columns(AuditLine, "number"), sqlite_autoincrement=True)

version = sa.Table(VERSION_TABLE, metadata, sa.Column("version_num", sa.String(32), primary_key=True))
_NAMES = sorted({*metadata.tables} - {VERSION_TABLE})


def has_tables(names: Set[str], connection: sa.Connection, url: str) -> bool:
    """Whether our tables are among these. Raises StorageError where they are of another version, and where tables of
    other programs have our names."""
    if VERSION_TABLE not in names:
        foreign = sorted(names & {*_NAMES})
        if foreign:
            raise StorageError(
                f"{url} must have no tables of other programs named {' or '.join(_NAMES)}, but has "
                f"{' and '.join(foreign)}. Choose another database."
            )
        return False
    found = connection.execute(sa.select(version.c.version_num)).scalar()
    if found != VERSION:
        raise StorageError(
            f"{url} must have tables of schema {VERSION}, but has those of schema {shown(found)}. "
            f"{NOTHING_STORED} Open it with the dobandit that wrote it, or a newer one; to begin anew, choose another "
            "file or database."
        )
    return True


def make_tables(connection: sa.Connection) -> None:
    metadata.create_all(connection, checkfirst=False)
    connection.execute(sa.insert(version), {"version_num": VERSION})
