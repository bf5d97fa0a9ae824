"""Live experiments and commands on graphs whose hidden causes cannot be removed."""

import io
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import dobandit as dob
from dobandit.cli.main import main
from dobandit.errors import GraphError, InterventionError
from dobandit.experiment.advice import verdict_of
from dobandit.storage import MemoryStorage

SHOP = dob.CausalGraph(
    [("email", "visit"), ("coupon", "visit"), ("visit", "buy"), ("season", "visit"), ("season", "buy")],
    target="buy",
    latent=["season"],
    controllable=["email", "coupon"],
)
SEEN = {"email": 0, "coupon": 0, "visit": 1, "buy": 1}


def told(experiment, rounds=4):
    for i in range(rounds):
        trial = experiment.ask()
        experiment.tell(trial, {name: trial.do.get(name, value) for name, value in SEEN.items()} | {"buy": i % 2})


@pytest.mark.parametrize("policy", ["blm-lr:clipped=true", "ucb"])
def test_the_log_keeps_what_counts_as_hidden(tmp_path, policy):
    storage = f"sqlite:///{tmp_path}/shop.db"
    experiment = dob.create_experiment("shop", SHOP, 1, policy, storage, seed=1, hide="auto")
    assert experiment.definition.document["hide"] == ["visit"]
    told(experiment)
    assert [row["observation"]["visit"] for row in experiment.trials()] == [1] * 4
    again = dob.open_experiment("shop", storage)
    assert again.definition.problem == experiment.definition.problem
    assert again.learner.propose() == experiment.learner.propose()
    assert again.recommend() == experiment.recommend()
    trial = again.ask()
    answer = again.tell(trial, {name: value for name, value in SEEN.items() if name not in ("visit", *trial.do)})
    assert not answer.partial
    assert not answer.missing
    if policy != "ucb":
        assert {edge.effect for edge in again.estimates()} == {"email", "coupon", "buy"}
        assert "visit" not in {node.name for node in again.diagnose().nodes}


def test_rounds_that_set_what_counts_as_hidden_teach_a_model_nothing():
    words = {"policy": "blm-lr:clipped=true", "storage": MemoryStorage()}
    experiment = dob.create_experiment("shop", SHOP, 1, seed=1, hide=["visit"], **words)
    told(experiment, 3)
    before = experiment.recommend()
    experiment.record({"visit": 1}, {"email": 0, "coupon": 0, "buy": 1})
    after = experiment.recommend()
    assert (after.do, after.value) == (before.do, before.value)
    assert any("1 rounds in which 'visit' was set are left out" in note for note in experiment.diagnose().notes)


def test_an_experiment_that_always_sets_a_variable(tmp_path):
    graph = dob.CausalGraph([("A", "B"), ("B", "Y"), ("C", "Y"), ("U", "B"), ("U", "Y")], target="Y", latent=["U"])
    storage = f"sqlite:///{tmp_path}/always.db"
    with pytest.raises(GraphError, match=r"always_set=\['B'\]"):
        dob.create_experiment("always", graph, 2, "blm-lr:clipped=true", storage)
    words = {"policy": "blm-lr:clipped=true", "storage": storage, "seed": 2, "always_set": ["B"], "control": 0.3}
    experiment = dob.create_experiment("always", graph, 2, **words)
    for _ in range(12):
        trial = experiment.ask()
        assert trial.control or "B" in trial.do
        seen = {"A": 1, "B": 1, "C": 0, "Y": trial.number % 2}
        experiment.tell(trial, {name: value for name, value in seen.items() if name not in trial.do})
    entered = sum("B" in row["do"] for row in experiment.trials())
    assert 0 < entered < 12
    assert experiment.learner.rounds == entered
    assert dob.open_experiment("always", storage).learner.rounds == entered
    assert experiment.recommend().nothing is None
    assert experiment.status().control is not None


IV = dob.CausalGraph([("Z", "X"), ("X", "Y"), ("U", "X"), ("U", "Y")], target="Y", latent=["U"])


def test_an_experiment_speaks_of_mechanisms():
    watched = [{"Z": i % 2, "X": (i // 2) % 2, "Y": i % 3 == 0} for i in range(24)]
    experiment = dob.create_experiment("iv", IV, 1, storage=MemoryStorage(), history=watched, seed=1)
    told = experiment.evaluate({"X": 1})
    assert told.interval == (0.0, 1.0)
    assert any("No round shows how 'Y' answers to 'X' where 'X' is set" in doubt for doubt in told.doubts)
    assert not experiment.evaluate({"Z": 1}).doubts[1:], "but that nobody has set it"
    for i in range(12):
        experiment.record({"X": i % 2}, {"Z": 1, "Y": i % 3 == 0})
    known = {(edge.cause, edge.effect): edge.rows for edge in experiment.estimates()}
    assert known["X", "Y"] == 12
    assert known["Z", "Y | Z, X"] == known["X", "Y | Z, X"] == known["Z", "X"] == 24
    diagnosis = experiment.diagnose()
    assert {node.name: node.rows for node in diagnosis.nodes} == {"Z": 36, "X": 24, "Y": 12, "Y | Z, X": 24}
    assert "'Y' answers in 2 ways: to 'X' where 'X' is set; to 'Z', 'X' otherwise." in diagnosis.notes
    told = experiment.evaluate({"X": 1})
    assert not any("No round shows" in doubt for doubt in told.doubts)
    said = verdict_of(replace(diagnosis, verdict="calibrated"), experiment.learner)
    assert said.word == "untested"
    assert "The graph was not tested" in said.reasons[0]
    trial = experiment.ask()
    assert experiment.explain(trial).do == trial.do


def test_nothing_is_said_of_what_no_allowed_action_sets():
    graph = dob.CausalGraph([("A", "B"), ("B", "Y"), *(("U", end) for end in "ABY")], target="Y", latent=["U"])
    experiment = dob.create_experiment("one", graph, 1, storage=MemoryStorage())
    for i in range(12):
        experiment.record({"A": i % 2}, {"B": 1, "Y": i % 3 == 0})
    told = experiment.evaluate({"A": 1, "B": 1})
    assert math.isnan(told.value)
    assert any("no allowed action sets these variables" in note for note in told.warnings)
    fit = dob.fit(graph, [{"A": 1, "B": 1, "Y": 1}, {"A": 0, "B": 1, "Y": 0}])
    with pytest.raises(InterventionError, match="Use rank with a budget"):
        fit.expect({"A": 1, "B": 1})


def test_policies_without_a_model_take_any_graph(tmp_path):
    storage = f"sqlite:///{tmp_path}/any.db"
    for policy in ("ucb", "eps-greedy", "random", "fixed:set=email"):
        experiment = dob.create_experiment(policy, SHOP, 1, policy, storage, seed=3)
        told(experiment)
        assert dob.open_experiment(policy, storage).recommend().do is not None
        assert experiment.diagnose().graph == ()


def test_hiding_that_finds_nothing_says_why():
    graph = dob.CausalGraph([("A", "B"), ("B", "Y"), ("U", "B"), ("U", "Y")], target="Y", latent=["U"])
    with pytest.raises(
        GraphError,
        match=r"hide='auto' finds nothing .* 'B' can be set and 'Y' is the target\. Ways on: .*policy='causal-ucb'",
    ):
        dob.create_experiment("none", graph, 1, "blm-lr:clipped=true", "memory", hide="auto")
    experiment = dob.create_experiment("none", graph, 1, storage="memory", hide="auto")
    assert "hide" not in experiment.definition.document


# -- commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def dobandit(capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    dob.write_graph(SHOP, "shop.txt")

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        assert (ended.value.code or 0) == code, printed
        return printed

    return run


def test_check_says_what_refuses_and_what_helps(dobandit):
    report = json.loads(dobandit("check", "shop.txt", "--json").out)
    assert report["refused_by"] == ["project", "--policy blm-lr", "--policy bglm-ofu"]
    assert report["mechanisms"]["buy"] == [{"causes": ["coupon", "email", "visit"], "where": [[]]}]
    assert "--hide auto" in report["ways_on"]
    assert report["possibly_optimal"] == [["coupon", "email"]]
    better = json.loads(dobandit("check", "shop.txt", "--hide", "auto", "--json").out)
    assert better["admissible"]
    assert better["hide"] == ["visit"]
    assert better["learned_directly"] == {"buy": ["coupon", "email"]}
    assert better["refused_by"] == []
    text = dobandit("check", "shop.txt", "--hide", "visit").out
    assert "counts as hidden" in text
    assert "Did you mean 'email'" in dobandit("check", "shop.txt", "--always-set", "emial", code=2).err


def test_project_and_create_take_hide(dobandit):
    assert "--hide auto" in dobandit("project", "shop.txt", code=2).err
    assert dobandit("project", "shop.txt", "--hide", "auto").out == "target: buy\ncoupon -> buy\nemail -> buy\n"
    home = ["--storage", "sqlite:///shop.db"]
    refused = dobandit("experiment", "create", "a", "shop.txt", "-k", 1, "--policy", "blm-lr", *home, code=2).err
    assert "--hide auto" in refused
    assert "--policy ucb" in refused
    made = dobandit("experiment", "create", "a", "shop.txt", "-k", 1, "--policy", "blm-lr", "--hide", "auto", *home).out
    assert "counts as hidden  visit: kept in the log, not learned from" in made
    dobandit("experiment", "create", "b", "shop.txt", "-k", 1, "--policy", "ucb", *home)


def test_check_says_why_nothing_is_hidden(dobandit):
    (Path("lever.txt")).write_text("target: buy\nvisit -> buy\nvisit <-> buy\n")
    report = json.loads(dobandit("check", "lever.txt", "--hide", "auto", "--json").out)
    assert "'visit' can be set and 'buy' is the target" in report["hide_note"]
    (Path("plain.txt")).write_text("target: buy\nvisit -> buy\n")
    report = json.loads(dobandit("check", "plain.txt", "--hide", "auto", "--json").out)
    assert report["hide_note"] == "--hide auto hides nothing: nothing has to be hidden."
