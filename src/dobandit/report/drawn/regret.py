"""The regret of a study as SVG: one panel for the whole run, one for the lowest curves, each with names at its ends."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from dobandit.report.curves import LABEL_GAP, EndLabel, RegretFigure, RegretPanel
from dobandit.report.drawn.axes import TITLED, Frame
from dobandit.report.drawn.svg import Drawing, Panel, breadth_of, element, number, path_through, text_of, words
from dobandit.report.figures import Figure

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
