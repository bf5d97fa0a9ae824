"""Microseconds a round of every policy against the plain transcription, first-call times, and cost as t grows.

    python benchmarks/bench_policies.py

A round is propose and update on observations drawn ahead (without intervention: what was set reads 1), in one
compiled loop as the simulator runs it. The transcription (tests/transcription.py) plays the same observations.
Goals on G1, one core: BLM-LR and BLM-OFU at least 300 times faster than the transcription, baselines 50 times.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import transcription as tr
from dobandit import BGLMOFU, BLMLR, UCB, BinaryGLM, CausalGraph, EpsilonGreedy, Random, paper
from dobandit.model.links import logistic
from dobandit.policy.arms import propose_arm, update_arm
from dobandit.policy.optimist import propose_boxed, propose_general, propose_linear, update_general, update_linear

LOGISTIC = logistic(1.5)
HORIZON = 10_000
FIRST = 20  # rounds of observation before BGLM-OFU begins
SECONDS = 1.0  # of measurement for each cell


# -- the loops ------------------------------------------------------------------------------------------------


@numba.njit
def put(sets, index, observation, values, was_set):
    """The round's values: as drawn, and 1 where set."""
    values[:] = observation
    was_set[:] = False
    if index >= 0:
        for i in sets[index]:
            values[i] = 1.0
            was_set[i] = True


@numba.njit
def run_linear(plan, state, sets, worlds, uniforms, values, was_set, rounds):
    for t in range(rounds):
        index = propose_linear(plan, state, uniforms[t % len(uniforms), 0])
        put(sets, index, worlds[t % len(worlds)], values, was_set)
        update_linear(plan.settings.initial, plan.layout, plan.thresholds, state, values, was_set)


@numba.njit
def run_boxed(plan, state, sets, worlds, uniforms, values, was_set, rounds):
    linear = plan.linear
    for t in range(rounds):
        index = propose_boxed(plan, state, uniforms[t % len(uniforms), 0])
        put(sets, index, worlds[t % len(worlds)], values, was_set)
        update_linear(linear.settings.initial, linear.layout, linear.thresholds, state, values, was_set)


@numba.njit
def run_general(plan, state, sets, worlds, uniforms, values, was_set, rounds):
    for t in range(rounds):
        index = propose_general(plan, state, uniforms[t % len(uniforms), 0])
        put(sets, index, worlds[t % len(worlds)], values, was_set)
        update_general(plan, state, values, was_set)


@numba.njit
def run_arms(plan, state, sets, worlds, uniforms, values, was_set, rounds):
    for t in range(rounds):
        index = propose_arm(plan, state, uniforms[t % len(uniforms)])
        update_arm(plan, state, index, worlds[t % len(worlds), plan.target])


@numba.njit
def feed_linear(plan, state, worlds, was_set, rounds):
    for t in range(rounds):
        update_linear(plan.settings.initial, plan.layout, plan.thresholds, state, worlds[t % len(worlds)], was_set)


@numba.njit
def feed_general(plan, state, worlds, was_set, rounds):
    for t in range(rounds):
        update_general(plan, state, worlds[t % len(worlds)], was_set)


class Entry:
    """A policy with its loop and its transcription."""

    def __init__(self, name, policy, loop, transcription, links=None):
        self.name, self.policy, self.loop, self.transcription, self.links = name, policy, loop, transcription, links


def ofu_transcription(links):
    return lambda graph, budget: tr.BGLMOFUTranscription(
        graph, dict.fromkeys(graph.nodes, links) if links else {}, budget, HORIZON, FIRST, kappa=0.2, radius_scale=0.1
    )


ENTRIES = [
    Entry("BLM-LR", BLMLR(0.1), run_linear, lambda g, k: tr.BLMLRTranscription(g, k, HORIZON, 0.1)),
    Entry(
        "BLM-LR boxed",
        BLMLR(radius_scale=0.1, region="boxed", oracle="exhaustive"),
        run_boxed,
        lambda g, k: tr.BLMLRTranscription(g, k, HORIZON, 0.1, "boxed"),
    ),
    Entry("BLM-OFU", BGLMOFU(0.1, FIRST, kappa=0.2), run_linear, ofu_transcription(None)),
    Entry("BGLM-OFU logistic", BGLMOFU(0.1, FIRST, kappa=0.2), run_general, ofu_transcription(LOGISTIC), LOGISTIC),
    Entry("UCB", UCB(), run_arms, lambda g, k: tr.UCBTranscription(g, k)),
    Entry("eps-greedy 0.1", EpsilonGreedy(0.1), run_arms, lambda g, k: tr.EpsilonGreedyTranscription(g, k, 0.1)),
    Entry("Random", Random(), run_arms, lambda g, k: tr.RandomTranscription(g, k)),
]


# -- the problems ---------------------------------------------------------------------------------------------


def random_dag(size: int = 30, seed: int = 0) -> BinaryGLM:
    """Every node has up to three parents among the last ten before it; the last is the target."""
    rng = np.random.default_rng(seed)
    names = [f"X{i}" for i in range(size)]
    edges = []
    for i in range(1, size):
        before = range(max(0, i - 10), i)
        edges += [(names[j], names[i]) for j in rng.choice(before, min(len(before), 3), replace=False)]
    childless = set(names[:-1]) - {cause for cause, _ in edges}
    edges += [(name, names[-1]) for name in childless]
    graph = CausalGraph(edges, target=names[-1])
    sizes = np.diff(graph.arrays.parent_ptr)
    return BinaryGLM(graph, np.repeat(0.9 / np.maximum(sizes, 1), sizes))


PROBLEMS = {"G1": (paper.G1, 3), "G5": (paper.G5, 2), "30 nodes, K = 3": (random_dag(), 3)}


class Bench:
    """An entry at work on a problem."""

    def __init__(self, entry, model, budget, rounds=HORIZON):
        self.entry, self.model, self.budget = entry, model, budget
        self.graph, rng = model.graph, np.random.default_rng(0)
        drawn = model.sample(None, 4096, rng)
        self.worlds = np.ones((4096, len(self.graph) + 1))
        for name, column in drawn.items():
            self.worlds[:, self.graph.index(name)] = column
        self.uniforms = rng.random((4096, 3))
        self.learner = entry.policy.start(self.graph, budget, horizon=rounds, links=entry.links)
        self.engine = self.learner.engine
        self.values, self.was_set = np.ones(len(self.graph) + 1), np.zeros(len(self.graph) + 1, dtype=bool)

    def run(self, rounds: int) -> float:
        """Seconds a round."""
        engine = self.engine
        start = time.perf_counter()
        self.entry.loop(
            engine.plan, engine.state, engine.sets, self.worlds, self.uniforms, self.values, self.was_set, rounds
        )
        return (time.perf_counter() - start) / rounds

    def measured(self) -> float:
        """Microseconds a round, the best of three."""
        self.run(FIRST + 2)  # compiles, and ends the initialisation
        rounds = int(np.clip(SECONDS / 3 / self.run(2), 2, HORIZON))
        return 1e6 * min(self.run(rounds) for _ in range(3))

    def transcribed(self) -> float | None:
        """Microseconds a round of the transcription after FIRST rounds; None where it would take hours."""
        if self.entry.loop in (run_boxed, run_general) and len(self.graph) > 12:
            return None
        reference = self.entry.transcription(self.graph, self.budget)
        start = rounds = 0
        for t in range(4096):
            if t == FIRST:
                start, rounds = time.perf_counter(), 0
            S = reference.propose(self.uniforms[t]) if t >= FIRST else self.any_set(reference)
            values = self.worlds[t].copy()
            for name in S:
                values[self.graph.index(name)] = 1.0
            reference.update(S, dict(zip(self.graph.nodes, values[1:], strict=True)))
            rounds += 1
            if t >= FIRST and time.perf_counter() - start > SECONDS:
                break
        return 1e6 * (time.perf_counter() - start) / rounds

    @staticmethod
    def any_set(reference):
        return reference.arms[0] if hasattr(reference, "arms") else ()


# -- the tables -----------------------------------------------------------------------------------------------


def rounds_table() -> None:
    print("Microseconds a round: compiled, transcription, and how many times faster\n")
    print(f"{'policy':<20}" + "".join(f"{name:>34}" for name in PROBLEMS))
    for entry in ENTRIES:
        cells = []
        for model, budget in PROBLEMS.values():
            bench = Bench(entry, model, budget)
            ours, theirs = bench.measured(), bench.transcribed()
            cells.append(f"{ours:>12,.2f}" + (f"{theirs:>12,.0f}{theirs / ours:>9,.0f}x" if theirs else f"{'-':>22}"))
        print(f"{entry.name:<20}" + "".join(cells), flush=True)


def growth_table() -> None:
    """Cost of a round after 10^2, 10^4 and 10^6 rounds."""
    print("\nMicroseconds a round on G1 after t rounds\n")
    print(f"{'policy':<20}" + "".join(f"{'t = 10^' + str(k):>12}" for k in (2, 4, 6)))
    for entry in ENTRIES[:4]:
        bench = Bench(entry, paper.G1, 3, rounds=10**6)
        bench.run(FIRST + 2)
        cells = []
        for t in (10**2, 10**4, 10**6):
            plan, state, free = bench.engine.plan, bench.engine.state, np.zeros(len(paper.G1.graph) + 1, dtype=bool)
            missing = t - bench.learner.rounds
            if entry.loop is run_general:
                feed_general(plan, state, bench.worlds, free, missing)
            else:
                linear = plan.linear if entry.loop is run_boxed else plan
                feed_linear(linear, state, bench.worlds, free, missing)
            cells.append(f"{1e6 * min(bench.run(500) for _ in range(3)):>12.2f}")
        print(f"{entry.name:<20}" + "".join(cells), flush=True)


FIRST_CALL = """
import time
start = time.perf_counter()
import dobandit as dob
loaded = time.perf_counter()
learner = dob.{policy}.start(dob.paper.G1.graph, 3, horizon=1000{links})
for _ in range(3):
    learner.update(learner.propose(), {{"X2": 1, "Y": 0}})
print(loaded - start, time.perf_counter() - loaded)
"""
FIRST_CALLS = {
    "BLM-LR": ("BLMLR()", ""),
    "BLM-LR boxed": ("BLMLR(region='boxed')", ""),
    "BLM-OFU": ("BGLMOFU(initial=1)", ""),
    "BGLM-OFU logistic": ("BGLMOFU(initial=1, kappa=0.2)", ", links='logistic'"),
    "UCB": ("UCB()", ""),
}


def first_call_table() -> None:
    """A new process each time: start, and three rounds."""
    print("\nSeconds to the third round in a new process, with an empty and with a warm cache\n")
    print(f"{'policy':<20}{'import':>10}{'empty':>10}{'warm':>10}")
    for name, (policy, links) in FIRST_CALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            script = FIRST_CALL.format(policy=policy, links=links)
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            runs = [
                subprocess.run(
                    [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
                ).stdout.split()
                for _ in range(2)
            ]
        (load, empty), (_, warm) = ((float(a), float(b)) for a, b in runs)
        print(f"{name:<20}{load:>10.2f}{empty:>10.2f}{warm:>10.2f}", flush=True)


def main() -> None:
    rounds_table()
    growth_table()
    first_call_table()


if __name__ == "__main__":
    main()
