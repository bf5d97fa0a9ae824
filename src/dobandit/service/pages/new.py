"""A new experiment: paste what causes what, see it drawn, choose who plays which part and by which rules, and begin."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from fastapi import APIRouter, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from dobandit.errors import DobanditError, GraphError, TakenError, closest
from dobandit.experiment.catalogue import create_experiment
from dobandit.experiment.storage.books import MANAGE
from dobandit.graph.formats import FORMATS
from dobandit.model.links import BUILDERS
from dobandit.service.auth_middleware import require
from dobandit.service.pages.begin import EFFECTS, SMALLER, VALUES, words_of
from dobandit.service.pages.forms import Form, in_the_name_of, text
from dobandit.service.pages.parts import CAN_BE_SET, MOST_PARTS, PARTS
from dobandit.service.pages.rendering import page
from dobandit.service.pages.sketch import Sketch, sketched
from dobandit.service.problems import told_to_visitors

router = APIRouter(include_in_schema=False)
_EXAMPLE = """target: buy
email -> visit
coupon -> visit
coupon -> buy
visit -> buy
"""
_TYPED = (
    *("name", "budget", "total_cost", "exclusive", "policy", "horizon", "control", "stop_within", "format"),
    *("smaller", "effects", "values"),
)
LINKS = tuple(BUILDERS)
POLICIES = (
    ("causal-ucb", "causal-ucb: learns the effects (usual)"),
    ("causal-ts", "causal-ts: the same, choosing by chance"),
    ("best-set", "best-set: finds the best, and may stop"),
    ("ucb", "ucb: sets by their own rounds, any graph"),
)


@router.get("/new")
def new_page(request: Request) -> Response:
    require(request.state.visitor, MANAGE)
    form = FormData({"text": _EXAMPLE, "budget": "1"})
    return _page(request, form, sketched(form, request.app.state.settings))


@router.post("/new/preview")
def preview(request: Request, form: Form) -> Response:
    """The picture and the parts to tick, as the text is typed."""
    require(request.state.visitor, MANAGE)
    _require_format(form)
    sketch = sketched(form, request.app.state.settings)
    return page(request, "_sketch.html", **_shown(form, sketch, {}))


@router.post("/new")
def new(request: Request, form: Form) -> Response:
    require(request.state.visitor, MANAGE)
    _require_format(form)
    sketch = sketched(form, request.app.state.settings)
    if text(form, "step") != "create":
        return _page(request, form, sketch)
    faults: dict[str, str] = {}
    try:
        words = _words(form, sketch, faults)
        if not faults:
            return RedirectResponse(f"/experiments/{_created(request, words)}", 303)
    except TakenError as error:
        faults["name"] = told_to_visitors(error, request.app.state.house.storage)
    except DobanditError as error:
        trouble = told_to_visitors(error, request.app.state.house.storage)
        return _page(request, form, sketch, "" if trouble == sketch.trouble else trouble, faults, 422)
    return _page(request, form, sketch, "", faults, 422)


def _require_format(form: FormData) -> None:
    given = text(form, "format")
    if given and given not in FORMATS:
        raise GraphError(f"formats are {', '.join(FORMATS)}, but got {given[:40]!r}.{closest(given, FORMATS)}")


def _page(
    request: Request,
    form: FormData,
    sketch: Sketch,
    trouble: str = "",
    faults: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    return page(
        request,
        "new.html",
        status,
        policies=POLICIES,
        formats=FORMATS,
        choices={"smaller": SMALLER, "effects": EFFECTS, "values": VALUES},
        trouble=trouble,
        refused=status != 200,
        **_shown(form, sketch, faults or {}),
    )


def _shown(form: FormData, sketch: Sketch, faults: Mapping[str, str]) -> dict[str, Any]:
    return {
        "sketch": sketch,
        "given": {key: text(form, key) for key in _TYPED},
        "faults": {**sketch.faults, **faults},
        "way": text(form, "way"),
        "parts": PARTS,
        "can_be_set": CAN_BE_SET,
        "links": LINKS,
        "most_roles": MOST_PARTS,
    }


def _words(form: FormData, sketch: Sketch, faults: dict[str, str]) -> dict[str, Any]:
    """Those of `create_experiment`, or `faults`."""
    if sketch.graph is None or sketch.what is None:
        faults |= sketch.faults
        if faults:
            return {}
        raise GraphError(sketch.trouble or "an experiment begins with what causes what, but nothing was given.")
    if sketch.guessed:
        raise GraphError("an experiment has a target, but none is chosen. Choose it in the table.")
    way, policy = text(form, "way"), text(form, "policy") or POLICIES[0][0]
    policy = "ucb" if way == "ucb" else policy
    words, found = words_of(form, sketch, sketch.graph)
    faults |= found
    if way.startswith("set:"):
        words["always_set"] = list(dict.fromkeys([*words["always_set"], unquote(way.removeprefix("set:"))]))
    return {**words, "graph": sketch.what, "policy": policy, "hide": sketch.hide if way == "hide" else ()}


def _created(request: Request, words: dict[str, Any]) -> int:
    house = request.app.state.house
    with in_the_name_of(request, "create", words["name"]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        create_experiment(storage=house.storage, clock=house.settings.clock, **words)
    found = house.storage.find(words["name"])
    return int(found.id) if found is not None else 0
