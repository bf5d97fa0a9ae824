"""Rounds until one may stop within 0.05 and within 0.02 of the best, and how often that is wrong, in worlds by seed.

    python benchmarks/bench_stop.py                                        (a quick look: 2 worlds of each kind)
    python benchmarks/bench_stop.py --worlds 20 --first 2000 --workers 2
    python benchmarks/bench_stop.py --kinds parity --ways BestSet CausalUCB --worlds 100

Worlds have 8 to 10 nodes, 5 to 8 levers, 6 to 40 actions, and a best action that is at least 0.02 better than the next.
BestSet, LUCB  until they have their answer; "proof": BestSet(proof=True)
CausalUCB      until the gap is small enough, with one round in ten without anything set, looked at every 50 rounds
A/B/n          a test of all actions for a fixed time: 80% power to find the difference between the best two (at least
               the limit), one-sided, 5% shared by all pairs
over arms      what no policy can beat that takes actions for arms: the sum over actions of log(1 / 2.4 delta) / KL
Medians; a run without an answer counts with --most rounds. wrong: answers that fall short by more than the limit.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy.stats import norm

import dobandit as dob
from bench_coverage import TABLES, World, one_by_one, world_of

LIMITS = (0.05, 0.02)
WAYS = ("BestSet", "proof", "LUCB", "CausalUCB", "A/B/n", "over arms")
DELTA = 0.05
EVERY = 50


def drawn(kind: str, seed: int) -> tuple[World, int, dict[frozenset[str], float]]:
    """A world, its budget, and what each action is worth."""
    rng = np.random.default_rng([seed, 11])
    while True:
        nodes, levers, budget = int(rng.integers(8, 11)), int(rng.integers(5, 9)), int(rng.integers(1, 3))
        world = world_of(kind, int(rng.integers(1 << 30)), levers=levers, middle=max(nodes - levers - 1, 1))
        sets = [frozenset(s) for k in range(budget + 1) for s in itertools.combinations(world.levers, k)]
        truth = {s: dob.expect(world.model, dict.fromkeys(s, 1.0)).value for s in sets}
        best = sorted(truth.values())[-2:]
        if len(sets) <= 40 and best[1] - best[0] >= 0.02:
            return world, budget, truth


def rounds_of(way: str, kind: str, most: int, seed: int) -> list[tuple[float, bool]]:
    """Until a stop within each limit, and whether that is wrong."""
    warnings.simplefilter("ignore")
    world, budget, truth = drawn(kind, seed)
    if way == "CausalUCB":
        return causal_ucb(world, budget, truth, most, seed)
    if way in ("A/B/n", "over arms"):
        planned = fixed_horizon if way == "A/B/n" else lower_bound
        return [(planned(sorted(truth.values()), limit), False) for limit in LIMITS]
    found = []
    for limit in LIMITS:
        policy = dob.LUCB(limit, DELTA) if way == "LUCB" else dob.BestSet(limit, DELTA, proof=way == "proof")
        told = dob.find_best(world.model, {"it": policy}, 1, budget, seed, most, links="auto", effects="any")["it"]
        found.append((float(told.rounds[0]), bool(told.wrong[0])))
    return found


def causal_ucb(
    world: World, budget: int, truth: dict[frozenset[str], float], most: int, seed: int
) -> list[tuple[float, bool]]:
    learner = dob.CausalUCB().start(world.model.graph, budget=budget, seed=seed)
    limits, found = list(LIMITS), []
    for t in one_by_one(learner, world, np.random.default_rng([seed, 13])):
        gap = learner.gap() if t % EVERY == 0 else 1.0
        while limits and (gap <= limits[0] or t >= most):
            loss = max(truth.values()) - truth[frozenset(learner.best().do)]
            found.append((float(t), gap <= limits[0] and loss > limits[0]))
            limits.pop(0)
        if not limits:
            return found
    return found


def fixed_horizon(values: list[float], limit: float) -> float:
    """Rounds of a test of all actions, equally often."""
    ahead = max(values[-1] - values[-2], limit)
    spread = values[-1] * (1.0 - values[-1]) + values[-2] * (1.0 - values[-2])
    reach = norm.ppf(1.0 - DELTA / (len(values) - 1)) + norm.ppf(0.8)
    return len(values) * math.ceil(spread * (reach / ahead) ** 2)


def lower_bound(values: list[float], limit: float) -> float:
    """Kaufmann, Cappé and Garivier (2016), with the limit added to every difference that is smaller."""
    best, next_best = values[-1], values[-2]
    pairs = [(p, max(best, p + limit)) for p in values[:-1]] + [(best, min(next_best, best - limit))]
    return math.log(1.0 / (2.4 * DELTA)) * sum(1.0 / divergence(p, q) for p, q in pairs)


def divergence(p: float, q: float) -> float:
    p, q = (min(max(x, 1e-4), 1.0 - 1e-4) for x in (p, q))
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--worlds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--most", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    print("median rounds until a stop within 0.05 / 0.02 (wrong answers)")
    print(f"{'':15}" + "".join(f"{way:>24}" for way in args.ways))
    everything: dict[str, list[list[tuple[float, bool]]]] = {way: [] for way in args.ways}
    with ProcessPoolExecutor(args.workers) as pool:
        for kind in args.kinds:
            cells = []
            for way in args.ways:
                seeds = range(args.first, args.first + args.worlds)
                runs = list(pool.map(partial(rounds_of, way, kind, args.most), seeds))
                everything[way] += runs
                cells.append(cell(runs))
            print(f"{kind:15}" + "".join(f"{text:>24}" for text in cells), flush=True)
    print(f"{'all':15}" + "".join(f"{cell(runs):>24}" for runs in everything.values()))


def cell(runs: list[list[tuple[float, bool]]]) -> str:
    medians = " / ".join(f"{np.median([run[k][0] for run in runs]):,.0f}" for k in range(2))
    return f"{medians} ({sum(run[0][1] for run in runs)}, {sum(run[1][1] for run in runs)} of {len(runs)})"


if __name__ == "__main__":
    main()
