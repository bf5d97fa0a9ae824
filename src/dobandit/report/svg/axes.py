"""The frame of a chart: scales, grid lines and the words beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dobandit.report.svg.elements import element, words

_HALF_A_DIGIT = 3.6  # pixels, of the words beside axes
TITLED = 40.0  # pixels below a plot whose horizontal axis says what it counts


@dataclass(frozen=True)
class Frame:
    """A plot with room around it, in pixels, and what its sides stand for."""

    width: float
    height: float
    first: float  # the horizontal axis
    last: float
    bottom: float  # the vertical one
    top: float
    log: bool = False  # whether the horizontal axis is logarithmic
    left_room: float = 40.0
    right_room: float = 12.0
    top_room: float = 12.0
    bottom_room: float = 26.0

    def x(self, value: float) -> float:
        a, b, v = (math.log(max(z, 1e-300)) if self.log else z for z in (self.first, self.last, value))
        share = (v - a) / (b - a) if b > a else 0.5
        return self.left_room + share * self.inner_width

    def y(self, value: float) -> float:
        share = (value - self.bottom) / (self.top - self.bottom) if self.top > self.bottom else 0.5
        return self.top_room + (1.0 - share) * self.inner_height

    @property
    def inner_width(self) -> float:
        return self.width - self.left_room - self.right_room

    @property
    def inner_height(self) -> float:
        return self.height - self.top_room - self.bottom_room

    def axes(self, across: str = "", *, levels: int = 4) -> str:
        """Grid lines with their values, the horizontal axis with its own, and what it counts, which needs `TITLED`."""
        left, right, floor = self.left_room, self.width - self.right_room, self.height - self.bottom_room
        parts = []
        for level in ticks(self.bottom, self.top, levels):
            y = self.y(level)
            parts.append(element("line", class_="grid", x1=left, x2=right, y1=y, y2=y))
            parts.append(words(left - 7.0, y + 4.0, tick_text(level), class_="tick end"))
        parts.append(element("line", class_="axis", x1=left, x2=right, y1=floor, y2=floor))
        for step in self._steps():
            text = tick_text(step)
            inside = min(self.x(step), self.width - len(text) * _HALF_A_DIGIT)  # the last one would be cut off
            parts.append(words(inside, floor + 16.0, text, class_="tick middle"))
        if across:
            parts.append(words(right, floor + 32.0, across, class_="tick end"))
        return "".join(parts)

    def _steps(self) -> list[float]:
        if self.log:
            tens = [10.0**k for k in range(-3, 13) if self.first <= 10.0**k <= self.last]
            if len(tens) > 1:
                return tens
        return [step for step in ticks(self.first, self.last, 5) if step == int(step)]


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from low to high, at most about `most`."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    rough = (high - low) / max(most, 1)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= 0.75 * rough)
    begin, end = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(begin, end + 1)]


def tick_text(x: float) -> str:
    """A value on an axis: 0.25, 1,000, 100k."""
    if abs(x) >= 1e6:
        return f"{x / 1e6:g}M"
    if abs(x) >= 1e5:
        return f"{x / 1e3:g}k"
    return f"{x:,.0f}" if x == int(x) else f"{x:g}"
