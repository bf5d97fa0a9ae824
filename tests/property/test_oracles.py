"""The oracles of linear models against enumeration, the transcription and the epsilon-net."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

import transcription as tr
from dobandit import CausalGraph
from dobandit.errors import InferenceError
from dobandit.estimation.belief import PAIR
from dobandit.model.links import identity
from dobandit.oracle.action_list import pick
from dobandit.oracle.boxed import COORDINATE, boxed_maximum
from helpers.oracle_problems import Learned, every_set, learned, links_for, seeds
from helpers.worlds import graphs, quietly, relaxed
from reference_oracles.epsilon_net import net, score_sets_epsilon_net
from reference_oracles.pair import Regions, pair_value

# -- the sets -------------------------------------------------------------------------------------------------


@relaxed(max_examples=30)
@given(graphs(most=8), st.data())
def test_the_list_has_the_combinations_in_order(graph, data):
    relevant = [graph.index(name) for name in graph.controllable if graph.target in graph.descendants(name)]
    budget = data.draw(st.integers(0, len(graph.controllable)))
    actions = every_set(graph, budget)
    assert list(map(tuple, actions.ids.tolist())) == [*itertools.combinations(relevant, min(budget, len(relevant)))]
    assert np.all(actions.to == 1.0)


def test_too_many_sets_are_refused():
    graph = CausalGraph([(f"X{i}", "Y") for i in range(60)], target="Y")
    with pytest.raises(InferenceError, match="sets of 10 out of 60"):
        every_set(graph, 10)


def test_ties_are_broken_evenly_and_rounding_does_not_choose():
    values = np.array([0.3, 0.7, 0.7 - 1e-12, 0.1, 0.7 + 1e-12])
    chosen = [pick(values, u) for u in (np.arange(300) + 0.5) / 300]
    assert [chosen.count(i) for i in range(5)] == [0, 100, 100, 0, 100]
    assert pick(values, 0.0) == 1
    assert pick(values, 1.0) == pick(values, np.nextafter(1.0, 0.0)) == 4
    assert pick(np.array([-2.0]), 0.999) == 0


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_a_tie_is_relative_above_1_and_absolute_below(scale):
    gap = 1e-9 * max(scale, 1.0)
    assert [pick(np.array([scale, scale - 0.5 * gap]), u) for u in (0.0, 0.9)] == [0, 1]
    assert [pick(np.array([scale, scale - 2.0 * gap]), u) for u in (0.0, 0.9)] == [0, 0]


# -- closed form ----------------------------------------------------------------------------------------------


@relaxed(max_examples=60)
@given(learned(most=7, outside=0.5))
def test_closed_form_is_algorithm_4_for_every_set(known):
    truth = [tr.closed_form_value(known.graph, known.theta_hat, known.M_inverse, known.rho, S) for S in known.sets]
    np.testing.assert_allclose(known.closed(), truth, rtol=1e-11, atol=1e-12)


@relaxed(max_examples=30)
@given(learned(), st.randoms(use_true_random=False))
def test_radii_may_differ_by_node(known, random):
    radius = {name: random.random() for name in known.graph.nodes}
    known.radii[1:] = list(radius.values())
    for S, value in zip(known.sets, known.closed(), strict=True):

        def best_mean(name, v):
            return radius[name] * tr.width(v, known.M_inverse[name]) + float(v @ known.theta_hat[name])

        assert value == pytest.approx(tr.forward_value(known.graph, S, best_mean), rel=1e-11, abs=1e-12)


def test_a_wide_graph_with_many_sets_agrees_with_algorithm_4():
    rng = np.random.default_rng(0)
    nodes = [f"X{i}" for i in range(11)]
    edges = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :] if rng.random() < 0.4]
    known = Learned(quietly(CausalGraph, edges, target="X10", nodes=nodes), rng, budget=4)
    truth = [tr.closed_form_value(known.graph, known.theta_hat, known.M_inverse, known.rho, S) for S in known.sets]
    np.testing.assert_allclose(known.closed(), truth, rtol=1e-11)


# -- ellipsoid and box ----------------------------------------------------------------------------------------


def our_maximum(v, center, M, rho):
    """(value, theta) of the compiled program."""
    d = len(v)
    pairs, box = np.zeros(d * d, PAIR), np.zeros(d, COORDINATE)
    pairs["gram"], box["weight"], box["center"] = M.ravel(), v, center
    return boxed_maximum(pairs, 0, d, float(rho), box, np.zeros(d * d + d)), box["theta"]


def no_better_than(v, center, M, rho, theta):
    """A bound on v.x over the region that needs no solver.

    For m >= 0, v.x <= g(x) = v.x + m (rho^2 - ||x - center||_M^2) in the region, and g is concave, so over the box it
    stays below its tangent at theta, whose maximum is at a corner. The bound is convex in m.
    """
    pull = M @ (theta - center)

    def bound(m):
        slope = v - 2.0 * m * pull
        room = rho**2 - (theta - center) @ pull
        return v @ theta + m * room + np.maximum(slope * (1.0 - theta), -slope * theta).sum()

    inside = (theta > 1e-9) & (theta < 1.0 - 1e-9) & (pull != 0.0)
    flat = np.maximum(v[inside] / (2.0 * pull[inside]), 0.0).tolist()  # where a slope vanishes
    best = min([0.0, *flat, *np.geomspace(1e-9, 1e12, 64)], key=bound)
    near = (math.log(best / 8.0), math.log(best * 8.0)) if best else (-40.0, -20.0)
    refined = minimize_scalar(lambda log: bound(math.exp(log)), bounds=near, method="bounded", options={"xatol": 1e-13})
    return min(bound(best), refined.fun)


def random_region(rng, singular=False):
    d = int(rng.integers(1, 13))
    rows = int(rng.choice([0, 1, 3, 10, 100, 10_000]))
    V = rng.random((rows, d)) if rng.random() < 0.3 else (rng.random((rows, d)) < rng.uniform(0.05, 0.95)).astype(float)
    if d > 1 and rng.random() < 0.3:
        V[:, 1] = V[:, 0]
    ridge = 1.0 if rows > 100 else float(rng.choice([1.0, 1e-4]))  # condition up to 1e6
    M = V.T @ V + (0.0 if singular else ridge) * np.eye(d)
    v = [rng.random(d), (rng.random(d) < 0.5).astype(float), rng.random(d).round(1)][rng.integers(3)]
    v = v * (rng.random(d) < rng.choice([0.5, 1.0]))
    center = rng.uniform(0.0, 1.0, d) if rng.random() < 0.4 else rng.uniform(-1.0, 2.0, d)
    if rng.random() < 0.3:
        center = center.round()  # on corners and faces of the box, or a whole step outside
    if rng.random() < 0.1:
        center = np.zeros(d)
    return v, center, M


RADII = [0.0113, 0.103, 0.297, 0.97, 3.1, 11.3, 103.0, 1e4]


@pytest.mark.parametrize("singular", [False, True], ids=["regular", "singular"])
@relaxed(max_examples=200)
@given(seeds, st.sampled_from(RADII))
def test_the_boxed_maximum_is_feasible_and_optimal(singular, seed, rho):
    v, center, M = random_region(np.random.default_rng(seed), singular)
    value, theta = our_maximum(v, center, M, rho)
    assert np.all((theta >= 0.0) & (theta <= 1.0))
    assert value == pytest.approx(v @ theta, abs=1e-12)
    away = math.sqrt(max((theta - center) @ M @ (theta - center), 0.0))
    if away <= rho * (1.0 + 1e-9):
        assert no_better_than(v, center, M, rho, theta) - value <= 1e-9
    else:  # an empty region: the nearest point of the box stands in for it
        pull = M @ (theta - center)
        nearer = np.maximum(-pull * (1.0 - theta), pull * theta).sum()  # what ||x - center||^2 / 2 could still lose
        assert nearer <= 1e-9 * max(1.0, float(np.trace(M)))


PAIRS_OF_EQUALS = np.array([[10.0, 8.0, 10.0, 8.0], [8.0] * 4, [10.0, 8.0, 10.0, 8.0], [8.0] * 4])
CHAIN = np.array([[1, 0, 1, 1, 0], [0, 2, 2, 0, 1], [1, 2, 3, 1, 1], [1, 0, 1, 1, 0], [0, 1, 1, 0, 1]], dtype=float)


@pytest.mark.parametrize(
    ("v", "center", "M", "rho"),
    [
        ([1.0, 0.0, 0.0, 0.0], [0.0] * 4, PAIRS_OF_EQUALS, 100.0),
        ([0.5, 0.1, 0.7, 0.5, 0.7], [1.0, 0.0, 0.0, 1.0, 1.0], np.full((5, 5), 3.0), 0.293),
        ([0.2, 0.0, 0.1, 0.0, 0.0], [0.0] * 5, CHAIN, 0.293),
    ],
    ids=["equal parents", "one pattern only", "a sum of others"],
)
def test_a_singular_region_is_walked_from_a_corner(v, center, M, rho):
    v, center = np.array(v), np.array(center)
    value, theta = our_maximum(v, center, M, rho)
    assert (theta - center) @ M @ (theta - center) <= rho**2 * (1 + 1e-9)
    assert no_better_than(v, center, M, rho, theta) - value <= 1e-9


@relaxed(max_examples=75)
@given(seeds, st.sampled_from(RADII))
def test_the_boxed_maximum_is_the_transcriptions(seed, rho):
    v, center, M = random_region(np.random.default_rng(seed))
    found = tr.boxed_maximum(v, center, M, rho)
    assert our_maximum(v, center, M, rho)[0] == pytest.approx(found.value, abs=1e-9)


@relaxed(max_examples=30)
@given(seeds, st.sampled_from([0.3, 1.0, 3.0]))
def test_a_general_purpose_solver_finds_the_same_boxed_maximum(seed, rho):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    V = (rng.random((int(rng.integers(0, 10)), d)) < 0.5).astype(float)
    v, center, M = rng.random(d), rng.uniform(-0.2, 1.1, d), np.eye(d) + V.T @ V
    assume(tr.width(tr.box_minimum(M, M @ center) - center, M) < 0.9 * rho)
    value, theta = our_maximum(v, center, M, rho)
    found = minimize(
        lambda x: -v @ x,
        np.clip(theta + rng.normal(scale=0.05, size=d), 0.0, 1.0),
        jac=lambda x: -v,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * d,
        constraints={
            "type": "ineq",
            "fun": lambda x: 1.0 - (x - center) @ M @ (x - center) / rho**2,
            "jac": lambda x: -2.0 * M @ (x - center) / rho**2,
        },
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    # What the solver leaves outside the region is taken back before it is compared.
    excess = max((found.x - center) @ M @ (found.x - center) / rho**2 - 1.0, 0.0)
    assert -found.fun <= value + 1e-9 + excess * np.abs(v).sum()
    assert -found.fun >= value - 1e-9


@relaxed(max_examples=30)
@given(learned(most=5, outside=0.3))
def test_boxed_sets_are_the_transcriptions(known):
    truth = tr.boxed_values(known.graph, known.theta_hat, known.M, known.rho, known.sets)
    np.testing.assert_allclose(known.boxed(), truth, atol=1e-9)


@relaxed(max_examples=30)
@given(learned(most=6))
def test_the_box_never_adds_to_an_estimate_inside_it(known):
    plain = Learned.closed(known)
    assert np.all(known.boxed() <= plain + 1e-9)
    assert np.all(known.boxed() <= 1.0 * np.maximum(plain, 0.0) + 1e-9)


@relaxed(max_examples=25)
@given(learned(most=6))
def test_without_radius_box_and_closed_form_are_the_plain_estimate(known):
    known.radii[:] = 0.0
    truth = [tr.forward_value(known.graph, S, lambda name, v: float(v @ known.theta_hat[name])) for S in known.sets]
    np.testing.assert_allclose(known.closed(), truth, atol=1e-12)
    np.testing.assert_allclose(known.boxed(), truth, atol=1e-12)


@relaxed(max_examples=25)
@given(learned(most=6), st.floats(0.0, 3.0))
def test_a_larger_radius_never_lowers_a_value(known, more):
    closed, in_box = known.closed(), known.boxed()
    known.radii += more
    assert np.all(known.closed() >= closed - 1e-9)
    assert np.all(known.boxed() >= in_box - 1e-9)


# -- line 9 as printed ----------------------------------------------------------------------------------------


@relaxed(max_examples=30)
@given(learned(most=5), st.data())
def test_per_pattern_is_above_the_pair_oracle_and_that_above_the_estimate(known, data):
    links = data.draw(links_for(known))
    regions = Regions(known.graph, tuple(links), known.theta, known.gram, known.radii)
    optimistic = known.per_pattern(links)
    for S, upper in list(zip(known.sets, optimistic, strict=True))[:4]:
        value, theta = pair_value(regions, S, starts=3)
        plain = tr.per_pattern_value(
            known.graph, known.by_name(links), known.theta_hat, known.M_inverse, 0.0, S
        )  # rho = 0
        assert upper >= value - 1e-9
        assert value >= plain - 1e-9
        assert np.all((theta >= 0.0) & (theta <= 1.0))


@relaxed(max_examples=20)
@given(learned(most=4))
def test_the_pair_oracle_finds_the_boxed_maximum_of_linear_models(known):
    regions = Regions(known.graph, (identity,) * len(known.graph), known.theta, known.gram, known.radii)
    for S, truth in zip(known.sets, known.boxed(), strict=True):
        if truth < 1.0:  # no probability is cut
            assert pair_value(regions, S, starts=2)[0] <= truth + 1e-9


def test_the_pair_oracle_refuses_what_it_cannot_sum():
    graph = CausalGraph([(f"X{i}", "Y") for i in range(16)], target="Y")
    known = Learned(graph, np.random.default_rng(0), budget=1)
    with pytest.raises(InferenceError, match="per-pattern"):
        pair_value(Regions(graph, (identity,) * 17, known.theta, known.gram, known.radii), ["X0"])


# -- epsilon-net ----------------------------------------------------------------------------------------------


@relaxed(max_examples=25)
@given(seeds)
def test_the_net_stays_below_the_boxed_maximum(seed):
    rng = np.random.default_rng(seed)
    known = Learned(CausalGraph([("a", "c"), ("b", "c"), ("c", "Y"), ("a", "Y")], target="Y"), rng, 1, rows=8)
    on_net = score_sets_epsilon_net(known.layout, known.actions, known.theta, known.gram, known.radii, 0.05)
    regions_hold_a_point = all(
        np.min(np.einsum("ki,ij,kj->k", known_off, known.M[name], known_off)) <= known.rho**2
        for name in known.graph.nodes
        for known_off in [net(known.theta_hat[name], known.M[name], 1e9, 0.05) - known.theta_hat[name]]
    )
    if regions_hold_a_point:
        assert np.all(on_net <= known.boxed() + 1e-12)


@relaxed(max_examples=30)
@given(seeds, st.sampled_from([0.05, 0.1, 0.25]))
def test_the_net_loses_at_most_a_step_along_each_axis(seed, epsilon):
    """For an upright ellipsoid around a grid point: rounding towards it stays inside."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    center = rng.integers(0, round(1 / epsilon) + 1, d) * epsilon
    M, v, rho = np.diag(rng.uniform(1.0, 9.0, d)), rng.random(d), rng.uniform(0.2, 3.0)
    value, _ = our_maximum(v, center, M, rho)
    found = float((net(center, M, rho, epsilon) @ v).max())
    assert value - epsilon * v.sum() - 1e-9 <= found <= value + 1e-9


def test_a_net_of_the_whole_box_reaches_its_corner():
    known = Learned(CausalGraph([("a", "Y"), ("b", "Y")], target="Y"), np.random.default_rng(2), budget=1)
    known.radii[:] = 1e3
    on_net = score_sets_epsilon_net(known.layout, known.actions, known.theta, known.gram, known.radii, 0.1)
    np.testing.assert_allclose(on_net, known.boxed(), atol=1e-12)


def test_an_empty_net_falls_back_to_the_nearest_grid_point():
    np.testing.assert_allclose(net(np.array([0.33, 0.52]), np.eye(2), 1e-3, 0.1), [[0.3, 0.5]])


@pytest.mark.parametrize("epsilon", [0.0, -0.1, 1.5])
def test_a_net_without_a_step_is_refused(epsilon):
    with pytest.raises(InferenceError, match="epsilon"):
        net(np.zeros(2), np.eye(2), 1.0, epsilon)


def test_a_net_of_too_many_points_is_refused():
    with pytest.raises(InferenceError, match="closed form"):
        net(np.zeros(9), np.eye(9), 1.0, 0.01)
