"""Which part each variable of a new experiment plays: what the text says of it, and what was chosen on the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote, unquote

from starlette.datastructures import FormData

from dobandit.errors import GraphError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import usual_bias
from dobandit.service.pages.forms import text

TARGET, SEEN, SETTABLE, CONTEXT, HIDDEN = "target", "seen", "controllable", "context", "latent"
REQUIRED, ALWAYS, FORBIDDEN = "require", "always_set", "forbid"
CAN_BE_SET = {
    SETTABLE: "can be set",
    REQUIRED: "required: in every set",
    ALWAYS: "always set: in every round",
    FORBIDDEN: "forbidden: in no set",
}
PARTS = {TARGET: "the target", **CAN_BE_SET, SEEN: "only seen", CONTEXT: "known before acting", HIDDEN: "hidden"}
MOST_PARTS = 200  # variables whose parts can be chosen on a page
_TYPED = ("levers", "cost", "link")  # what else a row has
_FIELDS = ("part", "was", *_TYPED)
_DRAWN_TARGET = "drawn_target"


class Row(NamedTuple):
    """A variable on the page. was: the part that the text gave it; has_causes: whether a link says how they add up."""

    name: str
    part: str
    was: str
    levers: str = ""
    cost: str = ""
    link: str = ""
    has_causes: bool = False


@dataclass
class Chosen:
    """What the page says of the variables of a graph. named: whether somebody has said what the target is."""

    parts: dict[str, str]
    own: dict[str, str]  # as the text has them
    target: str
    named: bool
    faults: dict[str, str] = field(default_factory=dict)

    def playing(self, *parts: str) -> list[str]:
        return [name for name, part in self.parts.items() if part in parts]


def field_of(what: str, name: str) -> str:
    """The name of a variable's field in a form. Names of variables may hold anything, so they are percent-encoded."""
    return f"{what}:{quote(name, safe='')}"


def target_wanted(form: FormData) -> str | None:
    """The variable that is chosen as the target, if one is."""
    return _newest([unquote(key[5:]) for key, part in form.items() if key.startswith("part:") and part == TARGET], form)


def _newest(wanted: Sequence[str], form: FormData) -> str | None:
    """Of those that are chosen as the target, the one that was not it when the page was drawn."""
    drawn = unquote(text(form, _DRAWN_TARGET))
    return next((name for name in wanted if name != drawn), wanted[0] if wanted else None)


def chosen_parts(base: CausalGraph, form: FormData, named: bool) -> Chosen:
    """The part of each variable: what was chosen for it, unless the text has changed its mind about it since.

    named  whether the text names the target, so that `base.target` is its word rather than the page's
    """
    own, parts = _own_parts(base, named), {}
    for name, before in own.items():
        said, was = text(form, field_of("part", name)), text(form, field_of("was", name))
        stands = was == before or (said == TARGET and not named)
        parts[name] = said if said in PARTS and stands else before
    wanted = [name for name, part in parts.items() if part == TARGET]
    target = _newest(wanted, form)
    found = Chosen(parts, own, target or base.target, named=target is not None)
    drawn = unquote(text(form, _DRAWN_TARGET))
    for name in wanted:
        if name not in (target, drawn):
            found.faults[field_of("part", name)] = (
                f"one variable is the target, and {target!r} is chosen too. Keep one."
            )
        if name != target:
            parts[name] = own[name] if own[name] != TARGET else SETTABLE
    return found


def _own_parts(base: CausalGraph, named: bool) -> dict[str, str]:
    latent, context, settable = set(base.latent), set(base.context), set(base.controllable)

    def own(name: str) -> str:
        if name == base.target:
            return TARGET if named else SETTABLE
        return HIDDEN if name in latent else CONTEXT if name in context else SETTABLE if name in settable else SEEN

    return {name: own(name) for name in base.nodes}


def with_parts(base: CausalGraph, chosen: Chosen) -> CausalGraph:
    """The graph in which every variable plays its part."""
    if chosen.faults:
        raise GraphError(next(iter(chosen.faults.values())))
    hidden, context, settable = (
        [name for name in chosen.playing(*parts) if name != chosen.target]
        for parts in ((HIDDEN,), (CONTEXT,), tuple(CAN_BE_SET))
    )
    bias = None if usual_bias(base) else [name for name in base.bias if name in base]
    return CausalGraph(
        base.edges, chosen.target, latent=hidden, controllable=settable, bias=bias, nodes=base.nodes, context=context
    )


def parts_of_model(graph: CausalGraph, form: FormData) -> Chosen:
    """Of a model, which says its target and what is hidden itself: only whether what can be set is required and so."""
    own = _own_parts(graph, True)
    said = {name: text(form, field_of("part", name)) for name in graph.controllable}
    parts = {name: said[name] if said.get(name) in CAN_BE_SET else part for name, part in own.items()}
    return Chosen(parts, own, graph.target, named=True)


def rows_of(graph: CausalGraph, chosen: Chosen, form: FormData) -> list[Row]:
    """The table of a graph, with what was typed; none where there are too many variables."""
    if len(graph) > MOST_PARTS:
        return []
    found = []
    for name in graph.nodes:
        levers, cost, link = (text(form, field_of(what, name)) for what in _TYPED)
        found.append(Row(name, chosen.parts[name], chosen.own[name], levers, cost, link, bool(graph.parents(name))))
    return found


def kept_aside(form: FormData, rows: list[Row]) -> Mapping[str, str]:
    """Fields of variables that the text does not name just now, as while it is typed: they come back with them."""
    shown = {row.name for row in rows}
    said: dict[str, dict[str, str]] = {}
    for key in form:
        what, colon, token = key.partition(":")
        if colon and what in _FIELDS and unquote(token) not in shown:
            said.setdefault(token, {})[what] = text(form, key)
    worth = {
        token: one for token, one in said.items() if one.get("part") != one.get("was") or any(map(one.get, _TYPED))
    }
    return {f"{what}:{token}": value for token, one in list(worth.items())[:MOST_PARTS] for what, value in one.items()}
