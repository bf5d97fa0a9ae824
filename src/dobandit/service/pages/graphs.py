"""The causal graph of an experiment as a page shows it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from dobandit.errors import listed
from dobandit.experiment.answers import EdgeEstimate
from dobandit.experiment.experiment import Experiment
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.graph.hiding import changed
from dobandit.report.drawn.graph import Known, graph_panel
from dobandit.report.picture import drawable
from dobandit.service.pages import words
from dobandit.service.pages.rendering import drawn
from dobandit.texts import shortened

_COLUMN = 860.0  # pixels that half a page can show, somewhat shrunk
_MOST_NOTES = 14  # nodes up to which the picture says what each does by itself


class Picture(NamedTuple):
    """markup: None where the graph is too large. wide: whether it needs the width of a whole page."""

    markup: Markup | None
    wide: bool


def shown_graph(experiment: Experiment) -> CausalGraph:
    """The graph as it was given; where removing hidden variables made other edges, the one that is learned."""
    whole, problem = experiment.graph, experiment.definition.problem
    learned, aside = problem.graph, set(problem.hidden)
    if set(learned.edges) <= set(whole.edges):
        return whole
    left, settable, biased = (  # what counts as hidden causes nothing here
        [name for name in names if name not in aside] for names in (learned.nodes, learned.controllable, learned.bias)
    )
    return changed(learned, nodes=left, controllable=settable, bias=biased)


def node_anchor(graph: CausalGraph, name: str) -> str:
    """The id of a variable's place on the page."""
    return f"variable-{graph.index(name)}"


def edge_anchor(graph: CausalGraph, edge: Edge) -> str:
    return f"effect-{graph.index(edge[0])}-{graph.index(edge[1])}"


def picture(
    experiment: Experiment,
    estimates: Sequence[EdgeEstimate],
    do: Mapping[str, float],
    *,
    lit: Collection[Edge] | None = None,
    page: str | None = "",
) -> Picture:
    """The graph as it is known.

    lit   edges that stand out
    page  where the numbers stand that boxes and arrows lead to; None: nowhere
    """
    graph = shown_graph(experiment)
    if not drawable(graph):
        return Picture(None, False)
    edges = set(graph.edges)
    weights = {
        (row.cause, row.effect): Known(row.value, row.low, row.high)
        for row in estimates
        if row.cause is not None and (row.cause, row.effect) in edges
    }
    notes = {
        row.effect: f"{words.digits(row.value, 2)} by itself"
        for row in estimates
        if row.cause is None and row.effect in graph and len(graph) <= _MOST_NOTES
    }

    def link(what: str | Edge) -> str:
        anchor = node_anchor(graph, what) if isinstance(what, str) else edge_anchor(graph, what)
        return f"{page}#{anchor}"

    leads: Callable[[str | Edge], str] | None = None if page is None else link
    label = f"The causal graph: what causes {graph.target}."
    chosen = {name: value for name, value in do.items() if name in graph}
    made = graph_panel(graph, chosen, label=label, weights=weights or None, notes=notes, lit=lit, link=leads)
    return Picture(drawn(made.markup()), made.wide.width > _COLUMN)


def legend(experiment: Experiment, weighted: bool, shaded: str, fading: bool = True) -> list[str]:
    """How to read it.

    shaded  what is shaded, such as "what is recommended"; empty: nothing is
    fading  whether arrows fade with what is not known of them
    """
    graph, aside = shown_graph(experiment), experiment.definition.problem.hidden
    said = ["Filled: the target."]
    said += [f"Shaded: {shaded}."] if shaded else []
    said += ["Thick: a large effect."] if weighted else []
    said += ["Faint: little known yet."] if weighted and fading else []
    said += ["Red: makes its effect less likely."] if weighted else []
    said += ["Dashed: hidden."] if graph.latent else []
    said += ["Square: known before acting."] if graph.context else []
    if graph is not experiment.graph:
        said.append("Hidden variables are removed: their effects are arrows between what they act through.")
    if aside:
        names = listed([shortened(name, 40) for name in aside])
        said.append(f"{names} {'counts' if len(aside) == 1 else 'count'} as hidden too.")
    return said


def edges_between(graph: CausalGraph, chosen: Collection[str]) -> set[Edge]:
    """The edges on directed paths from the chosen variables to the target that enter none of them again."""
    reached, forward = set(chosen), set(chosen)
    for name in graph.nodes:  # causes come before their effects
        if name not in reached and any(parent in forward for parent in graph.parents(name)):
            forward.add(name)
    leads = {graph.target}
    for name in reversed(graph.nodes):
        if any(child in leads and child not in reached for child in graph.children(name)):
            leads.add(name)
    return {(a, b) for a, b in graph.edges if a in forward and b in leads and b not in reached}
