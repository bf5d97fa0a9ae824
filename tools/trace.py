"""How many files and functions of dobandit a call passes through: ask, tell, recommend, explain and rank on a funnel.

python tools/trace.py [--list ask]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import dobandit as dob

HOME = str(Path(dob.__file__).parent)
EDGES = [("coupon", "visit"), ("email", "visit"), ("visit", "buy"), ("coupon", "buy")]
ROWS = [
    {"do:coupon": 1, "email": 0, "visit": 1, "buy": 1, "count": 30},
    {"coupon": 0, "do:email": 1, "visit": 1, "buy": 0, "count": 30},
    {"coupon": 0, "email": 0, "visit": 0, "buy": 0, "count": 60},
]


def traced(run: Callable[[], Any]) -> Counter[tuple[str, str]]:
    """How often each function of dobandit was called, by its file and name."""
    calls: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOME):
            calls[code.co_filename.removeprefix(HOME + "/"), code.co_qualname] += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", default="", help="a call of which every function is listed")
    listed = parser.parse_args().list
    warnings.simplefilter("ignore")
    graph = dob.CausalGraph(EDGES, target="buy")
    with tempfile.TemporaryDirectory() as folder:
        experiment = dob.create_experiment("traced", graph, 1, storage=f"sqlite:///{folder}/traced.db", seed=0)
        for _ in range(3):  # what happens once for each process is no part of a call
            trial = experiment.ask()
            experiment.tell(trial, {"coupon": 0, "email": 0, "visit": 1, "buy": 1, **trial.do})
            experiment.recommend()
        calls = {
            "ask": experiment.ask,
            "tell": lambda: experiment.tell(3, {"visit": 1, "buy": 0}),
            "recommend": experiment.recommend,
            "explain": lambda: experiment.explain(3),
            "rank": lambda: dob.rank(graph, ROWS, budget=1),
        }
        print(f"{'':10} {'files':>6} {'functions':>10} {'calls':>7}")
        for name, run in calls.items():
            found = traced(run)
            print(f"{name:10} {len({file for file, _ in found}):6} {len(found):10} {found.total():7}")
            if name == listed:
                for (file, function), times in sorted(found.items()):
                    print(f"    {file}: {function} {times}")


if __name__ == "__main__":
    main()
