"""Hidden variables (paper, Section 4.1): the admissible graphs, and Lemmas 3 and 4 by full enumeration."""

from itertools import pairwise

import numpy as np
import pytest

from dobandit import BinaryGLM, CausalGraph, LinearModel, expect
from dobandit.errors import GraphError, ModelError
from dobandit.graph.latent import admissible, hidden_path_sums, require_admissible
from dobandit.model.projection import project
from helpers.plain_paths import hidden_paths, plain_descendants, plain_path_sums, plainly_admissible
from helpers.worlds import (
    admissible_structure,
    brute_force_means,
    conditionals,
    hidden_blm,
    hidden_structure,
    joint,
    quietly,
    random_do,
    random_shares,
)

SEEDS = pytest.mark.parametrize("seed", range(100))
CONFOUNDED = {"U": 0.5, ("U", "X"): 1.0, ("U", "Y"): 0.8, ("X", "Y"): 0.1}


def path_sums_by_name(graph: CausalGraph, theta) -> dict[tuple[str, str], float]:
    name = ("", *graph.nodes)
    return {(name[a], name[b]): total for (a, b), total in hidden_path_sums(graph, theta.tolist()).items()}


# -- which graphs are admissible ------------------------------------------------------------------------------


def test_admissible_is_the_papers_definition():
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(600):
        structure = hidden_structure(rng, size=int(rng.integers(4, 10)))
        graph = quietly(CausalGraph, **structure)
        answer = admissible(graph)
        answers.append(bool(answer))
        assert answers[-1] == plainly_admissible(structure["edges"], structure["latent"])
        assert (answer.witness is None) == answer.admissible
    assert 100 < sum(answers) < 500, "both kinds must be met often"


def test_the_witness_is_one():
    rng = np.random.default_rng(1)
    seen = 0
    for _ in range(400):
        structure = hidden_structure(rng, size=int(rng.integers(4, 10)))
        edges, hidden = set(structure["edges"]), structure["latent"]
        witness = admissible(quietly(CausalGraph, **structure)).witness
        if witness is None:
            continue
        seen += 1
        assert witness.hidden in hidden
        for path in witness.paths:
            assert path[0] == witness.hidden
            assert set(pairwise(path)) <= edges
            assert all(v in hidden for v in path[:-1])
            assert path[-1] not in hidden
        first, second = (path[-1] for path in witness.paths)
        assert second in plain_descendants(edges, first)
        text = str(witness)
        assert all(repr(name) in text for name in (witness.hidden, first, second))
        assert all(" -> ".join(path) in text for path in witness.paths)
    assert seen > 100


def test_a_graph_without_hidden_nodes_is_admissible():
    assert admissible(CausalGraph([("a", "Y")], target="Y"))


def test_hidden_causes_of_unrelated_nodes_are_admissible():
    graph = CausalGraph([("U", "a"), ("U", "b"), ("a", "Y"), ("b", "Y")], target="Y", latent=["U"])
    assert admissible(graph)
    assert project(graph).edges == (("a", "Y"), ("b", "Y"))


@pytest.mark.parametrize("call", [require_admissible, project])
def test_an_inadmissible_graph_is_refused_with_the_hidden_node_and_both_paths(call):
    graph = CausalGraph([("U", "V"), ("V", "X"), ("U", "Y"), ("X", "M"), ("M", "Y")], target="Y", latent=["U", "V"])
    with pytest.raises(GraphError, match=r"hidden 'U' reaches 'X' \(U -> V -> X\) and its descendant 'Y' \(U -> Y\)"):
        call(graph)


def test_an_inadmissible_model_is_refused():
    with pytest.raises(GraphError, match="hidden 'U' reaches 'X'"):
        project(BinaryGLM.blm(CONFOUNDED, target="Y", latent=["U"]))


# -- sums over hidden paths -----------------------------------------------------------------------------------


def test_path_sums_are_sums_over_listed_paths():
    rng = np.random.default_rng(2)
    for _ in range(150):
        structure = hidden_structure(rng, size=int(rng.integers(4, 11)))
        graph = quietly(CausalGraph, **structure)
        weights = random_shares(rng, structure)
        expected = plain_path_sums(weights, graph.latent)
        found = path_sums_by_name(graph, BinaryGLM(graph, weights).theta)
        assert {pair: found.get(pair, 0.0) for pair in expected} == pytest.approx(expected, abs=1e-14)
        assert found.keys() == expected.keys()


@pytest.mark.parametrize(("sources", "sinks"), [(7, 2), (2, 7), (5, 5)])
def test_path_sums_through_two_hidden_layers(sources, sinks):
    layers = [[f"x{i}" for i in range(sources)], ["U0", "U1", "U2"], ["V0", "V1"], [f"y{i}" for i in range(sinks)]]
    edges = [(a, b) for one, other in pairwise(layers) for a in one for b in other]
    edges += [(y, "target") for y in layers[-1]]
    graph = CausalGraph(edges, target="target", latent=[*layers[1], *layers[2]], bias=["U0", "V1", "y0"])
    rng = np.random.default_rng(sources)
    structure = {"nodes": graph.nodes, "edges": edges, "bias": graph.bias}
    weights = random_shares(rng, structure)
    found = path_sums_by_name(graph, BinaryGLM(graph, weights).theta)
    expected = plain_path_sums(weights, graph.latent)
    assert {pair: found.get(pair, 0.0) for pair in expected} == pytest.approx(expected, abs=1e-14)


def test_exponentially_many_paths_are_no_trouble():
    """60 diamonds in a row: 2^60 hidden paths, whose weights sum to 1."""
    edges, weights = [("a", "U0")], {"a": 0.5, ("a", "U0"): 1.0}
    for i in range(60):
        for side in "LR":
            edges += [(f"U{i}", f"{side}{i}"), (f"{side}{i}", f"U{i + 1}")]
            weights |= {(f"U{i}", f"{side}{i}"): 1.0, (f"{side}{i}", f"U{i + 1}"): 0.5}
    edges.append(("U60", "Y"))
    weights["U60", "Y"] = 0.75
    hidden = {v for edge in edges for v in edge} - {"a", "Y"}
    model = project(BinaryGLM.blm(weights, target="Y", latent=hidden))
    assert model.weights == {"a": 0.5, "Y": 0.0, ("a", "Y"): 0.75}


# -- the projection -------------------------------------------------------------------------------------------


@SEEDS
def test_structure_is_that_of_the_hidden_paths(seed):
    rng = np.random.default_rng(seed)
    structure = admissible_structure(rng, size=8)
    graph = quietly(CausalGraph, **structure)
    edges, hidden = structure["edges"], structure["latent"]
    seen = [v for v in structure["nodes"] if v not in hidden]
    projected = project(graph)
    assert set(projected.edges) == {(v, path[-1]) for v in seen for path in hidden_paths(edges, hidden, v)}
    assert set(projected.bias) == {
        v for v in seen if v in structure["bias"] or any(a in hidden and b == v for a, b in edges)
    }
    assert set(projected.nodes) == set(seen)
    assert projected.latent == ()
    assert projected.target == "Y"
    assert set(projected.controllable) == set(graph.controllable)
    assert project(projected) is projected


@SEEDS
def test_weights_are_path_sums_and_biases_are_self_activations(seed):
    rng = np.random.default_rng(seed)
    model = hidden_blm(rng)
    projected = project(model)
    assert projected.graph == project(model.graph)
    expected = plain_path_sums(model.weights, model.graph.latent)
    for key, weight in projected.weights.items():
        pair = ("", key) if isinstance(key, str) else key
        assert weight == pytest.approx(expected.pop(pair, 0.0), abs=1e-14)
    assert expected == {}
    for x in projected.graph:
        others = {v: 0 for v in projected.graph if v != x}
        alone = brute_force_means(model, others)[x]
        assert projected.weights.get(x, 0.0) == pytest.approx(alone, abs=1e-12)


@SEEDS
def test_lemma_3_conditional_probabilities_agree(seed):
    rng = np.random.default_rng(seed)
    model = hidden_blm(rng, size=int(rng.integers(5, 9)))
    projected = project(model)
    checked = 0
    for do in ({}, random_do(rng, model.graph), random_do(rng, model.graph)):
        before, after = joint(model, do), joint(projected, do)
        for x in projected.graph:
            parents = projected.graph.parents(x)
            original, transformed = conditionals(before, x, parents), conditionals(after, x, parents)
            for pattern, (p, weight) in original.items():
                if weight > 1e-9:  # below that, 1 - p of a p that is 1 up to rounding
                    assert transformed[pattern][0] == pytest.approx(p, abs=1e-12)
                    checked += 1
    assert checked > 5


@SEEDS
def test_lemma_4_expectations_agree(seed):
    rng = np.random.default_rng(seed)
    model = hidden_blm(rng, size=int(rng.integers(5, 10)))
    projected = project(model)
    for do in ({}, random_do(rng, model.graph), random_do(rng, model.graph)):
        original = brute_force_means(model, do)
        transformed = brute_force_means(projected, do)
        answer = expect(projected, do)
        for x in projected.graph:
            assert transformed[x] == pytest.approx(original[x], abs=1e-12)
            assert answer[x] == pytest.approx(original[x], abs=1e-12)


def test_lemma_3_fails_where_a_hidden_node_reaches_a_cause_and_its_effect():
    """U -> X -> Y and U -> Y: seeing X = 1 tells of U, so P(Y = 1 | X = 1) = 0.9, where path sums say 0.5."""
    model = BinaryGLM.blm(CONFOUNDED, target="Y", latent=["U"])
    sums = path_sums_by_name(model.graph, model.theta)
    assert sums == pytest.approx({("", "X"): 0.5, ("", "Y"): 0.4, ("X", "Y"): 0.1})
    seen = conditionals(joint(model), "Y", ("X",))[1,][0]
    assert seen == pytest.approx(0.9)
    assert abs(seen - (sums["", "Y"] + sums["X", "Y"])) > 0.3
    done = brute_force_means(model, {"X": 1})["Y"]
    assert done == pytest.approx(sums["", "Y"] + sums["X", "Y"]), "do(X = 1) is another question than seeing X = 1"


@SEEDS
def test_a_continuous_model_keeps_its_means(seed):
    rng = np.random.default_rng(seed)
    model = hidden_blm(rng, model=LinearModel)
    projected = project(model)
    assert isinstance(projected, LinearModel)
    do = {name: float(rng.uniform()) for name in random_do(rng, model.graph)}
    before, after = expect(model, do), expect(projected, do)
    for x in projected.graph:
        assert after[x] == pytest.approx(before[x], abs=1e-12)


@pytest.mark.parametrize("kind", [BinaryGLM, LinearModel])
def test_noise_is_carried_over_by_name(kind):
    graph = CausalGraph([("U", "b"), ("a", "U"), ("b", "Y")], target="Y", latent=["U"], bias=["a", "U"])
    weights = {"a": 0.5, "U": 0.1, ("a", "U"): 0.5, ("U", "b"): 0.5, ("b", "Y"): 0.5}
    projected = project(kind(graph, weights, noise={"U": 0.9, "b": 0.2, "Y": 0.3}))
    assert type(projected) is kind
    assert {n: projected.noise[projected.graph.index(n)] for n in projected.graph} == {"a": 0.0, "b": 0.2, "Y": 0.3}


def test_a_model_without_hidden_nodes_is_its_own_projection():
    graph = CausalGraph([("a", "Y")], target="Y")
    assert project(graph) is graph
    for model in (
        BinaryGLM(graph, np.full(3, 0.1)),
        BinaryGLM(graph, np.full(3, 0.1), links="logistic"),
        LinearModel(graph, np.full(3, 0.1)),
    ):
        assert project(model) is model


def test_a_nonlinear_model_with_hidden_nodes_is_refused():
    graph = CausalGraph([("U", "a"), ("a", "Y")], target="Y", latent=["U"])
    weights = {"a": 0.1, "Y": 0.1, ("U", "a"): 0.1, ("a", "Y"): 0.1}
    with pytest.raises(ModelError, match=r"linear models only, but 'Y' \(logistic link\).*'U'"):
        project(BinaryGLM(graph, weights, links={"Y": "logistic"}))


def test_the_target_may_be_fed_by_hidden_nodes_alone_from_a_controllable_one():
    graph = CausalGraph([("a", "U"), ("U", "Y")], target="Y", latent=["U"], bias=["a"])
    model = project(BinaryGLM(graph, {"a": 0.5, ("a", "U"): 0.5, ("U", "Y"): 0.5}))
    assert model.weights == {"a": 0.5, "Y": 0.0, ("a", "Y"): 0.25}
