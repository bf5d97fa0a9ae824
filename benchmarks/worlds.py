"""Worlds to compare policies on, by kind and seed: what the paper assumes, and what it does not.

    from worlds import KINDS, make
    world, graph, budget = make("missing-edge", seed=3)
    dobandit.simulate(world, policies, 5_000, 50, budget, graph=graph)

Every world has 6 to 8 observed variables, 3 to 6 of them controllable, a budget of 1 to 3, and a best action that is at
least GAP better than the second best, so that regrets mean something. `graph` is what the learner is told; it is the
world's own unless the kind says otherwise. The same kind and seed give the same world.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dobandit import BinaryGLM, CausalGraph, TableModel, solve
from dobandit.model.causal_model import CausalModel
from dobandit.model.links import logistic

GAP = 0.03
_ATTEMPTS = 5_000


class Case(NamedTuple):
    """A world, the learner's graph, and how many variables may be set."""

    world: CausalModel
    graph: CausalGraph
    budget: int


@dataclass
class Shape:
    """Roots X1, X2, ..., mediators M1, M2, ... and the target Y, with parents by node, causes first."""

    parents: dict[str, list[str]]
    controllable: list[str]

    @property
    def roots(self) -> list[str]:
        return [name for name in self.parents if name[0] == "X"]

    @property
    def mediators(self) -> list[str]:
        return [name for name in self.parents if name[0] == "M"]

    def graph(self, *, without: tuple[str, str] | None = None, latent: tuple[str, ...] = ()) -> CausalGraph:
        edges = [(p, v) for v, parents in self.parents.items() for p in parents if (p, v) != without]
        started = [v for v in self.parents if v not in latent]
        return CausalGraph(edges, "Y", latent, self.controllable, nodes=started)


def make(kind: str, seed: int) -> Case:
    """The world of a kind (see KINDS) with this seed."""
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng([zlib.crc32(kind.encode()), seed, attempt])
        case = KINDS[kind](rng)
        if case is not None and gap(case) >= GAP:
            return case
    raise RuntimeError(f"no world of kind {kind!r} with seed {seed} has a gap of {GAP}.")


def gap(case: Case) -> float:
    """How much better the best action is than the second best."""
    best = solve(case.world, budget=case.budget, oracle="exhaustive", top=2).top
    return best[0][1] - best[1][1]


def shape(rng: np.random.Generator) -> Shape:
    """3 to 5 roots that can be set, 1 to 3 mediators (one of them can be set now and then), and the target."""
    mediators = int(rng.integers(1, 4))
    roots = int(rng.integers(max(3, 5 - mediators), min(5, 7 - mediators) + 1))
    x, m = [f"X{i + 1}" for i in range(roots)], [f"M{i + 1}" for i in range(mediators)]
    parents: dict[str, list[str]] = {name: [] for name in (*x, *m, "Y")}
    for i, name in enumerate(m):
        causes = [*x, *m[:i]]
        parents[name] = sorted(rng.choice(causes, size=int(rng.integers(2, 4)), replace=False).tolist())
    direct = rng.choice(x, size=int(rng.integers(1, 3)), replace=False).tolist()
    idle = [name for name in x if name not in direct and not any(name in parents[v] for v in m)]
    parents[m[0]] = sorted({*parents[m[0]], *idle})
    parents["Y"] = sorted({*direct, *m})
    return Shape(parents, x + (m[:1] if rng.random() < 0.3 else []))


def budget_for(rng: np.random.Generator, shape: Shape) -> int:
    return int(rng.integers(1, min(3, len(shape.controllable) - 1) + 1))


def sums(rng: np.random.Generator, shape: Shape, *, negative: float = 0.0) -> dict:
    """Weights of a linear model whose probabilities stay within [0.02, 0.98]; a share of them is negative."""
    weights: dict = {}
    for name, parents in shape.parents.items():
        if not parents:
            weights[name] = float(rng.uniform(0.2, 0.8) if negative else rng.uniform(0.1, 0.5))
            continue
        sizes = rng.uniform(0.2, 1.0, size=len(parents))
        sizes *= rng.uniform(0.6, 0.9) / sizes.sum()
        sizes *= np.where(rng.random(len(parents)) < negative, -1.0, 1.0)
        down, up = -sizes[sizes < 0].sum(), sizes[sizes > 0].sum()
        weights[name] = float(rng.uniform(down + 0.02, 0.98 - up))
        weights |= {(parent, name): float(size) for parent, size in zip(parents, sizes, strict=True)}
    return weights


def tables_of_sums(rng: np.random.Generator, shape: Shape, graph: CausalGraph) -> dict[str, np.ndarray]:
    """The tables of a linear model, to be changed at some nodes."""
    return dict(TableModel.of(BinaryGLM(graph, sums(rng, shape))).tables)


# -- the kinds --------------------------------------------------------------------------------------------------------


def fits_linear(rng: np.random.Generator) -> Case:
    """The paper's BLM: identity links, no effect does harm."""
    of = shape(rng)
    return Case(BinaryGLM(of.graph(), sums(rng, of)), of.graph(), budget_for(rng, of))


def fits_logistic(rng: np.random.Generator) -> Case:
    """Logistic links with weights of both signs; the learner is told the links by default."""
    of = shape(rng)
    weights: dict = {}
    for name, parents in of.parents.items():
        sizes = rng.uniform(0.7, 2.5, size=len(parents)) * np.where(rng.random(len(parents)) < 0.35, -1.0, 1.0)
        weights[name] = float(rng.normal(0.0, 0.7) - 0.5 * sizes.sum())
        weights |= {(parent, name): float(size) for parent, size in zip(parents, sizes, strict=True)}
    return Case(BinaryGLM(of.graph(), weights, links=logistic()), of.graph(), budget_for(rng, of))


def _interacting(rng: np.random.Generator, axes: int) -> np.ndarray:
    """Two of the parents do good only together, and some harm alone; the others add a little."""
    table = np.full((2,) * axes, rng.uniform(0.15, 0.3))
    one, other, *rest = rng.permutation(axes).tolist()
    for axis in rest:
        table = table + rng.uniform(0.0, 0.1) * _is_one(axes, axis)
    first, second = _is_one(axes, one), _is_one(axes, other)
    alone = first * (1.0 - second) + second * (1.0 - first)
    return np.clip(table - rng.uniform(0.0, 0.12) * alone + rng.uniform(0.35, 0.55) * first * second, 0.02, 0.98)


def _is_one(axes: int, axis: int) -> np.ndarray:
    return np.arange(2.0).reshape([2 if i == axis else 1 for i in range(axes)])


def interaction_at_target(rng: np.random.Generator) -> Case:
    """Sums everywhere but at the target, where two causes work only together."""
    of = shape(rng)
    graph = of.graph()
    tables = tables_of_sums(rng, of, graph)
    tables["Y"] = _interacting(rng, len(graph.parents("Y")))
    return Case(TableModel(graph, tables), graph, budget_for(rng, of))


def interaction_at_mediator(rng: np.random.Generator) -> Case:
    """Sums everywhere but at the first mediator, where two causes work only together; it matters for the target."""
    of = shape(rng)
    graph = of.graph()
    tables = tables_of_sums(rng, of, graph)
    tables["M1"] = _interacting(rng, len(graph.parents("M1")))
    axis = graph.parents("Y").index("M1")
    strong = _is_one(tables["Y"].ndim, axis)
    tables["Y"] = np.clip(0.45 * tables["Y"] + 0.5 * strong, 0.02, 0.98)
    return Case(TableModel(graph, tables), graph, budget_for(rng, of))


def rare_patterns(rng: np.random.Generator) -> Case:
    """Roots that are hardly ever 1 by themselves, and a target that pays for a pattern seen only when they are set."""
    of = shape(rng)
    graph = of.graph()
    tables = tables_of_sums(rng, of, graph)
    for name in of.roots:
        tables[name] = np.array(rng.uniform(0.01, 0.06))
    for name in of.mediators:
        tables[name] = np.clip(tables[name] - tables[name].min() + 0.04, 0.02, 0.98)
    tables["Y"] = _interacting(rng, len(graph.parents("Y")))
    return Case(TableModel(graph, tables), graph, budget_for(rng, of))


def mixed_signs_linear(rng: np.random.Generator) -> Case | None:
    """Identity links with weights of both signs."""
    of = shape(rng)
    world = BinaryGLM(of.graph(), sums(rng, of, negative=0.35))
    return None if world.nonnegative else Case(world, of.graph(), budget_for(rng, of))


def missing_edge(rng: np.random.Generator) -> Case | None:
    """A linear world whose learner does not know of an edge from a controllable variable to the target or a mediator,
    with a weight of at least 0.25, though the best action needs that variable."""
    of = shape(rng)
    return _without_an_edge(rng, of, sums(rng, of))


def rare_missing_effect(rng: np.random.Generator) -> Case | None:
    """A missing edge as above, from a root that is hardly ever 1 by itself: its effect shows only where it is set,
    which the learner's graph gives little reason to do."""
    of = shape(rng)
    weights = sums(rng, of)
    rare = of.roots[int(rng.integers(len(of.roots)))]
    return _without_an_edge(rng, of, weights | {rare: float(rng.uniform(0.01, 0.05))}, rare)


def _without_an_edge(rng: np.random.Generator, of: Shape, weights: dict, cause: str | None = None) -> Case | None:
    """The world, and a graph without one of the heavy edges, of the given cause or any, whose cause has other effects
    too; None where there is none, or the best action does not set its cause."""
    world, graph, budget = BinaryGLM(of.graph(), weights), of.graph(), budget_for(rng, of)
    heavy = [
        (one, effect)
        for one, effect in graph.edges
        if one in (of.controllable if cause is None else [cause])
        and world.weights[one, effect] >= 0.25
        and len(graph.children(one)) > 1
    ]
    if not heavy:
        return None
    edge = heavy[int(rng.integers(len(heavy)))]
    if edge[0] not in solve(world, budget=budget).do:
        return None
    return Case(world, of.graph(without=edge), budget)


def hidden_confounder(rng: np.random.Generator) -> Case | None:
    """A hidden common cause U of a mediator and the target that the learner's graph leaves out: the mediator seems to
    matter much more than it does, and so do the roots that move it."""
    of = shape(rng)
    graph = of.graph()
    weights = sums(rng, of)
    into, strength = "M1", float(rng.uniform(0.45, 0.6))
    shrunk = {key for key in weights if (key if isinstance(key, str) else key[1]) in (into, "Y")}
    weights = {key: (0.45 if key in shrunk else 1.0) * weight for key, weight in weights.items()}
    weights[into, "Y"] = min(weights[into, "Y"], float(rng.uniform(0.0, 0.06)))
    weights |= {"U": 0.5, ("U", into): strength, ("U", "Y"): strength}
    into_node = {v: [w for key, w in weights.items() if v in (key, key[-1])] for v in (into, "Y")}
    if any(sum(shares) > 1.0 for shares in into_node.values()):
        return None  # no probability
    edges = [*graph.edges, ("U", into), ("U", "Y")]
    world = CausalGraph(edges, "Y", ["U"], of.controllable, bias=[*graph.nodes, "U"])
    return Case(BinaryGLM(world, weights), graph, budget_for(rng, of))


def random_tables(rng: np.random.Generator) -> Case:
    """Every probability drawn by itself: no sums, no signs."""
    of = shape(rng)
    graph = of.graph()
    tables = {name: rng.beta(0.8, 0.8, size=(2,) * len(graph.parents(name))) for name in graph.nodes}
    return Case(
        TableModel(graph, {name: np.clip(t, 0.02, 0.98) for name, t in tables.items()}), graph, budget_for(rng, of)
    )


KINDS: dict[str, Callable[[np.random.Generator], Case | None]] = {
    "fits-linear": fits_linear,
    "fits-logistic": fits_logistic,
    "interaction-at-target": interaction_at_target,
    "interaction-at-mediator": interaction_at_mediator,
    "rare-patterns": rare_patterns,
    "mixed-signs-linear": mixed_signs_linear,
    "missing-edge": missing_edge,
    "rare-missing-effect": rare_missing_effect,
    "hidden-confounder": hidden_confounder,
    "random-tables": random_tables,
}


if __name__ == "__main__":
    for kind in sys.argv[1:] or KINDS:
        for seed in range(3):
            case = make(kind, seed)
            best = solve(case.world, budget=case.budget)
            print(f"{kind:24} {seed}  K={case.budget}  {best.value:.3f} by {best.do}, gap {gap(case):.3f}")
