"""Rows of the log as text, one by one or thousands at a time: "[null,1,0]" is a JSON array over the columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import shown
from dobandit.errors import StorageError
from dobandit.oracle.actions import Action, action_of, plain

Row = list[float | None]  # a value per column, None where there is none; 0 and 1 are ints
_CHUNK = 20_000  # texts parsed together: long enough to be fast, short enough for the memory
_WRITTEN: dict[float | None, str] = {None: "null", 0: "0", 1: "1"}
_compact = json.JSONEncoder(separators=(",", ":")).encode
_LETTERS = b"[]nul,0123456789.eE+- "  # with these, JSON can only say lists, null and numbers


class LoggedRows:
    """Rows over the columns `names`, to and from the texts that the log keeps."""

    def __init__(self, names: tuple[str, ...], continuous: bool) -> None:
        self.names, self.continuous = names, continuous
        self._index = {name: i for i, name in enumerate(names)}

    @property
    def count_key(self) -> str:
        """The key, or column, of how often a row was seen."""
        key = "count"
        while key in self._index:
            key = "trial." + key
        return key

    def encode(self, row: Row) -> str:
        """The row as the log keeps it: "[null,1,0]"."""
        return encoded(tuple(row))

    def values(self, text: str) -> Row:
        """The row that `encode` turned into this text."""
        return list(decoded(text, len(self.names), self.continuous))

    def decode(self, text: str) -> dict[str, float]:
        """The values that are there, by name."""
        return {name: value for name, value in zip(self.names, self.values(text), strict=True) if value is not None}

    def decode_batch(self, observation: str, counts: str | None) -> dict[str, float] | list[dict[str, float]]:
        """What was seen by name: one row, or a list of rows with their counts, as `tell` takes them."""
        if counts is None:
            return self.decode(observation)
        texts, times = split_batch(observation, counts)
        return [{**self.decode(text), self.count_key: n} for text, n in zip(texts, times, strict=True)]

    def listed(self, text: str) -> list[str]:
        """The variables in a list of names that was kept as JSON."""
        try:
            names = json.loads(text)
            if type(names) is list and all(type(name) is str and name in self._index for name in names):
                return names
        except (ValueError, TypeError, RecursionError):
            pass
        raise StorageError(
            f"the log lists variables as a JSON array of their names, but one list is {shown(text)}. "
            "The log is damaged, or of another experiment: restore it from a backup."
        )

    def action(self, text: str) -> Action:
        """What a row sets."""
        return action(text, len(self.names), self.continuous)

    def arrays(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(rows, columns + 1): the values, NaN for null. Slot 0 is the constant, 1."""
        found = np.ones((len(texts), len(self.names) + 1))
        for start in range(0, len(texts), _CHUNK):
            chunk = texts[start : start + _CHUNK]
            place = {text: i for i, text in enumerate(dict.fromkeys(chunk))}  # rounds of 0 and 1 repeat themselves
            found[start : start + len(chunk), 1:] = self._parsed(list(place))[[place[text] for text in chunk]]
        return found

    def masks(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """(rows, columns + 1): which columns have a value; the constant counts as having none."""
        known: NDArray[np.bool_] = ~np.isnan(self.arrays(texts))
        known[:, 0] = False
        return known

    def _parsed(self, texts: list[str]) -> NDArray[np.float64]:
        """All rows are checked at once; only where one is bad are they looked at one by one, to say why."""
        try:
            if not "".join(texts).encode().translate(None, _LETTERS):
                rows = np.array([json.loads(text) for text in texts], dtype=np.float64)
                ok = (rows >= 0.0) & (rows <= 1.0) if self.continuous else (rows == 0.0) | (rows == 1.0)
                if rows.shape == (len(texts), len(self.names)) and np.all(ok | np.isnan(rows)):
                    return rows
        except (ValueError, TypeError, OverflowError, RecursionError):
            pass
        return np.array([self.values(text) for text in texts], dtype=np.float64)


@lru_cache(maxsize=4096)
def encoded(values: tuple[float | None, ...]) -> str:
    """Equal tuples share an entry, so 1, 1.0 and True must be written alike, and 0 and -0.0 too."""
    return "[" + ",".join([_WRITTEN.get(v) or repr(float(v)) for v in values]) + "]"  # type: ignore[arg-type]


@lru_cache(maxsize=4096)
def decoded(text: str, width: int, continuous: bool) -> tuple[float | None, ...]:
    try:
        row = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        row = None
    if type(row) is list and len(row) == width:
        kinds = (int, float)
        if all(v is None or (type(v) in kinds and (v in (0, 1) or (continuous and 0 < v < 1))) for v in row):
            return tuple(v if v is None else plain(v) for v in row)
    allowed = "numbers from 0 to 1" if continuous else "0, 1"
    raise StorageError(
        f"a row of the log is a JSON array of {width} values ({allowed} or null), but one is {shown(text)}. "
        "The log is damaged, or of another experiment: restore it from a backup."
    )


@lru_cache(maxsize=1024)
def action(text: str, width: int, continuous: bool) -> Action:
    return action_of(np.array([1.0, *decoded(text, width, continuous)], dtype=np.float64))


def batch_text(rows: dict[str, int], counted: bool = False) -> tuple[str, str | None]:
    """The texts (observation, counts) of distinct rows with how often each was seen, in the order of the rows' texts.

    counted  False: a single round is its row, without counts
    """
    texts = sorted(rows)
    if not counted and len(texts) == 1 and rows[texts[0]] == 1:
        return texts[0], None
    return f"[{','.join(texts)}]", f"[{','.join(str(rows[text]) for text in texts)}]"


def split_batch(observation: str, counts: str | None) -> tuple[list[str], list[int]]:
    """The rows' texts, and how often each was seen. The rows themselves are looked at when they are decoded."""
    if counts is None:
        return [observation], [1]
    try:
        rows, times = json.loads(observation), json.loads(counts)
        lists = type(rows) is list and type(times) is list and all(type(row) is list for row in rows)
        if lists and len(rows) == len(times) and all(type(n) is int and n > 0 for n in times):
            return [_compact(row) for row in rows], times
    except (ValueError, TypeError, RecursionError):
        pass
    raise StorageError(
        f"a trial of many rounds has a list of rows and as many counts above 0, but one has {shown(counts)}. "
        "The log is damaged: restore it from a backup."
    )
