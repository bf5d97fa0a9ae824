"""Running the app with uvicorn, so that long heads, and slow and many connections, are bounded."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from dobandit.service.settings import Settings

_LONGEST_HEAD = 32 * 1024  # bytes


class Server(uvicorn.Server):
    """One that says when it can be reached: who follows a link at once must find somebody there."""

    listening: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self.listening is not None:
            self.listening()


def run(app: FastAPI, host: str, port: int, listening: Callable[[], None]) -> None:
    """Until it is told to stop. listening: called once it can be reached"""
    server = server_of(app, host, port)
    server.listening = listening
    server.run()


def server_of(app: FastAPI, host: str, port: int) -> Server:
    settings: Settings = app.state.settings
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=_bounded(settings),
        ws="none",
        loop="auto",  # uvloop where there is one, which is quicker
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody's word counts for where a request comes from
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )
    return Server(config)


def _bounded(settings: Settings) -> type[HttpToolsProtocol]:
    class Bounded(HttpToolsProtocol):
        """A connection whose heads must be short, and arrive in time; uvicorn itself would take in any, and wait for
        ever."""

        _patience: asyncio.TimerHandle | None = None
        _in_head = False
        _head = 0  # bytes of its lines so far
        _unseen = 0  # bytes since the head began, or since a part of the body was seen

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > settings.most_connections:
                transport.abort()
                return
            self._wait()

        def data_received(self, data: bytes) -> None:
            self._unseen += len(data)
            super().data_received(data)
            if self._unseen > _LONGEST_HEAD and not self.transport.is_closing():  # one line without an end
                self.send_400_response("Invalid HTTP request received.")
            elif self._in_head or self._between_requests():
                self._wait()
            else:
                self._stop_waiting()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._in_head, self._head, self._unseen = True, 0, 0

        def on_url(self, url: bytes) -> None:
            self._count(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._in_head:  # what comes behind a body in parts is no header: it would come after the guard
                self._count(len(name) + len(value))
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._in_head = False
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._unseen = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._unseen = 0
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._in_head:  # the next head has begun
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _count(self, size: int) -> None:
            """Raises, which the parser turns into its own error: then the answer is 400."""
            self._head += size
            if self._head > _LONGEST_HEAD:
                raise ValueError("the head of a request is too long")

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
