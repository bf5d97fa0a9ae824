"""Pages from templates. What a template is given is escaped; nothing is ever marked as safe that came from outside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import Request
from starlette.responses import Response
from starlette.templating import Jinja2Templates

if TYPE_CHECKING:
    from dobandit.service.problems import Problem

HERE = Path(__file__).parent
templates = Jinja2Templates(HERE / "templates")


def page(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    """A template with the visitor at hand."""
    visitor = getattr(request.state, "visitor", None)
    return templates.TemplateResponse(request, name, {"visitor": visitor, **context}, status_code=status)


def error_page(request: Request, problem: Problem) -> Response:
    """What a browser sees of a problem."""
    response = page(request, "error.html", problem.status, problem=problem)
    response.headers.update(problem.headers)
    return response
