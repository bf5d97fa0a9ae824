"""The regret of a study as SVG: a drawing a panel, for wide screens and for narrow ones."""

from __future__ import annotations

import textwrap

from dobandit.report.curves import COLOURS, LABEL_GAP, EndLabel, Panel, RegretFigure
from dobandit.report.drawn.axes import TITLED, Frame
from dobandit.report.drawn.svg import breadth_of, drawing, element, path_through, text_of, wide_and_narrow, words

_WIDE, _NARROW, _PLOT = 570.0, 350.0, 240.0  # pixels
_SAMPLE = 26.0


def regret_svgs(figure: RegretFigure) -> list[str]:
    """A panel each; the names of the curves stand at their ends, or below where the screen is narrow."""
    return [
        wide_and_narrow(_panel(figure, panel, _WIDE, False), _panel(figure, panel, _NARROW, True))
        for panel in figure.panels
    ]


def _panel(figure: RegretFigure, panel: Panel, width: float, below: bool) -> str:
    names = max((breadth_of(label.amount, True) + breadth_of(label.name) for label in panel.labels), default=0.0)
    heading = textwrap.wrap(panel.title, int(width / 8.8))
    room = 22.0 if below else 34.0 + _SAMPLE + names  # with gaps around the sample, in the label and at the end
    under = LABEL_GAP * 1.2 * len(panel.labels) + 10.0 if below else 0.0
    height = (_PLOT if below else figure.height) + 64.0 + under
    frame = Frame(
        width, height, panel.first, panel.last, 0.0, panel.top, panel.log,
        right_room=room, top_room=14.0 + 16.0 * len(heading), bottom_room=TITLED + under,
    )  # fmt: skip
    dashes = dict(zip(figure.policies, figure.dashes, strict=True))
    parts = [words(frame.left_room, 15.0 + 16.0 * k, line, class_="heading") for k, line in enumerate(heading)]
    parts.append(frame.axes("round", levels=5))
    bands, lines = [], []
    for i, policy in enumerate(figure.policies):
        rows = [row for row in panel.rows if row["policy"] == policy]
        at = [frame.x(row["round"]) for row in rows]
        ends = [(x, frame.y(row["high"])) for x, row in zip(at, rows, strict=True)]
        ends += [(x, frame.y(row["low"])) for x, row in zip(at[::-1], rows[::-1], strict=True)]
        mean = [(x, frame.y(row["mean"])) for x, row in zip(at, rows, strict=True) if row["mean"] is not None]
        bands.append(element("path", class_=f"band c{i % len(COLOURS)}", d=path_through(ends, close=True)))
        lines.append(_line(i, dashes[policy], d=path_through(mean)))
    parts += [*bands, *lines]
    for k, label in enumerate(panel.labels[::-1]):  # the largest on top, as the curves end
        parts.append(_label(figure, frame, label, dashes[label.policy], k if below else None))
    return drawing(width, height, "".join(parts), panel.title, "chart", least=0.62)


def _line(policy: int, dash: list[int], d: str) -> str:
    dashes = None if dash == [1, 0] else " ".join(map(str, dash))
    return element("path", class_=f"curve c{policy % len(COLOURS)}", stroke_dasharray=dashes, d=d)


def _label(figure: RegretFigure, frame: Frame, label: EndLabel, dash: list[int], row: int | None) -> str:
    """At the end of its curve, or in its row below the plot; a piece of the line stands before it."""
    policy = figure.policies.index(label.policy)
    right = frame.width - frame.right_room
    if row is None:
        left, y = right + 12.0, frame.y(label.place)
        lead = element(
            "path",
            class_=f"leader c{policy % len(COLOURS)}",
            d=path_through([(right + 1, frame.y(label.at)), (left, y)]),
        )
    else:
        left, y, lead = frame.left_room, frame.height - frame.bottom_room + 52.0 + LABEL_GAP * 1.2 * row, ""
    sample = _line(policy, dash, d=path_through([(left, y), (left + _SAMPLE, y)]))
    said = element("tspan", label.amount, class_="strong") + element("tspan", text_of(label.name), dx=6)
    return lead + sample + element("text", said, class_="label", x=left + _SAMPLE + 6.0, y=y + 4.0)
