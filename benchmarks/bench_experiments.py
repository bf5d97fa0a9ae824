"""Live experiments: ask + tell round trips a second, and the time to replay a log.

    python benchmarks/bench_experiments.py [--quick]

Every experiment is BLM-LR on the paper's G1 (K = 3) with a log of 10,000 trials before the clock starts. Optuna runs
on the same disk in the same run: its RDB storage, six binary parameters, `ask` with fixed distributions and `tell`, its
default sampler and its cheapest one, with as many trials before. PostgreSQL is started from the machine's programs,
with fsync as it comes. Goals: at least 10 times Optuna's rate, a round in memory under 100 us, a replay of 100,000
rounds in about a second.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import dobandit as dob
from dobandit.rows.stored_trial import ASKED, TOLD, StoredTrial

G1 = dob.paper.G1
SECONDS = 5.0


class Shop:
    """The world of G1, drawn ahead: what is seen where something is set."""

    def __init__(self, seed: int, ahead: int = 1000) -> None:
        self._rng, self._ahead = np.random.default_rng(seed), ahead
        self._drawn: dict[tuple[str, ...], list[dict[str, int]]] = {}

    def seen(self, do: dict[str, int]) -> dict[str, int]:
        rows = self._drawn.setdefault(tuple(sorted(do)), [])
        if not rows:
            drawn = G1.sample(do, size=self._ahead, rng=self._rng)
            rows += [dict(zip(drawn, map(int, row), strict=True)) for row in zip(*drawn.values(), strict=True)]
        return rows.pop()


def history(rounds: int) -> list[tuple[dict[str, int], dict[str, int]]]:
    """Rounds with random sets."""
    rng, names, shop = np.random.default_rng(0), G1.graph.controllable, Shop(0)
    sets = [dict.fromkeys(rng.choice(names, 3, replace=False).tolist(), 1) for _ in range(rounds)]
    return [(do, shop.seen(do)) for do in sets]


def experiment_in(storage: object, name: str, past: int) -> dob.Experiment:
    experiment = dob.create_experiment(name, G1.graph, 3, storage=storage, horizon=10**6, seed=0)
    add_live_trials(experiment, history(past))
    return experiment


def add_live_trials(experiment: dob.Experiment, rounds: list[tuple[dict[str, int], dict[str, int]]]) -> None:
    """A trial per round, as if each had been asked and told: an import would sum them up."""
    columns, stored = experiment.columns, experiment.storage.find(experiment.name)
    trials = []
    for i, (do, seen) in enumerate(rounds):
        texts = columns.encode(columns.do_row(do)), columns.encode(columns.observation_row(seen, columns.do_row(do)))
        more = {"asked_after": i, "predicted": 0.5, "low": 0.1, "high": 0.9, "asked_at": i, "why": "as if asked"}
        trials.append(StoredTrial(0, ASKED, texts[0], state=TOLD, observation=texts[1], closed_at=i, **more))
    with experiment.storage.writing(stored.id) as writer:
        writer.add(trials)
    experiment.status()  # which keeps the sums, as tells do now and then


def rounds_a_second(experiment: dob.Experiment, seconds: float) -> float:
    """Ask and tell until the time is over, after a round to warm up."""
    shop = Shop(1)

    def round_trip() -> None:
        trial = experiment.ask()
        experiment.tell(trial.number, shop.seen(trial.do))

    round_trip()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        round_trip()
        count += 1
    return count / (time.perf_counter() - start)


def worker(url: str, name: str, seconds: float, ready: object, rates: object) -> None:
    experiment = dob.open_experiment(name, url)
    experiment.learner  # noqa: B018 - replay before the clock starts
    ready.wait()  # type: ignore[attr-defined]
    rates.put(rounds_a_second(experiment, seconds))  # type: ignore[attr-defined]


def in_processes(count: int, url: str, name: str, seconds: float) -> float:
    """The processes' rates together."""
    context = multiprocessing.get_context("spawn")
    ready, rates = context.Barrier(count), context.Queue()
    workers = [context.Process(target=worker, args=(url, name, seconds, ready, rates)) for _ in range(count)]
    for process in workers:
        process.start()
    total = sum(rates.get(timeout=300) for _ in workers)
    for process in workers:
        process.join()
    return total


# -- Optuna ---------------------------------------------------------------------------------------------------


def has_optuna() -> bool:
    try:
        import optuna
    except ImportError:
        return False
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.ERROR)  # of Optuna
    warnings.simplefilter("ignore")
    return True


def fill_optuna(url: str, past: int) -> None:
    import optuna

    study = optuna.create_study(storage=url, study_name="study", direction="maximize")
    rng = np.random.default_rng(0)
    for _ in range(past):
        params = {name: int(rng.integers(2)) for name in optuna_space()}
        value = float(rng.integers(2))
        study.add_trial(optuna.trial.create_trial(params=params, distributions=optuna_space(), value=value))


def optuna_space() -> dict[str, object]:
    import optuna

    return {f"X{i}": optuna.distributions.CategoricalDistribution([0, 1]) for i in range(2, 8)}


def optuna_rate(url: str, seconds: float, sampler: str) -> float:
    import optuna

    choose = optuna.samplers.RandomSampler(seed=0) if sampler == "random" else optuna.samplers.TPESampler(seed=0)
    study, space = optuna.load_study(storage=url, study_name="study", sampler=choose), optuna_space()
    study.tell(study.ask(space), 0.0)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        study.tell(study.ask(space), 1.0)
        count += 1
    return count / (time.perf_counter() - start)


def optuna_file(folder: str, past: int) -> str:
    """Filled in memory, where that can be, and moved to the disk: filling is not measured."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else folder) as quick:
        fill_optuna(f"sqlite:///{quick}/optuna.db", past)
        shutil.copy(f"{quick}/optuna.db", f"{folder}/optuna.db")
    return f"sqlite:///{folder}/optuna.db"


def optuna_database(server: object, past: int) -> str:
    """Filled without waiting for the disk, and measured with it."""
    url: str = server.new_database()  # type: ignore[attr-defined]
    name = url.rpartition("/")[2]
    server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")  # type: ignore[attr-defined]
    fill_optuna(url, past)
    server.execute(f"ALTER DATABASE {name} RESET synchronous_commit")  # type: ignore[attr-defined]
    return url


# -- the table ------------------------------------------------------------------------------------------------


@contextmanager
def postgres():
    """A server with fsync on, or None where there are no programs."""
    import postgres as programs

    if programs.program("initdb") is None:
        yield None
        return
    with programs.running_server(durable=True) as server:
        yield server


def row(label: str, rate: float, reference: float | None) -> None:
    ratio = f"{rate / reference:>8.1f}" if reference else ""
    print(f"{label:<46} {rate:>15,.0f} {1e6 / rate:>12,.0f} {ratio}", flush=True)


def replay(rounds: int, url: str) -> float:
    experiment_in(url, "replay", rounds).close()
    again = dob.open_experiment("replay", url)
    start = time.perf_counter()
    again.ask()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 trials before, one second a row")
    quick = parser.parse_args().quick
    past, seconds = (1_000, 1.0) if quick else (10_000, SECONDS)
    with tempfile.TemporaryDirectory(dir=os.environ.get("DOBANDIT_BENCH_DIR")) as folder, postgres() as server:
        memory = experiment_in("memory", "memory", past)
        print(f"ask + tell with {past:,} trials in the log")
        print(f"{'':<46} {'rounds a second':>15} {'us a round':>12} {'ratio':>8}")
        row("dobandit, in memory", rounds_a_second(memory, seconds), None)
        file = f"sqlite:///{folder}/ours.db"
        theirs = optuna_file(folder, past) if has_optuna() else None
        compare("SQLite", file, theirs, past, seconds)
        if server is not None:
            theirs = optuna_database(server, past) if has_optuna() else None
            compare("PostgreSQL", server.new_database(), theirs, past, seconds)
        rounds = 10 * past
        took = replay(rounds, f"sqlite:///{folder}/replay.db")
        print(f"\nreplay of {rounds:,} rounds, to the first ask: {took:.2f} s")


def compare(database: str, ours: str, theirs: str | None, past: int, seconds: float) -> None:
    """Ratios are against Optuna with its cheapest sampler."""
    reference = None
    if theirs is None:
        print(f"Optuna, {database}: not installed")
    else:
        row(f"Optuna, {database}, default sampler", optuna_rate(theirs, seconds, "tpe"), None)
        reference = optuna_rate(theirs, seconds, "random")
        row(f"Optuna, {database}, random sampler", reference, reference)
    single = experiment_in(ours, "one", past)
    row(f"dobandit, {database}, one process", rounds_a_second(single, seconds), reference)
    single.close()
    row(f"dobandit, {database}, eight processes together", in_processes(8, ours, "one", seconds), reference)


if __name__ == "__main__":
    main()
