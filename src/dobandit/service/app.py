"""The app: routes, and the middleware around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from anyio.to_thread import run_sync
from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from dobandit.errors import DobanditError
from dobandit.experiment.storage import Storage
from dobandit.service import api, health, login, pages, problems
from dobandit.service.auth_middleware import AuthMiddleware
from dobandit.service.house import House
from dobandit.service.pages.rendering import HERE
from dobandit.service.settings import Settings
from dobandit.service.visitors import LoginLink, Sessions, Tokens
from dobandit.version import VERSION

_HOUR = 3600.0


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
    state.settings, state.house = settings, House(storage, settings)
    state.sessions, state.tokens = Sessions(settings), Tokens(storage, settings)
    state.login = LoginLink() if settings.login else None
    state.started = state.used_login = lambda: None  # `serve` prints a login link then
    state.figures, state.warmth = health.Figures(), health.Warmth()
    app.add_middleware(AuthMiddleware, state=state)
    problems.install(app)
    api.install(app)
    for router in (health.router, login.router, pages.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    return app


@asynccontextmanager
async def _alive(app: FastAPI) -> AsyncIterator[None]:
    """While the service runs."""
    if app.state.settings.warm:
        app.state.warmth.begin()
    tidying = asyncio.create_task(_tidy(app.state.house))
    app.state.started()
    try:
        yield
    finally:
        tidying.cancel()


async def _tidy(house: House) -> None:
    """Forget answers that nobody will ask for again."""
    while True:
        with suppress(DobanditError):
            await run_sync(house.forget_answers)
        await asyncio.sleep(_HOUR)
