"""Effects of both signs: what is refused, what E[Y | do(S)] is, files, projection; all against loops over patterns."""

import itertools
import json
import math
import pickle
from importlib.resources import files

import jsonschema
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dobandit import BinaryGLM, CausalGraph, LinearModel, expect, project, random_model
from dobandit.errors import ModelError
from dobandit.estimation.assumptions import diagnose_assumptions
from dobandit.graph.latent import admissible
from dobandit.model.link_kernels import link_arrays, value_at
from dobandit.model.links import BUILDERS, custom, logistic
from dobandit.model.model_files import parse_model, print_model
from dobandit.model.random_models import SHAPES
from helpers.plain_paths import plain_path_sums
from helpers.worlds import (
    SIGNED_ARCTAN,
    brute_force_means,
    conditionals,
    hidden_blm,
    joint,
    quietly,
    random_do,
    relaxed,
    signed_bglms,
    signed_blms,
    with_do,
)

SCHEMA = json.loads(files("dobandit.model").joinpath("schemas/model.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)  # `jsonschema.validate` would check the schema itself each time
SEEDS = pytest.mark.parametrize("seed", range(40))


def probabilities(model, name):
    """P(name = 1 | pattern) for every pattern of its parents, from the definition."""
    bias, weights = model.parent_weights(name)
    for pattern in itertools.product((0, 1), repeat=len(weights)):
        x = bias + sum(w for w, on in zip(weights.values(), pattern, strict=True) if on)
        yield float(model.link(name).value(x))


# -- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [BinaryGLM, LinearModel])
@relaxed(max_examples=40)
@given(bias=st.integers(-8, 16), weights=st.lists(st.integers(-12, 12), min_size=1, max_size=4), biased=st.booleans())
def test_a_linear_model_is_refused_exactly_when_some_pattern_is_no_probability(kind, bias, weights, biased):
    """Eighths are exact in floating point, so the border itself is tested."""
    names = [f"X{i}" for i in range(len(weights))]
    graph = CausalGraph([(name, "Y") for name in names], "Y", bias=[*names, "Y"] if biased else names)
    given_weights = dict.fromkeys(names, 0.5) | {(name, "Y"): w / 8 for name, w in zip(names, weights, strict=True)}
    given_weights |= {"Y": bias / 8} if biased else {}
    start = bias if biased else 0
    sums = {
        pattern: start + sum(w for w, on in zip(weights, pattern, strict=True) if on)
        for pattern in itertools.product((0, 1), repeat=len(weights))
    }
    if all(0 <= x <= 8 for x in sums.values()):
        model = kind(graph, given_weights)
        v = graph.index("Y")
        assert (model.reach.low[v], model.reach.high[v]) == (min(sums.values()) / 8, max(sums.values()) / 8)
        return
    with pytest.raises(ModelError) as caught:
        kind(graph, given_weights)
    text = str(caught.value)
    if "between -1 and 1" in text:
        assert max(map(abs, [*weights, start])) > 8
        return
    assert "node 'Y'" in text
    extremes = {min(sums.values()) / 8, max(sums.values()) / 8}
    assert any(f"would be {x:g}," in text for x in extremes if not 0 <= x <= 1)


@relaxed(max_examples=40)
@given(st.one_of(signed_blms(), signed_bglms()))
def test_a_model_that_is_accepted_has_probabilities_only(model):
    for name in model.graph:
        assert all(-1e-9 <= p <= 1 + 1e-9 for p in probabilities(model, name))
        v = model.graph.index(name)
        bias, weights = model.parent_weights(name)
        assert model.reach.low[v] == pytest.approx(bias + sum(w for w in weights.values() if w < 0))
        assert model.reach.high[v] == pytest.approx(bias + sum(w for w in weights.values() if w > 0))


def test_the_pattern_is_named():
    graph = CausalGraph([("price", "buy"), ("ad", "buy"), ("rain", "buy")], "buy")
    weights = {"price": 0.5, "ad": 0.5, "rain": 0.5, "buy": 0.3, ("ad", "buy"): 0.2}
    for price, rain, says in [
        (-0.2, -0.2, "'price', 'rain' at 1 and all other parents at 0 its probability would be -0.1"),
        (0.6, -0.2, "'ad', 'price' at 1 and all other parents at 0 its probability would be 1.1"),
    ]:
        with pytest.raises(ModelError, match=says):
            BinaryGLM(graph, weights | {("price", "buy"): price, ("rain", "buy"): rain})


def test_weights_that_cancel_up_to_rounding_are_fine():
    """0.3 - 0.1 - 0.2 is -2.8e-17 in floating point, where a link of one's own need not be defined."""
    graph = CausalGraph([("a", "Y"), ("b", "Y")], "Y")
    weights = {"a": 0.5, "b": 0.5, "Y": 0.3, ("a", "Y"): -0.1, ("b", "Y"): -0.2}
    for method in ("linear", "elimination", "enumeration"):
        assert expect(BinaryGLM(graph, weights), ["a", "b"], method).value == pytest.approx(0.0, abs=1e-12)
    root = custom(
        "root",
        lambda x: np.sqrt(np.asarray(x)) if np.all(np.asarray(x) >= 0) else 1 / 0,
        lambda x: 0.5 / np.sqrt(x),
        lambda x: -0.25 * np.asarray(x) ** -1.5,
        bounds=(1e9, 1e9, 0.5),
        domain=(0.0, 1.0),
        weight_range=(-1.0, 1.0),
    )
    model = BinaryGLM(graph, weights, links={"Y": root})
    truth = (math.sqrt(0.3) + math.sqrt(0.2) + math.sqrt(0.1)) / 4
    for method in ("elimination", "enumeration"):
        assert expect(model, method=method).value == pytest.approx(truth, abs=1e-7)
    assert expect(model, method="monte-carlo", samples=5000).value == pytest.approx(truth, abs=0.02)
    with pytest.raises(ModelError, match=r"'a', 'b' at 1 and all other parents at 0|all parents at 1"):
        BinaryGLM(graph, weights | {"Y": 0.29}, links={"Y": root})


def test_cascades_and_thresholds_stay_nonnegative():
    weights = {"a": 0.5, "Y": 0.5, ("a", "Y"): -0.3}
    with pytest.raises(ModelError, match=r"linear threshold.*'a' -> 'Y' is -0.3.*BinaryGLM.blm"):
        BinaryGLM.linear_threshold(weights, "Y")
    with pytest.raises(ModelError, match="at least 0"):
        BinaryGLM.independent_cascade(weights, "Y")
    assert BinaryGLM.blm(weights, "Y").harmful == (("a", "Y"),)


# -- nonnegative, harmful --------------------------------------------------------------------------------------


@relaxed(max_examples=40)
@given(with_do(st.one_of(signed_bglms(), signed_blms())))
def test_nonnegative_says_that_one_more_never_lowers(drawn):
    model, do = drawn
    negative = tuple(edge for edge in model.graph.edges if model.weights[edge] < 0)
    assert model.harmful == negative
    assert model.nonnegative == (not negative)
    if model.nonnegative:
        free = [name for name in model.graph.observed if name not in do]
        base = brute_force_means(model, do)[model.target]
        for name in free:
            assert brute_force_means(model, do | {name: 1})[model.target] >= base - 1e-12


def test_a_negative_bias_is_not_harmful():
    graph = CausalGraph([("a", "Y")], "Y")
    model = BinaryGLM(graph, {"a": -1.0, "Y": -2.0, ("a", "Y"): 1.0}, links="logistic")
    assert model.nonnegative
    assert model.harmful == ()


# -- expectations ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "elimination", "enumeration"])
@relaxed(max_examples=40)
@given(with_do(signed_bglms()))
def test_exact_methods_equal_the_sum_over_all_worlds(method, drawn):
    model, do = drawn
    assert expect(model, do, method).means == pytest.approx(brute_force_means(model, do), abs=1e-12)


@pytest.mark.parametrize("method", ["linear", "elimination", "enumeration"])
@relaxed(max_examples=40)
@given(with_do(signed_blms()))
def test_linear_models_equal_the_sum_over_all_worlds(method, drawn):
    model, do = drawn
    truth = brute_force_means(model, do)
    assert expect(model, do, method).means == pytest.approx(truth, abs=1e-12)
    assert expect(LinearModel(model.graph, model.weights), do).means == pytest.approx(truth, abs=1e-12)


@relaxed(max_examples=25)
@given(with_do(signed_bglms()))
def test_monte_carlo_is_within_five_standard_errors(drawn):
    model, do = drawn
    answer = expect(model, do, "monte-carlo", samples=20_000, seed=1)
    for name, mean in brute_force_means(model, do).items():
        assert abs(answer[name] - mean) <= 5 * answer.standard_errors[name] + 1e-12, name


@relaxed(max_examples=15)
@given(signed_blms(most=5), st.integers(0, 2**32 - 1))
def test_samples_of_a_continuous_model_stay_within_0_and_1_and_have_its_means(model, seed):
    continuous = LinearModel(model.graph, model.weights, noise=1.0)
    drawn = continuous.sample(size=4000, rng=seed)
    means = brute_force_means(model)
    for name, values in drawn.items():
        assert values.min() >= 0.0
        assert values.max() <= 1.0
        assert values.mean() == pytest.approx(means[name], abs=6 * 0.5 / math.sqrt(4000))


def test_compiled_links_serve_negative_sums_too():
    """A table over [-reach, reach] holds both ends; the largest |weighted sum| is what it is made for."""
    model = BinaryGLM(
        CausalGraph([("a", "Y"), ("b", "Y")], "Y"),
        {"a": 0.0, "b": 0.0, "Y": 1.0, ("a", "Y"): -6.0, ("b", "Y"): 5.0},
        links=SIGNED_ARCTAN,
    )
    largest = np.maximum(-model.reach.low, model.reach.high)[1:]
    links, y = link_arrays(model.links, largest.tolist()), model.graph.index("Y")
    for x in np.linspace(model.reach.low[y], model.reach.high[y], 101).tolist():
        assert value_at(links.nodes[y], links.points, x) == pytest.approx(0.5 + math.atan(x) / math.pi, abs=1e-10)


# -- files and pickles ----------------------------------------------------------------------------------------


@relaxed(max_examples=40)
@given(signed_bglms())
def test_files_and_pickles_keep_a_model(model):
    assert pickle.loads(pickle.dumps(model)) == model
    assume(all(link.name in BUILDERS for link in model.links))
    text = print_model(model)
    VALIDATOR.validate(json.loads(text))
    assert quietly(parse_model, text) == model


@pytest.mark.parametrize("link", ["exponential", {"name": "exponential"}, "rational", {"name": "rational", "a": 2.0}])
def test_the_schema_refuses_negative_weights_where_the_link_does(link):
    document = {"target": "Y", "nodes": {"X": {"bias": 0.5}, "Y": {"link": link, "bias": 1.0, "parents": {"X": -0.5}}}}
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)
    document["nodes"]["Y"]["link"] = "logistic"
    VALIDATOR.validate(document)


# -- hidden variables -----------------------------------------------------------------------------------------


@SEEDS
def test_projection_keeps_every_conditional_and_every_expectation(seed):
    rng = np.random.default_rng(seed)
    model = hidden_blm(rng, 7, signed=True)
    projected = quietly(project, model)
    assert admissible(model.graph)
    sums = plain_path_sums(model.weights, model.graph.latent)
    for name in projected.graph:
        bias, weights = projected.parent_weights(name)
        assert bias == pytest.approx(sums.get(("", name), 0.0), abs=1e-12)
        for parent, weight in weights.items():
            assert weight == pytest.approx(sums.get((parent, name), 0.0), abs=1e-12)
        for pattern, (p, _) in conditionals(joint(model), name, tuple(weights)).items():
            by_weights = bias + sum(w for w, on in zip(weights.values(), pattern, strict=True) if on)
            assert by_weights == pytest.approx(p, abs=1e-9)
    for _ in range(3):
        do = random_do(rng, model.graph)
        truth = brute_force_means(model, do)
        assert expect(projected, do).means == pytest.approx({n: truth[n] for n in projected.graph}, abs=1e-12)


def test_two_harmful_steps_through_a_hidden_variable_help():
    weights = {"a": 0.5, "U": 0.8, ("a", "U"): -0.5, "Y": 0.6, ("U", "Y"): -0.5}
    model = BinaryGLM.blm(weights, "Y", latent=["U"])
    assert model.harmful == (("a", "U"), ("U", "Y"))
    projected = project(model)
    assert projected.nonnegative
    assert projected.weights == pytest.approx({"a": 0.5, "Y": 0.2, ("a", "Y"): 0.25})


# -- assumptions ----------------------------------------------------------------------------------------------


@relaxed(max_examples=30)
@given(st.one_of(signed_blms(most=6), signed_bglms(most=5)))
def test_upsilon_is_the_least_chance_and_appendix_b_stays_below_the_exact_zeta(model):
    found = diagnose_assumptions(model)
    least = min(min(p, 1 - p) for name in model.graph for p in probabilities(model, name))
    assert found.upsilon == pytest.approx(max(least, 0.0), abs=1e-9)
    assert found.zeta_lemma is None or 0 < found.zeta_lemma <= found.zeta_exact * (1 + 1e-9)
    assert found.harmful == model.harmful


@relaxed(max_examples=25)
@given(signed_bglms(most=5))
def test_slope_bounds_hold_over_the_ball_around_the_weights(model):
    for node in diagnose_assumptions(model).nodes:
        bias, by_parent = model.parent_weights(node.name)
        theta = np.array([bias] * model.graph.has_bias(node.name) + list(by_parent.values()))
        link, d = model.link(node.name), len(theta)
        ends = [0.0]
        for corner in itertools.product((0.0, 1.0), repeat=d):
            ends += [np.dot(corner, theta) + sign * math.sqrt(sum(corner)) for sign in (-1, 1)]
        x = np.clip(np.linspace(min(ends), max(ends), 2001), *link.domain)  # v is any vector in [0, 1]^d
        slopes, bends = link.slope(x), np.abs(link.bend(x))
        assert node.kappa <= slopes.min() * (1 + 1e-9)
        assert node.l2 >= bends.max() * (1 - 1e-9)
        assert node.l1 >= slopes.max() * (1 - 1e-9)
        if link.given_bounds is None:
            assert node.kappa >= slopes.min() * 0.97
            assert node.l2 <= bends.max() * 1.03


def test_the_diagnosis_says_what_negative_weights_cost():
    model = BinaryGLM.blm({"a": 0.5, "b": 0.5, "Y": 0.4, ("a", "Y"): -0.3, ("b", "Y"): 0.4}, "Y")
    found = diagnose_assumptions(model)
    words = " ".join(found.in_words())
    assert "'a -> Y' has a negative weight" in words
    assert "exactly K" in words
    assert "the paper's policies need nonnegative weights" in words
    assert "is guaranteed" not in words
    assert found.regret_bound_blm_lr(100) is None
    assert found.regret_bound_bglm_ofu(100) is None


# -- random models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("link", ["identity", "logistic", "probit", logistic(2.0), SIGNED_ARCTAN], ids=str)
def test_random_models_of_mixed_signs_are_legal_and_mixed(shape, link):
    signs = []
    for seed in range(4):
        model = random_model(shape, 8, seed=seed, link=link, signs="mixed")
        positive = random_model(shape, 8, seed=seed, link=link)
        assert model.graph == positive.graph
        assert all(abs(model.weights[e]) == pytest.approx(abs(positive.weights[e])) for e in model.graph.edges)
        assert model == random_model(shape, 8, seed=seed, link=link, signs="mixed")
        for name in model.graph:
            assert all(-1e-9 <= p <= 1 + 1e-9 for p in probabilities(model, name))
        do = list(model.graph.controllable[:2])
        assert expect(model, do).value == pytest.approx(brute_force_means(model, dict.fromkeys(do, 1))["Y"], abs=1e-9)
        signs += [model.weights[edge] < 0 for edge in model.graph.edges]
    assert any(signs)
    assert not all(signs)


def test_random_models_of_mixed_signs_can_be_continuous_and_have_hidden_nodes():
    for seed in range(10):
        model = random_model("layered", 9, seed=seed, latent=3, continuous=True, signs="mixed")
        assert isinstance(model, LinearModel)
        do = list(model.graph.controllable[::2])
        assert expect(project(model), do).value == pytest.approx(expect(model, do).value, abs=1e-12)


def test_bounded_links_of_ones_own_keep_their_range():
    half = custom(
        "half",
        lambda x: 0.5 * x,
        lambda x: 0.5 + 0.0 * x,
        lambda x: 0.0 * x,
        bounds=(0.5, 0.0, 0.5),
        domain=(0.0, 2.0),
        weight_range=(-0.1, 0.6),
    )
    for seed in range(10):
        random_model("parallel", 6, seed=seed, link=half, signs="mixed")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"signs": "mixd"}, "Did you mean 'mixed'"), ({"signs": None}, "signs are"), ({"link": "rational"}, "rational")],
)
def test_impossible_signs_are_refused(arguments, words):
    with pytest.raises(ModelError, match=words):
        random_model("parallel", 5, seed=0, **({"signs": "mixed"} | arguments))
