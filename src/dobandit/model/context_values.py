"""What is known before a round, given by name: one check for every door that takes a context."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dobandit.checks import absent, as_float, shown
from dobandit.errors import ObservationError, closest, listed
from dobandit.graph.causal_graph import CausalGraph

_MOST_NAMED = 5  # in an error


def context_values(
    graph: CausalGraph, given: object, *, continuous: bool = False, whole: bool = True
) -> dict[str, float]:
    """The value of each context variable that was given; None and NaN say nothing.

    whole  whether every context variable of the graph must be given

    >>> graph = CausalGraph([("mobile", "buy"), ("ad", "buy")], target="buy", context=["mobile"])
    >>> context_values(graph, {"mobile": 1})
    {'mobile': 1.0}
    """
    names = {} if given is None else given
    if not isinstance(names, Mapping):
        raise ObservationError(f"a context maps names to values, but got {shown(given)}. Write {{'NAME': 1}}.")
    for name in names:
        if name not in graph.context:
            raise _foreign(graph, name)
    known = {name: _value(name, value, continuous) for name, value in names.items() if not absent(value)}
    missing = [name for name in graph.context if name not in known]
    if missing and whole:
        values = ", ".join(f"{name!r}: 1" for name in missing[:_MOST_NAMED])
        raise ObservationError(
            f"every variable of the context is given before a round, but {listed(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. Add context={{{values}}}."
        )
    return known


def _foreign(graph: CausalGraph, name: object) -> ObservationError:
    if not graph.context:
        return ObservationError(
            f"a context is for graphs with context variables, but this one has none, and {shown(name)} was given. "
            "Leave it out, or make it a context variable of the graph."
        )
    hint = closest(name, graph.context) or f" They are {listed(graph.context)}."
    return ObservationError(f"a context is of context variables, but {shown(name)} is none.{hint}")


def _value(name: str, given: object, continuous: bool) -> float:
    value = float(given) if isinstance(given, (bool, np.bool_)) else as_float(given)
    if not (0.0 <= value <= 1.0 if continuous else value in (0.0, 1.0)):
        allowed = "a number from 0 to 1" if continuous else "0 or 1"
        raise ObservationError(
            f"the value of the context variable {name!r} must be {allowed}, as it is in the round to come, but got "
            f"{shown(given)}. Rounds with other values are asked for by themselves."
        )
    return value
