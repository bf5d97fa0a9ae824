"""Widths of intervals with a proof, links assumed and right against links learned, on random worlds.

    python benchmarks/bench_promises.py

Worlds have 6 nodes, the target with `causes` parents; the action sets the first of them. Medians over 5 worlds.
"""

from __future__ import annotations

import numpy as np

from dobandit import BinaryGLM, CausalGraph, CausalUCB
from dobandit.model.links import identity, logistic
from dobandit.oracle.actions import Action
from dobandit.policy.anytime_intervals import anytime_intervals
from dobandit.policy.engine import Rounds, no_context
from dobandit.policy.problem import problem_of

GRAPHS = {
    2: [("a", "m"), ("b", "m"), ("c", "n"), ("d", "n"), ("m", "y"), ("n", "y")],
    3: [("a", "m"), ("b", "m"), ("c", "m"), ("m", "y"), ("c", "y"), ("d", "y")],
    4: [("a", "m"), ("m", "y"), ("b", "y"), ("c", "y"), ("d", "y"), ("a", "b")],
}


def world(graph: CausalGraph, name: str, rng: np.random.Generator) -> BinaryGLM:
    theta: dict[object, float] = {}
    for node in graph.nodes:
        parents = graph.parents(node)
        signs = rng.choice([-1.0, 1.0], len(parents))
        if name == "linear":
            weights = signs * 0.8 * rng.dirichlet(np.ones(len(parents) + 1))[:-1]
            theta[node] = 0.1 - float(weights[weights < 0].sum()) if parents else 0.5
        else:
            weights = signs * rng.uniform(0.5, 1.5, len(parents))
            theta[node] = -0.5 * float(weights.sum())
        theta |= {(parent, node): float(weight) for parent, weight in zip(parents, weights, strict=True)}
    return BinaryGLM(graph, theta, identity if name == "linear" else logistic())


def width(model: BinaryGLM, links: object, values: np.ndarray, as_counts: bool) -> float:
    graph = model.graph
    engine = CausalUCB().engine(problem_of(graph, 1, links=links, effects="any"))
    counts = np.ones(len(values), dtype=np.int64)
    if as_counts:
        values, counts = np.unique(values, axis=0, return_counts=True)
    engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), counts))
    action = Action((graph.index("a"),), (1.0,))
    found = anytime_intervals(engine.problem, engine.state)
    low, high = found.interval(engine.state, action, no_context(len(graph)), 0.05)
    return high - low


def main() -> None:
    print("causes  link      rows    told        learned  assumed  worlds wider")
    for causes, edges in GRAPHS.items():
        graph = CausalGraph(edges, target="y")
        for name in ("linear", "logistic"):
            link = identity if name == "linear" else logistic()
            for rows in (500, 3000, 30000):
                for as_counts in (False, True):
                    pairs = []
                    for seed in range(5):
                        rng = np.random.default_rng([seed, rows])
                        model = world(graph, name, rng)
                        drawn = model.sample((), rows, rng)
                        values = np.column_stack([np.ones(rows), *(drawn[node] for node in graph.nodes)])
                        pairs.append([width(model, links, values, as_counts) for links in ("auto", link)])
                    learned, assumed = np.median(pairs, axis=0)
                    wider = sum(one[1] > one[0] for one in pairs)
                    how = "as counts" if as_counts else "one by one"
                    print(f"{causes:<8d}{name:10s}{rows:<8,d}{how:12s}{learned:.4f}   {assumed:.4f}   {wider} of 5")


if __name__ == "__main__":
    main()
