"""Rounds as people say them, {"X3": 1} set and {"Y": 0} seen, and as the log keeps them: JSON arrays over the columns.

A row is a list with one entry a column: None where the variable was not set (or not seen), otherwise its value, in
which 0 and 1 are ints. Equal rows are encoded equally, so that a round that is told twice can be compared as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import InterventionError, ObservationError, StorageError, closest, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.weights import Do, fixed_values

Row = list[float | None]
_CHUNK = 20_000  # texts parsed together: long enough to be fast, short enough for the memory
_FEW = 4  # texts taken one by one, through the cache
_LETTERS = b"[]nul,0123456789.eE+-\n "  # with these, JSON can only say lists, null and numbers


class Columns:
    """The columns of an experiment: the variables of the learner's graph, in its order.

    latent  hidden variables of the user's graph, which are no columns: for better messages only

    >>> columns = Columns(CausalGraph([("ad", "visit"), ("visit", "buy")], target="buy"))
    >>> do = columns.do_row({"ad": 1})
    >>> row, partial = columns.observation_row({"buy": 0}, do)
    >>> columns.encode(row), partial
    ('[1,null,0]', True)
    """

    def __init__(self, graph: CausalGraph, continuous: bool = False, latent: Iterable[str] = ()) -> None:
        self.graph, self.continuous, self.latent = graph, continuous, tuple(latent)
        self.names = graph.nodes
        self._index = {name: i for i, name in enumerate(self.names)}
        self._target = self._index[graph.target]

    # -- from people ---------------------------------------------------------------------------------------------

    def do_row(self, do: Do | None) -> Row:
        """What was set, in columns. Any variable may have been set, not only the controllable ones, but the target."""
        row: Row = [None] * len(self.names)
        if type(do) is dict:  # the common case; whatever is not plain is looked at again, with care
            for name, value in do.items():
                i = self._index.get(name, self._target)
                if i == self._target or type(value) is not int or value & -2:
                    break
                row[i] = value
            else:
                return row
        return self._careful_do(do)

    def _careful_do(self, do: Do | None) -> Row:
        if isinstance(do, Iterable) and not isinstance(do, (str, Mapping)):
            do = list(do)  # an iterator can be read once
            if any(not isinstance(name, str) for name in do):
                raise InterventionError(f"do is a mapping or a list of names, but got {shown(do)}.")
        if isinstance(do, (Mapping, list)):
            if any(name in self.latent for name in do):
                hidden = next(name for name in do if name in self.latent)
                raise InterventionError(f"only observed variables can be set, but {hidden!r} is hidden. Leave it out.")
            if self.graph.target in do:
                raise InterventionError(
                    f"every variable can be set but the target, and do names {self.graph.target!r}. "
                    "Leave it out; what it became belongs to the observation."
                )
        fixed = fixed_values(self.graph, do, continuous=self.continuous)
        return [None if math.isnan(value) else _plain(value) for value in fixed[1:].tolist()]

    def observation_row(self, observation: Mapping[str, object], do_row: Row) -> tuple[Row, bool]:
        """What was seen, in columns, and whether it is partial: some variable was neither set nor seen.

        A variable that is absent, None or NaN was not seen. One that was set has the value it was set to, whether it
        is repeated in the observation or not.
        """
        if type(observation) is dict:
            index, row, new = self._index, do_row.copy(), False
            for name, value in observation.items():
                i = index.get(name, -1)
                if i < 0:
                    break
                if type(value) is int:
                    if value & -2:
                        break
                elif not (self.continuous and type(value) is float and 0.0 < value < 1.0):
                    break
                if row[i] is None:
                    row[i] = value
                    new = True
                elif row[i] != value:
                    break
            else:
                if new:
                    return row, None in row
        return self._careful_observation(observation, do_row)

    def _careful_observation(self, observation: Mapping[str, object], do_row: Row) -> tuple[Row, bool]:
        observation = getattr(observation, "to_dict", lambda: observation)()  # a row of a pandas frame
        if not isinstance(observation, Mapping):
            raise ObservationError(
                f"an observation maps names to values, but got {type(observation).__name__}. "
                f"Write {{{self.graph.target!r}: 1, ...}}."
            )
        row, new = do_row.copy(), False
        for name, given in observation.items():
            i = self._known(name)
            value = self._value(name, given)
            if value is None:
                continue
            if do_row[i] is not None and do_row[i] != value:
                raise ObservationError(
                    f"a variable that was set has the value it was set to, but {name!r} was set to {do_row[i]} and "
                    f"is said to have been {value}. Correct one of the two."
                )
            row[i] = value
            new = new or do_row[i] is None
        if not new:
            raise ObservationError(
                "an observation has the value of at least one variable that was not set, but this one has none. "
                "Leave the round out, or mark the trial as failed, if nothing was seen."
            )
        return row, None in row

    def _known(self, name: object) -> int:
        i = self._index.get(name, -1) if isinstance(name, str) else -1
        if i >= 0:
            return i
        if name in self.latent:
            raise ObservationError(f"hidden variables cannot be observed, but {name!r} is hidden. Leave it out.")
        hint = closest(name, self.names) or f" They are {listed(self.names)}."
        raise ObservationError(f"observations are of variables of the graph, but {shown(name)} is none.{hint}")

    def _value(self, name: str, given: object) -> float | None:
        if absent(given):
            return None
        ok = isinstance(given, (int, float, np.integer, np.floating, np.bool_))
        try:
            value = float(given) if ok else math.inf  # type: ignore[arg-type]
        except OverflowError:  # an int beyond the floats
            value = math.inf
        if not (0.0 <= value <= 1.0 if self.continuous else value in (0.0, 1.0)):
            allowed = "a number from 0 to 1" if self.continuous else "0 or 1"
            raise ObservationError(f"the value of {name!r} must be {allowed}, but got {shown(given)}.")
        return _plain(value)

    # -- to and from the log -------------------------------------------------------------------------------------

    def encode(self, row: Row) -> str:
        """The row as the log keeps it: "[null,1,0]"."""
        return _encoded(tuple(row))

    def values(self, text: str) -> Row:
        """The row that `encode` turned into this text."""
        return list(_decoded(text, len(self.names), self.continuous))

    def decode(self, text: str) -> dict[str, float]:
        """The values that are there, by name."""
        return {name: value for name, value in zip(self.names, self.values(text), strict=True) if value is not None}

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

    def array(self, text: str) -> NDArray[np.float64]:
        """One row as `arrays` has it. Not to be written: it may be handed out again."""
        return _array(text, len(self.names), self.continuous)

    def mask(self, text: str) -> NDArray[np.bool_]:
        """Which columns have a value; the constant counts as having none. Not to be written."""
        return _mask(text, len(self.names), self.continuous)

    def arrays(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(rows, columns + 1): the values, NaN for null. Slot 0 is the constant, 1."""
        width = len(self.names) + 1
        if len(texts) <= _FEW:
            return np.array([[1.0, *self.values(text)] for text in texts], dtype=np.float64).reshape(-1, width)
        found = np.ones((len(texts), width))
        for start in range(0, len(texts), _CHUNK):
            chunk = texts[start : start + _CHUNK]
            place = {text: i for i, text in enumerate(dict.fromkeys(chunk))}  # rounds of 0 and 1 repeat themselves
            found[start : start + len(chunk), 1:] = self._parsed(list(place))[[place[text] for text in chunk]]
        return found

    def _parsed(self, texts: list[str]) -> NDArray[np.float64]:
        """A joined text is parsed far faster than its parts; only where it is bad are these looked at, to say why."""
        rows = _matrix(texts, len(self.names))
        if rows is not None:
            ok = (rows >= 0.0) & (rows <= 1.0) if self.continuous else (rows == 0.0) | (rows == 1.0)
            if np.all(ok | np.isnan(rows)):
                return rows
        return np.array([self.values(text) for text in texts], dtype=np.float64)


def _matrix(texts: list[str], width: int) -> NDArray[np.float64] | None:
    """The texts as rows, or None where some text is not an array of `width` numbers and nulls."""
    try:
        joined = ",\n".join(texts)
        breaks = len(texts) - 1
        # Each text has its own brackets and commas, so that no damage in one can be made good by another.
        counts = [joined.count(part) for part in ("\n", "],\n[", "[", "]")]
        if joined.encode().translate(None, _LETTERS) or counts != [breaks, breaks, breaks + 1, breaks + 1]:
            return None
        if {text.count(",") for text in texts} != {width - 1}:
            return None
        flat = json.loads(joined.replace("],\n[", ",").replace("null", "NaN"))  # NumPy is slow with lists in lists
        return np.array(flat, dtype=np.float64).reshape(len(texts), width)
    except (ValueError, TypeError, OverflowError):
        return None


@lru_cache(maxsize=4096)
def _encoded(values: tuple[float | None, ...]) -> str:
    """Equal tuples share an entry, so 1, 1.0 and True must be written alike, and 0 and -0.0 too."""
    return "[" + ",".join("null" if v is None else repr(_plain(float(v))) for v in values) + "]"


@lru_cache(maxsize=4096)
def _decoded(text: str, width: int, continuous: bool) -> tuple[float | None, ...]:
    try:
        row = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        row = None
    if type(row) is list and len(row) == width:
        kinds = (int, float)
        if all(v is None or (type(v) in kinds and (v in (0, 1) or (continuous and 0 < v < 1))) for v in row):
            return tuple(v if v is None else _plain(v) for v in row)
    allowed = "numbers from 0 to 1" if continuous else "0, 1"
    raise StorageError(
        f"a row of the log is a JSON array of {width} values ({allowed} or null), but one is {shown(text)}. "
        "The log is damaged, or of another experiment: restore it from a backup."
    )


@lru_cache(maxsize=1024)
def _array(text: str, width: int, continuous: bool) -> NDArray[np.float64]:
    return np.array([1.0, *_decoded(text, width, continuous)], dtype=np.float64)


@lru_cache(maxsize=1024)
def _mask(text: str, width: int, continuous: bool) -> NDArray[np.bool_]:
    return np.array([False, *(value is not None for value in _decoded(text, width, continuous))])


def _plain(value: float) -> float:
    return int(value) if value in (0.0, 1.0) else value


def absent(value: object) -> bool:
    """Whether a value stands for "not seen": None, NaN, or what pandas has for them."""
    if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def shown(value: object) -> str:
    """A value for a message, cut where it is too long to read."""
    try:
        text = repr(value)
    except Exception:  # an int with more digits than Python prints, or an object of the user's
        return f"something of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
