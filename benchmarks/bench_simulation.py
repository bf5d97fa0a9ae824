"""How fast studies run: the paper's whole protocol, each policy, two threads against one, and the plain transcription.

python benchmarks/bench_simulation.py [--replications 60] [--workers N] [--rounds 300]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from dobandit import paper
from dobandit.simulation.reproduce import paper_policies, paper_study
from dobandit.simulation.result import StudyResult
from dobandit.simulation.run import prepare, run_block
from dobandit.simulation.simulate import available_cores, run_study
from dobandit.simulation.study import Study, study_of

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import transcription as tr


def timed(study: Study, workers: int) -> tuple[StudyResult, float]:
    start = time.perf_counter()
    result = run_study(study, workers=workers)
    return result, time.perf_counter() - start


def header(title: str, *columns: str, first: str = "") -> None:
    print(f"\n{title}\n{first:<20}" + "".join(f"{column:>13}" for column in columns))


def warm_up() -> float:
    """Load the kernels, or compile them if this is the first time."""
    start = time.perf_counter()
    run_study(study_of(paper.G4, paper_policies(100), 100, 2, 2), workers=1)
    return time.perf_counter() - start


def protocol(replications: int, workers: int) -> dict[str, StudyResult]:
    """Wall time of the paper's experiments."""
    header(
        f"The protocol, {replications} replications, {workers} threads", "rounds", "seconds", "rounds/s", first="graph"
    )
    results, total, played = {}, 0.0, 0
    for name in paper.MODELS:
        results[name], seconds = timed(paper_study(name, replications), workers)
        rounds = replications * results[name].study.rounds * len(results[name].labels)
        total, played = total + seconds, played + rounds
        print(f"{name:<20}{rounds:>13,}{seconds:>13.2f}{rounds / seconds:>13,.0f}")
    print(f"{'all':<20}{played:>13,}{total:>13.2f}{played / total:>13,.0f}")
    print(f"for 600 replications: about {total * 600 / replications:.0f} s (the paper: 4672 s on four cores)")
    return results


def policies(results: dict[str, StudyResult]) -> None:
    header("Microseconds a round on one core", *results, "rounds/s", first="policy")
    for label in next(iter(results.values())).labels:
        cost = [result.microseconds_per_round(label) for result in results.values()]
        print(f"{label:<20}" + "".join(f"{c:>13.2f}" for c in cost) + f"{1e6 / np.mean(cost):>13,.0f}")


def efficiency(replications: int) -> None:
    """Two threads against one, by turns, best of five; 100% is twice as fast. The first row is the machine's own."""
    header(f"Two threads, {replications} replications", "1 thread s", "2 threads s", "efficiency", first="graph")

    def show(name: str, seconds: Callable[[int], float]) -> None:
        one, two = np.min([[seconds(1), seconds(2)] for _ in range(5)], axis=0)
        print(f"{name:<20}{one:>13.3f}{two:>13.3f}{one / (2 * two):>13.0%}")

    show("(NumPy sort)", sorted_by)
    for name in paper.MODELS:
        study = paper_study(name, replications)
        show(name, lambda workers, study=study: timed(study, workers)[1])


def sorted_by(threads: int) -> float:
    """Seconds to sort eight large arrays."""
    arrays = np.random.default_rng(0).random((8, 500_000))
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(np.sort, arrays))
    return time.perf_counter() - start


def against_transcription(rounds: int) -> None:
    """The same run, choice by choice, by the line-by-line transcription of the paper's algorithms."""
    model, graph, budget = paper.G4, paper.G4.graph, 2
    plain: dict[str, tr.Learner] = {
        "BLM-LR": tr.BLMLRTranscription(graph, budget, rounds, 0.1),
        "BLM-OFU": tr.BGLMOFUTranscription(graph, {}, budget, rounds, rounds // 100, radius_scale=0.1),
        "UCB": tr.UCBTranscription(graph, budget),
        "UCB (scaled)": tr.UCBTranscription(graph, budget, 0.1),
        "eps-greedy (0.1)": tr.EpsilonGreedyTranscription(graph, budget, 0.1),
        "eps-greedy (0.01)": tr.EpsilonGreedyTranscription(graph, budget, 0.01),
    }
    study = study_of(model, paper_policies(rounds), rounds, 1, budget, record=[rounds])
    prepared = prepare(study)
    compiled = min((run_block(study, prepared, [0]) for _ in range(5)), key=lambda block: block.seconds.sum())
    streams = [np.random.default_rng(np.random.SeedSequence(0, spawn_key=(0, i))) for i in range(2)]
    draws = streams[0].random((rounds, len(graph))), streams[1].random((rounds, 3))
    header(f"G4, one run of {rounds} rounds", "plain s", "compiled s", "times faster", "same regret", first="policy")
    for row, label in enumerate(study.policies):
        start = time.perf_counter()
        played = tr.play(model, plain[label], rounds, *draws)
        slow, fast = time.perf_counter() - start, float(compiled.seconds[row, 0])
        regret = tr.expected_regret(model, budget, played.sets).sum()
        same = abs(regret - compiled.regret[row, 0, -1]) < 1e-9
        print(f"{label:<20}{slow:>13.3f}{fast:>13.6f}{slow / fast:>13,.0f}{'yes' if same else 'NO':>13}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=60)
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--rounds", type=int, default=300, help="of the comparison with the transcription")
    given = parser.parse_args()
    print(f"kernels loaded or compiled in {warm_up():.1f} s")
    policies(protocol(given.replications, given.workers))
    efficiency(max(given.replications // 3, 2))
    against_transcription(given.rounds)


if __name__ == "__main__":
    main()
