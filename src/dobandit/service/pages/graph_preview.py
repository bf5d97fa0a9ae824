"""The first step of a new experiment: what a text and the parts of its variables amount to, or where it is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote, unquote

from markupsafe import Markup
from starlette.datastructures import FormData

from dobandit.errors import DobanditError, GraphError, ParseError
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.graph.formats import draft_of, load_json, parse_graph, plain_text, sniff
from dobandit.graph.formats.draft import GraphDraft
from dobandit.graph.hiding import smallest_to_hide, unshared, ways_out, without_causes
from dobandit.graph.latent import admissible
from dobandit.graph.roles import usual_bias
from dobandit.model.causal_model import CausalModel
from dobandit.model.model_files import is_model_document, model_from_document
from dobandit.report.graph_layout import drawable
from dobandit.report.svg.graph_drawing import graph_panel
from dobandit.service.http_requests import text
from dobandit.service.pages.rendering import drawn
from dobandit.service.service_settings import Settings
from dobandit.texts import for_python

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
        return [name for name, part in self.parts.items() if part in parts and name != self.target]


@dataclass
class Sketch:
    """What a form amounts to so far: a graph or model, or where its text is wrong."""

    text: str
    kind: str = ""
    what: CausalGraph | CausalModel | None = None
    graph: CausalGraph | None = None
    chosen: Chosen | None = None
    rows: list[Row] = field(default_factory=list)
    aside: Mapping[str, str] = field(default_factory=dict)  # fields of variables that the text does not name just now
    faults: dict[str, str] = field(default_factory=dict)  # by field of the form
    trouble: str = ""
    line: int | None = None
    fault: tuple[str, str] | None = None  # the line in question, and a mark below its place
    notes: list[str] = field(default_factory=list)
    hidden_paths: tuple[tuple[str, ...], ...] = ()  # of a hidden cause that cannot be removed
    hidden_words: str = ""
    hide: tuple[str, ...] = ()  # what could count as hidden, so that a model can be learned
    settable_ends: tuple[str, ...] = ()  # what could be set in every round instead
    picture: Markup | None = None

    @property
    def guessed(self) -> bool:
        """Whether nobody has said what the target is."""
        return self.chosen is not None and not self.chosen.named

    @property
    def from_model(self) -> bool:
        return self.what is not None and not isinstance(self.what, CausalGraph)


def sketched(form: FormData, settings: Settings) -> Sketch:
    """What the form says, as far as it can be understood."""
    raw = form.get("text", "")
    sketch = Sketch(raw.replace("\r\n", "\n") if isinstance(raw, str) else "")
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            sketch.kind = text(form, "format") or sniff(plain_text(sketch.text))
            _read(sketch, form, settings)
        sketch.notes += [str(warning.message) for warning in warned]
    except ParseError as error:
        sketch.trouble, sketch.line = str(error), error.line
        sketch.fault = _fault(sketch.text, error.line, error.column)
    except (DobanditError, RecursionError) as error:
        sketch.trouble = "" if sketch.faults else str(error)  # which is then said beside its field
    sketch.aside = kept_aside(form, sketch.rows)
    if sketch.graph is not None:
        sketch.picture = _picture(sketch)
    return sketch


def _fault(source: str, line: int | None, column: int | None) -> tuple[str, str] | None:
    lines = source.split("\n")
    if line is None or not 1 <= line <= len(lines):
        return None
    begin = max((column or 1) - 40, 1)
    return lines[line - 1][begin - 1 : begin + 59], " " * ((column or 1) - begin) + "^"


def _read(sketch: Sketch, form: FormData, settings: Settings) -> None:
    model = None
    if sketch.kind == "json" and is_model_document(document := load_json(plain_text(sketch.text))):
        model = model_from_document(document)
    base, named = _parsed(sketch, form) if model is None else (model.graph, True)
    if said := settings.too_large(base):
        raise GraphError(said)
    sketch.chosen = chosen_parts(base, form, named) if model is None else parts_of_model(base, form)
    sketch.faults |= sketch.chosen.faults
    sketch.rows = rows_of(base, sketch.chosen, form)
    sketch.graph = with_parts(base, sketch.chosen) if model is None else base
    sketch.what = model or sketch.graph
    _look_for_hidden_causes(sketch)


def _parsed(sketch: Sketch, form: FormData) -> tuple[CausalGraph, bool]:
    """The graph of the text, and whether the text names the target."""
    try:
        return parse_graph(sketch.text, sketch.kind, structure_only=True), True
    except ParseError:
        raise
    except GraphError:  # the text says no target: it is chosen, or the page asks for it
        draft = draft_of(sketch.text, sketch.kind)
        target = _newest([unquote(key[5:]) for key, p in form.items() if key.startswith("part:") and p == TARGET], form)
        chosen = target if target in draft.ids else _likely_target(draft)
        return parse_graph(sketch.text, sketch.kind, target=chosen, structure_only=True), False


def _likely_target(draft: GraphDraft) -> str:
    """The last effect without effects of its own."""
    causes, effects = set(draft.tails), set(draft.heads)
    ends = [name for name, i in draft.ids.items() if i in effects and i not in causes]
    if not ends:
        raise GraphError("a graph has a target, an effect without effects of its own, but this one has none.")
    return ends[-1]


def _look_for_hidden_causes(sketch: Sketch) -> None:
    graph = sketch.graph
    if graph is None or sketch.chosen is None or not graph.latent:
        return
    free = without_causes(graph, sketch.chosen.playing(ALWAYS))
    witness = admissible(free).witness
    if witness is None:
        if shared := unshared(free).witness:
            sketch.notes.append(
                f"Links that are learned are straight lines here, since {shared}. Count one of the two as hidden to do "
                "without that, or promise a straight link where you know it."
            )
        return
    sketch.hidden_paths = witness.paths
    sketch.hidden_words = f"{str(witness)[0].upper()}{str(witness)[1:]}: no model can be learned as it is."
    sketch.hide = smallest_to_hide(free) or () if len(graph) <= MOST_PARTS else ()
    sketch.settable_ends = tuple(dict.fromkeys(p[-1] for p in witness.paths if p[-1] in graph.controllable))
    sketch.notes.append(for_python(ways_out(free, witness)))


def _picture(sketch: Sketch) -> Markup | None:
    graph = sketch.graph
    if graph is None or not drawable(graph):
        return None
    lit: set[Edge] | None = None
    if sketch.hidden_paths:
        lit = {edge for path in sketch.hidden_paths for edge in pairwise(path)}
    return drawn(graph_panel(graph, (), label=f"The causal graph: what causes {graph.target}.", lit=lit).markup())


# -- the part that each variable plays ---------------------------------------------------------------------------------


def field_of(what: str, name: str) -> str:
    """The name of a variable's field in a form. Names of variables may hold anything, so they are percent-encoded."""
    return f"{what}:{quote(name, safe='')}"


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
    """The parts that the text gives."""
    parts = dict.fromkeys(base.nodes, SEEN)
    for names, part in ((base.controllable, SETTABLE), (base.context, CONTEXT), (base.latent, HIDDEN)):
        parts |= dict.fromkeys(names, part)
    return {**parts, base.target: TARGET if named else SETTABLE}


def with_parts(base: CausalGraph, chosen: Chosen) -> CausalGraph:
    """The graph in which every variable plays its part."""
    if chosen.faults:
        raise GraphError(next(iter(chosen.faults.values())))
    return CausalGraph(
        base.edges,
        chosen.target,
        latent=chosen.playing(HIDDEN),
        controllable=chosen.playing(*CAN_BE_SET),
        bias=None if usual_bias(base) else [name for name in base.bias if name in base],
        nodes=base.nodes,
        context=chosen.playing(CONTEXT),
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
