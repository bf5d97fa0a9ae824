"""Control rounds, what is known before a round, and variables that cannot happen by themselves."""

import math

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import ExperimentError, InterventionError, ObservationError
from dobandit.estimation.confidence import beta_binomial
from dobandit.experiment.replayed_learner import batches_of, trial_draws
from dobandit.policy.base import round_draws
from dobandit.storage import MemoryStorage
from helpers.experiments import CASES, Clock, knowledge, said, settings_of
from helpers.foreign import ThompsonArms, ThompsonEngine
from helpers.storages import id_of

FUNNEL = dob.CausalGraph(
    [("email", "visit"), ("coupon", "visit"), ("visit", "buy"), ("mobile", "visit")],
    target="buy",
    controllable=["email", "coupon"],
    bias=["visit", "buy", "mobile"],
)

MOBILE = dob.CausalGraph(
    [("email", "visit"), ("coupon", "visit"), ("visit", "buy"), ("mobile", "visit")],
    target="buy",
    controllable=["email", "coupon"],
    context=["mobile"],
    bias=["visit", "buy", "mobile"],
)


def make(graph=FUNNEL, budget=1, storage=None, **settings):
    storage = MemoryStorage() if storage is None else storage
    return dob.create_experiment("spring", graph, budget, storage=storage, **{"seed": 5, **settings})


def plain_policy(graph=FUNNEL, **settings):
    """With a policy that takes for granted what the first version did."""
    return make(graph, policy=dob.BLMLR(radius_scale=0.1), **settings)


# -- control -------------------------------------------------------------------------------------------------------


def test_the_share_of_control_rounds_is_drawn_from_the_trials_own_number():
    experiment = plain_policy(control=0.25)
    trials = experiment.ask(n=200)
    expected = [np.random.default_rng([5, number]).random(4)[3] < 0.25 for number in range(200)]
    assert [trial.control for trial in trials] == expected
    assert 30 < sum(expected) < 70
    for trial in trials:
        assert (trial.do == {}) == trial.control
        assert trial.why.startswith("control: nothing is set") == trial.control
    assert np.array_equal(round_draws(5, 7, 3), np.random.default_rng([5, 7]).random(4)[:3])


def test_a_policy_never_sees_the_number_that_decides_on_control_rounds():
    drawn = np.random.default_rng([5, 7]).random(8)
    for count in (1, 3, 5):
        assert trial_draws(5, 7, count).tolist() == [*drawn[:3], *drawn[4:]][:count]


@pytest.mark.parametrize("case", CASES)
def test_control_rounds_with_every_policy(case):
    model, budget, policy, _ = CASES[case]
    experiment = make(model.graph, budget, policy=policy, control=0.5, **settings_of(case))
    rng = np.random.default_rng(0)
    for _ in range(30):
        trial = experiment.ask()
        assert type(trial.control) is bool
        assert trial.do == {} or not trial.control
        experiment.tell(trial, {name: int(rng.integers(2)) for name in experiment.columns.names} | trial.do)
    status = experiment.status()
    assert status.control.rounds + status.treated.rounds == status.rounds == 30
    again = dob.open_experiment("spring", experiment.storage)
    assert knowledge(again) == knowledge(experiment)
    assert [said(trial) for trial in again.ask(n=5)]
    number = next(row["trial"] for row in experiment.trials() if row["control"])
    assert experiment.explain(number).runner_up is None


def test_required_variables_are_not_set_in_a_control_round():
    experiment = make(require=["coupon"], budget=2)
    trial = experiment.ask(control=True)
    assert (trial.control, trial.do) == (True, {})
    assert "coupon" in experiment.ask(control=False).do


def test_the_comparison():
    experiment = make()
    for number in range(30):
        trial = experiment.ask(control=number % 3 == 0)
        buy = int(number % 2 == 0) if trial.control else 1
        experiment.tell(trial, {"visit": 1, "buy": buy, "mobile": 0})
    experiment.record({}, {"buy": 0})  # nobody asked for it, so it is in neither
    status = experiment.status()
    assert status.control == (0.5, beta_binomial(0.5, 10), 10, 0.95)
    assert status.treated == (1.0, beta_binomial(1.0, 20), 20, 0.95)
    assert make().status().control is None
    assert list(experiment.to_pandas()["trial.control"].dropna())[:3] == [True, False, False]


def test_an_ask_for_a_control_round_takes_up_no_other():
    clock = Clock()
    experiment = make(lease=10.0, clock=clock)
    experiment.ask(control=False)
    experiment.ask(control=True)
    clock.now += 20.0
    assert experiment.ask(control=True).number == 1
    assert experiment.ask(control=True).number == 2
    assert experiment.ask().number == 0


@pytest.mark.parametrize("share", [-0.1, 1.0, 2, math.nan, True, "0.1", None])
def test_shares_that_are_refused(share):
    with pytest.raises(ExperimentError, match="control is the share"):
        make(control=share)


def test_the_share_of_control_rounds_is_part_of_the_definition():
    plain, held = plain_policy(), plain_policy(control=0.1)
    assert "control" not in plain.definition.document
    assert held.definition.document["control"] == 0.1
    with pytest.raises(ExperimentError, match="another control"):
        plain_policy(storage=held.storage, if_exists="open")
    assert plain_policy(storage=held.storage, if_exists="open", control=0.1).definition.control == 0.1
    with pytest.raises(ExperimentError, match="control is True, False or None"):
        plain.ask(control=1)


# -- context -------------------------------------------------------------------------------------------------------


def test_a_context_is_kept_and_seen(storage):
    experiment = plain_policy(MOBILE, storage=storage)
    trial = experiment.ask(["email"], context={"mobile": 1})
    assert trial.context == {"mobile": 1}
    experiment.tell(trial, {"visit": 1, "buy": 0})
    assert experiment.trial(0)["observation"]["mobile"] == 1
    assert experiment.trial(0)["context"] == {"mobile": 1}
    assert experiment.tell(trial, {"visit": 1, "buy": 0, "mobile": 1}).repeated
    again = experiment.ask(["coupon"], context={"mobile": 0}, size=2)
    with pytest.raises(ObservationError, match="was 0 then and is said to have been 1"):
        experiment.tell(again, [{"visit": 1, "mobile": 1}])
    with pytest.raises(ObservationError, match="at least one variable"):
        experiment.tell(again, {"mobile": 0})
    experiment.tell(again, [{"visit": 1, "buy": 1}, {"visit": 1, "buy": 1, "mobile": 0}])
    assert experiment.best_observed(context={"mobile": 0}).mean == 1.0
    assert experiment.best_observed(context={"mobile": 1}).mean == 0.0
    assert (experiment.best_observed().do, experiment.best_observed().rounds) == ({"coupon": 1}, 2)
    assert experiment.recommend(context={"mobile": 1}).do
    assert '"mobile"' in next(iter(experiment.to_pandas()["trial.context"]))


def test_seen_not_set():
    experiment = make(MOBILE)
    trial = experiment.ask(context={"mobile": 1})
    experiment.tell(trial, {"visit": 1, "buy": 0})
    rounds, _ = batches_of(experiment.storage.closed_since(id_of(experiment), 0, 1), experiment.columns)
    names = ["", *experiment.columns.names]
    assert {names[i] for i in np.flatnonzero(rounds.was_set[0])} == set(trial.do)
    assert rounds.values[0, names.index("mobile")] == 1.0
    with pytest.raises(InterventionError, match="seen, not set"):
        experiment.record({"mobile": 1}, {"buy": 1})


def test_the_engine_is_told_the_context(monkeypatch):
    experiment, seen = make(MOBILE, policy=ThompsonArms()), []
    plain = ThompsonEngine.choose
    monkeypatch.setattr(ThompsonEngine, "choose", lambda self, now: seen.append(now) or plain(self, now))
    experiment.ask(context={"mobile": 0}, size=30)
    experiment.ask(context={"mobile": 1}, available=["email"])
    at = 1 + experiment.columns.names.index("mobile")
    assert [now.context[at] for now in seen] == [0.0, 1.0]
    assert [now.context[0] for now in seen] == [1.0, 1.0]
    assert seen[1].available == (1 + experiment.columns.names.index("email"),)
    (pending,) = seen[1].pending
    assert (pending.context[at], pending.size, len(pending.action.ids)) == (0.0, 30, 1)


def test_a_trial_goes_out_again_in_its_own_context_only():
    clock = Clock()
    experiment = make(MOBILE, lease=10.0, clock=clock)
    experiment.ask(context={"mobile": 0})
    clock.now += 20.0
    assert experiment.ask(context={"mobile": 1}).number == 1
    assert experiment.ask(context={"mobile": 0}).number == 0


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (None, "'mobile' is missing"),
        ({}, "'mobile' is missing"),
        ({"mobile": None}, "'mobile' is missing"),
        ({"mobile": 2}, "must be 0 or 1"),
        ({"mobile": "1"}, "must be 0 or 1"),
        ({"mobil": 1}, "Did you mean 'mobile'"),
        ({"mobile": 1, "visit": 1}, "'visit' is none"),
        (["mobile"], "maps names to values"),
    ],
)
def test_contexts_that_are_refused(context, words):
    experiment = make(MOBILE)
    for question in (experiment.ask, experiment.recommend):
        with pytest.raises(ObservationError, match=words):
            question(context=context)
    assert experiment.status().trials == 0


def test_a_graph_without_context_takes_none():
    experiment = make()
    for question in (experiment.ask, experiment.recommend, experiment.best_observed):
        with pytest.raises(ObservationError, match="this one has none"):
            question(context={"mobile": 1})
    assert experiment.ask(context={}).context == {}


# -- unset means 0 -------------------------------------------------------------------------------------------------


def test_what_has_no_cause_at_all_is_0_where_nobody_sets_it():
    experiment = make()
    trial = experiment.ask()
    other = next(name for name in ("email", "coupon") if name not in trial.do)
    told = experiment.tell(trial, {"visit": 1, "buy": 0, "mobile": 0})
    assert (told.partial, told.missing, told.untaught) == (False, (), ())
    assert experiment.trial(0)["observation"][other] == 0
    assert experiment.tell(trial, {"visit": 1, "buy": 0, "mobile": 0, other: 0}).repeated
    with pytest.raises(ObservationError, match="can only be other than 0 where it is set"):
        experiment.record({}, {other: 1, "visit": 0, "buy": 0, "mobile": 1})
    experiment.record({other: 1}, {"visit": 0, "buy": 0, "mobile": 1})  # somebody else did it
    assert experiment.trial(1)["observation"][other] == 1
    with pytest.raises(ObservationError, match="at least one variable"):
        experiment.record({"email": 1}, {})


def test_what_is_missing_is_named():
    experiment = make()
    trial = experiment.ask()
    told = experiment.tell(trial, {"buy": 1, "mobile": 0})
    assert (told.partial, told.missing, told.untaught) == (True, ("visit",), ("visit", "buy"))
    told = experiment.tell(experiment.ask(size=2), [{"visit": 0, "buy": 0}, {"visit": 1, "mobile": 1}])
    assert (told.missing, set(told.untaught)) == (("mobile", "buy"), {"mobile", "visit", "buy"})
    assert experiment.status().untaught == {"mobile": 1, "visit": 2, "buy": 2}
    experiment.record({"visit": 1}, {"buy": 1})  # what was set needs no causes
    assert experiment.status().untaught == {"mobile": 2, "visit": 2, "buy": 2}


def test_the_context_is_never_taken_to_be_0():
    graph = dob.CausalGraph(
        [("ad", "buy"), ("mobile", "buy")], target="buy", controllable=["ad"], context=["mobile"], bias=["buy"]
    )
    experiment = make(graph)
    experiment.record({"ad": 1}, {"buy": 1})
    assert "mobile" not in experiment.trial(0)["observation"]
