"""Sums, inverses and least-squares weights against fresh factorisations, and which rows enter them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dobandit import BLMLR, CausalGraph
from dobandit.estimation.belief import layout_of, start_belief
from dobandit.estimation.estimators import start_with_shares
from dobandit.estimation.least_squares import REFRESH, add_row, reaches_lambda, refresh
from dobandit.kernels import kernel
from helpers.worlds import graphs, relaxed

seeds = st.integers(0, 2**32 - 1)
# Eigenvalues of a singular Gram matrix come out as rounding errors.
CUTOFF = 1e-10


@kernel
def feed(nodes, slots, pairs, work, v, rows, values):
    for i in range(len(rows)):
        add_row(nodes, slots, pairs, work, v, rows[i], values[i])


class Node:
    """Y with d parents and no bias, and the statistics that are kept of it."""

    def __init__(self, d: int, ridge: float) -> None:
        graph = CausalGraph([(f"P{i}", "Y") for i in range(d)], target="Y", bias=[])
        self.layout, self.v, self.d = layout_of(graph), graph.index("Y"), d
        self.state = start_belief(self.layout, ridge)

    def feed(self, rows, values) -> None:
        feed(self.state.nodes, self.state.slots, self.state.pairs, self.state.work, self.v, rows, values)

    def refresh(self) -> None:
        refresh(self.state.nodes, self.state.pairs, self.state.work, self.v)

    def reaches(self, threshold: float) -> bool:
        self.state.nodes["threshold"][self.v] = threshold
        return reaches_lambda(self.state.nodes, self.state.pairs, self.state.work, self.v)

    def square(self, name: str):
        at = slice(self.layout.square[self.v], self.layout.square[self.v + 1])
        return self.state.pairs[name][at].reshape(self.d, self.d)

    @property
    def theta(self):
        return self.state.slots["line"][self.layout.ptr[self.v] : self.layout.ptr[self.v + 1]]


def some_rows(rng, kind: str, count: int, d: int):
    rows = rng.random((count, d))
    if kind != "continuous":
        rows = (rows < rng.uniform(0.1, 0.9, d)).astype(float)
    if kind == "one parent never 1":
        rows[:, rng.integers(d)] = 0.0
    if kind == "two equal parents" and d > 1:
        one, other = rng.choice(d, 2, replace=False)
        rows[:, one] = rows[:, other]
    return rows


KINDS = ["binary", "continuous", "one parent never 1", "two equal parents"]


def relative_error(found, truth):
    return np.abs(found - truth).max() / max(np.abs(truth).max(), 1e-300)


# -- the inverse ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@relaxed(max_examples=30)
@given(seeds)
def test_with_ridge_the_updated_inverse_is_the_inverse(kind, seed):
    rng = np.random.default_rng(seed)
    node = Node(int(rng.integers(1, 13)), ridge=1.0)
    rows = some_rows(rng, kind, int(rng.integers(1, 60)), node.d)
    values = rng.random(len(rows))
    node.feed(rows, values)
    M = np.eye(node.d) + rows.T @ rows
    np.testing.assert_allclose(node.square("gram"), M, atol=1e-12)
    np.testing.assert_allclose(node.square("inverse"), np.linalg.inv(M), atol=1e-12)
    np.testing.assert_allclose(node.theta, np.linalg.solve(M, rows.T @ values), atol=1e-11)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "continuous"])
@relaxed(max_examples=30)
@given(seeds)
def test_without_ridge_it_is_the_pseudo_inverse_at_every_row(kind, seed):
    rng = np.random.default_rng(seed)
    node = Node(int(rng.integers(1, 9)), ridge=0.0)
    rows = some_rows(rng, kind, 25, node.d)
    values = (rng.random(len(rows)) < 0.5).astype(float)
    for t in range(1, len(rows) + 1):
        node.feed(rows[t - 1 : t], values[t - 1 : t])
        M = rows[:t].T @ rows[:t]
        inverse = np.linalg.pinv(M, rcond=CUTOFF, hermitian=True)
        assert relative_error(node.square("inverse"), inverse) < 1e-9
        np.testing.assert_allclose(node.theta, inverse @ (rows[:t].T @ values[:t]), atol=1e-9)
        np.testing.assert_allclose(node.square("null"), np.eye(node.d) - inverse @ M, atol=1e-9)
        assert node.state.nodes["rank"][node.v] == np.linalg.matrix_rank(M, hermitian=True)


@relaxed(max_examples=30)
@given(seeds)
def test_without_ridge_continuous_rows_lose_no_more_than_their_condition_asks(seed):
    rng = np.random.default_rng(seed)
    node = Node(int(rng.integers(1, 7)), ridge=0.0)
    rows = some_rows(rng, "continuous", 40, node.d)
    node.feed(rows, rng.random(len(rows)))
    first = np.linalg.cond(rows[: node.d])  # where the inverse is largest on the way
    assert relative_error(node.square("inverse"), np.linalg.inv(rows.T @ rows)) < 1e-13 * (1e3 + first**2)


def test_rows_that_say_nothing_change_nothing_but_the_count():
    node = Node(3, ridge=0.0)
    node.feed(np.zeros((5, 3)), np.ones(5))
    assert not node.square("gram").any()
    assert not node.square("inverse").any()
    assert not node.theta.any()
    assert node.state.nodes["rows"][node.v] == 5
    assert node.state.nodes["rank"][node.v] == 0


@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_updates_drift_less_than_1e_9(kind, ridge):
    rng = np.random.default_rng(1)
    node = Node(6, ridge)
    rows = some_rows(rng, kind, 20_000, node.d)
    values = (rng.random(len(rows)) < 0.3).astype(float)
    for turn in range(50):
        node.feed(rows, values)
        if turn in (0, 9, 49):
            inverse = np.linalg.pinv(node.square("gram"), rcond=CUTOFF, hermitian=True)
            assert relative_error(node.square("inverse"), inverse) < 1e-9
            M = ridge * np.eye(node.d) + (turn + 1) * rows.T @ rows
            np.testing.assert_allclose(node.square("gram"), M, rtol=1e-11)
            truth = np.linalg.lstsq(M, (turn + 1) * rows.T @ values, rcond=CUTOFF)[0]
            np.testing.assert_allclose(node.theta, truth, atol=1e-9)
    assert node.state.nodes["rows"][node.v] == 10**6


def test_a_new_direction_after_a_million_rows_is_found():
    node = Node(3, ridge=0.0)
    rows = np.zeros((1000, 3))
    rows[:, 0] = 1.0
    rows[::2, 1] = 1.0
    values = np.linspace(0.0, 1.0, 1000).round()
    for _ in range(1000):
        node.feed(rows, values)
    assert node.state.nodes["rank"][node.v] == 2
    node.feed(np.ones((1, 3)), np.ones(1))
    M = 1000 * rows.T @ rows + 1.0
    assert node.state.nodes["rank"][node.v] == 3
    assert relative_error(node.square("inverse"), np.linalg.inv(M)) < 1e-9


@pytest.mark.parametrize("rows", [10, REFRESH + 100, 5 * REFRESH])
def test_rows_that_hardly_differ_lose_no_more_than_their_condition_asks(rows):
    rng = np.random.default_rng(0)
    node = Node(3, ridge=0.0)
    near = np.array([0.5, 0.6, 0.7]) + 1e-3 * rng.normal(size=(rows, 3))
    node.feed(near, rng.random(rows))
    assert node.state.nodes["rank"][node.v] == 3
    assert relative_error(node.square("inverse"), np.linalg.inv(near.T @ near)) < 1e-8


@pytest.mark.parametrize("kind", KINDS)
def test_a_refresh_leaves_what_is_right_as_it_is(kind):
    rng = np.random.default_rng(2)
    node = Node(5, ridge=0.0)
    rows = some_rows(rng, kind, REFRESH - 10, 5)
    node.feed(rows, rng.random(len(rows)))
    before = node.square("inverse").copy()
    node.refresh()
    assert node.state.nodes["fresh"][node.v] == 0
    np.testing.assert_allclose(node.square("inverse"), before, rtol=1e-10, atol=1e-14)


# -- lambda_min -----------------------------------------------------------------------------------------------


@relaxed(max_examples=60)
@given(seeds, st.sampled_from(KINDS))
def test_reaches_lambda_agrees_with_the_least_eigenvalue(seed, kind):
    rng = np.random.default_rng(seed)
    node = Node(int(rng.integers(1, 9)), ridge=0.0)
    rows = some_rows(rng, kind, int(rng.integers(1, 80)), node.d)
    node.feed(rows, rng.random(len(rows)))
    least = max(float(np.linalg.eigvalsh(rows.T @ rows)[0]), 0.0)
    for threshold in (0.5 * least, least * (1 - 1e-7), least * (1 + 1e-7) + 1e-9, 2.0 * least + 1e-3):
        if least > 1e-6 or threshold > least:
            assert node.reaches(threshold) == (threshold < least)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_lambda_min_of_exactly_the_threshold_counts(d):
    node = Node(d, ridge=0.0)
    for times in range(1, 4):
        node.feed(np.eye(d), np.ones(d))
        assert node.reaches(float(times))
        assert not node.reaches(times + 1e-6)


# -- which rows enter -----------------------------------------------------------------------------------------


@relaxed(max_examples=30)
@given(graphs(most=6), seeds)
def test_a_row_enters_where_the_node_was_not_set_and_it_and_its_parents_were_seen(graph, seed):
    rng = np.random.default_rng(seed)
    learner = BLMLR().start(graph, budget=1)
    nodes = graph.nodes
    gram = {name: np.eye(len(graph.parents(name)) + graph.has_bias(name)) for name in nodes}
    rhs = {name: np.zeros(len(gram[name])) for name in nodes}
    counts = dict.fromkeys(nodes, 0)
    for _ in range(30):
        values = {name: int(rng.integers(2)) for name in nodes}
        action = {name: values[name] for name in nodes if rng.random() < 0.2}
        seen = {name: value for name, value in values.items() if rng.random() < 0.7}
        missing = {name: [None, float("nan")][rng.integers(2)] for name in nodes if name not in seen}
        learner.update(action, seen | {name: missing[name] for name in missing if rng.random() < 0.5})
        known = seen | action  # what was set is known
        for name in nodes:
            if name not in action and name in seen and all(parent in known for parent in graph.parents(name)):
                row = np.array([1.0] * graph.has_bias(name) + [float(known[p]) for p in graph.parents(name)])
                gram[name] += np.outer(row, row)
                rhs[name] += seen[name] * row
                counts[name] += 1
    state, layout, beliefs = learner.engine.state, learner.engine.layout, learner.engine.beliefs()
    assert learner.rounds == 30
    for name in nodes:
        v = graph.index(name)
        node = beliefs.node(v)
        assert node.rows == counts[name]
        np.testing.assert_array_equal(node.gram, gram[name])
        np.testing.assert_array_equal(state.slots["rhs"][layout.ptr[v] : layout.ptr[v + 1]], rhs[name])
        np.testing.assert_allclose(node.theta, np.linalg.solve(gram[name], rhs[name]), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_shares_begin_with_the_moments_of_a_uniform_simplex(d):
    """Means and covariance of weights that are uniform among the nonnegative ones with a sum of at most 1, within five
    standard errors of a large sample; and the sums agree with the inverse and the estimate."""
    node = Node(d, 1.0)
    start_with_shares(node.layout, node.state)
    part = slice(node.layout.ptr[node.v], node.layout.ptr[node.v + 1])
    size = 200_000
    drawn = np.random.default_rng(0).dirichlet(np.ones(d + 1), size)[:, :d]
    products = np.einsum("ki,kj->kij", drawn - 1.0 / (d + 1), drawn - 1.0 / (d + 1))
    assert np.all(np.abs(drawn.mean(axis=0) - node.state.slots["line"][part]) <= 5.0 * drawn.std(axis=0) / size**0.5)
    assert np.all(np.abs(products.mean(axis=0) - node.square("inverse")) <= 5.0 * products.std(axis=0) / size**0.5)
    np.testing.assert_allclose(node.square("gram") @ node.square("inverse"), np.eye(d), atol=1e-12)
    np.testing.assert_allclose(
        node.square("gram") @ node.state.slots["line"][part], node.state.slots["rhs"][part], rtol=1e-12
    )
