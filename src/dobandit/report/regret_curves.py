"""The data of the regret figure: what it says, its curves, and where their labels stand. No drawing here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit import paper
from dobandit.model.causal_model import CausalModel
from dobandit.report.layers import spread
from dobandit.simulation.result import StudyResult, curve_interval
from dobandit.simulation.study import Study
from dobandit.texts import amount, counted, headline_amount, shortened_apart

COLOURS = 10  # of curves: c0 to c9 of the style
DASHES = ("", "9 3", "2 2", "9 3 2 3", "5 2", "14 4")
LABEL_GAP = 16.0  # pixels
_POINTS = 160
_LONGEST_LABEL = 28
_LOW = 0.25  # a final regret below this share of the largest one counts as "near the bottom"

Numbers = NDArray[np.float64]


class Curve(NamedTuple):
    rounds: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers


class EndLabel(NamedTuple):
    policy: str
    name: str
    amount: str
    at: float  # where the curve ends, in units of the axis
    place: float  # where the label stands


class RegretPanel(NamedTuple):
    title: str
    log: bool  # whether rounds are on a log scale
    first: int  # the axis of rounds
    last: int
    top: float  # the axis of regret, from 0; curves may go beyond it
    curves: dict[str, Curve]
    labels: list[EndLabel]


class RegretFigure(NamedTuple):
    title: str
    subtitle: str
    policies: list[str]
    height: float
    panels: list[RegretPanel]

    @property
    def looks(self) -> dict[str, tuple[int, str]]:
        """Colour and dash of each policy. Dashes shift with each turn through the colours, so that no two of 60
        policies look alike."""
        return {
            policy: (i % COLOURS, DASHES[(i + i // COLOURS) % len(DASHES)]) for i, policy in enumerate(self.policies)
        }


def regret_figure(result: StudyResult, *, title: str | None = None, subtitle: str | None = None) -> RegretFigure:
    """The title is the study's message unless one is given; "" leaves it out."""
    labels = result.labels
    height = max(320.0, (LABEL_GAP + 2) * len(labels))
    curves = {label: Curve(result.grid.astype(float), *curve_interval(result.regret(label))) for label in labels}
    panels = [_whole_run(result, curves, height)]
    if result.study.rounds >= 20 and len(result.grid) >= 10:
        panels.append(_close_up(result, curves, height))
    return RegretFigure(
        message(result) if title is None else title,
        explanation(result) if subtitle is None else subtitle,
        labels,
        height,
        panels,
    )


_WELL_KNOWN = ("ucb", "eps-greedy", "kl-ucb", "lucb")  # policies, the best known first


def message(result: StudyResult, *, named: bool = True) -> str:
    """The study in a sentence, for instance "G1: BLM-LR loses 39 rewards in 10,000 rounds, UCB loses 637": the best
    beside the best-known policy that clearly lost to it, or the worst where nobody knows any of them.

    named: whether it begins with the name of the paper's graph.
    """
    name = paper_name(result.study.model) if named else None
    prefix = f"{name}: " if name else ""
    means = {label: float(result.regret(label)[:, -1].mean()) for label in result.labels}
    best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    rounds = counted(result.study.rounds, "round")
    loss = headline_amount(means[best])
    short = shortened_apart(result.labels, 40)
    lost = f"{short[best]} loses {loss} reward{'' if loss == '1.0' else 's'} in {rounds}"
    if len(means) == 1:
        return prefix + lost
    # One run has no interval: its low end is the difference itself.
    if best == worst or result.difference(worst, best).low <= 0:
        return f"{prefix}No clear winner after {rounds} and {counted(result.study.replications, 'run')}"
    other = _best_known(result, [label for label in means if result.difference(label, best).low > 0]) or worst
    return f"{prefix}{lost}, {short[other]} loses {headline_amount(means[other])}"


def _best_known(result: StudyResult, losers: list[str]) -> str | None:
    """The loser that most readers know, whom a headline compares with; None where there is none of these."""
    policies = result.study.policies
    return next((label for kind in _WELL_KNOWN for label in losers if policies[label].name == kind), None)


def explanation(result: StudyResult) -> str:
    """What the curves are."""
    study = result.study
    runs = (
        "One run of each policy."
        if study.replications == 1
        else f"Mean of {study.replications:,} runs on common random numbers; band: 95% interval of the mean."
    )
    return f"{runs} {sizes(study).capitalize()}. Lower is better."


def sizes(study: Study) -> str:
    """How many variables are set in a round."""
    allowed = study.problem.allowed()
    if study.rules.budget is None:
        return f"{allowed.sizes_in_words()}, at a cost of at most {study.rules.total_cost:g} per round"
    exactly = "exactly" if allowed.full_only and allowed.budget_alone else "at most"
    return f"{exactly} {counted(allowed.most + len(allowed.required), 'variable')} set in a round"


def paper_name(model: CausalModel) -> str | None:
    """G1..G5 for the paper's models."""
    return next((name for name, known in paper.MODELS.items() if known == model), None)


def _whole_run(result: StudyResult, curves: dict[str, Curve], height: float) -> RegretPanel:
    rounds, top = result.study.rounds, _top(list(curves.values()))
    kept = _places(result.grid, np.linspace(1, rounds, _POINTS))
    from_zero = {
        label: Curve(*(np.append(0.0, part) for part in curve)) for label, curve in _thinned(curves, kept).items()
    }
    ends = _end_labels(curves, list(curves), top, height)
    return RegretPanel("Cumulative regret (lost rewards)", False, 0, rounds, top, from_zero, ends)


def _close_up(result: StudyResult, curves: dict[str, Curve], height: float) -> RegretPanel:
    """Rounds on a log scale; where some curves stay near the bottom, the scale of regret is theirs."""
    finals = {label: float(curve.mean[-1]) for label, curve in curves.items()}
    bottom = [label for label, final in finals.items() if final <= _LOW * max(finals.values())]
    bottom = bottom if len(bottom) < len(curves) else []
    shown = bottom or list(curves)
    top = _top([curves[label] for label in shown]) * (1.15 if bottom else 1.0)
    title = "Close-up of the lowest curves, rounds on a log scale" if bottom else "The same, rounds on a log scale"
    first, last = int(result.grid[0]), result.study.rounds
    kept = _places(result.grid, np.geomspace(first, last, _POINTS))
    ends = _end_labels(curves, shown, top, height)
    return RegretPanel(title, True, first, last, top, _thinned(curves, kept), ends)


def _top(curves: list[Curve]) -> float:
    highest = max(float(curve.high.max()) for curve in curves)
    return 1.04 * highest if highest > 1e-9 else 1.0


def _places(grid: NDArray[np.int64], wanted: Numbers) -> NDArray[np.intp]:
    """Where in the grid the wanted rounds are, or the next ones after them, and the last."""
    last = len(grid) - 1
    return np.unique(np.append(np.minimum(np.searchsorted(grid, wanted), last), last))


def _thinned(curves: dict[str, Curve], kept: NDArray[np.intp]) -> dict[str, Curve]:
    """The points that are kept. Regret is never negative, though its normal interval may be."""
    return {label: Curve(*(np.maximum(part[kept], 0.0) for part in curve)) for label, curve in curves.items()}


def _end_labels(curves: dict[str, Curve], shown: list[str], top: float, height: float) -> list[EndLabel]:
    """Labels at the right ends, lowest first, kept apart."""
    ends = sorted((float(curves[label].mean[-1]), label) for label in shown)
    pixels = [height * end / top for end, _ in ends]
    short = shortened_apart(list(curves), _LONGEST_LABEL)
    places = spread(pixels, [LABEL_GAP] * (len(ends) - 1), 2.0, height - 2.0)
    return [
        EndLabel(label, short[label], amount(end), end, top * place / height)
        for (end, label), place in zip(ends, places, strict=True)
    ]
