"""SVG as text: elements, numbers and names that do no harm, and whole drawings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from dobandit.texts import breadth, fitted, printable

FLOOR_STEP, LARGEST_FLOOR = 40, 1_600  # pixels: the page's style has a class for every floor


def number(x: float) -> str:
    """A coordinate: one decimal, and none where it is whole."""
    text = f"{x:.1f}" if math.isfinite(x) else "0"
    return "0" if text in ("-0.0", "0.0") else text.removesuffix(".0")


def text_of(text: str) -> str:
    """A text from anywhere, harmless in an element and in an attribute."""
    return escape(printable(text))


def element(name: str, content: str = "", **attributes: object) -> str:
    """<name attributes>content</name>. Numbers are rounded, texts escaped, None left out; content is put in as it is.

    Attributes that are words of Python end in an underscore; other underscores become hyphens.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            shown = number(value) if isinstance(value, float) else text_of(str(value))
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{shown}"')
    opening = " ".join(parts)
    return f"<{opening}>{content}</{name}>" if content else f"<{opening}/>"


def words(x: float, y: float, text: str, **attributes: object) -> str:
    """A line of text at a place."""
    return element("text", text_of(text), x=float(x), y=float(y), **attributes)


LETTER, STRONG_LETTER = 7.2, 8.1  # pixels, of the words in charts


def breadth_of(text: str, strong: bool = False) -> float:
    """How many pixels a line of text in a chart takes, about."""
    return breadth(text) * (STRONG_LETTER if strong else LETTER)


def within(text: str, pixels: float, strong: bool = False) -> str:
    """As much of a text as there is room for."""
    return fitted(text, pixels / (STRONG_LETTER if strong else LETTER))


def titled(group: str, title: str) -> str:
    """A group with the words that a browser shows when the pointer rests on it."""
    return element("g", element("title", text_of(title)) + group)


def path_through(points: Iterable[tuple[float, float]], close: bool = False) -> str:
    """What `d` of a path says for straight lines through points."""
    steps = "L".join(f"{number(x)},{number(y)}" for x, y in points)
    return f"M{steps}Z" if close and steps else f"M{steps}" if steps else ""


class Drawing(NamedTuple):
    """A whole picture.

    label        for those who cannot see it
    kind         its class
    interactive  whether there are links inside
    least        the share of its size below which it scrolls instead, because it could not be read
    """

    width: float
    height: float
    content: str
    label: str
    kind: str = "chart"
    interactive: bool = False
    least: float = 0.0

    def svg(self) -> str:
        """For a page, with which it shrinks, and whose style it needs."""
        floor = min(int(self.least * self.width) // FLOOR_STEP * FLOOR_STEP, LARGEST_FLOOR)
        return element(
            "svg",
            self.content,
            class_=f"drawn {self.kind} least{floor}" if floor >= FLOOR_STEP else f"drawn {self.kind}",
            viewBox=f"0 0 {number(self.width)} {number(self.height)}",
            width=self.width,
            height=self.height,
            role="group" if self.interactive else "img",
            aria_label=self.label,
        )


class Panel(NamedTuple):
    """Two drawings of the same thing, of which the page's style shows the one that fits the screen."""

    wide: Drawing
    narrow: Drawing

    def markup(self) -> str:
        if self.wide.width <= self.narrow.width:  # it serves both
            return f'<div class="scrolls">{self.wide.svg()}</div>'
        wide, narrow = self.wide.svg(), self.narrow.svg()
        return f'<div class="scrolls on-wide">{wide}</div><div class="scrolls on-narrow">{narrow}</div>'
