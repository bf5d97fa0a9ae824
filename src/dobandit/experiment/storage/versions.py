"""Whether a database has our tables, of which version, and how they are made."""

from __future__ import annotations

from sqlalchemy import Connection, inspect

from dobandit.errors import StorageError
from dobandit.experiment.storage import schema
from dobandit.experiment.storage.engines import Database
from dobandit.experiment.storage.statements import STAMP, VERSION


def stored_version(connection: Connection) -> str | None:
    """None where our tables are not there."""
    if not inspect(connection).has_table(schema.VERSION_TABLE):
        return None
    row = connection.execute(VERSION).first()
    return None if row is None else str(row[0])


def check_version(version: str, url: str) -> None:
    """Refuse to touch tables of another version."""
    if version == schema.VERSIONS[-1]:
        return
    if version in schema.VERSIONS:
        raise StorageError(
            f"{url} must have tables of version {schema.VERSIONS[-1]}, but has those of version {version}. "
            f"Back it up, then run `dobandit storage upgrade {url}`."
        )
    raise StorageError(
        f"{url} was written by a newer dobandit: its tables have version {version}, but this one knows only up to "
        f"{schema.VERSIONS[-1]}. Upgrade dobandit."
    )


def make_tables(connection: Connection, database: Database) -> None:
    """Make and stamp the tables, unless another process was faster. Alembic is not needed for this."""
    database.keep_out(connection)
    version = stored_version(connection)
    if version is not None:
        check_version(version, database.url)
        return
    refuse_foreign(connection, database)
    schema.whole_metadata().create_all(connection, checkfirst=False)
    schema.version_metadata.create_all(connection)  # may be there, and empty
    connection.execute(STAMP, {"version_num": schema.VERSIONS[-1]})


def refuse_foreign(connection: Connection, database: Database) -> None:
    """Raises where tables of other programs have our names; changes nothing.

    The names come first: tables that another process made since then are stamped as ours by the time we look.
    """
    names = set(inspect(connection).get_table_names())
    foreign = sorted(names & set(schema.metadata.tables))
    if foreign and stored_version(connection) is None:
        raise StorageError(
            f"{database.url} must have no tables of other programs named {' or '.join(sorted(schema.metadata.tables))},"
            f" but has {' and '.join(foreign)}. Choose another database."
        )
