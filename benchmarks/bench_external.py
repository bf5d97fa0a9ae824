"""Regret on problems that others published, with their figures beside ours.

    python benchmarks/bench_external.py                     (about a minute)
    python benchmarks/bench_external.py iv --runs 300 --seed 5
    python benchmarks/bench_external.py --all-sets
    python benchmarks/bench_external.py --random 10 --runs 10

Structural causal bandits (Lee and Bareinboim, 2018): every set of variables may be set, each to 0 or 1. Published: the
mean regret of Thompson sampling over the arms of possibly optimal sets; KL-UCB on these arms stands beside it.
--all-sets: policies are not told which sets can be best.
--random: random worlds instead, for 1, 2 and 3 hidden common causes each so many: 6 to 9 observed variables, every
probability drawn by itself, up to two variables set to 0 or 1. Regret in percent of KL-UCB's on the same arms.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import product

import numpy as np

from dobandit import KLUCB, CausalGraph, CausalTS, CausalUCB, TableModel, ThompsonSampling, possibly_optimal, simulate
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


def random_model(hidden: int, seed: int) -> TableModel:
    """A random world with hidden common causes of two variables each."""
    rng = np.random.default_rng([hidden, seed])
    names = [f"V{v}" for v in range(rng.integers(6, 10))]
    causes = {v: [p for p in names[:i] if rng.random() < 2.0 / i] for i, v in enumerate(names)}
    for i, v in enumerate(names[:-1]):  # everything leads somewhere
        if not any(v in causes[w] for w in names[i + 1 :]):
            causes[rng.choice(names[i + 1 :])].append(v)
    for i in range(hidden):
        for v in rng.choice(names, 2, replace=False):
            causes[v].append(f"U{i}")
    edges = [(p, v) for v in names for p in causes[v]]
    settable, unseen = names[:-1], [f"U{i}" for i in range(hidden)]
    graph = CausalGraph(edges, target=names[-1], latent=unseen, controllable=settable, nodes=names)
    tables = {}
    for node in graph.nodes:
        count = len(graph.parents(node))
        tables[node] = rng.uniform(0.02, 0.98, (2,) * count) if count else float(rng.uniform(0.2, 0.8))
    return TableModel(graph, tables)


def compare_random(worlds: int, runs: int, seed: int) -> None:
    """Regret after 3,000 rounds in percent of that of KL-UCB on the sets that can be best, by kind."""
    policies: list[Policy] = [CausalUCB(), CausalTS(), KLUCB(prune=True)]
    for hidden in (1, 2, 3):
        found: dict[str, list[float]] = {policy.label: [] for policy in policies}
        for world in range(worlds):
            model = random_model(hidden, seed + world)
            levers = dict.fromkeys(model.graph.controllable, (0, 1))
            result = simulate(model, policies, 3_000, runs, budget=2, seed=world, effects="any", levers=levers)
            for label, regrets in found.items():
                regrets.append(float(result.regret(label)[:, -1].mean()))
        usual = np.mean(found[policies[-1].label])
        words = [f"{label} {np.mean(part):.1f} ({np.mean(part) / usual:.0%})" for label, part in found.items()]
        above = [f"{label} {part[i]:.0f} > {found[policies[-1].label][i]:.0f}" for label, part in found.items()
                 for i in range(worlds) if part[i] > found[policies[-1].label][i]]  # fmt: skip
        print(f"{hidden} hidden: {', '.join(words)}; above: {', '.join(above) or 'never'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", metavar="|".join(PROBLEMS))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all-sets", action="store_true", help="policies are not told which sets can be best")
    parser.add_argument("--random", type=int, default=0, metavar="WORLDS", help="random worlds of each kind instead")
    options = parser.parse_args()
    if options.random:
        compare_random(options.random, options.runs, options.seed)
        return
    prune = not options.all_sets
    policies: list[Policy] = [
        CausalUCB(prune=prune), CausalTS(prune=prune), ThompsonSampling(prune), KLUCB(prune=prune)
    ]  # fmt: skip
    for name in options.problems or PROBLEMS:
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
