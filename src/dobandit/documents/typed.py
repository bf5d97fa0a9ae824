"""What people type, the same at a command and in a form: numbers, and names that go together."""

from __future__ import annotations

import csv
import math


def number(text: str) -> float:
    """A finite number as people write it; ValueError for anything else, such as the 1_000 of Python."""
    value = float(text)
    if not math.isfinite(value) or "_" in text:
        raise ValueError(text)
    return value


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
