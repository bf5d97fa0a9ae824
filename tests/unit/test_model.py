"""Models: what they refuse and how they say so, equality, cascades and thresholds."""

import copy
import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest

import dobandit as dob
from dobandit import BinaryGLM, CausalGraph, LinearModel, expect, links
from dobandit.errors import DobanditError, GraphError, InterventionError, ModelError
from dobandit.storage import MemoryStorage
from helpers.worlds import ARCTAN, SIGNED_ARCTAN, brute_force_means

GRAPH = CausalGraph([("ad", "visit"), ("visit", "buy"), ("ad", "buy")], target="buy", bias=["ad", "visit"])
WEIGHTS = {"ad": 0.2, "visit": 0.1, ("ad", "visit"): 0.5, ("visit", "buy"): 0.75, ("ad", "buy"): 0.25}
BOTH = pytest.mark.parametrize("model", [BinaryGLM, LinearModel])


def refused(build, error=ModelError) -> str:
    with pytest.raises(error) as caught:
        build()
    assert isinstance(caught.value, DobanditError)
    return str(caught.value)


# -- refusals -------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("ad", -0.1, ["'ad'", "all parents at 0", "-0.1", "[0, 1]", "Raise its bias"]),
        (("ad", "visit"), -0.1 - 1e-6, ["'visit'", "all parents at 1", "-1e-06", "[0, 1]"]),
        (("ad", "visit"), -1.5, ["'ad' -> 'visit'", "between -1 and 1", "-1.5"]),
        (("ad", "visit"), 1.5, ["'ad' -> 'visit'", "between -1 and 1", "1.5"]),
        (("ad", "buy"), -0.25, ["'buy'", "'ad' at 1 and all other parents at 0", "-0.25", "[0, 1]"]),
        (("ad", "visit"), math.nan, ["'ad' -> 'visit'", "finite", "nan"]),
        (("ad", "visit"), math.inf, ["'ad' -> 'visit'", "finite", "inf"]),
        pytest.param(("ad", "visit"), 10**400, ["'ad' -> 'visit'", "finite"], id="huge"),
        (("ad", "visit"), True, ["'ad' -> 'visit'", "number", "True"]),
        (("ad", "visit"), np.True_, ["'ad' -> 'visit'", "number", "True"]),
        (("ad", "visit"), "0.5", ["'ad' -> 'visit'", "number", "'0.5'"]),
        (("ad", "visit"), None, ["'ad' -> 'visit'", "number", "None"]),
        (("ad", "visit"), 0.5j, ["'ad' -> 'visit'", "number", "0.5j"]),
        (("ad", "visit"), Fraction(1, 2), ["'ad' -> 'visit'", "number", "Fraction(1, 2)"]),
        (("ad", "visit"), 0.95, ["'visit'", "all parents at 1", "1.05", "[0, 1]"]),
        (("ad", "visit"), 0.9 + 1e-6, ["'visit'", "all parents at 1", "[0, 1]"]),
        ("buy", 0.0, ["'buy'", "none of them"]),
        ("vist", 0.1, ["'vist'", "Did you mean 'visit'?"]),
        (("ad", "bye"), 0.1, ["('ad', 'bye')", "Did you mean 'buy'?"]),
        (("visit", "ad"), 0.1, ["('visit', 'ad')", "none of them"]),
        (("ad", "visit", "buy"), 0.1, ["none of them"]),
        (("ad",), 0.1, ["('ad',)", "(cause, effect)"]),
        (5, 0.1, ["5", "(cause, effect)"]),
    ],
)
def test_a_bad_weight_is_refused_naming_it(model, key, value, words):
    text = refused(lambda: model(GRAPH, WEIGHTS | {key: value}))
    assert all(word in text for word in words), text


@BOTH
@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (["visit"], ["bias of 'visit'", "has none."]),
        ([("ad", "buy")], ["'ad' -> 'buy'", "has none."]),
        (["ad", ("ad", "buy")], ["bias of 'ad'", "and 1 more"]),
    ],
)
def test_a_missing_weight_is_named(model, gone, words):
    text = refused(lambda: model(GRAPH, {key: w for key, w in WEIGHTS.items() if key not in gone}))
    assert all(word in text for word in words), text


@BOTH
@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.full(4, 0.1), ["5 edges and biases", "(4,)"]),
        (np.full((5, 1), 0.1), ["5 edges and biases", "(5, 1)"]),
        (np.array([0.1, 0.1, 0.1, np.nan, 0.1]), ["finite", "NaN"]),
        (np.array([0.1, 0.1, 0.1, 0.1, np.inf]), ["finite", "infinite"]),
        (np.array([0.1, 0.1, 0.1, 0.1, -0.5]), ["probability would be -0.5"]),
        (np.array([0.1, 0.1, 0.1, 0.1, -1.5]), ["between -1 and 1", "-1.5"]),
        (np.full(5, "0.1"), ["number"]),
        (np.full(5, None), ["number"]),
    ],
)
def test_a_bad_weight_array_is_refused(model, array, words):
    text = refused(lambda: model(GRAPH, array))
    assert all(word in text for word in words), text


@BOTH
@pytest.mark.parametrize("weights", [None, [0.1] * 5, 0.1, "weights"])
def test_weights_of_another_kind_are_refused(model, weights):
    assert "weight" in refused(lambda: model(GRAPH, weights))


@BOTH
@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (1.5, ["noise", "between 0 and 1", "1.5"]),
        (-0.1, ["noise", "between 0 and 1", "-0.1"]),
        (math.nan, ["noise", "finite", "nan"]),
        ("much", ["noise", "number", "'much'"]),
        (True, ["noise", "number", "True"]),
        ({"visit": 2.0}, ["noise of 'visit'", "between 0 and 1", "2.0"]),
        ({"vist": 0.2}, ["noise", "'vist'", "Did you mean 'visit'?"]),
    ],
)
def test_bad_noise_is_refused(model, noise, words):
    text = refused(lambda: model(GRAPH, WEIGHTS, noise=noise))
    assert all(word in text for word in words), text


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("logistik", ["'logistik'", "Did you mean 'logistic'?"]),
        ({"visit": "logistik"}, ["'logistik'", "Did you mean 'logistic'?"]),
        ({"vist": "logistic"}, ["'vist'", "Did you mean 'visit'?"]),
        ({"name": "logistic", "shft": 2}, ["'shft'", "'shift'"]),
        ({"visit": 3}, ["a link is a name", "3"]),
        (5, ["link", "5"]),
    ],
)
def test_a_bad_link_is_refused(given, words):
    text = refused(lambda: BinaryGLM(GRAPH, WEIGHTS, links=given))
    assert all(word in text for word in words), text


@pytest.mark.parametrize("link", ["logistic", "probit", "exponential", "rational", ARCTAN])
def test_nonlinear_links_take_any_nonnegative_weight(link):
    big = dict.fromkeys(WEIGHTS, 40.0)
    assert BinaryGLM(GRAPH, big, links=link).weights == big


@pytest.mark.parametrize("link", ["exponential", "rational", ARCTAN])
def test_links_that_begin_at_zero_take_no_negative_weight(link):
    big = dict.fromkeys(WEIGHTS, 40.0)
    text = refused(lambda: BinaryGLM(GRAPH, big | {("ad", "buy"): -0.5}, links=link))
    assert "'ad' -> 'buy'" in text
    assert "at least 0" in text
    assert "need the identity, logistic or probit link" in text


@pytest.mark.parametrize("link", ["logistic", "probit", SIGNED_ARCTAN])
def test_links_on_the_whole_line_take_any_weight(link):
    wild = dict(zip(WEIGHTS, (-40.0, 3.0, -0.5, 12.0, -2.0), strict=True))
    assert BinaryGLM(GRAPH, wild, links=link).weights == wild


def test_a_custom_link_may_not_leave_its_domain_or_the_unit_interval():
    half = {"slope": lambda x: 0.5 + 0 * x, "bend": lambda x: 0 * x, "bounds": (0.5, 0.0, 0.5)}
    short = links.custom("short", lambda x: 0.5 * x, domain=(0.0, 0.5), **half)
    text = refused(lambda: BinaryGLM(GRAPH, WEIGHTS, links={"buy": short}))
    assert "'buy'" in text
    assert "outside the short link's domain [0, 0.5]" in text
    lifted = links.custom("lifted", lambda x: 0.7 + 0.5 * x, **half)
    text = refused(lambda: BinaryGLM(GRAPH, WEIGHTS, links={"buy": lifted}))
    assert "'buy'" in text
    assert "1.2" in text


@pytest.mark.parametrize("weights", [[0.1] * 10, [0.7, 0.2, 0.1], [1 / 3] * 3, [0.1 + 0.2, 0.7]])
def test_weights_that_sum_to_one_up_to_rounding_are_fine(weights):
    model = BinaryGLM.blm({(f"X{i}", "Y"): w for i, w in enumerate(weights)}, target="Y")
    assert expect(model, list(model.graph.controllable)).value == pytest.approx(1.0, abs=1e-12)
    assert model.sample(list(model.graph.controllable), 1000, rng=0)["Y"].all()


@pytest.mark.parametrize(
    ("do", "words"),
    [
        ({"vist": 1}, ["'vist'", "Did you mean 'visit'?"]),
        (["vist"], ["'vist'", "Did you mean 'visit'?"]),
        ("visit", ["the string 'visit'", "['visit']"]),
        ({"visit": 0.5}, ["do(visit)", "0 or 1", "0.5"]),
        ({"visit": 2}, ["do(visit)", "0 or 1", "2"]),
        ({"visit": "1"}, ["do(visit)", "'1'"]),
        ({"visit": None}, ["do(visit)", "None"]),
        ({"visit": math.nan}, ["do(visit)", "nan"]),
        pytest.param({"visit": 10**400}, ["do(visit)"], id="huge"),
        ({"U": 1}, ["'U'", "latent"]),
        ({3: 1}, ["3"]),
        (7, ["do", "7"]),
    ],
)
def test_a_bad_intervention_is_refused(do, words):
    graph = CausalGraph([("U", "visit"), ("visit", "buy")], target="buy", latent=["U"], bias=["U"])
    model = BinaryGLM(graph, {"U": 0.5, ("U", "visit"): 0.5, ("visit", "buy"): 0.5})
    for ask in (lambda: expect(model, do), lambda: model.sample(do)):
        text = refused(ask, InterventionError)
        assert all(word in text for word in words), text


@pytest.mark.parametrize("value", [1, 1.0, True, np.int64(1), np.float32(1), np.True_])
def test_a_one_is_a_one(value):
    model = BinaryGLM(GRAPH, WEIGHTS)
    assert expect(model, {"ad": value}) == expect(model, ["ad"])


def test_continuous_models_are_set_to_any_value_from_0_to_1():
    model = LinearModel(GRAPH, WEIGHTS)
    assert expect(model, {"visit": 0.5}).value == pytest.approx(0.2 * 0.25 + 0.5 * 0.75)
    assert "from 0 to 1" in refused(lambda: expect(model, {"visit": 1.1}), InterventionError)


@pytest.mark.parametrize("size", [-1, 2.0, True, "3", None])
def test_a_bad_sample_size_is_refused(size):
    assert repr(size) in refused(lambda: BinaryGLM(GRAPH, WEIGHTS).sample(size=size))


# -- looking at a model ---------------------------------------------------------------------------------------


@BOTH
def test_weights_are_kept_by_name(model):
    made = model(GRAPH, WEIGHTS)
    assert made.weights == WEIGHTS
    assert made.parent_weights("buy") == (0.0, {"ad": 0.25, "visit": 0.75})
    assert made.parent_weights("visit") == (0.1, {"ad": 0.5})
    assert made.parent_weights("ad") == (0.2, {})
    assert made.target == "buy"
    assert made.is_linear
    with pytest.raises(GraphError, match="'vist'"):
        made.parent_weights("vist")


@BOTH
def test_the_array_of_weights_is_copied_and_read_only(model):
    array = np.full(5, 0.1)
    made = model(GRAPH, array)
    array[:] = 0.9
    assert set(made.weights.values()) == {0.1}
    assert not made.theta.flags.writeable
    assert not made.noise.flags.writeable


def test_links_by_node_are_the_identity_elsewhere():
    model = BinaryGLM(GRAPH, WEIGHTS, links={"visit": {"name": "logistic", "shift": 2}})
    assert [model.link(n).name for n in ("ad", "visit", "buy")] == ["identity", "logistic", "identity"]
    assert not model.is_linear


def test_one_link_for_all():
    for given in ("exponential", {"name": "exponential"}, links.exponential):
        assert {link.name for link in BinaryGLM(GRAPH, WEIGHTS, links=given).links} == {"exponential"}


def test_a_node_may_be_called_name():
    graph = CausalGraph([("name", "Y")], target="Y")
    model = BinaryGLM(graph, {"name": 0.1, "Y": 0.1, ("name", "Y"): 0.1}, links={"name": "logistic"})
    assert [model.link(n).name for n in ("name", "Y")] == ["logistic", "identity"]


def test_equality_is_of_content():
    model = BinaryGLM(GRAPH, WEIGHTS)
    same = BinaryGLM(GRAPH, dict(reversed(WEIGHTS.items())))
    assert model == same
    assert hash(model) == hash(same)
    others = [
        BinaryGLM(GRAPH, WEIGHTS | {"ad": 0.3}),
        BinaryGLM(GRAPH, WEIGHTS, noise=0.1),
        BinaryGLM(GRAPH, WEIGHTS, links="logistic"),
        BinaryGLM(GRAPH, WEIGHTS, links={"name": "logistic", "shift": 1}),
        BinaryGLM.blm(WEIGHTS, target="buy", controllable=["ad"]),
        LinearModel(GRAPH, WEIGHTS, noise=0.0),
        "model",
    ]
    assert all(model != other for other in others)


def test_equal_models_have_equal_hashes_even_with_a_negative_zero():
    positive, negative = (BinaryGLM(GRAPH, WEIGHTS | {"ad": zero}) for zero in (0.0, -0.0))
    assert positive == negative
    assert hash(positive) == hash(negative)


@pytest.mark.parametrize(
    "model",
    [
        BinaryGLM(GRAPH, WEIGHTS, noise=0.3),
        BinaryGLM(GRAPH, WEIGHTS, links={"visit": "probit", "buy": ARCTAN}),
        LinearModel(GRAPH, WEIGHTS),
    ],
    ids=["blm", "bglm", "continuous"],
)
@pytest.mark.parametrize("way", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, copy.copy])
def test_pickles_and_copies_are_equal_and_as_safe(model, way):
    again = way(model)
    assert again == model
    assert hash(again) == hash(model)
    assert expect(again, ["ad"]) == expect(model, ["ad"])
    assert not again.theta.flags.writeable
    assert not again.noise.flags.writeable


def test_blm_reads_its_graph_off_the_weights():
    weights = {"U": 0.5, ("U", "a"): 0.5, ("a", "Y"): 0.5, "Y": 0.1}
    model = BinaryGLM.blm(weights, target="Y", latent=["U"])
    assert model.graph == CausalGraph([("U", "a"), ("a", "Y")], target="Y", latent=["U"], bias=["U", "Y"])
    assert model.weights == weights
    continuous = LinearModel.of_weights(weights, target="Y", latent=["U"])
    assert continuous.graph == model.graph
    assert continuous.weights == weights


# -- cascades and thresholds ----------------------------------------------------------------------------------


def test_independent_cascade_by_hand():
    model = BinaryGLM.independent_cascade({"a": 0.3, ("a", "Y"): 0.5, ("b", "Y"): 0.25, "Y": 0.1, "b": 0.0}, target="Y")
    assert {link.name for link in model.links} == {"exponential"}
    assert model.weights["a", "Y"] == pytest.approx(math.log(2))
    assert expect(model)["a"] == pytest.approx(0.3)
    assert expect(model, ["a", "b"]).value == pytest.approx(1 - 0.5 * 0.75 * 0.9)
    assert expect(model, {"a": 1, "b": 0}).value == pytest.approx(1 - 0.5 * 0.9)
    assert expect(model).value == pytest.approx(brute_force_means(model)["Y"], abs=1e-12)


@pytest.mark.parametrize("p", [1.0, 1.1, -0.1, math.nan, "0.5", True])
def test_a_cascade_probability_is_at_least_0_and_below_1(p):
    text = refused(lambda: BinaryGLM.independent_cascade({("a", "Y"): p}, target="Y"))
    assert "'a'" in text
    assert "'Y'" in text
    assert re.search(r"probability", text)


def test_linear_threshold_is_the_blm_of_its_weights():
    assert BinaryGLM.linear_threshold(WEIGHTS, target="buy") == BinaryGLM.blm(WEIGHTS, target="buy")
    text = refused(lambda: BinaryGLM.linear_threshold({("a", "Y"): 0.6, ("b", "Y"): 0.6}, target="Y"))
    assert "'Y'" in text
    assert "1.2" in text


def test_a_learner_is_told_of_what_happens_without_cause_and_bias():
    graph = dob.CausalGraph([("A", "Y"), ("B", "Y")], target="Y", bias=["Y"])
    weights = {("A", "Y"): 1.0, ("B", "Y"): -0.5, "Y": 0.3}
    model = dob.BinaryGLM(graph, weights, {"A": dob.links.logistic(2.0), "Y": "logistic"})
    assert dob.expect(model)["A"] == pytest.approx(1 / (1 + math.exp(2.0)))
    assert model.graph.bias == ("Y",)
    assert model.structure.bias == ("A", "Y")  # B, of the identity, is 0 unless it is set
    assert (model.structure.nodes, model.structure.edges) == (graph.nodes, graph.edges)
    experiment = dob.create_experiment("alone", model, 1, storage=MemoryStorage(), seed=1)
    trial = experiment.ask(control=True)
    assert not experiment.tell(trial, {"A": 1, "Y": 1}).partial
    with pytest.raises(dob.errors.ObservationError, match="'B' can only be other than 0 where it is set"):
        experiment.tell(experiment.ask(control=True), {"A": 1, "B": 1, "Y": 1})
    assert dob.simulate(model, ["causal-ucb"], budget=1, rounds=5, replications=1).study.view.graph == model.structure
    linear = dob.BinaryGLM(graph, {("A", "Y"): 0.2, ("B", "Y"): 0.2, "Y": 0.3})
    assert linear.structure is linear.graph
