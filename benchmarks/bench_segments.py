"""One experiment for all segments, against pooling them and against one experiment per segment, over random funnels.

Segments (mobile or not; in the wider funnels also returning or not) are known before acting; e-mail and push bring
visits, visits and a coupon bring purchases, all by logistic curves drawn by seed. How much the segments share:
all        each lever acts alike everywhere; only the level differs by segment
purchases  visits have curves of their own in every segment, purchases act alike
nothing    every segment has curves of its own
no buying  the segment is a cause of visits alone, with curves of its own in every segment
no visits  the segment is a cause of purchases alone, with curves of its own in every segment
In every funnel the best action depends on the segment. Loss per round is against the best action for each round's own
segment: its mean over funnels and runs, and what 95% of the runs stay below. Ahead by: how much less the contextual
experiment loses than one per segment, and the standard error of that over funnels.
Usage: bench_segments.py [rounds] [runs] [funnels] [seed of the first funnel] [links]
"""

import math
import sys
import zlib
from itertools import product

import numpy as np

import dobandit as dob

ROUNDS, RUNS, FUNNELS, FIRST = (int(a) for a in (sys.argv[1:] + ["1000", "10", "20", "100"][len(sys.argv) - 1 :])[:4])
LEVERS = ("email", "push", "coupon")
LINKS = sys.argv[5] if len(sys.argv) > 5 else "auto"
SHARED = ("all", "purchases", "nothing", "no buying", "no visits")
GAP = 0.02  # how much better the best action of a segment is than its second best, at least


def causes_of(segments, share):
    """What acts on visits and on purchases."""
    visit, buy = ([] if share == kind else segments for kind in ("no visits", "no buying"))
    return {"visit": [*visit, "email", "push"], "buy": [*buy, "visit", "coupon"]}


def graph_of(segments, share, known=True):
    edges = [(cause, effect) for effect, names in causes_of(segments, share).items() for cause in names]
    return dob.CausalGraph(edges, "buy", controllable=LEVERS, context=segments if known else [], nodes=segments)


def draw(rng, segments, share):
    """Tables of a funnel."""
    patterns = list(product((0, 1), repeat=len(segments)))

    def node(alike, strength, everywhere):
        level = rng.normal(-1.5, 0.5) + rng.normal(0.0, 1.2, len(patterns))
        effects = np.where(rng.random((len(patterns), 2)) < 0.3, 0.0, rng.uniform(0.3, strength, (len(patterns), 2)))
        if alike:
            level, effects = level[0] + np.array(patterns) @ rng.normal(0.0, 1.5, len(segments)), effects[:1]
        odds = level[:, None, None] + effects[:, :1, None] * [[0], [1]] + effects[:, 1:, None] * [[0, 1]]
        table = 1.0 / (1.0 + np.exp(-odds))
        return table[0] if everywhere else table.reshape((2,) * (len(segments) + 2))

    tables = {
        "visit": node(share == "all", 3.0, share == "no visits"),
        "buy": node(share in ("all", "purchases"), 2.5, share == "no buying"),
    }
    return tables | dict.fromkeys(segments, 0.5) | dict.fromkeys(LEVERS, 0.1)


def funnel(seed, segments, share):
    """A funnel's tables, of which the best action depends on the segment, by at least GAP in each."""
    for attempt in range(5_000):
        rng = np.random.default_rng([zlib.crc32(share.encode()), len(segments), seed, attempt])
        tables = draw(rng, segments, share)
        tops = [
            dob.solve(world, budget=1, oracle="exhaustive", top=2).top
            for world in each_segment(tables, segments, share)
        ]
        if all(top[0][1] - top[1][1] >= GAP for top in tops) and len({tuple(top[0][0]) for top in tops}) > 1:
            return tables
    raise RuntimeError(f"no funnel with seed {seed} has a best action that depends on the segment by {GAP}.")


def world_of(tables, segments, share, known=True):
    """The world, with the axes of its tables in the order of the graph's parents."""
    graph, causes = graph_of(segments, share, known), causes_of(segments, share)
    arranged = {
        name: np.transpose(table, [causes[name].index(p) for p in graph.parents(name)]) if name in causes else table
        for name, table in tables.items()
    }
    return dob.TableModel(graph, arranged)


def each_segment(tables, segments, share):
    world = world_of(tables, segments, share)
    for values in product((0, 1), repeat=len(segments)):
        yield world.knowing(dict(zip(segments, values, strict=True)))


def regret_of(world, rounds, seed):
    known = {"links": LINKS, "effects": "any", "workers": 1, "record": [rounds]}
    result = dob.simulate(world, [dob.CausalUCB()], rounds, RUNS, budget=1, seed=seed, **known)
    return result.regret(result.labels[0])[:, -1], result.best


def losses(seed, segments, share):
    """Loss in ROUNDS rounds of every run: contextual, per segment, pooled."""
    tables = funnel(seed, segments, share)
    one, best = regret_of(world_of(tables, segments, share), ROUNDS, seed)
    pooled, pooled_best = regret_of(world_of(tables, segments, share, known=False), ROUNDS, seed)
    part = ROUNDS // 2 ** len(segments)
    each = sum(regret_of(world, part, seed)[0] for world in each_segment(tables, segments, share))
    return one, each, pooled + ROUNDS * (best - pooled_best)


def main():
    seeds = range(FIRST, FIRST + FUNNELS)
    print(f"CausalUCB, links {LINKS}, {ROUNDS:,} rounds, funnels {seeds}, {RUNS} runs each: loss per round\n")
    print(
        f"{'segments share':<16}{'segments':>10}{'contextual':>18}{'one per segment':>18}{'pooled':>18}{'ahead by':>18}"
    )
    for segments in (["mobile"], ["mobile", "returning"]):
        for share in SHARED:
            found = np.stack([losses(seed, segments, share) for seed in seeds], axis=1) / ROUNDS
            cells = "".join(f"{row.mean():>10.4f}{np.quantile(row, 0.95):>8.4f}" for row in found)
            ahead = (found[1] - found[0]).mean(axis=1)
            error = ahead.std(ddof=1) / math.sqrt(FUNNELS) if FUNNELS > 1 else math.nan
            print(f"{share:<16}{2 ** len(segments):>10}{cells}{ahead.mean():>10.4f} +-{error:.4f}", flush=True)


if __name__ == "__main__":
    main()
