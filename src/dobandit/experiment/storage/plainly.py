"""Statements in the driver's own words. Inside of a transaction they are many and small: SQLAlchemy's way of executing
one takes several times as long as the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError

Values = Mapping[str, Any] | Sequence[Any]


def execute(connection: Connection, statement: Executable | str, values: Values = ()) -> Any:
    """A cursor of the driver's; read it to its end. Errors are SQLAlchemy's.

    values  by name; of a text, which is in the driver's words already, as the driver takes them
    """
    text, given = (statement, values) if isinstance(statement, str) else _spoken(statement, connection.dialect, values)
    dbapi = connection.dialect.loaded_dbapi
    cursor = connection.connection.cursor()
    try:
        cursor.execute(text, given)
    except dbapi.Error as error:
        lost = connection.dialect.is_disconnect(error, connection.connection.dbapi_connection, cursor)
        if lost:
            connection.invalidate(error)
            connection.engine.dispose()  # those in the pool are of the same age
        raise DBAPIError.instance(
            text, list(given), error, dbapi.Error, connection_invalidated=lost, dialect=connection.dialect
        ) from error
    return cursor


def rows(connection: Connection, statement: Executable, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """All rows of a SELECT, as the driver gives them: SQLite has no bool."""
    found: list[tuple[Any, ...]] = execute(connection, statement, parameters).fetchall()
    return found


def first(connection: Connection, statement: Executable, parameters: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The first row, if there is one."""
    found = rows(connection, statement, parameters)
    return found[0] if found else None


def _spoken(statement: Executable, dialect: Dialect, values: Any) -> tuple[str, Values]:
    text, fixed, order = _words(statement, dialect, tuple(values))
    given = {**fixed, **values} if fixed else values
    return text, given if order is None else [given[name] for name in order]


@lru_cache(maxsize=200)
def _words(
    statement: Any, dialect: Dialect, names: tuple[str, ...]
) -> tuple[str, dict[str, Any], tuple[str, ...] | None]:
    """The text, values that stand in the statement itself, and the order of all values where the text names none."""
    keys = list(names) if statement.is_insert else None  # an INSERT of these columns
    compiled = statement.compile(dialect=dialect, column_keys=keys)
    fixed = {name: value for name, value in compiled.params.items() if name not in names}
    return str(compiled), fixed, tuple(compiled.positiontup) if compiled.positional else None
