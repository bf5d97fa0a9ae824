"""Creating, opening, renaming and deleting experiments, over every storage where the storage can matter."""

import json
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import DobanditError, DobanditWarning, ExperimentError, InterventionError, ModelError, PolicyError
from dobandit.policy.base import Policy
from dobandit.storage import MemoryStorage
from helpers.experiments import FAST, G4, LOGISTIC, TWINS, again, knowledge, make, refused
from helpers.worlds import ARCTAN

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


def test_memory_is_shared_in_a_process():
    name = "shared in this process"
    dob.create_experiment(name, G4.graph, 2, storage="memory").ask()
    assert dob.open_experiment(name, "memory").ask().number == 1
    refused(ExperimentError, lambda: dob.create_experiment(name, G4.graph, 2, storage="memory"), "name")
    dob.delete_experiment(name, "memory")


def test_a_definition_is_the_same_when_it_is_opened_again():
    experiment = make(policy=dob.CausalUCB(), costs={"X4": 2.0, "X2": 1.5}, total_cost=3.0)
    there, here = again(experiment).definition, experiment.definition
    assert json.dumps(there.document) == json.dumps(here.document)
    assert (there.problem, there.policy) == (here.problem, here.policy)


PUBLIC = """
    abandon ask best_observed close columns csv_parts definition delta diagnose estimates evaluate explain graph
    import_history interval_words learner name recommend record rounds_in status storage tell tell_failed
    to_csv to_pandas to_parquet told_rounds trial trials
"""


def test_an_experiment_lists_what_users_need_and_nothing_else():
    assert [word for word in dir(make()) if not word.startswith("_")] == PUBLIC.split()
