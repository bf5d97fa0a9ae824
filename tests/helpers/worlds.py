"""Truth for the tests, written as plainly as the definitions are, and random models to try it on.

Nothing here computes with the code under test: graphs and models are read by name, and everything else is loops over
dictionaries. `joint` visits every world; `plain_paths` lists every path.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from functools import partial

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from dobandit import BinaryGLM, CausalGraph, LinearModel
from dobandit.errors import DobanditWarning
from dobandit.model.links import custom, link_from_document
from helpers.plain_paths import plain_descendants, plainly_admissible

World = dict[str, int]
THOROUGH = int(os.environ.get("DOBANDIT_THOROUGH", "1"))  # `make thorough`: so many times the examples, kills and races
EXAMPLES = float(os.environ.get("DOBANDIT_EXAMPLES", "1"))  # `make quick`: this share of the random examples


def relaxed(max_examples=100, **others):
    """Settings of a search for counterexamples that is the same in every run."""
    return settings(
        max_examples=max(int(max_examples * THOROUGH * EXAMPLES), 1), derandomize=True, deadline=None, **others
    )


# -- a link of the tests' own; at module level, so that it can be pickled -------------------------------------


def arctan_value(x):
    return 0.5 + np.arctan(x) / math.pi


def arctan_slope(x):
    return 1.0 / (math.pi * (1.0 + np.square(x)))


def arctan_bend(x):
    return -2.0 * np.asarray(x) / (math.pi * np.square(1.0 + np.square(x)))


ARCTAN = custom(
    "arctan", arctan_value, arctan_slope, arctan_bend, bounds=(1 / math.pi, 9 / (8 * math.sqrt(3) * math.pi), 0.0)
)

SIGNED_ARCTAN = custom(
    "arctan",
    arctan_value,
    arctan_slope,
    arctan_bend,
    bounds=(1 / math.pi, 9 / (8 * math.sqrt(3) * math.pi), 0.0),
    weight_range=(-math.inf, math.inf),
)

PLAIN_LINKS = {
    "identity": lambda x: x,
    "logistic": lambda x, shift: 1.0 / (1.0 + math.exp(shift - x)),
    "probit": lambda x, shift: 0.5 * math.erfc((shift - x) / math.sqrt(2.0)),
    "exponential": lambda x: 1.0 - math.exp(-x),
    "rational": lambda x, a: 1.0 - 1.0 / (a * x + 1.0),
    "arctan": lambda x: 0.5 + math.atan(x) / math.pi,
}


# -- the truth by brute force ---------------------------------------------------------------------------------


def causes(weights: Mapping) -> dict[str, dict[str, float]]:
    """Weight of each parent, by node; the constant's weight stands under ''."""
    found: dict[str, dict[str, float]] = {}
    for key, weight in weights.items():
        parent, child = ("", key) if isinstance(key, str) else key
        found.setdefault(child, {})[parent] = weight
        if parent:
            found.setdefault(parent, {})
    return found


def some_order(parents: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Nodes with parents first."""
    order: list[str] = []
    while len(order) < len(parents):
        order += [v for v in parents if v not in order and all(p in order for p in parents[v] if p)]
    return order


def joint(model, do: Mapping[str, float] | None = None) -> list[tuple[World, float]]:
    """Every world that can happen under do(...), with its probability, from P(X=1|pa) = f(theta . pa)."""
    do = dict(do or {})
    parents = causes(model.weights)
    for name in model.graph:
        parents.setdefault(name, {})
    worlds: list[tuple[World, float]] = [({}, 1.0)]
    for name in some_order(parents):
        link = model.link(name)
        curve = partial(PLAIN_LINKS[link.name], **dict(link.parameters))
        grown = []
        for world, probability in worlds:
            x = sum(weight * (world[p] if p else 1) for p, weight in parents[name].items())
            p_one = do[name] if name in do else curve(x)
            for value, p in ((0, 1.0 - p_one), (1, p_one)):
                if p > 0.0:
                    grown.append(({**world, name: value}, probability * p))
        worlds = grown
    return worlds


def brute_force_means(model, do: Mapping[str, float] | None = None) -> dict[str, float]:
    """E[X | do(...)] of every node of a binary model."""
    worlds = joint(model, do)
    return {name: math.fsum(p for world, p in worlds if world[name] == 1) for name in model.graph}


def tabulated(worlds: list[tuple[World, float]], names: tuple[str, ...]) -> dict[tuple[int, ...], float]:
    """Joint distribution of `names`."""
    table: dict[tuple[int, ...], float] = {}
    for world, p in worlds:
        key = tuple(world[name] for name in names)
        table[key] = table.get(key, 0.0) + p
    return table


def conditionals(
    worlds: list[tuple[World, float]], node: str, given: tuple[str, ...]
) -> dict[tuple[int, ...], tuple[float, float]]:
    """For each pattern of `given` that can happen: (P(node = 1 | pattern), P(pattern))."""
    table = tabulated(worlds, (*given, node))
    patterns = {key[:-1] for key in table}
    answer = {}
    for pattern in patterns:
        zero, one = table.get((*pattern, 0), 0.0), table.get((*pattern, 1), 0.0)
        answer[pattern] = (one / (zero + one), zero + one)
    return answer


# -- random graphs and models: Hypothesis strategies ----------------------------------------------------------


def quietly(build, *args, **kwargs):
    """Random graphs have nodes that cannot matter, and the warning about them is not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DobanditWarning)
        return build(*args, **kwargs)


@st.composite
def dag_edges(draw, least: int = 2, most: int = 7) -> tuple[list[str], list[tuple[str, str]]]:
    """(nodes in a topological order, edges); the last node is a sink with a parent, whatever its name."""
    size = draw(st.integers(least, most))
    nodes = [f"X{i}" for i in draw(st.permutations(range(1, size + 1)))]
    pairs = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    quarters = draw(st.integers(1, 3))  # of the pairs are edges
    dice = draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    kept = [pair for pair, die in zip(pairs, dice, strict=True) if die < quarters]
    if not any(b == nodes[-1] for _, b in kept):
        kept.append((draw(st.sampled_from(nodes[:-1])), nodes[-1]))
    return nodes, draw(st.permutations(kept))


@st.composite
def graphs(draw, least: int = 2, most: int = 7) -> CausalGraph:
    """A random graph with a random choice of biases."""
    nodes, edges = draw(dag_edges(least, most))
    bias = draw(st.lists(st.sampled_from(nodes), unique=True))
    return quietly(CausalGraph, edges, target=nodes[-1], bias=bias, nodes=nodes)


def shares(draw, slots: list) -> dict:
    """Weights that sum to at most 1: often 0, and often to 1 exactly."""
    parts = [draw(st.integers(0, 5)) for _ in slots]
    whole = sum(parts) + draw(st.sampled_from([0, 0, 1, 7]))
    return {slot: part / whole if whole else 0.0 for slot, part in zip(slots, parts, strict=True)}


def slots_of(graph: CausalGraph, name: str) -> list:
    return [(p, name) for p in graph.parents(name)] + ([name] if name in graph.bias else [])


@st.composite
def blms(draw, most: int = 7) -> BinaryGLM:
    graph = draw(graphs(most=most))
    weights = {}
    for name in graph:
        weights |= shares(draw, slots_of(graph, name))
    return BinaryGLM(graph, weights)


some_links = st.one_of(
    st.sampled_from(["identity", "exponential", ARCTAN]),
    st.builds(lambda s: {"name": "logistic", "shift": s}, st.sampled_from([-1.0, 0.0, 2.5])),
    st.builds(lambda s: {"name": "probit", "shift": s}, st.sampled_from([-0.5, 0.0, 1.5])),
    st.builds(lambda a: {"name": "rational", "a": a}, st.sampled_from([0.1, 1.0, 20.0])),
)


@st.composite
def bglms(draw, least: int = 2, most: int = 7) -> BinaryGLM:
    """A link of its own for each node."""
    graph = draw(graphs(least, most))
    weights, links = {}, {}
    for name in graph:
        links[name] = draw(some_links)
        if links[name] == "identity":
            weights |= shares(draw, slots_of(graph, name))
        else:
            weights |= {slot: draw(st.sampled_from([0.0, 0.125, 0.7, 1.0, 3.0])) for slot in slots_of(graph, name)}
    return BinaryGLM(graph, weights, links=links)


def turned(draw, weights: dict) -> dict:
    """Shares of one node with some edges made negative, and the bias raised by as much: its two ends stay."""
    biases = [slot for slot in weights if isinstance(slot, str)]
    flipped = [slot for slot in weights if biases and not isinstance(slot, str) and draw(st.booleans())]
    lost = sum(weights[slot] for slot in flipped)
    return {**weights, **{slot: -weights[slot] for slot in flipped}, **{slot: weights[slot] + lost for slot in biases}}


@st.composite
def signed_blms(draw, most: int = 7) -> BinaryGLM:
    """Linear models with effects of both signs, often with a probability of exactly 0 or 1."""
    graph = draw(graphs(most=most))
    weights = {}
    for name in graph:
        weights |= turned(draw, shares(draw, slots_of(graph, name)))
    return BinaryGLM(graph, weights)


signed_links = st.sampled_from(
    [
        "identity",
        "logistic",
        "probit",
        SIGNED_ARCTAN,
        {"name": "logistic", "shift": -1.5},
        {"name": "probit", "shift": 0.5},
    ]
)


@st.composite
def signed_bglms(draw, least: int = 2, most: int = 7) -> BinaryGLM:
    """A link of its own for each node, and weights of both signs wherever the link takes them."""
    graph = draw(graphs(least, most))
    weights, links = {}, {}
    for name in graph:
        links[name] = draw(st.one_of(signed_links, some_links))
        slots = slots_of(graph, name)
        if links[name] == "identity":
            weights |= turned(draw, shares(draw, slots))
        else:
            low = link_from_document(links[name]).weight_range[0]
            sizes = [0.0, 0.125, 0.7, 1.0, 3.0] + ([-0.25, -1.0, -2.5] if low < 0 else [])
            weights |= {slot: draw(st.sampled_from(sizes)) for slot in slots}
    return BinaryGLM(graph, weights, links=links)


@st.composite
def with_do(draw, models) -> tuple[BinaryGLM, dict[str, int]]:
    """A model and a do(...) of 0 and 1 on any observed nodes, the target among them."""
    model = draw(models)
    names = draw(st.lists(st.sampled_from(model.graph.observed), unique=True))
    return model, {name: draw(st.integers(0, 1)) for name in names}


def random_bglm(rng: np.random.Generator, size: int) -> BinaryGLM:
    """A model in which every world can happen, of a size that Hypothesis would rarely fill."""
    nodes = [f"X{i}" for i in rng.permutation(size)]
    density = rng.uniform(0.1, 0.6)
    edges = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :] if rng.random() < density]
    edges += [] if any(b == nodes[-1] for _, b in edges) else [(nodes[0], nodes[-1])]
    kinds = ["exponential", "rational", ARCTAN, {"name": "logistic", "shift": 1.0}, {"name": "probit", "shift": 1.0}]
    links = {name: kinds[rng.integers(len(kinds))] for name in nodes}
    weights = {key: float(rng.uniform(0.05, 1.0)) for key in [*nodes, *edges]}
    return BinaryGLM(quietly(CausalGraph, edges, target=nodes[-1], nodes=nodes), weights, links=links)


# -- random graphs and models with hidden nodes: seeded generators --------------------------------------------


def hidden_structure(rng: np.random.Generator, size: int = 7) -> dict:
    """Edges, target, latent and biases of a legal random graph, as keywords of CausalGraph."""
    hidden = [f"U{i}" for i in range(int(rng.integers(1, min(4, size - 1))))]
    observed = [f"X{i}" for i in range(size - len(hidden) - 1)]
    nodes = [*rng.permutation([*hidden, *observed]).tolist(), "Y"]
    density = rng.uniform(0.2, 0.7)
    edges = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :] if rng.random() < density]
    if not any("Y" in plain_descendants(edges, x) for x in observed):
        edges.append((str(rng.choice(observed)), "Y"))
    caused = {b for _, b in edges}
    bias = [name for name in nodes if rng.random() < (0.4 if name in caused else 0.9)]
    return {"edges": edges, "target": "Y", "latent": hidden, "bias": bias, "nodes": nodes}


def admissible_structure(rng: np.random.Generator, size: int = 7) -> dict:
    """As `hidden_structure`, until the paper's condition holds and some hidden path matters."""
    while True:
        drawn = hidden_structure(rng, size)
        through = any(b in drawn["latent"] for _, b in drawn["edges"])
        if through and plainly_admissible(drawn["edges"], drawn["latent"]):
            return drawn


def random_shares(rng: np.random.Generator, structure: dict) -> dict:
    """Weights by slot, summing to at most 1 at each node (sometimes to 1, sometimes with zeros)."""
    weights = {}
    for name in structure["nodes"]:
        slots = [e for e in structure["edges"] if e[1] == name] + [name] * (name in structure["bias"])
        if slots:
            parts = rng.dirichlet(np.ones(len(slots))) * rng.choice([1.0, rng.uniform(0.3, 1.0)])
            parts[rng.random(len(slots)) < 0.1] = 0.0
            weights |= dict(zip(slots, parts.tolist(), strict=True))
    return weights


def random_turns(rng: np.random.Generator, weights: dict) -> dict:
    """Shares with some edges made negative, where the node has a bias that can make up for it."""
    made = dict(weights)
    for slot, weight in weights.items():
        if not isinstance(slot, str) and slot[1] in weights and rng.random() < 0.5:
            made[slot] = -weight
            made[slot[1]] += weight
    return made


def hidden_blm(
    rng: np.random.Generator, size: int = 7, model=BinaryGLM, signed: bool = False
) -> BinaryGLM | LinearModel:
    """A random admissible linear model with hidden nodes."""
    structure = admissible_structure(rng, size)
    weights = random_shares(rng, structure)
    return model(quietly(CausalGraph, **structure), random_turns(rng, weights) if signed else weights)


def random_do(rng: np.random.Generator, graph: CausalGraph) -> dict[str, int]:
    """0 or 1 on a random set of observed nodes other than the target."""
    return {n: int(rng.integers(0, 2)) for n in graph.observed if n != graph.target and rng.random() < 0.35}


def random_blm(rng, most=9):
    """A random linear model with zero weights, rows that add up to 1, and nodes without a path to Y."""
    names = [f"X{i}" for i in range(int(rng.integers(2, most)))] + ["Y"]
    weights = {}
    for i, name in enumerate(names):
        parents = [names[j] for j in range(i) if rng.random() < 0.5] or ([names[0]] if name == "Y" else [])
        raw = rng.random(len(parents) + 1) * (rng.random(len(parents) + 1) < 0.8)
        if rng.random() < 0.3:
            raw = np.round(raw * 2) / 2  # ties
        raw = raw / (raw.sum() or 1.0) * (1.0 if rng.random() < 0.2 else rng.random())
        weights[name] = float(raw[0])
        weights |= {(parent, name): float(w) for parent, w in zip(parents, raw[1:], strict=True)}
    return quietly(BinaryGLM.blm, weights, "Y")
