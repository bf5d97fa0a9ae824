"""A stranger's policy goes everywhere that ours do: simulations, experiments, restarts, explanations. In a process that
does not know it, what needs it says what is missing, and everything else goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import make_dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dobandit as dob
from dobandit.policy.base import round_draws
from dobandit.policy.registry import policy_from_spec, policy_with
from helpers import forked
from helpers.foreign import ThompsonArms

HERE = Path(__file__).parents[1]
COMMAND = "from dobandit.cli.main import main; main()"
GRAPH = dob.paper.G4.graph


def seen(do, rng):
    """A round of the world: anything, but for what was set."""
    return {name: int(rng.integers(2)) for name in GRAPH.nodes} | do


def played(experiment, rounds, seed=0):
    rng, trials = np.random.default_rng(seed), []
    for _ in range(rounds):
        trial = experiment.ask()
        experiment.tell(trial, seen(trial.do, rng))
        trials.append(trial)
    return trials


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/foreign.db"


def created(url, policy="thompson-arms:prior=2", name="spring"):
    return dob.create_experiment(name, GRAPH, 2, policy, url, seed=3)


@pytest.fixture
def python(zygote):
    """What becomes of a process that knows the tests' modules but has imported none of them but its own."""

    def run(code, *arguments):
        ended = zygote.run(forked.python, code, list(map(str, arguments)), [])
        return SimpleNamespace(**dict(zip(("returncode", "stdout", "stderr"), ended, strict=True)))

    return run


def python_alone(code, *arguments):
    """A process that has loaded nothing at all."""
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})


# -- simulations and learners --------------------------------------------------------------------------------------


def test_it_is_simulated_beside_ours_and_learns():
    policies = [ThompsonArms(), "thompson-arms:prior=4", "random"]
    result = dob.simulate(dob.paper.G4, policies, rounds=400, replications=3, seed=1)
    assert result.labels == ["Thompson arms (prior 1)", "Thompson arms (prior 4)", "Random"]
    assert result.regret("Thompson arms (prior 1)")[:, -1].mean() < result.regret("Random")[:, -1].mean()


def test_a_saved_study_holds_it(tmp_path):
    result = dob.simulate(dob.paper.G4, [ThompsonArms(prior=2.0)], rounds=20, replications=2)
    result.save(tmp_path)
    again = dob.load_result(tmp_path)
    assert list(again.study.policies.values()) == [ThompsonArms(prior=2.0)]
    np.testing.assert_array_equal(again.regret("Thompson arms"), result.regret("Thompson arms"))


def test_a_learner_says_what_it_has():
    learner = ThompsonArms().start(GRAPH, 2, seed=3, effects="nonnegative")
    rng = np.random.default_rng(1)
    for _ in range(30):
        action = learner.propose()
        learner.update(action, seen(action, rng))
    best = learner.best()
    assert len(best.do) == 2
    assert best.interval.low <= best.value <= best.interval.high
    assert not learner.keeps_model
    with pytest.raises(dob.errors.PolicyError, match="Thompson arms keeps no model of the causes"):
        learner.estimate("Y")


# -- experiments ---------------------------------------------------------------------------------------------------


def test_an_experiment_takes_the_policy_or_its_name(url):
    by_object = created(url, ThompsonArms(prior=2), "object")
    by_name = created(url, "thompson-arms:prior=2", "name")
    assert by_object.definition.document["policy"] == {"name": "thompson-arms", "prior": 2}
    assert by_object.definition.differences(by_name.definition) == []
    assert [trial.do for trial in played(by_object, 12)] == [trial.do for trial in played(by_name, 12)]


def test_trials_are_the_choices_of_a_learner_by_hand(url):
    experiment = created(url)
    learner = ThompsonArms(prior=2).start(GRAPH, 2, seed=3)
    learner.problem = experiment.learner.problem  # the experiment says what is promised
    learner.engine = learner.policy.engine(learner.problem)
    rng = np.random.default_rng(2)
    for number in range(20):
        trial = experiment.ask()
        assert trial.do == learner.propose(round_draws(3, number, learner.engine.draws))
        observation = seen(trial.do, rng)
        experiment.tell(trial, observation)
        learner.update(trial.do, observation)
    assert experiment.learner.rounds == 20
    assert experiment.recommend()[:3] == learner.best()[:3]


def test_parallel_asks_count_what_is_under_way(url):
    experiment = created(url)
    trials = experiment.ask(n=6)
    assert len({tuple(trial.do) for trial in trials}) > 1
    assert [trial.number for trial in trials] == list(range(6))


def test_its_choices_are_explained(url):
    experiment = created(url)
    last = played(experiment, 15)[-1]
    said = experiment.explain(last.number)
    assert said.do == last.do
    assert said.rounds == 14
    assert said.optimistic is not None
    assert said.runner_up is not None
    assert said.runner_up.optimistic <= said.optimistic
    assert said.paths == ()  # it keeps no model
    assert said.other_paths is None


def test_answers_that_need_no_model_are_there(url):
    experiment = created(url)
    played(experiment, 25)
    assert experiment.best_observed() is not None
    assert experiment.status()
    with pytest.raises(dob.errors.PolicyError, match="keeps no model"):
        experiment.estimates()


# -- another process -----------------------------------------------------------------------------------------------

NEXT = """
import json, sys
{}
import dobandit as dob
experiment = dob.open_experiment("spring", sys.argv[1])
trial = experiment.ask()
print(json.dumps([trial.number, trial.do, trial.predicted, repr(experiment)]))
"""


def test_a_new_process_that_imports_the_class_goes_on(url, tmp_path):
    experiment = created(url)
    played(experiment, 10)
    done = python_alone(NEXT.format("from helpers import foreign"), url)
    assert done.returncode == 0, done.stderr
    number, do, predicted, shown = json.loads(done.stdout)
    twin = created(f"sqlite:///{tmp_path}/twin.db")
    played(twin, 10)
    expected = twin.ask()
    assert (number, do, predicted) == (10, expected.do, expected.predicted)
    assert "thompson-arms:prior=2" in shown


def test_a_process_without_the_class_says_what_is_missing(python, url):
    played(created(url), 5)
    done = python(NEXT.format(""), url)
    assert done.returncode != 0
    assert "'thompson-arms'" in done.stderr
    assert "install that here, or import it first" in done.stderr
    assert "backup" not in done.stderr  # nothing is broken


def test_a_process_without_the_class_still_tells_and_shows(python, url):
    experiment = created(url)
    played(experiment, 5)
    trial = experiment.ask()
    code = """
import json, sys
import dobandit as dob
experiment = dob.open_experiment("spring", sys.argv[1])
number, observation = json.loads(sys.argv[2])
told = experiment.tell(number, observation)
recorded = experiment.record({}, observation | {"Y": 0}, randomised=True)
seen = [experiment.best_observed().rounds, experiment.best_observed(available=[]).rounds]
print(json.dumps([told.number, recorded, repr(experiment), len(list(experiment.trials())), seen]))
"""
    observation = seen(trial.do, np.random.default_rng(9))
    done = python(code, url, json.dumps([trial.number, observation]))
    assert done.returncode == 0, done.stderr
    number, recorded, shown, trials, of_best = json.loads(done.stdout)
    assert (number, recorded, trials) == (5, 6, 7)
    assert "thompson-arms:prior=2" in shown
    assert of_best == [experiment.best_observed().rounds, 1]  # what the data alone say takes no policy
    assert experiment.learner.rounds == 7  # here the class is known, and what was told elsewhere is learned


def test_the_command_line_without_the_class(python, url):
    experiment = created(url)
    played(experiment, 3)
    trial = experiment.ask()
    observation = [f"{name}={value}" for name, value in seen(trial.do, np.random.default_rng(9)).items()]
    for words in (["list"], ["show", "spring"], ["trials", "spring"], ["tell", "spring", trial.number, *observation]):
        done = python(COMMAND, "experiment", *words, "--storage", url)
        assert done.returncode == 0, (words, done.stderr)
        assert "Traceback" not in done.stderr
    done = python(COMMAND, "experiment", "ask", "spring", "--storage", url)
    assert done.returncode == 2
    assert "'thompson-arms'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_name_of_a_policy_that_is_not_there_is_refused_when_an_experiment_is_created(url):
    with pytest.raises(dob.errors.PolicyError, match="install that here, or import it first"):
        created(url, "thompson-leggs")
    assert policy_from_spec("thompson-arms") == ThompsonArms()


def test_a_setting_of_the_wrong_type_is_refused_in_the_words_of_its_class():
    written = make_dataclass("Written", [("heat", float, 0.1)], bases=(ThompsonArms,), frozen=True)
    for cls in (written, ThompsonArms):  # one with types for annotations, one with their names
        with pytest.raises(dob.errors.PolicyError, match=r"is of type float, but got 'x'. Change it.$"):
            policy_with(cls, {"prior" if cls is ThompsonArms else "heat": "x"})
