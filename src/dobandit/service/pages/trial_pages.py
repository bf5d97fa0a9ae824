"""The log, and the page of one trial: why it set what it set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from dobandit.errors import DobanditError, ExperimentError
from dobandit.experiment.answers import EdgeEstimate
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.explanation import Explanation
from dobandit.report.svg.bar_charts import Step, waterfall
from dobandit.rows.stored_trial import ASKED
from dobandit.service.error_responses import told_to_visitors
from dobandit.service.http_requests import answering, stored_and_pages
from dobandit.service.page_cache import PageCache
from dobandit.service.pages import page_pictures
from dobandit.service.pages.rendering import drawn, page
from dobandit.texts import decimals, fixed, shortened

router = APIRouter(include_in_schema=False)
_PAGE = 50
_SHORT = 4_096  # closed trials that are read while a visitor waits for one of them
_ROUNDING = 0.0005


@router.get("/experiments/{number}/trials")
@answering
def trials_page(
    request: Request,
    number: int,
    after: Annotated[int, Query(ge=-1)] = -1,
    position: Annotated[int | None, Query(ge=0)] = None,
) -> Response:
    """The log, a page at a time; the newest page where none is asked for."""
    stored, cache = stored_and_pages(request, number)
    if position is not None and (closed := cache.experiment.storage.closed_since(number, position, most=1)):
        return RedirectResponse(f"/experiments/{number}/trials/{closed[0].number}", 303)
    newest = max(stored.trials - _PAGE, 0) - 1
    start = after if "after" in request.query_params else newest
    rows = cache.experiment.trials(after=start, limit=_PAGE)
    return page(
        request,
        "trials.html",
        stored=stored,
        rows=rows,
        target=cache.experiment.graph.target,
        earlier=max(min(start, stored.trials - 1) - _PAGE, -1) if start >= 0 else None,
        later=start + _PAGE if start + _PAGE < stored.trials - 1 else None,
    )


@router.get("/experiments/{number}/trials/{trial}")
@answering
def trial_page(request: Request, number: int, trial: int) -> Response:
    """One trial, and why it was chosen."""
    stored, cache = stored_and_pages(request, number)
    return page(request, "trial.html", stored=stored, **trial_view(cache, trial, cache.ready(stored)))


def trial_view(cache: PageCache, number: int, ready: bool) -> dict[str, Any]:
    """What the template shows. ready: whether the log is read, so that the weights are known as they were then."""
    experiment = cache.experiment
    row = experiment.trial(number)
    explained, trouble, asked_after = None, "", experiment.log.stored_trial(number).asked_after
    reading = not ready and asked_after > _SHORT  # it would be read a second time
    if not reading and row["source"] == ASKED:
        try:
            explained = experiment.explain(number)
        except ExperimentError:
            raise
        except DobanditError as error:
            trouble = told_to_visitors(error, experiment.storage)
    elif not reading:
        trouble = f"This trial was {row['source']}, not asked for: nobody chose it, so nothing explains it."
    estimates = cache.at(asked_after).estimates if ready else ()
    return {
        "reading": reading,
        "read": cache.read,
        "experiment": experiment,
        "row": row,
        "explained": explained,
        "trouble": trouble,
        "target": experiment.graph.target,
        "picture": _picture(cache, row, explained, estimates),
        "fall": None if explained is None else _fall(explained, experiment.graph.target),
        "legend": _legend(experiment, bool(estimates), bool(row["do"])),
        "interval_words": experiment.interval_words,
    }


def _legend(experiment: Experiment, weighted: bool, sets: bool) -> list[str]:
    target = shortened(experiment.graph.target, 40)
    ways = [f"Blue: the ways from what was set to {target}; what is pale had no part in it."] if sets else []
    then = ["Weights are as they were known then."] if weighted else []
    return ways + page_pictures.legend(experiment, weighted, "what was set" if sets else "", fading=False) + then


def _picture(
    cache: PageCache, row: dict[str, Any], explained: Explanation | None, estimates: Sequence[EdgeEstimate]
) -> page_pictures.Picture:
    """The graph with the paths lit by which the trial was expected to work; of all that was set, where no path says."""
    experiment = cache.experiment
    graph = page_pictures.shown_graph(experiment)
    lit = page_pictures.edges_between(graph, [name for name in row["do"] if name in graph])
    if explained is not None and explained.paths:
        listed = {edge for path in explained.paths if not path.from_bias for edge in pairwise(path.names)}
        lit = listed & set(graph.edges)
    return page_pictures.graph_picture(experiment, estimates, row["do"], lit=lit, page=f"/experiments/{cache.number}")


def _fall(told: Explanation, target: str) -> Markup | None:
    """What adds up to the estimate, and what was hoped for beyond it."""
    if told.predicted is None:
        return None
    if told.paths:
        large = [path for path in told.paths if abs(path.contribution) >= _ROUNDING]
        steps = [
            Step(("by itself → " if path.from_bias else "") + " → ".join(path.names), path.contribution)
            for path in large
        ]
        rest = (told.other_paths or 0.0) + sum(path.contribution for path in told.paths if path not in large)
        if abs(rest) >= _ROUNDING:
            steps.append(Step("all other paths", rest))
    else:
        rest = told.predicted - sum(told.shares.values())
        steps = [Step("without these, and what they do together", rest)] if told.shares else []
        steps += [Step(f"setting {name}", share) for name, share in told.shares.items()]
    steps.append(Step(f"estimate of {target}", told.predicted, total=True))
    if told.bonus is not None and told.optimistic is not None and abs(told.bonus) < 10.0:
        steps += [Step("optimism: too little is known", told.bonus, kind="hope")]
        steps.append(Step("value that made it the choice", told.optimistic, total=True))
    places = decimals(*(step.amount for step in steps))
    return drawn(waterfall(steps, "; ".join(f"{step.name}: {fixed(step.amount, places, '+')}" for step in steps)))
