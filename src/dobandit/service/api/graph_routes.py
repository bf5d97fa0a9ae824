"""Graphs and models that come over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from dobandit.checks import shown
from dobandit.documents.graphs import check_document
from dobandit.errors import GraphError, ParseError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import FORMATS, parse_graph, sniff
from dobandit.graph.hiding import AUTO
from dobandit.model.causal_model import CausalModel
from dobandit.model.model_files import is_model_document, model_from_document
from dobandit.policy.hidden_causes import Hide
from dobandit.service.api import schemas
from dobandit.service.api.schemas import Hidden, Variables, takes
from dobandit.service.error_responses import Refusal
from dobandit.service.http_requests import RequestBody, answer, registry_of
from dobandit.service.service_settings import Settings
from dobandit.strict_json import load_json
from dobandit.texts import for_python

router = APIRouter(tags=["graphs"])


class GraphWords(RequestBody):
    """A graph or model, and what is said of its variables."""

    graph: str | dict[str, Any] = Field(description="A text in any format, or a graph or model file's object")
    format: str | None = Field(None, json_schema_extra={"enum": [*FORMATS, None]})
    target: str | None = None
    latent: Variables | None = None
    controllable: Variables | None = None
    bias: Variables | None = None
    context: Variables | None = None
    binarise: dict[str, list[str]] | None = None
    binarise_rest: Literal["first", "last"] | None = None
    structure_only: bool = False


_ROLES = tuple(word for word in GraphWords.model_fields if word not in ("graph", "format"))


class Check(GraphWords):
    budget: int | None = Field(None, ge=0)
    hide: Hidden = ()
    always_set: Variables = ()


@router.post(
    "/graphs/check",
    response_model=schemas.CHECKED,
    openapi_extra=takes(Check, {"graph": "email -> visit\nvisit -> buy", "target": "buy", "budget": 1}),
)
def check(request: Request) -> Response:
    """What is right and wrong with a graph or model, before anything is made of it."""
    given = Check.of(request).words()
    what = graph_given(given, registry_of(request).settings)
    budget = given.get("budget")
    if budget is not None and (type(budget) is not int or budget < 0):
        raise GraphError(f"the budget is a whole number from 0, but got {shown(budget)}.")
    report = check_document(what, budget, hidden_given(given), names(given.get("always_set", ()), "always_set"))
    for said in ("ways_on", "hide_note"):
        report[said] = report[said] and for_python(report[said])
    return answer(report)


def graph_given(given: Mapping[str, Any], settings: Settings) -> CausalGraph | CausalModel:
    """The graph or model of a request: a text in any format, or a JSON object as graph and model files have it."""
    graph, roles = given.get("graph"), _roles(given)
    if isinstance(graph, str):
        kind = given.get("format") or sniff(graph)
        document = load_json(graph) if kind == "json" else None
    elif isinstance(graph, dict):
        kind, document = "json", graph
    else:
        raise ParseError(f'a graph is a text such as "email -> buy", or a JSON object, but got {shown(graph)}.')
    what: CausalGraph | CausalModel
    if document is not None and is_model_document(document):
        if roles:
            raise GraphError(f"a model says its {' and '.join(roles)} itself. Leave that out.")
        what = model_from_document(document)
    else:
        what = parse_graph(graph if isinstance(graph, str) else json.dumps(graph), kind, **roles)
    said = settings.too_large(what if isinstance(what, CausalGraph) else what.structure)
    if said:
        raise Refusal(413, said)
    return what


def _roles(given: Mapping[str, Any]) -> dict[str, Any]:
    roles = {key: given[key] for key in _ROLES if given.get(key) is not None}
    for key in ("latent", "controllable", "bias", "context"):
        if key in roles:
            roles[key] = names(roles[key], key)
    if not isinstance(roles.get("target", ""), str):
        raise GraphError(f"the target is the name of a variable, but got {shown(roles['target'])}.")
    states = roles.get("binarise", {})
    if not isinstance(states, dict) or not all(isinstance(some, list) for some in states.values()):
        raise GraphError(f'binarise is an object such as {{"age": ["old"]}}, but got {shown(states)}.')
    if not isinstance(roles.get("structure_only", True), bool):
        raise GraphError(f"structure_only is true or false, but got {shown(roles['structure_only'])}.")
    return roles


def hidden_given(given: Mapping[str, Any]) -> Hide:
    """Which variables count as hidden."""
    hide = given.get("hide", ())
    return AUTO if hide == AUTO else names(hide, "hide")


def names(value: object, what: str) -> list[str]:
    """A list of names."""
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
        return list(value)
    raise GraphError(f'{what} is a list of names such as ["email"], but got {shown(value)}.')
