"""The data of the regret figure: what it says, its curves, and where their labels stand. No drawing here."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit import paper
from dobandit.model.base import CausalModel
from dobandit.report.layers import spread
from dobandit.simulation.result import StudyResult
from dobandit.simulation.study import Study
from dobandit.simulation.summaries import curve_interval
from dobandit.texts import amount, counted, headline_amount, shortened_apart

# Safe for colour-blind readers, and neighbours in the list differ in lightness too.
COLOURS = (
    "#004488", "#e07b00", "#8a1c5a", "#009e73", "#4aa8e0", "#6e6e6e", "#c9a800", "#d0453e", "#111111", "#7a5230"
)  # fmt: skip
DASHES = ((1, 0), (9, 3), (2, 2), (9, 3, 2, 3), (5, 2), (14, 4))
LABEL_GAP = 16.0  # pixels
_POINTS = 160
_LONGEST_LABEL = 28
_LOW = 0.25  # a final regret below this share of the largest one counts as "near the bottom"


class EndLabel(NamedTuple):
    policy: str
    name: str
    amount: str
    at: float  # where the curve ends, in units of the axis
    place: float  # where the label stands


class Panel(NamedTuple):
    title: str
    log: bool  # whether rounds are on a log scale
    first: int  # the axis of rounds
    last: int
    top: float  # the axis of regret, from 0
    rows: list[dict[str, Any]]  # policy, round, mean (None beyond the top), low, high
    labels: list[EndLabel]


class RegretFigure(NamedTuple):
    title: str
    subtitle: str
    policies: list[str]
    height: float
    panels: list[Panel]

    @property
    def colours(self) -> list[str]:
        return [COLOURS[i % len(COLOURS)] for i in range(len(self.policies))]

    @property
    def dashes(self) -> list[list[int]]:
        """Shifted with each turn through the colours, so that no two of 60 policies look alike."""
        return [list(DASHES[(i + i // len(COLOURS)) % len(DASHES)]) for i in range(len(self.policies))]


def regret_figure(result: StudyResult, *, title: str | None = None, subtitle: str | None = None) -> RegretFigure:
    labels = result.labels
    height = max(320.0, (LABEL_GAP + 2) * len(labels))
    curves = {label: curve_interval(result.regret(label)) for label in labels}
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


Curves = dict[str, tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]


def _whole_run(result: StudyResult, curves: Curves, height: float) -> Panel:
    rounds = result.study.rounds
    kept = _nearest(result.grid, np.linspace(1, rounds, _POINTS))
    start = [{"policy": label, "round": 0, "mean": 0.0, "low": 0.0, "high": 0.0} for label in curves]
    top = _top(curves)
    ends = _end_labels(curves, list(curves), top, height)
    rows = start + _rows(result, curves, kept, top)
    return Panel("Cumulative regret (lost rewards)", False, 0, rounds, top, rows, ends)


def _close_up(result: StudyResult, curves: Curves, height: float) -> Panel:
    """Rounds on a log scale; where some curves stay near the bottom, the scale of regret is theirs."""
    finals = {label: float(mean[-1]) for label, (mean, _, _) in curves.items()}
    bottom = [label for label, final in finals.items() if final <= _LOW * max(finals.values())]
    bottom = bottom if len(bottom) < len(curves) else []
    shown = bottom or list(curves)
    top = _top({label: curves[label] for label in shown}) * (1.15 if bottom else 1.0)
    title = "Close-up of the lowest curves, rounds on a log scale" if bottom else "The same, rounds on a log scale"
    first = int(result.grid[0])
    kept = _nearest(result.grid, np.geomspace(first, result.study.rounds, _POINTS))
    ends = _end_labels(curves, shown, top, height)
    return Panel(title, True, first, result.study.rounds, top, _rows(result, curves, kept, top), ends)


def _top(curves: Curves) -> float:
    highest = max(float(high.max()) for _, _, high in curves.values())
    return 1.04 * highest if highest > 1e-9 else 1.0


def _nearest(grid: NDArray[np.int64], wanted: NDArray[np.float64]) -> list[int]:
    """Positions in the grid nearest to the wanted rounds, and the last."""
    after = np.clip(np.searchsorted(grid, wanted), 1, max(1, len(grid) - 1))
    before = after - 1
    after = np.minimum(after, len(grid) - 1)
    near = np.where(wanted - grid[before] <= grid[after] - wanted, before, after)
    kept: list[int] = np.union1d(near, [len(grid) - 1]).tolist()
    return kept


def _rows(result: StudyResult, curves: Curves, kept: list[int], top: float) -> list[dict[str, Any]]:
    """The curves up to the panel's top (they never come down again)."""
    rounds = result.grid[kept].astype(float)
    rows = []
    for label, curve in curves.items():
        mean, low, high = (part[kept] for part in curve)
        at = rounds
        if mean[-1] > top:  # add the point at which the curve leaves
            leaves = float(np.interp(top, mean, rounds))
            at = np.union1d(rounds, [leaves])
            mean, low, high = (np.interp(at, rounds, part) for part in (mean, low, high))
            mean[at == leaves] = top
        rows += [
            {
                "policy": label,
                "round": _rounded(t),
                "mean": _rounded(m) if m <= top else None,
                "low": _rounded(min(max(a, 0.0), top)),  # regret is never negative, its normal interval may be
                "high": _rounded(min(b, top)),
            }
            for t, m, a, b in zip(at.tolist(), mean.tolist(), low.tolist(), high.tolist(), strict=True)
        ]
    return rows


def _rounded(x: float) -> float:
    return float(f"{x:.6g}")


def _end_labels(curves: Curves, shown: list[str], top: float, height: float) -> list[EndLabel]:
    """Labels at the right ends, lowest first, kept apart."""
    ends = sorted((float(curves[label][0][-1]), label) for label in shown)
    pixels = [height * end / top for end, _ in ends]
    short = shortened_apart(list(curves), _LONGEST_LABEL)
    places = spread(pixels, [LABEL_GAP] * (len(ends) - 1), 2.0, height - 2.0)
    return [
        EndLabel(label, short[label], amount(end), end, top * place / height)
        for (end, label), place in zip(ends, places, strict=True)
    ]
