"""/api/v1: the words of Python over HTTP, with its own description: OpenAPI, and a page that is made from it."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from dobandit.service.api import answer_routes, experiment_routes, graph_routes, round_routes
from dobandit.service.api.schemas import PROBLEM
from dobandit.service.http_requests import answer
from dobandit.service.pages.rendering import page

PREFIX = "/api/v1"
router = APIRouter(include_in_schema=False)


def install(app: FastAPI) -> None:
    """All routes of the API; first those that are called most."""
    for part in (
        round_routes.router,
        answer_routes.router,
        experiment_routes.router,
        graph_routes.router,
        experiment_routes.audit_router,
    ):
        app.include_router(part, prefix=PREFIX, responses=PROBLEM, generate_unique_id_function=lambda route: route.name)
    app.include_router(router, prefix=PREFIX)


@cache
def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document."""
    document = get_openapi(
        title="dobandit",
        version=app.version,
        description="Experiments that learn which variables to set so that the target becomes most likely.",
        routes=app.routes,
    )
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    return document


@router.get("")
@router.get("/")
def home() -> Response:
    return RedirectResponse(f"{PREFIX}/docs", 307)


@router.get("/openapi.json")
def openapi_document(request: Request) -> Response:
    return answer(openapi(request.app))


@router.get("/docs")
def docs(request: Request) -> Response:
    """The document as a page, of our own making: nothing is loaded from elsewhere."""
    document = openapi(request.app)
    shapes = document["components"]["schemas"]
    return page(request, "api_docs.html", paths=document["paths"], shapes=shapes, as_json=partial(json.dumps, indent=2))
