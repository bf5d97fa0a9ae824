"""SVG as text: elements, numbers and names that do no harm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from dobandit.texts import breadth, fitted, printable

FLOOR_STEP, LARGEST_FLOOR = 40, 1_600  # pixels: the page's style has a class for every floor


def number(x: float) -> str:
    """A coordinate: one decimal, and none where it is whole."""
    text = f"{x:.1f}" if math.isfinite(x) else "0"
    return text.removesuffix(".0").replace("-0", "0") if text in ("-0.0", "0.0") else text.removesuffix(".0")


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


LETTER, _STRONG_LETTER = 7.2, 8.1  # pixels, of the words in charts


def breadth_of(text: str, strong: bool = False) -> float:
    """How many pixels a line of text in a chart takes, about."""
    return breadth(text) * (_STRONG_LETTER if strong else LETTER)


def within(text: str, pixels: float, strong: bool = False) -> str:
    """As much of a text as there is room for."""
    return fitted(text, pixels / (_STRONG_LETTER if strong else LETTER))


def path_through(points: Iterable[tuple[float, float]], close: bool = False) -> str:
    """What `d` of a path says for straight lines through points."""
    steps = "L".join(f"{number(x)},{number(y)}" for x, y in points)
    return f"M{steps}Z" if close and steps else f"M{steps}" if steps else ""


def drawing(
    width: float, height: float, content: str, label: str, kind: str, *, interactive: bool = False, least: float = 0.0
) -> str:
    """A whole picture that shrinks with its page.

    label        for those who cannot see it
    kind         its class
    interactive  whether there are links inside
    least        the share of its size below which it scrolls instead, because it could not be read
    """
    floor = min(int(least * width) // FLOOR_STEP * FLOOR_STEP, LARGEST_FLOOR)
    return element(
        "svg",
        content,
        class_=f"drawn {kind} least{floor}" if floor >= FLOOR_STEP else f"drawn {kind}",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="group" if interactive else "img",
        aria_label=label,
    )


def wide_and_narrow(wide: str, narrow: str) -> str:
    """Two drawings of the same thing, of which the page's style shows the one that fits the screen."""
    return f'<div class="scrolls on-wide">{wide}</div><div class="scrolls on-narrow">{narrow}</div>'
