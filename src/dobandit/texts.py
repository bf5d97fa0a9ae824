"""Texts for people: what users, files and databases hold is made harmless, shown and not obeyed; numbers get as many
decimals as they need; names and actions are put into words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from itertools import accumulate, zip_longest
from shlex import quote
from textwrap import wrap
from typing import Any

MOST_DECIMALS = 6
MOST_ECHOED = 200  # characters of what came that a message repeats
_LONGEST_MESSAGE = 2_000
_WORD = re.compile(rf"\S{{{MOST_ECHOED + 1},}}")
# A quotation: not an apostrophe within a word.
_QUOTED = re.compile(
    rf"""(?<!\w)'(?:[^'\\]|\\.){{{MOST_ECHOED - 1},}}'(?!\w)|(?<!\w)"(?:[^"\\]|\\.){{{MOST_ECHOED - 1},}}"(?!\w)""",
    re.S,
)


def printable(text: str) -> str:
    r"""Control characters shown, not obeyed: names may hold anything.

    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """`printable`, where the ends of lines stay."""
    return "\n".join(map(printable, text.split("\n")))


def message(text: str) -> str:
    """An error's text: printable, at most some 200 characters of any one name or quotation, and 2,000 in all."""
    lines = printable_lines(text)
    if len(lines) <= MOST_ECHOED:
        return lines
    lines = _WORD.sub(_shorter, _QUOTED.sub(_shorter, lines))
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


def _shorter(found: re.Match[str]) -> str:
    return f"{found[0][: MOST_ECHOED - 20]}...{found[0][-17:]}"


# -- words that Python and the command line spell differently ---------------------------------------------------------

# Around a word that is spelled twice: for Python, and for commands. `printable` and `repr` escape these characters, so
# that what users give is never taken for such a word.
_BEGIN, _OR, _END = "\ue000", "\ue001", "\ue002"
_OPTIONS = {"budget": "-k", "costs": "--cost", "levers": "--lever", "links": "--link"}
_POLICIES = {"CausalUCB": "causal-ucb", "CausalTS": "causal-ts", "BLMLR": "blm-lr", "BGLMOFU": "bglm-ofu"}


def keyword(word: str, value: Any = ...) -> str:
    """A keyword that a message names, with its value: context={'mobile': 1} for Python, --context mobile=1 at the
    command line. None: the word alone.

    >>> for_python(keyword("hide", ["visit", "mood"])), for_commands(keyword("hide", ["visit", "mood"]))
    ("hide=['visit', 'mood']", '--hide visit --hide mood')
    """
    option = _OPTIONS.get(word, f"--{word.replace('_', '-')}")
    if value is None:
        return _either(word, option)
    if isinstance(value, Mapping):
        return _either(f"{word}={value!r}", " ".join(f"{option} {quote(f'{name}={to}')}" for name, to in value.items()))
    if isinstance(value, (list, tuple)):
        return _either(f"{word}={[*value]!r}", " ".join(f"{option} {quote(name)}" for name in value))
    if value is ... or isinstance(value, bool):
        python = f"{word}={'...' if value is ... else value}"
        return _either(python, f"no {option}" if value is False else option)
    return _either(f"{word}={value!r}", f"{option} {value}")


def setting(text: str) -> str:
    """A setting of a policy that a message names, such as clipped=True."""
    return _either(text, f"{text} in --policy")


def policy_name(name: str) -> str:
    """A policy that a message recommends, by its class."""
    return _either(name, _POLICIES[name])


def for_python(text: str) -> str:
    """A message whose keywords are spelled for Python, as `str` of an error has it."""
    return _spelled(text, 0)


def for_commands(text: str) -> str:
    """A message whose keywords are spelled for the command line."""
    return _spelled(text, 1)


def _either(python: str, command: str) -> str:
    return f"{_BEGIN}{python}{_OR}{command}{_END}"


def _spelled(text: str, which: int) -> str:
    before, *others = text.split(_BEGIN)
    for other in others:
        spellings, _, after = other.partition(_END)
        before += (spellings.split(_OR) * 2)[which] + after
    return before


# -- numbers and names as people read them ---------------------------------------------------------------------------

NOT_KNOWN = "–"


def amount(x: float) -> str:
    """A number with about three digits: 637, 40.4, 0.012; thousands are separated."""
    if not math.isfinite(x):
        return NOT_KNOWN
    size = abs(x)
    if size < 5e-7:
        return "0"
    if round(size, 1) >= 100:
        return f"{x:,.0f}"
    return f"{x:.1f}" if size >= 0.995 else f"{x:.2g}"


def headline_amount(x: float) -> str:
    """A number for a title: no decimals from 10 on."""
    return f"{x:,.0f}" if math.isfinite(x) and abs(x) >= 10 else amount(x)


def signed(x: float) -> str:
    """A difference: +12.3."""
    text = amount(x)
    return text if text.startswith("-") or text in ("0", NOT_KNOWN) else f"+{text}"


def percent(share: float) -> str:
    """A share with one decimal; never 100% or 0% unless it is so."""
    if not math.isfinite(share):
        return NOT_KNOWN
    text = f"{100 * share:.1f}%"
    if text == "100.0%" and share < 1:
        return ">99.9%"
    return "<0.1%" if text == "0.0%" and share > 0 else text


def counted(count: int, noun: str) -> str:
    """ "1 round", "10,000 rounds"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def in_a_sentence(parts: Sequence[str]) -> str:
    """visit, wishlist and buy"""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def action_words(do: Mapping[str, float]) -> str:
    """What is set: names, with the value where it is not 1: "coupon, price = 0"; "nothing" where nothing is."""
    parts = [name if value == 1 else f"{name} = {value:g}" for name, value in do.items()]
    return ", ".join(parts) or "nothing"


def setting_words(do: Mapping[str, float]) -> str:
    """What is set, each with its value: "coupon = 1, price = 0"; "nothing" where nothing is."""
    return ", ".join(f"{name} = {value:g}" for name, value in do.items()) or "nothing"


def shortened(text: str, most: int) -> str:
    """At most `most` characters, with an ellipsis where some are missing."""
    text = printable(text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def shortened_apart(texts: Sequence[str], most: int) -> dict[str, str]:
    """Each text in at most `most` characters, and still told apart: what stands in brackets at the end, which is where
    two settings of one policy differ, is kept for as long as it fits; where two begin alike, their ends are kept too;
    and what is equal all the same is numbered."""
    once = list(dict.fromkeys(texts))
    short: dict[str, str] = {}
    cuts = [_cut(text, most) for text in once]
    for text, cut in zip(once, cuts, strict=True):
        if cuts.count(cut) > 1:
            whole, end = printable(text), most // 2
            cut = f"{whole[: most - end - 1].rstrip()}…{whole[-end:].lstrip()}"
        taken, number = set(short.values()), 2
        while cut in taken:
            mark = f" #{number}"
            cut, number = shortened(text, most - len(mark)) + mark, number + 1
        short[text] = cut
    return short


def _cut(text: str, most: int) -> str:
    head, bracket, tail = printable(text).rpartition(" (")
    tail = bracket + tail
    fits = head and tail.endswith(")") and len(tail) <= most - 4 and len(head + tail) > most
    return shortened(head, most - len(tail)) + tail if fits else shortened(text, most)


def aligned(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = (), width: int | None = None
) -> list[str]:
    """A table as lines; columns whose position is in `right` are aligned to the right. Where a screen of `width`
    characters is too narrow, the other columns are wrapped, or cells stand under each other if that is not enough."""
    cells = [[printable(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(map(columns, column)) for column in zip(*cells, strict=True)]
    if width is not None:
        words = [max(map(columns, " ".join(column).split()), default=0) for column in zip(*cells, strict=True)]
        least = [widths[i] if i in right else min(word, 20) for i, word in enumerate(words)]
        room = width - 2 * (len(widths) - 1)
        if sum(least) > room:
            return stacked(headings, cells[1:], width)
        while sum(widths) > room:
            widest = max(range(len(widths)), key=lambda i: widths[i] - least[i])
            widths[widest] -= 1
    lines = []
    for number, row in enumerate(cells):
        lines += ["-" * (sum(widths) + 2 * (len(widths) - 1))] if number == 1 else []
        for parts in zip_longest(*(_wrapped(cell, most) for cell, most in zip(row, widths, strict=True)), fillvalue=""):
            line = ""
            for i, (part, most) in enumerate(zip(parts, widths, strict=True)):
                gap = " " * (most - columns(part))
                line += (gap + part if i in right else part + gap) + "  "
            lines.append(line.rstrip())
    return lines


def _wrapped(text: str, most: int) -> list[str]:
    return [text] if columns(text) <= most else wrap(text, most, break_on_hyphens=False)


def stacked(headings: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> list[str]:
    """A table for a screen that is too narrow for it: under each other, a line per cell, a blank line between rows."""
    label = min(max(map(columns, headings)), width // 2)
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        for heading, cell in zip(headings, row, strict=True):
            parts = wrap(printable(cell), max(width - label - 2, 8)) if cell.strip() else []
            names = wrap(printable(heading), label) if parts else []
            for name, part in zip_longest(names, parts, fillvalue=""):
                lines.append(f"{name}{' ' * (label - columns(name))}  {part}".rstrip())
    return lines


def columns(text: str) -> int:
    """How many character cells the text takes: East Asian characters take two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


_NARROW, _WIDE = frozenset(" !'(),-./:;I[]`fijlrt{|}"), frozenset("%@MWmw—→…")


def breadth(text: str) -> float:
    """How wide a text is in a font whose letters are not of one width, counted in letters of the usual width."""
    return sum(map(_breadth_of, text))


@lru_cache(maxsize=4096)
def _breadth_of(character: str) -> float:
    if character in _NARROW:
        return 0.65
    if character in _WIDE:
        return 1.55
    return 1.15 * columns(character) if character.isupper() or columns(character) > 1 else float(columns(character))


def fitted(text: str, most: float) -> str:
    """As much of a text as is at most `most` letters wide, with an ellipsis where some is missing."""
    text = printable(text)
    if breadth(text) <= most:
        return text
    ends = accumulate(map(_breadth_of, text))
    return text[: sum(end <= most - 1.2 for end in ends)].rstrip() + "…"


def as_html(self: object) -> str:
    """What a notebook shows of an object that can be printed; classes have it as `_repr_html_`."""
    return f"<pre>{escape(printable_lines(str(self)))}</pre>"


def markdown(text: str) -> str:
    """The text as it stands, whatever Markdown would make of it; punctuation that is harmless within a line stays."""
    return escape(re.sub(r"([\\`*_\[\]|~$#])", r"\\\1", printable(text)), quote=False)
