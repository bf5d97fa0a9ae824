"""Tokens: what a program or a colleague shows to be let in by a service.

A token reads dob_ID_SECRET. The storage keeps the secret's hash: whoever reads the storage cannot make the token. The
secret is 256 random bits, so that a plain hash is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from dobandit.checks import shown
from dobandit.errors import ExperimentError, MissingError, closest
from dobandit.experiment.storage.base import Storage
from dobandit.experiment.storage.books import SCOPES, AuditLine, StoredToken
from dobandit.experiment.storage.errors import storable

_TEXT = re.compile(r"dob_([0-9]{1,9})_([A-Za-z0-9_-]{20,100})")
_LONGEST_NAME = 100
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
