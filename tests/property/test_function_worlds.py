"""Worlds that are functions, and what two settings of one policy are called."""

from __future__ import annotations

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import DobanditError, ModelError, SimulationError
from dobandit.report.svg.regret_charts import regret_figure
from dobandit.simulation.study import study_of, told_apart
from dobandit.texts import shortened_apart

GRAPH = dob.CausalGraph(
    [("ad", "visit"), ("mail", "visit"), ("visit", "buy")], target="buy", controllable=["ad", "mail"]
)
MODEL = dob.BinaryGLM(
    GRAPH,
    {"ad": 0.3, "mail": 0.3, "visit": 0.1, "buy": 0.1}
    | {("ad", "visit"): 0.6, ("mail", "visit"): 0.2, ("visit", "buy"): 0.8},
)


def shop(action, context, rng):
    """MODEL, written down as a function."""
    u = rng.random(4)
    ad, mail = action.get("ad", u[0] < 0.3), action.get("mail", u[1] < 0.3)
    visit = u[2] < 0.1 + 0.6 * ad + 0.2 * mail
    return {"ad": ad, "mail": mail, "visit": visit, "buy": u[3] < 0.1 + 0.8 * visit}


def segments(action, context, rng):
    """What helps depends on the device."""
    u = rng.random(4)
    mobile = context.get("mobile", u[0] < 0.25)
    ad, mail = action.get("ad", u[1] < 0.3), action.get("mail", u[2] < 0.3)
    return {"mobile": mobile, "ad": ad, "mail": mail, "buy": u[3] < 0.2 + 0.6 * (ad if mobile else mail)}


def test_a_function_is_measured_by_estimates_that_say_how_good_they_are():
    policies = {
        "best": dob.Fixed(["ad"]),
        "other": dob.Fixed(["mail"]),
        "again": dob.Fixed({"ad": 1}),
        "random": dob.Random(),
    }
    world = dob.FunctionModel(shop, GRAPH, samples=1_000)
    result = dob.simulate(world, policies, 50, 3, 1)
    truth = {name: dob.expect(MODEL, [name]).value for name in ("ad", "mail")}
    assert result.best_do == {"ad": 1}
    assert result.best == pytest.approx(truth["ad"], abs=4 * 0.5 / np.sqrt(1_000))
    assert np.all(result.regret("best") == 0)
    gap = result.regret("other")[:, -1] / 50
    assert gap == pytest.approx(truth["ad"] - truth["mail"], abs=4 * result.value_error)
    assert 0 < result.value_error <= 1 / np.sqrt(1_000)
    assert np.array_equal(result.reward("best"), result.reward("again"))  # common random numbers
    assert "The world is a function, so that regret is estimated" in str(result.summary())
    again = dob.simulate(world, policies, 50, 3, 1, workers=1)
    assert np.array_equal(result.all_regret, again.all_regret)
    with pytest.raises(ModelError, match="neither"):
        result.save("nowhere")


def test_a_model_s_study_is_exact_and_says_nothing_of_estimates():
    result = dob.simulate(MODEL, ["random"], 20, 2, 1)
    assert result.value_error == 0
    assert "is estimated" not in str(result.summary())


def test_a_function_with_context_has_a_best_action_in_each():
    graph = dob.CausalGraph([("mobile", "buy"), ("ad", "buy"), ("mail", "buy")], target="buy", context=["mobile"])
    world = dob.FunctionModel(segments, graph, samples=1_000)
    result = dob.simulate(world, {"ad": dob.Fixed(["ad"]), "ucb": dob.UCB()}, 200, 3, 1)
    # ad is right for mobiles (a quarter), where both have 0.8; elsewhere it has 0.38 (mail on its own) against 0.8
    assert result.best == pytest.approx(0.8, abs=4 * 0.5 / np.sqrt(1_000))
    # Error: that of the estimated gaps, and that of how many of 600 rounds are mobiles.
    error = result.value_error + 0.42 * np.sqrt(0.75 * 0.25 / 600)
    assert result.regret("ad")[:, -1].mean() / 200 == pytest.approx(0.75 * (0.8 - 0.2 - 0.6 * 0.3), abs=4 * error)


@pytest.mark.parametrize(
    ("world", "said"),
    [
        (lambda action, context, rng: 3, "values by name"),
        (lambda action, context, rng: {"ad": 0, "mail": 0, "visit": 1}, "'buy' is missing"),
        (lambda action, context, rng: {"ad": 0, "mail": 0, "visit": 1, "buy": 0.5}, "'buy' is 0.5"),
        (lambda action, context, rng: {"ad": 0, "mail": 0, "visit": 1, "buy": 1}, "is set to 1"),
        (lambda action, context, rng: {"ad": 0, "mail": 0, "visit": 1, "buy": np.array([0, 1])}, "'buy' is array"),
        (lambda action, context: {}, r"called as world\(action, context, rng\), but"),
    ],
)
def test_a_function_that_breaks_the_rules_is_told_so(world, said):
    with pytest.raises(SimulationError, match=said):
        dob.simulate(world, ["random"], 5, 1, 1, graph=GRAPH)  # on the first call


def test_what_a_function_cannot_do_is_said():
    with pytest.raises(SimulationError, match=r"Give graph=\.\.\."):
        dob.simulate(shop, ["random"], 5, 1, 1)
    with pytest.raises(SimulationError, match="A function"):
        dob.simulate(3, ["random"], 5, 1, 1, graph=GRAPH)
    with pytest.raises(DobanditError, match="oracle need"):
        dob.simulate(shop, ["oracle"], 5, 1, 1, graph=GRAPH)


def test_two_settings_of_one_policy_are_told_apart_by_what_differs():
    policies = [
        dob.BGLMOFU(initial=50, radius_scale=0.1),
        dob.BGLMOFU(initial=100, radius_scale=0.1),
        dob.BLMLR(),
        dob.BLMLR(radius_scale=0.1, clipped=True),
        dob.UCB(),
        dob.UCB(scale=0.5),
    ]
    study = study_of(dob.paper.G4, [dob.UCB(), *policies[:2]], 2, 1, 2)
    assert list(study.policies) == ["UCB", "BLM-OFU (initial 50)", "BLM-OFU (initial 100)"]
    assert told_apart(policies[2:], [policy.label for policy in policies[2:]]) == [
        "BLM-LR (radius scale 1)",
        "BLM-LR (radius scale 0.1, clipped)",
        "UCB",
        "UCB (0.5)",
    ]


def test_short_names_stay_apart():
    long = [
        "A policy with a very long name (scale 0.1)",
        "A policy with a very long name (scale 0.2)",
        "x" * 50,
        "x" * 51,
    ]
    short = shortened_apart(long, 28)
    assert len(set(short.values())) == 4
    assert all(len(text) <= 28 for text in short.values())
    assert short[long[0]].endswith("(scale 0.1)")


def test_figures_have_ten_colours():
    policies = [dob.UCB(scale=i / 10) for i in range(1, 11)]
    figure = regret_figure(dob.simulate(dob.paper.G4, policies, 30, 2))
    assert len({colour for colour, _ in figure.looks.values()}) == 10


def test_losses_are_drawn_by_world(tmp_path):
    results = {name: dob.simulate(dob.paper.G4, ["ucb", "random"], 30, 3, seed=i) for i, name in enumerate("ab")}
    dob.losses_figure(results).save(tmp_path / "losses.svg")
    drawn = (tmp_path / "losses.svg").read_text()
    assert drawn.count(">Random</text>") == 2
    assert "loses least over 2 worlds" in drawn
    alone = {name: dob.simulate(dob.paper.G4, ["ucb"], 30, 3, seed=i) for i, name in enumerate("ab")}
    dob.losses_figure(alone).save(tmp_path / "alone.svg")
    assert "rewards in 2 worlds, at most" in (tmp_path / "alone.svg").read_text()
    with pytest.raises(dob.errors.ReportError, match="at least one"):
        dob.losses_figure({})
    with pytest.raises(dob.errors.ReportError, match="what `simulate` returns, but got int"):
        dob.losses_figure({"G4": 1})
