"""Answers say what they are: intervals with their level, indices that are no probabilities, verdicts that agree."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import dobandit as dob
from dobandit.cli.experiments.printing import chance
from dobandit.cli.main import cli
from dobandit.storage import MemoryStorage

GRAPH = dob.CausalGraph([("email", "visit"), ("visit", "buy"), ("coupon", "buy")], target="buy")
WORLD = dob.BinaryGLM(
    GRAPH,
    {"email": 0.3, "coupon": 0.2, "visit": 0.2, "buy": 0.1, ("email", "visit"): 0.5, ("visit", "buy"): 0.4}
    | {("coupon", "buy"): 0.2},
)


def played(rounds, storage, **words):
    experiment = dob.create_experiment("plain", GRAPH, 1, seed=4, storage=storage, **words)
    rng = np.random.default_rng(5)
    for _ in range(rounds):
        trial = experiment.ask()
        drawn = WORLD.sample(trial.do, size=1, rng=rng)
        experiment.tell(trial, {name: int(drawn[name][0]) for name in GRAPH.nodes if name not in trial.do})
    return experiment


def said(*arguments):
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.9975, "above 0.99"), (1.0, "above 0.99"), (0.985, "0.98"), (0.004, "below 0.01"), (0.5, "0.50")],
)
def test_a_probability_is_never_quite_0_or_1(value, words):
    assert chance(value) == words


def test_intervals_say_their_level(tmp_path):
    """In `show`, `best-observed`, `diagnose` and `recommend`, for people and in JSON; what has none says so."""
    storage = f"sqlite:///{tmp_path}/plain.db"
    played(60, storage, control=0.3)
    where = ["plain", "--storage", storage]
    assert json.loads(said("experiment", "show", *where, "--json"))["control"]["level"] == 0.95
    assert "95% confidence, valid at every look" in said("experiment", "show", *where)
    assert json.loads(said("experiment", "best-observed", *where, "--json"))["level"] == 0.95
    bins = json.loads(said("experiment", "diagnose", *where, "--json"))["recent"]["bins"]
    assert {row["level"] for row in bins} == {0.95}
    shown = said("experiment", "diagnose", *where)
    assert "(95%: " in shown
    assert "'email': " in shown
    assert "it has no causes, so that there is no link to test" in shown
    rows = json.loads(said("experiment", "estimates", *where, "--json"))
    assert all(row["radius"] > 0 for row in rows)
    assert f"an interval reaches {rows[0]['radius']:g} standard errors" in said("experiment", "estimates", *where)
    told = said("experiment", "recommend", *where)
    assert "each interval" in told
    assert json.loads(said("experiment", "recommend", *where, "--json"))["observed"]["level"] == 0.95


def test_an_index_above_1_is_no_probability(tmp_path):
    storage = f"sqlite:///{tmp_path}/plain.db"
    experiment = played(1, storage)
    trial = experiment.ask()
    told = experiment.explain(trial.number)
    assert told.optimistic > 1.0
    shown = said("experiment", "explain", "plain", trial.number, "--storage", storage)
    assert "above 1: too little is known to bound it" in shown


def test_one_of_two_that_compete_has_a_runner_up():
    """BestSet lets two sets compete: the other one is what came second, though no index was compared."""
    experiment = played(30, MemoryStorage(), policy="best-set")
    trial = experiment.ask()
    told = experiment.explain(trial.number)
    assert told.optimistic is told.margin is None
    assert told.runner_up.do != trial.do
    assert 0.0 <= told.runner_up.optimistic <= 1.0
    other = experiment.evaluate(told.runner_up.do)
    assert told.runner_up.optimistic == other.interval.high


@pytest.mark.parametrize("policy", ["kl-ucb", "lucb", "ucb"])
def test_a_recommendation_and_a_diagnosis_have_one_verdict(policy):
    experiment = played(80, MemoryStorage(), policy=policy)
    words = {"calibrated": "fits", "too few rounds to tell": "unknown", "no predictions to compare": "unknown"}
    assert experiment.recommend().verdict == words.get(experiment.diagnose().verdict, "contradicted")


def test_solve_names_the_target(tmp_path):
    WORLD.save(tmp_path / "model.json")
    assert "E[buy]" in said("solve", tmp_path / "model.json", "-k", 1)


def test_a_curve_that_is_contradicted_is_not_every_way_to_say_it():
    """Only both together work: no curve fits, and a table does."""
    graph = dob.CausalGraph([("a", "y"), ("b", "y")], target="y")
    rng, rows = np.random.default_rng(3), []
    for _ in range(300):
        a, b = (int(value) for value in rng.integers(0, 2, 2))
        rows.append({"a": a, "b": b, "y": int(rng.random() < 0.4 + 0.25 * (a != b))})
    fit = dob.fit(graph, rows)
    told = [warning for warning in fit.warnings if "'y'" in warning]
    if fit.nodes["y"].link != "table":
        assert any("every curve for 'y'" in one and "A table by the pattern of its causes fits" in one for one in told)
    assert not any("every link" in one for one in told)
