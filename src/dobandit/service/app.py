"""The app: routes, and the middleware around them; and uvicorn, which runs it, with its own limits."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import uvicorn
from anyio.to_thread import run_sync
from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from dobandit.errors import DobanditError
from dobandit.service import api, error_responses, health, login, pages
from dobandit.service.auth_middleware import AuthMiddleware
from dobandit.service.experiment_registry import ExperimentRegistry
from dobandit.service.pages.rendering import HERE
from dobandit.service.service_settings import Settings
from dobandit.service.sessions import LoginLink, Sessions, Tokens
from dobandit.storage import Storage
from dobandit.version import VERSION

_HOUR = 3600.0
_LONGEST_HEAD = 32 * 1024  # bytes


def create_app(storage: Storage, settings: Settings) -> FastAPI:
    """A service of the experiments in `storage`."""
    app = FastAPI(
        title="dobandit",
        version=VERSION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=_alive,
        redirect_slashes=False,
    )
    state = app.state
    state.settings, state.registry = settings, ExperimentRegistry(storage, settings)
    state.sessions, state.tokens = Sessions(settings), Tokens(storage, settings)
    state.login = LoginLink() if settings.login else None
    state.started = state.used_login = lambda: None  # `serve` prints a login link then
    state.figures, state.warmth = health.Figures(), health.Warmth()
    app.add_middleware(AuthMiddleware, state=state)
    error_responses.install(app)
    api.install(app)
    for router in (health.router, login.router, pages.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    return app


@asynccontextmanager
async def _alive(app: FastAPI) -> AsyncIterator[None]:
    """While the service runs."""
    if app.state.settings.warm:
        threading.Thread(target=app.state.warmth.warm, name="warming", daemon=True).start()
    tidying = asyncio.create_task(_tidy(app.state.registry))
    app.state.started()
    try:
        yield
    finally:
        tidying.cancel()


async def _tidy(registry: ExperimentRegistry) -> None:
    """Forget answers that nobody will ask for again."""
    while True:
        with suppress(DobanditError):
            await run_sync(registry.forget_answers)
        await asyncio.sleep(_HOUR)


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
