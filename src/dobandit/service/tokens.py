"""Tokens at the door: looked up in the storage, and remembered for a moment."""

from __future__ import annotations

import hashlib
import time

from anyio.to_thread import run_sync

from dobandit.experiment.storage import Storage
from dobandit.experiment.storage.books import StoredToken
from dobandit.experiment.tokens import token_of
from dobandit.service.settings import Settings
from dobandit.service.visitors import Visitor

_MOST = 1000


class Tokens:
    """Used by one thread, that of the event loop. A token that is revoked opens nothing after `token_seconds`."""

    def __init__(self, storage: Storage, settings: Settings) -> None:
        self._storage, self._settings = storage, settings
        self._known: dict[object, tuple[StoredToken, float]] = {}  # by hash or id: the token, and until when

    async def visitor(self, text: str) -> Visitor | None:
        """Whom a token stands for; None where it is not known, or is no longer valid."""
        key = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        token = self._remembered(key)
        if token is None:
            token = await run_sync(token_of, self._storage, text, self._settings.clock())
            self._remember(key, token)
        if token is None:
            return None
        return Visitor(f"{token.name} (token {token.id})", token.scope, token.experiment, token=token.id)

    async def still_valid(self, number: int) -> bool:
        """Whether a token that opened a session still would."""
        token = self._remembered(number)
        if token is None:
            token = await run_sync(self._storage.token, number)
            self._remember(number, token)
        return token is not None and token.valid(self._settings.clock())

    def _remembered(self, key: object) -> StoredToken | None:
        token, until = self._known.get(key, (None, 0.0))
        return token if token is not None and time.monotonic() < until and token.valid(self._settings.clock()) else None

    def _remember(self, key: object, token: StoredToken | None) -> None:
        if token is not None:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = (token, time.monotonic() + self._settings.token_seconds)
