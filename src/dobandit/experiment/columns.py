"""The columns of an experiment's log: from {"X3": 1} set and {"Y": 0} seen to rows with one entry per column.

An entry is None where the variable was not set (or not seen), otherwise its value; 0 and 1 are ints. Equal rows have
equal texts, so that a round that is told twice is compared as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dobandit.checks import absent, listable, shown
from dobandit.errors import InterventionError, ObservationError, closest, listed
from dobandit.experiment.row_encoding import LoggedRows, Row
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.context import context_values
from dobandit.model.weights import Do, fixed_values
from dobandit.oracle.actions import plain

if TYPE_CHECKING:
    from dobandit.experiment.definition import Definition


class Columns(LoggedRows):
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
        super().__init__(graph.nodes, continuous)
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
            i = self._known(name)
            value = self._value(name, given)
            if value is None:
                continue
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

    def _value(self, name: str, given: Any) -> float | None:
        kind = type(given)
        if (kind is int and given in (0, 1)) or (kind is float and self.continuous and 0.0 < given < 1.0):
            return plain(given)  # the common case, fast
        if absent(given):
            return None
        ok = isinstance(given, (int, float, np.integer, np.floating, np.bool_))
        try:
            value = float(given) if ok else math.inf
        except OverflowError:  # an int beyond the floats
            value = math.inf
        if not (0.0 <= value <= 1.0 if self.continuous else value in (0.0, 1.0)):
            allowed = "a number from 0 to 1" if self.continuous else "0 or 1"
            total = f" {self._no_totals(value)}" if 0.0 < value < math.inf and name not in self.context else ""
            raise ObservationError(f"the value of {name!r} must be {allowed}, but got {shown(given)}.{total}")
        return plain(value)

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


def columns_of(definition: Definition) -> Columns:
    """The columns of an experiment's log."""
    problem = definition.problem
    return Columns(problem.graph, problem.continuous, definition.graph.latent, problem.hidden)
