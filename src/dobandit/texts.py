"""Texts made harmless: what users, files and databases hold may be anything, and is shown, not obeyed. And numbers with
as many decimals as they need."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

MOST_DECIMALS = 6
MOST_ECHOED = 200  # characters of what came that a message repeats
_LONGEST_MESSAGE = 2_000
_WORD = re.compile(rf"\S{{{MOST_ECHOED + 1},}}")
# A quotation: not an apostrophe within a word.
_QUOTED = re.compile(
    rf"""(?<!\w)'(?:[^'\\]|\\.){{{MOST_ECHOED - 1},}}'(?!\w)|(?<!\w)"(?:[^"\\]|\\.){{{MOST_ECHOED - 1},}}"(?!\w)""",
    re.S,
)
# How a collection begins: a round bracket alone may be a remark, unless it follows "got" or "but".
_COLLECTION = re.compile(r"((?<!\w)\w{1,60}\(|[\[{]|(?<=\bgot )\(|(?<=\bbut )\()")
_BRACKETS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[(\[{)\]}]""", re.S)


def printable(text: str) -> str:
    r"""Control characters shown, not obeyed: names may hold anything.

    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else _shown(c) for c in text)


def printable_lines(text: str) -> str:
    """`printable`, where the ends of lines stay."""
    return "\n".join(map(printable, text.split("\n")))


def _shown(character: str) -> str:
    return character.encode("unicode_escape").decode()


def message(text: str) -> str:
    """An error's text: printable, and without more than some 200 characters of any one thing that came."""
    lines = printable_lines(text)
    if len(lines) <= MOST_ECHOED:
        return lines
    lines = _WORD.sub(_cut, _QUOTED.sub(_cut, _collections_cut(lines)))
    if len(lines) <= _LONGEST_MESSAGE:
        return lines
    return f"{lines[: _LONGEST_MESSAGE // 2]} ... {lines[-_LONGEST_MESSAGE // 2 :]}"  # the way out stands at the end


def decimals(*shown: float | Sequence[float | None] | None, usual: int = 3) -> int:
    """How many decimals numbers get that stand together: the usual ones, and up to 6 where these would hide what small
    ones say. The width of the narrowest interval, and the largest of what are single numbers, have `usual` - 1
    significant digits; what is below a millionth counts as 0.

    shown  intervals, as pairs, and single numbers

    >>> decimals((0.324, 0.501)), decimals((0.0084, 0.0102)), decimals(0.31, 0.002), decimals(0.0093)
    (3, 4, 3, 4)
    """
    pairs = [one for one in shown if isinstance(one, Sequence)]
    sizes = [abs(high - low) for low, high in pairs if low is not None and high is not None]
    sizes.append(max((abs(one) for one in shown if one is not None and not isinstance(one, Sequence)), default=0.0))
    needed = [usual - 2 - math.floor(math.log10(size)) for size in sizes if 1e-6 <= size < math.inf]
    return max(usual, min(max(needed, default=usual), MOST_DECIMALS))


def fixed(value: float, places: int, sign: str = "") -> str:
    """A number with so many decimals; never -0.000. sign: "+" where one is always wanted."""
    return f"{round(value, places) + 0.0:{sign}.{places}f}"


def with_interval(value: float, low: float, high: float, usual: int = 3, sign: str = "") -> str:
    """0.409 (0.324 to 0.501)"""
    ends = value, low, high
    value_text, *end_texts = (fixed(end, decimals((low, high), usual=usual), sign) for end in ends)
    return f"{value_text} ({' to '.join(end_texts)})"


def _collections_cut(text: str) -> str:
    """Lists, dictionaries and the like that came: each is one thing, up to its closing bracket."""
    done, at = [], 0
    while found := _COLLECTION.search(text, at):
        start, still_open = found.start(1), 0
        for part in _BRACKETS.finditer(text, found.end() - 1):
            still_open += (part[0] in "([{") - (part[0] in ")]}")
            if not still_open:
                break
        else:
            break  # never closed
        whole = text[start : part.end()]
        done += [text[at:start], whole if len(whole) <= MOST_ECHOED else _shortened(whole)]
        at = part.end()
    return "".join(done) + text[at:]


def _cut(found: re.Match[str]) -> str:
    return _shortened(found[0])


def _shortened(whole: str) -> str:
    return f"{whole[: MOST_ECHOED - 20]}...{whole[-17:]}"
