"""The columns of an experiment's log: from {"X3": 1} set and {"Y": 0} seen to rows with one entry per column.

An entry is None where the variable was not set (or not seen), otherwise its value; 0 and 1 are ints. The log keeps a
row as a JSON array, "[null,1,0]". Equal rows have equal texts, so that a round that is told twice is compared as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import absent, as_float, listable, shown
from dobandit.errors import InterventionError, ObservationError, StorageError, closest, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.weights import Do, context_values, fixed_values
from dobandit.oracle.actions import Action, action_of, plain

if TYPE_CHECKING:
    from dobandit.policy.problem import Problem

Row = list[float | None]  # a value per column, None where there is none; 0 and 1 are ints
_MOST_SHOWN = 4  # of the values that are refused
_WRITTEN: dict[float | None, str] = {None: "null", 0: "0", 1: "1"}
_compact = json.JSONEncoder(separators=(",", ":")).encode


class Columns:
    """The columns of an experiment: the variables of the learner's graph, in its order.

    context  the variables that are known before a round: they are seen, never set

    latent  hidden variables of the user's graph, which are no columns: for better messages only
    aside   columns that are kept and teach nothing: nobody misses their values

    >>> columns = Columns(CausalGraph([("ad", "visit"), ("visit", "buy")], target="buy"))
    >>> do = columns.do_row({"ad": 1})
    >>> columns.encode(columns.observation_row({"buy": 0}, do))
    '[1,null,0]'
    """

    def __init__(
        self, graph: CausalGraph, continuous: bool = False, latent: Iterable[str] = (), aside: Iterable[str] = ()
    ) -> None:
        self.names, self.continuous = graph.nodes, continuous
        self._index = {name: i for i, name in enumerate(graph.nodes)}
        self._aside = {self._index[name] for name in aside}
        self.graph, self.latent = graph, tuple(latent)
        self.context = graph.context
        never_set = {self._index[name] for name in (graph.target, *self.context)}
        # Without any cause, the constant included, a variable that nobody sets is 0.
        self._idle = [
            i
            for i, name in enumerate(self.names)
            if not graph.parents(name) and not graph.has_bias(name) and i not in never_set
        ]
        self._parents = [[self._index[parent] for parent in graph.parents(name)] for name in self.names]

    # -- from people ---------------------------------------------------------------------------------------------

    def do_row(self, do: Do | None) -> Row:
        """What was set, in columns. Any variable may have been set, not only the controllable ones, but the target."""
        if isinstance(do, Iterable) and not isinstance(do, (str, Mapping)):
            names = listable(do)  # an iterator can be read once
            if names is None or any(not isinstance(name, str) for name in names):
                raise InterventionError(f"do is a mapping or a list of names, but got {shown(do)}.")
            do = names
        if isinstance(do, (Mapping, list)):
            for hidden in (name for name in do if name in self.latent):
                raise InterventionError(f"only observed variables can be set, but {hidden!r} is hidden. Leave it out.")
            if self.graph.target in do:
                raise InterventionError(
                    f"every variable can be set but the target, and do names {self.graph.target!r}. "
                    "Leave it out; what it became belongs to the observation."
                )
            for given in (name for name in do if name in self.context):
                raise InterventionError(
                    f"a variable of the context is seen, not set, but do names {given!r}. Move it to the observation."
                )
        fixed = fixed_values(self.graph, do, continuous=self.continuous)
        return [None if math.isnan(value) else plain(value) for value in fixed[1:].tolist()]

    def context_row(self, context: Mapping[str, object] | None, whole: bool = True) -> Row | None:
        """What is known before a round, in columns; None where the graph has no context.

        whole  whether every variable of the context must be given
        """
        row: Row = [None] * len(self.names)
        known = context_values(self.graph, context, continuous=self.continuous, whole=whole)
        for name, value in known.items():
            row[self._index[name]] = plain(value)
        return row if self.context else None

    def observation_row(self, observation: Mapping[str, object], do_row: Row, known: Row | None = None) -> Row:
        """What was seen, in columns.

        A variable that is absent, None or NaN was not seen. One that was set has the value it was set to, and one of
        the context (`known`) the value it was known to have, whether it is repeated in the observation or not. A
        variable without any cause that is neither set nor seen was 0; any other value of it is refused.
        """
        base = do_row if known is None else [a if b is None else b for a, b in zip(do_row, known, strict=True)]
        row = self._observed(observation, base, do_row)
        for i in self._idle:
            if row[i] is None:
                row[i] = 0
            elif row[i] and do_row[i] is None:
                raise ObservationError(
                    f"by the graph {self.names[i]!r} can only be other than 0 where it is set, having neither a cause "
                    f"nor a bias, but it is said to have been {row[i]} in a round that did not set it. If it was set, "
                    f"say so: record the round with it in do, or import it with a column 'do:{self.names[i]}'. If it "
                    "can happen by itself, begin an experiment on a graph that gives it a bias."
                )
        return row

    def missing(self, row: Row) -> list[str]:
        """The variables whose values would have taught more."""
        return [self.names[i] for i, value in enumerate(row) if value is None and i not in self._aside]

    def untaught(self, row: Row, do_row: Row) -> list[str]:
        """The variables that a round says nothing about for want of a value: their own, or that of a cause."""
        if None not in row:
            return []
        return [
            name
            for i, name in enumerate(self.names)
            if do_row[i] is None
            and i not in self._aside
            and (row[i] is None or any(row[parent] is None for parent in self._parents[i]))
        ]

    def _observed(self, observation: Mapping[str, object], base: Row, do_row: Row) -> Row:
        if type(observation) is not dict:
            observation = getattr(observation, "to_dict", lambda: observation)()  # a row of a pandas frame
        if not isinstance(observation, Mapping):
            raise ObservationError(
                f"an observation maps names to values, but got {type(observation).__name__}. "
                f"Write {{{self.graph.target!r}: 1, ...}}."
            )
        row, new = base.copy(), False
        for name, given in observation.items():
            if name in self.graph.effects:
                continue  # what the target causes teaches nothing
            i = self._known(name)
            value = self._value(given)
            if value is None:
                continue
            if value != value:
                refused = self.refused(observation)
                raise ObservationError(" ".join(self.on_refused(name, [refused[name]]) for name in refused))
            if do_row[i] is not None and do_row[i] != value:
                raise ObservationError(
                    f"a variable that was set has the value it was set to, but {name!r} was set to {do_row[i]} and "
                    f"is said to have been {value}. Correct one of the two."
                )
            if base[i] is not None and base[i] != value:
                raise ObservationError(
                    f"a variable of the context has the value it had when the trial was asked, but {name!r} was "
                    f"{base[i]} then and is said to have been {value}. Correct it, or record the round by itself."
                )
            row[i] = value
            new = new or base[i] is None
        if not new:
            raise ObservationError(
                "an observation has the value of at least one variable that was not set, but this one has none. "
                "Leave the round out, or mark the trial as failed, if nothing was seen."
            )
        return row

    def _known(self, name: object) -> int:
        i = self._index.get(name, -1) if isinstance(name, str) else -1
        if i >= 0:
            return i
        if name in self.latent:
            raise ObservationError(f"hidden variables cannot be observed, but {name!r} is hidden. Leave it out.")
        hint = closest(name, self.names) or f" They are {listed(self.names)}."
        raise ObservationError(f"observations are of variables of the graph, but {shown(name)} is none.{hint}")

    def refused(self, values: Mapping[str, object]) -> dict[str, object]:
        """Those values that no variable can have, by the variables."""
        ours = {name: given for name, given in values.items() if name in self._index}
        return {name: given for name, given in ours.items() if math.isnan(self._value(given) or 0.0)}

    def _value(self, given: Any) -> float | None:
        """None where it was not seen, NaN where no variable can have it."""
        if type(given) is int and given in (0, 1):
            return given  # the common case, fast
        if absent(given):
            return None
        number = isinstance(given, (int, float, np.integer, np.floating, np.bool_))
        try:
            value = float(given) if number else math.nan
        except OverflowError:  # an int beyond the floats
            value = math.inf
        allowed = 0.0 <= value <= 1.0 if self.continuous else value in (0.0, 1.0)
        return plain(value) if allowed else math.nan

    def on_refused(self, column: str, values: Sequence[object]) -> str:
        """What to do with a column, or a variable, that has such values."""
        allowed = "a number from 0 to 1" if self.continuous else "0 or 1"
        several = ", ".join(map(_as_typed, values[:_MOST_SHOWN])) + (", ..." if len(values) > _MOST_SHOWN else "")
        return f"the value of {column!r} must be {allowed}, but got {several}.{self._way_out(column, values)}"

    def _way_out(self, column: str, values: Sequence[object]) -> str:
        if any(isinstance(value, str) for value in values):
            return (
                " If these are categories, make a column of 0 and 1 for each of them; in a table, yes and no, and true "
                "and false, are 1 and 0."
            )
        numbers = [as_float(value) for value in values if math.isfinite(as_float(value)) and as_float(value) > 0.0]
        way = ""
        if any(number > 1.0 for number in numbers):
            way += " If it is an amount, " + (
                "divide it by its largest value." if self.continuous else "cut it at a number: 1 above it, and 0 below."
            )
        of_rounds = column not in self.context and not column.startswith("do:")
        if of_rounds and any(number.is_integer() or number < 1.0 for number in numbers):
            way += f" {self._no_totals(max(numbers))}"
        return way

    def _no_totals(self, value: float) -> str:
        """Why sums and shares over rounds are not enough, and what to give instead."""
        what, target = "total" if value > 1.0 else "share", self.graph.target
        cause = next((name for name in self.graph.parents(target) if name not in self.context), target)
        return (
            f"If it is a {what} over several rounds: a {what} does not say which effect went with which cause, and "
            "that is what is learned from. Give a row per round, or each distinct row with how often it was seen, such "
            f"as {cause} 1, {target} 0, {self.count_key} 105."
        )

    @property
    def to_see(self) -> list[str]:
        """The variables that a tell has news of, unless they are set."""
        return [name for i, name in enumerate(self.names) if i not in self._idle and name not in self.context]

    def holds(self, row: Mapping[str, object]) -> bool:
        """Whether all keys are variables, and no value is a text."""
        return row.keys() <= self._index.keys() and not any(isinstance(value, str) for value in row.values())

    # -- to and from the texts of the log ------------------------------------------------------------------------

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
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}  # rounds of 0 and 1 repeat themselves
        rows = np.ones((len(place), len(self.names) + 1))
        rows[:, 1:] = np.array([self.values(text) for text in place], dtype=np.float64).reshape(-1, len(self.names))
        return rows[[place[text] for text in texts]]

    def masks(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """(rows, columns + 1): which columns have a value; the constant counts as having none."""
        known: NDArray[np.bool_] = ~np.isnan(self.arrays(texts))
        known[:, 0] = False
        return known


def columns_of(problem: Problem) -> Columns:
    """The columns of an experiment's log."""
    latent = set() if problem.whole is None else {*problem.whole.latent} - {*problem.hidden}
    return Columns(problem.graph, problem.continuous, latent, problem.hidden)


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
        numbers = [value for value in row if value is not None]
        if all((type(v) is int and v in (0, 1)) or (continuous and type(v) is float and 0 <= v <= 1) for v in numbers):
            return tuple(row)
    allowed = "numbers from 0 to 1" if continuous else "0, 1"
    raise StorageError(
        f"a row of the log is a JSON array of {width} values ({allowed} or null), but one is {shown(text)}. "
        "The log is damaged, or of another experiment: restore it from a backup."
    )


@lru_cache(maxsize=1024)
def action(text: str, width: int, continuous: bool) -> Action:
    return action_of(np.array([1.0, *decoded(text, width, continuous)], dtype=np.float64))


def batch_text(rows: Mapping[str, int], counted: bool = False) -> tuple[str, str | None]:
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


def _as_typed(value: object) -> str:
    """A value for a message; a whole number without the .0 that it has as a float."""
    return f"{value:.0f}" if type(value) is float and value.is_integer() and abs(value) < 1e15 else shown(value)
