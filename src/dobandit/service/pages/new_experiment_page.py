"""A new experiment: paste what causes what, see it drawn, choose who plays which part and by which rules, and begin."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

from fastapi import APIRouter, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from dobandit.checks import names_in, number
from dobandit.errors import DobanditError, ExperimentError, GraphError, InterventionError, TakenError, closest
from dobandit.experiment.catalogue import create_experiment
from dobandit.experiment.definition import checked_share, checked_within
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import FORMATS
from dobandit.model.links import BUILDERS
from dobandit.oracle.rules import RULE_WORDS, Rules, require_budget
from dobandit.policy.problem import checked_horizon
from dobandit.service.auth_middleware import require
from dobandit.service.changes import in_the_name_of
from dobandit.service.error_responses import message_for
from dobandit.service.http_requests import Form, registry_of, text
from dobandit.service.pages.graph_preview import (
    ALWAYS,
    CAN_BE_SET,
    FORBIDDEN,
    MOST_PARTS,
    PARTS,
    REQUIRED,
    Row,
    Sketch,
    field_of,
    sketched,
)
from dobandit.service.pages.rendering import page
from dobandit.storage.access import MANAGE
from dobandit.storage.storage_errors import checked_name

T = TypeVar("T")
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
_ANY_COST = 1e300
SMALLER = (("", "where they can be best"), ("yes", "count"), ("no", "do not count"))
EFFECTS = (("", "as the policy takes it"), ("nonnegative", "no cause does harm"), ("any", "some may do harm"))
VALUES = (("", "0 or 1"), ("continuous", "numbers from 0 to 1"))
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
        faults["name"] = message_for(request, error)
    except DobanditError as error:
        trouble = message_for(request, error)
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
    words = _settings(form, sketch, sketch.graph, faults)
    if way.startswith("set:"):
        words["always_set"] = list(dict.fromkeys([*words["always_set"], unquote(way.removeprefix("set:"))]))
    hide = sketch.hide if way == "hide" else ()
    return {**words, "graph": sketch.what, "policy": "ucb" if way == "ucb" else policy, "hide": hide}


def _created(request: Request, words: dict[str, Any]) -> int:
    registry = registry_of(request)
    with in_the_name_of(request, "create", words["name"]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        create_experiment(storage=registry.storage, clock=registry.settings.clock, **words)
    found = registry.storage.find(words["name"])
    return int(found.id) if found is not None else 0


# -- what the form says, in the words of `create_experiment` -----------------------------------------------------------


def _settings(form: FormData, sketch: Sketch, graph: CausalGraph, faults: dict[str, str]) -> dict[str, Any]:
    """What is wrong comes into `faults`, by field of the form."""
    faults |= sketch.faults

    def checked(field: str, check: Callable[[], T]) -> T | None:
        try:
            return check()
        except DobanditError as error:
            faults.setdefault(field, str(error))
            return None

    words: dict[str, Any] = {
        "name": checked("name", lambda: checked_name(text(form, "name"))),
        "horizon": checked("horizon", lambda: checked_horizon(_whole(form, "horizon", "the number of rounds"))),
        "control": checked("control", lambda: checked_share(_number(form, "control") or 0.0)),
        "stop_within": checked("stop_within", lambda: checked_within(_number(form, "stop_within"))),
        "smaller": {"yes": True, "no": False}.get(text(form, "smaller")),
        "effects": text(form, "effects") or None,
        "continuous": text(form, "values") == "continuous",
        "budget": checked("budget", lambda: _budget(form, graph)),
        "total_cost": checked("total_cost", lambda: _total_cost(form, graph)),
        "exclusive": checked("exclusive", lambda: _groups(form, graph)) or (),
        "levers": {},
        "costs": {},
    }
    for row in sketch.rows:
        if row.part in CAN_BE_SET and row.levers:  # the page shows these fields for no other
            words["levers"][row.name] = checked(field_of("levers", row.name), partial(_levers, row))
        if row.part in CAN_BE_SET and row.cost:
            words["costs"][row.name] = checked(field_of("cost", row.name), partial(_cost, row, graph))
    for part, word in ((REQUIRED, "require"), (FORBIDDEN, "forbid"), (ALWAYS, "always_set")):
        words[word] = sketch.chosen.playing(part) if sketch.chosen is not None else []
    if not sketch.from_model:
        words["links"] = {row.name: row.link for row in sketch.rows if row.link and row.has_causes} or None
    if not faults:  # whether some set is allowed by all of it together
        rules = {word: words[word] for word in ("budget", *RULE_WORDS) if word in words}
        field = "total_cost" if words["costs"] and words["total_cost"] is None else "budget"
        checked(field, lambda: Rules(**rules).candidates(graph))
    return words


def _budget(form: FormData, graph: CausalGraph) -> int | None:
    given = _whole(form, "budget", "how many variables may be set")
    return None if given is None else require_budget(graph, given)


def _total_cost(form: FormData, graph: CausalGraph) -> float | None:
    given = _number(form, "total_cost")
    if given is not None:
        Rules(total_cost=given).candidates(graph)
    return given


def _groups(form: FormData, graph: CausalGraph) -> tuple[tuple[str, ...], ...]:
    """A line each."""
    groups = []
    for i, line in enumerate(text(form, "exclusive").splitlines(), 1):
        found = names_in(line)
        if line.strip() and len(set(found)) < 2:
            raise InterventionError(
                f"line {i}: a group is two or more variables of which a set holds at most one, such as email, letter, "
                f"but got {line.strip()[:60]!r}."
            )
        groups += [tuple(found)] if found else []
    Rules(total_cost=0.0, exclusive=tuple(groups)).candidates(graph)
    return tuple(groups)


def _levers(row: Row) -> tuple[float, ...]:
    try:
        values = tuple(map(number, row.levers.replace(",", " ").replace(";", " ").split()))
    except ValueError:
        raise InterventionError(
            f"what a variable may be set to is numbers from 0 to 1 with commas between them, such as 0, 1, but got "
            f"{row.levers[:40]!r}."
        ) from None
    return Rules(levers={row.name: values}).values_of(row.name)


def _cost(row: Row, graph: CausalGraph) -> float:
    cost = _as_number(row.cost)
    Rules(costs={row.name: cost}, total_cost=_ANY_COST).candidates(graph)
    return cost


def _number(form: FormData, field: str) -> float | None:
    given = text(form, field)
    return _as_number(given) if given else None


def _as_number(given: str) -> float:
    try:
        return number(given.replace(",", "."))
    except ValueError:
        raise ExperimentError(f"this is a number, such as 0.5, but got {given[:40]!r}.") from None


def _whole(form: FormData, field: str, what: str) -> int | None:
    given = text(form, field)
    if not given:
        return None
    if not given.isascii() or not given.isdigit() or len(given) > 12:
        raise ExperimentError(f"{what} is a whole number, but got {given[:40]!r}.")
    return int(given)
