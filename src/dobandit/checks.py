"""Checks that many doors make, and values as messages show them. NumPy registers its numbers as Integral and Real."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

MOST_ROUNDS_EVER = 10**18  # rounds that anybody can ask for: kernels count in 64 bits
_MOST_SHOWN = 80


def is_whole(value: object) -> bool:
    """Whether the value is an int or a NumPy integer; a bool is neither."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def whole_number(name: str, value: object, least: int, error: type[Exception], most: int | None = None) -> int:
    """The value as an int; raises `error` where it is no whole number from `least` to `most`."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    too_large = whole and most is not None and value > most  # type: ignore[operator]
    if not whole or too_large or value < least:  # type: ignore[operator]
        end = f" to {most:,}" if too_large else ""
        raise error(f"{name} must be a whole number from {least}{end}, but got {shown(value)}.")
    return int(value)  # type: ignore[call-overload, no-any-return]


def as_float(value: object) -> float:
    """A number as a float: NaN where the value is none (a bool is none), infinity where it is too large."""
    number: Any = value
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def as_yes_or_no(value: object) -> bool | None:
    """True or False, also where they are written 1 and 0; None for anything else."""
    return bool(value) if (isinstance(value, Integral) or type(value).__name__ == "bool") and value in (0, 1) else None


def is_one_of(value: object, choices: tuple[str, ...]) -> bool:
    """Whether the value is one of these texts: an array or a frame is not, and is compared with nothing."""
    return isinstance(value, str) and value in choices


def listable(value: object) -> list[Any] | None:
    """The items of a list, a set, an array, ...; None for a text, for a table, which would only give the names of its
    columns, and for a single value, such as an array without dimensions."""
    table = hasattr(value, "columns") or hasattr(value, "column_names")
    if isinstance(value, (str, bytes)) or table or not isinstance(value, Iterable):
        return None
    try:
        return list(value)
    except TypeError:
        return None


def absent(value: object) -> bool:
    """Whether a value stands for "not seen": None, NaN, or what pandas has for them."""
    kind = type(value)
    if kind is int or kind is float or value is None:  # nearly always, and quicker
        return value is None or value != value
    return (isinstance(value, Real) and value != value) or kind.__name__ in ("NAType", "NaTType")


def shown(value: object) -> str:
    """A value for a message: its repr in one line, cut where it is too long to read."""
    try:
        text = " ".join(line.strip() for line in repr(value).split("\n"))
    except Exception:  # an int with more digits than Python prints, or an object of the user's
        return "a number of thousands of digits" if is_whole(value) else f"something of type {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


# -- what people type, the same at a command and in a form -----------------------------------------------------------


def number(text: str) -> float:
    """A finite number as people write it; ValueError for anything else, such as the 1_000 of Python."""
    value = float(text)
    if not math.isfinite(value) or "_" in text:
        raise ValueError(text)
    return value


_YES_OR_NO = {"0": 0, "1": 1, "false": 0, "true": 1, "f": 0, "t": 1, "no": 0, "yes": 1, "n": 0, "y": 1}
_NOT_SEEN = ("", "na", "n/a", "null", "none")  # as other programs write an empty cell


def value_in(text: str) -> float | None:
    """A variable's value, as a table, a command or a form has it: a number, yes or no, true or false; None where it was
    not seen. ValueError for anything else.

    >>> value_in("yes"), value_in("0.25"), value_in("NA")
    (1, 0.25, None)
    """
    word = text.strip().lower()
    if word in _NOT_SEEN:
        return None
    value = _YES_OR_NO[word] if word in _YES_OR_NO else float(word.replace("_", "?"))  # which Python allows in numbers
    return None if absent(value) else value


def names_in(text: str) -> list[str]:
    """Names with commas between them; one that holds a comma itself stands in quotes, as in a table.

    >>> names_in('email, "letter, by hand"')
    ['email', 'letter, by hand']
    """
    try:
        found = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:  # a line break, which no table would have there
        found = text.split(",")
    return [name.strip() for name in found if name.strip()]
