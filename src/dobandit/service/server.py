"""Running the app with uvicorn, so that slow and many connections are bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from dobandit.service.settings import Settings


def run(app: FastAPI, host: str, port: int) -> None:
    """Until it is told to stop."""
    server_of(app, host, port).run()


def server_of(app: FastAPI, host: str, port: int) -> uvicorn.Server:
    settings: Settings = app.state.settings
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=_bounded(settings),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody's word counts for where a request comes from
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=32 * 1024,
    )
    return uvicorn.Server(config)


def _bounded(settings: Settings) -> type[H11Protocol]:
    class Bounded(H11Protocol):
        """A connection whose head must arrive in time; uvicorn itself would wait for ever."""

        _patience: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > settings.most_connections:
                transport.abort()
                return
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._between_requests():
                self._wait()
            else:
                self._stop_waiting()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._between_requests() and self.conn.trailing_data[0]:  # the next head has begun
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _between_requests(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self) -> None:
            if self._patience is None:
                self._patience = self.loop.call_later(settings.header_seconds, self._give_up)

        def _stop_waiting(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _give_up(self) -> None:
            self._patience = None
            if self._between_requests():
                self.transport.abort()

    return Bounded
