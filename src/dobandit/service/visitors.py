"""Who asks: visitors, what they may do, and the sessions of those who came with a browser."""

from __future__ import annotations

import hashlib
import secrets
import threading
from typing import NamedTuple

from dobandit.experiment.storage.books import SCOPES
from dobandit.service.settings import Settings

_MOST_SESSIONS = 1000


class Visitor(NamedTuple):
    """Who sent a request.

    scope       "read": look; "work": also ask, tell and record; "manage": also create, rename and delete
    experiment  the only experiment (its id) that this visitor knows of; None: all
    csrf        what a form of this visitor's pages must send back; empty for those who came with a token
    token       the id of the token that opened the door, if one did
    """

    name: str
    scope: str
    experiment: int | None = None
    csrf: str = ""
    token: int | None = None

    @property
    def owner(self) -> str:
        """Whose keys those of this visitor's requests are."""
        return self.name if self.token is None else f"token {self.token}"

    def may(self, scope: str) -> bool:
        """Whether this visitor may do what needs `scope`."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def knows(self, experiment: int) -> bool:
        return self.experiment is None or self.experiment == experiment


class _Session(NamedTuple):
    visitor: Visitor
    expires: float


class Sessions:
    """Sessions by the hash of their cookies. They end with the process."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._lock = settings, threading.Lock()
        self._by_hash: dict[str, _Session] = {}

    def open(self, visitor: Visitor) -> str:
        """The cookie of a new session."""
        cookie = secrets.token_urlsafe(32)
        now = self._settings.clock()
        with self._lock:
            self._by_hash = {key: one for key, one in self._by_hash.items() if one.expires > now}
            if len(self._by_hash) >= _MOST_SESSIONS:
                del self._by_hash[min(self._by_hash, key=lambda key: self._by_hash[key].expires)]
            session = _Session(visitor._replace(csrf=secrets.token_urlsafe(32)), now + self._settings.session_seconds)
            self._by_hash[_hashed(cookie)] = session
        return cookie

    def find(self, cookie: str) -> Visitor | None:
        session = self._by_hash.get(_hashed(cookie))
        return None if session is None or session.expires <= self._settings.clock() else session.visitor

    def close(self, cookie: str) -> None:
        with self._lock:
            self._by_hash.pop(_hashed(cookie), None)


class LoginLink:
    """A code that opens one session. Whoever reads the terminal gets the next one when it was used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.code = secrets.token_urlsafe(24)

    def take(self, code: str) -> bool:
        """Whether this is the code, which then is a code no more."""
        with self._lock:
            right = secrets.compare_digest(code.encode(), self.code.encode())
            if right:
                self.code = secrets.token_urlsafe(24)
            return right


def _hashed(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
