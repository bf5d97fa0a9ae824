"""Who asks: visitors, what they may do, the tokens that they show, and the sessions of those who use a browser."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from anyio.to_thread import run_sync

from dobandit.service.service_settings import Settings
from dobandit.storage import Storage
from dobandit.storage.access import SCOPES, StoredToken, token_of

_MOST_SESSIONS = _MOST_TOKENS = 1000


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


class Tokens:
    """Used by one thread, that of the event loop. A token that is revoked opens nothing after `token_seconds`."""

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self._storage, self._settings = storage, settings
        self._known: dict[object, tuple[StoredToken, float]] = {}  # by hash or id: the token, and until when

    async def visitor(self, text: str) -> Visitor | None:
        """Whom a token stands for; None where it is not known, or is no longer valid."""
        token = await self._valid(_hashed(text), lambda: token_of(self._storage, text, self._settings.clock()))
        if token is None:
            return None
        return Visitor(f"{token.name} (token {token.id})", token.scope, token.experiment, token=token.id)

    async def still_valid(self, number: int) -> bool:
        """Whether a token that opened a session still would."""
        return await self._valid(number, lambda: self._storage.token(number)) is not None

    async def _valid(self, key: object, load: Callable[[], StoredToken | None]) -> StoredToken | None:
        token, until = self._known.get(key, (None, 0.0))
        if token is None or time.monotonic() >= until:
            token = await run_sync(load)
            if len(self._known) >= _MOST_TOKENS:
                self._known.clear()
            if token is not None:
                self._known[key] = (token, time.monotonic() + self._settings.token_seconds)
        return token if token is not None and token.valid(self._settings.clock()) else None


class Sessions:
    """Sessions by the hash of their cookies. They end with the process. Used by one thread, that of the event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._by_hash: dict[str, tuple[Visitor, float]] = {}  # whose it is, and until when

    def open(self, visitor: Visitor) -> str:
        """The cookie of a new session."""
        cookie = secrets.token_urlsafe(32)
        now = self._settings.clock()
        self._by_hash = {key: one for key, one in self._by_hash.items() if one[1] > now}
        if len(self._by_hash) >= _MOST_SESSIONS:
            del self._by_hash[min(self._by_hash, key=lambda key: self._by_hash[key][1])]
        guarded = visitor._replace(csrf=secrets.token_urlsafe(32))
        self._by_hash[_hashed(cookie)] = guarded, now + self._settings.session_seconds
        return cookie

    def find(self, cookie: str) -> Visitor | None:
        visitor, until = self._by_hash.get(_hashed(cookie), (None, 0.0))
        return visitor if self._settings.clock() < until else None

    def close(self, cookie: str) -> None:
        self._by_hash.pop(_hashed(cookie), None)


class LoginLink:
    """A code that opens one session; the next one replaces it when it was used. Used by one thread, as sessions are."""

    def __init__(self) -> None:
        self.code = secrets.token_urlsafe(24)

    def take(self, code: str) -> bool:
        """Whether this is the code, which then is a code no more."""
        right = secrets.compare_digest(code.encode(), self.code.encode())
        if right:
            self.code = secrets.token_urlsafe(24)
        return right


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
