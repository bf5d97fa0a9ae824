"""How long a ranking takes: 20,000 rows, some 10,000 sets.

    python benchmarks/bench_rank.py

The first ranking of a process may compile kernels, unless a process before it did.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import dobandit as dob

LEVERS, BUDGET, ROWS = 23, 4, 20_000


def world() -> dob.BinaryGLM:
    """23 levers on five stages of a funnel, which bring the target about."""
    levers, stages = [f"x{i}" for i in range(LEVERS)], [f"m{i}" for i in range(5)]
    edges = [(name, stages[i % 5]) for i, name in enumerate(levers)] + [(stage, "y") for stage in stages]
    graph = dob.CausalGraph(edges, target="y", controllable=levers)
    rng = np.random.default_rng(0)
    weights: dict[object, float] = dict.fromkeys(levers, 0.3) | dict.fromkeys(stages, -1.0) | {"y": -2.0}
    weights |= {edge: float(rng.normal(0.4, 0.6)) for edge in edges}
    return dob.BinaryGLM(graph, weights=weights, links=dict.fromkeys([*stages, "y"], "logistic"))


def table(model: dob.BinaryGLM, sets: int, path: Path) -> None:
    """Rounds with so many different sets played, as CSV."""
    rng, names = np.random.default_rng(1), model.graph.nodes
    lines = [",".join([*names, "intervention_targets"])]
    for _ in range(sets):
        chosen = rng.choice(model.graph.controllable, size=int(rng.integers(0, BUDGET + 1)), replace=False)
        drawn = model.sample(dict.fromkeys(chosen.tolist(), 1), size=ROWS // sets, rng=rng)
        columns = [drawn[name].astype(int).astype(str) for name in names]
        lines += [",".join(cells) + f",{' '.join(chosen)}" for cells in zip(*columns, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    model = world()
    with tempfile.TemporaryDirectory() as folder:
        for sets in (1, 1_000):
            path = Path(folder) / "rows.csv"
            table(model, sets, path)
            for turn in ("first", "again"):
                start, busy = time.perf_counter(), time.process_time()
                ranking = dob.rank(model.graph, path, BUDGET)
                nodes = len(ranking.fit.nodes)
                print(
                    f"{ranking.rounds:,} rows, {sets:,} sets played, {len(ranking.actions):,} ranked, {nodes} nodes: "
                    f"{time.perf_counter() - start:.2f} s, {time.process_time() - busy:.2f} s of CPU ({turn})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
