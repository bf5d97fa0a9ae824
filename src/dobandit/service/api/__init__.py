"""/api/v1: the words of Python over HTTP."""

from __future__ import annotations

from fastapi import FastAPI

from dobandit.service.api import audit, catalogue, describing, events, graphs, reading, rounds

PREFIX = "/api/v1"


def install(app: FastAPI) -> None:
    """All routes of the API; first those that are called most."""
    for part in (rounds, reading, catalogue, events, graphs, audit, describing):
        app.include_router(part.router, prefix=PREFIX)
