"""The charts of an experiment's page: both answers, rewards, what was tried when, and how well effects are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from dobandit.experiment.answers import EdgeEstimate
from dobandit.experiment.status import mean_of
from dobandit.experiment.stretches import Stretches
from dobandit.policy.answers import Recommendation
from dobandit.report.drawn.bars import Value, values_chart
from dobandit.report.drawn.course import Row, Stage, interval_chart, reward_chart, tried_chart
from dobandit.service.page_cache import Answers, PageCache
from dobandit.service.pages import graphs, words
from dobandit.service.pages.rendering import drawn
from dobandit.texts import counted, with_interval

_BINS = 24  # of observed rewards
_SETS = 12  # rows of what was tried when
_EDGES = 60  # edges with a picture of their interval


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
        sure = f"estimated{words.level(told.interval_words)}"
        rows.append(Value(f"{teller}: {words.sets(told.do, 40)}", told.value, *told.interval, sure, "model"))
        if told.observed is not None:
            about = f"{counted(told.observed.rounds, 'round')} with this set, 95%"
            rows.append(Value("Same set, seen", told.observed.mean, *told.observed.interval, about, "data"))
    if seen is not None and (told is None or seen.do != told.do):
        about = f"observed in {counted(seen.rounds, 'round')}, 95%"
        rows.append(Value(f"Data: {words.sets(seen.do, 40)}", seen.mean, *seen.interval, about, "data"))
    if told is not None and told.nothing is not None and told.do:
        sure = f"estimated{words.level(told.interval_words)}"
        rows.append(Value("Doing nothing", told.nothing.value, *told.nothing.interval, sure))
    if not rows:
        return None
    said = "; ".join(f"{row.name}: {with_interval(row.value, row.low, row.high)}" for row in rows)
    return drawn(values_chart(rows, f"{target}: {said}"))


def rewards_picture(stretches: Stretches, target: str, continuous: bool) -> Markup | None:
    if not any(stretch.rounds for stretch in stretches.every):
        return None
    seen = []
    for first, part in stretches.parts(_BINS):
        if part.rounds:
            mean = mean_of(part.total, part.rounds, continuous)
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
        shares = [stretch.tried[text] / stretch.trials if stretch.trials else 0.0 for stretch in stretches.every]
        rows.append(Row(words.sets(do), shares, told is not None and do == told.do))
    if different > len(texts):
        rest = [
            1.0 - sum(stretch.tried[text] for text in texts) / stretch.trials if stretch.trials else 0.0
            for stretch in stretches.every
        ]
        rows.append(Row(f"{different - len(texts):,} other sets", [max(share, 0.0) for share in rest]))
    hrefs = {}
    if stretches.width == 1 and links:
        hrefs = {i: f"/experiments/{cache.number}/trials?position={i}" for i in range(len(stretches.every))}
    label = "Which sets were tried when; dot size shows the share of trials."
    return drawn(tried_chart(rows, cache.position, label, hrefs))


def node_views(cache: PageCache) -> list[NodeView]:
    """Every effect that is learned, with the intervals of its causes on the way."""
    now, shown = cache.history[-1].estimates, graphs.shown_graph(cache.experiment)
    drawn_edges = set(shown.edges)
    reach = (-1.0 if any(row.low < 0.0 for row in now) else 0.0, 1.0)
    tracks: dict[tuple[str | None, str], list[tuple[int, float, float, float]]] = {}
    for known in cache.history:
        for row in known.estimates:
            value, low, high = (min(max(part, reach[0]), reach[1]) for part in (row.value, row.low, row.high))
            tracks.setdefault((row.cause, row.effect), []).append((known.position, value, low, high))

    def edge_view(row: EdgeEstimate) -> EdgeView:
        cause = row.cause or ""
        anchor = graphs.edge_anchor(shown, (cause, row.effect)) if (cause, row.effect) in drawn_edges else ""
        said = f"{cause} to {row.effect}: {with_interval(row.value, row.low, row.high, 2)}"
        track = tracks[row.cause, row.effect]
        return EdgeView(row, anchor, drawn(interval_chart(track, said, reach)) if len(now) <= _EDGES else None)

    found = []
    for effect, rows in groupby(now, key=lambda row: row.effect):
        listed = list(rows)
        alone = next((row for row in listed if row.cause is None), None)
        anchor = graphs.node_anchor(shown, effect) if effect in shown else ""
        edges = [edge_view(row) for row in listed if row.cause is not None]
        found.append(NodeView(effect, anchor, listed[0].rows, listed[0].form, alone, edges))
    return found
