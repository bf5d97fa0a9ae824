"""Rules, and what they allow, straight from their words."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st

from dobandit import BGLMOFU, BLMLR, KLUCB, UCB, BinaryGLM, CausalGraph, EpsilonGreedy, Fixed, Oracle, Random
from dobandit.model.links import logistic
from dobandit.oracle.actions import Action
from dobandit.policy.engine import Situation, no_context
from helpers import indices
from helpers.worlds import quietly

LOGISTIC = logistic(1.5)
seeds = st.integers(0, 2**32 - 1)


class Game:
    """A graph with rules. Costs are kept in whole tenths, so that what is allowed is decided without rounding."""

    def __init__(self, graph, budget=None, tenths=None, total=None, require=(), forbid=(), exclusive=()):
        self.graph, self.budget, self.tenths, self.total = graph, budget, dict(tenths or {}), total
        self.require, self.forbid, self.exclusive = tuple(require), tuple(forbid), tuple(map(tuple, exclusive))

    @property
    def keywords(self):
        rules = {"budget": self.budget, "require": self.require, "forbid": self.forbid, "exclusive": self.exclusive}
        if self.total is not None:
            rules |= {"costs": {name: t / 10 for name, t in self.tenths.items()}, "total_cost": self.total / 10}
        return rules

    def __repr__(self):
        return f"Game({self.graph.edges}, controllable={self.graph.controllable}, {self.keywords})"

    def allows(self, chosen, available=None):
        chosen = set(chosen)
        return (
            chosen <= set(self.graph.controllable if available is None else available)
            and (self.budget is None or len(chosen) <= self.budget)
            and (self.total is None or sum(self.tenths.get(name, 10) for name in chosen) <= self.total)
            and set(self.require) <= chosen
            and not chosen & set(self.forbid)
            and all(len(chosen & set(group)) <= 1 for group in self.exclusive)
        )

    @property
    def feasible(self):
        return self.allows(self.require)

    def relevant(self):
        return [name for name in self.graph.controllable if self.graph.target in self.graph.descendants(name)]

    def allowed(self, names, available=None):
        """Every allowed set of `names` and the required variables."""
        free = [name for name in names if name not in self.require]
        subsets = itertools.chain.from_iterable(itertools.combinations(free, k) for k in range(len(free) + 1))
        return [S for S in (frozenset((*chosen, *self.require)) for chosen in subsets) if self.allows(S, available)]

    def maximal(self, names, available=None):
        """Those to which none of `names` can be added."""
        sets = self.allowed(names, available)
        return [S for S in sets if not any(self.allows({*S, name}, available) for name in set(names) - S)]

    def without(self, gone):
        """The same game with more variables forbidden."""
        forbid = {*self.forbid, *gone}
        return Game(self.graph, self.budget, self.tenths, self.total, self.require, forbid, self.exclusive)


def random_game(seed, most=6, feasible=True):
    """Any graph, with variables that cannot matter or cannot be set, and any rules; `feasible`: that some set keeps."""
    rng = np.random.default_rng(seed)
    names = [f"X{i}" for i in range(int(rng.integers(4, most + 1)))]
    density = rng.uniform(0.4, 0.9)
    edges = [(a, b) for i, a in enumerate(names) for b in [*names[i + 1 :], "Y"] if rng.random() < density]
    edges += [] if any(b == "Y" for _, b in edges) else [(names[-1], "Y")]
    keep = [n for n in names if rng.random() < 0.9 or (n, "Y") in edges]
    bias = [n for n in [*names, "Y"] if rng.random() < 0.8]
    graph = quietly(CausalGraph, edges, "Y", controllable=keep, bias=bias, nodes=[*names, "Y"])

    def some(count):
        return rng.permutation(keep)[: int(count)].tolist()

    with_costs = rng.random() < 0.6
    without_budget = with_costs and rng.random() < 0.5
    prices = [0, 1, 2, 3, 3, 7, 10, 25]
    game = Game(
        graph,
        budget=None if without_budget else int(min(rng.choice([1, 1, 2, 2, 2, 3, rng.integers(0, 7)]), len(keep))),
        tenths={n: int(rng.choice(prices)) for n in keep if rng.random() < 0.8} if with_costs else None,
        total=int(rng.choice([3, 6, 6, 10, 10, 13, rng.integers(0, 40)])) if with_costs else None,
        require=some(rng.choice([0, 0, 0, 0, 1, 1, 2])),
        forbid=some(rng.choice([0, 0, 0, 1])),
        exclusive=[some(rng.choice([1, 2, 2, 2, 3, 4])) for _ in range(int(rng.choice([0, 0, 1, 2, 3])))],
    )
    if feasible:
        game.forbid = tuple(name for name in game.forbid if name not in game.require)
        while not game.feasible:
            game.require = game.require[1:]
    return game


def games(most=6, feasible=True):
    return st.builds(random_game, seeds, st.just(most), st.just(feasible))


class Case:
    """A policy with the links it is started with. Fixed and Oracle depend on the game."""

    def __init__(self, name, make, links=None):
        self.name, self.make, self.links = name, make, links

    def start(self, game, horizon=1000, seed=0, effects="nonnegative"):
        options = {"horizon": horizon, "seed": seed, "links": self.links, "effects": effects}
        return self.make(game).start(game.graph, **options, **game.keywords)


def now(learner, available=None, draws=(0.0, 0.0, 0.0)):
    """A situation in which these names are available."""
    more = np.full(max(learner.engine.draws - len(draws), 0), 0.5)
    return Situation(np.append(draws, more), no_context(len(learner.graph)), learner.available(available))


def index_of(learner, names):
    """The optimistic value of setting these names to 1."""
    ids = sorted(map(learner.graph.index, names))
    return indices.index_of(learner.engine, Action(tuple(ids), (1.0,) * len(ids)), now(learner))


def a_model(graph):
    sizes = np.diff(graph.arrays.parent_ptr)
    return BinaryGLM(graph, np.repeat(1.0 / np.maximum(sizes, 1), sizes))


searched = partial(BLMLR, radius_scale=0.1, region="boxed")
CASES = [
    Case("BLMLR", lambda g: BLMLR(radius_scale=0.1)),
    Case("BLMLR boxed", lambda g: BLMLR(radius_scale=0.1, region="boxed", oracle="exhaustive")),
    Case("BLMLR search", lambda g: searched(oracle="greedy")),
    Case("BLMLR closed form search", lambda g: BLMLR(radius_scale=0.1, oracle="greedy")),
    Case("BLMOFU", lambda g: BGLMOFU(radius_scale=0.1, initial=3)),
    Case("BLMOFU search", lambda g: BGLMOFU(radius_scale=0.1, initial=3, region="boxed", oracle="greedy")),
    Case("BGLMOFU logistic", lambda g: BGLMOFU(radius_scale=0.1, initial=3, kappa=0.1), LOGISTIC),
    Case("UCB", lambda g: UCB(scale=0.5)),
    Case("KL-UCB", lambda g: KLUCB()),
    Case("eps-greedy", lambda g: EpsilonGreedy(0.3)),
    Case("Random", lambda g: Random()),
    Case("Fixed", lambda g: Fixed(sorted(g.allowed(g.graph.controllable)[-1]) if g.feasible else g.require)),
    Case("Oracle", lambda g: Oracle(a_model(g.graph))),
]
every_policy = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def a_round(rng, graph, action, missing=0.0):
    values = {name: int(rng.integers(2)) for name in graph.nodes} | action
    return {name: value for name, value in values.items() if rng.random() >= missing}


def data(rng, game, rounds):
    """Rounds with any allowed set, none included, and some values missing."""
    sets = [frozenset(), *game.allowed(game.graph.controllable)]
    rows = []
    for _ in range(rounds):
        action = dict.fromkeys(sorted(sets[rng.integers(len(sets))]), 1)
        rows.append((action, a_round(rng, game.graph, action, missing=0.05)))
    return rows
