"""How long commands take, as multiples of `python -c "import numpy"` in the same run.

    python benchmarks/bench_command_line.py

Every command is a process of its own, with bytecode and compiled kernels in their caches. Medians of turns in which all
commands run one after the other. Goals: help under 2, show, list, tell and trials under 5, ask and recommend under 8.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dobandit as dob

TURNS = 11
ROUNDS = 50
GOALS = {"--help": 2, "experiment --help": 2, "show": 5, "list": 5, "trials": 5, "recommend": 8, "ask": 8, "tell": 5}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def started(arguments: list[str]) -> tuple[float, str]:
    """(seconds, what was printed) of a process."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return time.perf_counter() - start, done.stdout


def begun(storage: str) -> None:
    """An experiment with the usual policy, some rounds old."""
    graph = dob.CausalGraph(
        [("ad", "visit"), ("mail", "visit"), ("visit", "buy")], target="buy", controllable=["ad", "mail"]
    )
    experiment = dob.create_experiment("shop", graph, storage=storage, budget=1)
    for i in range(ROUNDS):
        trial = experiment.ask()
        experiment.tell(trial, {"ad": 0, "mail": 0, **trial.do, "visit": i % 2, "buy": int(i % 4 == 1)})


def turn(storage: str) -> dict[str, float]:
    """Seconds of every command."""

    def command(*words: str) -> tuple[float, str]:
        return started(["-m", "dobandit", "experiment", *words, "--storage", storage])

    seconds = {"numpy": started(["-c", "import numpy"])[0], "--help": started(["-m", "dobandit", "--help"])[0]}
    seconds["experiment --help"] = started(["-m", "dobandit", "experiment", "--help"])[0]
    for name, words in {"show": ["shop"], "list": [], "trials": ["shop", "--last", "3"], "recommend": ["shop"]}.items():
        seconds[name] = command(name, *words)[0]
    seconds["ask"], asked = command("ask", "shop", "--json")
    trial = json.loads(asked)
    seen = {"ad": 0, "mail": 0, **trial["do"], "visit": 1, "buy": 0}
    told = [f"{name}={value}" for name, value in seen.items() if name not in trial["do"]]
    seconds["tell"] = command("tell", "shop", str(trial["trial"]), *told)[0]
    return seconds


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{Path(folder) / 'shop.db'}"
        begun(storage)
        turn(storage)  # fills the caches
        turns = [turn(storage) for _ in range(TURNS)]
    median = {name: statistics.median(one[name] for one in turns) for name in turns[0]}
    print('Seconds of a command, and how many times `python -c "import numpy"`\n')
    print(f"{'import numpy':20s}{median['numpy']:8.3f}")
    for name, goal in GOALS.items():
        print(f"{name:20s}{median[name]:8.3f}{median[name] / median['numpy']:8.1f}x   (goal: under {goal})")


if __name__ == "__main__":
    main()
