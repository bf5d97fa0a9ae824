"""Amounts side by side as SVG: values with their intervals, and the steps that add up to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dobandit.report.drawn.axes import Frame, tick_text, ticks
from dobandit.report.drawn.svg import breadth_of, drawing, element, text_of, wide_and_narrow, within, words
from dobandit.texts import decimals, fixed, printable, with_interval

_WIDE, _NARROW = 580.0, 350.0  # pixels
_BARS, _MOST_NAMES = 330.0, 390.0


class Value(NamedTuple):
    """A value with its interval, and what it is the value of."""

    name: str
    value: float
    low: float
    high: float
    about: str = ""
    kind: str = ""  # "model", "data" or "" for what both are compared with


def values_chart(rows: Sequence[Value], label: str) -> str:
    """Values on one scale, each with its interval: what overlaps, and what does not."""
    return wide_and_narrow(_values(rows, label, _WIDE, True), _values(rows, label, _NARROW, False))


def _values(rows: Sequence[Value], label: str, width: float, beside: bool) -> str:
    """beside: the names stand left of the values; otherwise above them."""
    left, step = (232.0, 40.0) if beside else (12.0, 54.0)
    top = min(1.0, 1.06 * max([row.high for row in rows], default=1.0))
    bottom = min(0.0, min([row.low for row in rows], default=0.0))
    height = step * len(rows) + 34.0
    frame = Frame(width, height, bottom, top, 0, 1, left_room=left, right_room=18.0, top_room=4.0)
    floor = height - 26.0
    parts = [_grid(frame, floor)]
    for k, row in enumerate(rows):
        middle = step * k + (step / 2 + 2.0 if beside else 34.0)
        x = frame.x(row.value)
        said = f"{row.name}: {with_interval(row.value, row.low, row.high)}"
        mark = (
            element("title", text_of(said))
            + element("line", class_="whisker", x1=frame.x(row.low), x2=frame.x(row.high), y1=middle, y2=middle)
            + element("circle", class_="dot", cx=x, cy=middle, r=5)
        )
        parts.append(element("g", mark, class_=f"value {row.kind}".rstrip()))
        if beside:
            name, down = within(row.name, left - 22.0, strong=True), -2.0 if row.about else 4.0
            parts.append(words(left - 16.0, middle + down, name, class_="label end strong"))
            if row.about:
                parts.append(words(left - 16.0, middle + 13.0, within(row.about, left - 22.0), class_="tick end"))
        else:
            name = within(row.name, width - left - 30.0 - min(breadth_of(row.about), width / 2), strong=True)
            rest = within(row.about, width - left - 22.0 - breadth_of(name, strong=True))
            said = element("tspan", text_of(name), class_="strong")
            said += element("tspan", text_of(rest), class_="quiet", dx=7) if rest else ""
            parts.append(element("text", said, class_="label", x=left, y=middle - 14.0))
    return drawing(width, height, "".join(parts), label, "chart")


def _grid(frame: Frame, floor: float) -> str:
    parts = []
    for at in ticks(frame.first, frame.last, 5):
        x = frame.x(at)
        parts.append(element("line", class_="grid", x1=x, x2=x, y1=2, y2=floor))
        parts.append(words(x, floor + 16.0, tick_text(at), class_="tick middle"))
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
    return wide_and_narrow(_waterfall(steps, label, left + _BARS, left), _waterfall(steps, label, _NARROW))


def _waterfall(steps: Sequence[Step], label: str, width: float, names: float = 0.0) -> str:
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
        parts.append(said if name == step.name else element("g", element("title", text_of(step.name)) + said))
    return drawing(width, height, "".join(parts), label, "chart")


def _ends_of(text: str, pixels: float, strong: bool) -> str:
    """Both ends of a text that is too long: a path is known by where it begins and where it leads."""
    if breadth_of(text, strong) <= pixels:
        return printable(text)
    head = within(text, pixels / 2, strong)
    return head + within(text[::-1], pixels / 2, strong)[-2::-1]
