"""The pages for people."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from dobandit.service.pages.rendering import page

router = APIRouter(include_in_schema=False)


@router.get("/")
def experiments_page(request: Request) -> Response:
    """All experiments."""
    return page(request, "experiments.html", experiments=request.app.state.house.listed(request.state.visitor))
