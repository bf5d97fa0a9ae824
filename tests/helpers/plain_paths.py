"""Paths of a graph, listed one by one, as plainly as the definitions are: truth for the tests of hidden variables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise


def hidden_paths(edges, latent, start: str) -> Iterator[tuple[str, ...]]:
    """Every path from `start` to an observed node with only hidden nodes inside."""
    stack: list[tuple[str, ...]] = [(start,)]
    while stack:
        path = stack.pop()
        for a, b in edges:
            if a == path[-1]:
                if b in latent:
                    stack.append((*path, b))
                else:
                    yield (*path, b)


def plain_descendants(edges, node: str) -> set[str]:
    found: set[str] = set()
    stack = [node]
    while stack:
        v = stack.pop()
        for a, b in edges:
            if a == v and b not in found:
                found.add(b)
                stack.append(b)
    return found


def plainly_admissible(edges, latent) -> bool:
    """No hidden node has hidden-only paths to some X_i and to a descendant X_j of it (paper, Section 4.1)."""
    for hidden in latent:
        ends = {path[-1] for path in hidden_paths(edges, latent, hidden)}
        if any(ends & plain_descendants(edges, end) for end in ends):
            return False
    return True


def plain_path_sums(weights: Mapping, latent) -> dict[tuple[str, str], float]:
    """Sum over hidden paths of the product of weights, by (source, sink); the constant's name is ''."""
    edges = [("", key) if isinstance(key, str) else key for key in weights]
    sums: dict[tuple[str, str], float] = {}
    for start in {a for a, _ in edges} - set(latent):
        for path in hidden_paths(edges, latent, start):
            product = math.prod(weights[b if a == "" else (a, b)] for a, b in pairwise(path))
            sums[start, path[-1]] = sums.get((start, path[-1]), 0.0) + product
    return sums
