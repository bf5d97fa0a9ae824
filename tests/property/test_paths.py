"""Contributions by path against a list of all paths, and on a graph with far too many to list."""

from __future__ import annotations

import math
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dobandit import CausalGraph
from dobandit.experiment.paths import Path, path_product, top_paths
from dobandit.model.weights import fixed_values
from helpers.worlds import blms, brute_force_means, graphs, relaxed


def every_path(graph, theta, chosen) -> dict[tuple[str, ...], float]:
    """The product of each path that starts at a set variable (times its value) or a bias, enters no set variable and
    ends at the target; the ones from a bias begin with ''."""
    ptr, parent = graph.arrays.parent_ptr, graph.arrays.parent
    weight = {}
    for v, name in enumerate(graph.nodes, start=1):
        for slot in range(ptr[v], ptr[v + 1]):
            cause = graph.nodes[parent[slot] - 1] if parent[slot] else ""
            weight[cause, name] = min(max(float(theta[slot]), 0.0), 1.0)
    stack = [("",), *((name,) for name in chosen)]
    found = {}
    while stack:
        path = stack.pop()
        if path[-1] == graph.target:
            found[path] = chosen.get(path[0], 1.0) * math.prod(weight[edge] for edge in pairwise(path))
        stack += [(*path, b) for a, b in weight if a == path[-1] and b not in chosen]
    return found


@st.composite
def weighted_graphs(draw):
    """Weights of a few kinds, so that ties, zeros and weights that must be clipped are common."""
    graph = draw(graphs(most=7))
    some = st.sampled_from([-0.25, 0.0, 0.25, 0.3, 0.5, 0.7, 1.0, 1.5])
    count = len(graph.arrays.parent)
    theta = np.array(draw(st.lists(some, min_size=count, max_size=count)))
    settings = st.dictionaries(st.sampled_from(graph.controllable), st.sampled_from([0.0, 0.5, 1.0]))
    return graph, theta, draw(settings)


@relaxed(max_examples=70)
@given(weighted_graphs(), st.integers(0, 12))
def test_the_largest_paths_are_those_of_a_full_list(case, most):
    graph, theta, chosen = case
    fixed = fixed_values(graph, chosen, continuous=True)
    paths, rest = top_paths(graph, theta, fixed, most)
    truth = every_path(graph, theta, chosen)
    largest = sorted((value for value in truth.values() if value > 0.0), reverse=True)[:most]
    assert [path.contribution for path in paths] == pytest.approx(largest, rel=1e-12)
    assert [path.contribution for path in paths] == sorted((path.contribution for path in paths), reverse=True)
    named = [("", *path.names) if path.from_bias else path.names for path in paths]
    assert len(set(named)) == len(named)
    for path, name in zip(paths, named, strict=True):
        assert path.contribution == pytest.approx(truth[name], rel=1e-12)
        assert path.contribution == pytest.approx(path_product(graph, np.clip(theta, 0.0, 1.0), path, fixed), rel=1e-12)
    assert rest == pytest.approx(sum(truth.values()) - sum(largest), abs=1e-12)
    turned = fixed_values(graph, dict(reversed(chosen.items())), continuous=True)
    assert (paths, rest) == top_paths(graph, theta, turned, most)


@relaxed(max_examples=60)
@given(st.data(), blms(most=6))
def test_paths_and_rest_add_up_to_the_mean(data, model):
    chosen = data.draw(st.dictionaries(st.sampled_from(model.graph.controllable), st.integers(0, 1)))
    paths, rest = top_paths(model.graph, model.theta, fixed_values(model.graph, chosen), 4)
    mean = brute_force_means(model, chosen)[model.graph.target]
    assert sum(path.contribution for path in paths) + rest == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("equal", [True, False])
def test_1e20_paths_take_no_time(equal):
    """20 full layers of 10: 10^20 paths, of equal weight or not."""
    layers = [[f"L{i}_{j}" for j in range(10)] for i in range(20)]
    edges = [(a, b) for upper, lower in pairwise(layers) for a in upper for b in lower]
    graph = CausalGraph([*edges, *((a, "Y") for a in layers[-1])], target="Y", bias=[])
    theta = np.full(len(graph.arrays.parent), 0.1)
    if not equal:
        theta = np.random.default_rng(0).dirichlet(np.ones(10), size=len(theta) // 10).ravel()
    chosen = [graph.index(name) for name in layers[0]]
    start = time.perf_counter()
    paths, rest = top_paths(graph, theta, fixed_values(graph, layers[0]), most=50)
    assert time.perf_counter() - start < 2.0
    assert len(set(paths)) == 50
    assert all(len(path.names) == 21 and not path.from_bias and path.contribution > 0 for path in paths)
    # each layer's weights add up to 1, so that every mean is 1
    assert sum(path.contribution for path in paths) + rest == pytest.approx(1.0)
    if not equal:
        assert paths[0].contribution == pytest.approx(best_product(graph, theta, chosen))


def best_product(graph, theta, chosen):
    best = np.zeros(len(graph) + 1)
    best[chosen] = 1.0
    for v in range(1, len(best)):
        slots = slice(*graph.arrays.parent_ptr[v : v + 2])
        if v not in chosen:
            best[v] = max(theta[slots] * best[graph.arrays.parent[slots]])
    return best[graph.arrays.target]


def test_a_set_variable_hides_what_is_before_it():
    graph = CausalGraph([("a", "b"), ("b", "Y")], target="Y", bias=["a", "Y"])
    theta = np.full(len(graph.arrays.parent), 0.5)
    paths, rest = top_paths(graph, theta, fixed_values(graph, ["b"]))
    assert paths == [Path(("b", "Y"), False, 0.5), Path(("Y",), True, 0.5)]
    assert rest == 0.0
    assert [p.names for p in top_paths(graph, theta, fixed_values(graph, []))[0]] == [("Y",), ("a", "b", "Y")]
    assert [p.names for p in top_paths(graph, theta, fixed_values(graph, {"b": 0}))[0]] == [("Y",)]
