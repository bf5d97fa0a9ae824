"""What a storage keeps beside the log: tokens, answers to requests that may be repeated, and who changed what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

READ, WORK, MANAGE = "read", "work", "manage"
SCOPES = (READ, WORK, MANAGE)  # of tokens: each may do what those before it may


class StoredToken(NamedTuple):
    """Who may come in. The token itself is kept nowhere, only its hash."""

    id: int
    name: str
    scope: str  # one of SCOPES
    experiment: int | None  # the only one it is for; None: all
    hashed: str  # SHA-256 in hexadecimal digits
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None

    def valid(self, now: float) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class KeptAnswer(NamedTuple):
    """The answer to a request that had a key, so that its repetition has the same answer and no other effect.

    owner   whose key it is: two visitors may choose the same one
    digest  of the request: the key of one request is no other's
    """

    owner: str
    key: str
    digest: str
    answer: str
    at: float


class AuditLine(NamedTuple):
    """Who did what, and when. `number` is given by the storage, and grows."""

    number: int
    at: float
    who: str
    what: str
    experiment: int | None = None
    name: str | None = None  # the experiment's, at that time
    detail: str = ""


class Books(ABC):
    """Inside of a transaction: what is entered here is stored with the rest of it, or not at all."""

    @abstractmethod
    def answered(self, owner: str, key: str) -> KeptAnswer | None:
        """What was answered under this key, if anything was."""

    @abstractmethod
    def keep_answer(self, answer: KeptAnswer) -> None:
        """Raises ConflictError where the key has an answer."""

    @abstractmethod
    def forget_answers(self, before: float) -> int:
        """Drop the answers that are older. Returns how many there were."""

    @abstractmethod
    def note(self, line: AuditLine) -> None:
        """Enter who did what."""

    @abstractmethod
    def add_token(self, token: StoredToken) -> int:
        """Returns its id, whatever it carries; ids are never used twice."""

    @abstractmethod
    def revoke_token(self, token: int, at: float) -> bool:
        """From now on it opens nothing. False where there is none, or it was revoked before."""
