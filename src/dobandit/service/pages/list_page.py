"""The page of all experiments, some at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import Response

from dobandit.errors import DobanditError
from dobandit.experiment.stretches import Contexts
from dobandit.report.svg.experiment_charts import sparkline
from dobandit.service.error_responses import told_to_visitors
from dobandit.service.experiment_registry import ExperimentRegistry
from dobandit.service.http_requests import answering, registry_of, visitor_of
from dobandit.service.page_cache import Answers, PageCache, Segment
from dobandit.service.pages.rendering import drawn, page
from dobandit.storage.contract import StoredExperiment
from dobandit.texts import decimals, fixed

router = APIRouter(include_in_schema=False)
_SECONDS = 0.2  # in which answers are computed while a visitor waits; the rest says that it will come
_PAGE = 50  # experiments
_SMOOTH = 12  # points of a sparkline
_SEGMENTS = 3  # contexts that are shown of an experiment


class Line(NamedTuple):
    """An experiment in the list; `trouble` where it cannot be read."""

    stored: StoredExperiment
    target: str = ""
    answers: Answers | None = None
    spark: Markup | None = None
    told: int | None = None  # None while the log is being read
    trouble: str = ""
    segments: Sequence[Segment] = ()  # where the graph has a context: those seen most often
    contexts: Contexts = Contexts()

    @property
    def warns(self) -> bool:
        told = None if self.answers is None else self.answers.recommendation
        return bool(told and told.verdict == "contradicted")

    @property
    def waits(self) -> bool:
        """Whether some of its answers are yet to come."""
        late = self.answers is None or any(one.answers is None for one in self.segments)
        return bool(late and not self.trouble and self.stored.closed)

    @property
    def agreed(self) -> bool:
        """Whether the same set looks best in all of several contexts."""
        told = [one.answers.recommendation if one.answers else None for one in self.segments]
        sets = [one.do for one in told if one is not None]
        return len(sets) == len(told) > 1 and all(do == sets[0] for do in sets)


@router.get("/")
@answering
def experiments_page(request: Request, after: str | None = None, before: str | None = None) -> Response:
    """The experiments by name, a page at a time: those behind a name, or before one."""
    registry, visitor, until = registry_of(request), visitor_of(request), time.monotonic() + _SECONDS
    stored = registry.listed(visitor, after, before, _PAGE)
    lines = [_line(registry, one, until) for one in stored]
    waiting = any(line.waits for line in lines)
    within = after is not None or before is not None
    earlier, later = None, None  # names at which the pages before and behind this one end and begin
    if stored and registry.listed(visitor, before=stored[0].name, limit=1):
        earlier = stored[0].name
    if stored and registry.listed(visitor, after=stored[-1].name, limit=1):
        later = stored[-1].name
    return page(request, "experiments.html", lines=lines, waiting=waiting, earlier=earlier, later=later, within=within)


def _line(registry: ExperimentRegistry, stored: StoredExperiment, until: float) -> Line:
    try:
        cache = registry.pages(stored.id, stored)
        target = cache.experiment.graph.target
        if not stored.closed:
            return Line(stored, target, told=0)
        if time.monotonic() >= until or not cache.ready(stored):
            return Line(stored, target)
        answers = cache.answers(cache.usual)
        segments = cache.segments(_SEGMENTS, until - time.monotonic())
        return Line(stored, target, answers, _spark(cache), cache.stretches.told, "", segments, cache.contexts)
    except DobanditError as error:
        return Line(stored, trouble=told_to_visitors(error, registry.storage))


def _spark(cache: PageCache) -> Markup:
    values = [part.total / part.rounds for _, part in cache.stretches.parts(_SMOOTH) if part.rounds]
    target = cache.experiment.graph.target
    if not values:
        return drawn(sparkline(values, f"{target} was not seen yet"))
    means = ", ".join(fixed(value, decimals(*values, usual=2)) for value in values)
    return drawn(
        sparkline(values, f"the mean of {target} in {len(values)} parts of the log, one after the other: {means}")
    )
