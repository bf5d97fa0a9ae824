"""The pictures of an experiment's pages: its causal graph, both answers, rewards, what was tried when, and how well
effects are known."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from dobandit.errors import listed
from dobandit.experiment.answers import EdgeEstimate
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.status import mean_of
from dobandit.experiment.stretches import Stretches
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.policy.answers import Recommendation
from dobandit.report.graph_layout import drawable
from dobandit.report.svg.bar_charts import Value, values_chart
from dobandit.report.svg.experiment_charts import Row, Stage, interval_chart, reward_chart, tried_chart
from dobandit.report.svg.graph_drawing import Known, graph_panel
from dobandit.service.page_cache import Answers, PageCache
from dobandit.service.pages import page_wording
from dobandit.service.pages.rendering import drawn
from dobandit.texts import counted, shortened, with_interval

_COLUMN = 860.0  # pixels that half a page can show, somewhat shrunk
_MOST_NOTES = 14  # nodes up to which the picture says what each does by itself
_BINS = 24  # of observed rewards
_SETS = 12  # rows of what was tried when
_EDGES = 60  # edges with a picture of their interval


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
    return learned.changed(nodes=left, controllable=settable, bias=biased)


def node_anchor(graph: CausalGraph, name: str) -> str:
    """The id of a variable's place on the page."""
    return f"variable-{graph.index(name)}"


def edge_anchor(graph: CausalGraph, edge: Edge) -> str:
    return f"effect-{graph.index(edge[0])}-{graph.index(edge[1])}"


def graph_picture(
    experiment: Experiment,
    estimates: Sequence[EdgeEstimate],
    do: Mapping[str, float],
    *,
    lit: Collection[Edge] | None = None,
    page: str = "",
) -> Picture:
    """The graph as it is known.

    lit   edges that stand out
    page  where the numbers stand that boxes and arrows lead to
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
        row.effect: f"{page_wording.digits(row.value, 2)} by itself"
        for row in estimates
        if row.cause is None and row.effect in graph and len(graph) <= _MOST_NOTES
    }

    def link(what: str | Edge) -> str:
        anchor = node_anchor(graph, what) if isinstance(what, str) else edge_anchor(graph, what)
        return f"{page}#{anchor}"

    label = f"The causal graph: what causes {graph.target}."
    chosen = {name: value for name, value in do.items() if name in graph}
    made = graph_panel(graph, chosen, label=label, weights=weights or None, notes=notes, lit=lit, link=link)
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


# -- charts ----------------------------------------------------------------------------------------------------------


class EdgeView(NamedTuple):
    """An effect of one variable on another, with its place on the page."""

    row: EdgeEstimate
    anchor: str
    chart: Markup | None


class NodeView(NamedTuple):
    """A variable that is learned. alone: how likely it is by itself."""

    name: str
    anchor: str
    rows: int
    form: str
    alone: EdgeEstimate | None
    edges: Sequence[EdgeView]


def values_picture(answers: Answers, target: str, teller: str) -> Markup | None:
    """The answer of the model, or of a policy that keeps none, and the data's, and doing nothing, on one scale."""
    rows, told, seen = [], answers.recommendation, answers.observed
    if told is not None and not math.isnan(told.value):
        sure = f"estimated{page_wording.level(told.interval_words)}"
        rows.append(Value(f"{teller}: {page_wording.sets(told.do, 40)}", told.value, *told.interval, sure, "model"))
        if told.observed is not None:
            about = f"{counted(told.observed.rounds, 'round')} with this set, 95%"
            rows.append(Value("Same set, seen", told.observed.mean, *told.observed.interval, about, "data"))
    if seen is not None and (told is None or seen.do != told.do):
        about = f"observed in {counted(seen.rounds, 'round')}, 95%"
        rows.append(Value(f"Data: {page_wording.sets(seen.do, 40)}", seen.mean, *seen.interval, about, "data"))
    if told is not None and told.nothing is not None and told.do:
        sure = f"estimated{page_wording.level(told.interval_words)}"
        rows.append(Value("Doing nothing", told.nothing.value, *told.nothing.interval, sure))
    if not rows:
        return None
    said = "; ".join(f"{row.name}: {with_interval(row.value, row.low, row.high)}" for row in rows)
    return drawn(values_chart(rows, f"{target}: {said}"))


def rewards_picture(stretches: Stretches, target: str) -> Markup | None:
    if not any(stretch.rounds for stretch in stretches.every):
        return None
    seen = []
    for first, part in stretches.parts(_BINS):
        if part.rounds:
            mean = mean_of(part.total, part.rounds)
            seen.append(Stage(first, first + part.trials, mean.value, *mean.interval))
    predicted = [
        Stage(
            i * stretches.width,
            i * stretches.width + stretch.trials,
            *(part / stretch.foretold for part in (stretch.predicted, stretch.low, stretch.high)),
        )
        for i, stretch in enumerate(stretches.every)
        if stretch.foretold
    ]
    return drawn(reward_chart(seen, predicted, target, f"{target} over time: observed, and as it had been predicted."))


def tried_picture(cache: PageCache, told: Recommendation | None, links: bool) -> Markup | None:
    stretches, columns = cache.stretches, cache.experiment.columns
    if not stretches.every:
        return None
    texts, different = stretches.sets(_SETS)
    rows = []
    for text in texts:
        do = columns.decode(text)
        shares = [stretch.tried[text] / max(stretch.trials, 1) for stretch in stretches.every]
        rows.append(Row(page_wording.sets(do), shares, told is not None and do == told.do))
    if different > len(texts):
        others = [stretch.trials - sum(stretch.tried[text] for text in texts) for stretch in stretches.every]
        shares = [trials / max(stretch.trials, 1) for trials, stretch in zip(others, stretches.every, strict=True)]
        rows.append(Row(f"{different - len(texts):,} other sets", shares))
    hrefs = {}
    if stretches.width == 1 and links:
        hrefs = {i: f"/experiments/{cache.number}/trials?position={i}" for i in range(len(stretches.every))}
    label = "Which sets were tried when; dot size shows the share of trials."
    return drawn(tried_chart(rows, cache.position, label, hrefs))


def node_views(cache: PageCache) -> list[NodeView]:
    """Every effect that is learned, with the intervals of its causes on the way."""
    now, shown = cache.history[-1].estimates, shown_graph(cache.experiment)
    drawn_edges = set(shown.edges)
    reach = (-1.0 if any(row.low < 0.0 for row in now) else 0.0, 1.0)
    tracks: dict[tuple[str | None, str], list[tuple[int, float, float, float]]] = {}
    for known in cache.history:
        for row in known.estimates:
            value, low, high = (min(max(part, reach[0]), reach[1]) for part in (row.value, row.low, row.high))
            tracks.setdefault((row.cause, row.effect), []).append((known.position, value, low, high))

    def edge_view(row: EdgeEstimate) -> EdgeView:
        cause = row.cause or ""
        anchor = edge_anchor(shown, (cause, row.effect)) if (cause, row.effect) in drawn_edges else ""
        said = f"{cause} to {row.effect}: {with_interval(row.value, row.low, row.high, 2)}"
        track = tracks[row.cause, row.effect]
        return EdgeView(row, anchor, drawn(interval_chart(track, said, reach)) if len(now) <= _EDGES else None)

    found = []
    for effect, rows in groupby(now, key=lambda row: row.effect):
        listed = list(rows)
        alone = next((row for row in listed if row.cause is None), None)
        anchor = node_anchor(shown, effect) if effect in shown else ""
        edges = [edge_view(row) for row in listed if row.cause is not None]
        found.append(NodeView(effect, anchor, listed[0].rows, listed[0].form, alone, edges))
    return found
