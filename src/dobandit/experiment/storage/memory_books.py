"""The books of a storage in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dobandit.experiment.storage.books import AuditLine, Books, KeptAnswer, StoredToken
from dobandit.experiment.storage.refusals import key_in_use


class Shelf:
    """All that is kept beside the logs."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.tokens: dict[int, StoredToken] = {}
        self.answers: dict[tuple[str, str], KeptAnswer] = {}
        self.audit: list[AuditLine] = []
        self.next_token = 1

    def lines(self, after: int, most: int, experiment: int | None) -> Sequence[AuditLine]:
        with self.lock:
            later = self.audit[max(after, 0) :]  # lines are numbered from 1
        return [line for line in later if experiment is None or line.experiment == experiment][:most]


class MemoryBooks(Books):
    """Gathers what is entered; it is put onto the shelf when the block ended well."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._answers: list[KeptAnswer] = []
        self._lines: list[AuditLine] = []
        self._tokens: list[StoredToken] = []

    def put_away(self) -> None:
        """Onto the shelf."""
        shelf = self._shelf
        with shelf.lock:
            shelf.answers |= {(one.owner, one.key): one for one in self._answers}
            shelf.audit += [line._replace(number=len(shelf.audit) + i) for i, line in enumerate(self._lines, 1)]
            shelf.tokens |= {token.id: token for token in self._tokens}

    def answered(self, owner: str, key: str) -> KeptAnswer | None:
        new = [one for one in self._answers if (one.owner, one.key) == (owner, key)]
        return new[0] if new else self._shelf.answers.get((owner, key))

    def keep_answer(self, answer: KeptAnswer) -> None:
        if self.answered(answer.owner, answer.key) is not None:
            raise key_in_use(answer.key)
        self._answers.append(answer)

    def forget_answers(self, before: float) -> int:
        with self._shelf.lock:
            old = [key for key, one in self._shelf.answers.items() if one.at < before]
            for key in old:
                del self._shelf.answers[key]
        return len(old)

    def note(self, line: AuditLine) -> None:
        self._lines.append(line)

    def add_token(self, token: StoredToken) -> int:
        with self._shelf.lock:
            number = self._shelf.next_token
            self._shelf.next_token += 1
        self._tokens.append(token._replace(id=number))
        return number

    def revoke_token(self, token: int, at: float) -> bool:
        found = self._shelf.tokens.get(token)
        if found is None or found.revoked_at is not None:
            return False
        self._tokens.append(found._replace(revoked_at=at))
        return True
