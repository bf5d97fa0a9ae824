"""Regret of every learner in worlds drawn by seed, of every kind in `worlds.py`: those that fit and those that do not.

    python benchmarks/bench_worlds.py                                      (a quick look: about two minutes)
    python benchmarks/bench_worlds.py --first 100 --worlds 30 --runs 10
    python benchmarks/bench_worlds.py --warm --kinds rare-patterns
    python benchmarks/bench_worlds.py --learners CausalUCB "CausalUCB safe" "CausalUCB own form" KL-UCB --worlds 20

Per kind and learner the regret after --rounds rounds: its mean, its 95% quantile and its maximum over all runs of all
worlds; worst: the largest share of Random's mean in the same world that a run lost. Warm: the learner is told 5,000
rounds without intervention first. "own form": the learner is told the world's links, or that nodes are tables by
pattern where the world has no links. Learners of one world meet the same random numbers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dobandit import BLMLR, KLUCB, UCB, CausalTS, CausalUCB, EpsilonGreedy, Random, simulate
from dobandit.estimation.mixture import TABLE
from dobandit.policy.base import Policy
from dobandit.policy.causal_engine import CausalEngine, parts_of
from dobandit.policy.engine import Engine, Rounds
from dobandit.policy.problem import Problem
from worlds import KINDS, Case, make

TOLD = 5_000
# label: policy, the links it is told ("own": the world's)
LEARNERS: dict[str, tuple[Policy, str]] = {
    "CausalUCB": (CausalUCB(), "auto"),
    "CausalUCB safe": (CausalUCB(safe=True), "auto"),
    "CausalUCB identity": (CausalUCB(), "identity"),
    "CausalUCB own form": (CausalUCB(), "own"),
    "CausalTS": (CausalTS(), "auto"),
    "KL-UCB": (KLUCB(), "identity"),
    "UCB": (UCB(), "identity"),
    "UCB (0.1)": (UCB(scale=0.1), "identity"),
    "eps-greedy (0.1)": (EpsilonGreedy(0.1), "identity"),
    "BLM-LR (0.1) clipped": (BLMLR(radius_scale=0.1, clipped=True), "identity"),
    "Random": (Random(), "identity"),
}


@dataclass(frozen=True)
class Tabular(Policy):
    """CausalUCB that takes every node for a table by pattern, and for nothing else."""

    links: ClassVar[str] = "auto"

    @property
    def label(self) -> str:
        return "CausalUCB of tables"

    def engine(self, problem: Problem) -> Engine:
        has = np.zeros((len(problem.graph) + 1, 3), dtype=bool)
        has[1:, TABLE] = True
        engine = CausalEngine(problem, lambda believed: parts_of(believed, 2.0, has=has))
        engine.watches_graph = False
        return engine


@dataclass(frozen=True)
class Told(Policy):
    """A policy whose learner has been told rounds before it begins."""

    policy: Policy
    rounds: Rounds

    __hash__ = None  # type: ignore[assignment]

    @property
    def label(self) -> str:
        return self.policy.label

    def engine(self, problem: Problem) -> Engine:
        engine = self.policy.engine(problem)
        engine.update(self.rounds)
        return engine


def observed(case: Case, seed: int) -> Rounds:
    """Rounds without intervention, as the learner's graph sees them."""
    drawn = case.world.sample(None, TOLD, seed)
    values = np.ones((TOLD, len(case.graph) + 1))
    for v, name in enumerate(case.graph.nodes, start=1):
        values[:, v] = drawn[name]
    return Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(TOLD, dtype=np.int64))


def groups(case: Case, wanted: list[str]) -> Iterator[tuple[object, dict[str, Policy]]]:
    """(links, policies by label): one study each."""
    for links in ("auto", "identity", "own"):
        policies = {label: LEARNERS[label][0] for label in wanted if LEARNERS[label][1] == links}
        if links == "own" and case.world.links is None:
            links, policies = "auto", dict.fromkeys(policies, Tabular())
        if policies:
            yield (None if links == "own" else links), policies


def regrets(case: Case, wanted: list[str], rounds: int, runs: int, seed: int, warm: bool) -> dict[str, np.ndarray]:
    """Regret at the last round of every run, by label."""
    found = {}
    told = observed(case, seed) if warm else None
    for links, policies in groups(case, wanted):
        if told is not None:
            policies = {label: Told(policy, told) for label, policy in policies.items()}
        known = {"graph": case.graph, "links": links, "effects": "any"}
        result = simulate(case.world, policies, rounds, runs, case.budget, seed, workers=1, record=[rounds], **known)
        found |= {label: result.regret(label)[:, -1] for label in policies}
    return found


def measure(kind: str, seeds: range, wanted: list[str], rounds: int, runs: int, warm: bool) -> dict[str, np.ndarray]:
    """Regrets of all runs of all worlds of a kind, by label."""
    parts: dict[str, list[np.ndarray]] = {}
    for seed in seeds:
        for label, found in regrets(make(kind, seed), wanted, rounds, runs, seed, warm).items():
            parts.setdefault(label, []).append(found)
    return {label: np.concatenate(found) for label, found in parts.items()}


def cells(regret: dict[str, np.ndarray], wanted: list[str], runs: int) -> list[str]:
    """Mean, 95% quantile and maximum of each learner; worst: the largest regret of a run as a share of Random's mean in
    the same world."""
    random = regret["Random"].reshape(-1, runs).mean(axis=1) if "Random" in regret else None
    found = []
    for label in wanted:
        numbers = regret[label]
        words = [f"{numbers.mean():.1f}", f"{np.quantile(numbers, 0.95):.1f}", f"{numbers.max():.0f}"]
        if random is not None:
            words.append(f"{np.max(numbers.reshape(-1, runs) / random[:, None]):.0%}")
        found.append(" / ".join(words))
    return found


def show(first: str, rest: list[str]) -> None:
    """A row of a Markdown table."""
    print(f"| {first} | {' | '.join(rest)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS), metavar="KIND")
    parser.add_argument("--learners", nargs="*", choices=list(LEARNERS), default=list(LEARNERS), metavar="LEARNER")
    parser.add_argument("--first", type=int, default=100, help="the seed of the first world (tuning used 0 to 29)")
    parser.add_argument("--worlds", type=int, default=2, help="worlds per kind")
    parser.add_argument("--runs", type=int, default=5, help="runs per world and learner")
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--warm", action="store_true", help=f"tell {TOLD:,} rounds without intervention first")
    given = parser.parse_args()
    start, used = time.perf_counter(), time.process_time()
    seeds = range(given.first, given.first + given.worlds)
    state = f"told {TOLD:,} rounds first" if given.warm else "started cold"
    print(f"Regret after {given.rounds:,} rounds; worlds {seeds[0]} to {seeds[-1]}, {given.runs} runs each")
    worst = " / worst run as a share of Random's mean in its world" if "Random" in given.learners else ""
    print(f"mean / 95% quantile / maximum{worst}\n")
    show(f"kind, {state}", given.learners)
    print("|---" * (len(given.learners) + 1) + "|")
    every: dict[str, list[np.ndarray]] = {label: [] for label in given.learners}
    for kind in given.kinds:
        regret = measure(kind, seeds, given.learners, given.rounds, given.runs, given.warm)
        show(kind, cells(regret, given.learners, given.runs))
        for label, found in regret.items():
            every[label].append(found)
    whole = {label: np.concatenate(parts) for label, parts in every.items()}
    show("all of these", cells(whole, given.learners, given.runs))
    print(f"\n{time.perf_counter() - start:.0f} s, {time.process_time() - used:.0f} s of CPU")


if __name__ == "__main__":
    main()
