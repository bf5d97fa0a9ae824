"""Regret on problems that others published, with their figures beside ours.

    python benchmarks/bench_external.py                     (about a minute)
    python benchmarks/bench_external.py iv --runs 300 --seed 5
    python benchmarks/bench_external.py --all-sets

Structural causal bandits (Lee and Bareinboim, 2018): every set of variables may be set, each to 0 or 1. Published: the
mean regret of Thompson sampling over the arms of possibly optimal sets; KL-UCB on these arms stands beside it.
--all-sets: policies are not told which sets can be best.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import product

import numpy as np

from dobandit import KLUCB, CausalGraph, CausalTS, CausalUCB, TableModel, possibly_optimal, simulate
from dobandit.policy.base import Policy

# Name: rounds, published regret of Thompson sampling, who causes what, hidden causes, P(1) of variables without causes,
# and of the others a function of the values of their causes: P(1).
Probability = Callable[..., float]
PROBLEMS: dict[str, tuple[int, float, dict[str, str], str, dict[str, float], dict[str, Probability]]] = {
    "mark": (
        10_000,
        4.7,
        {"P": "AB", "Q": "AB", "Y": "PQ"},
        "",
        {"A": 0.54, "B": 0.44},
        {
            "P": lambda a, b: flipped(0.54, a ^ b),
            "Q": lambda a, b: flipped(0.67, 1 ^ a ^ b),
            "Y": lambda p, q: 1.0 if p & q else 0.58,
        },
    ),
    "iv": (
        5_000,
        20.4,
        {"X": "ZU", "Y": "XU"},
        "U",
        {"Z": 0.6, "U": 0.51},
        {"X": lambda z, u: flipped(0.11, u ^ z), "Y": lambda x, u: flipped(0.15, 1 ^ u ^ x)},
    ),
    "xyzwst": (
        10_000,
        94.3,
        {"W": "SA", "Z": "B", "X": "ZTA", "Y": "XWTB"},
        "AB",
        {"S": 0.45, "T": 0.81, "A": 0.51, "B": 0.54},
        {
            "W": lambda s, a: flipped(0.07, s ^ a),
            "Z": lambda b: flipped(0.05, b),
            "X": lambda z, t, a: flipped(0.06, 1 ^ z ^ t ^ a),
            "Y": lambda x, w, t, b: flipped(0.06, x ^ w ^ t ^ b),
        },
    ),
}


def flipped(noise: float, value: int) -> float:
    """P(noise ^ value = 1), where the noise is 1 with this probability."""
    return 1.0 - noise if value else noise


def model_of(name: str) -> TableModel:
    """The world as tables, its hidden causes among the nodes."""
    _, _, causes, hidden, roots, functions = PROBLEMS[name]
    edges = [(cause, effect) for effect, names in causes.items() for cause in names]
    settable = [node for node in (*roots, *causes) if node != "Y" and node not in hidden]
    graph = CausalGraph(edges, target="Y", latent=list(hidden), controllable=settable)
    tables: dict[str, object] = dict(roots)
    for node, function in functions.items():
        own, parents = causes[node], graph.parents(node)
        rows = product((0, 1), repeat=len(parents))
        named = (dict(zip(parents, row, strict=True)) for row in rows)
        tables[node] = {tuple(by.values()): function(*(by[cause] for cause in own)) for by in named}
    return TableModel(graph, tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all-sets", action="store_true", help="policies are not told which sets can be best")
    options = parser.parse_args()
    prune = not options.all_sets
    policies: list[Policy] = [CausalUCB(), CausalTS(), KLUCB(prune=prune)]
    for name in options.problems:
        rounds, published, *_ = PROBLEMS[name]
        model = model_of(name)
        budget = len(model.graph.controllable)
        print(f"\n{name}: {rounds:,} rounds, {options.runs} runs; published: {published}")
        print("sets that can be best:", possibly_optimal(model.graph))
        for policy in policies:
            start = time.perf_counter()
            result = simulate(
                model, [policy], rounds=rounds, replications=options.runs, budget=budget, seed=options.seed,
                effects="any", levers=dict.fromkeys(model.graph.controllable, (0, 1)),
            )  # fmt: skip
            regret = result.regret(policy.label)[:, -1]
            error = regret.std(ddof=1) / np.sqrt(len(regret))
            print(
                f"  {policy.label:24} {regret.mean():7.1f} +- {error:.1f}   95%: {np.quantile(regret, 0.95):.0f}   "
                f"most: {regret.max():.0f}   {time.perf_counter() - start:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
