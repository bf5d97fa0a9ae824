"""The app: the guard around the routes."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from dobandit import __version__
from dobandit.experiment.storage import Storage
from dobandit.service import login, pages, problems
from dobandit.service.guard import Guard
from dobandit.service.house import House
from dobandit.service.pages.rendering import HERE
from dobandit.service.settings import Settings
from dobandit.service.tokens import Tokens
from dobandit.service.visitors import LoginLink, Sessions


def create_app(storage: Storage, settings: Settings) -> FastAPI:
    """A service of the experiments in `storage`."""
    app = FastAPI(title="dobandit", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    state = app.state
    state.settings, state.house = settings, House(storage, settings)
    state.sessions, state.tokens = Sessions(settings), Tokens(storage, settings)
    state.login = LoginLink() if settings.login else None
    state.used_login = lambda: None  # `serve` prints the next link
    app.add_middleware(Guard, settings=settings, sessions=state.sessions, tokens=state.tokens)
    problems.install(app)
    app.include_router(login.router)
    app.include_router(pages.router)
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    return app
