"""What is said of changes and tokens."""

from __future__ import annotations

from typing import Any

from dobandit.experiment.export import iso_time
from dobandit.experiment.storage.books import AuditLine, StoredToken

COLUMNS = ("number", "at", "who", "what", "experiment", "name", "detail")


def audit_document(line: AuditLine) -> dict[str, Any]:
    """A line of the audit."""
    return {**line._asdict(), "at": iso_time(line.at)}


def token_document(token: StoredToken, now: float) -> dict[str, Any]:
    """A token, without its hash."""
    state = "revoked" if token.revoked_at is not None else "valid" if token.valid(now) else "expired"
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "experiment": token.experiment,
        "state": state,
        "created_at": iso_time(token.created_at),
        "expires_at": iso_time(token.expires_at),
        "revoked_at": iso_time(token.revoked_at),
    }
