"""Weights, noise, interventions and contexts given by name, checked once; and weights that are refused.

Weights are keyed by edge, ("X2", "Y"): 0.1, and by node for the constant's edge, "X2": 0.3 (the paper's
theta_{X1,X2}: how likely the node is to be 1 by itself).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import absent, as_float, listable, shown
from dobandit.errors import InterventionError, ModelError, ObservationError, closest, listed
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.model.links import Link, identity
from dobandit.texts import keyword

if TYPE_CHECKING:
    from dobandit.model.bglm import WeightedModel

Weights = Mapping["str | Edge", float]
Do = Mapping[str, float] | Iterable[str]


def number(value: object, what: str) -> float:
    """`value` as a finite float, or an error that says `what` it should have been."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ModelError(f"{what} is a number, but got {shown(value)}.")
    real = as_float(value)
    if not math.isfinite(real):
        raise ModelError(f"{what} is a finite number, but got {real}.")
    return real


def edge_name(key: str | Edge) -> str:
    return f"the bias of {key!r}" if isinstance(key, str) else f"the weight of {key[0]!r} -> {key[1]!r}"


def keys_in_order(graph: CausalGraph) -> list[str | Edge]:
    """The key of each slot of `graph.arrays.parent`, in order."""
    arrays = graph.arrays
    child = graph.slot_child
    return [
        (graph.nodes[p - 1], graph.nodes[c - 1]) if p else graph.nodes[c - 1]
        for p, c in zip(arrays.parent.tolist(), child.tolist(), strict=True)
    ]


def weight_array(graph: CausalGraph, weights: Weights | NDArray[np.float64]) -> NDArray[np.float64]:
    """One weight per slot of `graph.arrays.parent`; every edge and bias of the graph has exactly one."""
    if isinstance(weights, np.ndarray):
        if weights.dtype.kind not in "iuf":
            raise ModelError(f"an array of weights holds numbers, but got entries of type {weights.dtype}.")
        if weights.shape != graph.arrays.parent.shape or not np.all(np.isfinite(weights)):
            raise ModelError(
                f"an array of weights holds one finite number for each of the {len(graph.arrays.parent)} edges and "
                f"biases, but got shape {weights.shape}"
                + (" with NaN or infinite entries." if weights.shape == graph.arrays.parent.shape else ".")
            )
        return weights.astype(np.float64) + 0.0  # -0.0 becomes 0.0, so that equal models hash equally
    if not isinstance(weights, Mapping):
        raise ModelError(f"weights map edges and nodes to numbers, or are an array, but got {weights!r}.")
    given: dict[object, float] = {}
    for key, value in weights.items():
        if not isinstance(key, str) and not (isinstance(key, Sequence) and len(key) == 2):
            raise ModelError(
                f"weights belong to edges and biases of the graph, but {key!r} is none of them. "
                "Write (cause, effect) for an edge and the node's name for its bias."
            )
        normal = key if isinstance(key, str) else tuple(key)
        if normal in given:
            raise ModelError(f"each weight is given once, but {edge_name(key)} is given twice. Keep one.")
        if (normal if isinstance(normal, str) else normal[1]) not in graph.effects:
            given[normal] = number(value, edge_name(key))
    keys = keys_in_order(graph)
    missing = [key for key in keys if key not in given]
    if missing:
        raise ModelError(
            f"every edge and bias needs a weight, but {edge_name(missing[0])} has none"
            + (f" (and {len(missing) - 1} more)." if len(missing) > 1 else ".")
            + " Add it, or leave the edge or bias out of the graph."
        )
    if len(given) > len(keys):
        extra = next(iter(given.keys() - set(keys)))
        names = extra if isinstance(extra, tuple) else (extra,)
        strange = [name for name in names if name not in graph]
        hint = closest(strange[0], graph.nodes) if strange and isinstance(strange[0], str) else ""
        raise ModelError(
            f"weights belong to edges and biases of the graph, but {extra!r} is none of them.{hint} "
            "Write (cause, effect) for an edge and the node's name for its bias."
        )
    return np.array([given[key] for key in keys], dtype=np.float64) + 0.0


def node_array(graph: CausalGraph, given: float | Mapping[str, float] | None, what: str) -> NDArray[np.float64]:
    """One number in [0, 1] a node (slot 0, the constant, is 0): the same for all, or by name with 0 elsewhere."""
    values = np.zeros(len(graph) + 1)
    if given is None:
        return values
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(graph.nodes, given)
    for name, value in by_name.items():
        if name in graph.effects:
            continue
        if name not in graph:
            raise ModelError(f"{what} is given by node, but {name!r} is none.{closest(str(name), graph.nodes)}")
        value = number(value, f"the {what} of {name!r}")
        if not 0 <= value <= 1:
            raise ModelError(f"the {what} of {name!r} must be between 0 and 1, but got {value}.", node=name)
        values[graph.index(name)] = value
    return values


def fixed_values(graph: CausalGraph, do: Do | None, *, continuous: bool = False) -> NDArray[np.float64]:
    """do(...) as an array over ids: the value a node is set to, NaN where it is free.

    `do` maps names to values, or lists names that are set to 1.
    """
    fixed = np.full(len(graph) + 1, np.nan)
    fixed[0] = 1.0
    if do is None:
        return fixed
    if isinstance(do, str):
        raise InterventionError(f"do is a mapping or a list of names, but got the string {do!r}. Write [{do!r}].")
    names = listable(do)
    if names is None:
        raise InterventionError(f"do is a mapping or a list of names, but got {shown(do)}.")
    for name in names:
        if name in graph.effects:
            raise InterventionError(
                f"setting {name!r} changes nothing, because it is an effect of the target {graph.target!r}, which is "
                "left aside. Leave it out."
            )
        if name not in graph:
            raise InterventionError(
                f"do sets variables of the graph, but {shown(name)} is none.{closest(name, graph.observed)} They are "
                f"{listed(graph.observed)}."
            )
        if name in graph.latent:
            raise InterventionError(f"only observed variables can be set, but {name!r} is latent.")
        given = do[name] if isinstance(do, Mapping) else 1.0
        try:
            value = number(float(given) if isinstance(given, (bool, np.bool_)) else given, f"do({name})")
        except ModelError as error:
            raise InterventionError(str(error)) from None
        if not _possible(value, continuous):
            raise InterventionError(f"do({name}) must be {_range(continuous)}, but got {value:g}.")
        fixed[graph.index(name)] = value
    return fixed


def context_values(
    graph: CausalGraph, given: object, *, continuous: bool = False, whole: bool = True
) -> dict[str, float]:
    """The value of each context variable that was given; None and NaN say nothing.

    whole  whether every context variable of the graph must be given

    >>> graph = CausalGraph([("mobile", "buy"), ("ad", "buy")], target="buy", context=["mobile"])
    >>> context_values(graph, {"mobile": 1})
    {'mobile': 1.0}
    """
    by_name = {} if given is None else given
    if not isinstance(by_name, Mapping):
        raise ObservationError(f"a context maps names to values, but got {shown(given)}. Write {{'NAME': 1}}.")
    values = {}
    for name, said in by_name.items():
        if not graph.context:
            raise ObservationError(
                f"a context is for graphs with context variables, but this one has none, and {shown(name)} was given. "
                "Leave it out, or make it a context variable of the graph."
            )
        if name not in graph.context:
            hint = closest(name, graph.context) or f" They are {listed(graph.context)}."
            raise ObservationError(f"a context is of context variables, but {shown(name)} is none.{hint}")
        if absent(said):
            continue
        values[name] = float(said) if isinstance(said, (bool, np.bool_)) else as_float(said)
        if not _possible(values[name], continuous):
            raise ObservationError(
                f"the value of the context variable {name!r} must be {_range(continuous)}, as it is in the round to "
                f"come, but got {shown(said)}. Rounds with other values are asked for by themselves."
            )
    missing = [name for name in graph.context if name not in values]
    if missing and whole:
        example = dict.fromkeys(missing[:5], 1)
        raise ObservationError(
            f"every variable of the context is given before a round, but {listed(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing. Add {keyword('context', example)}."
        )
    return values


def _possible(value: float, continuous: bool) -> bool:
    return 0.0 <= value <= 1.0 if continuous else value in (0.0, 1.0)


def _range(continuous: bool) -> str:
    return "a number from 0 to 1" if continuous else "0 or 1"


# -- the least and the most likely pattern of each node's parents ---------------------------------------------------
#
# x = theta . parents is least with every parent of negative weight at 1 and every other at 0, and most the other way
# round; the constant is always 1. f does not decrease, so a node's probabilities lie between f at these two ends, for
# values between 0 and 1 too.

# Weights that are decimal fractions add up to 1 only to rounding.
TOLERANCE = 1e-9


class Reach(NamedTuple):
    """The least and the largest weighted sum of each node over all patterns of its parents, by id."""

    low: NDArray[np.float64]  # (n + 1,)
    high: NDArray[np.float64]  # (n + 1,)


def refuse_bad_weights(model: WeightedModel) -> None:
    """Weights in their link's range, and probabilities in [0, 1] for every pattern of the parents."""
    child = model.graph.slot_child
    distinct = {id(link): link for link in model.links}
    kind = np.array([-1] + [id(link) for link in model.links])
    for link in distinct.values():
        _refuse_out_of_range(model, link, np.flatnonzero(kind[child] == id(link)))
        nodes = np.flatnonzero(kind == id(link))
        for highest, ends in enumerate(model.reach):
            _refuse_improbable(model, link, nodes, ends[nodes], bool(highest))


def _refuse_out_of_range(model: WeightedModel, link: Link, slots: NDArray[np.intp]) -> None:
    low, high = link.weight_range
    least = low - TOLERANCE if low < 0 else low  # a weight that should be 0 is easily written as 0
    bad = slots[(model.theta[slots] < least) | (model.theta[slots] > high + TOLERANCE)]
    if len(bad):
        rule = f"between {low:g} and {high:g}" if math.isfinite(high) else f"at least {low:g}"
        key = keys_in_order(model.graph)[bad[0]]
        parent, node = (None, key) if isinstance(key, str) else key
        message = f"{edge_name(key)} must be {rule} ({link.name} link), but got {model.theta[bad[0]]:g}."
        if model.theta[bad[0]] < 0 <= low:
            message += " Effects that make a node less likely need the identity, logistic or probit link."
        raise ModelError(message, node=node, parent=parent)


def _refuse_improbable(
    model: WeightedModel, link: Link, nodes: NDArray[np.intp], x: NDArray[np.float64], highest: bool
) -> None:
    """Refuse the first of `nodes` whose weighted sum x, or f(x), is where it cannot be."""
    low, high = link.domain
    outside = np.flatnonzero(~((x >= low - TOLERANCE) & (x <= high + TOLERANCE)))
    if link is not identity and len(outside):
        name = model.graph.nodes[nodes[outside[0]] - 1]
        raise ModelError(
            f"node {name!r}: with {_pattern(model, name, highest)} the weighted sum is {x[outside[0]]:g}, outside the "
            f"{link.name} link's domain [{low:g}, {high:g}]. Change its weights.",
            node=name,
        )
    p = np.asarray(link.value(x if link is identity else np.clip(x, low, high)), dtype=float)
    bad = np.flatnonzero(~((p >= -TOLERANCE) & (p <= 1 + TOLERANCE)))
    if len(bad):
        name = model.graph.nodes[nodes[bad[0]] - 1]
        way_out = "Raise its bias, or weaken its negative weights." if p[bad[0]] < 0 else "Change its weights."
        raise ModelError(
            f"node {name!r}: with {_pattern(model, name, highest)} its probability would be {p[bad[0]]:g}, but it must "
            f"stay within [0, 1]. {way_out}",
            node=name,
        )


def _pattern(model: WeightedModel, name: str, highest: bool) -> str:
    """The parents' values at which the node is most (or least) likely, in words."""
    weights = model.parent_weights(name)[1]
    ones = [parent for parent, weight in weights.items() if (weight > 0 if highest else weight < 0)]
    opposed = any(weight < 0 if highest else weight > 0 for weight in weights.values())
    if not ones:
        return "all parents at 0"
    return f"{listed(ones)} at 1 and all other parents at 0" if opposed else "all parents at 1"
