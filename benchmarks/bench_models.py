"""Graphs and models: the linear pass, projection, variable elimination, and import time.

    python benchmarks/bench_models.py [--nodes 1000000] [--edges 10000000]

Absolute times depend on the machine and its load; the ratios are taken in one run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings

import numpy as np

import dobandit as dob
from dobandit.errors import DobanditWarning
from dobandit.kernels import kernel
from dobandit.model.inference import linear_pass


def best_of(run, times=5):
    """The shortest of several runs, in seconds."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def random_parents(nodes, edges, reach, rng):
    """CSR parents of a DAG on ids 0..nodes: each parent lies at most `reach` ids before its child."""
    child = np.sort(rng.integers(1, nodes + 1, edges))
    ptr = np.searchsorted(child, np.arange(nodes + 2))
    parent = (child - rng.integers(1, np.minimum(reach, child) + 1)).astype(np.int32)
    return ptr, parent


def linear_pass_table(nodes, edges):
    rng = np.random.default_rng(0)
    print(f"linear pass, {nodes:,} nodes, {edges:,} edges")
    print(f"  {'edges':<28}{'sum arrays once':>18}{'linear pass':>14}{'ratio':>8}")
    run = kernel(linear_pass)
    for label, reach in (("local (up to 1,000 back)", 1000), ("far (anywhere before)", nodes)):
        ptr, parent = random_parents(nodes, edges, reach, rng)
        theta = rng.random(edges) / (edges / nodes)
        fixed = np.full(nodes + 1, np.nan)
        means = np.empty(nodes + 1)
        run(ptr[:3], parent[:0], theta[:0], fixed[:2], means[:2])
        once = best_of(lambda: (theta.sum(), parent.sum(), ptr.sum(), fixed.sum(), means.sum()))  # noqa: B023
        passed = best_of(lambda: run(ptr, parent, theta, fixed, means))  # noqa: B023
        print(f"  {label:<28}{once * 1e3:>15.1f} ms{passed * 1e3:>11.1f} ms{passed / once:>8.1f}")


def projection_table(hidden):
    weights = {}
    for i in range(hidden):
        weights[f"U{i}"] = 0.1
        weights[f"A{i}"] = 0.5
        weights[f"U{i}", f"A{i}"] = 0.2
        weights[f"A{i}", "Y"] = 0.5 / hidden
        if i % 100:
            weights[f"U{i - 1}", f"U{i}"] = 0.3
    model = dob.BinaryGLM.blm(weights, "Y", latent=[f"U{i}" for i in range(hidden)])
    dob.project(model)
    print(
        f"\nprojection of a model with {hidden:,} hidden nodes: {best_of(lambda: dob.project(model), 3) * 1e3:.0f} ms"
    )


def elimination_table():
    print("\nexact E[Y | do] with logistic links, seconds")
    print(f"  {'graph':<34}{'elimination':>12}{'enumeration':>13}{'ratio':>10}")
    for label, nodes, reach in (
        ("16 nodes, up to 3 parents near by", 16, 3),
        ("200 nodes, up to 2 parents near by", 200, 2),
    ):
        rng = np.random.default_rng(1)
        edges = [(f"X{j}", f"X{i}") for i in range(1, nodes) for j in range(max(0, i - reach), i)]
        weights = {edge: float(rng.uniform(0.1, 1)) for edge in edges} | {f"X{i}": 0.2 for i in range(nodes)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DobanditWarning)
            graph = dob.CausalGraph(edges, target=f"X{nodes - 1}")
        model = dob.BinaryGLM(graph, weights, links={"name": "logistic", "shift": 1.5})
        fast = best_of(lambda: dob.expect(model, ["X1"], "elimination"), 3)  # noqa: B023
        if nodes <= 20:
            slow = best_of(lambda: dob.expect(model, ["X1"], "enumeration"), 3)  # noqa: B023
            print(f"  {label:<34}{fast:>12.4f}{slow:>13.4f}{slow / fast:>10.1f}")
        else:
            print(f"  {label:<34}{fast:>12.4f}{'2^199 worlds':>13}{'':>10}")


def import_table():
    code = "import time; t = time.perf_counter(); import dobandit; print(time.perf_counter() - t)"
    seconds = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)
        for _ in range(5)
    ]
    print(f"\nimport dobandit: {min(seconds):.3f} s (best of {len(seconds)}; goal: below 0.3 s)")


def sampling_table():
    rng = np.random.default_rng(2)
    weights = {f"X{i}": 0.1 for i in range(20)}
    weights |= {(f"X{j}", f"X{i}"): float(rng.uniform(0, 0.18)) for i in range(1, 20) for j in range(max(0, i - 5), i)}
    model = dob.BinaryGLM.blm(weights, "X19")
    print(f"\na million samples of a 20-node model: {best_of(lambda: model.sample(size=1_000_000, rng=0), 2):.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--hidden", type=int, default=10_000)
    arguments = parser.parse_args()
    linear_pass_table(arguments.nodes, arguments.edges)
    projection_table(arguments.hidden)
    elimination_table()
    sampling_table()
    import_table()
