"""What the tests of experiments share: a clock, a world to act in, policies, and a plain account of the rules."""

from __future__ import annotations

import itertools
import json
import math
import time
from functools import partial

import numpy as np
import pytest

from dobandit import (
    BGLMOFU,
    BLMLR,
    KLUCB,
    UCB,
    BinaryGLM,
    CausalGraph,
    CausalUCB,
    EpsilonGreedy,
    Fixed,
    LinearModel,
    Random,
    create_experiment,
    open_experiment,
    paper,
)
from dobandit.errors import DobanditError
from dobandit.policy.base import round_draws
from dobandit.policy.engine import Pending, Situation
from dobandit.policy.learner import Learner
from dobandit.policy.problem import problem_of
from dobandit.storage import MemoryStorage
from helpers.worlds import PLAIN_LINKS


class Clock:
    def __init__(self, now=1_700_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


LOGISTIC = BinaryGLM(
    CausalGraph([("A", "C"), ("B", "C"), ("A", "Y"), ("C", "Y"), ("D", "Y")], target="Y"),
    {"A": 0.1, "B": 0.5, "C": 0.2, "D": 0.7, "Y": 0.1, ("A", "C"): 2.0, ("B", "C"): 1.0, ("A", "Y"): 0.4}
    | {("C", "Y"): 1.5, ("D", "Y"): 0.5},
    links={"name": "logistic", "shift": 1.0},
)
SMOOTH = LinearModel(paper.G4.graph, paper.G4.weights)
HARMFUL = BinaryGLM(  # A does harm to Y
    LOGISTIC.graph,
    {"A": -1.0, "B": 0.0, "C": -0.5, "D": 0.5, "Y": 0.0, ("A", "C"): 1.0, ("B", "C"): 1.5, ("A", "Y"): -2.0}
    | {("C", "Y"): 1.5, ("D", "Y"): 0.5},
    links="logistic",
)

# name: (model, budget, policy, keywords of create_experiment)
CASES = {
    "closed-form": (paper.G5, 2, BLMLR(radius_scale=0.1), {}),
    "boxed": (paper.G5, 2, BLMLR(radius_scale=0.1, region="boxed"), {}),
    "search": (paper.G5, 2, BLMLR(radius_scale=0.1, region="boxed", oracle="greedy"), {}),
    "lemma": (paper.G1, 3, BLMLR(radius="lemma", delta=0.1), {}),
    "linear-ofu": (paper.G4, 2, BGLMOFU(radius_scale=0.1, initial=20), {}),
    "logistic-ofu": (LOGISTIC, 2, BGLMOFU(radius_scale=0.1, initial=15), {}),
    "logistic-lambda": (LOGISTIC, 2, BGLMOFU(radius_scale=0.1, lambda_scale=0.0), {}),
    "ucb": (paper.G4, 2, UCB(scale=0.5), {}),
    "kl-ucb": (paper.G4, 2, KLUCB(), {}),
    "epsilon": (paper.G4, 2, EpsilonGreedy(epsilon=0.2), {}),
    "random": (paper.G4, 2, Random(), {}),
    "fixed": (paper.G4, 2, Fixed(["X3", "X5"]), {}),
    "continuous": (SMOOTH, 2, BLMLR(radius_scale=0.1), {"continuous": True}),
    "costs": (paper.G5, None, BLMLR(radius_scale=0.1), {"costs": {"X2": 2.0, "X4": 1.5}, "total_cost": 3.0}),
    "rules": (paper.G5, 3, BLMLR(radius_scale=0.1), {"require": ["X6"], "exclusive": [["X2", "X3"]]}),
    "full-arms": (paper.G4, 2, UCB(scale=0.5), {"effects": "nonnegative"}),
    "causal": (paper.G5, 2, CausalUCB(), {}),
    "causal-auto": (HARMFUL, 2, CausalUCB(), {"links": "auto", "levers": {"A": (0, 1)}}),
}
ARMS = ("ucb", "kl-ucb", "full-arms", "epsilon", "random", "fixed")


def links_of(model):
    return {name: model.link(name) for name in model.graph.nodes}


def settings_of(name):
    """Keywords of `create_experiment` and `start` for a case: the model's links, unless it says others."""
    model, _, _, settings = CASES[name]
    return {"links": links_of(model)} | settings


def drawn(model, do, uniforms):
    """A round of the world: node by node, a uniform each, in the graph's order."""
    values = {}
    for name, uniform in zip(model.graph.nodes, uniforms, strict=True):
        if name in do:
            values[name] = do[name]
            continue
        x = 0.0
        if name in model.graph.bias:
            x += model.weights[name]
        for parent in model.graph.parents(name):
            x += model.weights[parent, name] * values[parent]
        link = model.link(name)
        mean = min(max(partial(PLAIN_LINKS[link.name], **dict(link.parameters))(x), 0.0), 1.0)
        if model.continuous:
            noise = float(model.noise[model.graph.index(name)])
            values[name] = mean + (2.0 * float(uniform) - 1.0) * noise * min(mean, 1.0 - mean)
        else:
            values[name] = int(uniform < mean)
    return {name: value for name, value in values.items() if name not in model.graph.latent}


SCRATCH = {"row", "work"}


def flat(state):
    """All numbers of a learner's state but scratch, as bytes: equal only where they are equal to the last bit."""
    if isinstance(state, np.ndarray):
        return [state.tobytes()]
    if isinstance(state, tuple):
        names = getattr(state, "_fields", [""] * len(state))
        return [part for name, inner in zip(names, state, strict=True) if name not in SCRATCH for part in flat(inner)]
    return [repr(state)]


def knowledge(experiment):
    """All that was learned."""
    return flat(experiment.learner.engine.state)


def numbered(rounds):
    """Rounds (do, observation) as rows of an import that are a trial each, in their order."""
    return [{"trial": number, "do": do, "observation": seen} for number, (do, seen) in enumerate(rounds)]


def said(trial):
    """What a trial says, for exact comparison."""
    return trial.number, trial.do, repr(trial.predicted), tuple(map(repr, trial.interval)), trial.why, trial.issued


class PlainLog:
    """The rules of the log, as plainly as they can be said; asks of a learner that is told the log round by round."""

    def __init__(self, graph, rules, policy, seed, links=None, horizon=None, continuous=False, effects=None):
        self.policy, self.seed = policy, seed
        effects = policy.effects if effects is None else effects
        self.problem = problem_of(graph, rules, horizon, seed, links, continuous, effects)
        self.trials, self.order = [], []  # order: numbers of closed trials, as they were closed

    def learner(self):
        learner = Learner(self.policy, self.problem)
        for number in self.order:
            trial = self.trials[number]
            if trial["state"] == "told":
                for seen in trial.get("rows", [trial["seen"]]):
                    learner.update(trial["do"], seen)
        return learner

    def whole(self, do, seen):
        """With what was set, and 0 for what has no cause at all and was neither set nor seen."""
        graph = self.problem.graph
        idle = [name for name in graph.nodes if not graph.parents(name) and not graph.has_bias(name)]
        return {**dict.fromkeys(idle, 0), **seen, **do}

    def in_order(self, do, rows):
        """Many rounds in the order in which they are learned from: that of their texts. Where order matters, that of
        their values, what was not seen last, with equal rounds spread evenly: occurrence k of c at (k + u) / c, u a
        multiple of the golden ratio."""
        rows = [self.whole(do, row) for row in rows]
        values = [[row.get(name) for name in self.problem.graph.nodes] for row in rows]
        if not getattr(Learner(self.policy, self.problem).engine, "weighs_by_order", False):
            plain = [[int(value) if value in (0, 1) else value for value in row] for row in values]
            texts = [json.dumps(row, separators=(",", ":")) for row in plain]
            return [rows[i] for i in sorted(range(len(rows)), key=texts.__getitem__)]
        keys = [[2.0 if value is None else value for value in row] for row in values]
        distinct, golden = [key for key, _ in itertools.groupby(sorted(keys))], (math.sqrt(5.0) - 1.0) / 2.0

        def place(i):
            among, k = distinct.index(keys[i]), keys[:i].count(keys[i])
            return (k + (among + 1) * golden % 1.0) / keys.count(keys[i]), among

        return [rows[i] for i in sorted(range(len(rows)), key=place)]

    def ask(self, now, lease, available=None, context=None):
        expires = None if lease is None else now + lease
        for number, trial in enumerate(self.trials):
            over = trial["state"] == "pending" and trial["expires"] is not None and trial["expires"] <= now
            if over and (available is None or set(trial["do"]) <= set(available)):
                trial["expires"], trial["issued"] = expires, trial["issued"] + 1
                return number
        number = len(self.trials)
        learner = self.learner()
        pending = tuple(
            Pending(learner.action(trial["do"]), learner.context(trial["context"]))
            for trial in self.trials
            if trial["state"] == "pending"
        )
        draws = round_draws(self.seed, number, learner.engine.draws)
        choice = learner.engine.choose(
            Situation(draws, learner.context(context), learner.available(available), pending)
        )
        do = choice.action.named(learner.graph)
        self.trials.append(
            {
                "state": "pending",
                "do": do,
                "context": context,
                "seen": None,
                "issued": 1,
                "expires": expires,
                "late": False,
                "predicted": learner.expected(do, context),
                "interval": learner.interval(do, context),
                "optimistic": None if math.isnan(choice.value) else choice.value,
            }
        )
        return number

    def close(self, number, state, seen=None, late=False):
        trial = self.trials[number]
        assert trial["state"] == "pending"
        trial |= {"state": state, "late": late, "seen": None if seen is None else self.whole(trial["do"], seen)}
        self.order.append(number)

    def record(self, do, seen):
        self.trials.append({"state": "told", "do": do, "seen": self.whole(do, seen), "issued": 1, "late": False})
        self.order.append(len(self.trials) - 1)
        return len(self.trials) - 1

    def record_many(self, do, rows):
        """Many rounds with the same set: one entry of the log."""
        number = self.record(do, rows[0])
        self.trials[number] |= {"rows": self.in_order(do, rows)}
        return number

    def close_many(self, number, rows, late=False):
        do = self.trials[number]["do"]
        self.close(number, "told", rows[0], late)
        self.trials[number] |= {"rows": self.in_order(do, rows)}


G4, G5 = paper.G4, paper.G5
FAST = BLMLR(radius_scale=0.1)
TWINS = CausalGraph([(f"X{i}", "Y") for i in range(1, 5)], target="Y")


def make(storage=None, graph=G4.graph, budget=2, policy=FAST, name="spring", **more):
    more = {"seed": 7} | more
    return create_experiment(name, graph, budget, policy, storage or MemoryStorage(), **more)


def case(name, storage=None, **more):
    model, budget, policy, _ = CASES[name]
    return make(storage, model.graph, budget, policy, **settings_of(name), **more)


def again(experiment, clock=time.time):
    """The same experiment in an object that knows nothing yet."""
    return open_experiment(experiment.name, experiment.storage, clock)


def refused(kind, call, *words):
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert isinstance(caught.value, DobanditError)
    return str(caught.value)


def whole_log(experiment):
    return list(experiment.log.stored_trials())


def played(name, rounds=30, storage=None, **more):
    experiment = case(name, storage, **more)
    model, rng = CASES[name][0], np.random.default_rng(2)
    for _ in range(rounds):
        trial = experiment.ask()
        experiment.tell(trial.number, drawn(model, trial.do, rng.random(len(model.graph))))
    return experiment


def rounds_learned(monkeypatch):
    """A list that gets, whenever some learner takes in told trials, how many these are."""
    learned, take = [], Learner.take

    def counted_take(self, rounds, sizes=None, **words):
        learned.append(len(rounds.values) if sizes is None else len(sizes))
        take(self, rounds, sizes, **words)

    monkeypatch.setattr(Learner, "take", counted_take)
    return learned
