"""The page of one experiment: what to do now, why, and what was known when."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.responses import JSONResponse, Response

from dobandit.experiment.answers import EdgeEstimate
from dobandit.experiment.status import mean_of
from dobandit.experiment.storage.base import StoredExperiment
from dobandit.policy.learner import Recommendation
from dobandit.report.drawn.bars import Value, values_chart
from dobandit.report.drawn.course import Row, Stage, interval_chart, reward_chart, tried_chart
from dobandit.service.pages import graphs, words
from dobandit.service.pages.course import EXACT, Course, Known, Stretch
from dobandit.service.pages.desks import Answers, Desk, desks_of
from dobandit.service.pages.rendering import drawn, page
from dobandit.service.threads import answering

router = APIRouter(include_in_schema=False)
_BINS = 24  # of observed rewards
_SETS = 12  # rows of what was tried when
_EDGES = 60  # edges with a picture of their interval
_RECENT = 8  # trials in the table


class Replay(NamedTuple):
    """The graph as it was known at a position of the log."""

    at: int
    last: int
    step: int
    picture: graphs.Picture
    legend: Sequence[str]
    sentence: str
    approximate: bool

    @property
    def now(self) -> bool:
        return self.at >= self.last


class EdgeView(NamedTuple):
    row: EdgeEstimate
    anchor: str
    chart: Markup | None


class NodeView(NamedTuple):
    name: str
    anchor: str
    rows: int
    form: str
    alone: EdgeEstimate | None
    edges: Sequence[EdgeView]


@router.get("/experiments/{number}")
@answering
def experiment_page(
    request: Request, number: int, round_: Annotated[int | None, Query(alias="round", ge=0)] = None
) -> Response:
    """Everything about one experiment."""
    stored, desk = request.app.state.house.stored(number), desks_of(request).of(number)
    if not desk.ready(stored):
        return page(request, "reading.html", stored=stored, read=desk.course.position)
    return page(request, "experiment.html", **view(desk, stored, context_of(request, desk), round_))


@router.get("/experiments/{number}/graph")
@answering
def graph_part(request: Request, number: int, round_: Annotated[int, Query(alias="round", ge=0)] = 0) -> Response:
    """The graph as it was known at a round, for the slider."""
    stored, desk = request.app.state.house.stored(number), desks_of(request).of(number)
    desk.ready(stored)
    return page(request, "_replay.html", stored=stored, replay=replay(desk, round_, context_of(request, desk)))


@router.get("/experiments/{number}/closed")
def closed_count(request: Request, number: int) -> Response:
    """How many trials there are, for a page that follows them."""
    stored = request.app.state.house.stored(number)
    return JSONResponse({"closed": stored.closed, "trials": stored.trials})


def context_of(request: Request, desk: Desk) -> dict[str, float]:
    """The context that a visitor looks at: 0 where none is chosen."""
    found = {}
    for i, name in enumerate(desk.experiment.graph.context):
        try:
            value = float(request.query_params.get(f"c{i}", "0"))
        except ValueError:
            value = 0.0
        found[name] = value if desk.experiment.columns.continuous and 0 <= value <= 1 else float(value == 1)
    return found


def view(
    desk: Desk, stored: StoredExperiment, context: Mapping[str, float], round_: int | None, *, links: bool = True
) -> dict[str, Any]:
    """What the template shows; a snapshot shows the same, without links to other pages."""
    experiment, course = desk.experiment, desk.course
    answers = desk.answers(context)
    told, target = answers.recommendation, experiment.graph.target
    history = course.history()
    within = experiment.definition.stop_within
    return {
        "stored": stored,
        "experiment": experiment,
        "target": target,
        "context": context,
        "headline": words.headline(told, answers.trouble, target, history[-1].learner.rounds, within),
        "answers": answers,
        "told": told,
        "against": _against(answers),
        "verdict": words.VERDICTS.get(told.verdict or "", "") if told and history[-1].learner.keeps_model else "",
        "values": _values(answers, target),
        "replay": replay(desk, course.position if round_ is None else round_, context),
        "rewards": _rewards(course, target, experiment.columns.continuous),
        "tried": _tried(desk, told, links),
        "nodes": _nodes(desk, history),
        "closed": course.position,
        "pending": stored.trials - stored.closed,
        "recent": experiment.trials(last=_RECENT)[::-1],
        "rounds": history[-1].learner.rounds,
        "policy": experiment.definition.policy_text,
    }


def _against(answers: Answers) -> list[str]:
    """What speaks against the recommendation, each thing once."""
    told = answers.recommendation
    return list(dict.fromkeys([*(told.warnings if told else ()), *answers.findings]))


def _values(answers: Answers, target: str) -> Markup | None:
    """The model's answer and the data's, and doing nothing, on one scale."""
    rows, told, seen = [], answers.recommendation, answers.observed
    if told is not None and not math.isnan(told.value):
        sure = f"estimated{words.level(told.interval_words)}"
        rows.append(Value(f"Model: {words.sets(told.do, 24)}", told.value, *told.interval, sure, "model"))
        if told.observed is not None:
            about = f"{words.many(told.observed.rounds, 'round')} with this set, 95%"
            rows.append(Value("Same set, seen", told.observed.mean, *told.observed.interval, about, "data"))
    if seen is not None and (told is None or seen.do != told.do):
        about = f"observed in {words.many(seen.rounds, 'round')}, 95%"
        rows.append(Value(f"Data: {words.sets(seen.do, 24)}", seen.mean, *seen.interval, about, "data"))
    if told is not None and told.nothing is not None and told.do:
        sure = f"estimated{words.level(told.interval_words)}"
        rows.append(Value("Doing nothing", told.nothing.value, *told.nothing.interval, sure))
    if not rows:
        return None
    said = "; ".join(f"{row.name}: {row.value:.3f} ({row.low:.3f} to {row.high:.3f})" for row in rows)
    return drawn(values_chart(rows, f"{target}: {said}"))


# -- the graph, and the slider -----------------------------------------------------------------------------------------


def replay(desk: Desk, position: int, context: Mapping[str, float]) -> Replay:
    course = desk.course
    now = position >= course.position
    known = course.at(position)
    told = desk.answers(context).recommendation if now else _then(known, context)
    do = {} if told is None else told.do
    sentence = _sentence(known, told, desk.experiment.graph.target)
    weighted = bool(known.estimates)
    picture = graphs.picture(desk.experiment, known.estimates, do)
    step = 1 if course.position <= EXACT else course.stride
    return Replay(
        known.position,
        course.position,
        step,
        picture,
        graphs.legend(desk.experiment, weighted, "what is recommended" if now else "what was recommended then"),
        sentence,
        approximate=known.position != min(position, course.position),
    )


def _then(known: Known, context: Mapping[str, float]) -> Recommendation | None:
    if not known.learner.rounds:
        return None
    return known.learner.best(context=dict(context) if known.learner.graph.context else None)


def _sentence(known: Known, told: Recommendation | None, target: str) -> str:
    after = f"After {words.many(known.position, 'closed trial')}"
    if told is None or not known.learner.rounds:
        return f"{after}, nothing was known."
    if math.isnan(told.value):
        return f"{after}: set {words.sets(told.do)}."
    return f"{after}: set {words.sets(told.do)}; {target} estimated at {words.estimate(told)}."


# -- the charts -----------------------------------------------------------------------------------------------


def _rewards(course: Course, target: str, continuous: bool) -> Markup | None:
    stretches = course.stretches
    if not any(stretch.rounds for stretch in stretches):
        return None
    per = max(1, -(-len(stretches) // _BINS))
    seen = []
    for start in range(0, len(stretches), per):
        part = Stretch()
        for stretch in stretches[start : start + per]:
            part.add(stretch)
        if part.rounds:
            mean = mean_of(part.total, part.rounds, continuous)
            first = start * course.width
            seen.append(Stage(first, first + part.trials, mean.value, *mean.interval))
    predicted = [
        Stage(
            i * course.width,
            i * course.width + stretch.trials,
            *(part / stretch.foretold for part in (stretch.predicted, stretch.low, stretch.high)),
        )
        for i, stretch in enumerate(stretches)
        if stretch.foretold
    ]
    return drawn(reward_chart(seen, predicted, target, f"{target} over time: observed, and as it had been predicted."))


def _tried(desk: Desk, told: Recommendation | None, links: bool) -> Markup | None:
    course, columns = desk.course, desk.experiment.columns
    if not course.stretches:
        return None
    texts, different = course.sets(_SETS)
    rows = []
    for text in texts:
        do = columns.decode(text)
        shares = [stretch.tried[text] / stretch.trials if stretch.trials else 0.0 for stretch in course.stretches]
        rows.append(Row(words.sets(do, 24), shares, told is not None and do == told.do))
    if different > len(texts):
        rest = [
            1.0 - sum(stretch.tried[text] for text in texts) / stretch.trials if stretch.trials else 0.0
            for stretch in course.stretches
        ]
        rows.append(Row(f"{different - len(texts):,} other sets", [max(share, 0.0) for share in rest]))
    hrefs = {}
    if course.width == 1 and links:
        hrefs = {i: f"/experiments/{desk.number}/trials?position={i}" for i in range(len(course.stretches))}
    label = "Which sets were tried when; a dot is as large as its share of the trials."
    return drawn(tried_chart(rows, course.position, label, hrefs))


def _nodes(desk: Desk, history: Sequence[Known]) -> list[NodeView]:
    """Every effect that is learned, with the intervals of its causes on the way."""
    now = history[-1].estimates
    reach = (min([-1.0 if row.low < 0 else 0.0 for row in now], default=0.0), 1.0)
    reach = (min(reach[0], -1.0) if reach[0] < 0 else 0.0, 1.0)
    shown = graphs.shown_graph(desk.experiment)
    tracks: dict[tuple[str | None, str], list[tuple[int, float, float, float]]] = {}
    for known in history:
        for row in known.estimates:
            low, high = max(row.low, reach[0]), min(row.high, reach[1])
            point = (known.position, min(max(row.value, reach[0]), reach[1]), low, high)
            tracks.setdefault((row.cause, row.effect), []).append(point)
    found = []
    for effect, rows in groupby(now, key=lambda row: row.effect):
        listed = list(rows)
        edges = [
            EdgeView(
                row,
                graphs.edge_anchor(desk.experiment, (row.cause, effect))
                if row.cause in shown and (row.cause, effect) in shown.edges
                else "",
                drawn(
                    interval_chart(
                        tracks[row.cause, effect],
                        f"{row.cause} to {effect}: {row.value:.2f} ({row.low:.2f} to {row.high:.2f})",
                        reach,
                    )
                )
                if len(now) <= _EDGES
                else None,
            )
            for row in listed
            if row.cause is not None
        ]
        alone = next((row for row in listed if row.cause is None), None)
        anchor = graphs.node_anchor(desk.experiment, effect) if effect in shown else ""
        found.append(NodeView(effect, anchor, listed[0].rows, listed[0].form, alone, edges))
    return found
