"""The page of one experiment: what to do now, why, and what was known when. Also as one HTML file, to send by mail."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from dobandit.experiment.experiment import Experiment
from dobandit.experiment.storage.base import StoredExperiment
from dobandit.policy.answers import Recommendation
from dobandit.report.style import DRAWN, TOKENS
from dobandit.service.pages import graphs, words
from dobandit.service.pages.charts import node_views, rewards_picture, tried_picture, values_picture
from dobandit.service.pages.course import Known
from dobandit.service.pages.desks import Answers, Desk, Segment, desks_of
from dobandit.service.pages.rendering import HERE, drawn, environment, page
from dobandit.service.requests import answering
from dobandit.texts import counted, shortened

router = APIRouter(include_in_schema=False)
_RECENT = 8  # trials in the table


class Replay(NamedTuple):
    """The graph as it was known at a position of the log."""

    at: int
    last: int
    picture: graphs.Picture
    legend: Sequence[str]
    sentence: str


@router.get("/experiments/{number}")
@answering
def experiment_page(
    request: Request, number: int, round_: Annotated[int | None, Query(alias="round", ge=0)] = None
) -> Response:
    """Everything about one experiment."""
    stored = request.app.state.house.stored(number)
    desk = desks_of(request).of(number, stored)
    if not desk.ready(stored):
        return page(request, "experiment.html", **view_so_far(desk, stored))
    shown = view(desk, stored, context_of(request, desk), round_, seconds=desk.settings.page_seconds)
    waiting = any(one.answers is None for one in shown["segments"])
    return page(request, "experiment.html", waiting=waiting, **shown)


@router.get("/experiments/{number}/graph")
@answering
def graph_part(request: Request, number: int, round_: Annotated[int, Query(alias="round", ge=0)] = 0) -> Response:
    """The graph as it was known at a round, for the slider."""
    stored = request.app.state.house.stored(number)
    desk = desks_of(request).of(number, stored)
    if not desk.ready(stored):
        return page(request, "_reading.html", stored=stored, read=desk.course.read)
    return page(request, "_replay.html", stored=stored, replay=replay(desk, round_, context_of(request, desk)))


@router.get("/experiments/{number}/closed")
def closed_count(request: Request, number: int) -> Response:
    """How many trials there are, for a page that follows them."""
    stored = request.app.state.house.stored(number)
    return JSONResponse({"closed": stored.closed, "trials": stored.trials})


def context_of(request: Request, desk: Desk) -> dict[str, float]:
    """The context that a visitor looks at: the one seen most often where none is chosen."""
    found = {}
    for i, (name, usual) in enumerate(desk.usual.items()):
        try:
            value = float(request.query_params.get(f"c{i}", usual))
        except ValueError:
            value = usual
        found[name] = value if desk.experiment.columns.continuous and 0 <= value <= 1 else float(value == 1)
    return found


def view(
    desk: Desk,
    stored: StoredExperiment,
    context: Mapping[str, float],
    round_: int | None,
    *,
    links: bool = True,
    seconds: float = math.inf,
) -> dict[str, Any]:
    """What the template shows; a snapshot shows the same, without links to other pages.

    seconds  for which a visitor waits for the answers of other contexts
    """
    experiment, course = desk.experiment, desk.course
    answers = desk.answers(context)
    told, target = answers.recommendation, experiment.graph.target
    history = course.history()
    within, learner = experiment.definition.stop_within, history[-1].learner
    segments = desk.segments(seconds=seconds)
    return {
        **_frame(desk, stored, context),
        "headline": words.headline(
            told, answers.trouble, target, learner.rounds, within, experiment.delta, learner.keeps_model, context
        ),
        "segments": segments,
        "scope": _scope(context, told, segments, desk) if learner.rounds and context else "",
        "contexts": course.contexts,
        "within": within,
        "teller": "model" if learner.keeps_model else "policy",
        "answers": answers,
        "told": told,
        "against": list(dict.fromkeys([*(told.warnings if told else ()), *answers.findings])),  # each thing once
        "verdict": words.VERDICTS.get(told.verdict or "", "") if told and learner.keeps_model else "",
        "values": values_picture(answers, target, "Model" if learner.keeps_model else "Policy"),
        "replay": replay(desk, course.position if round_ is None else round_, context),
        "rewards": rewards_picture(course, target, experiment.columns.continuous),
        "tried": tried_picture(desk, told, links),
        "nodes": node_views(desk, history),
        "closed": course.position,
        "rounds": learner.rounds,
    }


def view_so_far(desk: Desk, stored: StoredExperiment) -> dict[str, Any]:
    """What the template shows while the log is read: all that need not be learned from it."""
    experiment = desk.experiment
    sentence = "How strongly, is said here as soon as the log is read."
    graph = Replay(0, 0, graphs.picture(experiment, (), {}), graphs.legend(experiment, False, ""), sentence)
    return {
        **_frame(desk, stored, {}),
        "reading": True,
        "read": desk.course.read,
        "answers": Answers(None, None, closed=stored.closed),
        "replay": graph,
        "closed": stored.closed,
        "rounds": 0,
    }


def _frame(desk: Desk, stored: StoredExperiment, context: Mapping[str, float]) -> dict[str, Any]:
    """What is shown in any case."""
    experiment = desk.experiment
    return {
        "stored": stored,
        "experiment": experiment,
        "target": experiment.graph.target,
        "context": context,
        "pending": stored.trials - stored.closed,
        "recent": experiment.trials(last=_RECENT)[::-1],
        "policy": experiment.definition.policy_text,
    }


def _scope(context: Mapping[str, float], told: Recommendation | None, segments: Sequence[Segment], desk: Desk) -> str:
    """Whom the sentence on top speaks of, and whether the same is said of others."""
    rounds = desk.course.rounds_in(context)
    most = "; no other had more" if rounds and context == desk.usual else ""
    said = f"This context had {words.of_rounds(rounds, desk.course.contexts.rounds)}{most}."
    others = [one.answers.recommendation for one in segments if one.answers is not None and one.context != context]
    sets = [other.do for other in others if other is not None]
    return f"{said} {words.elsewhere(told.do, sets)}" if told is not None and sets else said


# -- the graph, and the slider -----------------------------------------------------------------------------------------


def replay(desk: Desk, position: int, context: Mapping[str, float]) -> Replay:
    course = desk.course
    now = position >= course.position
    known = course.at(position)
    told = desk.answers(context).recommendation if now else _then(known, context)
    known_then = known.estimates if known.learner.rounds else ()
    do = told.do if told is not None and known.learner.rounds else {}
    sentence = _sentence(known, told, shortened(desk.experiment.graph.target, 40), context)
    picture = graphs.picture(desk.experiment, known_then, do)
    shaded = "what is recommended" if now else "what was recommended then"
    return Replay(
        known.position,
        course.position,
        picture,
        graphs.legend(desk.experiment, bool(known_then), shaded if do else ""),
        sentence,
    )


def _then(known: Known, context: Mapping[str, float]) -> Recommendation | None:
    if not known.learner.rounds:
        return None
    learner = known.learner.copy()  # others may look at the same place
    return learner.best(context=dict(context) if learner.graph.context else None)


def _sentence(known: Known, told: Recommendation | None, target: str, context: Mapping[str, float]) -> str:
    after = f"After {counted(known.position, 'closed trial')}"
    if told is None or not known.learner.rounds:
        return f"{after}, nothing was known."
    after += f", where {words.context(context)}" if context else ""
    if math.isnan(told.value):
        return f"{after}: set {words.sets(told.do)}."
    return f"{after}: set {words.sets(told.do)}; {target} estimated at {words.estimate(told)}."


# -- the page as a file ------------------------------------------------------------------------------------------------


@router.get("/experiments/{number}/snapshot")
@answering
def snapshot(request: Request, number: int) -> Response:
    """A file to keep."""
    stored, desk = request.app.state.house.stored(number), desks_of(request).of(number)
    desk.wait(stored)  # what is saved as a file is whole
    text = _html(desk, stored, context_of(request, desk), request.app.state.settings.clock())
    name = f"{file_name(stored.name)}.html"
    return Response(
        text,
        media_type="text/html; charset=utf-8",
        headers={"Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}"},
    )


def snapshot_of(experiment: Experiment, stored: StoredExperiment, now: float) -> str:
    """The file's text, without a service."""
    desk = Desk(experiment, stored.id)
    desk.course.follow()
    return _html(desk, stored, desk.usual, now)


def _html(desk: Desk, stored: StoredExperiment, context: dict[str, float], now: float) -> str:
    style = TOKENS + DRAWN + (HERE / "static" / "style.css").read_text(encoding="utf-8")
    shown = view(desk, stored, context, None, links=False)
    return environment.get_template("snapshot.html").render(style=drawn(style), visitor=None, now=now, **shown)


def file_name(name: str) -> str:
    """Letters and digits of the name: a file's name must do no harm anywhere."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60] or "experiment"
