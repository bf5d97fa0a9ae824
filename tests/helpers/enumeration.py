"""Models of tables by full enumeration: every world with its probability, and random models to try it on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from dobandit import CausalGraph, TableModel
from helpers.worlds import quietly


def chances(model: TableModel, do: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """(worlds, nodes) every pattern of all nodes, and its probability. A variable in `do` is 1 with that chance,
    whatever its causes: 0 and 1 set it, 0.5 flips a coin."""
    nodes = model.graph.nodes
    worlds = (np.arange(2 ** len(nodes))[:, None] >> np.arange(len(nodes))) & 1
    chance = np.ones(len(worlds))
    for i, name in enumerate(nodes):
        at = tuple(worlds[:, nodes.index(parent)] for parent in model.graph.parents(name))
        one = np.full(len(worlds), do[name]) if name in do else np.broadcast_to(model.tables[name][at], len(worlds))
        chance = chance * np.where(worlds[:, i] == 1, one, 1.0 - one)
    return worlds, chance


def mean(model: TableModel, do: Mapping[str, float]) -> float:
    """E[target | do(...)]."""
    worlds, chance = chances(model, do)
    return float(chance[worlds[:, model.graph.nodes.index(model.graph.target)] == 1].sum())


def fitted(model: TableModel, graph: CausalGraph, do: Mapping[str, float]) -> TableModel:
    """What a learner on `graph` finds out from enough rounds in which `do` is done: P(node = 1 | its parents)."""
    worlds, chance = chances(model, do)
    column = {name: worlds[:, i] for i, name in enumerate(model.graph.nodes)}
    tables = {}
    for name in graph.nodes:
        parents = graph.parents(name)
        code = sum((column[parent] << i for i, parent in enumerate(parents)), np.zeros(len(worlds), dtype=int))
        total = np.bincount(code, chance, 2 ** len(parents))
        ones = np.bincount(code, chance * column[name], 2 ** len(parents))
        share = np.divide(ones, total, out=np.full(len(total), 0.5), where=total > 0)
        tables[name] = {tuple(key >> i & 1 for i in range(len(parents))): p for key, p in enumerate(share)}
        if not parents:
            tables[name] = share[0]
    return TableModel(graph, tables)


def confounded_graph(rng: np.random.Generator, size: int = 7, hidden: int = 2, settable: float = 0.5) -> CausalGraph:
    """A random graph with hidden nodes, each with some effects; some of the observed nodes can be set."""
    while True:
        names = [f"X{i}" for i in range(size - hidden - 1)]
        order = [*rng.permutation([*names, *(f"U{i}" for i in range(hidden))]).tolist(), "Y"]
        edges = [(a, b) for a, b in combinations(order, 2) if rng.random() < 0.45]
        chosen = [name for name in names if rng.random() < settable]
        latent = [name for name in order if name.startswith("U")]
        graph = quietly(_tried, edges, chosen, latent, order)
        if graph is not None:
            return graph


def _tried(edges, controllable, latent, nodes) -> CausalGraph | None:
    try:
        return CausalGraph(edges, target="Y", latent=latent, controllable=controllable, nodes=nodes)
    except ValueError:  # nothing that can be set has a path to the target
        return None


def random_tables(rng: np.random.Generator, graph: CausalGraph, sharp: bool = False) -> TableModel:
    """Probabilities between 0.05 and 0.95; sharp: near 0 or 1 with causes, so that hidden causes matter much."""
    tables = {}
    for name in graph.nodes:
        shape = (2,) * len(graph.parents(name))
        table = rng.uniform(0.05, 0.95, shape)
        tables[name] = np.where(table < 0.5, 0.02, 0.98) if sharp and shape else table
    return TableModel(graph, tables)
