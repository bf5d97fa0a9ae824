"""Live experiments whose logs have grown long: what each step costs at 10^4, 10^5 and (with --long) 10^6 rounds.

    python benchmarks/bench_long_logs.py [--quick | --long]

Every experiment is BLM-LR on the paper's G1 (K = 3) in an SQLite file, with a live trial per round; `import` brings as
many rounds from a CSV file into an experiment of its own. Each step runs in a process of its own, with its peak of
memory. Goals at 10^6 rounds: `show` and `trials --last` under 1 s and flat, reopening under 5 s, the import under 5 s;
at 10^5 rounds 8 processes at least 150 rounds a second.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

import dobandit as dob
from bench_experiments import add_live_trials

G1 = dob.paper.G1
NAME = "long"
STEPS = ("import", "fill", "show", "last", "reopen", "ask", "best", "recommend", "diagnose", "export", "others")


def write_history(rounds: int, path: str) -> None:
    """Rounds with random sets, as a CSV file."""
    rng = np.random.default_rng(0)
    names = G1.graph.controllable
    drawn = G1.sample(size=rounds, rng=rng)
    sets = np.argsort(rng.random((rounds, len(names))), axis=1)[:, :3]
    with open(path, "w") as file:
        file.write(",".join([*(f"do:{name}" for name in names), *G1.graph.nodes]) + "\n")
        for t in range(rounds):
            do = {names[i]: "1" for i in sets[t]}
            seen = [do.get(name) or str(int(drawn[name][t])) for name in G1.graph.nodes]
            file.write(",".join([*(do.get(name, "") for name in names), *seen]) + "\n")


def read(row: dict[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    """What was set, and what was seen, in a row of the file."""
    do = {name[3:]: int(value) for name, value in row.items() if name.startswith("do:") and value}
    return do, {name: int(value) for name, value in row.items() if not name.startswith("do:")}


def play(experiment: dob.Experiment, seconds: float) -> list[float]:
    """Seconds of each round, ask and tell."""
    observation = dict.fromkeys(G1.graph.nodes, 0)
    took, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds:
        before = time.perf_counter()
        trial = experiment.ask()
        experiment.tell(trial.number, observation | trial.do)
        took.append(time.perf_counter() - before)
    return took


def worker(url: str, seconds: float, ready: object, results: object) -> None:
    experiment = dob.open_experiment(NAME, url)
    experiment.learner  # noqa: B018 - replay before the clock starts
    ready.wait()  # type: ignore[attr-defined]
    results.put(play(experiment, seconds))  # type: ignore[attr-defined]


def in_processes(count: int, url: str, seconds: float) -> str:
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(count), context.Queue()
    workers = [context.Process(target=worker, args=(url, seconds, ready, results)) for _ in range(count)]
    for process in workers:
        process.start()
    took = [one for _ in workers for one in results.get(timeout=600)]
    for process in workers:
        process.join()
    return f"{len(took) / seconds:,.0f} rounds a second, p99 {np.quantile(took, 0.99) * 1000:,.0f} ms"


def step(name: str, folder: str) -> None:
    """One step, timed; prints its seconds, those of the processor, and the peak of this process's memory in MB."""
    url = f"sqlite:///{folder}/long.db"
    if name == "import":
        experiment = dob.create_experiment("imported", G1.graph, 3, dob.BLMLR(), url, horizon=10**7, seed=0)
    elif name == "fill":
        experiment = dob.create_experiment(NAME, G1.graph, 3, dob.BLMLR(), url, horizon=10**7, seed=0)
    else:
        experiment = dob.open_experiment(NAME, url)
    words = ""
    start, busy = time.perf_counter(), time.process_time()
    if name == "import":
        experiment.import_history(f"{folder}/history.csv")
    elif name == "fill":
        with open(f"{folder}/history.csv") as file:
            add_live_trials(experiment, [read(row) for row in csv.DictReader(file)])
    elif name == "show":
        experiment.status()
    elif name == "last":
        experiment.trials(last=3) if "last" in dob.Experiment.trials.__annotations__ else experiment.trials()[-3:]
    elif name == "reopen":
        experiment.ask()
    elif name == "ask":
        experiment.ask()
        took = play(experiment, 3.0)
        words = f"{np.median(took[len(took) // 4 :]) * 1000:.2f} ms a round with trials pending"
    elif name == "best":
        experiment.best_observed()
    elif name == "recommend":
        experiment.recommend()
    elif name == "diagnose":
        experiment.diagnose()
    elif name == "export":
        experiment.to_csv(f"{folder}/export.csv")
    elif name == "others":
        words = in_processes(8, url, 5.0)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    print(words or f"{seconds:8.2f} s, {busy:8.2f} s of them at work, {peak_of_memory():8,.0f} MB")


def peak_of_memory() -> float:
    """Of this process, in MB. What `getrusage` says includes the parent's before this program was started."""
    with suppress(OSError), open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 and 10,000 rounds")
    parser.add_argument("--long", action="store_true", help="a million rounds, too")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--steps", default=",".join(STEPS), help="which steps, in their order")
    parser.add_argument("--rounds", type=int, help="one log of so many rounds")
    given = parser.parse_args()
    if given.step:
        return step(*given.step)
    sizes = [1_000, 10_000] if given.quick else [10_000, 100_000, *([1_000_000] if given.long else [])]
    for rounds in [given.rounds] if given.rounds else sizes:
        print(f"{rounds:,} rounds")
        with tempfile.TemporaryDirectory(dir=os.environ.get("DOBANDIT_BENCH_DIR")) as folder:
            write_history(rounds, f"{folder}/history.csv")
            for name in given.steps.split(","):
                command = [sys.executable, str(Path(__file__)), "--step", name, folder]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                print(f"  {name:<10} {(done.stdout or done.stderr[-500:]).strip()}", flush=True)
    return None


if __name__ == "__main__":
    main()
