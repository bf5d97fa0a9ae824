"""How often intervals miss over whole runs, how wide they are, and how soon they decide, in worlds drawn by seed.

    python benchmarks/bench_coverage.py                                    (a quick look: 8 runs of each kind)
    python benchmarks/bench_coverage.py --runs 200 --first 1000 --workers 2
    python benchmarks/bench_coverage.py --kinds parity chain --runs 50

Each run is 3,000 rounds of CausalUCB in a world of its own, one round in ten without anything set, looked at 9 times.
Per kind: the median width of the recommended action's interval and the median gap, the share of looks at which the
uplift is decided, and in how many runs an interval missed at some look: that of the value, of the uplift, the gap. At
95% one run in twenty may. `proof`: the same of what is guaranteed. "marked": runs in which a doubt was shown at some
look. "silent": runs in which something missed at a look without a doubt. Where a link is promised, each run is an
experiment that is asked for trials of 10 rounds, and a doubt is one that `recommend` shows; elsewhere it is what the
engine says against the graph.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import dobandit as dob
from dobandit.policy.answers import Recommendation
from dobandit.policy.engine import Rounds
from dobandit.policy.learner import Learner

LOOKS = (50, 100, 200, 400, 700, 1000, 1500, 2000, 3000)
CONTROL = 0.1
BUDGET = 2
Array = NDArray[np.float64]
Table = Callable[[np.random.Generator, Array], Array]


# -- worlds ---------------------------------------------------------------------------------------------------


def straight(rng: np.random.Generator, patterns: Array, negative: float = 0.0) -> Array:
    """A line within [0, 1], with that share of negative weights."""
    d = patterns.shape[1]
    weights = rng.uniform(0.2, 1.0, d)
    weights *= rng.uniform(0.5, 0.9) / weights.sum() * np.where(rng.random(d) < negative, -1.0, 1.0)
    low, high = -weights[weights < 0].sum(), weights[weights > 0].sum()
    return rng.uniform(low + 0.02, 0.98 - high) + patterns @ weights


def curved(rng: np.random.Generator, patterns: Array) -> Array:
    d = patterns.shape[1]
    weights = rng.uniform(0.7, 2.5, d) * np.where(rng.random(d) < 0.35, -1.0, 1.0)
    return 1.0 / (1.0 + np.exp(-(rng.normal(0.0, 0.7) - 0.5 * weights.sum() + patterns @ weights)))


def any_table(rng: np.random.Generator, patterns: Array) -> Array:
    return rng.random(len(patterns))


def parity(rng: np.random.Generator, patterns: Array) -> Array:
    flip = rng.uniform(0.05, 0.25)
    return np.where(patterns.sum(axis=1) % 2 == 1, 1.0 - flip, flip)


def certain(rng: np.random.Generator, patterns: Array) -> Array:
    """And, or, or any table."""
    kind = rng.random()
    return patterns.max(axis=1) if kind < 0.25 else patterns.min(axis=1) if kind < 0.5 else rng.random(len(patterns))


TABLES: dict[str, Table] = {
    "linear": straight,
    "mixed signs": partial(straight, negative=0.4),
    "logistic": curved,
    "tables": any_table,
    "rare causes": straight,
    "parity": parity,
    "deterministic": certain,
    "chain of 10": straight,
}


class World(NamedTuple):
    model: dob.TableModel
    levers: list[str]

    def draw(self, rng: np.random.Generator, do: dict[str, float], known: dict[str, float]) -> dict[str, float]:
        """What is seen in a round."""
        graph, seen = self.model.graph, dict(known)
        for name in graph.topological_order:
            if name in do:
                seen[name] = do[name]
            elif name not in known:
                p = self.model.tables[name][tuple(int(seen[parent]) for parent in graph.parents(name))]
                seen[name] = float(rng.random() < p)
        return seen


def world_of(kind: str, seed: int, context: bool = False, levers: int = 4, middle: int = 3) -> World:
    """Levers, nodes between and the target; or a chain of 10 that each third lever moves."""
    rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
    names = [f"x{i}" for i in range(levers)]
    parents = chain(names) if kind == "chain of 10" else between(rng, names, [f"m{i}" for i in range(middle)])
    if context:
        parents = {"c": [], **parents, "Y": [*parents["Y"], "c"]}
    edges = [(p, v) for v, of in parents.items() for p in of]
    graph = dob.CausalGraph(edges, "Y", (), names, nodes=list(parents), context=["c"] if context else ())
    tables = {}
    for name in parents:
        d = len(graph.parents(name))
        patterns = np.array(list(itertools.product([0.0, 1.0], repeat=d))).reshape(1 << d, d)
        root = rng.uniform(0.01, 0.06) if kind == "rare causes" else rng.uniform(0.1, 0.6)
        tables[name] = (TABLES[kind](rng, patterns) if d else np.array(root)).reshape((2,) * d)
    return World(dob.TableModel(graph, tables), names)


def chain(levers: list[str]) -> dict[str, list[str]]:
    parents: dict[str, list[str]] = {name: [] for name in levers}
    for i in range(10):
        parents[f"m{i}"] = ([f"m{i - 1}"] if i else []) + ([levers[i // 3]] if i % 3 == 0 else [])
    return {**parents, "Y": ["m9"]}


def between(rng: np.random.Generator, levers: list[str], middle: list[str]) -> dict[str, list[str]]:
    parents: dict[str, list[str]] = {name: [] for name in levers}
    for i, name in enumerate(middle):
        causes = levers + middle[:i]
        parents[name] = sorted(rng.choice(causes, size=int(rng.integers(1, 4)), replace=False).tolist())
    used = {p for of in parents.values() for p in of}
    some = rng.choice(levers + middle, size=int(rng.integers(1, 3)), replace=False).tolist()
    parents["Y"] = sorted({*(m for m in middle if m not in used), *some})[:4]
    used |= set(parents["Y"])
    for lever in levers:
        if lever not in used:
            name = middle[int(rng.integers(len(middle)))]
            parents[name] = sorted({*parents[name], lever})
    return parents


# -- ways to tell ---------------------------------------------------------------------------------------------


def one_by_one(learner: Learner, world: World, rng: np.random.Generator, missing: float = 0.0) -> Iterator[int]:
    """Ask and tell; yields how many rounds were told."""
    names = world.model.graph.context
    for t in itertools.count(1):
        known = {name: float(rng.random() < world.model.tables[name]) for name in names}
        do = {} if rng.random() < CONTROL else learner.propose(context=known)
        seen = world.draw(rng, do, known)
        kept = {name: x for name, x in seen.items() if name in (*do, *known, "Y") or rng.random() >= missing}
        learner.update(do, kept)
        yield t


def in_batches(learner: Learner, world: World, rng: np.random.Generator, size: int, late: int) -> Iterator[int]:
    """Batches of equal rows with counts, told so many batches late."""
    told, under_way = 0, []
    while True:
        do = {} if rng.random() < CONTROL else learner.propose(pending=[action for action, _ in under_way])
        under_way.append((do, [world.draw(rng, do, {}) for _ in range(size)]))
        if len(under_way) > late:
            do, rows = under_way.pop(0)
            learner.take(*as_batch(learner, do, rows))
            told += size
            yield told


def as_batch(learner: Learner, do: dict[str, float], rows: list[dict[str, float]]) -> tuple[Rounds, NDArray[np.int64]]:
    values = np.array([[1.0, *(row[name] for name in learner.graph.nodes)] for row in rows])
    values, counts = np.unique(values, axis=0, return_counts=True)
    was_set = np.tile([False, *(name in do for name in learner.graph.nodes)], (len(values), 1))
    return Rounds(values, was_set, counts.astype(np.int64)), np.array([len(values)])


def asked(experiment: dob.Experiment, world: World, rng: np.random.Generator, size: int = 10) -> Iterator[int]:
    """Trials of an experiment, so many rounds each."""
    for told in itertools.count(size, size):
        trial = experiment.ask(size=size)
        experiment.tell(trial, [world.draw(rng, dict(trial.do), {}) for _ in range(size)])
        yield told


def after_history(learner: Learner, world: World, rng: np.random.Generator) -> Iterator[int]:
    """400 rows in which nothing was set, summed up, and then live rounds."""
    learner.take(*as_batch(learner, {}, [world.draw(rng, {}, {}) for _ in range(400)]))
    return one_by_one(learner, world, rng)


class Setting(NamedTuple):
    """A kind of world, and how the learner is started and told."""

    world: str
    tell: Callable[[Learner, World, np.random.Generator], Iterator[int]] = one_by_one
    context: bool = False
    links: str = "auto"


SETTINGS = {
    **{kind: Setting(kind) for kind in TABLES},
    "context": Setting("tables", context=True),
    "missing values": Setting("logistic", partial(one_by_one, missing=0.2)),
    "counts": Setting("tables", partial(in_batches, size=50, late=0)),
    "told late": Setting("logistic", partial(in_batches, size=10, late=5)),
    "history": Setting("linear", after_history),
    "right link": Setting("logistic", links="logistic"),
    "wrong link": Setting("parity", links="logistic"),
}


# -- looking --------------------------------------------------------------------------------------------------


class Look(NamedTuple):
    """What is shown at a look, and whether it misses. Numbers twice: of the practical interval, and of the proof."""

    t: int
    width: tuple[float, float]
    gap: tuple[float, float]
    decided: tuple[bool, bool]
    missed: tuple[tuple[bool, bool, bool], tuple[bool, bool, bool]]
    marked: bool


def run(kind: str, seed: int, at: tuple[int, ...] = LOOKS) -> list[Look]:
    """The looks of one run, after so many rounds."""
    warnings.simplefilter("ignore")
    setting = SETTINGS[kind]
    world, rng = world_of(setting.world, seed, setting.context), np.random.default_rng([seed, 5])
    known = dict.fromkeys(world.model.graph.context, 1.0)
    actions = [dict.fromkeys(s, 1.0) for k in range(BUDGET + 1) for s in itertools.combinations(world.levers, k)]
    truth = {frozenset(do): dob.expect(world.model, {**known, **do}).value for do in actions}
    if setting.links == "auto":
        learner = dob.CausalUCB().start(world.model.graph, budget=BUDGET, seed=seed)
        told, answer = setting.tell(learner, world, rng), partial(assessed, learner, known)
    else:
        experiment = dob.create_experiment(
            f"{kind} {seed}",
            world.model.graph,
            BUDGET,
            storage="memory",
            seed=seed,
            links=setting.links,
            control=CONTROL,
        )
        told, answer = asked(experiment, world, rng), partial(recommended, experiment)
    looks, found = list(at), []
    for t in told:
        if t >= looks[0]:
            looks.pop(0)
            found.append(look(*answer(), t, truth))
            if not looks:
                return found
    return found


def assessed(learner: Learner, known: dict[str, float]) -> tuple[Recommendation, bool]:
    """What a learner says of its best action, and whether it doubts the graph."""
    return learner.assess(context=known or None), bool(learner.engine.revisions) or bool(learner.engine.findings())


def recommended(experiment: dob.Experiment) -> tuple[Recommendation, bool]:
    """What an experiment recommends, and whether it says that the rounds contradict the model."""
    said = experiment.recommend()
    return said, said.verdict == "contradicted"


def look(said: Recommendation, marked: bool, t: int, truth: dict[frozenset[str], float]) -> Look:
    value, best, nothing = truth[frozenset(said.do)], max(truth.values()), truth[frozenset()]
    proof = said.guaranteed
    if proof is None or proof.uplift is None or proof.gap is None or said.uplift is None or said.gap is None:
        raise RuntimeError("narrow graphs of 0 and 1 have every interval")
    pairs = ((said.interval, said.uplift.interval, said.gap), (proof.interval, proof.uplift, proof.gap))
    return Look(
        t,
        tuple(interval.high - interval.low for interval, _, _ in pairs),
        tuple(gap for _, _, gap in pairs),
        tuple(not said.do or uplift.low > 0.0 or uplift.high < 0.0 for _, uplift, _ in pairs),
        tuple(
            (outside(value, interval), outside(value - nothing, uplift), best - value > gap + 1e-9)
            for interval, uplift, gap in pairs
        ),
        marked,
    )  # type: ignore[arg-type]


def outside(truth: float, interval: dob.Interval) -> bool:
    return not interval.low - 1e-9 <= truth <= interval.high + 1e-9


def row_of(kind: str, runs: list[list[Look]], which: int) -> str:
    def median(field: str, t: int) -> float:
        return float(np.median([getattr(one, field)[which] for looks in runs for one in looks if one.t == t]))

    def share(t: int) -> float:
        return float(np.mean([one.decided[which] for looks in runs for one in looks if one.t == t]))

    missed = [sum(any(one.missed[which][k] for one in looks) for looks in runs) for k in range(3)]
    marked = sum(any(one.marked for one in looks) for looks in runs)
    silent = sum(any(any(one.missed[which]) and not one.marked for one in looks) for looks in runs)
    numbers = [median("width", 1000), median("gap", 1000), median("gap", 3000), share(400), share(3000)]
    cells = [
        f"{kind:15}",
        *(f"{x:8.3f}" for x in numbers),
        *(f"{n:7}" for n in missed),
        *(f"{n:7}" for n in (marked, silent, len(runs))),
    ]
    return " ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--proof", action="store_true", help="also what is guaranteed")
    args = parser.parse_args()
    print("                width at     gap      gap  decided  decided   missed: value,")
    print("kind                1,000  at 1,000 at 3,000   at 400 at 3,000  uplift, gap     marked silent     of")
    with ProcessPoolExecutor(args.workers) as pool:
        for kind in args.kinds:
            runs = list(pool.map(partial(run, kind), range(args.first, args.first + args.runs)))
            print(row_of(kind, runs, 0), flush=True)
            if args.proof:
                print(row_of("  guaranteed", runs, 1), flush=True)


if __name__ == "__main__":
    main()
