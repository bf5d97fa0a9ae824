"""From older tables to the present ones. Only this module needs Alembic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from dobandit.errors import StorageError
from dobandit.experiment.storage import schema
from dobandit.experiment.storage.addresses import open_database
from dobandit.experiment.storage.engines import Database
from dobandit.experiment.storage.versions import check_version, stored_version

_MIGRATIONS = Path(__file__).with_name("migrations")


def upgrade(url: str) -> tuple[str, str]:
    """Bring the tables to the present version, all or nothing. Returns the versions before and after."""
    return bring_up_to_date(open_database(url))


def bring_up_to_date(database: Database) -> tuple[str, str]:
    """Run the migrations that are missing, in one transaction that keeps out others who would do the same."""
    absent = StorageError(
        f"{database.url} must have dobandit's tables to be upgraded, but has none. Check the address; an experiment's "
        "first start makes new tables by itself."
    )
    if not database.present():
        raise absent
    with _connected(database) as connection:
        if connection.dialect.name == "sqlite":  # it copies and drops a table to change it; no trial may go with that
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        database.begin(connection)
        database.keep_out(connection)
        before = stored_version(connection)
        if before is None:
            raise absent
        if before not in schema.VERSIONS:
            check_version(before, database.url)
        migrate(connection)
        connection.commit()
    return before, schema.VERSIONS[-1]


def migrate(connection: Connection, version: str = "head") -> None:
    """Run the migrations inside the caller's transaction."""
    command.upgrade(configuration(connection), version)
    if connection.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise StorageError("A migration left trials without their experiment. Nothing of it was stored; report this.")


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's view of the migrations that are installed with the package."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@contextmanager
def _connected(database: Database) -> Iterator[Connection]:
    try:
        with database.engine.connect() as connection:
            yield connection
    except SQLAlchemyError as error:
        raise database.explain(error) from None
    finally:
        database.engine.dispose()
