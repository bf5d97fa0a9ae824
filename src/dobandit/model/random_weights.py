"""Weights of random models: drawn so that every probability stays within [0, 1], whatever the parents are."""

from __future__ import annotations

import numpy as np

from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.model.links import Link

Rng = np.random.Generator


def small_weights(graph: CausalGraph, link: Link, rng: Rng) -> dict[str | Edge, float]:
    """Small biases and larger effects. Where the link's domain ends, they share what there is."""
    least, most = max(link.weight_range[0], 0.0), min(link.weight_range[1], 1.0)
    room = link.domain[1]
    weights: dict[str | Edge, float] = {}
    for name in graph.nodes:
        found = graph.parents(name)
        bias = float(rng.uniform(0.05, 0.15) if found else rng.uniform(0.1, 0.6))
        effects = rng.uniform(0.1, 1.0, len(found))
        if np.isfinite(room):
            bias *= room
            effects *= (room - bias) * rng.uniform(0.7, 1.0) / max(1.0, float(effects.sum()))
        weights[name] = min(max(bias, least), most)
        for parent, weight in zip(found, effects.tolist(), strict=True):
            weights[parent, name] = min(max(weight, least), most)
    return weights


def turned(graph: CausalGraph, weights: dict[str | Edge, float], link: Link, rng: Rng) -> dict[str | Edge, float]:
    """A coin makes each effect negative or not. Where the domain begins somewhere, the bias makes up for it.

    A bias that is raised by what the negative weights take away leaves the node's two ends where they were.
    """
    least, most = link.weight_range
    made: dict[str | Edge, float] = {}
    for name in graph.nodes:
        found = graph.parents(name)
        negative = {parent for parent, coin in zip(found, rng.random(len(found)), strict=True) if coin < 0.5}
        sizes = {parent: min(weights[parent, name], -least) for parent in found if parent in negative}
        lost, bias = sum(sizes.values()), weights[name]
        if np.isfinite(link.domain[0]):
            share = min(1.0, (most - bias) / lost) if lost else 1.0
            sizes = {parent: share * size for parent, size in sizes.items()}
            bias += share * lost
        made[name] = bias
        for parent in found:
            made[parent, name] = -sizes[parent] if parent in negative else weights[parent, name]
    return made
