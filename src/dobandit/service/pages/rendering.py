"""Pages from templates. What a template is given is escaped; nothing is ever marked as safe that came from outside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape
from starlette.responses import Response
from starlette.templating import Jinja2Templates

from dobandit.report.readable import shortened
from dobandit.service.pages import words
from dobandit.texts import printable

if TYPE_CHECKING:
    from dobandit.service.problems import Problem

HERE = Path(__file__).parent


def _shown(value: Any) -> Any:
    """Control characters, and those that turn the direction of a text, are shown and not obeyed; lines stay lines."""
    return "\n".join(map(printable, value.split("\n"))) if type(value) is str else value


def as_typed(text: str) -> Markup:
    """A text that goes back into the field in which it was typed: escaped, with its line breaks."""
    return escape(text)


environment = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters |= {
    "digits": words.digits,
    "signed": words.signed,
    "span": words.span,
    "many": words.many,
    "level": words.level,
    "moment": words.moment,
    "iso": words.iso,
    "sets": words.sets,
    "short": shortened,
    "as_typed": as_typed,
    "token": lambda name: quote(name, safe=""),
}
templates = Jinja2Templates(env=environment)


def page(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    """A template with the visitor at hand."""
    visitor = getattr(request.state, "visitor", None)
    return templates.TemplateResponse(request, name, {"visitor": visitor, **context}, status_code=status)


def error_page(request: Request, problem: Problem) -> Response:
    """What a browser sees of a problem."""
    response = page(request, "error.html", problem.status, problem=problem)
    response.headers.update(problem.headers)
    return response


def drawn(markup: str) -> Markup:
    """What `report.drawn` has drawn, in which every text is escaped."""
    return Markup(markup)
