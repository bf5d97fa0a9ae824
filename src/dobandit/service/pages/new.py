"""A new experiment: paste what causes what, see it drawn, tick who plays which part, and begin."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from dobandit.errors import DobanditError, ExperimentError, GraphError, ParseError, closest
from dobandit.experiment.catalogue import create_experiment
from dobandit.experiment.storage.books import MANAGE
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.graph.formats import FORMATS, load_json, parse_graph, sniff
from dobandit.graph.formats.draft import GraphDraft
from dobandit.graph.formats.files import plain_text
from dobandit.graph.formats.roles import usual_bias
from dobandit.graph.hiding import smallest_to_hide, ways_out, without_causes
from dobandit.graph.latent import admissible
from dobandit.model.base import CausalModel
from dobandit.model.files import is_model_document, model_from_document
from dobandit.report.drawn.graph import graph_svgs
from dobandit.report.picture import drawable
from dobandit.service.guard import require
from dobandit.service.pages.forms import Form, in_the_name_of, names, text
from dobandit.service.pages.rendering import drawn, page
from dobandit.service.problems import told_to_visitors
from dobandit.service.settings import Settings

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
_MOST_ROLES = 200  # variables whose parts can be ticked on a page


@dataclass
class Sketch:
    """What a form amounts to so far: a graph or model, or where its text is wrong."""

    text: str
    kind: str = ""
    what: CausalGraph | CausalModel | None = None
    graph: CausalGraph | None = None
    guessed: bool = False  # whether nobody has said what the target is
    trouble: str = ""
    line: int | None = None
    column: int | None = None
    fault: tuple[str, str] | None = None  # the line in question, and a mark below its place
    notes: list[str] = field(default_factory=list)
    always: list[str] = field(default_factory=list)
    hidden_paths: tuple[tuple[str, ...], ...] = ()  # of a hidden cause that cannot be removed
    hidden_words: str = ""
    hide: tuple[str, ...] = ()  # what could count as hidden, so that a model can be learned
    settable_ends: tuple[str, ...] = ()  # what could be set in every round instead
    picture: Markup | None = None

    @property
    def from_model(self) -> bool:
        return self.what is not None and not isinstance(self.what, CausalGraph)


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
    return {"sketch": sketch, "way": text(form, "way"), "most_roles": _MOST_ROLES}


# -- from the form to a graph --------------------------------------------------------------------------------------


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
        sketch.trouble, sketch.line, sketch.column = str(error), error.line, error.column
        sketch.fault = _fault(sketch.text, error.line, error.column)
    except (DobanditError, RecursionError) as error:
        sketch.trouble = str(error)
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
    if sketch.kind == "json" and is_model_document(document := load_json(plain_text(sketch.text))):
        model = model_from_document(document)
        sketch.what, sketch.graph = model, model.graph
        _bound(sketch.graph, settings)
    else:
        target = next(iter(names(form, "target")), None)
        try:
            base = parse_graph(sketch.text, sketch.kind, structure_only=True)
        except ParseError:
            raise
        except GraphError:  # the text says no target: it is ticked, or the page asks for it
            draft = _draft(sketch)
            if target not in draft.ids:
                target, sketch.guessed = _likely_target(draft), True
            base = parse_graph(sketch.text, sketch.kind, target=target, structure_only=True)
        _bound(base, settings)
        sketch.what = sketch.graph = _with_parts(base, target, form)
    sketch.always = [name for name in names(form, "always") if name in sketch.graph.controllable]
    _look_for_hidden_causes(sketch)


def _bound(graph: CausalGraph, settings: Settings) -> None:
    if len(graph) > settings.most_nodes or graph.edge_count > settings.most_edges:
        raise GraphError(
            f"a graph has at most {settings.most_nodes:,} variables and {settings.most_edges:,} edges here, but this "
            f"one has {len(graph):,} and {graph.edge_count:,}. Create its experiment with the command line."
        )


def _draft(sketch: Sketch) -> GraphDraft:
    """What the text says, before anything is made of it. Each format has a module that drafts its graphs."""
    module = import_module(f"dobandit.graph.formats.{'json_format' if sketch.kind == 'json' else sketch.kind}")
    draft: GraphDraft = module.draft_of(plain_text(sketch.text))
    return draft


def _likely_target(draft: GraphDraft) -> str:
    """The last effect without effects of its own."""
    causes, effects = set(draft.tails), set(draft.heads)
    ends = [name for name, i in draft.ids.items() if i in effects and i not in causes]
    if not ends:
        raise GraphError("a graph has a target, an effect without effects of its own, but this one has none.")
    return ends[-1]


def _with_parts(base: CausalGraph, target: str | None, form: FormData) -> CausalGraph:
    """The graph with the parts that were ticked; a variable that the page has not shown yet keeps its own."""
    shown = set(names(form, "shown")) & set(base.nodes)
    chosen = target if target is not None and target in base else base.target
    ticked = {part: set(names(form, part)) for part in ("hidden", "context", "settable")}

    def part(name: str, own: Iterable[str]) -> list[str]:
        return [n for n in base.nodes if (n in ticked[name] if n in shown else n in own)]

    hidden = [name for name in part("hidden", base.latent) if name != chosen]
    context = [name for name in part("context", base.context) if name != chosen and name not in hidden]
    out = {chosen, *hidden, *context}
    was_out = {base.target, *base.latent, *base.context}  # these were not settable because of their part alone
    settable = [n for n in part("settable", {*base.controllable, *was_out}) if n not in out]
    bias = None if usual_bias(base) else [name for name in base.bias if name in base]
    return CausalGraph(
        base.edges, chosen, latent=hidden, controllable=settable, bias=bias, nodes=base.nodes, context=context
    )


def _look_for_hidden_causes(sketch: Sketch) -> None:
    graph = sketch.graph
    if graph is None or not graph.latent:
        return
    free = without_causes(graph, sketch.always)
    witness = admissible(free).witness
    if witness is None:
        return
    sketch.hidden_paths = witness.paths
    sketch.hidden_words = f"{str(witness)[0].upper()}{str(witness)[1:]}: no model can be learned as it is."
    sketch.hide = smallest_to_hide(free) or () if len(graph) <= _MOST_ROLES else ()
    sketch.settable_ends = tuple(dict.fromkeys(p[-1] for p in witness.paths if p[-1] in graph.controllable))
    sketch.notes.append(ways_out(free, witness))


def _picture(sketch: Sketch) -> Markup | None:
    graph = sketch.graph
    if graph is None or not drawable(graph):
        return None
    lit: set[Edge] | None = None
    if sketch.hidden_paths:
        lit = {edge for path in sketch.hidden_paths for edge in pairwise(path)}
    return drawn(graph_svgs(graph, (), label=f"The causal graph: what causes {graph.target}.", lit=lit).markup)


# -- from the form to an experiment --------------------------------------------------------------------------------


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
