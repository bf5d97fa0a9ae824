"""What a hostile look at rules and policies of one's own found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dobandit import BLMLR, UCB, BinaryGLM, CausalGraph, create_experiment, open_experiment, simulate, solve
from dobandit.errors import DobanditWarning, InterventionError, PolicyError
from dobandit.oracle.actions import Action
from dobandit.oracle.rules import Rules
from dobandit.policy.engine import Choice
from dobandit.storage import MemoryStorage
from helpers.foreign import ThompsonArms, ThompsonEngine

GRAPH = CausalGraph([("a", "y"), ("b", "y")], target="y")
HARM = BinaryGLM(GRAPH, {"a": 0.0, "b": 0.0, "y": 0.8, ("a", "y"): -0.5, ("b", "y"): -0.3})


@pytest.mark.parametrize("policies", [[UCB()], [ThompsonArms()], [ThompsonArms(), UCB()]], ids=str)
def test_regret_is_against_the_best_allowed_action_whoever_plays(policies):
    result = simulate(HARM, policies, 50, 2, 1, smaller=False)
    best = solve(HARM, 1, smaller=False)
    assert (result.best, result.best_do) == (pytest.approx(best.value), best.do)
    assert best.value == pytest.approx(0.5)


@pytest.mark.parametrize("said", [{"budget": Rules(1, available=["b"])}, {"budget": 1, "available": ["b"]}], ids=str)
def test_an_experiment_keeps_to_what_is_available_at_all(said, tmp_path):
    url = f"sqlite:///{tmp_path}/rules.db"
    create_experiment("few", GRAPH, **said, policy="ucb", storage=url)
    kept = open_experiment("few", url)
    assert kept.definition.problem.rules.available == ("b",)
    for _ in range(6):
        trial = kept.ask()
        assert set(trial.do) <= {"b"}
        kept.tell(trial, {"a": 0, "b": trial.do.get("b", 0), "y": 0})
    with pytest.raises(InterventionError):
        kept.ask(available=["nobody"])
    assert kept.ask(available=["a"]).do == {}
    assert set(kept.recommend().do) <= {"b"}
    assert simulate(HARM, ["random"], 30, 2, **said).best_do == solve(HARM, **said).do


@pytest.mark.parametrize(
    "said", [{"available": []}, {"available": ["a"], "forbid": ["a"]}, {"total_cost": 0.5}], ids=str
)
def test_rules_that_leave_nothing_to_set_are_pointed_out(said):
    with pytest.warns(DobanditWarning, match="leave nothing to set"):
        create_experiment("idle", GRAPH, None if "total_cost" in said else 1, **said, storage=MemoryStorage())


def test_what_is_hidden_on_purpose_is_called_so():
    chain = CausalGraph([("a", "m"), ("m", "y")], target="y")
    with pytest.raises(InterventionError, match=r"'m' counts as hidden.* do not hide it"):
        create_experiment("both", chain, 1, available=["m"], hide=["m"], storage=MemoryStorage())


@dataclass(frozen=True)
class Lawless(ThompsonArms):
    """Sets everything, whatever the budget."""

    name: ClassVar[str] = "lawless"

    def engine(self, problem):
        return LawlessEngine(problem, self.prior)


class LawlessEngine(ThompsonEngine):
    def choose(self, now):
        return Choice(Action((1, 2), (1.0, 1.0)), 1.0)

    def compare(self, now, optimistic=True):
        return [(Action((99,), (1.0,)), 1.0)]


def test_a_policy_that_breaks_the_rules_is_stopped():
    with pytest.raises(PolicyError, match="keeps to the rules"):
        simulate(HARM, [Lawless()], 5, 1, 1)
    experiment = create_experiment("lawless", GRAPH, 1, policy=Lawless(), storage="memory")
    with pytest.raises(PolicyError, match="keeps to the rules"):
        experiment.ask()
    with pytest.raises(PolicyError, match="keeps to the rules"):
        experiment.recommend()
    assert experiment.trials() == []


def test_chances_of_being_best_share_ties():
    graph = CausalGraph([("a", "v"), ("b", "v"), ("v", "y"), ("b", "y")], target="y", controllable=["a", "b"])
    experiment = create_experiment("ties", graph, 1, storage="memory", seed=0)
    for _ in range(3):
        chances = [experiment.evaluate(do).probability_best for do in ({}, {"a": 1}, {"b": 1})]
        assert np.sum(chances) == pytest.approx(1.0, abs=1e-9)
        trial = experiment.ask()
        experiment.tell(trial, {"a": 0, "b": 0, "v": 1, "y": 0, **trial.do})


def test_settings_that_are_true_or_false_are_nothing_else():
    with pytest.raises(PolicyError, match="clipped is True or False"):
        BLMLR(clipped=7)
