"""How fast each format is parsed and printed: time and edges per second of a file with 10^5 edges.

python benchmarks/bench_formats.py [edges]
"""

from __future__ import annotations

import sys
import time

import numpy as np

from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import FORMATS, parse_graph, print_graph


def random_graph(edges: int, seed: int = 0) -> CausalGraph:
    """A DAG with ten edges a node, every node with a path to the target."""
    size = max(edges // 10, 5)
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, size, size=(edges * 5 // 4, 2)), axis=1)
    path = np.column_stack([np.arange(size - 1), np.arange(1, size)])
    ends = np.concatenate([path, ends[ends[:, 0] < ends[:, 1]]])
    _, first = np.unique(ends[:, 0] * size + ends[:, 1], return_index=True)
    ends = ends[np.sort(first)[:edges]]
    return CausalGraph.from_arrays([f"v{i}" for i in range(size)], ends[:, 0], ends[:, 1], target=f"v{size - 1}")


def main(edges: int) -> None:
    graph = random_graph(edges)
    print(f"{graph.edge_count} edges, {len(graph)} nodes")
    print(f"{'format':<10}{'MB':>7}{'print s':>10}{'parse s':>10}{'edges/s':>12}")
    for name in FORMATS:
        start = time.perf_counter()
        text = print_graph(graph, name)
        printed = time.perf_counter() - start
        start = time.perf_counter()
        again = parse_graph(text, name)
        parsed = time.perf_counter() - start
        if again != graph:
            raise SystemExit(f"{name}: the parsed graph differs from the printed one")
        rate = round(graph.edge_count / parsed)
        print(f"{name:<10}{len(text) / 1e6:>7.2f}{printed:>10.3f}{parsed:>10.3f}{rate:>12,}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
