"""A new experiment: paste what causes what, see it drawn, tick who plays which part, and begin."""

from __future__ import annotations

import warnings
from typing import Any
from urllib.parse import unquote

from fastapi import APIRouter, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from dobandit.errors import DobanditError, ExperimentError, GraphError, closest
from dobandit.experiment.catalogue import create_experiment
from dobandit.experiment.storage.books import MANAGE
from dobandit.graph.formats import FORMATS
from dobandit.service.guard import require
from dobandit.service.pages.forms import Form, in_the_name_of, text
from dobandit.service.pages.rendering import page
from dobandit.service.pages.sketch import MOST_PARTS, sketched
from dobandit.service.problems import told_to_visitors

router = APIRouter(include_in_schema=False)
_EXAMPLE = """target: buy
email -> visit
coupon -> visit
coupon -> buy
visit -> buy
"""
POLICIES = (
    ("causal-ucb", "causal-ucb: learns what causes what, and how strongly (usual)"),
    ("causal-ts", "causal-ts: the same beliefs, choosing by drawn models"),
    ("best-set", "best-set: finds the best set, and says when it may stop"),
    ("ucb", "ucb: compares sets by their own rounds; takes any graph"),
)


@router.get("/new")
def new_page(request: Request) -> Response:
    require(request.state.visitor, MANAGE)
    return _page(request, FormData({"text": _EXAMPLE, "budget": "1"}))


@router.post("/new/preview")
def preview(request: Request, form: Form) -> Response:
    """The picture and the parts to tick, as the text is typed."""
    require(request.state.visitor, MANAGE)
    _require_format(form)
    return page(request, "_sketch.html", **_shown(request, form))


@router.post("/new")
def new(request: Request, form: Form) -> Response:
    require(request.state.visitor, MANAGE)
    _require_format(form)
    if text(form, "step") != "create":
        return _page(request, form)
    try:
        number = _created(request, form)
    except DobanditError as error:
        return _page(request, form, told_to_visitors(error, request.app.state.house.storage), 422)
    return RedirectResponse(f"/experiments/{number}", 303)


def _require_format(form: FormData) -> None:
    """A format's name becomes that of a module: it is one of ours."""
    given = text(form, "format")
    if given and given not in FORMATS:
        raise GraphError(f"formats are {', '.join(FORMATS)}, but got {given[:40]!r}.{closest(given, FORMATS)}")


def _page(request: Request, form: FormData, trouble: str = "", status: int = 200) -> Response:
    given = {key: text(form, key) for key in ("name", "horizon", "control", "stop_within")}
    return page(
        request,
        "new.html",
        status,
        given=given,
        budget=text(form, "budget", "1"),
        policy=text(form, "policy", POLICIES[0][0]),
        policies=POLICIES,
        formats=FORMATS,
        chosen_format=text(form, "format"),
        trouble=trouble,
        **_shown(request, form),
    )


def _shown(request: Request, form: FormData) -> dict[str, Any]:
    sketch = sketched(form, request.app.state.settings)
    return {"sketch": sketch, "way": text(form, "way"), "most_roles": MOST_PARTS}


def _created(request: Request, form: FormData) -> int:
    house = request.app.state.house
    sketch = sketched(form, request.app.state.settings)
    if sketch.trouble or sketch.what is None:
        raise GraphError(sketch.trouble or "an experiment begins with what causes what, but nothing was given.")
    if sketch.guessed:
        raise GraphError("an experiment has a target, but none is chosen. Tick it in the table.")
    way, policy = text(form, "way"), text(form, "policy", POLICIES[0][0])
    always = [*sketch.always, *([unquote(way.removeprefix("set:"))] if way.startswith("set:") else [])]
    settings: dict[str, Any] = {
        "policy": "ucb" if way == "ucb" else policy,
        "hide": sketch.hide if way == "hide" else (),
        "horizon": _whole(form, "horizon", "the number of rounds"),
        "control": _number(form, "control", "the share of control rounds") or 0.0,
        "stop_within": _number(form, "stop_within", "how close is close enough"),
    }
    if always:
        settings["always_set"] = list(dict.fromkeys(always))
    budget = _whole(form, "budget", "how many variables may be set")
    name = text(form, "name")
    if not name:
        raise ExperimentError("an experiment has a name, but none is given.")
    with in_the_name_of(request, "create", name), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        create_experiment(name, sketch.what, budget, storage=house.storage, **settings)
    found = house.storage.find(name)
    return int(found.id) if found is not None else 0


def _number(form: FormData, field_name: str, what: str) -> float | None:
    given = text(form, field_name)
    if not given:
        return None
    try:
        return float(given.replace(",", "."))
    except ValueError:
        raise ExperimentError(f"{what} is a number, but got {given[:40]!r}.") from None


def _whole(form: FormData, field_name: str, what: str) -> int | None:
    given = text(form, field_name)
    if not given:
        return None
    if not given.isascii() or not given.isdigit() or len(given) > 12:
        raise ExperimentError(f"{what} is a whole number, but got {given[:40]!r}.")
    return int(given)
