"""The diagnosis of an experiment: it finds what is wrong, and cries wolf as seldom as it says. Seeds are fixed."""

from __future__ import annotations

import json
import math
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from dobandit import BGLMOFU, BLMLR, UCB, BinaryGLM, CausalGraph, CausalUCB, LinearModel, create_experiment, paper
from dobandit.diagnosis.calibration import FAR, Foretold, calibration_of, verdict_on
from dobandit.diagnosis.diagnose import diagnose_rounds
from dobandit.diagnosis.node_diagnosis import AGREES, CONTRADICTS, LEARNED, LEVEL, UNTESTED
from dobandit.model.links import exponential, logistic, probit, rational
from dobandit.policy.engine import Rounds
from dobandit.storage import MemoryStorage
from helpers.worlds import THOROUGH

LUCK = 1e-3  # a test of a right program fails with this chance, if its seeds were drawn again
FORK = CausalGraph([("a", "Y"), ("b", "Y")], target="Y")


def rounds_of(graph, columns, always_set=()):
    rounds = len(next(iter(columns.values())))
    values = np.ones((rounds, len(graph) + 1))
    for name, column in columns.items():
        values[:, graph.index(name)] = column
    was_set = np.zeros(values.shape, dtype=bool)
    was_set[:, [graph.index(name) for name in always_set]] = True
    return values, was_set


@cache
def fresh(graph, policy, links, **start):
    """A learner that has seen nothing, for many runs to copy. links: one for all nodes, or pairs."""
    return policy.start(graph, 1, links=dict(links) if isinstance(links, tuple) else links, **start)


def diagnose(learner, values, was_set, predicted):
    """Look at rounds, one per row in their order, with a learner that has taken them in.

    values, was_set  by id, as engines take them: NaN was not seen
    predicted        E[target] as it was predicted before each round; NaN where it was not
    """
    width = len(learner.graph) + 1
    values = np.array(values, dtype=float).reshape(-1, width)
    was_set = np.array(was_set, dtype=bool).reshape(-1, width)
    came = values[:, learner.graph.arrays.target]
    told = ~np.isnan(np.asarray(predicted, dtype=float)) & ~np.isnan(came)
    if learner.problem.selective and learner.keeps_model:
        told &= learner.problem.teaches(was_set)
    rounds = Rounds(values, was_set, np.ones(len(values), dtype=np.int64))
    foretold = Foretold(np.asarray(predicted, dtype=float)[told], came[told], np.flatnonzero(told))
    return diagnose_rounds(learner, rounds, foretold)


def diagnosed(graph, columns, predicted=None, policy=None, always_set=(), links=None, **start):
    learner = fresh(graph, policy or BLMLR(), links, **start).copy()
    values, was_set = rounds_of(graph, columns, always_set)
    learner.engine.update(Rounds(values, was_set, np.ones(len(values), dtype=np.int64)))
    return diagnose(learner, values, was_set, np.full(len(values), math.nan) if predicted is None else predicted)


def fork(rng, rounds, chance):
    """a, b fair coins, Y with a chance by (a, b)."""
    a, b = rng.integers(0, 2, (2, rounds))
    return {"a": a, "b": b, "Y": rng.random(rounds) < np.asarray(chance)[a, b]}


def node_of(diagnosis, name="Y"):
    return next(node for node in diagnosis.nodes if node.name == name)


# -- links ----------------------------------------------------------------------------------------------------

SPARSE = {"a": 0.05, "b": 0.1, "c": 0.3, "d": 0.5, "Y": 0.01, ("a", "c"): 0.4, ("b", "d"): 0.3}
SPARSE |= {("a", "Y"): 0.3, ("b", "Y"): 0.0, ("c", "Y"): 0.05, ("d", "Y"): 0.1}
FULL = {"a": 0.3, "b": 0.5, "c": 0.5, ("a", "Y"): 0.5, ("b", "Y"): 0.3, ("c", "Y"): 0.2}
WIDE = {f"x{i}": 0.3 for i in range(10)} | {(f"x{i}", "Y"): 0.085 for i in range(10)} | {"Y": 0.05}
CONTINUOUS = {**dict.fromkeys("abcd", 0.3), ("a", "c"): 0.5, ("b", "d"): 0.3, ("c", "Y"): 0.6, ("d", "Y"): 0.3}
RIGHT = {
    "G1": paper.G1,
    "G5": paper.G5,
    "rare causes, weights 0": BinaryGLM.blm(SPARSE, "Y"),
    "weights that add up to 1": BinaryGLM.blm(FULL, "Y"),
    "sparse patterns": BinaryGLM.blm(WIDE, "Y"),
    "continuous": LinearModel.of_weights(CONTINUOUS, "Y"),
    "logistic": BinaryGLM(FORK, {"a": 1.5, "b": 2.0, "Y": 0.5, ("a", "Y"): 1.0, ("b", "Y"): 2.0}, links=logistic(2.0)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_models_are_seldom_contradicted(name):
    model, runs = RIGHT[name], 200 * THOROUGH
    policy = BLMLR() if model.is_linear else BGLMOFU(initial=10)
    start = {"links": None if model.is_linear else model.links[0], "continuous": model.continuous}
    roots = [name for name in model.graph if not model.graph.parents(name)]
    alarms = 0
    for run in range(runs):
        columns = model.sample(None, 1000, np.random.default_rng([7, run]))
        always_set = () if run % 4 == 0 else roots  # what is always set takes part in no test, and no time
        diagnosis = diagnosed(model.graph, columns, policy=policy, always_set=always_set, **start)
        alarms += bool(diagnosis.contradictions)
    assert alarms <= binom.ppf(1.0 - LUCK, runs, LEVEL)


def test_p_values_are_uniform_under_a_right_model():
    """Their share below 0.2 lies within the binomial's bounds."""
    runs = 400 * THOROUGH
    p = []
    for run in range(runs):
        columns = fork(np.random.default_rng([3, run]), 500, [[0.1, 0.4], [0.3, 0.6]])
        p.append(node_of(diagnosed(FORK, columns, always_set="ab")).p)
    below = np.sum(np.array(p) < 0.2)
    assert binom.ppf(LUCK / 2, runs, 0.2) <= below <= binom.ppf(1 - LUCK / 2, runs, 0.2)


WRONG = {"xor": [[0.2, 0.8], [0.8, 0.2]], "and": [[0.1, 0.1], [0.1, 0.9]], "inhibition": [[0.7, 0.3], [0.7, 0.3]]}


@pytest.mark.parametrize("name", WRONG)
def test_interactions_contradict_a_linear_node(name):
    diagnosis = diagnosed(FORK, fork(np.random.default_rng(0), 5000, WRONG[name]))
    assert diagnosis.contradictions == ("Y",)
    node = node_of(diagnosis)
    assert node.corrected < LEVEL
    counts = np.asarray(WRONG[name])[int("a" in node.worst.ones), int("b" in node.worst.ones)]
    assert node.worst.observed == pytest.approx(counts, abs=5 * 0.5 / math.sqrt(node.worst.count))
    assert any("Another link" in line for line in diagnosis.lines())


HARM = {"effects": "any", "policy": CausalUCB()}


@pytest.mark.parametrize("link", ["identity", "logistic"])
def test_harm_contradicts_nobody_who_allows_for_it(link):
    """A cause that does harm, in a model whose weights may have any sign: false alarms as seldom as the level says."""
    chance = [[0.4, 0.1], [0.7, 0.4]]
    if link == "logistic":
        chance = logistic(0.0)(np.array([[0.2, -1.8], [1.7, -0.3]]))
    runs = [fork(np.random.default_rng([5, run]), 500, chance) for run in range(100)]
    alarms = [node_of(diagnosed(FORK, run, links=link, always_set="ab", **HARM)).p < 0.05 for run in runs]
    assert sum(alarms) <= binom.ppf(1.0 - LUCK, len(runs), 0.05)
    diagnosis = diagnosed(FORK, fork(np.random.default_rng(0), 5000, WRONG["xor"]), links=link, **HARM)
    assert diagnosis.contradictions == ("Y",)


@pytest.mark.parametrize("name", WRONG)
def test_no_pattern_contradicts_a_node_that_is_learned(name):
    diagnosis = diagnosed(FORK, fork(np.random.default_rng(0), 5000, WRONG[name]), **HARM)
    assert not diagnosis.contradictions
    assert node_of(diagnosis).verdict == LEARNED
    assert any("learned from them, pattern by pattern" in line for line in diagnosis.lines())


def test_a_logistic_node_contradicts_a_linear_one_but_not_itself():
    """0.02, 0.27, 0.27, 0.88: on the linear scale the effects of both together would be 0.52."""
    columns = fork(np.random.default_rng(1), 5000, logistic(4.0)(np.array([[0.0, 3.0], [3.0, 6.0]])))
    assert diagnosed(FORK, columns).contradictions == ("Y",)
    own = (("Y", logistic(4.0)),)
    assert node_of(diagnosed(FORK, columns, policy=BGLMOFU(initial=10), links=own)).verdict == AGREES


def test_what_cannot_happen_is_a_contradiction():
    graph = CausalGraph([("a", "Y")], target="Y", bias=["a"])
    a = np.repeat([0, 1], 50)
    node = node_of(diagnosed(graph, {"a": a, "Y": np.where(np.arange(100) == 3, 1, a)}))
    assert (node.verdict, node.p, node.worst.ones, node.worst.fitted) == (CONTRADICTS, 0.0, (), 0.0)
    assert json.loads(json.dumps(diagnosed(graph, {"a": a, "Y": a}).to_document(), allow_nan=False))


def test_a_bend_contradicts_a_continuous_node():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 5000))
    straight = {"a": a, "b": b, "Y": 0.1 + 0.4 * a + 0.3 * b + rng.uniform(-0.1, 0.1, 5000)}
    bent = straight | {"Y": 0.1 + 0.8 * (a - 0.2) ** 2 + 0.1 * b + rng.uniform(-0.1, 0.1, 5000)}
    falling = straight | {"Y": 0.6 - 0.4 * a + rng.uniform(-0.1, 0.1, 5000)}
    assert not diagnosed(FORK, straight, continuous=True).contradictions
    assert diagnosed(FORK, bent, continuous=True).contradictions == ("Y",)
    assert diagnosed(FORK, falling, continuous=True).contradictions == ("Y",)


def test_the_statistic_is_pearsons():
    """Two causes, four patterns, three weights: by hand with statsmodels' fit and scipy's statistic."""
    import statsmodels.api as sm  # takes a second, which only those who need it wait for
    from statsmodels.tools.sm_exceptions import DomainWarning

    columns = fork(np.random.default_rng(5), 2000, [[0.1, 0.3], [0.35, 0.7]])
    a, b, y = (np.asarray(columns[name], dtype=float) for name in "abY")
    V = np.column_stack([np.ones(2000), a, b])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DomainWarning)  # its fit stays within [0, 1] here
        linear = sm.GLM(y, V, family=sm.families.Binomial(link=sm.families.links.Identity()))
        fitted = linear.fit(start_params=[0.1, 0.2, 0.2]).fittedvalues
    observed, expected = [], []
    for pattern in ((0, 0), (0, 1), (1, 0), (1, 1)):
        rows = (a == pattern[0]) & (b == pattern[1])
        observed += [y[rows].sum(), rows.sum() - y[rows].sum()]
        expected += [fitted[rows].sum(), rows.sum() - fitted[rows].sum()]
    truth = chisquare(observed, expected, ddof=6)  # 8 counts - 1 - 6 leave 4 patterns - 3 weights
    node = node_of(diagnosed(FORK, columns))
    assert node.df == 1
    assert node.statistic == pytest.approx(truth.statistic, rel=1e-5)
    assert node.p == pytest.approx(truth.pvalue, rel=1e-4)


@pytest.mark.parametrize("link", [logistic(1.0), probit(1.0), exponential, rational(2.0)], ids=lambda link: link.name)
def test_other_links_are_fitted(link):
    """Every node agrees, and each pattern's fitted share is near its true chance."""
    graph = CausalGraph([("a", "Y"), ("b", "Y"), ("c", "Y")], target="Y", bias=["a", "b", "c"])
    weights = {"a": 0.5, "b": 0.5, "c": 0.5, ("a", "Y"): 0.6, ("b", "Y"): 1.0, ("c", "Y"): 0.3}
    model = BinaryGLM(graph, weights, links={"Y": link})
    columns = model.sample(None, 20_000, np.random.default_rng(2))
    diagnosis = diagnosed(graph, columns, policy=BGLMOFU(initial=10), links=(("Y", link),))
    node = node_of(diagnosis)
    assert node.verdict == AGREES
    x = sum(weights[name, "Y"] for name in node.worst.ones)
    assert node.worst.fitted == pytest.approx(float(link(x)), abs=5 * 0.5 / math.sqrt(2500))


def test_too_little_data_is_said_to_be_too_little():
    columns = fork(np.random.default_rng(0), 12, [[0.5, 0.5], [0.5, 0.5]])
    assert {node.verdict for node in diagnosed(FORK, columns).nodes} == {UNTESTED}


# -- calibration ----------------------------------------------------------------------------------------------


def test_calibrated_predictions_pass_and_shifted_ones_do_not():
    runs, far, z = 200 * THOROUGH, 0, []
    for run in range(runs):
        rng = np.random.default_rng([11, run])
        p = rng.uniform(0.2, 0.8, 400)
        columns = fork(rng, 400, np.zeros((2, 2))) | {"Y": rng.random(400) < p}
        recent = diagnosed(FORK, columns, p, always_set="abY").recent
        z.append(recent.z)
        far += abs(recent.z) > 1.96
    assert far <= binom.ppf(1 - LUCK, runs, 0.05)
    assert abs(np.mean(z)) < 3.3 / math.sqrt(runs)
    # 200 rounds: a standard error of at most 0.5 / sqrt(200) = 0.036, so 0.25 is 7 of them.
    shifted = diagnosed(FORK, columns, p - 0.19)
    assert shifted.verdict.startswith("predictions are too low by 0.")
    assert shifted.recent.z > FAR


def test_the_numbers_of_a_calibration():
    from statsmodels.stats.proportion import proportion_confint

    p = np.array([0.2, 0.4, 0.4, 0.8] * 30)
    y = np.array([0, 1, 0, 1] * 30)
    columns = {"a": y, "b": y, "Y": y}
    diagnosis = diagnosed(FORK, columns, p)
    whole = diagnosis.calibration
    assert (whole.count, diagnosis.recent.count, len(whole.bins)) == (120, 60, 3)
    assert whole.difference == pytest.approx(0.05)
    assert whole.z == pytest.approx(0.05 * 120 / math.sqrt(np.sum(p * (1 - p))))
    assert whole.brier == pytest.approx(np.mean((p - y) ** 2))
    middle = whole.bins[1]
    assert (middle.low, middle.high) == pytest.approx(proportion_confint(30, 60, method="wilson"))
    assert diagnosis.verdict == "calibrated"


def test_the_verdict_is_on_the_last_half():
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.6
    p = np.where(np.arange(2000) < 1000, 0.1, 0.6)
    diagnosis = diagnosed(FORK, {"a": y, "b": y, "Y": y}, p)
    assert diagnosis.calibration.z > 10
    assert diagnosis.verdict == "calibrated"
    assert any("last half" in line for line in diagnosis.lines())


def told_in_batches(trials, size, chance):
    """A cause that is always set, so that a batch in its canonical order has all rounds of one outcome first."""
    rng = np.random.default_rng(3)
    experiment = create_experiment("batches", CausalGraph([("a", "Y")], target="Y"), 1, storage=MemoryStorage(), seed=1)
    for _ in range(trials):
        trial = experiment.ask(size=size)
        ones = int(rng.binomial(size, chance))
        seen = {"a": trial.do.get("a", 0)}
        experiment.tell(trial, [{**seen, "Y": 1, "count": ones}, {**seen, "Y": 0, "count": size - ones}])
    return experiment


@pytest.mark.parametrize("trials", [1, 3, 60])
def test_batches_are_not_split_and_share_one_prediction(trials):
    diagnosis = told_in_batches(trials, 500, 0.5).diagnose()
    assert diagnosis.recent.observed == pytest.approx(0.5, abs=0.05)  # not the ones alone
    assert (diagnosis.recent.trials, diagnosis.recent.count) == ((trials + 1) // 2, (trials + 1) // 2 * 500)
    assert diagnosis.verdict == ("calibrated" if trials == 60 else "too few trials to tell")


def test_a_first_prediction_that_was_off_is_one_error_and_not_five_hundred():
    assert told_in_batches(2, 500, 0.1).recommend().verdict != "contradicted"


def test_batches_that_go_on_to_be_off_are_found():
    p, trial = np.full(3000, 0.3), np.repeat(np.arange(30), 100)
    y = np.random.default_rng(0).random(3000) < 0.5
    found = calibration_of(p, y.astype(float), trial, False)
    assert verdict_on(found).startswith("predictions are too low by 0.")
    assert found.z == pytest.approx(math.sqrt(30), rel=0.1)  # no more than thirty trials can say


# -- what can be learned, and who can be asked -----------------------------------------------------------------


def test_weights_that_cannot_be_told_are_named_with_a_way_out():
    graph = CausalGraph([("email", "visit"), ("ad", "visit"), ("post", "visit")], target="visit")
    rng = np.random.default_rng(0)
    coin = rng.integers(0, 2, 300).astype(float)
    columns = {"email": np.ones(300), "ad": coin, "post": coin, "visit": rng.integers(0, 2, 300).astype(float)}
    columns["ad"] = np.where(np.arange(300) < 60, np.nan, coin)
    diagnosis = diagnosed(graph, columns)
    text = "\n".join(diagnosis.warnings)
    assert "'email' was 1 in every round that tells of 'visit': its effect cannot be told from the bias" in text
    assert "'ad', 'post' were equal" in text
    assert "'ad' was not seen in 20% of the rounds" in text
    node = node_of(diagnosis, "visit")
    assert (node.rows, node.identified, node.status, node.zeta) == (240, False, "singular", 0.0)
    assert {variable.name: variable.least for variable in diagnosis.variables}["email"] == 1.0
    zero = diagnosed(graph, columns | {"email": np.zeros(300)})
    assert any("'email' was 0" in warning and "Set it" in warning for warning in zero.warnings)


def test_a_node_that_is_always_set_has_no_rows():
    values, was_set = rounds_of(FORK, fork(np.random.default_rng(0), 100, np.full((2, 2), 0.5)), always_set="a")
    learner = BLMLR().start(FORK, 1)
    diagnosis = diagnose(learner, values, was_set, np.full(100, math.nan))
    assert node_of(diagnosis, "a").rows == 0
    assert any("No round tells of 'a'" in warning for warning in diagnosis.warnings)
    assert diagnosis.verdict == "no predictions to compare"


def test_zeta_is_the_least_share_of_a_cause_given_the_others():
    rng = np.random.default_rng(0)
    a = rng.random(20_000) < 0.5
    b = rng.random(20_000) < np.where(a, 0.9, 0.4)
    node = node_of(diagnosed(FORK, {"a": a, "b": b, "Y": a}))
    # P(b = 0 | a = 1) = 0.1; P(a = 1 | b = 0) = 0.05 / 0.35 = 0.14
    assert node.zeta == pytest.approx(0.1, abs=5 * 0.3 / 100)


def test_a_policy_without_a_model_and_no_rounds_at_all():
    columns = fork(np.random.default_rng(0), 200, np.full((2, 2), 0.5))
    arms = diagnosed(FORK, columns, np.full(200, 0.5), policy=UCB())
    assert arms.calibration is not None
    assert arms.nodes == ()
    assert "keeps no model" in arms.notes[0]
    for policy in (UCB(), BLMLR()):
        empty = diagnose(policy.start(FORK, 1), np.ones((0, 4)), np.zeros((0, 4), dtype=bool), np.ones(0))
        assert "There are no rounds yet." in empty.lines()
        json.dumps(empty.to_document(), allow_nan=False)


@pytest.mark.parametrize("name", RIGHT)
def test_documents_are_json(name):
    model = RIGHT[name]
    links = None if model.is_linear else model.links[0]
    policy = BLMLR() if model.is_linear else BGLMOFU(initial=10)
    for rounds in (1, 2, 7, 60):
        columns = model.sample(None, rounds, 0)
        some = diagnosed(model.graph, columns, np.ones(rounds), policy, links=links, continuous=model.continuous)
        document = json.loads(json.dumps(some.to_document(), allow_nan=False))
        assert document["rounds"] == rounds
        assert len(document["nodes"]) == len(model.graph)
        assert some.lines()


def test_a_continuous_variable_without_causes_has_no_weights_to_fit():
    """No unknowns are left for the least squares."""
    graph = CausalGraph([("a", "y"), ("b", "y")], target="y", bias=["b", "y"])
    experiment = create_experiment(
        "e", graph, budget=1, storage=MemoryStorage(), continuous=True,
        effects="nonnegative", links="identity", policy="blm-lr",
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for value in rng.random(60).tolist():
        experiment.record({"a": 1}, {"b": value, "y": 0.3 + 0.5 * value})
        experiment.record({}, {"b": value, "y": 0.1 + 0.5 * value})
    nodes = {node.name: node for node in experiment.diagnose().nodes}
    assert nodes["a"].verdict == "cannot be tested"
    assert nodes["y"].rows == 120
