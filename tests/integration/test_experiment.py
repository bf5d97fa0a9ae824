"""What an experiment promises, over every storage where the storage can matter."""

import csv
import io
import json
import math
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations, product
from typing import ClassVar

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import (
    ConflictError,
    DobanditError,
    DobanditWarning,
    ExperimentError,
    InterventionError,
    ModelError,
    ObservationError,
    ParseError,
    PolicyError,
    StorageError,
)
from dobandit.experiment.replica import Replica
from dobandit.experiment.storage import MemoryStorage
from dobandit.oracle.actions import Action
from dobandit.policy.base import Policy, round_draws
from dobandit.policy.engine import Draws
from dobandit.policy.model_engine import ModelEngine
from dobandit.policy.recording import Recorder, blank_tape
from dobandit.policy.world import World
from dobandit.simulation.truth import Truth
from experiments import ARMS, CASES, LOGISTIC, SMOOTH, Clock, drawn, flat, knowledge, said, settings_of
from worlds import ARCTAN

G4, G5 = dob.paper.G4, dob.paper.G5
FAST = dob.BLMLR(radius_scale=0.1)
TWINS = dob.CausalGraph([(f"X{i}", "Y") for i in range(1, 5)], target="Y")


def make(storage=None, graph=G4.graph, budget=2, policy=FAST, name="spring", **more):
    more = {"seed": 7} | more
    return dob.create_experiment(name, graph, budget, policy, storage or MemoryStorage(), **more)


def case(name, storage=None, **more):
    model, budget, policy, _ = CASES[name]
    return make(storage, model.graph, budget, policy, **settings_of(name), **more)


def again(experiment, clock=time.time):
    """The same experiment in an object that knows nothing yet."""
    return dob.open_experiment(experiment.name, experiment.storage, clock)


def refused(kind, call, *words):
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert isinstance(caught.value, DobanditError)
    return str(caught.value)


def whole_log(experiment):
    return list(experiment.stored_trials())


# -- create, open, list, rename, delete ----------------------------------------------------------------------------


def test_a_name_is_taken_once(storage):
    first = make(storage)
    refused(ExperimentError, lambda: make(storage), "spring")
    first.ask()
    second = make(storage, if_exists="open")
    assert second.ask().number == 1
    assert [e.name for e in dob.list_experiments(storage)] == ["spring"]
    assert dob.list_experiments(storage)[0].trials == 2


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"budget": 1}, "rules"),
        ({"seed": 8}, "seed"),
        ({"lease": 60.0}, "lease"),
        ({"horizon": 10}, "horizon"),
        ({"policy": dob.BLMLR()}, "policy"),
        ({"graph": TWINS}, "graph"),
        ({"continuous": True}, "continuous"),
        ({"forbid": ["X2"]}, "rules"),
        ({"links": "exponential", "policy": dob.BGLMOFU(initial=5)}, "links"),
    ],
)
def test_open_says_what_differs(change, word):
    storage = MemoryStorage()
    first = make(storage)
    refused(ExperimentError, lambda: make(storage, if_exists="open", **change), word, "spring")
    assert again(first).definition == first.definition


def test_open_takes_the_same_in_other_words():
    storage = MemoryStorage()
    seedless = dob.create_experiment("a", G4.graph, 2, storage=storage, lease=90)
    paper = dob.create_experiment("b", G4.graph, 2, FAST, storage, lease=90)
    assert seedless.definition.seed >= 0
    ways = [("a", G4.graph, policy) for policy in (None, "causal-ucb", dob.CausalUCB())]
    ways += [("b", G4, policy) for policy in ("blm-lr:radius_scale=0.1", dob.BLMLR(0.1), dob.BLMLR(radius_scale=0.1))]
    for name, graph, policy in ways:
        other = dob.create_experiment(
            name, graph, np.int64(2), policy, storage, lease=timedelta(seconds=90), if_exists="open"
        )
        assert other.definition.seed == (seedless if name == "a" else paper).definition.seed
    shuffled = dob.CausalGraph([("X5", "Y"), ("X3", "Y"), ("X4", "Y"), ("X2", "Y")], target="Y", bias=G4.graph.bias)
    dob.create_experiment("a", shuffled, 2, storage=storage, lease=90, if_exists="open")
    refused(ExperimentError, lambda: make(storage, if_exists="replace"), "if_exists")


def test_seeds_are_drawn_and_kept():
    storage = MemoryStorage()
    seeds = [dob.create_experiment(f"e{i}", TWINS, 2, storage=storage).definition.seed for i in range(5)]
    assert len(set(seeds)) == 5
    assert [dob.open_experiment(f"e{i}", storage).definition.seed for i in range(5)] == seeds
    assert make(name="large", seed=2**100).ask().number == 0
    for bad in (-1, 1.5, True, "7"):
        refused(DobanditError, lambda bad=bad: make(seed=bad), "seed")


def test_what_is_taken_for_granted_where_nobody_says():
    def made(**more):
        return dob.create_experiment("a", storage=MemoryStorage(), **more).definition

    wide = dob.CausalGraph([(f"X{i}", "Y") for i in range(40)], target="Y")
    for graph, budget in ((G4.graph, 2), (wide, 10)):
        plain = made(graph=graph, budget=budget)
        assert plain.policy == dob.CausalUCB()
        assert (plain.problem.effects, {link.name for link in plain.problem.links}) == ("any", {"auto"})
        assert plain.problem.sets_in_words() == f"sets of at most {budget}, nothing included: effects may do harm"
    known = made(graph=LOGISTIC, budget=2)  # a model says its links
    assert known.policy == dob.CausalUCB()
    assert known.problem.links == LOGISTIC.links
    paper = made(graph=G4.graph, budget=2, policy=FAST)
    assert (paper.problem.effects, paper.problem.is_linear) == ("nonnegative", True)
    assert made(graph=G4.graph, budget=2, policy="ucb").problem.effects == "any"
    assert made(graph=G4.graph, budget=2, policy="ucb", effects="nonnegative").problem.monotone


def test_weights_never_reach_the_storage(tmp_path):
    weights = {"A": 0.123457, "B": 0.234568, "Y": 0.0345679, ("A", "Y"): 0.345679, ("B", "Y"): 0.456781}
    graph = dob.CausalGraph([("A", "Y"), ("B", "Y")], target="Y")
    model = dob.BinaryGLM(graph, weights, links={"name": "logistic", "shift": 0.75})
    with closing(make(f"sqlite:///{tmp_path}/a.db", model, 1, None)) as experiment:
        experiment.ask()
        document = experiment.storage.find("spring").document
    assert "0.75" in document
    assert "logistic" in document
    assert experiment.graph == model.graph
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for weight in weights.values():
        assert str(weight) not in document
        assert str(weight).encode() not in kept
        assert np.float64(weight).tobytes() not in kept
    refused(ExperimentError, lambda: make(None, model, 1, links="logistic"), "links")


@dataclass(frozen=True)
class Mine(Policy):
    effects: ClassVar[str] = "nonnegative"

    @property
    def label(self):
        return "mine"

    def engine(self, problem):
        return FAST.engine(problem)


class MyBLMLR(dob.BLMLR):
    pass


def test_what_cannot_be_kept_is_refused():
    refused(PolicyError, lambda: make(policy=Mine()), "Mine")
    refused(PolicyError, lambda: make(policy=MyBLMLR()), "MyBLMLR")
    refused(PolicyError, lambda: make(policy=dob.BLMLR), "BLMLR()")
    refused(PolicyError, lambda: make(policy="ulb"), "ucb")
    refused(PolicyError, lambda: make(policy=dob.Oracle(G4)), "simulations")
    refused(PolicyError, lambda: make(policy="oracle"), "simulations")
    refused(ExperimentError, lambda: make(links=ARCTAN, policy=None), "arctan")
    refused(ExperimentError, lambda: make(links={"Y": ARCTAN}, policy=dob.UCB()), "arctan")
    refused(PolicyError, lambda: make(links="exponential"), "BGLMOFU")
    refused(ModelError, lambda: make(links="logistic", continuous=True), "continuous")


@pytest.mark.parametrize(
    "policy", [dob.UCB(scale=np.float32(0.5)), dob.UCB(scale=np.int64(2)), dob.BGLMOFU(initial=np.int64(5))]
)
def test_settings_of_numpy_are_kept(policy):
    experiment = make(policy=policy)
    assert again(experiment).definition.policy == policy
    assert make(experiment.storage, policy=policy, if_exists="open").ask().number == 0


@pytest.mark.parametrize(
    "rules",
    [
        {"require": ["X2", "X3", "X4"]},
        {"require": ["X2"], "forbid": ["X2"]},
        {"require": ["X2", "X3"], "exclusive": [["X2", "X3"]]},
        {"budget": None},
        {"budget": 5},
        {"budget": True},
        {"require": ["Y"]},
        {"costs": {"X2": 1.0}},
        {"require": ["X2"], "costs": {"X2": 9.0}, "total_cost": 3.0},
        {"forbid": "X2"},
    ],
)
def test_rules_that_no_set_keeps_are_refused(rules):
    storage = MemoryStorage()
    refused(InterventionError, lambda: make(storage, **rules))
    assert dob.list_experiments(storage) == []


def test_names(storage):
    for name in ("Ünïcode 🎲 '; DROP TABLE trials; --", "a" * 200, " x"):
        make(storage, name=name).ask()
        assert dob.open_experiment(name, storage).ask().number == 1
    for name in ("", "   ", "a" * 300, "a\0b", "\ud800", 5, None, ["a"]):
        refused(ExperimentError, lambda name=name: make(storage, name=name), "name")
        refused(ExperimentError, lambda name=name: make(storage, name=name, if_exists="open"), "name")
        refused(ExperimentError, lambda name=name: dob.open_experiment(name, storage))
        refused(ExperimentError, lambda name=name: dob.delete_experiment(name, storage))
        refused(ExperimentError, lambda name=name: dob.rename_experiment(name, "new", storage))
        refused(ExperimentError, lambda name=name: dob.rename_experiment(" x", name, storage))
    assert len(dob.list_experiments(storage)) == 3


def test_an_unknown_name_gets_a_hint(storage):
    refused(ExperimentError, lambda: dob.open_experiment("sprong", storage), "sprong")
    make(storage)
    refused(ExperimentError, lambda: dob.open_experiment("sprong", storage), "'spring'")
    refused(ExperimentError, lambda: dob.delete_experiment("sprong", storage), "'spring'")
    refused(ExperimentError, lambda: dob.rename_experiment("sprong", "autumn", storage), "'spring'")


def test_rename_disturbs_nobody(storage):
    held = make(storage)
    held.ask()
    make(storage, name="winter")
    refused(ExperimentError, lambda: dob.rename_experiment("spring", "winter", storage), "winter")
    dob.rename_experiment("spring", "autumn", storage)
    assert held.ask().number == 1
    assert held.tell(0, {"Y": 1}).number == 0
    renamed = dob.open_experiment("autumn", storage)
    assert renamed.status().told == 1
    assert knowledge(renamed) == knowledge(held)
    refused(ExperimentError, lambda: dob.open_experiment("spring", storage), "spring")


def test_deleted_means_deleted(storage):
    held = make(storage)
    held.ask()
    dob.delete_experiment("spring", storage)
    anew = make(storage)
    for call in (
        held.ask,
        lambda: held.tell(0, {"Y": 1}),
        lambda: held.tell_failed(0),
        lambda: held.abandon(0),
        lambda: held.record({}, {"Y": 1}),
        lambda: held.import_history([({}, {"Y": 1})]),
        held.trials,
        held.status,
    ):
        refused(ExperimentError, call, "deleted")
    assert anew.status().trials == 0
    assert anew.ask().number == 0


def test_a_graph_warns_only_when_it_is_made():
    with pytest.warns(DobanditWarning, match="cannot change"):
        graph = dob.CausalGraph([("A", "Y"), ("B", "C")], target="Y")
    held = make(graph=graph, budget=1)
    assert again(held).ask().do == {"A": 1}


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
    assert experiment.ask(n=np.int64(1)).number == 5
    assert [t.number for t in experiment.ask(n=2)] == [6, 7]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "1", None, 10**30, np.True_, math.nan])
def test_bad_n(n):
    experiment = make()
    refused(ExperimentError, lambda: experiment.ask(n=n), "n must be")
    assert experiment.ask().number == 0


@pytest.mark.parametrize("lease", [0, -1, math.inf, math.nan, "60", True, 10**400, 1e12, timedelta(0), timedelta.max])
def test_bad_leases(lease):
    experiment = make()
    refused(ExperimentError, lambda: experiment.ask(lease=lease), "lease")
    refused(ExperimentError, lambda: make(lease=lease), "lease")
    assert experiment.ask().number == 0


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


def test_a_refused_ask_undoes_what_it_had_handed_out(storage):
    clock = Clock(0.0)
    experiment = make(storage, policy=dob.UCB(), clock=clock)
    experiment.ask(lease=10)
    clock.now = 20.0
    expired = whole_log(experiment)
    engine = experiment._replica.learner.engine

    def fails(*_):
        raise InterventionError("no set")

    engine.choose = fails  # the expired trial is handed out again, and then there is no other
    refused(InterventionError, lambda: experiment.ask(n=2), "no set")
    del engine.choose
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
            refused(ExperimentError, call, "no trial")
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


# -- rounds that nobody asked for -----------------------------------------------------------------------------------


def test_recorded_rounds(storage):
    experiment = make(storage)
    experiment.ask()
    assert experiment.record({"X2": 1, "X3": 0}, {"X4": 1, "Y": 1}) == 1
    assert experiment.record(None, {"Y": 0}) == 2
    assert experiment.record(["X2", "X3", "X4"], {"Y": 1}) == 3
    assert experiment.import_history([({"X5": 1}, {"Y": 1}), {"do:X2": 1, "Y": 0}]) == range(4, 6)
    assert experiment.ask().number == 6
    rows = experiment.trials()
    assert [row["source"] for row in rows] == ["asked", *["recorded"] * 3, *["imported"] * 2, "asked"]
    assert [row["position"] for row in rows] == [None, 0, 1, 2, 3, 4, None]
    assert rows[1]["do"] == {"X2": 1, "X3": 0}
    assert rows[1]["observation"] == {"X2": 1, "X3": 0, "X4": 1, "Y": 1}
    assert rows[1]["partial"]
    assert rows[6]["asked_after"] == 5
    before = whole_log(experiment)
    refused(InterventionError, lambda: experiment.record({"Y": 1}, {"X2": 1}), "Y")
    refused(InterventionError, lambda: experiment.record({"X9": 1}, {"Y": 1}), "X9")
    refused(ObservationError, lambda: experiment.record({"X2": 1}, {"X2": 0, "Y": 1}), "X2")
    refused(ObservationError, lambda: experiment.record({"X2": 1}, {}))
    refused(
        ParseError, lambda: experiment.import_history([({}, {"Y": 1}), ({}, {"Y": 2}), ({"Q": 1}, {"Y": 1})]), "row 1"
    )
    refused(ParseError, lambda: experiment.import_history(io.StringIO("X2,Y\n1,0\n1,7\n")), "line 3")
    refused(ParseError, lambda: experiment.import_history(io.StringIO("X2,Z\n1,0\n")), "line 1", "Z")
    assert whole_log(experiment) == before
    refused(ExperimentError, lambda: experiment.explain(1), "recorded")
    refused(ExperimentError, lambda: experiment.explain(4), "imported")
    assert experiment.tell(1, {"X4": 1, "Y": 1}).repeated
    refused(ConflictError, lambda: experiment.tell(1, {"Y": 1}))
    refused(ConflictError, lambda: experiment.abandon(1))


@pytest.mark.parametrize("name", CASES)
def test_a_warm_start_knows_what_tells_would_have_taught(name):
    """Told, recorded one by one, or imported at once: the same knowledge and the same next ask."""
    model = CASES[name][0]
    told, recorded, imported = (case(name) for _ in range(3))
    rng = np.random.default_rng(5)
    rounds = []
    for _ in range(40):
        trial = told.ask()
        seen = drawn(model, trial.do, rng.random(len(model.graph)))
        if rng.random() < 0.2:
            seen.pop(model.graph.nodes[0])
        told.tell(trial.number, seen)
        recorded.record(trial.do, seen)
        rounds.append((trial.do, seen))
    assert imported.import_history(rounds) == range(40)
    assert knowledge(told) == knowledge(recorded) == knowledge(imported)
    asked = [experiment.ask(n=3) for experiment in (told, recorded, imported)]
    assert [said(t) for t in asked[0]] == [said(t) for t in asked[1]] == [said(t) for t in asked[2]]


# -- a pure function of the log --------------------------------------------------------------------------------------


def session(model, experiments, clock, rounds, rng, first=0, pending=()):
    """Rounds with all that can happen, each by one of `experiments`; what every ask said, and what is still pending."""
    heard, pending = [], list(pending)
    for step in range(first, first + rounds):
        clock.now += 1.0
        experiment = experiments[step % len(experiments)]
        for _ in range(1 + (step % 5 == 0)):
            trial = experiment.ask(lease=4.0 if step % 3 == 0 else None)
            heard.append(said(trial))
            if trial.issued == 1:
                pending.append((trial.number, trial.do))
        while len(pending) > 3:
            number, do = pending.pop(int(rng.integers(len(pending))))
            fate, uniforms = rng.random(), rng.random(len(model.graph))
            teller = experiments[(step + number) % len(experiments)]
            if fate < 0.08:
                teller.tell_failed(number, "rain")
            elif fate < 0.16:
                teller.abandon(number)
            else:
                seen = drawn(model, do, uniforms)
                if fate < 0.3:
                    seen.pop(next(name for name in seen if name not in do))
                teller.tell(number, seen)
        if step % 7 == 0:
            experiment.record({}, drawn(model, {}, rng.random(len(model.graph))))
    return heard, pending


@pytest.mark.parametrize("name", CASES)
def test_reopening_changes_nothing(name):
    model = CASES[name][0]

    def run(how):
        clock, rng = Clock(0.0), np.random.default_rng(11)
        one = case(name, clock=clock)
        if how == "once":
            heard, _ = session(model, [one], clock, 50, rng)
        elif how == "reopened":
            heard, pending = session(model, [one], clock, 25, rng)
            later, _ = session(model, [again(one, clock)], clock, 25, rng, 25, pending)
            heard += later
        else:
            heard, _ = session(model, [one, again(one, clock)], clock, 50, rng)
        # Whether a tell is late hangs on who holds the trial, and the learner does not care.
        log = [t._replace(late=False) for t in whole_log(one)]
        return heard, log, knowledge(again(one)), knowledge(one), said(again(one, clock).ask())

    once = run("once")
    assert run("reopened") == once
    assert run("two") == once
    assert once[2] == once[3]
    states = {t.state for t in once[1]}
    assert states == {"pending", "told", "failed", "abandoned"}
    assert any(t.partial for t in once[1])
    assert any(t.issued > 1 for t in once[1])
    order = [t.number for t in sorted(once[1], key=lambda t: -1 if t.position is None else t.position)]
    assert order != sorted(order)


def test_storages_agree(storage):
    """The same session over this storage and over memory."""

    def run(kept):
        clock, rng = Clock(0.0), np.random.default_rng(3)
        one = make(kept, G5.graph, clock=clock)
        heard, _ = session(G5, [one, again(one, clock)], clock, 25, rng)
        return heard, whole_log(one), knowledge(again(one)), one.to_csv(), one.trials(), one.best_observed()

    assert run(storage) == run(MemoryStorage())


# -- one implementation: simulated and live runs make the same choices -------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_live_and_simulated_runs_choose_alike(name):
    model, _, policy, _ = CASES[name]
    rounds, seed = 300, 7
    experiment = case(name, horizon=rounds)
    problem = experiment.definition.problem
    assert (problem.seed, problem.horizon) == (seed, rounds)
    engine, world, truth = policy.engine(problem), World(model, problem.graph), Truth(model, problem)
    table = truth.table(engine.actions())
    recorder = Recorder(blank_tape(table, truth.best, np.array([rounds])), truth.value, problem.context_ids)
    world_draws = np.random.default_rng(21).random((rounds, len(model.graph)))
    policy_draws = np.array([round_draws(seed, t, engine.draws) for t in range(rounds)])
    different = set()
    for t in range(rounds):
        at = slice(t, t + 1)
        engine.run(world, recorder, Draws(world_draws[at], policy_draws[at]))
        ids = np.flatnonzero(world.arrays.was_set)
        played = {problem.graph.nodes[i - 1]: world.arrays.values[i] for i in ids}
        trial = experiment.ask()
        assert trial.do == played, t
        seen = drawn(model, trial.do, world_draws[t])
        assert list(seen.values()) == pytest.approx(world.arrays.values[1:].tolist(), abs=1e-15)
        experiment.tell(t, seen)
        different.add(frozenset(played.items()))
    assert knowledge(experiment) == flat(engine.state)
    assert recorder.tape.reward[0] == pytest.approx(sum(row["observation"]["Y"] for row in experiment.trials()))
    assert len(different) > 1 or name == "fixed"


# -- answers ---------------------------------------------------------------------------------------------------------


def played(name, rounds=30, storage=None, **more):
    experiment = case(name, storage, **more)
    model, rng = CASES[name][0], np.random.default_rng(2)
    for _ in range(rounds):
        trial = experiment.ask()
        experiment.tell(trial.number, drawn(model, trial.do, rng.random(len(model.graph))))
    return experiment


@pytest.mark.parametrize("name", CASES)
def test_recommend(name):
    experiment = played(name)
    learner = experiment.definition.policy.start(experiment.graph, CASES[name][1], seed=7, **settings_of(name))
    learner.update_many([(row["do"], row["observation"]) for row in experiment.trials()])
    best = learner.best()
    assert experiment.recommend()[:3] == best[:3]
    assert again(experiment).recommend() == experiment.recommend()
    # By hand: no set of those that the policy compares has a larger estimate.
    if name not in ("search", "greedy"):
        values = [learner.expected(action.named(learner.graph)) for action in listed(learner.engine.actions())]
        tried = values if name not in ARMS else [v for v, n in zip(values, learner.engine.state.plays) if n]  # noqa: B905
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
        assert limited[:3] == learner.best(names)[:3]
    experiment.ask(n=3)  # pending trials are no news
    assert experiment.recommend()[:3] == best[:3]
    refused(InterventionError, lambda: experiment.recommend(available=["X99"]), "X99")


def plain_best_observed(rows, continuous):
    groups = {}
    for row in rows:
        if row["state"] == "told" and "Y" in row["observation"]:
            groups.setdefault(json.dumps(row["do"], sort_keys=True), []).append(row["observation"]["Y"])
    answers = []
    for do, values in groups.items():
        n, p, z = len(values), sum(values) / len(values), 1.959963984540054
        if continuous:
            low = max(0.0, p - math.sqrt(math.log(40) / (2 * n)))
        else:
            low = (p + z * z / (2 * n) - z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
        answers.append((max(low, 0.0), p, n, json.loads(do)))
    return answers


@pytest.mark.parametrize("name", ["closed-form", "ucb", "continuous", "logistic-ofu"])
def test_best_observed(name, tmp_path):
    experiment = played(name, 60)
    assert case(name).best_observed() is None
    experiment.record({}, {experiment.graph.nodes[0]: 1})  # without the target
    experiment.tell_failed(experiment.ask().number)
    answers = plain_best_observed(experiment.trials(), name == "continuous")
    low, mean, rounds, do = max(answers, key=lambda answer: answer[:2])
    best = experiment.best_observed()
    assert best.do == do
    assert best.rounds == rounds
    assert best.mean == pytest.approx(mean)
    assert best.interval.low == pytest.approx(low, abs=1e-12)
    assert 0.0 <= best.interval.low <= best.mean <= best.interval.high <= 1.0 + 1e-12


def test_one_lucky_round_is_not_the_best():
    experiment = make()
    experiment.record(["X4"], {"Y": 1})
    for i in range(20):
        experiment.record(["X2"], {"Y": int(i > 2)})
    assert experiment.best_observed().do == {"X2": 1}
    assert experiment.best_observed().rounds == 20


def test_model_and_data_are_not_mixed():
    """The model may speak for a set that was never tried, the data never do."""
    experiment = make(budget=1)
    for _ in range(200):
        experiment.record({"X2": 0, "X3": 0, "X4": 0}, {"X5": 1, "Y": 1})
        experiment.record({"X2": 1}, {"X3": 0, "X4": 0, "X5": 0, "Y": 0})
    assert experiment.recommend().do == {"X5": 1}
    assert experiment.best_observed().do == {"X2": 0, "X3": 0, "X4": 0}


def listed(actions):
    return [actions.row(i) for i in range(len(actions.ids))]


def check_arms(shown, engine, under_way, usable, scale):
    """The two best of the arms that could be played, by the formula."""
    index, graph = {}, engine.problem.graph
    for row, plays, total in zip(listed(engine.actions()), engine.state.plays, engine.state.total, strict=True):
        if not usable.issuperset(row.ids):
            continue
        mean, more = total / plays if plays else 0.5, under_way.count(row)
        count = plays + more
        time = engine.rounds + len(under_way) + 1
        untried = math.inf if scale else 1.0
        index[row] = (total + more * mean) / count + scale * math.sqrt(math.log(time) / count) if count else untried
    if len(index) == 1:
        assert shown.runner_up is None
        return
    chosen, second = (action_of(graph, do) for do in (shown.do, shown.runner_up.do))
    best = max(index.values())
    assert chosen != second
    assert index[chosen] == pytest.approx(best, abs=1e-9) == pytest.approx(shown.optimistic, abs=1e-9)
    assert index[second] == pytest.approx(max(v for arm, v in index.items() if arm != chosen), abs=1e-9)
    assert shown.margin >= -1e-9


def action_of(graph, do):
    ids = sorted(map(graph.index, do))
    return Action(tuple(ids), tuple(float(do[graph.nodes[i - 1]]) for i in ids))


def is_pending(other, row):
    return other.position is None or other.position >= row.asked_after


def plain_actions(name, available):
    """Every action that a case compares, by its rules: of all sizes where effects may do harm."""
    model, budget, policy, settings = CASES[name]
    graph = model.graph
    names = graph.controllable if available is None else available
    any_size = settings.get("effects", policy.effects) == "any"
    sets = [set(some) for size in range(len(names) + 1) for some in combinations(names, size)]
    sets = [some for some in sets if budget is None or len(some) <= budget]
    if "total_cost" in settings:
        sets = [some for some in sets if sum(settings["costs"].get(x, 1.0) for x in some) <= settings["total_cost"]]
    sets = [some for some in sets if some >= set(settings.get("require", ()))]
    sets = [some for some in sets if all(len(some & set(group)) <= 1 for group in settings.get("exclusive", ()))]
    if not any_size:
        sets = [some for some in sets if not any(some < other for other in sets)]
    levers = settings.get("levers", {})
    return [
        action_of(graph, dict(zip(some, values, strict=True)))
        for some in map(sorted, sets)
        for values in product(*(levers.get(x, (1,)) for x in some))
    ]


@pytest.mark.parametrize("name", CASES)
def test_explanations(name):
    model = CASES[name][0]
    experiment = case(name)
    rng = np.random.default_rng(4)
    pending = []
    for step in range(36):
        names = None
        if step % 9 == 4 and name not in ("rules", "fixed"):
            names = [x for x in model.graph.controllable if x != model.graph.controllable[step % 4]]
        pending.append(experiment.ask(available=names))
        if step % 3:
            trial = pending.pop(0)
            experiment.tell(trial.number, drawn(model, trial.do, rng.random(len(model.graph))))
    rows = whole_log(experiment)
    then = [experiment.explain(number) for number in range(36)]
    for row, shown, said_ in zip(rows, then, experiment.trials(), strict=True):
        replica = Replica(experiment.definition, experiment.columns)
        replica.follow(experiment.storage.closed_since(experiment._id, 0)[: row.asked_after])
        engine, learner = replica.learner.engine, replica.learner
        assert shown.do == said_["do"]
        assert shown.rounds == row.asked_after == learner.rounds
        assert shown.predicted == row.predicted == learner.expected(shown.do)
        assert shown.interval == (row.low, row.high) == learner.interval(shown.do)
        assert shown.why == row.why
        under_way = [
            action_of(learner.graph, experiment.columns.decode(other.do))
            for other in rows[: row.number]
            if is_pending(other, row)
        ]
        assert shown.pending == len(under_way)
        if row.optimistic is None:
            assert (shown.bonus, shown.runner_up, shown.margin) == (None, None, None)
        else:
            assert shown.bonus == row.optimistic - row.predicted
        if not isinstance(engine, ModelEngine):
            assert name in ARMS
            assert (shown.paths, shown.other_paths, shown.shares) == ((), None, {})
            if row.optimistic is not None:
                usable = json.loads(row.available) if row.available else learner.graph.controllable
                check_arms(shown, engine, under_way, set(map(learner.graph.index, usable)), 0.5 * (name != "epsilon"))
            continue
        for x in shown.do:
            rest = {other: value for other, value in shown.do.items() if other != x}
            assert shown.shares[x] == pytest.approx(shown.predicted - learner.expected(rest), abs=1e-12)
        assert set(shown.shares) == set(shown.do)
        if learner.problem.is_linear:
            whole = sum(path.contribution for path in shown.paths) + shown.other_paths
            assert whole == pytest.approx(shown.predicted, abs=1e-12)
            assert all(path.names[-1] == "Y" for path in shown.paths)
        else:
            assert (shown.paths, shown.other_paths) == ((), None)
        if row.optimistic is None or name == "greedy":
            assert shown.runner_up is None
            continue
        names = json.loads(row.available) if row.available else None
        others = [replica.pending(other) for other in rows[: row.number] if is_pending(other, row)]
        now = replica.situation(row.number, names, others, replica.known(None))
        values = {action: engine.index_of(action, now) for action in plain_actions(name, names)}
        mine = action_of(learner.graph, shown.do)
        assert values.pop(mine) == pytest.approx(row.optimistic, abs=1e-12), row.number
        second = max(values.values())
        assert shown.runner_up.optimistic == pytest.approx(second, abs=1e-9)
        assert values[action_of(learner.graph, shown.runner_up.do)] == pytest.approx(second, abs=1e-9)
        assert shown.margin == row.optimistic - shown.runner_up.optimistic
        assert shown.margin >= -1e-8
    # Later rounds change nothing about what was known then.
    for _ in range(20):
        experiment.record({}, drawn(model, {}, rng.random(len(model.graph))))
    assert [again(experiment).explain(number) for number in range(36)] == then
    refused(ExperimentError, lambda: experiment.explain(40), "recorded")


@pytest.mark.parametrize(
    "rules",
    [
        {"budget": 2},
        {"budget": None, "costs": {"A": 1, "B": 2}, "total_cost": 2.5},
        {"budget": 2, "exclusive": [["A", "B"]]},
        {"budget": 1, "require": ["A"]},
        {"budget": 0},
    ],
)
@pytest.mark.parametrize("region", ["closed-form", "boxed"])
def test_a_runner_up_was_compared(rules, region):
    """Few sets: one that is not compared, such as a part of the best, must not be said to have come second."""
    graph = dob.CausalGraph([("A", "Y"), ("B", "Y"), ("A", "B")], target="Y")
    for seed in range(6):
        experiment = make(graph=graph, policy=dob.BLMLR(radius_scale=0.01, region=region), seed=seed, **rules)
        rng = np.random.default_rng(seed)
        for t in range(10):
            trial = experiment.ask()
            experiment.tell(t, {x: int(rng.integers(2)) for x in graph.nodes if x not in trial.do})
            shown = experiment.explain(t)
            sets = [set(action.named(graph)) for action in listed(experiment.learner.engine.actions())]
            assert set(shown.do) in sets
            if len(sets) == 1:
                assert (shown.runner_up, shown.margin) == (None, None)
            else:
                assert set(shown.runner_up.do) in sets
                assert shown.runner_up.do != shown.do
                assert shown.margin >= -1e-8


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


# -- the log for people ------------------------------------------------------------------------------------------------


def test_status(storage):
    clock = Clock(5000.0)
    experiment = make(storage, lease=10, horizon=99, clock=clock)
    empty = experiment.status()
    assert (empty.trials, empty.pending, empty.mean_target, empty.last_told_at) == (0, 0, None, None)
    assert (empty.created_at, empty.seed, empty.horizon, empty.budget) == (5000.0, 7, 99, 2)
    assert (empty.target, empty.policy) == ("Y", "blm-lr:radius_scale=0.1")
    experiment.ask(n=6)
    clock.now = 5005.0
    experiment.tell(0, dict.fromkeys(G4.graph.nodes, 1))
    experiment.tell(1, {"Y": 0})
    experiment.tell_failed(2, "rain")
    experiment.abandon(3)
    clock.now = 5011.0
    experiment.tell(4, {"X2": 1} if "X2" not in experiment.trial(4)["do"] else {"X3": 1, "X4": 1})
    experiment.record({}, {"Y": 0})
    clock.now = 5012.0
    status = again(experiment, clock).status()
    assert (status.trials, status.pending, status.told, status.failed, status.abandoned) == (7, 1, 4, 1, 1)
    assert (status.late, status.expired, status.partial) == (1, 1, 3)
    assert status.mean_target == pytest.approx(1 / 3)
    assert status.last_told_at == 5011.0
    assert status.storage == storage.url
    listed = dob.list_experiments(storage)[0]
    assert (listed.trials, listed.closed) == (7, 6)


@pytest.mark.parametrize("name", CASES)
def test_exports_agree_and_come_back(name, tmp_path):
    pandas, parquet = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    model, clock, rng = CASES[name][0], Clock(0.0), np.random.default_rng(8)
    experiment = case(name, clock=clock)
    session(model, [experiment], clock, 30, rng)
    rows = experiment.trials()
    text = experiment.to_csv()
    experiment.to_csv(tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_text(encoding="utf-8") == text
    table = list(csv.DictReader(io.StringIO(text)))
    frame = experiment.to_pandas()
    experiment.to_parquet(tmp_path / "log.parquet")
    packed = parquet.read_table(tmp_path / "log.parquet").to_pylist()
    assert len(rows) == len(table) == len(frame) == len(packed)
    for row, line, framed, stored in zip(rows, table, frame.to_dict("records"), packed, strict=True):
        assert int(line["trial.number"]) == row["trial"] == framed["trial.number"] == stored["trial.number"]
        assert line["trial.state"] == row["state"] == framed["trial.state"] == stored["trial.state"]
        for x in experiment.columns.names:
            seen = (row["observation"] or {}).get(x)
            assert (float(line[x]) if line[x] else None) == seen == stored[x]
            assert framed[x] == seen or (seen is None and pandas.isna(framed[x]))
            if x != "Y":
                done = row["do"].get(x)
                assert (float(line[f"do:{x}"]) if line[f"do:{x}"] else None) == done == stored[f"do:{x}"]
        if row["predicted"] is not None:
            assert float(line["trial.predicted"]) == row["predicted"] == stored["trial.predicted"]
    # Imported, the told rounds stand in the order of their numbers: the same sums where order does not matter.
    told = [row for row in rows if row["state"] == "told"]
    in_order = case(name)
    for row in told:
        in_order.record(row["do"], row["observation"])
    known, wanted = knowledge(in_order), said(in_order.ask())
    for source in (tmp_path / "log.csv", io.StringIO(text), frame, rows):
        fresh = case(name)
        assert fresh.import_history(source) == range(len(told))
        assert knowledge(fresh) == known
        assert said(fresh.ask()) == wanted


@pytest.mark.parametrize("name", CASES)
def test_a_log_told_in_order_comes_back_to_the_bit(name):
    experiment = played(name, 60)
    fresh = case(name)
    fresh.import_history(io.StringIO(experiment.to_csv()))
    assert knowledge(fresh) == knowledge(experiment)
    assert said(fresh.ask()) == said(experiment.ask())


# -- replay ------------------------------------------------------------------------------------------------------------


def test_a_long_log_is_replayed_quickly(tmp_path):
    """10^5 rounds in SQLite."""
    rounds, rng = 100_000, np.random.default_rng(1)
    values = (rng.random((rounds, 7)) < 0.4).astype(int)
    names = dob.paper.G1.graph.nodes
    url = f"sqlite:///{tmp_path}/long.db"
    with closing(make(url, dob.paper.G1.graph, 3)) as experiment:
        start = time.perf_counter()
        experiment.import_history([({}, dict(zip(names, row, strict=True))) for row in values.tolist()])
        written = time.perf_counter() - start
    with closing(dob.open_experiment("spring", url)) as opened:
        start = time.perf_counter()
        trial = opened.ask()
        seconds = time.perf_counter() - start
        assert trial.number == rounds
        assert opened.learner.rounds == rounds
        print(f"{rounds} rounds imported in {written:.1f} s; opened and asked in {seconds:.1f} s")
    assert seconds < 10.0
    with closing(sqlite3.connect(tmp_path / "long.db")) as raw:
        assert raw.execute("SELECT count(*) FROM trials").fetchone() == (rounds + 1,)


def test_the_learner_that_is_handed_out_is_a_copy():
    experiment = make()
    for _ in range(5):
        experiment.tell(experiment.ask(), {"Y": 1})
    before = experiment.recommend()
    learner = experiment.learner
    for _ in range(50):
        learner.update(["X2"], {"X3": 0, "X4": 0, "X5": 0, "Y": 1})
    assert learner.rounds == 55
    assert experiment.recommend() == before
    assert experiment.learner.rounds == 5


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


def test_a_hole_in_the_log_is_damage(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    with make(url) as experiment:
        for _ in range(5):
            experiment.tell(experiment.ask(), {"Y": 1})
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("DELETE FROM trials WHERE number = 2")
    with dob.open_experiment("spring", url) as experiment:
        for question in (experiment.ask, experiment.status, experiment.recommend, experiment.trials):
            refused(StorageError, question, "damaged")


def test_memory_is_shared_in_a_process():
    name = "shared in this process"
    dob.create_experiment(name, G4.graph, 2, storage="memory").ask()
    assert dob.open_experiment(name, "memory").ask().number == 1
    refused(ExperimentError, lambda: dob.create_experiment(name, G4.graph, 2, storage="memory"), "name")
    dob.delete_experiment(name, "memory")


def test_paths_add_up_where_estimates_are_negative():
    graph = dob.CausalGraph([("A", "Y"), ("B", "Y")], target="Y")
    experiment = make(graph=graph, budget=1)
    experiment.import_history([({}, {"A": a, "B": 1 - a, "Y": int(a and t % 2)}) for t in range(40) for a in (0, 1)])
    experiment.import_history([({}, {"A": 1, "B": 1, "Y": 0})] * 20)
    shown = experiment.explain(experiment.ask().number)
    assert min(path.contribution for path in shown.paths) < 0
    assert shown.other_paths == 0.0
    assert sum(path.contribution for path in shown.paths) == pytest.approx(shown.predicted, abs=1e-9)
