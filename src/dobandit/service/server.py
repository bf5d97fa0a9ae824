"""Running the app with uvicorn, and uvicorn's own limits."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

from dobandit.errors import DobanditError
from dobandit.service.settings import Settings

_LONGEST_HEAD = 32 * 1024  # bytes


def bound(host: str, port: int) -> socket.socket:
    """A socket at this address. Raises DobanditError where the port is taken, before anything else is started."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise DobanditError(
            f"the service cannot listen at {host} port {port} ({error.strerror or error}). Choose another --port, or "
            "another --host."
        ) from None


def server_of(app: FastAPI) -> uvicorn.Server:
    """A server of the app, to be run with a bound socket."""
    settings: Settings = app.state.settings
    config = uvicorn.Config(
        app,
        http="h11",  # which bounds the head of a request
        ws="none",
        loop="auto",  # uvloop where there is one, which is quicker
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody's word counts for where a request comes from
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        limit_concurrency=settings.most_connections,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )
    return uvicorn.Server(config)
