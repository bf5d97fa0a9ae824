"""What an experiment answers: recommendations, estimates, diagnosis."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betaln, xlog1py, xlogy

import dobandit as dob
from dobandit.errors import DobanditWarning, InterventionError, PolicyError
from dobandit.storage import MemoryStorage
from helpers.experiments import ARMS, CASES, again, case, drawn, knowledge, make, played, refused, settings_of
from helpers.indices import listed

pytestmark = pytest.mark.usefixtures("one_of_many")

# -- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_recommend(name):
    experiment = played(name)
    learner = experiment.definition.policy.start(experiment.graph, CASES[name][1], seed=7, **settings_of(name))
    learner.update_many([(row["do"], row["observation"]) for row in experiment.trials()])
    best = learner.best()
    assert_brought_in(experiment.recommend(), best)
    assert again(experiment).recommend() == experiment.recommend()
    # By hand: no set of those that the policy compares has a larger estimate.
    if name != "search":
        values = [learner.expected(action.named(learner.graph)) for action in listed(learner.engine.actions())]
        tried = values if name not in ARMS else [v for v, n in zip(values, learner.engine.state.plays[0]) if n]  # noqa: B905
        assert best.value == pytest.approx(max(tried), abs=1e-12)
    for names in combinations(experiment.graph.controllable, 3):
        if not {"X6"} <= set(names) and name == "rules":
            continue
        try:
            limited = experiment.recommend(available=names)
        except InterventionError:
            assert name == "fixed"
            continue
        assert set(limited.do) <= set(names)
        assert_brought_in(limited, learner.best(names))
    experiment.ask(n=3)  # pending trials are no news
    assert_brought_in(experiment.recommend(), best)
    refused(InterventionError, lambda: experiment.recommend(available=["X99"]), "X99")


def assert_brought_in(shown, best):
    """The learner's own answer, whose interval an experiment brings in to what own outcomes prove."""
    assert shown[:2] == best[:2]
    assert best.interval.low <= shown.interval.low <= shown.interval.high <= best.interval.high


def plain_best_observed(rows):
    """By set: the lower end of the Beta-binomial confidence sequence, 5% shared among the sets that were tried."""
    groups, told = {}, [row for row in rows if row["state"] == "told"]
    sets = {json.dumps(row["do"], sort_keys=True) for row in told}
    for row in told:
        if "Y" in row["observation"]:
            groups.setdefault(json.dumps(row["do"], sort_keys=True), []).append(row["observation"]["Y"])
    answers = []
    for do, values in groups.items():
        n, s = len(values), sum(values)
        level = math.log(len(sets) / 0.05) - betaln(s + 0.5, n - s + 0.5) + betaln(0.5, 0.5)
        low = (
            brentq(lambda p, s=s, n=n, level=level: -xlogy(s, p) - xlog1py(n - s, -p) - level, 1e-300, s / n)
            if s
            else 0.0
        )
        answers.append((low, s / n, n, json.loads(do)))
    return answers


@pytest.mark.parametrize("name", ["closed-form", "ucb", "continuous", "logistic-ofu"])
def test_best_observed(name, tmp_path):
    experiment = played(name, 60)
    assert case(name).best_observed() is None
    experiment.record({}, {experiment.graph.nodes[0]: 1}, randomised=True)  # without the target
    experiment.tell_failed(experiment.ask().number)
    answers = plain_best_observed(experiment.trials())
    low, mean, rounds, do = max(answers, key=lambda answer: answer[:2])
    best = experiment.best_observed()
    assert best.do == do
    assert best.rounds == rounds
    assert best.mean == pytest.approx(mean)
    assert best.interval.low == pytest.approx(low, abs=1e-9)
    assert 0.0 <= best.interval.low <= best.mean <= best.interval.high <= 1.0 + 1e-12


SETS = {  # what is set: how likely the target is then
    "nothing": ({}, 0.3),
    "e": ({"e": 1}, 0.4),
    "c": ({"c": 1}, 0.6),
    "no e": ({"e": 0}, 0.7),
    "d": ({"d": 1}, 0.2),
    "e, c": ({"e": 1, "c": 1}, 0.8),
    "v": ({"v": 1}, 0.9),
}


@pytest.mark.parametrize(
    ("rules", "available", "best"),
    [
        ({"budget": 1}, None, "c"),
        ({"budget": 2}, None, "e, c"),
        ({"budget": 2, "exclusive": [["e", "c"]]}, None, "c"),
        ({"budget": 2, "costs": {"c": 3}, "total_cost": 3}, None, "c"),
        ({"budget": 2, "levers": {"e": (0, 1)}}, None, "e, c"),
        ({"budget": 1, "levers": {"e": (0, 1)}}, None, "no e"),
        ({"budget": 2, "forbid": ["c"]}, None, "e"),
        ({"budget": 2, "forbid": ["c", "e"]}, None, "nothing"),
        ({"budget": 2, "require": ["e"]}, ["e", "d"], "e"),
        ({"budget": 1, "require": ["d"]}, None, "d"),
        ({"budget": 2, "available": ["e", "d"]}, None, "e"),
        ({"budget": 1}, ["e", "d"], "e"),
        ({"budget": 1}, [], "nothing"),
        ({"budget": 2, "effects": "nonnegative"}, None, "e, c"),
        ({"budget": 2, "effects": "nonnegative"}, ["e", "d"], None),  # one more never hurts: sets of exactly two
        ({"budget": 1, "effects": "nonnegative"}, ["e"], "e"),
        ({"budget": 1, "effects": "nonnegative"}, [], "nothing"),
        ({"budget": 1, "smaller": False}, ["d"], "d"),
        ({"budget": 2, "smaller": False}, ["c", "x"], "c"),  # x is no cause of b: nothing that matters can be added
        ({"budget": 2, "smaller": True, "effects": "nonnegative"}, ["d"], "nothing"),
    ],
)
def test_the_best_observed_set_is_one_that_the_rules_allow(rules, available, best):
    edges = [("e", "v"), ("c", "v"), ("d", "v"), ("v", "b"), ("v", "x")]
    with pytest.warns(DobanditWarning, match="setting .x. cannot change"):
        graph = dob.CausalGraph(edges, target="b", controllable=["e", "c", "d", "x"])
    rules = {"effects": "any"} | rules
    experiment = dob.create_experiment("allowed", graph, storage="memory", policy="ucb", **rules)
    for do, mean in SETS.values():
        ones = round(1000 * mean)
        experiment.record(do, [{"b": 1, "count": ones}, {"b": 0, "count": 1000 - ones}], randomised=True)
    found = experiment.best_observed(available)
    assert (found and found.do) == (SETS[best][0] if best else None)


def test_one_lucky_round_is_not_the_best():
    experiment = make(budget=1)
    experiment.record(["X4"], {"Y": 1}, randomised=True)
    for i in range(20):
        experiment.record(["X2"], {"Y": int(i > 2)}, randomised=True)
    assert experiment.best_observed().do == {"X2": 1}
    assert experiment.best_observed().rounds == 20


def test_model_and_data_are_not_mixed():
    """The model may speak for a set that was never tried, the data never do."""
    experiment = make(budget=1)
    for _ in range(200):
        experiment.record(
            {"X2": 0, "X3": 0, "X4": 0}, {"X5": 1, "Y": 1}, randomised=True
        )  # which the rules do not allow
        experiment.record({"X2": 1}, {"X3": 0, "X4": 0, "X5": 0, "Y": 0}, randomised=True)
    assert experiment.recommend().do == {"X5": 1}
    assert experiment.best_observed().do == {"X2": 1}


def test_how_often_something_happens_is_from_0_to_1():
    """Of a node without causes: in `estimates`, and what they are drawn from; not of an effect, which may do harm."""
    for links in ("auto", "identity"):
        graph = dob.CausalGraph([("a", "b"), ("c", "b")], target="b", bias=["a", "c", "b"])
        experiment = dob.create_experiment("rates", graph, 1, storage=MemoryStorage(), links=links, effects="any")
        for _ in range(2):  # nothing was seen, then never a, and always c
            rows = {(row.cause, row.effect): row for row in experiment.estimates()}
            for name in ("a", "c"):
                rate = rows[None, name]
                assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
            assert rows["a", "b"].low < 0.0
            experiment.record({}, {"a": 0, "c": 1, "b": 0, "count": 30})
        assert rows[None, "a"].low == 0.0
        assert rows[None, "c"].high == 1.0


@pytest.mark.parametrize("name", CASES)
def test_estimates(name):
    experiment = played(name, 40)
    if name in ARMS:
        refused(PolicyError, experiment.estimates, "no model")
        return
    learner = experiment.learner
    rows = experiment.estimates()
    slots = [(row.cause, row.effect) for row in rows]
    graph = experiment.graph
    wanted = [(p, v) for v in graph.nodes for p in ([None] if v in graph.bias else []) + list(graph.parents(v))]
    assert slots == wanted
    for row in rows:
        node = learner.estimate(row.effect)
        weight = node.bias if row.cause is None else node.parents[row.cause]
        assert (row.value, row.low, row.high, row.outside) == weight
        assert row.low <= row.value <= row.high
        assert (row.rows, row.status) == (node.rows, node.status)
        assert row.rows == sum(row.effect not in t["do"] for t in experiment.trials())


@pytest.mark.parametrize("name", CASES)
def test_diagnose(name):
    assert case(name).diagnose() is not None
    experiment = played(name, 40)
    experiment.ask()
    experiment.tell_failed(experiment.ask().number)
    first = experiment.diagnose()
    assert repr(again(experiment).diagnose()) == repr(first)


def test_hidden_variables_end_to_end():
    graph = dob.CausalGraph(
        [("U", "A"), ("U", "C"), ("A", "B"), ("B", "Y"), ("C", "Y")], target="Y", latent=["U"], bias=["U", "A", "C"]
    )
    weights = {"U": 0.5, "A": 0.1, "C": 0.3, ("U", "A"): 0.5, ("U", "C"): 0.2, ("A", "B"): 0.6, ("B", "Y"): 0.5}
    model = dob.BinaryGLM(graph, weights | {("C", "Y"): 0.2})
    experiment = make(None, model, 1)
    assert sorted(experiment.columns.names) == ["A", "B", "C", "Y"]
    rng = np.random.default_rng(0)
    for t in range(40):
        trial = experiment.ask()
        experiment.tell(t, drawn(model, trial.do, rng.random(5)))
    assert knowledge(again(experiment)) == knowledge(experiment)
    assert "U" not in json.dumps(experiment.trials()[0]["observation"])
    experiment.explain(30)
    experiment.estimates()
    experiment.diagnose()
