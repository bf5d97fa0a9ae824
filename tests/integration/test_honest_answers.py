"""What no model can tell is not told, and what speaks against an answer keeps it from being final."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dobandit as dob
from dobandit.experiment.storage import MemoryStorage


def made(graph, **more):
    return dob.create_experiment("honest", graph, 1, storage=MemoryStorage(), seed=0, **more)


def test_people_who_were_chosen_are_no_effect():
    """Mail went to those who buy anyway: seg told people whom to write to, and mail does nothing."""
    graph = dob.CausalGraph([("seg", "buy"), ("mail", "buy"), ("ad", "buy")], target="buy", controllable=["mail", "ad"])
    rng, rows = np.random.default_rng(0), []
    for _ in range(1500):
        seg = int(rng.random() < 0.5)
        row = {"seg": seg, "mail": int(rng.random() < 0.2), "ad": int(rng.random() < 0.2), "do": ""}
        if rng.random() < (0.6 if seg else 0.1):
            row |= {"mail": 1, "do": "mail"}
        elif rng.random() < 0.3:
            row |= {"ad": 1, "do": "ad"}
        rows.append(row | {"buy": int(rng.random() < 0.1 + 0.6 * seg + 0.1 * row["ad"])})
    experiment = made(graph, history=rows, stop_within=0.05)
    advice = experiment.recommend()
    assert advice.do == {"ad": 1}
    assert advice.value == pytest.approx(0.5, abs=0.1)
    assert not experiment.learner.engine.revisions  # a node without causes gets none
    assert any("seg" in warning for warning in advice.warnings)
    assert any("make 'seg' context" in finding.advice for finding in experiment.diagnose().graph)
    assert "no allowed action is better" not in experiment.ask().why
    assert not experiment.status().may_stop


def test_what_counts_as_hidden_or_was_not_set_has_no_value():
    graph = dob.CausalGraph(
        [("mail", "visit"), ("visit", "buy"), ("mood", "visit"), ("mood", "buy")],
        target="buy",
        latent=["mood"],
        controllable=["mail", "visit"],
    )
    hidden = made(graph, hide=["visit"])
    for number in range(30):
        hidden.record({"mail": number % 2}, {"visit": number % 2, "buy": number % 3 == 0})
    found = hidden.evaluate({"visit": 1})
    assert math.isnan(found.value)
    assert (found.interval, found.uplift, found.gap) == ((0.0, 1.0), None, None)
    assert any("counts as hidden" in warning for warning in found.warnings)
    held = dob.create_experiment("held", graph, 2, storage=MemoryStorage(), always_set=["visit"])
    nothing = held.evaluate({})
    assert math.isnan(nothing.value)
    assert any("does not set it" in warning for warning in nothing.warnings)
    assert not math.isnan(held.evaluate({"visit": 1, "mail": 1}).value)


def test_an_action_that_is_not_allowed_is_not_the_best_allowed_one():
    graph = dob.CausalGraph([("a", "y"), ("b", "y")], target="y")
    experiment = made(graph)
    for number in range(40):
        experiment.record({"a": number % 2, "b": number % 2}, {"y": number % 2})
    both = experiment.evaluate({"a": 1, "b": 1})
    assert (both.probability_best, both.expected_loss) == (None, None)
    assert experiment.evaluate({"a": 1}).probability_best is not None


def test_a_study_needs_no_policy():
    result = dob.simulate(dob.paper.G4, rounds=20, replications=2)
    assert [label.split()[0] for label in result.labels] == ["CausalUCB", "UCB"]
