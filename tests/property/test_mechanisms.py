"""Tian's factorisation against sums over the hidden variables, on random graphs with hidden common causes."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from dobandit import CausalGraph, CausalUCB
from dobandit.estimation.mixture import TABLE
from dobandit.graph.hiding import reduced
from dobandit.graph.interventional_borders import bits
from dobandit.graph.mechanisms import Mechanism, mechanisms_of


class World:
    """A random graph with tables: observed nodes 0 to n - 1 in causal order, then hidden common causes of two."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.n, hidden = int(rng.integers(4, 7)), int(rng.integers(1, 4))
        self.parents = [[p for p in range(v) if rng.random() < 0.45] for v in range(self.n)]
        for v in range(self.n - 1):  # everything leads somewhere
            if not any(v in self.parents[w] for w in range(v + 1, self.n)):
                self.parents[self.n - 1].append(v)
        pairs = [tuple(rng.choice(self.n, 2, replace=False)) for _ in range(hidden)]
        self.hidden = [self.n + i for i in range(hidden)]
        self.causes = [p + [u for u, pair in zip(self.hidden, pairs, strict=True) if v in pair]
                       for v, p in enumerate(map(sorted, self.parents))]  # fmt: skip
        self.tables = [rng.uniform(0.05, 0.95, 1 << len(causes)) for causes in self.causes]
        self.hidden_means = rng.uniform(0.2, 0.8, hidden)
        names = [f"V{v}" for v in range(self.n)]
        edges = [(names[p], names[v]) for v in range(self.n) for p in self.parents[v]]
        edges += [(f"U{i}", names[v]) for i, pair in enumerate(pairs) for v in pair]
        whole = CausalGraph(edges, target=names[-1], nodes=names, latent=[f"U{i}" for i in range(hidden)])
        self.whole, self.graph = whole, reduced(whole)
        self.mechanisms = mechanisms_of(whole, self.graph)
        self.place = {self.graph.index(name): v for v, name in enumerate(names)}  # of an id

    def joint(self, do):
        """P(observed | do), an axis for each node, summed over the hidden variables."""
        total = np.zeros((2,) * self.n)
        for world in product((0, 1), repeat=self.n + len(self.hidden)):
            chance = 1.0
            for mean, value in zip(self.hidden_means, world[self.n :], strict=True):
                chance *= mean if value else 1 - mean
            for v in range(self.n):
                if v in do:
                    chance *= world[v] == do[v]
                    continue
                p = self.tables[v][sum(world[c] << j for j, c in enumerate(self.causes[v]))]
                chance *= p if world[v] else 1 - p
            total[world[: self.n]] += chance
        return total

    def actions(self):
        for size in range(self.n):
            for chosen in combinations(range(self.n - 1), size):
                for values in product((0, 1), repeat=size):
                    yield dict(zip(chosen, values, strict=True))

    def mask(self, do):
        return sum(1 << id_ for id_, v in self.place.items() if v in do)


def conditional(joint, v, causes, pattern):
    """P(v = 1 | causes = pattern); None where the pattern does not happen."""
    where = [slice(None)] * joint.ndim
    for cause, value in zip(causes, pattern, strict=True):
        where[cause] = value
    where[v] = 0
    zero = joint[tuple(where)].sum()
    where[v] = 1
    one = joint[tuple(where)].sum()
    return one / (zero + one) if zero + one > 1e-12 else None


@pytest.mark.parametrize("seed", range(12))
def test_the_factorisation_equals_the_sum_over_hidden_variables(seed):
    world, tables = World(seed), {}
    for do in world.actions():
        joint, at_work = world.joint(do), world.mechanisms.at_work(world.mask(do))
        free = [world.place[one.node] for one in at_work]
        others = tuple(v for v in range(world.n) if v not in free and v not in do)
        marginal = joint.sum(axis=others, keepdims=True)
        for values in product((0, 1), repeat=len(free)):
            point = {**do, **dict(zip(free, values, strict=True))}
            product_ = 1.0
            for one in at_work:
                v, causes = world.place[one.node], [world.place[c] for c in one.causes]
                assert set(causes) <= set(point)
                pattern = tuple(point[c] for c in causes)
                p = conditional(joint, v, causes, pattern)
                tables.setdefault((one, pattern), []).append(p)
                product_ *= p if point[v] else 1 - p
            assert product_ == pytest.approx(marginal[tuple(point.get(v, 0) for v in range(world.n))], abs=1e-12)
    for told in tables.values():  # whatever is set: the same mechanism, the same table
        assert max(told) - min(told) < 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_rounds_show_the_mechanisms_that_they_are_said_to_show(seed):
    world = World(seed)
    truth, shown = {}, 0
    actions = [(do, world.joint(do), world.mask(do)) for do in world.actions()]
    mechanisms = world.mechanisms.of_sets({mask for _, _, mask in actions})
    for do, joint, mask in actions:
        for one in mechanisms:
            if not world.mechanisms.shows(mask, one):
                assert one not in world.mechanisms.at_work(mask)
                continue
            causes = [world.place[c] for c in one.causes]
            for pattern in product((0, 1), repeat=len(causes)):
                p = conditional(joint, world.place[one.node], causes, pattern)
                if p is not None:
                    shown += 1
                    assert truth.setdefault((one, pattern), p) == pytest.approx(p, abs=1e-12), (do, one)
    assert shown > len(truth)


@pytest.mark.parametrize("seed", range(12))
def test_no_mechanism_is_counted_twice_and_none_is_missing(seed):
    """By brute force: the components of every set, found by joining pairs until nothing changes."""
    world = World(seed)
    names = world.graph.nodes
    shared = {frozenset((v, w)) for v, mask in world.mechanisms.shared.items() for w in bits(mask)}
    ids, target = range(1, len(names) + 1), world.graph.arrays.target
    parents = {v: [world.graph.index(name) for name in world.graph.parents(names[v - 1])] for v in ids}
    expected, above = set(), {target}
    while more := {p for v in above for p in parents[v]} - above:
        above |= more
    for size in range(len(names)):
        for chosen in combinations([v for v in ids if v != target], size):
            free = [v for v in above if v not in chosen]
            causes = {}
            for v in free:
                component, grew = {v}, True
                while grew:
                    more = {w for w in free if w <= v and any(frozenset((w, c)) in shared for c in component)}
                    grew, component = bool(more - component), component | more
                causes[v] = component, component | {p for c in component for p in parents[c]} - {v}
            needed, grew = {target}, True
            while grew:
                more = {p for v in needed if v in causes for p in causes[v][1]} - needed
                needed, grew = needed | more, bool(more)
            expected |= {(v, frozenset(causes[v][0])) for v in needed & set(free)}
    masks = [sum(1 << v for v in chosen) for size in range(len(names)) for chosen in combinations(ids, size)]
    found = world.mechanisms.of_sets(mask for mask in masks if not mask >> target & 1)
    assert {(one.node, frozenset(bits(one.component))) for one in found} == expected
    assert len(found) == len(expected)


def told_exactly(world):
    """A learner whose cells have seen very many rounds, with the true shares."""
    learner = CausalUCB().start(
        world.whole, world.n - 1, effects="any", levers=dict.fromkeys(world.whole.controllable, (0, 1))
    )
    state, regimes = learner.engine.state, learner.engine.believed.regimes
    ids = range(1, len(world.graph) + 1)
    own = [
        Mechanism(v, 1 << v, tuple(sorted(map(world.graph.index, world.graph.parents(world.graph.nodes[v - 1])))))
        for v in ids
    ]
    state.members["weight"].reshape(-1, 4)[:] = np.arange(4) == TABLE
    for do in world.actions():
        joint = world.joint(do)
        for node, one in enumerate([*own, *regimes.further], start=1):
            causes = [world.place[c] for c in one.causes]
            for k in range(1 << len(causes) if world.mechanisms.shows(world.mask(do), one) else 0):
                cell = state.cells[state.nodes["cell"][node] + k]
                values = [k >> j & 1 for j in range(len(causes))]
                if not cell["seen"] and (p := conditional(joint, world.place[one.node], causes, values)) is not None:
                    cell["seen"], cell["total"] = 1e12, 1e12 * p
    return learner


@pytest.mark.parametrize("seed", range(3))
def test_predictions_from_the_true_mechanisms_are_those_of_enumeration(seed):
    world = World(seed)
    learner = told_exactly(world)
    for do in world.actions():
        expected = world.joint(do).sum(axis=tuple(range(world.n - 1)))[1]
        assert learner.predict({f"V{v}": value for v, value in do.items()}).value == pytest.approx(expected, abs=1e-9)
