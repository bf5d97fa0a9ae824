"""Random models: legal, of the size asked for, admissible, and the same for the same arguments."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dobandit.errors import ModelError
from dobandit.graph.latent import admissible
from dobandit.model.bglm import BinaryGLM, LinearModel
from dobandit.model.inference import expect
from dobandit.model.links import BUILDERS, custom, logistic
from dobandit.model.projection import project
from dobandit.model.random_models import SHAPES, random_model
from helpers import plain_paths, worlds

every_shape = pytest.mark.parametrize("shape", SHAPES)
LINKS = [
    *(name for name in BUILDERS if name != "auto"),
    {"name": "logistic", "shift": 2.0},
    {"name": "rational", "a": 5.0},
    worlds.ARCTAN,
]
seeds = st.integers(0, 2**32 - 1)


@every_shape
@worlds.relaxed(max_examples=30)
@given(seeds, st.integers(2, 14), st.integers(1, 5), st.integers(0, 4))
def test_has_the_size_asked_for_and_every_variable_matters(shape, seed, nodes, parents, latent):
    assume(latent <= nodes - 1)  # an edge for each is always there
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = random_model(shape, nodes, seed=seed, parents=parents, latent=latent).graph
    assert graph.target == "Y"
    assert (len(graph.observed), len(graph.latent)) == (nodes, latent)
    assert set(graph.controllable) == {f"X{i}" for i in range(2, nodes + 1)}
    assert not graph.irrelevant
    if shape != "parallel":
        assert max(len(set(graph.parents(name)) - set(graph.latent)) for name in graph.observed) <= parents


@every_shape
@worlds.relaxed(max_examples=30)
@given(seeds, st.integers(3, 10), st.integers(1, 4), st.integers(1, 4))
def test_hidden_nodes_matter_and_can_be_projected_away(shape, seed, nodes, parents, latent):
    assume(latent <= nodes - 1)
    model = random_model(shape, nodes, seed=seed, parents=parents, latent=latent)
    graph = model.graph
    assert admissible(graph)
    assert plain_paths.plainly_admissible(graph.edges, graph.latent)
    assert all(graph.children(name) for name in graph.latent)
    do = list(graph.controllable[::2])
    assert expect(project(model), do).value == pytest.approx(expect(model, do).value, abs=1e-12)
    if shape != "parallel":
        assert max(len(project(graph).parents(name)) for name in graph.observed) <= parents


@every_shape
@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("latent", [0, 2])
def test_probabilities_stay_within_0_and_1_for_every_link(shape, link, latent):
    for seed in range(3):
        model = random_model(shape, 7, seed=seed, link=link, latent=latent)
        assert model.theta.min() >= 0.0
        assert model.theta.max() <= 1.0
        means = worlds.brute_force_means(model, dict.fromkeys(model.graph.controllable[:2], 1))
        assert all(0.0 < means[name] <= 1.0 + 1e-12 for name in model.graph)
        assert expect(model, model.graph.controllable[:2]).value == pytest.approx(means["Y"], abs=1e-9)


@every_shape
def test_the_same_arguments_give_the_same_model_and_another_seed_another(shape):
    def make(seed, nodes=9):
        return random_model(shape, nodes, seed=seed, latent=2)

    assert make(5) == make(5)
    assert make(5).graph.edges == make(5).graph.edges
    assert make(5) != make(6)
    assert not np.array_equal(make(5).theta, make(6).theta)


@every_shape
def test_the_graph_does_not_depend_on_the_link(shape):
    assert random_model(shape, 9, seed=1, link="logistic").graph == random_model(shape, 9, seed=1).graph


@every_shape
def test_a_thousand_nodes_and_two_are_fine(shape):
    assert len(random_model(shape, 1000, seed=0, latent=20).graph) == 1020
    assert random_model(shape, 2, seed=0, parents=1).graph.edges == (("X2", "Y"),)


def test_continuous_models_are_linear_models_with_noise():
    model = random_model("layered", 8, seed=0, latent=2, continuous=True, noise=0.25)
    assert isinstance(model, LinearModel)
    assert set(model.noise[1:].tolist()) == {0.25}
    binary = random_model("layered", 8, seed=0, latent=2)
    assert isinstance(binary, BinaryGLM)
    np.testing.assert_array_equal(model.theta, binary.theta)


def test_parallel_points_to_y_and_a_tree_has_one_effect_a_node():
    parallel, tree = (random_model(shape, 12, seed=3).graph for shape in ("parallel", "tree"))
    assert set(parallel.edges) == {(f"X{i}", "Y") for i in range(2, 13)}
    assert all(len(tree.children(name)) == 1 for name in tree.controllable)


def test_an_out_tree_has_one_root_and_its_leaves_point_to_y():
    graph = random_model("out-tree", 12, seed=3).graph
    assert sorted(len(graph.parents(name)) for name in graph.controllable) == [0] + [1] * 10
    assert all(graph.children(name) == ("Y",) for name in graph.parents("Y"))


def test_layers_feed_the_next_one_only():
    graph = random_model("layered", 22, seed=4, parents=3).graph
    depth = {}
    for name in graph.nodes:
        above = {depth[parent] for parent in graph.parents(name)}
        assert len(above) <= 1
        depth[name] = 1 + max(above, default=0)
    assert graph.parents("Y") == tuple(name for name in graph.nodes if depth[name] == depth["Y"] - 1)


def test_a_few_nodes_of_a_scale_free_graph_influence_many():
    def largest(shape):
        graph = random_model(shape, 300, seed=0).graph
        return max(len(graph.children(name)) for name in graph.nodes)

    assert largest("scale-free") > 4 * largest("erdos-renyi")


def test_erdos_renyi_grows_denser_with_more_parents_and_keeps_the_limit():
    counts = [random_model("erdos-renyi", 60, seed=0, parents=p).graph.edge_count for p in (1, 2, 4, 8)]
    assert counts[0] == 59
    assert counts == sorted(set(counts))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shape": "laiered"}, "Did you mean 'layered'"),
        ({"shape": 3}, "shapes are"),
        ({"nodes": 1}, "nodes must be a whole number from 2"),
        ({"nodes": 4.0}, "nodes must be"),
        ({"nodes": True}, "nodes must be"),
        ({"parents": 0}, "parents must be"),
        ({"latent": -1}, "latent must be"),
        ({"seed": -1}, "seed must be"),
        ({"seed": None}, "seed must be"),
        ({"link": "cubic"}, "links are"),
        ({"latent": 99}, "room for 10 hidden nodes"),
        ({"link": "logistic", "continuous": True}, "continuous model is linear"),
    ],
)
def test_impossible_arguments_are_refused(arguments, words):
    given = {"shape": "parallel", "nodes": 5, "seed": 0} | arguments
    with pytest.raises(ModelError, match=words):
        random_model(**given)


def test_room_for_hidden_nodes_can_be_used_up():
    assert len(random_model("parallel", 5, seed=0, latent=10).graph.latent) == 10


def test_a_link_with_a_bounded_domain_of_its_own_is_respected():
    half = custom(
        "half", lambda x: 0.5 * x, lambda x: 0.5 + 0.0 * x, lambda x: 0.0 * x, bounds=(0.5, 0.0, 0.5), domain=(0.0, 2.0)
    )
    for seed in range(5):
        random_model("parallel", 12, seed=seed, link=half)
        random_model("layered", 12, seed=seed, link=logistic(3.0))
