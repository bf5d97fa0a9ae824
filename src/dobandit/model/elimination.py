"""Exact marginals of a Bayesian network of binary nodes by variable elimination in a clique tree.

A factor is (variables, table): table has one axis of length 2 per variable. Eliminating variables in min-fill order
makes one clique a variable; a pass towards the root and one back (with division by the message sent, 0/0 = 0)
leave in every clique the exact joint distribution of its variables.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Entries = NDArray[np.float64]
_NEVER = 1 << 62
Factor = tuple[tuple[int, ...], Entries]


def elimination_cliques(scopes: Sequence[tuple[int, ...]], widest: int) -> list[tuple[int, ...]] | None:
    """Cliques in min-fill elimination order, each led by the variable it eliminates; None if one exceeds `widest`."""
    neighbours: dict[int, set[int]] = {v: set() for scope in scopes for v in scope}
    for scope in scopes:
        if len(scope) > widest:
            return None
        for v in scope:
            neighbours[v].update(scope)
    for v, near in neighbours.items():
        near.discard(v)

    def fill(v: int) -> int:
        if len(neighbours[v]) >= widest:
            return _NEVER  # cannot be eliminated yet, and counting would be quadratic
        return sum(b not in neighbours[a] for a, b in combinations(neighbours[v], 2))

    current = {v: (fill(v), len(near), v) for v, near in neighbours.items()}
    queue = list(current.values())
    heapq.heapify(queue)
    cliques: list[tuple[int, ...]] = []
    while queue:
        entry = heapq.heappop(queue)
        v = entry[2]
        if current.get(v) != entry:
            continue  # outdated
        near = neighbours.pop(v)
        del current[v]
        if len(near) >= widest:
            return None
        cliques.append((v, *sorted(near)))
        touched = set(near)
        for a in near:
            neighbours[a] |= near
            neighbours[a] -= {a, v}
        if entry[0]:  # new edges change the fill of everything around them
            touched = touched.union(*(neighbours[a] for a in near))
        for a in touched:
            current[a] = (fill(a), len(neighbours[a]), a)
            heapq.heappush(queue, current[a])
    return cliques


def marginals(factors: Sequence[Factor], cliques: Sequence[tuple[int, ...]]) -> dict[int, float]:
    """P(v = 1) of every variable, for factors whose product is a distribution."""
    rank = {clique[0]: i for i, clique in enumerate(cliques)}
    beliefs = [np.ones((2,) * len(clique)) for clique in cliques]
    for variables, table in factors:
        home = min(rank[v] for v in variables)
        beliefs[home] = beliefs[home] * _aligned(table, variables, cliques[home])
    above = [min((rank[v] for v in clique[1:]), default=-1) for clique in cliques]
    sent: list[Entries] = []
    for i, clique in enumerate(cliques):
        message = beliefs[i].sum(axis=0)
        sent.append(message)
        if above[i] >= 0:
            beliefs[above[i]] *= _aligned(message, clique[1:], cliques[above[i]])
    for i in range(len(cliques) - 1, -1, -1):
        if above[i] >= 0:
            joint = _summed(beliefs[above[i]], cliques[above[i]], cliques[i][1:])
            beliefs[i] *= np.divide(joint, sent[i], out=np.zeros_like(joint), where=sent[i] > 0)
    return {clique[0]: float(beliefs[i][1].sum() / beliefs[i].sum()) for i, clique in enumerate(cliques)}


def _aligned(table: Entries, variables: Sequence[int], onto: Sequence[int]) -> Entries:
    """`table` with its axes in the order of `onto`, length 1 where it does not depend on the variable."""
    place = {v: i for i, v in enumerate(variables)}
    kept = [v for v in onto if v in place]
    return table.transpose([place[v] for v in kept]).reshape([2 if v in place else 1 for v in onto])


def _summed(table: Entries, variables: Sequence[int], onto: Sequence[int]) -> Entries:
    """The marginal of `table` over `onto` (a subset of its variables), axes in that order."""
    wanted = set(onto)
    out = table.sum(axis=tuple(i for i, v in enumerate(variables) if v not in wanted))
    return _aligned(out, [v for v in variables if v in wanted], onto)


def total_entries(cliques: Sequence[tuple[int, ...]]) -> int:
    """Table entries that `marginals` will hold."""
    return sum(1 << len(clique) for clique in cliques)


def parents_and_self(table: Entries, parents: Sequence[int], v: int) -> Factor:
    """The factor P(v | parents) from the table of P(v = 1 | parents)."""
    return (*parents, v), np.stack([1.0 - table, table], axis=-1)
