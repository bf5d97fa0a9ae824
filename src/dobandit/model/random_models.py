"""Random models, so that a study over many graphs is one call.

Nodes are numbered in topological order; the last one is the target Y, the others are named X2, X3, ... as in the paper,
where X1 is the constant. Every X has a path to Y, and is controllable.

    layered      layers of at most 2 x parents nodes, each fed by the one before; the last one feeds Y
    parallel     every X points to Y, as in the paper's G1..G4
    tree         an in-tree: every X has one effect, and all paths end in Y
    out-tree     one root; every other X has one cause, and the leaves point to Y
    erdos-renyi  every pair is an edge with the same probability
    scale-free   causes are chosen in proportion to the effects they have already: a few nodes influence many
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from dobandit.checks import whole_number
from dobandit.errors import ModelError, closest, listed
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.model.bglm import BinaryGLM, LinearModel, LinkLike
from dobandit.model.links import Link, identity, link_from_document

Rng = np.random.Generator
Causes = list[list[int]]  # of each node


def random_model(
    shape: str,
    nodes: int,
    *,
    seed: int,
    parents: int = 3,
    link: LinkLike = "identity",
    latent: int = 0,
    continuous: bool = False,
    noise: float | None = None,
    signs: str = "positive",
) -> BinaryGLM | LinearModel:
    """A random model with target "Y"; the same arguments give the same model.

    shape       one of SHAPES
    nodes       observed nodes, Y among them
    seed        of the random numbers
    parents     the most observed causes of a node (parallel: Y has all)
    link        one link for all nodes
    latent      hidden nodes, in addition: half of them confounders U -> A, U -> B of nodes neither of which causes the
                other, half of them on an edge (A -> U -> B); in linear models both can be projected away
    continuous  a LinearModel instead of a BinaryGLM
    noise       as in the models
    signs       "positive", or "mixed": each effect is turned round by the toss of a coin, and biases are raised where
                probabilities would leave [0, 1]; graph and sizes of the effects stay as they are

    >>> random_model("layered", 7, seed=0).graph.controllable
    ('X2', 'X3', 'X4', 'X5', 'X6', 'X7')
    """
    if shape not in _CAUSES:
        raise ModelError(f"shapes are {listed(SHAPES)}, but got {shape!r}.{closest(shape, SHAPES)}")
    for name, value, least in (("nodes", nodes, 2), ("parents", parents, 1), ("latent", latent, 0), ("seed", seed, 0)):
        whole_number(name, value, least, ModelError)
    if signs not in SIGNS:
        raise ModelError(f"signs are {listed(SIGNS)}, but got {signs!r}.{closest(str(signs), SIGNS)}")
    chosen = link_from_document(link)
    if signs == "mixed" and not chosen.weight_range[0] < 0:
        raise ModelError(
            f"mixed signs need a link with negative weights, but the {chosen.name} link has none. "
            "Use the identity, logistic or probit link."
        )
    if continuous and chosen is not identity:
        raise ModelError(f"a continuous model is linear, but got the {chosen.name} link. Use the identity link.")
    rng = np.random.default_rng([SHAPES.index(shape), nodes, parents, latent, seed])
    causes = _CAUSES[shape](int(nodes), int(parents), rng)
    names = [*(f"X{i}" for i in range(2, nodes + 1)), "Y"]
    edges = [(names[a], names[b]) for b, found in enumerate(causes) for a in sorted(found)]
    hidden, edges = _with_hidden(edges, _incomparable(causes, names) if latent else [], int(latent), rng)
    graph = CausalGraph(edges, "Y", latent=hidden, bias=[*names, *hidden])
    weights = _small_weights(graph, chosen, rng)
    if signs == "mixed":
        weights = _turned(graph, weights, chosen, rng)
    if continuous:
        return LinearModel(graph, weights, noise=0.5 if noise is None else noise)
    return BinaryGLM(graph, weights, links=chosen, noise=noise)


# -- shapes -----------------------------------------------------------------------------------------------------


def _layered(nodes: int, parents: int, rng: Rng) -> Causes:
    last = min(parents, nodes - 1)
    widest = parents * min(parents, 2)  # no more than the next layer has room for
    early = nodes - 1 - last
    layers = [len(part) for part in np.array_split(range(early), -(-early // widest))][::-1] if early else []
    causes: Causes = [[] for _ in range(nodes)]
    start = 0
    for width, following in pairwise([*layers, last, 1]):
        layer = (start + rng.permutation(width)).tolist()
        for child in range(following):  # dealt out like cards, so that everyone has an effect; then filled up
            dealt = layer[child::following][:parents]
            others = [v for v in layer if v not in dealt]
            more = rng.permutation(others)[: min(parents, width) - len(dealt)].tolist()
            causes[start + width + child] = dealt + more
        start += width
    return causes


def _parallel(nodes: int, parents: int, rng: Rng) -> Causes:
    return [[] for _ in range(nodes - 1)] + [list(range(nodes - 1))]


def _tree(nodes: int, parents: int, rng: Rng) -> Causes:
    """From Y backwards: each node chooses an effect among the later nodes that have room."""
    causes: Causes = [[] for _ in range(nodes)]
    room = [nodes - 1]
    for v in range(nodes - 2, -1, -1):
        at = int(rng.integers(len(room)))
        effect = room[at]
        causes[effect].append(v)
        if len(causes[effect]) == parents:
            room[at] = room[-1]
            room.pop()
        room.append(v)
    return causes


def _out_tree(nodes: int, parents: int, rng: Rng) -> Causes:
    """From the root: a new node lengthens a branch, or opens one while Y, which takes all leaves, has room."""
    causes: Causes = [[]]
    leaves, inner = [0], list[int]()
    for v in range(1, nodes - 1):
        may_branch = len(leaves) < parents
        at = int(rng.integers(len(leaves) + (len(inner) if may_branch else 0)))
        if at < len(leaves):
            causes.append([leaves[at]])
            inner.append(leaves[at])
            leaves[at] = v
        else:
            causes.append([inner[at - len(leaves)]])
            leaves.append(v)
    return [*causes, leaves]


def _erdos_renyi(nodes: int, parents: int, rng: Rng) -> Causes:
    """Each pair with probability parents / nodes, on top of one effect for each node, so that all reach Y."""
    causes = _tree(nodes, parents, rng)
    for v in range(1, nodes):
        others = [u for u in range(v) if u not in causes[v]]
        count = min(int(rng.binomial(len(others), min(1.0, parents / nodes))), parents - len(causes[v]))
        causes[v] += rng.permutation(others)[:count].tolist()
    return causes


def _scale_free(nodes: int, parents: int, rng: Rng) -> Causes:
    """Preferential attachment of causes, on top of one effect for each node, so that all reach Y."""
    causes = _tree(nodes, parents, rng)
    effects = np.ones(nodes)
    for v in range(1, nodes):
        attraction = effects[:v].copy()
        attraction[causes[v]] = 0.0
        count = min(parents - len(causes[v]), int(np.count_nonzero(attraction)))
        if count:
            found = rng.choice(v, count, replace=False, p=attraction / attraction.sum())
            effects[found] += 1.0
            causes[v] += found.tolist()
    return causes


_CAUSES: dict[str, Callable[[int, int, Rng], Causes]] = {
    "layered": _layered,
    "parallel": _parallel,
    "tree": _tree,
    "out-tree": _out_tree,
    "erdos-renyi": _erdos_renyi,
    "scale-free": _scale_free,
}
SHAPES = tuple(_CAUSES)
SIGNS = ("positive", "mixed")


# -- hidden nodes -----------------------------------------------------------------------------------


def _incomparable(causes: Causes, names: Sequence[str]) -> list[Edge]:
    """Pairs of which neither causes the other, directly or not."""
    above = [0] * len(causes)  # bit masks of ancestors
    for v, found in enumerate(causes):
        for u in found:
            above[v] |= above[u] | 1 << u
    return [(names[u], names[v]) for v in range(len(causes)) for u in range(v) if not above[v] >> u & 1]


def _with_hidden(edges: list[Edge], pairs: list[Edge], latent: int, rng: Rng) -> tuple[list[str], list[Edge]]:
    """(hidden names, edges with them). A hidden node has two incomparable effects, or only one: always admissible."""
    if latent > len(pairs) + len(edges):
        raise ModelError(
            f"this graph has room for {len(pairs) + len(edges)} hidden nodes (a pair of nodes without a path between "
            f"them, or an edge, for each), but latent is {latent}. Lower it, or take more nodes."
        )
    confounders = min(len(pairs), max(latent - latent // 2, latent - len(edges)))
    confounded = [pairs[i] for i in rng.permutation(len(pairs))[:confounders]]
    mediated = {edges[i] for i in rng.permutation(len(edges))[: latent - confounders]}
    hidden = [f"U{i}" for i in range(1, latent + 1)]
    names = iter(hidden)
    grown: list[Edge] = []
    for pair, name in zip(confounded, names, strict=False):
        grown += [(name, end) for end in pair]
    for cause, effect in edges:
        if (cause, effect) in mediated:
            name = next(names)
            grown += [(cause, name), (name, effect)]
        else:
            grown.append((cause, effect))
    return hidden, grown


# -- weights: every probability stays within [0, 1], whatever the parents are --------------------------------


def _small_weights(graph: CausalGraph, link: Link, rng: Rng) -> dict[str | Edge, float]:
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


def _turned(graph: CausalGraph, weights: dict[str | Edge, float], link: Link, rng: Rng) -> dict[str | Edge, float]:
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
