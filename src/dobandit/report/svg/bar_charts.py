"""Amounts in rows as SVG: values with their intervals on one scale, and the steps that add up to a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dobandit.report.svg.axes import Frame, tick_text, ticks
from dobandit.report.svg.elements import (
    LETTER,
    STRONG_LETTER,
    Drawing,
    Panel,
    breadth_of,
    element,
    text_of,
    titled,
    within,
    words,
)
from dobandit.texts import decimals, fixed, printable, shortened_apart, with_interval

_NARROW, _BARS, _WIDE_BARS, _MOST_NAMES = 350.0, 330.0, 420.0, 340.0  # pixels
_HEADING, _AXIS, _AXIS_TITLE = 34.0, 26.0, 16.0


class Value(NamedTuple):
    """A value with its interval, and what it is the value of."""

    name: str
    value: float
    low: float
    high: float
    about: str = ""  # below the name
    kind: str = ""  # "model", "data", "other", a colour of curves ("c0"), or "" for what others are compared with
    seen: float | None = None  # what was observed, as a diamond
    bar: str = ""  # the value as text, where it is to be drawn as a bar from 0


class Scale(NamedTuple):
    """What the horizontal axis of values shows."""

    low: float
    high: float
    title: str = ""
    compared: tuple[float, str] | None = None  # a line at this value, with its name


def values_chart(rows: Sequence[Value], label: str) -> str:
    """Values on one scale from 0, each with its interval: what overlaps, and what does not."""
    top = min(1.0, 1.06 * max([row.high for row in rows], default=1.0))
    return values_panel(rows, label, Scale(min([0.0, *(row.low for row in rows)]), top)).markup()


def values_panel(rows: Sequence[Value | str], label: str, scale: Scale) -> Panel:
    """rows: values, and headings between them"""
    return Panel(_values(rows, label, scale, True), _values(rows, label, scale, False))


def _values(rows: Sequence[Value | str], label: str, scale: Scale, beside: bool) -> Drawing:
    """beside: the names stand left of the values; otherwise above them."""
    values = [row for row in rows if isinstance(row, Value)]
    two_lines = any(row.about for row in values)
    step = (40.0 if two_lines else 24.0) if beside else (54.0 if two_lines else 42.0)
    names = max((max(breadth_of(v.name, strong=two_lines), breadth_of(v.about)) for v in values), default=0.0)
    left = min(max(names + 22.0, 120.0), _MOST_NAMES) if beside else 12.0
    letters = int((left - 22.0) / LETTER if beside else (_NARROW - 42.0) / STRONG_LETTER)
    short = shortened_apart(list(dict.fromkeys(v.name for v in values)), letters)
    width = left + (_BARS if two_lines else _WIDE_BARS) + 18.0 if beside else _NARROW
    top = 4.0 if scale.compared is None else 24.0
    floor = top + sum(_HEADING if isinstance(row, str) else step for row in rows) + 4.0
    height = floor + _AXIS + (_AXIS_TITLE if scale.title else 0.0)
    frame = Frame(width, height, scale.low, scale.high, 0, 1, left_room=left, right_room=18.0)
    parts = [_horizontal_axis(frame, scale, top, floor)]
    y = top
    for row in rows:
        if isinstance(row, str):
            parts.append(words(left, y + 0.62 * _HEADING + 4.0, within(row, width - left, True), class_="heading"))
            y += _HEADING
            continue
        middle = y + (step / 2 + 2.0 if beside else step - 16.0)
        y += step
        parts.append(_mark(row, frame, middle))
        row = row._replace(name=short[row.name])
        parts.append(_name_beside(row, left, middle, two_lines) if beside else _name_above(row, left, middle, width))
    return Drawing(width, height, "".join(parts), label, least=0.62)


def _mark(row: Value, frame: Frame, middle: float) -> str:
    low, x, high = (frame.x(min(max(end, frame.first), frame.last)) for end in (row.low, row.value, row.high))
    said = f"{row.name}: {with_interval(row.value, row.low, row.high)}"
    kind = "whisker over-bar" if row.bar else "whisker"
    whisker = element("line", class_=kind, x1=low, x2=high, y1=middle, y2=middle)
    if row.bar:
        zero = frame.x(0.0)
        mark = (
            element("rect", class_="bar", x=zero, y=middle - 5.5, width=max(x - zero, 0.0), height=11.0)
            + whisker
            + words(high + 7.0, middle + 4.0, row.bar, class_="label strong")
        )
    else:
        mark = whisker + element("circle", class_="dot", cx=x, cy=middle, r=5)
    if row.seen is not None:
        seen = frame.x(row.seen)
        diamond = f"M{seen:.1f},{middle - 9:.1f}l9,9l-9,9l-9,-9Z"
        mark += element("path", class_="seen", d=diamond)
    return element("g", titled(mark, said), class_=f"value {row.kind}".rstrip())


def _name_beside(row: Value, left: float, middle: float, two_lines: bool) -> str:
    strong = " strong" if two_lines else ""
    name = within(row.name, left - 22.0, strong=two_lines)
    if not row.about:
        return words(left - 16.0, middle + 4.0, name, class_=f"label end{strong}")
    about = words(left - 16.0, middle + 13.0, within(row.about, left - 22.0), class_="tick end")
    return words(left - 16.0, middle - 2.0, name, class_=f"label end{strong}") + about


def _name_above(row: Value, left: float, middle: float, width: float) -> str:
    name = within(row.name, width - left - 30.0 - min(breadth_of(row.about), width / 2), strong=True)
    rest = within(row.about, width - left - 22.0 - breadth_of(name, strong=True))
    said = element("tspan", text_of(name), class_="strong")
    said += element("tspan", text_of(rest), class_="quiet", dx=7) if rest else ""
    return element("text", said, class_="label over", x=left, y=middle - 14.0)


def _horizontal_axis(frame: Frame, scale: Scale, top: float, floor: float) -> str:
    parts = []
    for at in ticks(frame.first, frame.last, 5):
        x = frame.x(at)
        parts.append(element("line", class_="grid", x1=x, x2=x, y1=top - 2.0, y2=floor))
        parts.append(words(x, floor + 16.0, tick_text(at), class_="tick middle"))
    if scale.title:
        parts.append(words(frame.width - frame.right_room, floor + 32.0, scale.title, class_="tick end"))
    if scale.compared is not None:
        x, name = frame.x(scale.compared[0]), scale.compared[1]
        half = breadth_of(name) / 2
        inside = min(max(x, half), frame.width - half)
        parts.append(element("line", class_="compared", x1=x, x2=x, y1=top - 4.0, y2=floor))
        parts.append(words(inside, 12.0, name, class_="tick middle"))
    return "".join(parts)


class Step(NamedTuple):
    """An amount that is added; `total` where it is what all before add up to."""

    name: str
    amount: float
    total: bool = False
    kind: str = ""  # "hope" for what is not known but hoped for


def waterfall(steps: Sequence[Step], label: str) -> str:
    """From top to bottom: each step begins where the one before ended."""
    longest = max((breadth_of(step.name, step.total) for step in steps), default=0.0)
    left = min(max(longest + 22.0, 120.0), _MOST_NAMES)
    return Panel(_waterfall(steps, label, left + _BARS, left), _waterfall(steps, label, _NARROW)).markup()


def _waterfall(steps: Sequence[Step], label: str, width: float, names: float = 0.0) -> Drawing:
    """names: pixels left of the bars, in which their names stand; 0: they stand above them"""
    places, at = [], 0.0
    for step in steps:
        begin, end = (0.0, step.amount) if step.total else (at, at + step.amount)
        places.append((begin, end))
        at = end
    ends = [end for place in places for end in place]
    beside = names > 0.0
    left, tall = (names, 30.0) if beside else (8.0, 44.0)
    low, high = min([0.0, *ends]), max([*ends, 1e-9])
    height = tall * len(steps) + 12.0
    frame = Frame(width, height, low, high, 0, 1, left_room=left, right_room=70.0, top_room=2.0, bottom_room=2.0)
    zero, digits = frame.x(0.0), decimals(*(step.amount for step in steps))
    parts = [element("line", class_="axis", x1=zero, x2=zero, y1=0, y2=height)]
    for k, (step, (begin, end)) in enumerate(zip(steps, places, strict=True)):
        y = tall * k + (6.0 if beside else 22.0)
        kind = "total" if step.total else step.kind or ("less" if step.amount < 0 else "more")
        a, b = sorted((frame.x(begin), frame.x(end)))
        parts.append(element("rect", class_=f"bar {kind}", x=a, y=y, width=max(b - a, 1.5), height=16.0, rx=2))
        if beside and k + 1 < len(steps) and not steps[k + 1].total:
            parts.append(element("line", class_="join", x1=frame.x(end), x2=frame.x(end), y1=y + 16.0, y2=y + tall))
        amount = fixed(step.amount, digits, "" if step.total else "+")
        parts.append(
            words(b + 7.0, y + 12.5, amount.replace("-", "−"), class_="label strong" if step.total else "label")
        )
        name = _ends_of(step.name, left - 22.0 if beside else width - left - 10.0, step.total)
        strong = " strong" if step.total else ""
        place = (left - 16.0, y + 12.5) if beside else (left + 5.0, y - 6.0)
        said = words(*place, name, class_=f"label{' end' if beside else ''}{strong}")
        parts.append(said if name == step.name else titled(said, step.name))
    return Drawing(width, height, "".join(parts), label)


def _ends_of(text: str, pixels: float, strong: bool) -> str:
    """Both ends of a text that is too long: a path is known by where it begins and where it leads."""
    if breadth_of(text, strong) <= pixels:
        return printable(text)
    head = within(text, pixels / 2, strong)
    return head + within(text[::-1], pixels / 2, strong)[-2::-1]
