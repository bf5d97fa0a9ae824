"""The books inside a transaction of SQLite's or PostgreSQL's."""

from __future__ import annotations

from itertools import islice
from typing import Any

from sqlalchemy import Connection, Insert
from sqlalchemy.exc import IntegrityError

from dobandit.experiment.storage import plainly
from dobandit.experiment.storage import statements as do
from dobandit.experiment.storage.books import AuditLine, Books, KeptAnswer, StoredToken
from dobandit.experiment.storage.refusals import key_in_use


def inserted(connection: Connection, statement: Insert, values: dict[str, Any]) -> int:
    """The key that the database gave to a new row."""
    key = connection.execute(statement, values).inserted_primary_key
    assert key is not None
    return int(key[0])


class SQLBooks(Books):
    """On the connection of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def answered(self, owner: str, key: str) -> KeptAnswer | None:
        row = plainly.first(self._connection, do.ANSWER, {"of_owner": owner, "of_key": key})
        return None if row is None else KeptAnswer._make(row)

    def keep_answer(self, answer: KeptAnswer) -> None:
        try:
            plainly.execute(self._connection, do.KEEP_ANSWER, answer._asdict())
        except IntegrityError:
            raise key_in_use(answer.key) from None

    def forget_answers(self, before: float) -> int:
        return self._connection.execute(do.FORGET_ANSWERS, {"before": before}).rowcount

    def note(self, line: AuditLine) -> None:
        plainly.execute(self._connection, do.NOTE, _without_key(line))

    def add_token(self, token: StoredToken) -> int:
        return inserted(self._connection, do.ADD_TOKEN, _without_key(token))

    def revoke_token(self, token: int, at: float) -> bool:
        return self._connection.execute(do.REVOKE, {"of_token": token, "at": at}).rowcount == 1


def _without_key(row: AuditLine | StoredToken) -> dict[str, Any]:
    """The values of a row whose first one is given by the database."""
    return dict(islice(row._asdict().items(), 1, None))
