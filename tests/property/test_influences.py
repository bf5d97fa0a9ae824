"""What E[Y] of an action rests on: influences against numerical derivatives, visits against all rounds one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dobandit as dob
from dobandit.oracle.frontier import frontier_of, patterns_in, table_list
from dobandit.oracle.node_tables import node_tables
from dobandit.policy.influences import Influences, bearing_rows, influences_of

EDGES = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "Y"), ("d", "Y"), ("a", "Y")]
ACTIONS: list[dict[str, float]] = [{}, {"b": 1.0}, {"b": 0.0, "c": 1.0}, {"a": 1.0, "d": 0.0}]


class Cells:
    """A model of random tables, with its probabilities in the frontier's numbering."""

    def __init__(self, seed: int) -> None:
        self.graph = dob.CausalGraph(EDGES, "Y")
        rng = np.random.default_rng(seed)
        self.order = [self.graph.index(name) for name in self.graph.topological_order]
        self.frontier = frontier_of(self.graph, np.array(self.order))
        assert self.frontier is not None
        self.p = rng.uniform(0.05, 0.95, patterns_in(self.frontier.tables))

    def of(self, depth: int) -> slice:
        _, first, patterns = self.frontier.tables.tolist()[depth]
        return slice(first, first + patterns)

    def model(self, p: np.ndarray) -> dob.TableModel:
        tables = {}
        for depth, v in enumerate(self.order):
            name = self.graph.nodes[v - 1]
            d = len(self.graph.parents(name))
            tables[name] = p[self.of(depth)].reshape((2,) * d, order="F")
        return dob.TableModel(self.graph, tables)

    def influences(self) -> Influences:
        regimes = np.zeros(len(ACTIONS), dtype=np.int64)
        return influences_of(self.frontier.steps, self.frontier.states, self.p, self.held(), regimes)

    def held(self) -> np.ndarray:
        names = [self.graph.nodes[v - 1] for v in self.order]
        return np.array([[do.get(name, math.nan) for name in names] for do in ACTIONS])


@pytest.mark.parametrize("seed", range(3))
def test_influences_are_derivatives(seed: int) -> None:
    cells = Cells(seed)
    found = cells.influences()
    for i, do in enumerate(ACTIONS):
        assert found.value[i] == pytest.approx(dob.expect(cells.model(cells.p), do).value, abs=1e-12)
        for at in range(len(cells.p)):
            moved = [cells.p.copy(), cells.p.copy()]
            moved[0][at] += 1e-3
            moved[1][at] -= 1e-3
            up, down = (dob.expect(cells.model(p), do).value for p in moved)
            assert found.influence[i, at] == pytest.approx((up - down) / 2e-3, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_visits_are_how_likely_a_round_meets_a_cell(seed: int) -> None:
    cells = Cells(seed)
    found = cells.influences()
    names = [cells.graph.nodes[v - 1] for v in cells.order]
    for i, do in enumerate(ACTIONS):
        visits = np.zeros(len(cells.p))
        for values in itertools.product([0, 1], repeat=len(names)):
            world, chance, met = dict(zip(names, values, strict=True)), 1.0, []
            for depth, name in enumerate(names):
                pattern = sum(world[parent] << j for j, parent in enumerate(cells.graph.parents(name)))
                if name in do:
                    chance *= float(world[name] == do[name])
                else:
                    p = cells.p[cells.of(depth)][pattern]
                    chance *= p if world[name] else 1.0 - p
                    met.append(cells.of(depth).start + pattern)
            visits[met] += chance
        assert found.visits[i] == pytest.approx(visits, abs=1e-12)


def test_rows_that_bear_on_a_value() -> None:
    tables = node_tables(table_list([1, 2], [2, 2]), 2)
    seen = np.array([1000.0, 1000.0, 0.0, 1000.0, 0.0])
    influence = np.array([[0.5, 0.5, 0.0, 0.4, 0.0], [0.5, 0.5, 0.4, 0.4, 0.0], [0.5, 0.5, 0.0, 0.0, 0.0]])
    much, next_to_nothing, one_node = bearing_rows(tables, influence, seen)
    assert much == pytest.approx(1000.5)
    assert next_to_nothing == pytest.approx(0.8 / (0.4 / 0.5 + 0.4 / 1000.5))  # half of it rests on what nobody saw
    assert one_node == pytest.approx(1000.5)
