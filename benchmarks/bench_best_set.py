"""Rounds until the answer: BestSet, which knows what causes what, against LUCB on arms, in one table.

    python benchmarks/bench_best_set.py                                  (a quick look: 45 s and compiling)
    python benchmarks/bench_best_set.py --worlds 6 --runs 10
    python benchmarks/bench_best_set.py --only G1 G2 --most 200000

The paper's graphs and small worlds drawn by seed (`worlds.py`). Learners are told the graph, neither links nor signs,
and meet the same random numbers; all sets up to the budget are allowed. An answer is wrong if some allowed action is
better by more than epsilon. A run without an answer after --most rounds counts with that many, and the mean gets a ">".
The rule of BestSet was chosen on worlds of seed 1; the table is on seeds from --first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from dobandit import LUCB, BestSet, find_best, paper
from worlds import Case, make

KINDS = ("fits-linear", "mixed-signs-linear", "random-tables", "interaction-at-target", "rare-patterns")


def cases(only: list[str] | None, first: int, worlds: int) -> Iterator[tuple[str, Case]]:
    """The paper's graphs, then the drawn worlds, by name."""
    for name in only or ("G3", "G4", "G5", *KINDS):
        if name in paper.MODELS:
            model = paper.MODELS[name]
            yield name, Case(model, model.graph, paper.BUDGETS[name])
        else:
            for seed in range(first, first + worlds):
                yield f"{name} {seed}", make(name, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--first", type=int, default=100, help="seed of the first drawn world")
    parser.add_argument("--worlds", type=int, default=1, help="drawn worlds of each kind")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--most", type=int, default=20_000, help="rounds after which a run has no answer")
    parser.add_argument("--only", nargs="+", help="G1 to G5, or kinds of worlds.py")
    given = parser.parse_args()
    policies = {"BestSet": BestSet(given.epsilon, given.delta), "LUCB": LUCB(given.epsilon, given.delta)}
    heads = f"{'world':<26}{'actions':>8}" + "".join(f"{label:>12}{'wrong':>7}" for label in policies)
    print(f"epsilon {given.epsilon:g}, delta {given.delta:g}, {given.runs} runs: mean rounds until the answer")
    print(f"{heads}{'ratio':>8}{'seconds':>9}", flush=True)
    for name, case in cases(given.only, given.first, given.worlds):
        start = time.perf_counter()
        believed = {"graph": case.graph, "links": "auto", "effects": "any"}
        result = find_best(case.world, policies, given.runs, case.budget, given.first, given.most, **believed)
        arms = len(policies["LUCB"].start(case.graph, case.budget, effects="any").engine.actions().ids)
        line, means = f"{name:<26}{arms:>8}", []
        for label in policies:
            found = result[label]
            means.append(found.summary().mean)
            more = "" if found.finished.all() else ">"
            line += f"{f'{more}{means[-1]:,.0f}':>12}{int(found.wrong.sum()):>7}"
        print(f"{line}{means[0] / means[1]:>8.2f}{time.perf_counter() - start:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
