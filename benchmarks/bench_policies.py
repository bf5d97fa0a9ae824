"""Microseconds a round of every policy against the plain transcription, first-call times, and cost as t grows.

    python benchmarks/bench_policies.py

A round is propose, draw a world and update, in one compiled loop: the simulator's own. The transcription
(tests/transcription/) plays the same rounds.
Goals on G1, one core: BLM-LR and BLM-OFU at least 300 times faster than the transcription, baselines 50 times.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import transcription as tr
from dobandit import BGLMOFU, BLMLR, UCB, BinaryGLM, CausalGraph, EpsilonGreedy, Random, paper
from dobandit.model.links import logistic
from dobandit.policy.engine import Draws, Rounds
from dobandit.policy.recording import Recorder, blank_tape
from dobandit.policy.world import World

LOGISTIC = logistic(1.5)
HORIZON = 10_000
FIRST = 20  # rounds of observation before BGLM-OFU begins
SECONDS = 1.0  # of measurement for each cell


class Entry:
    """A policy with its transcription. slow: whether that takes hours on larger graphs."""

    def __init__(self, name, policy, transcription, links=None, slow=False):
        self.name, self.policy, self.transcription, self.links, self.slow = name, policy, transcription, links, slow


def ofu_transcription(links):
    return lambda graph, budget: tr.BGLMOFUTranscription(
        graph, dict.fromkeys(graph.nodes, links) if links else {}, budget, HORIZON, FIRST, kappa=0.2, radius_scale=0.1
    )


ENTRIES = [
    Entry("BLM-LR", BLMLR(0.1), lambda g, k: tr.BLMLRTranscription(g, k, HORIZON, 0.1)),
    Entry(
        "BLM-LR boxed",
        BLMLR(radius_scale=0.1, region="boxed", oracle="exhaustive"),
        lambda g, k: tr.BLMLRTranscription(g, k, HORIZON, 0.1, "boxed"),
        slow=True,
    ),
    Entry("BLM-OFU", BGLMOFU(0.1, FIRST, kappa=0.2), ofu_transcription(None)),
    Entry("BGLM-OFU logistic", BGLMOFU(0.1, FIRST, kappa=0.2), ofu_transcription(LOGISTIC), LOGISTIC, slow=True),
    Entry("UCB", UCB(), lambda g, k: tr.UCBTranscription(g, k)),
    Entry("eps-greedy 0.1", EpsilonGreedy(0.1), lambda g, k: tr.EpsilonGreedyTranscription(g, k, 0.1)),
    Entry("Random", Random(), lambda g, k: tr.RandomTranscription(g, k)),
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
        self.draws = Draws(rng.random((HORIZON, len(self.graph))), rng.random((HORIZON, 3)))
        options = {"links": entry.links, "effects": "nonnegative"}
        self.learner = entry.policy.start(self.graph, budget, horizon=rounds, **options)
        self.engine, self.world = self.learner.engine, World(model, self.graph)
        actions = self.engine.actions()  # what they are worth takes no time in a round
        tape = blank_tape(np.zeros((1, len(actions.ids) + 1)), np.zeros(1), np.zeros(0, dtype=np.int64))
        self.recorder = Recorder(tape, lambda *_: 0.0, self.graph.arrays.context, actions)

    def run(self, rounds: int) -> float:
        """Seconds a round."""
        draws = Draws(self.draws.world[:rounds], self.draws.policy[:rounds])
        start = time.perf_counter()
        self.engine.run(self.world, self.recorder, draws)
        return (time.perf_counter() - start) / rounds

    def feed(self, rounds: int) -> None:
        """Observations without intervention."""
        drawn = self.model.sample(None, rounds, 0)
        values = np.ones((rounds, len(self.graph) + 1))
        for name, column in drawn.items():
            values[:, self.graph.index(name)] = column
        self.engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(rounds, dtype=np.int64)))

    def measured(self) -> float:
        """Microseconds a round, the best of three."""
        self.run(FIRST + 2)  # compiles, and ends the initialisation
        rounds = int(np.clip(SECONDS / 3 / self.run(2), 2, HORIZON))
        return 1e6 * min(self.run(rounds) for _ in range(3))

    def transcribed(self) -> float | None:
        """Microseconds a round of the transcription after FIRST rounds; None where it would take hours."""
        if self.entry.slow and len(self.graph) > 12:
            return None
        reference = self.entry.transcription(self.graph, self.budget)
        start = rounds = 0
        for t in range(4096):
            if t == FIRST:
                start, rounds = time.perf_counter(), 0
            S = reference.propose(self.draws.policy[t]) if t >= FIRST else self.any_set(reference)
            reference.update(S, tr.draw_world(self.model, S, self.draws.world[t]))
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
            bench.feed(max(t - bench.learner.rounds, 0))
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
