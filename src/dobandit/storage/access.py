"""What a storage keeps beside the log: tokens, answers to requests that may be repeated, and who changed what.

A token is what a program or a colleague shows to be let in by a service. It reads dob_ID_SECRET. The storage keeps the
secret's hash: whoever reads the storage cannot make the token. The secret is 256 random bits, so that a plain hash is
enough.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from dobandit.checks import shown
from dobandit.errors import ExperimentError, MissingError, closest
from dobandit.storage.storage_errors import storable

if TYPE_CHECKING:
    from dobandit.storage.contract import Storage

READ, WORK, MANAGE = "read", "work", "manage"
SCOPES = (READ, WORK, MANAGE)  # of tokens: each may do what those before it may
_TEXT = re.compile(r"dob_([0-9]{1,9})_([A-Za-z0-9_-]{20,100})")
_LONGEST_NAME = 100


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


# -- tokens of a service ------------------------------------------------------------------------------------------

_NOBODY = StoredToken(0, "", "read", None, "0" * 64, 0.0, revoked_at=0.0)


def create_token(
    storage: Storage,
    name: str,
    scope: str,
    now: float,
    who: str,
    experiment: str | None = None,
    expires_at: float | None = None,
) -> tuple[str, StoredToken]:
    """The text of a new token, which cannot be had again, and what is kept of it.

    experiment  the only one that it is for, by name; it stays that one when it is renamed
    who         who makes it, for the audit
    """
    if scope not in SCOPES:
        raise ExperimentError(f"a scope is one of {', '.join(SCOPES)}, but got {shown(scope)}.{closest(scope, SCOPES)}")
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not storable(name):
        raise ExperimentError(
            f"a token's name has 1 to {_LONGEST_NAME} characters, and says whose it is, but got {shown(name)}."
        )
    of = None if experiment is None else storage.find(experiment)
    if experiment is not None and of is None:
        raise MissingError(
            f"a token is for an experiment that is there, but {storage.url} has none named {shown(experiment)}."
            + (
                closest(experiment, [one.name for one in storage.experiments()])
                or " Create it first, or give --storage."
            )
        )
    secret = secrets.token_urlsafe(32)
    token = StoredToken(0, name, scope, of.id if of else None, _hashed(secret), now, expires_at)
    with storage.booking() as books:
        token = token._replace(id=books.add_token(token))
        detail = f"token {token.id} ({name}), {scope}"
        books.note(AuditLine(0, now, who, "create token", of.id if of else None, of.name if of else None, detail))
    return f"dob_{token.id}_{secret}", token


def revoke_token(storage: Storage, token: int, now: float, who: str) -> StoredToken:
    """From now on it opens nothing."""
    found = storage.token(token)
    if found is None:
        raise MissingError(f"there is no token {token} in {storage.url}. List the tokens to see their numbers.")
    with storage.booking() as books:
        if books.revoke_token(token, now):
            books.note(AuditLine(0, now, who, "revoke token", found.experiment, None, f"token {token} ({found.name})"))
    return found._replace(revoked_at=now if found.revoked_at is None else found.revoked_at)


def token_of(storage: Storage, text: str, now: float) -> StoredToken | None:
    """The token that a text is, if it is valid now. It takes as long for a wrong secret as for a right one."""
    parts = _TEXT.fullmatch(text)
    found = (storage.token(int(parts[1])) if parts else None) or _NOBODY
    same = hmac.compare_digest(_hashed(parts[2] if parts else ""), found.hashed)
    return found if same and found.valid(now) else None


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
