"""A snapshot: an experiment as one HTML file that opens anywhere, to send by mail."""

from __future__ import annotations

import re
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from dobandit.experiment.experiment import Experiment
from dobandit.experiment.storage.base import StoredExperiment
from dobandit.report.style import DRAWN, TOKENS
from dobandit.service.pages.desks import Desk, desks_of
from dobandit.service.pages.experiment import context_of, view
from dobandit.service.pages.rendering import HERE, drawn, environment
from dobandit.service.threads import answering

router = APIRouter(include_in_schema=False)


@router.get("/experiments/{number}/snapshot")
@answering
def snapshot(request: Request, number: int) -> Response:
    """A file to keep."""
    stored, desk = request.app.state.house.stored(number), desks_of(request).of(number)
    desk.wait(stored)  # what is saved as a file is whole
    text = _html(desk, stored, context_of(request, desk), request.app.state.settings.clock())
    name = f"{file_name(stored.name)}.html"
    return Response(
        text,
        media_type="text/html; charset=utf-8",
        headers={"Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}"},
    )


def snapshot_of(experiment: Experiment, stored: StoredExperiment, now: float) -> str:
    """The file's text, without a service."""
    desk = Desk(experiment, stored.id)
    desk.course.follow()
    return _html(desk, stored, desk.usual, now)


def _html(desk: Desk, stored: StoredExperiment, context: dict[str, float], now: float) -> str:
    style = TOKENS + DRAWN + (HERE / "static" / "style.css").read_text(encoding="utf-8")
    shown = view(desk, stored, context, None, links=False)
    return environment.get_template("snapshot.html").render(style=drawn(style), visitor=None, now=now, **shown)


def file_name(name: str) -> str:
    """Letters and digits of the name: a file's name must do no harm anywhere."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60] or "experiment"
