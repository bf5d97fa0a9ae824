"""expect(...): every exact method is the sum over all worlds; Monte Carlo is as far off as it says."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dobandit import BinaryGLM, CausalGraph, LinearModel, expect
from dobandit.errors import InferenceError
from helpers.worlds import (
    PLAIN_LINKS,
    bglms,
    blms,
    brute_force_means,
    quietly,
    random_bglm,
    random_do,
    relaxed,
    with_do,
)

EXACT = pytest.mark.parametrize("method", ["auto", "elimination", "enumeration"])


def assert_means(answer, expected):
    assert answer.means.keys() == expected.keys()
    for name, mean in expected.items():
        assert answer[name] == pytest.approx(mean, abs=1e-12), name


def logistic(shift):
    return lambda x: PLAIN_LINKS["logistic"](x, shift)


# -- exact methods --------------------------------------------------------------------------------------------


@EXACT
@relaxed(max_examples=40)
@given(with_do(bglms()))
def test_any_links_and_any_do_equal_brute_force(method, drawn):
    model, do = drawn
    answer = expect(model, do, method)
    assert_means(answer, brute_force_means(model, do))
    assert answer.standard_error == 0
    assert answer.method == ("linear" if method == "auto" and model.is_linear else answer.method)


@pytest.mark.parametrize("method", ["auto", "linear", "elimination", "enumeration"])
@relaxed(max_examples=40)
@given(with_do(blms()))
def test_linear_models_equal_brute_force_by_every_method(method, drawn):
    model, do = drawn
    answer = expect(model, do, method)
    assert answer.method == ("linear" if method == "auto" else method)
    assert_means(answer, brute_force_means(model, do))


@pytest.mark.parametrize("seed", range(15))
def test_elimination_of_twelve_nodes(seed):
    rng = np.random.default_rng(seed)
    model = random_bglm(rng, 12)
    do = random_do(rng, model.graph) if seed % 2 else {}
    assert_means(expect(model, do, "elimination"), brute_force_means(model, do))


@relaxed(max_examples=30)
@given(with_do(bglms()), st.data())
def test_a_node_that_is_set_has_its_value_and_forgets_its_causes(drawn, data):
    model, do = drawn
    name = data.draw(st.sampled_from(model.graph.observed))
    with_it, without = (expect(model, d) for d in (do | {name: 1}, {k: v for k, v in do.items() if k != name}))
    assert with_it[name] == 1.0
    for other in model.graph:
        if other != name and name not in model.graph.ancestors(other):
            assert with_it[other] == pytest.approx(without[other], abs=1e-12)


def test_do_may_set_the_target():
    model = BinaryGLM.blm({"a": 0.5, ("a", "Y"): 0.5}, target="Y")
    for method, value in itertools.product(("linear", "elimination", "enumeration", "monte-carlo"), (0, 1)):
        assert expect(model, {"Y": value}, method).value == value


@pytest.mark.parametrize("hidden", [True, False])
def test_hidden_nodes_have_means_too(hidden):
    weights = {"U": 0.7, ("U", "a"): 1.0, ("U", "Y"): 0.5, ("a", "b"): 1.0, ("b", "Y"): 2.0}
    graph = CausalGraph(
        [k for k in weights if not isinstance(k, str)], target="Y", latent=["U"] if hidden else [], bias=["U"]
    )
    model = BinaryGLM(graph, weights, links="exponential")
    assert_means(expect(model, ["b"]), brute_force_means(model, {"b": 1}))


# -- shapes that can be computed by hand at any size -----------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "elimination"])
def test_a_chain_of_200_logistic_nodes(method):
    weights = {"n0": 0.4} | {f"n{i}": 0.3 for i in range(1, 200)}
    weights |= {(f"n{i - 1}", f"n{i}"): 1.0 + i / 100 for i in range(1, 200)}
    link = {"name": "logistic", "shift": 1.5}
    model = BinaryGLM(CausalGraph([k for k in weights if isinstance(k, tuple)], target="n199"), weights, links=link)
    f = logistic(1.5)
    for do in ({}, {"n50": 1, "n120": 0}):
        expected = {"n0": f(0.4)}
        for i in range(1, 200):
            before, w = expected[f"n{i - 1}"], 1.0 + i / 100
            expected[f"n{i}"] = float(do.get(f"n{i}", f(0.3) * (1 - before) + f(0.3 + w) * before))
        assert_means(expect(model, do, method), expected)


def test_a_chain_of_200_nodes_with_two_parents_each():
    """The pair of the last two nodes is a Markov chain."""
    edges = [(f"n{i - back}", f"n{i}") for i in range(200) for back in (1, 2) if i >= back]
    graph = CausalGraph(edges, target="n199")
    weights = dict.fromkeys(graph, 0.2) | {(a, b): 0.9 if int(b[1:]) - int(a[1:]) == 1 else 0.5 for a, b in edges}
    model = BinaryGLM(graph, weights, links="exponential")
    pair = {(0, 0): 1.0}  # (node i - 2, node i - 1); absent nodes count as 0
    expected = {}
    for i in range(200):
        after: dict[tuple[int, int], float] = {}
        for (a, b), p in pair.items():
            one = 1 - math.exp(-(0.2 + 0.5 * a + 0.9 * b))
            for value, q in ((0, 1 - one), (1, one)):
                after[b, value] = after.get((b, value), 0.0) + p * q
        pair = after
        expected[f"n{i}"] = sum(p for (_, b), p in pair.items() if b)
    answer = expect(model)
    assert answer.method == "elimination"
    assert_means(answer, expected)


def test_a_tree_of_255_nodes_that_flows_into_its_root():
    """Subtrees are independent, so a node's two parents are."""
    edges = [(f"n{child}", f"n{child // 2}") for child in range(2, 256)]
    graph = CausalGraph(edges, target="n1")
    weights = dict.fromkeys(graph, 0.1) | {(a, b): 0.7 if int(a[1:]) % 2 else 1.6 for a, b in edges}
    model = BinaryGLM(graph, weights, links="rational")
    do = {"n8": 1, "n33": 0}
    expected: dict[str, float] = {}
    for i in range(255, 0, -1):
        total = 0.0
        for even, odd in itertools.product((0, 1), repeat=2):
            p = 1.0
            for value, parent in ((even, f"n{2 * i}"), (odd, f"n{2 * i + 1}")):
                mean = expected.get(parent, 0.0)
                p *= mean if value else 1 - mean
            total += p * PLAIN_LINKS["rational"](0.1 + 1.6 * even + 0.7 * odd, 1.0)
        expected[f"n{i}"] = float(do.get(f"n{i}", total))
    assert_means(expect(model, do, "elimination"), expected)


@relaxed(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_random_polytrees(seed):
    """Each new node is tied to one earlier node, in either direction: no cycle even without directions."""
    rng = np.random.default_rng(seed)
    nodes = [f"n{i}" for i in range(10)]
    edges = []
    for i in range(1, 9):
        pair = (nodes[i], nodes[int(rng.integers(0, i))])
        edges.append(pair if rng.random() < 0.6 else pair[::-1])
    edges.append((nodes[0], nodes[9]))
    graph = quietly(CausalGraph, edges, target=nodes[9])
    weights = {key: float(rng.choice([0.0, 0.4, 1.3])) for key in [*nodes, *edges]}
    model = BinaryGLM(graph, weights, links={"name": "logistic", "shift": 1.0})
    do = {n: int(rng.integers(0, 2)) for n in nodes if rng.random() < 0.2}
    assert_means(expect(model, do, "elimination"), brute_force_means(model, do))


def test_a_hub_with_many_effects_of_two_causes():
    """The hub is in 400 factors, yet no table needs more than three variables."""
    edges = [(cause, f"z{i}") for i in range(400) for cause in ("hub", f"w{i}")] + [("hub", "Y")]
    graph = CausalGraph(edges, target="Y", controllable=["hub"])
    model = BinaryGLM(graph, dict.fromkeys(graph, 0.5) | dict.fromkeys(edges, 0.8), links="exponential")
    f = PLAIN_LINKS["exponential"]
    root = f(0.5)
    z = (1 - root) ** 2 * f(0.5) + 2 * root * (1 - root) * f(1.3) + root**2 * f(2.1)
    answer = expect(model)
    assert answer.method == "elimination"
    assert [answer[f"z{i}"] for i in range(400)] == pytest.approx([z] * 400, abs=1e-12)
    assert answer.value == pytest.approx((1 - root) * f(0.5) + root * f(1.3), abs=1e-12)


# -- the linear pass ------------------------------------------------------------------------------------------


def test_a_linear_model_of_30_000_edges_is_compiled_and_right():
    rng = np.random.default_rng(3)
    size = 1000
    names = [f"n{i}" for i in range(size)]
    a, b = np.triu_indices(size, k=1)
    kept = np.sort(rng.choice(len(a), 30_000, replace=False))
    kept = np.union1d(kept, [size - 2])  # the edge from the first node to the last
    a, b = a[kept], b[kept]
    graph = CausalGraph.from_arrays(names, a, b, target=names[-1], bias=names)
    share = 1.0 / (1 + np.bincount(b, minlength=size))
    counts = np.diff(graph.arrays.parent_ptr)[1:]
    by_name = dict(zip(names, share, strict=True))
    theta = np.repeat([by_name[n] for n in graph.nodes], counts)
    model = BinaryGLM(graph, theta * rng.uniform(0, 1, len(theta)))
    matrix, bias = np.zeros((size, size)), np.zeros(size)
    for key, weight in model.weights.items():
        if isinstance(key, str):
            bias[names.index(key)] = weight
        else:
            matrix[int(key[1][1:]), int(key[0][1:])] = weight
    expected = np.linalg.solve(np.eye(size) - matrix, bias)
    answer = expect(model)
    np.testing.assert_allclose([answer[n] for n in names], expected, rtol=0, atol=1e-12)


@relaxed(max_examples=25)
@given(with_do(blms()))
def test_a_continuous_model_has_the_means_of_the_blm(drawn):
    model, do = drawn
    continuous = LinearModel(model.graph, model.weights)
    assert_means(expect(continuous, do), brute_force_means(model, do))


def test_a_continuous_model_set_to_a_fraction_by_hand():
    model = LinearModel.of_weights({"a": 0.2, ("a", "b"): 0.5, "b": 0.1, ("b", "Y"): 0.4, ("a", "Y"): 0.6}, target="Y")
    assert expect(model, {"a": 0.3})["b"] == pytest.approx(0.25)
    assert expect(model, {"a": 0.3}).value == pytest.approx(0.4 * 0.25 + 0.6 * 0.3)


# -- monotonicity (paper, Appendix: setting a variable to 1 never hurts) ---------------------------------------


@relaxed(max_examples=40)
@given(with_do(bglms()), st.data())
def test_one_more_node_set_to_one_never_lowers_and_to_zero_never_raises(drawn, data):
    model, do = drawn
    free = [n for n in model.graph.observed if n not in do]
    assume(free)
    name = data.draw(st.sampled_from(free))
    at_zero, base, at_one = (expect(model, d, "enumeration") for d in (do | {name: 0}, do, do | {name: 1}))
    for v in model.graph:
        assert at_zero[v] <= base[v] + 1e-12
        assert base[v] <= at_one[v] + 1e-12


# -- Monte Carlo ----------------------------------------------------------------------------------------------


@relaxed(max_examples=30)
@given(with_do(bglms()))
def test_monte_carlo_is_within_five_standard_errors(drawn):
    model, do = drawn
    truth = brute_force_means(model, do)
    answer = expect(model, do, "monte-carlo", samples=20_000, seed=1)
    assert answer.method == "monte-carlo"
    assert answer.samples == 20_000
    assert answer.standard_error == max(answer.standard_errors.values())
    for name, mean in truth.items():
        assert abs(answer[name] - mean) <= 5 * answer.standard_errors[name] + 1e-12, name


DIAMOND = BinaryGLM(
    CausalGraph([("a", "b"), ("a", "c"), ("b", "Y"), ("c", "Y"), ("d", "Y")], target="Y"),
    dict.fromkeys("abcdY", 0.3) | dict.fromkeys([("a", "b"), ("a", "c"), ("b", "Y"), ("c", "Y"), ("d", "Y")], 0.9),
    links="exponential",
)


def test_the_standard_error_is_of_the_right_size():
    truth = brute_force_means(DIAMOND)["Y"]
    answers = [expect(DIAMOND, method="monte-carlo", samples=500, seed=seed) for seed in range(200)]
    squares = sum(((a.value - truth) / a.standard_errors["Y"]) ** 2 for a in answers)
    assert stats.chi2(200).ppf(1e-6) < squares < stats.chi2(200).ppf(1 - 1e-6)


def test_small_probabilities_have_a_standard_error_too():
    model = BinaryGLM.blm({"a": 0.5, ("a", "b"): 1e-8, ("b", "Y"): 0.5}, target="Y")
    answer = expect(model, method="monte-carlo", samples=1000)
    assert answer["b"] != expect(model)["b"]
    assert answer.standard_errors["b"] == pytest.approx(0.5e-8 / math.sqrt(1000), rel=0.1)
    assert answer.standard_errors["a"] == 0.0


def test_the_seed_decides():
    one, same, other = (expect(DIAMOND, method="monte-carlo", samples=1000, seed=s) for s in (5, 5, 6))
    assert one == same
    assert one.means != other.means


def test_common_random_numbers_sharpen_differences():
    """With r = exp(-0.9), the variance is smaller by (1 - r)^2 / (1 + r^2) = 0.30; an F-test sees that."""

    def run(do, seed):
        return expect(DIAMOND, do, "monte-carlo", samples=100, seed=seed).value

    runs = 250
    common = [run({"d": 1}, s) - run({"d": 0}, s) for s in range(runs)]
    apart = [run({"d": 1}, s) - run({"d": 0}, s + 1000) for s in range(runs)]
    ratio = np.var(common, ddof=1) / np.var(apart, ddof=1)
    assert stats.f(runs - 1, runs - 1).cdf(ratio) < 1e-6
    exact = brute_force_means(DIAMOND, {"d": 1})["Y"] - brute_force_means(DIAMOND, {"d": 0})["Y"]
    assert np.mean(common) == pytest.approx(exact, abs=5 * np.std(common, ddof=1) / math.sqrt(runs))


def test_a_node_with_many_causes_goes_to_monte_carlo():
    edges = [(f"x{i}", "Y") for i in range(40)]
    graph = CausalGraph(edges, target="Y", bias=[a for a, _ in edges])
    model = BinaryGLM(graph, {a: 0.5 for a, _ in edges} | dict.fromkeys(edges, 0.1), links={"Y": "exponential"})
    answer = expect(model, samples=20_000)
    truth = 1 - (0.5 + 0.5 * math.exp(-0.1)) ** 40
    assert answer.method == "monte-carlo"
    assert abs(answer.value - truth) <= 5 * answer.standard_errors["Y"]
    assert expect(model, {f"x{i}": 1 for i in range(30)}).method == "elimination"  # ten are left to sum over
    with pytest.raises(InferenceError, match="more than 22 variables"):
        expect(model, method="elimination")


def test_many_nodes_with_some_causes_go_to_monte_carlo():
    """Five tables of 22 variables are within the limit of each, but not within that of all."""
    edges = [(f"x{j}_{i}", f"z{j}") for j in range(5) for i in range(21)]
    graph = CausalGraph([*edges, *((f"z{j}", "Y") for j in range(5))], target="Y", bias=[a for a, _ in edges])
    model = BinaryGLM(graph, dict.fromkeys(graph.bias, 0.5) | dict.fromkeys(graph.edges, 0.1), links="exponential")
    assert expect(model, samples=100).method == "monte-carlo"


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"method": "montecarlo"}, "Did you mean 'monte-carlo'"),
        ({"method": None}, "None"),
        ({"method": "linear"}, "identity links only"),
        ({"method": "monte-carlo", "samples": 1}, "from 2 to 1,000,000,000, but got 1"),
        ({"method": "monte-carlo", "samples": 10.0}, "whole number"),
        ({"method": "monte-carlo", "samples": True}, "whole number"),
    ],
)
def test_a_bad_question_is_refused(kwargs, words):
    with pytest.raises(InferenceError, match=words):
        expect(DIAMOND, **kwargs)


def test_too_many_worlds_are_refused():
    names = [f"n{i}" for i in range(23)]
    edges = list(itertools.pairwise(names))
    graph = CausalGraph(edges, target=names[-1])
    model = BinaryGLM(graph, dict.fromkeys(names, 0.1) | dict.fromkeys(edges, 0.1), links="logistic")
    with pytest.raises(InferenceError, match=r"2\^23"):
        expect(model, method="enumeration")
    assert expect(model, dict.fromkeys(names[:10], 0), method="enumeration").method == "enumeration"


@pytest.mark.parametrize("method", ["elimination", "enumeration", "monte-carlo"])
def test_continuous_models_have_the_linear_pass_only(method):
    model = LinearModel.of_weights({"a": 0.2, ("a", "Y"): 0.5}, target="Y")
    with pytest.raises(InferenceError, match="continuous"):
        expect(model, method=method)


def test_an_expectation_is_a_mapping():
    answer = expect(DIAMOND)
    assert set(answer) == set(DIAMOND.graph)
    assert len(answer) == 5
    assert answer["Y"] == answer.value
    with pytest.raises(KeyError):
        answer["nobody"]
