"""Pages from templates. What a template is given is escaped; nothing is ever marked as safe that came from outside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape
from starlette.responses import Response
from starlette.templating import Jinja2Templates

from dobandit.experiment.reasons import may_stop, more_words
from dobandit.service.pages import page_wording
from dobandit.texts import action_words, counted, percent, printable, printable_lines, shortened

if TYPE_CHECKING:
    from dobandit.service.error_responses import Refusal

HERE = Path(__file__).parent
_TITLES = {  # of pages that say what went wrong, in plain words
    403: "Not allowed",
    404: "Not found",
    409: "Conflict",
    413: "Too large",
    422: "This cannot be done",
    429: "Too many requests",
    503: "Temporarily unavailable",
}


def _shown(value: Any) -> Any:
    """Control characters, and those that turn the direction of a text, are shown and not obeyed; lines stay lines."""
    return printable_lines(value) if type(value) is str else value


def cut(text: str, most: int) -> str:
    """At most so many characters of a text; where some are missing, pointing at it shows the whole."""
    return _pointed(shortened(text, most), printable(text))


def _sets(do: Mapping[str, float], most: int) -> str:
    """What is set, with names cut likewise."""
    return _pointed(page_wording.sets(do, most), printable(action_words(do)))


def _pointed(shown: str, whole: str) -> str:
    return shown if shown == whole else Markup('<span title="{}">{}</span>').format(whole, shown)


environment = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=True, finalize=_shown, trim_blocks=True, lstrip_blocks=True
)
environment.filters |= {
    "digits": page_wording.digits,
    "signed": page_wording.signed,
    "span": page_wording.span,
    "many": counted,
    "level": page_wording.level,
    "promise": page_wording.promise,
    "moment": page_wording.moment,
    "sets": _sets,
    "context": page_wording.context,
    "of_rounds": page_wording.of_rounds,
    "share": percent,
    "stops": may_stop,
    "more": more_words,
    "short": shortened,
    "cut": cut,
    "as_typed": escape,  # a text that goes back into the field in which it was typed, with its line breaks
    "token": lambda name: quote(name, safe=""),
}
templates = Jinja2Templates(env=environment)


def page(request: Request, name: str, status: int = 200, **context: Any) -> Response:
    """A template with the visitor at hand."""
    visitor = getattr(request.state, "visitor", None)
    return templates.TemplateResponse(request, name, {"visitor": visitor, **context}, status_code=status)


def error_page(request: Request, problem: Refusal) -> Response:
    """What a browser sees of a problem."""
    title = _TITLES.get(problem.status, problem.title)
    response = page(request, "error.html", problem.status, problem=problem, title=title)
    response.headers.update(problem.headers)
    return response


def drawn(markup: str) -> Markup:
    """What `report.svg` has drawn, in which every text is escaped."""
    return Markup(markup)
