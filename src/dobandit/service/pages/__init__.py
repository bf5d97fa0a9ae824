"""The pages for people."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from dobandit.report.style import DRAWN, TOKENS
from dobandit.service.pages import experiment_page, list_page, new_experiment_page, today_page, trial_pages

router = APIRouter(include_in_schema=False)


@router.get("/static/drawn.css")
def drawn_style() -> Response:
    """The colours, and the look of graphs and charts, which reports share."""
    return Response(TOKENS + DRAWN, media_type="text/css", headers={"Cache-Control": "max-age=3600"})


for part in (list_page, experiment_page, trial_pages, today_page, new_experiment_page):
    router.include_router(part.router)
