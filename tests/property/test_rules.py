"""Rules of the game for every policy: only allowed sets, the best of the allowed ones, and what can be set now."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transcription as tr
from dobandit import BGLMOFU, BLMLR, KLUCB, UCB, BinaryGLM, CausalGraph, EpsilonGreedy, Fixed, Oracle, Random, paper
from dobandit.errors import DobanditError, DobanditWarning, InterventionError
from dobandit.model.links import logistic
from dobandit.oracle.actions import Action
from dobandit.policy.arms import ArmsEngine
from dobandit.policy.engine import Situation, no_context
from worlds import quietly, relaxed

LOGISTIC = logistic(1.5)
seeds = st.integers(0, 2**32 - 1)


# -- rules, and what they allow, straight from their words ----------------------------------------------------


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


def test_the_games_have_something_to_choose_from():
    drawn = [random_game(seed) for seed in range(200)]
    assert sum(len(game.maximal(game.relevant())) > 2 for game in drawn) > 60
    assert sum(bool(set(game.require) - set(game.relevant())) for game in drawn) > 5
    assert sum(0 in game.tenths.values() for game in drawn) > 30
    groups = [[set(group) for group in game.exclusive if len(group) > 1] for game in drawn]
    assert sum(any(a & b for a, b in itertools.combinations(g, 2)) for g in groups) > 30


class Case:
    """A policy with the links it is started with. Fixed and Oracle depend on the game."""

    def __init__(self, name, make, links=None):
        self.name, self.make, self.links = name, make, links

    def start(self, game, horizon=1000, seed=0, effects="nonnegative"):
        options = {"horizon": horizon, "seed": seed, "links": self.links, "effects": effects}
        return self.make(game).start(game.graph, **options, **game.keywords)


def now(learner, available=None, draws=(0.0, 0.0, 0.0)):
    """A situation in which these names are available."""
    return Situation(np.array(draws), no_context(len(learner.graph)), learner.available(available))


def index_of(learner, names):
    """The optimistic value of setting these names to 1."""
    ids = sorted(map(learner.graph.index, names))
    return learner.engine.index_of(Action(tuple(ids), (1.0,) * len(ids)), now(learner))


def names_of(learner, choice):
    return frozenset(choice.action.named(learner.graph))


def arms_of(learner):
    actions = learner.engine.actions()
    return [frozenset(actions.row(i).named(learner.graph)) for i in range(len(actions.ids))]


def a_model(graph):
    sizes = np.diff(graph.arrays.parent_ptr)
    return BinaryGLM(graph, np.repeat(1.0 / np.maximum(sizes, 1), sizes))


searched = partial(BLMLR, radius_scale=0.1, region="boxed")
CASES = [
    Case("BLMLR", lambda g: BLMLR(radius_scale=0.1)),
    Case("BLMLR boxed", lambda g: BLMLR(radius_scale=0.1, region="boxed", oracle="exhaustive")),
    Case("BLMLR search", lambda g: searched(oracle="branch-and-bound")),
    Case("BLMLR greedy", lambda g: searched(oracle="greedy")),
    Case("BLMOFU", lambda g: BGLMOFU(radius_scale=0.1, initial=3)),
    Case("BLMOFU search", lambda g: BGLMOFU(radius_scale=0.1, initial=3, region="boxed", oracle="branch-and-bound")),
    Case("BGLMOFU logistic", lambda g: BGLMOFU(radius_scale=0.1, initial=3, kappa=0.1), LOGISTIC),
    Case("UCB", lambda g: UCB(scale=0.5)),
    Case("KL-UCB", lambda g: KLUCB()),
    Case("eps-greedy", lambda g: EpsilonGreedy(0.3)),
    Case("Random", lambda g: Random()),
    Case("Fixed", lambda g: Fixed(sorted(g.allowed(g.graph.controllable)[-1]) if g.feasible else g.require)),
    Case("Oracle", lambda g: Oracle(a_model(g.graph))),
]
every_policy = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
optimists = pytest.mark.parametrize("case", CASES[:7], ids=[case.name for case in CASES[:7]])


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


# -- only allowed sets ----------------------------------------------------------------------------------------


@every_policy
@relaxed(max_examples=25)
@given(games(), seeds)
def test_every_proposal_of_a_run_is_allowed(case, game, seed):
    rng = np.random.default_rng(seed)
    learner = case.start(game, seed=seed % 1000)
    for _ in range(10):
        action = learner.propose()
        assert game.allows(action), (game, action)
        assert set(action.values()) <= {1}
        learner.update(action, a_round(rng, game.graph, action))
    best = learner.best().do if case.name != "Random" else learner.propose()
    assert game.allows(best), (game, best)


@pytest.mark.parametrize("case", [c for c in CASES if "OFU" in c.name], ids=lambda c: c.name)
def test_required_variables_are_set_while_initialising(case):
    game = Game(paper.G5.graph, budget=3, require=["X3"])
    learner = case.start(game)
    for _ in range(3):
        assert learner.propose() == {"X3": 1}
        learner.update({"X3": 1}, {"X3": 1})
    after = set(learner.propose())
    assert "X3" in after
    assert len(after) == 3 or ("search" in case.name and 1 < len(after) < 3)  # a search sets at most K


def test_waiting_for_what_a_required_variable_never_shows_is_warned_about():
    policy = BGLMOFU(radius_scale=0.1)
    with pytest.warns(DobanditWarning, match="'X3' is required, so it is set in every round"):
        learner = policy.start(paper.G5.graph, 3, horizon=1000, require=["X3"])
    assert learner.propose() == {"X3": 1}


@every_policy
def test_a_required_variable_that_cannot_matter_is_set_all_the_same(case):
    graph = quietly(CausalGraph, [("A", "Y"), ("B", "Y"), ("A", "Z")], target="Y", nodes=["A", "B", "Z", "Y"])
    game = Game(graph, budget=2, tenths={"Z": 15, "A": 5, "B": 6}, total=20, require=["Z"])
    learner = case.start(game)
    rng = np.random.default_rng(0)
    for _ in range(8):
        action = learner.propose()
        assert "Z" in action
        assert game.allows(action)
        learner.update(action, a_round(rng, graph, action))
    if case.name != "BLMLR greedy":
        assert set(learner.propose()) == {"A", "Z"}  # B costs too much besides Z


@every_policy
def test_rules_that_no_set_fulfils_are_refused_at_the_start(case):
    impossible = [game for game in (random_game(seed, feasible=False) for seed in range(150)) if not game.feasible]
    assert len(impossible) > 10
    for game in impossible:
        with pytest.raises(InterventionError):
            case.start(game)


def test_the_search_holds_where_estimates_lie_far_outside_the_box():
    """Few rows and small radii: the box's nearest point, not the clipped estimate, stands in for the region."""
    outside = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        game = Game(random_game(seed, most=7).graph, budget=2)
        learner = BGLMOFU(radius_scale=1e-3, initial=1, region="boxed", oracle="branch-and-bound").start(
            game.graph, horizon=1000, **game.keywords
        )
        learner.update_many(data(rng, game, int(rng.integers(5, 40))))
        outside += bool(np.any(learner.engine.beliefs().theta < -0.1))
        truth = max(index_of(learner, S) for S in game.allowed(game.relevant()))
        choice = learner.engine.choose(now(learner, draws=rng.random(3)))
        assert choice.value == pytest.approx(truth, abs=1e-7)
        assert choice.proved
        assert learner.engine.plan.oracle.report[1] >= truth - 1e-7
    assert outside > 100


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"budget": None}, "budget or a total cost"),
        ({"budget": 1, "require": ["X2", "X3"]}, "budget is 1"),
        ({"budget": 2, "require": ["X2"], "forbid": ["X2"]}, "both required and forbidden"),
        ({"budget": 3, "require": ["X2", "X3"], "exclusive": [["X2", "X3"]]}, "exclude each other"),
        ({"budget": None, "total_cost": 1, "costs": {"X2": 2}, "require": ["X2"]}, "cost 2"),
        ({"budget": 2, "costs": {"X2": 1}}, "total cost"),
        ({"budget": 2, "total_cost": 1, "costs": {"X2": -1}}, "from 0"),
        ({"budget": 2, "total_cost": float("nan")}, "from 0"),
        ({"budget": 2, "forbid": ["X9"]}, "X9"),
        ({"budget": 2, "require": ["Y"]}, "'Y'"),
        ({"budget": 2, "forbid": "X2"}, "list of names"),
        ({"budget": 2, "exclusive": ["X2", "X3"]}, "list of names"),
    ],
)
def test_bad_rules_are_refused_with_the_reason(rules, says):
    for policy in (BLMLR(), BGLMOFU(initial=1), UCB(), Random(), Fixed(["X2"]), Oracle(paper.G1)):
        with pytest.raises(InterventionError, match=says):
            policy.start(paper.G1.graph, **rules)


@relaxed(max_examples=60)
@given(games(), st.data())
def test_a_fixed_set_must_be_allowed(game, data):
    names = data.draw(st.lists(st.sampled_from(game.graph.controllable), unique=True))
    if game.allows(names):
        assert set(Fixed(names).start(game.graph, **game.keywords).propose()) == set(names)
    else:
        with pytest.raises(InterventionError):
            Fixed(names).start(game.graph, **game.keywords)


def test_costs_that_add_up_to_the_total_but_for_rounding_are_affordable():
    """0.1 + 0.2 > 0.3 in floats; and beside a required variable that costs a million, 0.3 is 0.3 still."""
    graph = CausalGraph([(name, "Y") for name in "ABCD"], target="Y")
    tight = {"A": 0.1, "B": 0.2, "C": 0.3, "D": 0.0}
    dear = {"A": 1e6, "B": 0.3, "C": 0.4, "D": 0.4}
    for policy in (BLMLR(), searched(oracle="branch-and-bound"), UCB(), Random(), Oracle(a_model(graph))):
        start = partial(policy.start, graph, None, effects="nonnegative")
        assert set(start(costs=tight, total_cost=0.3, require=["A", "B"]).propose()) == {"A", "B", "D"}
        assert set(start(costs=tight, total_cost=0.6).propose()) == set("ABCD")
        assert set(start(costs=dear, total_cost=1e6 + 0.3, require=["A"]).propose()) == {"A", "B"}


def test_costs_may_be_numpy_numbers():
    costs = {"X2": np.int64(3), "X3": np.float32(0.5)}
    learner = BLMLR().start(paper.G1.graph, None, costs=costs, total_cost=np.int64(4))
    assert learner.propose()


# -- the best of the allowed sets -----------------------------------------------------------------------------


def values_by_transcription(case, game, engine, sets):
    """The paper's value of every set, from the engine's estimate."""
    beliefs = engine.beliefs()
    nodes = {name: beliefs.node(game.graph.index(name)) for name in game.graph.nodes}
    theta, M = ({name: getattr(node, part) for name, node in nodes.items()} for part in ("theta", "gram"))
    rho = next(iter(nodes.values())).radius
    inverse = {name: tr.pseudo_inverse(m) if m.size else m for name, m in M.items()}
    graph = game.graph
    if case.links is not None:
        links = dict.fromkeys(graph.nodes, LOGISTIC)
        return [tr.per_pattern_value(graph, links, theta, inverse, rho, tuple(S)) for S in sets]
    if "boxed" in case.name or "search" in case.name:
        return tr.boxed_values(graph, theta, M, rho, map(tuple, sets))
    return [tr.closed_form_value(graph, theta, inverse, rho, tuple(S)) for S in sets]


def assert_best(case, game, learner, available=None, tolerance=1e-8):
    engine = learner.engine
    sets = game.maximal(game.relevant(), available)
    values = values_by_transcription(case, game, engine, sets)
    slack = tolerance * max(1.0, abs(max(values)))
    compared = {frozenset(a.named(game.graph)): value for a, value in engine.compared(now(learner, available))}
    for S, value in zip(sets, values, strict=True):
        assert index_of(learner, S) == pytest.approx(value, abs=slack)
        assert compared.get(S, value) == pytest.approx(value, abs=slack)
    assert not compared or set(compared) == set(sets)
    for uniform in (0.0, 0.37, 0.999):
        choice = engine.choose(now(learner, available, (uniform, 0.0, 0.0)))
        chosen = names_of(learner, choice)
        assert choice.value == pytest.approx(max(values), abs=slack)
        assert values[sets.index(chosen)] >= max(values) - slack


@pytest.mark.parametrize("case", [CASES[0], CASES[4], CASES[6]], ids=lambda case: case.name)
@relaxed(max_examples=80)
@given(games(most=6), seeds)
def test_the_choice_is_the_best_of_the_allowed_sets(case, game, seed):
    rng = np.random.default_rng(seed)
    learner = case.start(game)
    learner.update_many(data(rng, game, int(rng.choice([3, 8, 60]))))
    assert_best(case, game, learner)
    available = [name for name in game.graph.controllable if name in game.require or rng.random() < 0.6]
    assert_best(case, game, learner, available)


@relaxed(max_examples=15)
@given(games(most=6), seeds)
def test_the_choice_within_the_box_is_the_best_of_the_allowed_sets(game, seed):
    rng = np.random.default_rng(seed)
    learner = CASES[1].start(game)
    learner.update_many(data(rng, game, int(rng.choice([0, 8, 60]))))
    assert_best(CASES[1], game, learner, tolerance=1e-7)


@relaxed(max_examples=40)
@given(games(most=6), seeds)
def test_best_is_the_best_under_the_plain_estimate(game, seed):
    learner = CASES[0].start(game)
    learner.update_many(data(np.random.default_rng(seed), game, 20))
    beliefs = learner.engine.beliefs()
    theta = {name: beliefs.node(game.graph.index(name)).theta for name in game.graph.nodes}
    nothing = {name: np.zeros((len(t), len(t))) for name, t in theta.items()}
    value = {S: tr.closed_form_value(game.graph, theta, nothing, 0.0, tuple(S)) for S in game.maximal(game.relevant())}
    assert value[frozenset(learner.best().do)] == pytest.approx(max(value.values()), abs=1e-9)


@pytest.mark.parametrize("case", [CASES[2], CASES[5]], ids=lambda case: case.name)
@relaxed(max_examples=150)
@given(games(most=8), seeds)
def test_the_search_finds_the_best_of_all_allowed_sets(case, game, seed):
    rng = np.random.default_rng(seed)
    scale = float(rng.choice([0.01, 0.1, 1.0]))
    searching = Case("", lambda g: case.make(g).__class__(**{**vars(case.make(g)), "radius_scale": scale}))
    learner = searching.start(game)
    learner.update_many(data(rng, game, int(rng.choice([3, 30, 200]))))
    engine, graph = learner.engine, game.graph
    assert engine.searches
    assert engine.actions() is None
    limited = [name for name in graph.controllable if name in game.require or rng.random() < 0.6]
    for available in (None, tuple(limited), None):
        truth = max(index_of(learner, S) for S in game.allowed(game.relevant(), available))
        slack = 1e-7 * max(1.0, truth)
        choice = engine.choose(now(learner, available, (rng.random(), 0.0, 0.0)))
        assert choice.value == pytest.approx(truth, abs=slack)
        assert choice.proved
        if available is None:
            value, bound, looked = engine.plan.oracle.report.tolist()
            assert value == choice.value
            assert bound >= value
            assert bound == pytest.approx(truth, abs=slack)
            assert looked >= 1
        assert game.allows(names_of(learner, choice), available)
        assert index_of(learner, names_of(learner, choice)) == pytest.approx(truth, abs=slack)


def test_a_choice_carries_its_own_certificate():
    """Not that of a list of variables used before, nor of the question which set is best without optimism."""
    game = Game(paper.G5.graph, budget=2)
    learner = CASES[2].start(game)
    learner.update_many(data(np.random.default_rng(1), game, 60))
    free = learner.engine.choose(now(learner))
    limited = learner.engine.choose(now(learner, ["X6"]))
    assert limited.value < free.value - 1e-3
    learner.best()
    assert learner.engine.choose(now(learner)) == free
    assert learner.engine.choose(now(learner, ["X6"])) == limited


def test_a_stopped_search_under_rules_still_bounds_the_best(monkeypatch):
    monkeypatch.setattr("dobandit.policy.oracles._SETS_A_ROUND", 2)
    rng = np.random.default_rng(3)
    names = [f"X{i}" for i in range(8)]
    edges = [(a, b) for i, a in enumerate(names) for b in [*names[i + 1 :], "Y"] if rng.random() < 0.5]
    graph = quietly(CausalGraph, edges, target="Y", nodes=[*names, "Y"])
    tenths = {name: int(rng.integers(0, 20)) for name in names}
    game = Game(graph, None, tenths, 30, exclusive=[names[:2], names[1:4]])
    stopped = 0
    for _ in range(10):
        learner = CASES[2].start(game)
        learner.update_many(data(rng, game, 150))
        choice = learner.engine.choose(now(learner))
        value, bound, _ = learner.engine.plan.oracle.report.tolist()
        truth = max(index_of(learner, S) for S in game.allowed(game.relevant()))
        assert choice.value == value <= truth + 1e-7
        assert bound >= truth - 1e-7
        assert choice.proved == (bound <= value + 1e-9 * max(1.0, abs(value)))
        stopped += not choice.proved and bound > value + 1e-6
    assert stopped > 0


# -- what can be set now --------------------------------------------------------------------------------------


@every_policy
@relaxed(max_examples=20)
@given(games(), seeds)
def test_available_is_as_if_all_else_were_forbidden(case, game, seed):
    rng = np.random.default_rng(seed)
    names = game.graph.controllable
    available = [name for name in names if name in game.require or rng.random() < 0.7]
    rows = data(rng, game, 12)
    learner = case.start(game, seed=7)
    learner.update_many(rows)
    if not isinstance(learner.engine, ArmsEngine):
        fresh = case.start(game.without(set(names) - set(available)), seed=7)
        fresh.update_many(rows)
        rng.shuffle(available)
        answer = learner.propose(available=available)
        assert answer == fresh.propose()
        assert game.allows(answer, available)
        assert learner.best(available).do == fresh.best().do
        return
    playable = [arm for arm in arms_of(learner) if arm <= set(available)]
    narrower = game.without(set(names) - set(available))
    if not playable and case.name in ("Fixed", "Oracle"):
        with pytest.raises(InterventionError, match="available"):
            learner.propose(available=available)
        return
    if not playable:  # smaller sets become arms
        playable = narrower.maximal(names)
    assert frozenset(learner.propose(available=available)) in playable
    assert frozenset(learner.best(available).do) in playable
    if case.name not in ("Fixed", "Oracle") and set(playable) == set(narrower.maximal(names)):
        fresh = case.start(narrower, seed=7)
        fresh.update_many(rows)
        assert learner.propose(available=available) == fresh.propose()


@every_policy
def test_the_arms_are_the_maximal_allowed_sets(case):
    if case.name not in ("UCB", "KL-UCB", "eps-greedy", "Random"):
        return
    game = Game(paper.G5.graph, None, {"X2": 0, "X3": 15, "X4": 7}, 25, ["X4"], ["X5"], [["X2", "X6"], ["X6", "X3"]])
    assert set(arms_of(case.start(game))) == set(game.maximal(game.graph.controllable))
    every = arms_of(case.start(game, effects="any"))
    assert set(every) == set(game.allowed(game.graph.controllable))
    assert len(every) == len(set(every))


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.name in ("UCB", "KL-UCB", "eps-greedy", "Random")], ids=lambda c: c.name
)
@pytest.mark.parametrize("effects", ["nonnegative", "any"])
def test_smaller_sets_are_arms_where_no_larger_one_can_be_played(case, effects):
    """A learner that is told the rounds anew knows of them too."""
    game = Game(paper.G4.graph, budget=3, exclusive=[["X2", "X3"]])
    learner, rows = case.start(game, effects=effects), []
    wanted = [{"X2"}, {"X3"}] if effects == "nonnegative" else [{"X2"}, {"X3"}, set()]
    for number in range(30):
        action = learner.propose(available=["X2", "X3"])
        assert set(action) in wanted
        rows.append((action, {"Y": int(action == {"X3": 1} or number % 3 == 0)}))
        learner.update(*rows[-1])
    again = case.start(game, effects=effects)
    again.update_many(rows)
    for names in wanted:
        seen = [values["Y"] for action, values in rows if set(action) == names]
        assert len(seen) > 0
        assert learner.predict(names).value == pytest.approx(np.mean(seen))
        assert again.predict(names) == learner.predict(names)
    assert learner.best(["X2", "X3"]).do == again.best(["X2", "X3"]).do == {"X3": 1}
    for available in (["X2", "X3"], ["X2"], None):
        assert again.propose(available=available) == learner.propose(available=available)
    if case.name == "UCB":
        compared = learner.engine.compared(now(learner, ["X2", "X3"]))
        assert [set(action.named(game.graph)) for action, _ in compared] == sorted(wanted, key=len)
        for action, value in compared:
            plays = sum(set(do) == set(action.named(game.graph)) for do, _ in rows)
            mean = learner.predict(action.named(game.graph)).value
            assert value == pytest.approx(mean + 0.5 * np.sqrt(np.log(31) / plays))


def test_smaller_sets_under_way_count_as_played():
    """X2 and X3 exclude each other, so that each is an arm where nothing else is available: workers try both."""
    game = Game(paper.G4.graph, budget=3, exclusive=[["X2", "X3"]])
    for seed in range(8):
        learner = UCB().start(game.graph, seed=seed, effects="nonnegative", **game.keywords)
        first = learner.propose(available=["X2", "X3"])
        second = learner.propose(available=["X2", "X3"], pending=[first])
        assert {*first, *second} == {"X2", "X3"}


@every_policy
def test_asking_with_available_changes_no_later_answer(case):
    game = Game(paper.G5.graph, budget=2, exclusive=[["X2", "X3"]])
    quiet, asked = (case.start(game, seed=3) for _ in range(2))
    rng = np.random.default_rng(5)
    names = game.graph.controllable
    lists = [S for k in range(len(names) + 1) for S in itertools.combinations(names, k)]
    assert len(lists) >= 16
    first = {}
    for _ in range(8):
        action = quiet.propose()
        for S in lists if asked.rounds in (0, 5) else lists[::7]:
            try:
                first[S] = asked.propose(available=S)
                asked.best(S)
            except InterventionError:
                assert case.name in ("Fixed", "Oracle")
                continue
            assert set(first[S]) <= set(S)
            assert asked.propose(available=list(S)[::-1]) == first[S]
        assert asked.propose() == action
        seen = a_round(rng, game.graph, action)
        for learner in (quiet, asked):
            learner.update(action, seen)


def test_more_lists_than_are_remembered():
    graph = CausalGraph([(f"X{i}", "Y") for i in range(7)], target="Y")
    learner = BLMLR(radius_scale=0.1).start(graph, 2)
    learner.update_many(data(np.random.default_rng(0), Game(graph, 2), 40))
    lists = list(itertools.combinations(graph.controllable, 4))
    assert len(lists) > 32
    answers = [learner.propose(available=S) for S in lists]
    assert [learner.propose(available=S) for S in lists] == answers
    assert [learner.propose(available=S) for S in lists[::-1]] == answers[::-1]


@every_policy
def test_nothing_available_is_nothing_proposed(case):
    learner = case.start(Game(paper.G4.graph, budget=2))
    learner.update_many(data(np.random.default_rng(0), Game(paper.G4.graph, budget=2), 8))
    if case.name in ("Fixed", "Oracle"):
        with pytest.raises(InterventionError, match="available"):
            learner.propose(available=[])
        assert case.start(Game(paper.G4.graph, budget=0)).propose(available=[]) == {}
    else:
        assert learner.propose(available=[]) == {}
        assert learner.best([]).do == {}


@every_policy
def test_what_is_required_must_be_available(case):
    learner = case.start(Game(paper.G4.graph, budget=2, require=["X3"]))
    for ask in (lambda names: learner.propose(available=names), learner.best):
        with pytest.raises(InterventionError, match="'X3' is required, but not available"):
            ask(["X2"])
        with pytest.raises(InterventionError, match="not available"):
            ask([])
    assert "X3" in learner.propose(available=learner.graph.controllable)


@every_policy
@pytest.mark.parametrize("names", [["X99"], ["Y"], ["X2", "nobody"], "X2", 5, ["fixed"]])
def test_only_controllable_variables_are_available(case, names):
    graph = CausalGraph(
        [("X2", "Y"), ("X3", "Y"), ("fixed", "Y")], target="Y", controllable=["X2", "X3"], nodes=["X2", "X3", "fixed"]
    )
    learner = case.start(Game(graph, budget=1))
    with pytest.raises(InterventionError):
        learner.propose(available=names)
    with pytest.raises(InterventionError):
        learner.best(names)


def test_hidden_variables_and_rules_go_together():
    graph = CausalGraph([("A", "U"), ("U", "Y"), ("B", "Y"), ("C", "Y")], target="Y", latent=["U"])
    game = Game(graph, budget=2, require=["A"], exclusive=[["A", "B"]])
    for policy in (BLMLR(), searched(oracle="branch-and-bound"), BGLMOFU(initial=2), UCB(), Random()):
        learner = policy.start(graph, effects="nonnegative", **game.keywords)
        for _ in range(4):
            action = learner.propose()
            assert set(action) in ({"A", "C"}, {"A"})
            learner.update(action, a_round(np.random.default_rng(0), learner.graph, action))
        assert set(learner.propose()) == {"A", "C"}


@pytest.mark.parametrize("case", [CASES[0], CASES[2]], ids=lambda case: case.name)
def test_too_many_ruled_sets_are_searched_or_refused(case):
    names = [f"X{i}" for i in range(24)]
    graph = CausalGraph([(name, "Y") for name in names], target="Y")
    game = Game(graph, budget=8, exclusive=[names[:3]])
    if case is CASES[0]:
        with pytest.raises(DobanditError, match="sets"):
            case.start(game)
    else:
        assert game.allows(case.start(game).propose())
