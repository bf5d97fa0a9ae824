"""The books inside a transaction of SQLite's or PostgreSQL's."""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from dobandit.experiment.storage import book_statements as do
from dobandit.experiment.storage import plainly
from dobandit.experiment.storage.books import AuditLine, Books, KeptAnswer, StoredToken
from dobandit.experiment.storage.refusals import key_in_use


class SQLBooks(Books):
    """On the connection of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def answered(self, owner: str, key: str) -> KeptAnswer | None:
        row = plainly.first(self._connection, do.ANSWER, {"of_owner": owner, "of_key": key})
        return None if row is None else KeptAnswer._make(row)

    def keep_answer(self, answer: KeptAnswer) -> None:
        try:
            plainly.execute(self._connection, do.KEEP, answer._asdict())
        except IntegrityError:
            raise key_in_use(answer.key) from None

    def forget_answers(self, before: float) -> int:
        return self._connection.execute(do.FORGET, {"before": before}).rowcount

    def note(self, line: AuditLine) -> None:
        values = line._asdict()
        del values["number"]
        plainly.execute(self._connection, do.NOTE, values)

    def add_token(self, token: StoredToken) -> int:
        values = token._asdict()
        del values["id"]
        key = self._connection.execute(do.ADD_TOKEN, values).inserted_primary_key
        return int(key[0]) if key else 0

    def revoke_token(self, token: int, at: float) -> bool:
        return self._connection.execute(do.REVOKE, {"of_token": token, "at": at}).rowcount == 1
