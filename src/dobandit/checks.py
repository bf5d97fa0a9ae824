"""Checks that many doors make, and values as messages show them."""

from __future__ import annotations

import math

import numpy as np

_MOST_SHOWN = 80


def is_whole(value: object) -> bool:
    """Whether the value is an int or a NumPy integer; a bool is neither."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole_number(name: str, value: object, least: int, error: type[Exception]) -> int:
    """The value as an int; raises `error` where it is no whole number from `least`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise error(f"{name} must be a whole number from {least}, but got {shown(value)}.")
    return int(value)


def absent(value: object) -> bool:
    """Whether a value stands for "not seen": None, NaN, or what pandas has for them."""
    if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def shown(value: object) -> str:
    """A value for a message: its repr, cut where it is too long to read."""
    try:
        text = repr(value)
    except Exception:  # an int with more digits than Python prints, or an object of the user's
        return "a number of thousands of digits" if is_whole(value) else f"something of type {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."
