"""Regret as SVG. Of one study: a panel for the whole run and one for the lowest curves, with names at their ends. Of
several studies: what every policy loses in each world, a bar per policy, a block per world."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

from dobandit.errors import ReportError
from dobandit.report.figures import Figure
from dobandit.report.regret_curves import COLOURS, LABEL_GAP, EndLabel, RegretFigure, RegretPanel
from dobandit.report.svg.axes import TITLED, Frame
from dobandit.report.svg.bar_charts import Scale, Value, values_panel
from dobandit.report.svg.elements import Drawing, Panel, breadth_of, element, number, path_through, text_of, words
from dobandit.simulation.result import StudyResult
from dobandit.texts import amount, counted, headline_amount, shortened

_WIDE, _NARROW, _PLOT = 570.0, 350.0, 240.0  # pixels
_SAMPLE = 26.0


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
