"""Regret as SVG. Of one study: a panel for the whole run and one for the lowest curves, with names at their ends. Of
several studies: what every policy loses in each world, a bar per policy, a block per world."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import ReportError
from dobandit.report.figures import Figure
from dobandit.report.layers import spread
from dobandit.report.summary import explanation, message
from dobandit.report.svg.axes import TITLED, Frame
from dobandit.report.svg.bar_charts import Scale, Value, values_panel
from dobandit.report.svg.elements import Drawing, Panel, breadth_of, element, number, path_through, text_of, words
from dobandit.simulation.result import StudyResult, curve_interval
from dobandit.texts import amount, counted, headline_amount, shortened, shortened_apart

_WIDE, _NARROW, _PLOT = 570.0, 350.0, 240.0  # pixels
_SAMPLE = 26.0
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


# -- drawn -----------------------------------------------------------------------------------------------------------


def regret_drawing(figure: RegretFigure) -> Figure:
    """Names stand at the ends of the curves, or below where the screen is narrow."""
    panels = (
        Panel(_panel(figure, panel, _WIDE, False), _panel(figure, panel, _NARROW, True)) for panel in figure.panels
    )
    said = f"Curves of cumulative regret by round. {figure.title}".strip()
    return Figure(figure.title, figure.subtitle, said, tuple(panels))


def _panel(figure: RegretFigure, panel: RegretPanel, width: float, below: bool) -> Drawing:
    names = max((breadth_of(label.amount, True) + breadth_of(label.name) for label in panel.labels), default=0.0)
    heading = textwrap.wrap(panel.title, int(width / 8.8))
    room = 22.0 if below else 34.0 + _SAMPLE + names  # with gaps around the sample, in the label and at the end
    under = LABEL_GAP * 1.2 * len(panel.labels) + 10.0 if below else 0.0
    height = (_PLOT if below else figure.height) + 64.0 + under
    frame = Frame(
        width, height, panel.first, panel.last, 0.0, panel.top, panel.log,
        right_room=room, top_room=14.0 + 16.0 * len(heading), bottom_room=TITLED + under,
    )  # fmt: skip
    parts = [words(frame.left_room, 15.0 + 16.0 * k, line, class_="heading") for k, line in enumerate(heading)]
    parts.append(frame.axes("round", levels=5 if below else 7))
    bands, lines = [], []
    for policy, curve in panel.curves.items():
        at, mean, low, high = (part.tolist() for part in curve)
        ends = [*zip(at, high, strict=True), *zip(at[::-1], low[::-1], strict=True)]
        colour, dash = figure.looks[policy]
        bands.append(element("path", class_=f"band c{colour}", d=_path(frame, ends, close=True)))
        lines.append(_line(colour, dash, _path(frame, zip(at, mean, strict=True))))
    parts.append(_inside(frame, "".join([*bands, *lines])))
    for k, label in enumerate(panel.labels[::-1]):  # the largest on top, as the curves end
        parts.append(_label(frame, label, *figure.looks[label.policy], k if below else None))
    return Drawing(width, height, "".join(parts), panel.title, least=0.62)


def _path(frame: Frame, points: Iterable[tuple[float, float]], close: bool = False) -> str:
    return path_through(((frame.x(x), frame.y(y)) for x, y in points), close)


def _inside(frame: Frame, content: str) -> str:
    """Cut off at the plot's edges, a line's width beyond them."""
    left, top, width, height = (
        frame.left_room - 1.5, frame.top_room - 1.5, frame.inner_width + 3.0, frame.inner_height + 3.0
    )  # fmt: skip
    seen = " ".join(map(number, (left, top, width, height)))
    return element("svg", content, x=left, y=top, width=width, height=height, viewBox=seen, aria_label="curves")


def _line(colour: int, dash: str, d: str) -> str:
    return element("path", class_=f"curve c{colour}", stroke_dasharray=dash or None, d=d)


def _label(frame: Frame, label: EndLabel, colour: int, dash: str, row: int | None) -> str:
    """At the end of its curve, or in its row below the plot; a piece of the line stands before it."""
    right = frame.width - frame.right_room
    if row is None:
        left, y = right + 12.0, frame.y(label.place)
        leader = path_through([(right + 1, frame.y(label.at)), (left, y)])
        lead = element("path", class_=f"leader c{colour}", d=leader)
    else:
        left, y, lead = frame.left_room, frame.height - frame.bottom_room + 52.0 + LABEL_GAP * 1.2 * row, ""
    sample = _line(colour, dash, path_through([(left, y), (left + _SAMPLE, y)]))
    said = element("tspan", label.amount, class_="strong") + element("tspan", text_of(label.name), dx=6)
    return lead + sample + element("text", said, class_="label", x=left + _SAMPLE + 6.0, y=y + 4.0)


# -- several studies --------------------------------------------------------------------------------------------------


def losses_figure(
    results: Mapping[str, StudyResult], *, title: str | None = None, subtitle: str | None = None
) -> Figure:
    """The regret of every policy at the last round of each study, by the name of its world; `.save("losses.png")`
    writes PNG, SVG, PDF or HTML.

    results          by the name of a world, what `simulate` returned
    title, subtitle  what stands above; default: what the figure says in a sentence, and what the bars are

    >>> import dobandit as dob
    >>> study = dob.simulate(dob.paper.G4, [dob.UCB(), dob.Random()], rounds=20, replications=2, seed=0)
    >>> figure = dob.losses_figure({"G4": study})  # figure.save("losses.png") writes it
    """
    if not isinstance(results, Mapping) or not results:
        raise ReportError("a figure of losses needs studies by the name of their world, at least one.")
    for one in results.values():
        if not isinstance(one, StudyResult):
            raise ReportError(f"a figure of losses is made of what `simulate` returns, but got {type(one).__name__}.")
    said = losses_message(results)
    rows = _losses(results)
    highest = max(row.high for row in rows if isinstance(row, Value))
    scale = Scale(0.0, 1.2 * max(highest, 1e-9), "lost rewards (cumulative regret)")  # with room for the amounts
    above, below = said if title is None else title, _explained(results) if subtitle is None else subtitle
    return Figure(above, below, said, (values_panel(rows, said, scale),))


def losses_message(results: Mapping[str, StudyResult]) -> str:
    """The figure in a sentence: the policy that loses least over all worlds, and what it loses at worst."""
    shared = [
        label for label in next(iter(results.values())).labels if all(label in r.labels for r in results.values())
    ]
    if not shared:
        return "What each policy loses"
    means = {label: {name: _mean(result, label) for name, result in results.items()} for label in shared}
    best = min(shared, key=lambda label: sum(means[label].values()))
    worst = max(means[best], key=means[best].__getitem__)
    where = (
        f", at most {headline_amount(means[best][worst])} in one ({shortened(worst, 40)})" if len(results) > 1 else ""
    )
    total = headline_amount(sum(means[best].values()))
    name, worlds = shortened(best, 40), counted(len(results), "world")
    if len(shared) == 1:
        return f"{name} loses {total} rewards in {worlds}{where}"
    return f"{name} loses least over {worlds}: {total} rewards in all{where}"


def _explained(results: Mapping[str, StudyResult]) -> str:
    rounds, runs = ({getattr(r.study, key) for r in results.values()} for key in ("rounds", "replications"))
    how = f"Mean of {counted(min(runs), 'run')} of {counted(min(rounds), 'round')}"
    more = " or more" if len(rounds) + len(runs) > 2 else ""
    return f"{how}{more} in each world, on common random numbers; line: 95% interval of the mean. Less is better."


def _losses(results: Mapping[str, StudyResult]) -> list[Value | str]:
    labels = list(dict.fromkeys(label for result in results.values() for label in result.labels))
    colours = {label: f"c{i % COLOURS}" for i, label in enumerate(labels)}
    rows: list[Value | str] = []
    for world, result in results.items():
        rows.append(world)
        for label in result.labels:
            summary = result.summary_of(label)
            mean, low, high = (max(end, 0.0) for end in (summary.mean, summary.low, summary.high))
            rows.append(Value(label, mean, low, high, kind=colours[label], bar=amount(summary.mean)))
    return rows


def _mean(result: StudyResult, label: str) -> float:
    return float(result.regret(label)[:, -1].mean())
