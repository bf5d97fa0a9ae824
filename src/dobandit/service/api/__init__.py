"""/api/v1: the words of Python over HTTP."""

from __future__ import annotations

from fastapi import APIRouter

from dobandit.service.api import audit, catalogue, describing, events, graphs, reading, rounds

PREFIX = "/api/v1"


def router() -> APIRouter:
    """All routes of the API."""
    whole = APIRouter(prefix=PREFIX)
    for part in (rounds, reading, catalogue, events, graphs, audit, describing):
        whole.include_router(part.router)
    return whole
