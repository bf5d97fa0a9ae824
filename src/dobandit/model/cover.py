"""Max k-cover as a causal model: the paper's proof that the best set is NP-hard to find (Appendix G).

Each set is a variable Z_j, each element a variable X_i that becomes 1 when a set that holds it is set; Y is the share
of elements covered. Without intervention all is 0. With alpha large enough, the best K of the Z are a best cover.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dobandit.checks import is_whole
from dobandit.errors import ModelError
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.model.bglm import BinaryGLM
from dobandit.model.links import identity, rational
from dobandit.model.weights import number

_RULE = "a cover instance is a list of sets of whole numbers from 0"


def cover_model(sets: Sequence[Iterable[int]], *, alpha: float | None = None, linear: bool = False) -> BinaryGLM:
    """The model of a cover instance: sets of element numbers from 0.

    alpha   steepness of f(x) = 1 - 1 / (alpha x + 1) at the elements; the proof needs more than the number of elements
            (default: 100 times that)
    linear  a linear relative instead: element i is 1 with probability 1/m for each of the m sets that hold it

    >>> from dobandit import solve
    >>> solve(cover_model([{0, 1}, {1, 2}, {3}]), budget=2).set
    ('Z0', 'Z1')
    """
    members = _members(sets)
    elements = sorted({element for group in members for element in group})
    if not elements:
        raise ModelError(f"{_RULE}, at least one of them not empty, but all are.")
    steep = 100.0 * len(elements) if alpha is None else number(alpha, "alpha")
    if steep <= 0:
        raise ModelError(f"alpha must be above 0, but got {alpha!r}.")
    holders = {e: [j for j, group in enumerate(members) if e in group] for e in elements}
    weights: dict[str | Edge, float] = {}
    for e in elements:
        weights |= {(f"Z{j}", f"X{e}"): 1.0 / len(holders[e]) if linear else 1.0 for j in holders[e]}
        weights[f"X{e}", "Y"] = 1.0 / len(elements)
    settable = [f"Z{j}" for j, group in enumerate(members) if group]
    graph = CausalGraph([key for key in weights if not isinstance(key, str)], "Y", controllable=settable, bias=[])
    return BinaryGLM(graph, weights, links={f"X{e}": identity if linear else rational(steep) for e in elements})


def _members(sets: object) -> list[list[int]]:
    if isinstance(sets, str) or not isinstance(sets, Iterable):
        raise ModelError(f"{_RULE}, but got {sets!r}. Write [{{0, 1}}, {{1, 2}}].")
    members = []
    for group in sets:
        if isinstance(group, str) or not isinstance(group, Iterable):
            raise ModelError(f"{_RULE}, but got {group!r} for a set. Write [{{0, 1}}, {{1, 2}}].")
        given = list(group)
        odd = [e for e in given if not is_whole(e) or e < 0]
        if odd:
            raise ModelError(f"{_RULE}, but {odd[0]!r} is in one. Number the elements 0, 1, 2, ...")
        members.append(sorted({int(e) for e in given}))
    return members
