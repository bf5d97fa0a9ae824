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
from dobandit.policy.answers import Recommendation
from dobandit.report.style import DRAWN, TOKENS
from dobandit.service.http_requests import answering, registry_of, stored_and_pages
from dobandit.service.page_cache import Answers, Known, PageCache, Segment
from dobandit.service.pages import page_pictures, page_wording
from dobandit.service.pages.rendering import HERE, drawn, environment, page
from dobandit.storage.contract import StoredExperiment
from dobandit.texts import counted, shortened

router = APIRouter(include_in_schema=False)
_RECENT = 8  # trials in the table


class Replay(NamedTuple):
    """The graph as it was known at a position of the log."""

    at: int
    last: int
    picture: page_pictures.Picture
    legend: Sequence[str]
    sentence: str


@router.get("/experiments/{number}")
@answering
def experiment_page(
    request: Request, number: int, round_: Annotated[int | None, Query(alias="round", ge=0)] = None
) -> Response:
    """Everything about one experiment."""
    stored, cache = stored_and_pages(request, number)
    if not cache.ready(stored):
        return page(request, "experiment.html", **view_so_far(cache, stored))
    shown = view(cache, stored, context_of(request, cache), round_, seconds=cache.settings.page_seconds)
    waiting = any(one.answers is None for one in shown["segments"])
    return page(request, "experiment.html", waiting=waiting, **shown)


@router.get("/experiments/{number}/graph")
@answering
def graph_part(request: Request, number: int, round_: Annotated[int, Query(alias="round", ge=0)] = 0) -> Response:
    """The graph as it was known at a round, for the slider."""
    stored, cache = stored_and_pages(request, number)
    if not cache.ready(stored):
        return page(request, "_reading.html", stored=stored, read=cache.read)
    return page(request, "_replay.html", stored=stored, replay=replay(cache, round_, context_of(request, cache)))


@router.get("/experiments/{number}/closed")
def closed_count(request: Request, number: int) -> Response:
    """How many trials there are, for a page that follows them."""
    stored = registry_of(request).stored(number)
    return JSONResponse({"closed": stored.closed, "trials": stored.trials})


def context_of(request: Request, cache: PageCache) -> dict[str, float]:
    """The context that a visitor looks at: the one seen most often where none is chosen."""
    found = {}
    for i, (name, usual) in enumerate(cache.usual.items()):
        try:
            value = float(request.query_params.get(f"c{i}", usual))
        except ValueError:
            value = usual
        found[name] = value if cache.experiment.columns.continuous and 0 <= value <= 1 else float(value == 1)
    return found


def view(
    cache: PageCache,
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
    experiment = cache.experiment
    answers = cache.answers(context)
    told, target = answers.recommendation, experiment.graph.target
    within = experiment.definition.stop_within
    segments = cache.segments(seconds=seconds)
    return {
        **_frame(cache, stored, context),
        "headline": page_wording.headline(
            told, answers.trouble, target, cache.rounds, within, experiment.delta, cache.keeps_model, context
        ),
        "segments": segments,
        "scope": _scope(context, told, segments, cache) if cache.rounds and context else "",
        "contexts": cache.contexts,
        "within": within,
        "teller": "model" if cache.keeps_model else "policy",
        "answers": answers,
        "told": told,
        "levers": page_wording.lever_lines(told, target) if told else [],
        "against": list(dict.fromkeys([*(told.warnings if told else ()), *answers.findings])),  # each thing once
        "verdict": page_wording.VERDICTS.get(told.verdict or "", "") if told and cache.keeps_model else "",
        "values": page_pictures.values_picture(answers, target, "Model" if cache.keeps_model else "Policy"),
        "replay": replay(cache, cache.position if round_ is None else round_, context),
        "rewards": page_pictures.rewards_picture(cache.stretches, target),
        "tried": page_pictures.tried_picture(cache, told, links),
        "nodes": page_pictures.node_views(cache),
        "closed": cache.position,
        "rounds": cache.rounds,
    }


def view_so_far(cache: PageCache, stored: StoredExperiment) -> dict[str, Any]:
    """What the template shows while the log is read: all that need not be learned from it."""
    experiment = cache.experiment
    sentence = "How strongly, is said here as soon as the log is read."
    graph = Replay(
        0, 0, page_pictures.graph_picture(experiment, (), {}), page_pictures.legend(experiment, False, ""), sentence
    )
    return {
        **_frame(cache, stored, {}),
        "reading": True,
        "read": cache.read,
        "answers": Answers(None, None, closed=stored.closed),
        "replay": graph,
        "closed": stored.closed,
        "rounds": 0,
    }


def _frame(cache: PageCache, stored: StoredExperiment, context: Mapping[str, float]) -> dict[str, Any]:
    """What is shown in any case."""
    experiment = cache.experiment
    return {
        "stored": stored,
        "experiment": experiment,
        "target": experiment.graph.target,
        "context": context,
        "pending": stored.trials - stored.closed,
        "recent": experiment.trials(last=_RECENT)[::-1],
        "policy": experiment.definition.policy_text,
    }


def _scope(
    context: Mapping[str, float], told: Recommendation | None, segments: Sequence[Segment], cache: PageCache
) -> str:
    """Whom the sentence on top speaks of, and whether the same is said of others."""
    rounds = cache.stretches.rounds_in(context)
    most = "; no other had more" if rounds and context == cache.usual else ""
    said = f"This context had {page_wording.of_rounds(rounds, cache.contexts.rounds)}{most}."
    others = [one.answers.recommendation for one in segments if one.answers is not None and one.context != context]
    sets = [other.do for other in others if other is not None]
    return f"{said} {page_wording.elsewhere(told.do, sets)}" if told is not None and sets else said


# -- the graph, and the slider -----------------------------------------------------------------------------------------


def replay(cache: PageCache, position: int, context: Mapping[str, float]) -> Replay:
    now = position >= cache.position
    known = (
        cache.history[-1]._replace(best=cache.answers(context).recommendation) if now else cache.at(position, context)
    )
    known_then = known.estimates if known.rounds else ()
    do = known.best.do if known.best is not None and known.rounds else {}
    sentence = _sentence(known, shortened(cache.experiment.graph.target, 40), context)
    picture = page_pictures.graph_picture(cache.experiment, known_then, do)
    shaded = "what is recommended" if now else "what was recommended then"
    legend = page_pictures.legend(cache.experiment, bool(known_then), shaded if do else "")
    return Replay(known.position, cache.position, picture, legend, sentence)


def _sentence(known: Known, target: str, context: Mapping[str, float]) -> str:
    told, after = known.best, f"After {counted(known.position, 'closed trial')}"
    if told is None or not known.rounds:
        return f"{after}, nothing was known."
    after += f", where {page_wording.context(context)}" if context else ""
    if math.isnan(told.value):
        return f"{after}: set {page_wording.sets(told.do)}."
    return f"{after}: set {page_wording.sets(told.do)}; {target} estimated at {page_wording.estimate(told)}."


# -- the page as a file ------------------------------------------------------------------------------------------------


@router.get("/experiments/{number}/snapshot")
@answering
def snapshot(request: Request, number: int) -> Response:
    """A file to keep."""
    stored, cache = stored_and_pages(request, number)
    cache.follow()  # what is saved as a file is whole
    text = _html(cache, stored, context_of(request, cache), request.app.state.settings.clock())
    name = f"{file_name(stored.name)}.html"
    return Response(
        text,
        media_type="text/html; charset=utf-8",
        headers={"Content-Disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}"},
    )


def snapshot_of(experiment: Experiment, stored: StoredExperiment, now: float) -> str:
    """The file's text, without a service."""
    cache = PageCache(experiment)
    cache.follow()
    return _html(cache, stored, cache.usual, now)


def _html(cache: PageCache, stored: StoredExperiment, context: dict[str, float], now: float) -> str:
    style = TOKENS + DRAWN + (HERE / "static" / "style.css").read_text(encoding="utf-8")
    shown = view(cache, stored, context, None, links=False)
    return environment.get_template("snapshot.html").render(style=drawn(style), visitor=None, now=now, **shown)


def file_name(name: str) -> str:
    """Letters and digits of the name: a file's name must do no harm anywhere."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60] or "experiment"
