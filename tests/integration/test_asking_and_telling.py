"""Asking, telling and leases, over every storage where the storage can matter."""

import json
import math
from datetime import timedelta
from itertools import combinations

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import ConflictError, DobanditError, ExperimentError, InterventionError, ObservationError
from helpers.experiments import CASES, G4, SMOOTH, TWINS, Clock, again, case, drawn, make, refused, said, whole_log
from helpers.foreign import ThompsonArms, ThompsonEngine

pytestmark = pytest.mark.usefixtures("one_of_many")

# -- ask -----------------------------------------------------------------------------------------------------------


def test_ask_numbers_and_predicts(storage):
    experiment = make(storage, lease=60, clock=Clock(1000.0))
    trials = [experiment.ask(), *experiment.ask(n=3), experiment.ask(lease=timedelta(minutes=2))]
    assert [trial.number for trial in trials] == [0, 1, 2, 3, 4]
    assert [trial.lease_expires for trial in trials] == [1060.0] * 4 + [1120.0]
    assert {trial.issued for trial in trials} == {1}
    for trial in trials:
        assert len(trial.do) == 2
        assert set(trial.do.values()) == {1}
        assert 0.0 <= trial.interval.low <= trial.predicted <= trial.interval.high <= 1.0
        assert trial.why
    assert experiment.ask(n=np.int64(1))[0].number == 5
    assert [t.number for t in experiment.ask(n=2)] == [6, 7]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "1", 10**30, np.True_, math.nan])
def test_bad_n(n):
    experiment = make()
    refused(ExperimentError, lambda: experiment.ask(n=n), "n must be")
    assert experiment.ask().number == 0


def test_a_list_comes_wherever_n_is_given():
    experiment = make()
    assert [trial.number for trial in experiment.ask(n=1)] == [0]
    assert experiment.ask(n=None).number == 1


@pytest.mark.parametrize("lease", [0, -1, math.inf, math.nan, "60", True, 10**400, 1e12, timedelta(0), timedelta.max])
def test_bad_leases(lease):
    experiment = make()
    refused(ExperimentError, lambda: experiment.ask(lease=lease), "lease")
    refused(ExperimentError, lambda: make(lease=lease), "lease")
    assert experiment.ask().number == 0


def test_of_two_mistakes_in_an_ask_what_can_be_set_is_named():
    refused(InterventionError, lambda: make().ask(["nobody"], lease=-1), "nobody")


@pytest.mark.parametrize("name", CASES)
def test_available(name):
    experiment = case(name)
    model, budget, _, rules = CASES[name]
    needed = set(rules.get("require", ()))
    all_names = list(model.graph.controllable)
    number = 0
    for names in combinations(all_names, 3):
        if not needed <= set(names):
            refused(InterventionError, lambda names=names: experiment.ask(available=names), "X6")
            continue
        try:
            trial = experiment.ask(available=iter(names))
        except InterventionError:
            if name != "fixed":
                raise
            continue
        assert set(trial.do) <= set(names)
        assert needed <= set(trial.do)
        assert len(trial.do) <= (budget or 3)
        assert trial.number == number
        experiment.tell(trial.number, drawn(model, trial.do, np.full(len(model.graph), 0.4)))
        number += 1
    assert number >= 2 or name == "fixed"
    for bad in (["X99"], [model.graph.target], model.graph.controllable[0], [3], 5):
        refused(InterventionError, lambda bad=bad: experiment.ask(available=bad))
    assert experiment.ask().number == number
    assert len(whole_log(experiment)) == number + 1


def test_refusals_store_nothing(storage):
    experiment = make(storage, policy=dob.Fixed(["X3", "X5"]), clock=Clock(0.0))
    experiment.ask(lease=1)
    before = whole_log(experiment)
    for call in (
        lambda: experiment.ask(available=["X2"]),  # without what is always set
        lambda: experiment.ask(available=["X2"], n=3),
        lambda: experiment.ask(available=["X9"]),
        lambda: experiment.ask(n=0),
        lambda: experiment.ask(lease=-1),
    ):
        refused(DobanditError, call)
    assert whole_log(experiment) == before
    assert experiment.ask().number == 1


def test_a_refused_ask_undoes_what_it_had_handed_out(storage, monkeypatch):
    clock = Clock(0.0)
    experiment = make(storage, policy=ThompsonArms(), clock=clock)
    experiment.ask(lease=10)
    clock.now = 20.0
    expired = whole_log(experiment)

    def fails(*_):
        raise InterventionError("no set")

    with monkeypatch.context() as patched:  # the expired trial is handed out again, and then there is no other
        patched.setattr(ThompsonEngine, "choose", fails)
        refused(InterventionError, lambda: experiment.ask(n=2), "no set")
    assert whole_log(experiment) == expired
    assert again(experiment, clock).ask().issued == 2
    assert experiment.tell(0, {"Y": 1}).late  # what was never handed out is not held
    clock.now = 40.0
    first = experiment.ask(lease=1)
    clock.now = 50.0
    names = list(first.do)
    both = experiment.ask(available=names, n=2)
    assert [(t.number, t.issued) for t in both] == [(1, 2), (2, 1)]


@pytest.mark.parametrize("policy", [dob.BLMLR(), dob.BLMLR(region="boxed"), dob.UCB(), dob.Random()])
def test_pending_trials_are_counted_in(policy):
    experiment = make(graph=TWINS, policy=policy)
    asked = [experiment.ask() for _ in range(8)]
    assert len({frozenset(trial.do) for trial in asked}) >= 3
    assert len({(trial.predicted, trial.interval) for trial in asked}) == 1  # nothing was told
    together = make(graph=TWINS, policy=policy).ask(n=8)
    assert list(map(said, together)) == list(map(said, asked))


def test_pending_trials_change_what_is_asked():
    """After one told round of each set, the next asks without a tell move on, where told ones would repeat."""
    experiment = make(graph=TWINS, policy=dob.BLMLR(radius_scale=0.5), budget=1)
    for name in TWINS.controllable:
        experiment.record([name], dict.fromkeys(TWINS.nodes, 0) | {name: 1})
    asked = [frozenset(trial.do) for trial in experiment.ask(n=4)]
    assert len(set(asked)) == 4


def test_predictions_use_told_rounds_only():
    experiment = make(graph=TWINS, budget=1)
    for i in range(6):
        experiment.record(["X1"], {"X2": i % 2, "X3": 0, "X4": 1, "Y": i % 2})
    plain = experiment.learner
    for trial in experiment.ask(n=6):
        assert repr(trial.predicted) == repr(plain.expected(trial.do))
        assert trial.interval == plain.interval(trial.do)


# -- tell ----------------------------------------------------------------------------------------------------------


def test_a_trial_is_named_by_its_number_or_given_itself(storage):
    experiment = make(storage)
    told, failed, left = experiment.ask(n=3)
    experiment.tell(told, {"Y": 1})
    experiment.tell_failed(failed, "rain")
    experiment.abandon(left)
    assert [experiment.trial(trial)["state"] for trial in (told, failed, left)] == ["told", "failed", "abandoned"]
    assert experiment.explain(failed) == experiment.explain(failed.number)
    elsewhere = told._replace(number=99)
    for call in (experiment.tell_failed, experiment.abandon, experiment.trial, experiment.explain):
        refused(ExperimentError, lambda call=call: call(elsewhere), "has no trial 99.")


def test_bad_tells_store_nothing(storage):
    hidden = dob.CausalGraph([("A", "Y"), ("B", "Y"), ("U", "A"), ("U", "B")], target="Y", latent=["U"])
    experiment = make(storage, hidden, 1)
    do = experiment.ask().do
    (name,) = do
    before = whole_log(experiment)
    for observation, words in [
        ({name: 0, "Y": 1}, [name, "set to 1"]),
        ({"y": 1}, ["'y'", "'Y'"]),
        ({"U": 1, "Y": 1}, ["'U'", "hidden"]),
        ({"Y": 2}, ["'Y'", "2"]),
        ({"Y": -1}, ["'Y'"]),
        ({"Y": 0.5}, ["'Y'", "0 or 1"]),
        ({"Y": "1"}, ["'Y'"]),
        ({"Y": math.inf}, ["'Y'"]),
        ({"Y": 10**400}, ["'Y'"]),
        ({}, ["as failed"]),
        ({"Y": None}, ["as failed"]),
        ({"Y": math.nan}, ["as failed"]),
        ({name: 1}, ["as failed"]),
        ({3: 1}, ["3"]),
        ([("Y", 1)], ["list"]),
        (None, ["NoneType"]),
    ]:
        refused(ObservationError, lambda observation=observation: experiment.tell(0, observation), *words)
    for number in (1, -1, 10**30, 2**63, 10**5000, "0", True, False, np.False_, 0.0, None, np.array([0])):
        for call in (
            lambda number=number: experiment.tell(number, {"Y": 1}),
            lambda number=number: experiment.tell_failed(number),
            lambda number=number: experiment.abandon(number),
            lambda number=number: experiment.trial(number),
            lambda number=number: experiment.explain(number),
        ):
            whole = isinstance(number, int) and not isinstance(number, bool)
            refused(ExperimentError, call, "no trial" if whole else "a whole number such as trial.number")
    for issued in (0, -1, 1.5, "1", True):
        refused(ExperimentError, lambda issued=issued: experiment.tell(0, {"Y": 1}, issued=issued), "issued")
    for reason in (None, 5, "a\0b", "\ud800"):
        refused(ExperimentError, lambda reason=reason: experiment.tell_failed(0, reason), "reason")
    assert whole_log(experiment) == before
    assert experiment.learner.rounds == 0
    assert not experiment.tell(np.int64(0), {"Y": 1}).repeated


def test_told_twice(storage):
    experiment = make(storage)
    do = experiment.ask().do
    a, b = do
    free = next(x for x in G4.graph.controllable if x not in do)
    assert experiment.tell(0, {free: 1, "Y": 0})[:5] == (0, False, True, False, 1)
    stored = whole_log(experiment)
    for same in (
        {free: 1, "Y": 0},
        {free: True, "Y": False},
        {free: 1.0, "Y": -0.0, a: 1},
        {"Y": np.float32(0), free: np.int8(1), a: 1.0, b: True},
        {free: 1, "Y": 0, next(x for x in G4.graph.controllable if x not in (a, b, free)): None},
    ):
        assert experiment.tell(0, same)[:5] == (0, False, True, True, 1)
        assert again(experiment).tell(0, same).repeated
    for other in ({free: 1, "Y": 1}, {"Y": 0}, {free: 1}):
        message = refused(ConflictError, lambda other=other: experiment.tell(0, other), "trial 0", "Nothing was")
        told, now = (json.loads("{" + part.partition("}")[0] + "}") for part in message.split("{")[1:3])
        assert told == {a: 1, b: 1, free: 1, "Y": 0}
        assert now == {a: 1, b: 1, **other}
    refused(ConflictError, lambda: experiment.tell_failed(0, "rain"), "rain", '"Y": 0')
    refused(ConflictError, lambda: experiment.abandon(0), "abandoned", '"Y": 0')
    refused(ObservationError, lambda: experiment.tell(0, {"Y": 7}))
    assert whole_log(experiment) == stored
    assert experiment.learner.rounds == 1


def test_closed_otherwise(storage):
    experiment = make(storage)
    experiment.ask(n=3)
    experiment.tell_failed(0, "it rained ☔")
    experiment.tell_failed(0, "it rained ☔")
    experiment.tell_failed(1)
    experiment.tell_failed(1, "")
    experiment.abandon(2)
    experiment.abandon(2)
    stored = whole_log(experiment)
    assert [t.position for t in stored] == [0, 1, 2]
    refused(ConflictError, lambda: experiment.tell_failed(0, "it snowed"), "it rained ☔", "it snowed")
    refused(ConflictError, lambda: experiment.tell_failed(1, "late"), "failed")
    refused(ConflictError, lambda: experiment.tell(0, {"Y": 1}), "it rained ☔", '"Y": 1')
    refused(ConflictError, lambda: experiment.abandon(0), "it rained ☔", "abandoned")
    refused(ConflictError, lambda: experiment.tell(2, {"Y": 1}), "abandoned")
    refused(ConflictError, lambda: experiment.tell_failed(2), "abandoned", "failed")
    assert whole_log(experiment) == stored
    assert experiment.learner.rounds == 0
    assert experiment.ask().number == 3


def test_numbers_between_where_they_make_sense():
    experiment = make(graph=SMOOTH.graph, continuous=True)
    (x, _) = experiment.ask().do
    refused(ObservationError, lambda: experiment.tell(0, {x: 0.5, "Y": 0.5}), x)
    refused(ObservationError, lambda: experiment.tell(0, {"Y": 1.5}), "from 0 to 1")
    assert not experiment.tell(0, {"Y": 0.1 + 0.2}).repeated
    assert experiment.tell(0, {"Y": 0.1 + 0.2}).repeated
    refused(ConflictError, lambda: experiment.tell(0, {"Y": 0.3}), "0.30000000000000004", "0.3}")
    assert experiment.trials()[0]["observation"]["Y"] == 0.1 + 0.2
    assert make(graph=SMOOTH, budget=2, name="m").definition.problem.continuous


# -- leases --------------------------------------------------------------------------------------------------------


def test_leases(storage):
    clock = Clock(1000.0)
    one = make(storage, lease=60, clock=clock)
    two = again(one, clock)
    first = one.ask()
    clock.now = 1059.0
    assert two.ask(lease=1000).number == 1
    clock.now = 1061.0
    second = two.ask()
    assert (second.number, second.do, second.issued, second.lease_expires) == (0, first.do, 2, 1121.0)
    assert (second.predicted, second.interval) == (first.predicted, first.interval)
    assert first.why in second.why
    assert one.ask(lease=1000).number == 2
    assert one.status().expired == 0
    told = one.tell(0, {"Y": 1})  # by the first holder
    assert (told.late, told.repeated) == (True, False)
    again_told = two.tell(0, {"Y": 1})
    assert (again_told.late, again_told.repeated) == (True, True)
    refused(ConflictError, lambda: two.tell(0, {"Y": 0}))
    assert one.trial(0)["late"]
    assert [one.status().late, one.status().told] == [1, 1]


def test_the_second_holder_is_in_time(storage):
    clock = Clock(0.0)
    one = make(storage, lease=60, clock=clock)
    two = again(one, clock)
    one.ask()
    clock.now = 61.0
    assert two.ask().issued == 2
    clock.now = 100.0
    assert not two.tell(0, {"Y": 1}).late
    one.ask()
    clock.now = 161.0
    assert one.tell(1, {"Y": 1}).late  # the same holder, too late
    third = one.ask()
    clock.now = 222.0
    reissued = one.ask()
    assert (reissued.number, reissued.do, reissued.issued) == (2, third.do, 2)
    assert not again(one, clock).tell(2, {"Y": 1}, issued=2).late
    assert one.ask().number == 3
    clock.now = 290.0
    assert two.ask().issued == 2
    assert again(one, clock).tell(3, {"Y": 1}, issued=1).late


def test_expired_trials_wait_for_their_variables(storage):
    clock = Clock(0.0)
    experiment = make(storage, lease=10, clock=clock)
    first = experiment.ask()
    clock.now = 11.0
    others = [x for x in G4.graph.controllable if x not in list(first.do)[:1]]
    new = experiment.ask(available=others)
    assert (new.number, new.issued) == (1, 1)
    assert set(new.do) <= set(others)
    assert experiment.ask(available=list(first.do)).number == 0
    clock.now = 22.0
    assert experiment.status().expired == 2
    three = experiment.ask(n=3)
    assert [(t.number, t.issued) for t in three] == [(0, 3), (1, 2), (2, 1)]


def test_without_a_lease_nothing_is_handed_out_again():
    clock = Clock(0.0)
    experiment = make(clock=clock)
    experiment.ask()
    clock.now = 1e9
    assert experiment.ask().number == 1
    assert not experiment.tell(0, {"Y": 1}).late


def test_the_shortest_lease_does_not_hand_out_twice_at_once():
    experiment = make(lease=1e-9, clock=Clock(1.7e9))
    assert [trial.number for trial in experiment.ask(n=3)] == [0, 1, 2]


def test_the_longest_lease_can_be_exported():
    experiment = make(lease=1e9)
    experiment.ask()
    assert experiment.trials()[0]["lease_expires"].startswith("20")
    assert experiment.to_csv()


def test_the_trial_itself_says_which_hand_out_is_told():
    clock = Clock()
    experiment = make(clock=clock, lease=10)
    first = experiment.ask()
    clock.now += 11
    second = experiment.ask()
    assert (second.number, second.issued) == (first.number, 2)
    refused(ExperimentError, lambda: experiment.tell(first.number, {"Y": 1}, issued=3), "handed out 2 times")
    assert experiment.tell(first, {"Y": 1}).late
    assert experiment.tell(second, {"Y": 1}).repeated
