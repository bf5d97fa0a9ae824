"""Oracles: exact sets of known models, searched rounds at scale, greedy on a million nodes, Algorithm 4 and others.

    python benchmarks/bench_oracles.py [--nodes 1000000] [--edges 10000000] [--skip-large]

Absolute times depend on the machine and its load; ratios are taken in one run.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dobandit as dob
from dobandit.estimation.belief import layout_of
from dobandit.estimation.confidence import delta_blm_lr, radius_blm_lr
from dobandit.estimation.estimators import least_squares
from dobandit.oracle.action_list import action_list
from dobandit.oracle.actions import Allowed, order_of
from dobandit.oracle.greedy import greedy
from dobandit.oracle.objectives import CommonWorlds, change, linked
from dobandit.oracle.rules import Rules
from dobandit.oracle.search_space import Limits, Options
from dobandit.oracle.upper_means import upper_index, upper_means
from dobandit.policy.engine import Rounds, Situation, no_context

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference_oracles.epsilon_net import score_sets_epsilon_net


def timed(run, times=3):
    """(result, shortest time in seconds)."""
    best, result = math.inf, None
    for _ in range(times):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return result, best


def random_dag(nodes, parents, rng, spread=1.0, local=None):
    """A linear model: `spread` 0 makes all weights equal (near-equal gains), `local` keeps causes near (deep)."""
    ends = []
    for i in range(1, nodes):
        first = 0 if local is None else max(0, i - local)
        ends += [(int(j), i) for j in rng.choice(np.arange(first, i), size=min(i - first, parents), replace=False)]
    sources, destinations = np.array(ends).T
    names = [f"X{i}" for i in range(nodes - 1)] + ["Y"]
    graph = dob.CausalGraph.from_arrays(names, sources, destinations, "Y")
    weights = 1.0 - spread * rng.random(len(graph.arrays.parent))
    child = np.repeat(np.arange(nodes + 1), np.diff(graph.arrays.parent_ptr))
    weights /= 1.25 * np.bincount(child, weights=weights, minlength=nodes + 1)[child]
    return dob.BinaryGLM(graph, weights)


def exact_table():
    print("best set of a known linear model (branch and bound)")
    print(f"  {'instance':<44}{'K':>4}{'sets':>12}{'looked at':>11}{'seconds':>10}  status")
    rng = np.random.default_rng(0)
    hard = {
        "1,000 nodes, 8 causes": random_dag(1000, 8, rng),
        "1,000 nodes, equal weights": random_dag(1000, 8, rng, spread=0.0),
        "1,000 nodes, deep (causes among the last 12)": random_dag(1000, 4, rng, local=12),
        "300 elements, 100 sets, linear cover": dob_cover(rng, 100, 300),
        "parallel, 60 almost equal causes": parallel(60, rng),
    }
    dob.solve(hard["1,000 nodes, 8 causes"], 2, oracle="branch-and-bound")
    for label, model in hard.items():
        for budget in (5, 10):
            result = dob.solve(model, budget, oracle="branch-and-bound", time_limit=10)
            sets = math.comb(len(model.graph.controllable), budget)
            gap = "" if result.status == "optimal" else f" (gap {result.bound - result.value:.1e})"
            numbers = f"{budget:>4}{sets:>12.1e}{result.explored:>11,}{result.seconds:>10.4f}"
            print(f"  {label:<44}{numbers}  {result.status}{gap}")
    model = random_dag(60, 4, rng)
    slow, seconds = timed(lambda: dob.solve(model, 3, oracle="exhaustive"), 1)
    fast, quick = timed(lambda: dob.solve(model, 3, oracle="branch-and-bound"))
    assert abs(slow.value - fast.value) < 1e-9
    print(
        f"  60 nodes, K = 3: exhaustive {seconds:.2f} s for {slow.explored:,} sets, branch and bound {quick:.4f} s: "
        f"{seconds / quick:,.0f} times faster"
    )


def signed(model, rng, negative=0.4):
    """The model with a share of its effects turned negative, and biases raised so that probabilities stay in [0, 1]."""
    graph = model.graph
    child = np.repeat(np.arange(len(graph) + 1), np.diff(graph.arrays.parent_ptr))
    bias = graph.arrays.parent == 0
    theta = np.where((rng.random(len(child)) < negative) & ~bias, -model.theta, model.theta)
    down = np.bincount(child, weights=np.where(theta < 0.0, -theta, 0.0), minlength=len(graph) + 1)
    theta[bias] += down[child[bias]]
    new = dob.BinaryGLM(graph, model.theta)
    new.theta = theta
    return new


def signed_table():
    print("\nbest action of a known linear model with effects of both signs (branch and bound, limit 10 s)")
    print(f"  {'instance':<44}{'K':>4}{'set to':>8}{'looked at':>11}{'seconds':>10}  status")
    rng = np.random.default_rng(5)
    models = {f"{n} nodes, 4 causes": random_dag(n, 4, rng) for n in (20, 50, 100, 200)}
    models |= {f"{n} nodes, 30 causes": random_dag(n, 30, rng) for n in (50, 200)}
    models["1,000 nodes, 8 causes"] = random_dag(1000, 8, rng)
    models["1,000 nodes, deep (causes among the last 12)"] = random_dag(1000, 4, rng, local=12)
    models["parallel, 60 almost equal causes"] = parallel(60, rng)
    models = {label: signed(model, rng) for label, model in models.items()}
    dob.solve(models["20 nodes, 4 causes"], 2, oracle="branch-and-bound")  # compile
    for label, model in models.items():
        for budget in (3, 5, 10):
            for values in ((1,), (0, 1)):
                levers = dict.fromkeys(model.graph.controllable, values)
                result = dob.solve(model, budget, levers=levers, oracle="branch-and-bound", time_limit=10)
                gap = "" if result.status == "optimal" else f" (gap {result.bound - result.value:.1e})"
                shown = ",".join(map(str, values))
                numbers = f"{budget:>4}{shown:>8}{result.explored:>11,}{result.seconds:>10.4f}"
                print(f"  {label:<44}{numbers}  {result.status}{gap}")


def dob_cover(rng, sets, elements):
    from helpers.cover import cover_model

    groups = [set(rng.choice(elements, size=12, replace=False).tolist()) for _ in range(sets)]
    return cover_model(groups, linear=True)


def parallel(count, rng):
    weights = {f"X{i}": 0.5 for i in range(count)}
    weights |= {(f"X{i}", "Y"): (1 + 1e-3 * float(rng.random())) / (count * 1.01) for i in range(count)}
    return dob.BinaryGLM.blm(weights, "Y")


@dataclass
class Region:
    layout: object
    state: object
    rho: np.ndarray


def region_after(model, rounds, rng, scale=0.1, horizon=10_000):
    layout = layout_of(model.graph)
    estimator, state = least_squares(layout, 1.0)
    drawn = model.sample(size=rounds, rng=rng)
    rows = np.stack([np.ones(rounds), *(drawn[n] for n in model.graph.nodes)], axis=1).astype(float)
    estimator.learn(state, rows, np.zeros(rows.shape, dtype=bool), np.ones(rounds, dtype=np.int64))
    n = len(model.graph) + 1
    return Region(layout, state, np.full(n, radius_blm_lr(rounds, n, delta_blm_lr(n, horizon), scale)))


def search_table():
    print("\none round where sets are too many to list: 300 nodes with 3 causes each, K = 5 (goal: 50 ms)")
    print(f"  {'links':<20}{'causes among':>14}{'matter':>8}{'sets looked at':>16}{'ms (CPU)':>10}{'longest':>9}")
    for links in ("identity", "auto", "exponential"):
        for local in (20, 60, None):
            rng = np.random.default_rng(6)
            model = random_dag(300, 3, rng, local=local)
            if links == "exponential":
                model = dob.BinaryGLM(model.graph, model.theta, links=links)
            search_row(dob.CausalUCB(), model, links, "all before" if local is None else f"the last {local}", rng)
    for region in ("closed-form", "boxed"):
        rng = np.random.default_rng(6)
        policy = dob.BLMLR(radius_scale=0.1, region=region)
        search_row(policy, random_dag(300, 3, rng, local=20), None, "the last 20", rng, f"BLM-LR, {region}")


def search_row(policy, model, links, among, rng, label=None):
    graph, rows, times = model.graph, 60, []
    learner = policy.start(graph, 5, links=links)
    for _ in range(12):
        now = Situation(rng.random(3), no_context(len(graph)))
        start = time.process_time()
        chosen = learner.engine.choose(now).action
        times.append(time.process_time() - start)
        values, was_set = np.ones((rows, len(graph) + 1)), np.zeros((rows, len(graph) + 1), dtype=bool)
        for name, column in model.sample(chosen.named(graph), rows, rng=rng).items():
            values[:, graph.index(name)] = column
        was_set[:, list(chosen.ids)] = True
        learner.engine.update(Rounds(values, was_set, np.ones(rows, dtype=np.int64)))
    plan = learner.engine.evaluator.plan
    typical, longest = 1e3 * np.median(times[1:]), 1e3 * max(times[1:])  # the first compiles
    sizes = f"{len(plan.actions.order):>8}{int(plan.rules[0]['explored']):>16,}"
    print(f"  {label or links:<20}{among:>14}{sizes}{typical:>10.1f}{longest:>9.1f}")


def large_greedy(nodes, edges):
    rng = np.random.default_rng(2)
    heads = np.sort(rng.integers(2, nodes + 1, edges))
    tails = (heads - rng.integers(1, np.minimum(1000, heads - 1) + 1)).astype(np.int64)
    theta = rng.random(edges)
    theta /= 1.2 * np.bincount(heads, weights=theta, minlength=nodes + 1)[heads]
    ancestors = linked(heads, tails, theta, nodes + 1)
    graph_bytes = sum(array.nbytes for array in ancestors)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    node = np.arange(1, nodes)

    def take(steps):
        """The steps of `oracle.greedy` on a bare graph; `Options` of so many names would take longer."""
        blocked, mean, paths = np.zeros(len(node), dtype=bool), ancestors.nodes["mean"], ancestors.nodes["paths"]
        for _ in range(steps):
            best = int(np.argmax(np.where(blocked, -1.0, (1.0 - mean[node]) * paths[node])))
            blocked[best] = True
            change(ancestors, int(node[best]), 1.0)
        return node[blocked].tolist()

    for v in take(1):  # compiled now, and free again
        change(ancestors, v, np.nan)
    _, seconds = timed(lambda: take(50), 1)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(
        f"\ngreedy, {nodes:,} nodes, {edges:,} edges, K = 50: {seconds:.2f} s on one core (goal: 5 s); "
        f"memory beyond the graph's {graph_bytes / 1e6:.0f} MB: {grown / 1e6:.0f} MB"
    )


def lazy_table():
    """Y has more causes than K and is neither rare nor certain: once its causes are all set, gains are 0 and every
    candidate is looked at once more, which says little."""
    print("\ngreedy on nonlinear links, K = 5, 10,000 worlds: lazy (CELF) against every candidate in every step")
    print(f"  {'link':<20}{'n':>6}{'E[Y] from':>11}{'to':>6}{'sets, lazy':>12}{'plain':>7}", end="")
    print(f"{'s, lazy':>9}{'plain':>7}{'ratio':>7}{'by expect':>11}")
    links = {
        "logistic, shift 3": ({"name": "logistic", "shift": 3.0}, 5.0),
        "probit, shift 2": ({"name": "probit", "shift": 2.0}, 3.0),
        "cascade": ("exponential", 1.0),
    }
    for label, (link, scale) in links.items():
        for nodes in (200, 1_000):
            linear = random_dag(nodes, 8, np.random.default_rng(4), local=60)
            model = dob.BinaryGLM(linear.graph, scale * linear.theta, links=link)
            allowed = Allowed(model.graph, Rules(5), monotone=True, relevant=set(order_of(model.graph)))
            lazy_row(label, model, Options(allowed))
    print("  ratio: plain / lazy; by expect: plain greedy with one `expect` a set (one timed x sets) / lazy")


def lazy_row(label, model, options):
    def run(lazy):
        return greedy(CommonWorlds(model), options, Limits(), lazy)

    run(True)  # compile
    lazily, quick = timed(lambda: run(True))
    plainly, slow = timed(lambda: run(False))
    _, one = timed(lambda: dob.expect(model, options.allowed.names[:1], "monte-carlo", samples=10_000))
    same = "same set" if sorted(lazily.chosen) == sorted(plainly.chosen) else f"plain {plainly.value:.4f}"
    many = plainly.looked
    counts = f"{len(model.graph):>6,}{lazily.start:>11.3f}{lazily.value:>6.2f}{lazily.looked:>12,}{many:>7,}"
    print(f"  {label:<20}{counts}{quick:>9.2f}{slow:>7.2f}{slow / quick:>7.1f}{one * many / quick:>11,.0f}  {same}")


def algorithm4_table():
    print(
        "\none round's oracle on G5 after 1,000 rounds "
        "(the paper: Algorithm 4 is 30 times faster than an epsilon-net with 0.01)"
    )
    rng = np.random.default_rng(3)
    model = dob.paper.G5
    region = region_after(model, 1_000, rng)
    order = order_of(model.graph)
    actions = action_list(order, Allowed(model.graph, Rules(2), monotone=True, relevant=set(order)).rows())
    plan, state, layout = upper_means(model.graph, actions), region.state, region.layout
    free, draws, many = no_context(len(model.graph)), np.zeros(1), 2000
    upper_index(state, plan, free, region.rho, draws)  # compile

    def closed():
        for _ in range(many):
            upper_index(state, plan, free, region.rho, draws)

    _, seconds = timed(closed)
    closed_seconds, best_closed = seconds / many, int(np.argmax(actions.scores["index"]))
    print(f"  {'oracle':<34}{'s per round':>16}{'times Algorithm 4':>19}")
    print(f"  {'Algorithm 4 (closed form)':<34}{closed_seconds:>16.2e}{1:>19.1f}")
    for epsilon in (0.05, 0.02, 0.01):
        start = time.perf_counter()
        values = score_sets_epsilon_net(layout, actions, state.slots["line"], state.pairs["gram"], region.rho, epsilon)
        seconds = time.perf_counter() - start
        same = "same set" if int(np.argmax(values)) == best_closed else "another set"
        label = f"epsilon-net, {epsilon:g} (NumPy)"
        print(f"  {label:<34}{seconds:>16.2e}{seconds / closed_seconds:>19,.0f}  {same}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--skip-large", action="store_true", help="leave out the million-node graph")
    arguments = parser.parse_args()
    exact_table()
    signed_table()
    search_table()
    if not arguments.skip_large:
        large_greedy(arguments.nodes, arguments.edges)
    lazy_table()
    algorithm4_table()
