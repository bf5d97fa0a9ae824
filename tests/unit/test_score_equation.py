"""BGLM-Estimate against a GLM library and the transcription; its table of patterns; links inside compiled code."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transcription as tr
from dobandit import BGLMOFU, BinaryGLM, CausalGraph
from dobandit.estimation.belief import (
    add_to_cell,
    cell_of,
    cells_of,
    grown,
    layout_of,
    rows_that_fit,
    start_belief,
    with_room,
)
from dobandit.estimation.score_equation import LARGEST, STATUS_WORDS, due, fit_node
from dobandit.model.link_kernels import link_arrays, slope_at, value_at, write_links
from dobandit.model.links import exponential, identity, logistic, probit, rational
from helpers.worlds import ARCTAN, relaxed

seeds = st.integers(0, 2**32 - 1)
LINKS = [logistic(), logistic(2.5), probit(), probit(1.5), exponential, rational(), rational(20.0), ARCTAN]
NAMES = [f"{link.name}{[value for _, value in link.parameters]}" for link in LINKS]
every_link = pytest.mark.parametrize("link", LINKS, ids=NAMES)


def continued(link):
    """The link as kernels have it: along its tangent below its domain, where the paper leaves f open."""
    low = link.domain[0]
    if math.isinf(low):
        return link

    def value(x):
        return np.where(np.asarray(x) >= low, link.value(np.maximum(x, low)), link.value(low) + _rise(x))

    def _rise(x):
        return link.slope(low) * (np.asarray(x) - low)

    def slope(x):
        return np.where(np.asarray(x) >= low, link.slope(np.maximum(x, low)), link.slope(low))

    return dataclasses.replace(link, value=value, slope=slope)


class Fit:
    """Y with d parents (and a bias as the first of them, if asked for), fed row by row."""

    def __init__(self, link, d: int, bias: bool = False, room: int = 64) -> None:
        bias = bias and d > 1  # Y needs a parent that can be set
        graph = CausalGraph([(f"P{i}", "Y") for i in range(d - bias)], target="Y", bias=["Y"] if bias else [])
        self.layout, self.v, self.d = layout_of(graph), graph.index("Y"), d
        links = link_arrays([link] * len(graph), [float(max(k, 1)) for k in np.diff(self.layout.ptr)[1:]])
        state = start_belief(self.layout, 0.0, np.arange(len(graph) + 1) == self.v, room)
        self.state = state._replace(points=write_links(state.nodes, links))

    def feed(self, V, x, fit: bool = False):
        room = 0
        for row, value in zip(np.asarray(V, dtype=float), x, strict=True):
            if room == 0:
                self.state, room = with_room(self.state)
            room -= 1
            state = self.state
            add_to_cell(state.nodes, state.cells, state.bits, self.v, np.ascontiguousarray(row), 1.0, float(value))
            self.node["since"] += 1
            if fit:
                self.fit()
        return self

    def fit(self):
        state = self.state
        fit_node(self.node, state.slots, state.cells, state.bits, state.points, state.work)
        return self

    @property
    def node(self):
        return self.state.nodes[self.v]

    @property
    def theta(self):
        return self.state.slots["curve"][self.layout.ptr[self.v] : self.layout.ptr[self.v + 1]]

    @property
    def status(self) -> str:
        return STATUS_WORDS[self.node["status"]]

    def held(self) -> dict[bytes, tuple[float, float]]:
        """Count and sum by pattern that was seen."""
        state, node = self.state, self.node
        rows = state.bits[node["bit"] :][: node["cells"] * self.d].reshape(-1, self.d).astype(float)
        cells, held = state.cells[cells_of(state, self.v)], {}
        for row, seen, total in zip(rows, cells["seen"], cells["total"], strict=True):
            before = held.get(row.tobytes(), [0.0, 0.0])
            assert before == [0.0, 0.0] or not node["dense"]
            held[row.tobytes()] = [before[0] + seen, before[1] + total]
        return {row: pair for row, pair in held.items() if pair[0]}


def some_data(seed, link, rows=(30, 400), most=4):
    """A bias, some parents, and outcomes from the model; every pattern of the parents is there."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, most + 1))
    patterns = np.array([(1.0, *rest) for rest in itertools.product((0.0, 1.0), repeat=d - 1)])
    V = patterns[rng.integers(len(patterns), size=int(rng.integers(*rows)))]
    theta = rng.uniform(0.1, 0.9, d)
    return V, (rng.random(len(V)) < link.value(V @ theta)).astype(float)


def score_per_row(fit, link, V, x):
    return np.abs(tr.score(fit.theta, V, x, continued(link))).max() / len(V)


# -- the estimate ---------------------------------------------------------------------------------------------


@relaxed(max_examples=25)
@given(seeds, st.sampled_from([0.0, 1.5]))
def test_logistic_fit_equals_a_glm_library(seed, shift):
    import statsmodels.api as sm  # takes a second, which only those who need it wait for

    V, x = some_data(seed, logistic(shift))
    if not tr.separated(V, x, logistic()) and np.linalg.matrix_rank(V) == V.shape[1]:
        fit = Fit(logistic(shift), V.shape[1], bias=True).feed(V, x).fit()
        model = sm.GLM(x, V, family=sm.families.Binomial(), offset=np.full(len(x), -shift))
        np.testing.assert_allclose(fit.theta, model.fit(tol=1e-14, maxiter=200).params, atol=1e-7)
        assert fit.status == "solved"


@every_link
@relaxed(max_examples=15)
@given(seeds)
def test_the_score_equation_is_solved_and_its_root_is_the_transcriptions(link, seed):
    V, x = some_data(seed, link)
    if not tr.separated(V, x, link):
        fit = Fit(link, V.shape[1], bias=True).feed(V, x).fit()
        truth = tr.score_root(V, x, continued(link))
        # What a custom link's table covers: weights and parents in [0, 1], with a margin.
        if link != ARCTAN or np.all(np.abs(V @ truth - 0.5) < V.shape[1] + 1):
            assert score_per_row(fit, link, V, x) < 1e-10
            np.testing.assert_allclose(fit.theta, truth, atol=1e-6)
            assert fit.status == "solved" if np.linalg.matrix_rank(V) == V.shape[1] else "singular"


@every_link
@relaxed(max_examples=15)
@given(seeds)
def test_a_warm_start_ends_where_a_cold_one_does(link, seed):
    V, x = some_data(seed, link, rows=(30, 60), most=3)
    if not tr.separated(V, x, link) and np.linalg.matrix_rank(V) == V.shape[1]:
        cold = Fit(link, V.shape[1], bias=True).feed(V, x).fit()
        warm = Fit(link, V.shape[1], bias=True).feed(V, x, fit=True)
        np.testing.assert_allclose(warm.theta, cold.theta, atol=1e-8)
        assert warm.status == cold.status == "solved"


@pytest.mark.parametrize("shift", [3.5, 10.0])
@pytest.mark.parametrize("ones", [1, 5, 9])
@pytest.mark.parametrize("kind", [logistic, probit])
def test_a_first_step_that_leaps_over_the_root_is_cut(kind, shift, ones):
    link = kind(min(shift, 5.0) if kind is probit else shift)  # so far out that f is flat where Newton begins
    V, x = np.ones((10, 1)), np.arange(10) < ones
    fit = Fit(link, 1).feed(V, x).fit()
    assert link.value(fit.theta[0]) == pytest.approx(ones / 10, abs=1e-10)
    assert fit.status == "solved"


@every_link
def test_without_rows_the_estimate_is_zero_and_singular(link):
    assert Fit(link, 2).status == "singular"
    fit = Fit(link, 2).fit()
    np.testing.assert_array_equal(fit.theta, 0.0)
    assert fit.status == "singular"


@every_link
def test_one_row_gives_a_finite_estimate_with_a_status(link):
    for value in (0.0, 1.0):
        fit = Fit(link, 3).feed([[1, 0, 1]], [value]).fit()
        assert np.all(np.isfinite(fit.theta))
        assert fit.theta[1] == 0.0
        assert fit.theta[0] == pytest.approx(fit.theta[2], rel=1e-3, abs=1e-9)
        # f starts at 0 for some links: then a 0 is no surprise, and the weights are 0
        asks_for_infinity = value == 1.0 or math.isinf(link.domain[0])
        if link != ARCTAN:  # its table ends
            assert fit.status == ("separable" if asks_for_infinity else "singular")


@every_link
@pytest.mark.parametrize("d", [1, 2, 4, 12])
def test_separable_data_stop_within_the_ball_and_say_so(link, d):
    V = np.tile(np.eye(d), (5, 1))
    fit = Fit(link, d).feed(V, np.ones(len(V)), fit=True)
    assert np.linalg.norm(fit.theta) <= LARGEST * (1 + 1e-9)
    if link != ARCTAN:
        assert fit.status == "separable"
        assert fit.theta.min() > 5.0


@every_link
def test_data_that_were_separable_are_solved_once_the_classes_mix(link):
    fit = Fit(link, 2, bias=True).feed([[1, 0], [1, 1]] * 5, [1, 1] * 5, fit=True)
    V, x = [[1, 0], [1, 1]] * 20, [0, 1, 1, 0] * 10
    fit.feed(V, x, fit=True)
    assert fit.status == "solved"
    V, x = np.array([[1.0, 0.0], [1.0, 1.0]] * 25), np.array([1, 1] * 5 + x, dtype=float)
    assert score_per_row(fit, link, V, x) < 1e-10


@every_link
def test_a_direction_never_seen_stays_zero_and_makes_it_singular(link):
    rng = np.random.default_rng(3)
    V = np.column_stack([np.ones(200), rng.integers(0, 2, 200), np.zeros(200)])
    x = (rng.random(200) < 0.6 + 0.1 * V[:, 1]).astype(float)
    fit = Fit(link, 3, bias=True).feed(V, x).fit()
    assert fit.theta[2] == 0.0
    assert score_per_row(fit, link, V, x) < 1e-10
    assert fit.status == "singular"


@every_link
def test_two_equal_parents_share_the_weight(link):
    rng = np.random.default_rng(4)
    parent = rng.integers(0, 2, 300)
    V = np.column_stack([np.ones(300), parent, parent])
    x = (rng.random(300) < 0.5 + 0.3 * parent).astype(float)
    fit = Fit(link, 3, bias=True).feed(V, x).fit()
    assert fit.theta[1] == pytest.approx(fit.theta[2], abs=1e-3)
    assert score_per_row(fit, link, V, x) < 1e-10
    assert fit.status == "singular"
    np.testing.assert_allclose(fit.theta, tr.score_root(V, x, continued(link)), atol=1e-3)


@every_link
def test_rows_that_balance_at_theta_zero_still_get_the_right_status(link):
    if link.value(0.0) == 0.5:
        assert Fit(link, 2).feed([[1, 0], [1, 0]], [0, 1]).fit().status == "singular"
        assert Fit(link, 1).feed([[1], [1]], [0, 1], fit=True).status == "solved"


def test_a_node_without_parents_has_nothing_to_solve():
    graph = CausalGraph([("a", "Y")], target="Y", bias=[])
    learner = BGLMOFU(initial=0, kappa=0.1).start(graph, budget=1, links="logistic")
    for value in (0, 1):
        learner.update({}, {"a": value, "Y": value})
    assert learner.estimate("a").status == "solved"
    assert learner.estimate("a").parents == {}
    assert learner.estimate("Y").status == "separable"


def test_a_learner_knows_nothing_of_a_node_before_its_first_row():
    learner = BGLMOFU(initial=0, kappa=0.1).start(CausalGraph([("a", "Y")], target="Y"), budget=1, links="logistic")
    assert learner.estimate("Y").status == "singular"


@pytest.mark.parametrize("weight", [0.7, 4.0])
def test_a_learner_with_a_link_of_ones_own_finds_the_weights(weight):
    """Weights above 1 are legal for links without a largest weight."""
    model = BinaryGLM(CausalGraph([("a", "Y")], target="Y"), {"a": 0.2, "Y": 0.3, ("a", "Y"): weight}, links=ARCTAN)
    fit = Fit(ARCTAN, 2, bias=True)
    for a in (0.0, 1.0):
        ones = round(10_000 * float(ARCTAN.value(0.3 + weight * a)))
        fit.feed([[1.0, a]] * 10_000, np.arange(10_000) < ones)
    assert fit.fit().theta == pytest.approx(list(model.theta[-2:]), abs=weight * 1e-2)


# -- the table of patterns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 6, 20, 70])
def test_every_pattern_is_counted_once_and_growth_keeps_it(d):
    rng = np.random.default_rng(d)
    pool = (rng.random((300, d)) < 0.5).astype(float)
    V = pool[rng.integers(len(pool), size=1500)]
    x = (rng.random(1500) < 0.4).astype(float)
    truth: dict[bytes, list[float]] = {}
    for row, value in zip(V, x, strict=True):
        pair = truth.setdefault(row.tobytes(), [0.0, 0.0])
        pair[0] += 1.0
        pair[1] += value
    small, roomy = Fit(logistic(), d, room=2).feed(V, x), Fit(logistic(), d, room=1500).feed(V, x)
    assert small.held() == roomy.held() == truth
    assert small.node["since"] == 1500


def test_growth_keeps_estimates_and_statuses():
    """A node with more parents than there can be cells for keeps its rows, and equal ones in a row once."""
    V = np.zeros((5, 14))
    V[:, 0], V[:2, 3], V[2:4, 7] = 1, 1, 1
    fit = Fit(probit(), 14, bias=True, room=3).feed(V, [1, 0, 0, 1, 1], fit=True)
    assert rows_that_fit(fit.state) == 0
    assert fit.node["cells"] == 3
    new = grown(fit.state)
    assert new.nodes["room"][fit.v] == 6
    assert rows_that_fit(new) == 3
    np.testing.assert_array_equal(new.slots, fit.state.slots)
    for name in ("status", "since", "cells"):
        np.testing.assert_array_equal(new.nodes[name], fit.state.nodes[name])


def test_patterns_that_differ_beyond_the_64th_parent_differ():
    V = np.zeros((3, 70))
    V[1, 68], V[2, 69] = 1.0, 1.0
    fit = Fit(logistic(), 70).feed(V, [1, 0, 1])
    assert sorted(fit.held().values()) == [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]


def test_seventy_parents_are_fitted():
    rng = np.random.default_rng(5)
    V = np.column_stack([np.ones(3000), (rng.random((3000, 69)) < 0.5)])
    x = (rng.random(3000) < logistic(1.5).value(V @ rng.uniform(0.0, 0.1, 70))).astype(float)
    fit = Fit(logistic(1.5), 70, bias=True, room=3000).feed(V, x).fit()
    assert score_per_row(fit, logistic(1.5), V, x) < 1e-10
    assert fit.status == "solved"


def test_the_fewer_patterns_the_oftener_a_node_is_fitted():
    few, many = Fit(logistic(), 2), Fit(logistic(), 20, room=5000)
    rng = np.random.default_rng(6)
    for fit, rows in ((few, 10), (many, 5000)):
        fit.feed((rng.random((rows, fit.d)) < 0.5), rng.integers(0, 2, rows)).fit()
    waits = []
    for fit in (few, many):
        rounds = 0
        while not due(fit.node):
            fit.feed((rng.random((1, fit.d)) < 0.5), [1])
            rounds += 1
        waits.append(rounds)
    assert waits == [1, 5]  # one row, and one row for each 1024 patterns


# -- links inside compiled code -------------------------------------------------------------------------------


@pytest.mark.parametrize("link", [identity, *LINKS], ids=["identity", *NAMES])
@pytest.mark.parametrize("highest", [1.0, 4.0, 21.0])
def test_compiled_links_equal_the_link_objects(link, highest):
    arrays = link_arrays([identity, link], [1.0, highest])
    low = max(link.domain[0], -1.0 - highest)
    for x in np.concatenate([np.linspace(low, 2.0 * highest + 1.0, 997), [0.0, 0.5, 1.0, highest]]):
        assert value_at(arrays.nodes[2], arrays.points, x) == pytest.approx(float(link.value(x)), abs=1e-10)
        assert slope_at(arrays.nodes[2], arrays.points, x) == pytest.approx(float(link.slope(x)), abs=1e-7)


@pytest.mark.parametrize("link", LINKS, ids=NAMES)
def test_compiled_links_go_on_without_a_jump_or_a_turn(link):
    arrays = link_arrays([link], [2.0])
    x = np.linspace(-60.0, 60.0, 4001)
    values = np.array([value_at(arrays.nodes[1], arrays.points, each) for each in x])
    slopes = np.array([slope_at(arrays.nodes[1], arrays.points, each) for each in x])
    assert np.all(np.diff(values) >= 0.0)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(slopes))
    steepest = max(slopes.max(), np.abs(np.diff(slopes)).max())
    assert np.diff(values).max() <= steepest * (x[1] - x[0]) * (1 + 1e-9)


def test_two_links_of_ones_own_have_a_table_each():
    squashed = dataclasses.replace(
        ARCTAN, name="squashed", value=lambda x: ARCTAN.value(x) / 2, slope=lambda x: ARCTAN.slope(x) / 2
    )
    arrays = link_arrays([ARCTAN, exponential, squashed], [2.0, 2.0, 2.0])
    for v, truth in ((1, ARCTAN), (2, exponential), (3, squashed)):
        assert value_at(arrays.nodes[v], arrays.points, 0.7) == pytest.approx(float(truth.value(0.7)), abs=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("parents", [2, 6, 12])
def test_the_cell_of_a_row_is_that_of_its_pattern(parents, bias):
    at = Fit(logistic(), parents, bias=bias)
    state, node, d = at.state, at.node, at.d
    assert node["dense"]
    assert node["cells"] == 1 << (parents - bias)
    for row in np.random.default_rng(parents).integers(2, size=(64, d)).astype(float):
        row[0] = 1.0 if bias else row[0]
        k = cell_of(state.nodes, state.bits, at.v, row)
        np.testing.assert_array_equal(state.bits[node["bit"] + k * d :][:d], row)
