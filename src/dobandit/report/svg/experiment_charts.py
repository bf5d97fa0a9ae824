"""The course of an experiment as SVG: rewards beside predictions, what was tried when, and a line in a nutshell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dobandit.report.svg.axes import TITLED, Frame
from dobandit.report.svg.elements import (
    LETTER,
    Drawing,
    Panel,
    breadth_of,
    element,
    path_through,
    titled,
    within,
    words,
)
from dobandit.texts import decimals, fixed, shortened_apart, with_interval

_WIDE, _NARROW = 580.0, 350.0  # pixels


class Stage(NamedTuple):
    """Consecutive trials, from `first` up to `last`: what was seen on average, and what had been predicted."""

    first: int
    last: int
    mean: float
    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.first + self.last) / 2


def sparkline(values: Sequence[float], label: str) -> str:
    """A curve the size of a word, on a scale from 0 to the largest value, both of which stand beside it; its last value
    is marked."""
    width, height, left = 150.0, 36.0, 30.0
    top = max(values, default=0.0)
    frame = Frame(
        width, height, 0, max(len(values) - 1, 1), 0.0, top if top > 0.0 else 1.0,
        left_room=left + 4.0, right_room=5.0, top_room=6.0, bottom_room=6.0,
    )  # fmt: skip
    floor = frame.y(0.0)
    parts = [
        element("line", class_="grid", x1=left, x2=width, y1=floor, y2=floor),
        words(left - 4.0, floor + 3.5, "0", class_="tick end"),
    ]
    if top > 0.0:
        parts.append(words(left - 4.0, frame.y(top) + 4.5, fixed(top, decimals(top, usual=2)), class_="tick end"))
    if values:
        points = [(frame.x(i), frame.y(value)) for i, value in enumerate(values)]
        area = [*points, (points[-1][0], floor), (points[0][0], floor)]
        parts += [
            element("path", class_="area", d=path_through(area, close=True)),
            element("path", class_="curve accent", d=path_through(points)),
            element("circle", class_="dot accent", cx=points[-1][0], cy=points[-1][1], r=3),
        ]
    return Drawing(width, height, "".join(parts), label, "spark").svg()


def reward_chart(seen: Sequence[Stage], predicted: Sequence[Stage], target: str, label: str) -> str:
    """What was seen, as dots with their intervals, beside what had been predicted, as a line with its band."""
    sizes = (_WIDE, 274.0), (_NARROW, 244.0)
    return Panel(*(_rewards(seen, predicted, target, label, *size) for size in sizes)).markup()


def _rewards(
    seen: Sequence[Stage], predicted: Sequence[Stage], target: str, label: str, width: float, height: float
) -> Drawing:
    last = max([stage.last for stage in (*seen, *predicted)], default=1)
    tops = [stage.high for stage in (*seen, *predicted)]
    frame = Frame(
        width, height, 0, max(last, 1), 0.0, min(1.0, 1.08 * max(tops, default=1.0)), top_room=30.0, bottom_room=TITLED
    )
    band = [(frame.x(stage.middle), frame.y(stage.high)) for stage in predicted]
    band += [(frame.x(stage.middle), frame.y(stage.low)) for stage in predicted[::-1]]
    parts = [
        frame.axes("closed trials"),
        element("path", class_="band c0", d=path_through(band, close=True)),
        element("path", class_="curve c0", d=path_through((frame.x(s.middle), frame.y(s.mean)) for s in predicted)),
    ]
    for stage in seen:
        x = frame.x(stage.middle)
        whisker = element("line", class_="whisker", x1=x, x2=x, y1=frame.y(stage.low), y2=frame.y(stage.high))
        dot = element("circle", class_="dot", cx=x, cy=frame.y(stage.mean), r=3.2)
        said = f"trials {stage.first:,} to {stage.last - 1:,}: {with_interval(stage.mean, stage.low, stage.high)}"
        parts.append(titled(whisker + dot, said))
    left = frame.left_room
    name = f"{within(target, width - left - 250.0)} observed, 95%"
    beside = left + 13.0 + max(breadth_of(name) + 20.0, 150.0)
    parts += [
        element("circle", class_="dot", cx=left + 4, cy=10, r=3.2),
        words(left + 13, 14, name, class_="label"),
        element("line", class_="curve c0", x1=beside, x2=beside + 18.0, y1=10, y2=10),
        words(beside + 24.0, 14, "predicted", class_="label"),
    ]
    return Drawing(width, height, "".join(parts), label)


class Row(NamedTuple):
    """An action, and in which share of each stretch's trials it was set."""

    name: str
    shares: Sequence[float]
    marked: bool = False


def tried_chart(rows: Sequence[Row], last: int, label: str, hrefs: Mapping[int, str] | None = None) -> str:
    """What was tried when: a row an action, a dot as large as its share of a stretch.

    last   how many trials the stretches cover
    hrefs  by stretch: where its dots lead
    """
    sizes = (_WIDE, 250.0), (_NARROW, 120.0)
    return Panel(*(_tried(rows, last, label, *size, hrefs or {}) for size in sizes)).markup()


def _tried(
    rows: Sequence[Row], last: int, label: str, width: float, longest: float, hrefs: Mapping[int, str]
) -> Drawing:
    apart = shortened_apart([row.name for row in rows], int(longest / LETTER))
    names = [within(apart[row.name], longest, row.marked) for row in rows]
    left = 16.0 + max((breadth_of(name, row.marked) for name, row in zip(names, rows, strict=True)), default=0.0)
    step = 22.0
    height = step * len(rows) + 40.0
    frame = Frame(width, height, 0, max(last, 1), 0, 1, left_room=left, top_room=8.0)
    stretches = max((len(row.shares) for row in rows), default=1)
    largest = min(8.0, max(2.2, frame.inner_width / max(stretches, 1) / 1.7))
    parts = []
    for k, (row, name) in enumerate(zip(rows, names, strict=True)):
        y = 8.0 + step * (k + 0.5)
        strong = " strong" if row.marked else ""
        parts.append(element("line", class_="grid", x1=left, x2=width - frame.right_room, y1=y, y2=y))
        said = words(left - 9.0, y + 4.0, name, class_=f"label end{strong}")
        parts.append(said if name == row.name else titled(said, row.name))
        for i, share in enumerate(row.shares):
            if share > 0.0:
                x = left + frame.inner_width * (i + 0.5) / stretches
                mark = " accent" if row.marked else ""
                dot = element("circle", class_=f"dot{mark}", cx=x, cy=y, r=max(1.2, largest * share**0.5))
                dot = titled(dot, f"{row.name}: {share:.0%} of these trials")
                parts.append(element("a", dot, href=hrefs[i], tabindex="-1") if i in hrefs else dot)
    floor = height - 26.0
    parts.append(element("line", class_="axis", x1=left, x2=width - frame.right_room, y1=floor, y2=floor))
    parts.append(words(frame.x(0.0), floor + 16, "first trial", class_="tick"))
    parts.append(words(frame.x(max(last, 1)), floor + 16, f"{last:,} closed", class_="tick end"))
    return Drawing(width, height, "".join(parts), label, interactive=bool(hrefs))


def interval_chart(points: Sequence[tuple[int, float, float, float]], label: str, reach: tuple[float, float]) -> str:
    """How the interval of a weight shrinks: (trials, value, low, high) on the way; reach: the ends of the axis."""
    width, height = 190.0, 70.0
    last = max((point[0] for point in points), default=1)
    frame = Frame(width, height, 0, max(last, 1), *reach, left_room=26.0, right_room=6.0, top_room=6.0, bottom_room=8.0)
    band = [(frame.x(at), frame.y(high)) for at, _, _, high in points]
    band += [(frame.x(at), frame.y(low)) for at, _, low, _ in points[::-1]]
    zero = frame.y(0.0)
    ends = [words(20.0, frame.y(end) + 4.0, f"{end:g}".replace("-", "−"), class_="tick end") for end in reach]
    content = (
        element("line", class_="axis", x1=26.0, x2=width - 6.0, y1=zero, y2=zero)
        + "".join(ends)
        + element("path", class_="band c0", d=path_through(band, close=True))
        + element("path", class_="curve c0", d=path_through((frame.x(at), frame.y(v)) for at, v, _, _ in points))
    )
    return Drawing(width, height, content, label, "chart small").svg()
