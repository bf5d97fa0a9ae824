"""One suite for every policy: what it may propose, that it is reproducible, that it never breaks, what it refuses."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dobandit as dob
from dobandit import (
    BGLMOFU,
    BLMLR,
    UCB,
    BinaryGLM,
    CausalGraph,
    EpsilonGreedy,
    Fixed,
    LinearModel,
    Oracle,
    Random,
    paper,
)
from dobandit.errors import GraphError, InterventionError, ModelError, ObservationError, PolicyError
from dobandit.model.links import exponential, logistic
from worlds import ARCTAN, graphs, quietly, relaxed

LOGISTIC = logistic(1.5)


class Case:
    """A policy with the links it is started with. `make` gets the graph: Fixed and Oracle depend on it."""

    def __init__(self, name, make, links=None):
        self.name, self.make, self.links = name, make, links

    def start(self, graph, budget, horizon=1000, seed=0, **options):
        return self.make(graph, budget).start(graph, budget, horizon=horizon, seed=seed, links=self.links, **options)


def a_model(graph, links):
    """Any model on the graph."""
    sizes = np.diff(graph.arrays.parent_ptr)
    theta = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    return BinaryGLM(graph, theta, links=links)


CASES = [
    Case("BLMLR", lambda g, k: BLMLR(radius_scale=0.1)),
    Case("BLMLR boxed", lambda g, k: BLMLR(radius_scale=0.1, region="boxed")),
    Case("BLMLR search", lambda g, k: BLMLR(radius_scale=0.1, region="boxed", oracle="branch-and-bound")),
    Case("BLMLR lemma", lambda g, k: BLMLR(radius="lemma")),
    Case("BLMOFU after 5", lambda g, k: BGLMOFU(radius_scale=0.1, initial=5)),
    Case("BLMOFU lambda-min", lambda g, k: BGLMOFU(radius_scale=0.1)),
    Case("BLMOFU boxed", lambda g, k: BGLMOFU(radius_scale=0.1, initial=3, region="boxed")),
    Case("BGLMOFU logistic", lambda g, k: BGLMOFU(radius_scale=0.1, initial=4, kappa=0.1, samples=64), LOGISTIC),
    Case("BGLMOFU exponential", lambda g, k: BGLMOFU(radius_scale=0.1, initial=4, kappa=0.1, samples=64), exponential),
    Case("BGLMOFU custom", lambda g, k: BGLMOFU(radius_scale=0.1, initial=4, kappa=0.1, samples=64), ARCTAN),
    Case("UCB", lambda g, k: UCB(scale=0.5)),
    Case("eps-greedy", lambda g, k: EpsilonGreedy(0.2)),
    Case("Fixed", lambda g, k: Fixed(g.controllable[:k])),
    Case("Random", lambda g, k: Random()),
    Case("Oracle", lambda g, k: Oracle(a_model(g, None))),
]
every_policy = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
optimists = pytest.mark.parametrize("case", CASES[:10], ids=[case.name for case in CASES[:10]])


def arrays_of(state):
    """Every array of a state, in order."""
    if isinstance(state, np.ndarray):
        return [state]
    return [array for part in state for array in arrays_of(part)]


SCRATCH = {"row", "scratch", "work"}


def kept(state):
    """The arrays that count: not the scratch."""
    if isinstance(state, np.ndarray):
        return [state]
    return [array for name in state._fields if name not in SCRATCH for array in kept(getattr(state, name))]


def assert_sound(learner, action, budget):
    """At most K controllable variables, each set to 1, and no NaN anywhere."""
    assert len(action) <= budget
    assert set(action) <= set(learner.graph.controllable)
    assert set(action.values()) <= {1}
    for array in kept(learner.engine.state):
        assert np.all(np.isfinite(array))
    if hasattr(learner.engine, "linear"):
        assert np.all(np.isfinite(learner.engine.linear.tree.values))


def random_round(rng, graph, action, missing=0.0, never=()):
    """Values of a round: what was set is 1, `never` is 0, and some are not seen."""
    values = {name: int(rng.integers(2)) for name in graph.nodes} | dict.fromkeys(never, 0) | action
    return {name: value for name, value in values.items() if rng.random() >= missing}


def play(learner, rng, rounds, missing=0.0, never=(), always=None):
    """Propose, draw anything, update; returns the actions. `always` is set whatever is proposed."""
    actions = []
    for _ in range(rounds):
        action = learner.propose()
        assert_sound(learner, action, learner.problem.budget)
        done = dict(action) | (always or {})
        learner.update(done, random_round(rng, learner.graph, done, missing, never))
        actions.append(action)
    return actions


# -- what may be proposed -------------------------------------------------------------------------------------


@every_policy
@relaxed(max_examples=12)
@given(graphs(most=6), st.data())
def test_at_most_k_controllable_variables_and_never_nan(case, graph, data):
    some = data.draw(st.lists(st.sampled_from([n for n in graph.nodes if n != graph.target]), unique=True))
    relevant = [name for name in graph.controllable if name not in graph.irrelevant]
    keep = [n for n in graph.nodes if n in {*some, relevant[0]}]
    graph = quietly(CausalGraph, graph.edges, graph.target, controllable=keep, bias=graph.bias, nodes=graph.nodes)
    budget = data.draw(st.integers(0, len(keep)))
    learner = case.start(graph, budget)
    play(learner, np.random.default_rng(data.draw(st.integers(0, 999))), 25)


@every_policy
def test_full_budget_is_used_once_learning_has_begun(case):
    learner = case.start(paper.G5.graph, 2)
    actions = play(learner, np.random.default_rng(0), 60)
    assert len(actions[-1]) == 2


# -- reproducible ---------------------------------------------------------------------------------------------


@every_policy
def test_the_same_seed_gives_the_same_choices_and_another_seed_others(case):
    def choices(seed):
        learner = case.start(paper.G1.graph, 3, seed=seed)
        return play(learner, np.random.default_rng(1), 40)

    assert choices(5) == choices(5)
    never_tied = ("BLMOFU after 5", "BLMOFU lambda-min", "BGLMOFU custom", "Fixed", "Oracle")
    if case.name not in never_tied:
        assert choices(5) != choices(6)


@every_policy
def test_asking_twice_gives_the_same_answer_and_changes_nothing(case):
    learner = case.start(paper.G4.graph, 2)
    play(learner, np.random.default_rng(2), 30)
    before = [array.copy() for array in kept(learner.engine.state)]
    first = learner.propose()
    learner.best()
    if hasattr(learner.engine, "linear"):
        learner.interval(first)
        learner.estimate("Y")
    assert learner.propose() == first
    for array, now in zip(before, kept(learner.engine.state), strict=True):
        np.testing.assert_array_equal(array, now)


@every_policy
@pytest.mark.parametrize("horizon", [500, None])
def test_one_by_one_and_in_a_batch_are_the_same_to_the_bit(case, horizon):
    rng = np.random.default_rng(3)
    graph = paper.G5.graph
    with np.errstate(all="raise"):
        one, many = (quietly(case.start, graph, 2, horizon=horizon) for _ in range(2))
    rows = []
    for _ in range(80):
        chosen = rng.choice(graph.controllable, size=rng.integers(3), replace=False)
        action = {str(name): 1 for name in chosen}
        rows.append((action, random_round(rng, graph, action, missing=0.1)))
    for action, observation in rows:
        one.update(action, observation)
    many.update_many(rows[:30])
    many.update_many(rows[30:])
    for left, right in zip(arrays_of(one.engine.state), arrays_of(many.engine.state), strict=True):
        np.testing.assert_array_equal(left, right)
    assert one.propose() == many.propose()
    assert one.rounds == many.rounds == 80


@every_policy
def test_a_batch_with_an_error_is_not_taken_in_at_all(case):
    learner = case.start(paper.G4.graph, 2)
    good = ({}, {"Y": 1})
    with pytest.raises(ObservationError):
        learner.update_many([good, ({}, {"Y": 2})])
    assert learner.rounds == 0


@every_policy
def test_choices_do_not_depend_on_questions_in_between(case):
    quiet, asked = (case.start(paper.G4.graph, 2) for _ in range(2))
    rng = np.random.default_rng(4)
    for _ in range(40):
        action = quiet.propose()
        assert asked.propose() == action
        asked.best()
        seen = random_round(rng, quiet.graph, action)
        for learner in (quiet, asked):
            learner.update(action, seen)


# -- never breaks ---------------------------------------------------------------------------------------------


def parallel(parents: int, **options):
    return CausalGraph([(f"P{i}", "Y") for i in range(parents)], target="Y", **options)


SITUATIONS = {
    "a parent that is never 1": (paper.G4.graph, 2, {"never": ["X2"]}),
    "nothing is ever 1": (paper.G4.graph, 2, {"never": ["X2", "X3", "X4", "X5", "Y"]}),
    "a node always intervened on": (paper.G5.graph, 2, {"always": {"X4": 1}}),
    "a node always set to 0": (paper.G5.graph, 1, {"always": {"X6": 0}}),
    "K = all": (paper.G4.graph, 4, {}),
    "K = 0": (paper.G4.graph, 0, {}),
    "one parent": (parallel(1), 1, {}),
    "one parent, no bias": (parallel(1, bias=[]), 1, {}),
    "missing values": (paper.G5.graph, 2, {"missing": 0.4}),
    "nothing is ever seen": (paper.G5.graph, 2, {"missing": 1.0}),
    "no parents and no bias": (CausalGraph([("a", "b"), ("b", "Y")], target="Y", bias=["b", "Y"]), 1, {}),
    "a chain": (CausalGraph([("a", "b"), ("b", "c"), ("c", "Y")], target="Y"), 2, {"missing": 0.1}),
}


@every_policy
@pytest.mark.parametrize("situation", SITUATIONS)
def test_no_situation_breaks_it(case, situation):
    graph, budget, options = SITUATIONS[situation]
    learner = case.start(graph, budget)
    always = options.get("always", {})
    if case.name in ("Fixed", "Oracle") and 0 in always.values():
        always = {}
    for _ in range(60):
        action = learner.propose()
        assert_sound(learner, action, budget)
        done = {name: value for name, value in action.items() if name not in always} | always
        rng = np.random.default_rng(learner.rounds)
        seen = random_round(rng, graph, done, options.get("missing", 0.0), options.get("never", ()))
        seen.update({name: value for name, value in done.items() if name in seen})
        learner.update(done, seen)
    best = learner.best()
    assert set(best.do) <= set(graph.controllable)
    if hasattr(learner.engine, "linear"):
        assert 0.0 <= best.interval.low <= best.interval.high <= 1.0
        assert best.interval.low - 1e-9 <= best.value <= best.interval.high + 1e-9
        for name in graph.nodes:
            estimate = learner.estimate(name)
            for weight in [*estimate.parents.values(), *([estimate.bias] if estimate.bias else [])]:
                assert not np.isnan([weight.value, weight.low, weight.high]).any()
                assert weight.low <= weight.high


@every_policy
def test_twenty_parents_do_not_break_it(case):
    graph = parallel(20)
    learner = case.start(graph, 2, horizon=200)
    play(learner, np.random.default_rng(5), 12)
    assert len(learner.best().do) == 2


@every_policy
def test_it_runs_without_a_horizon_and_beyond_it(case):
    for horizon in (None, 10):
        learner = case.start(paper.G4.graph, 2, horizon=horizon)
        play(learner, np.random.default_rng(6), 40)
        assert learner.rounds == 40


@pytest.mark.parametrize("case", CASES[7:10], ids=[case.name for case in CASES[7:10]])
def test_a_table_of_patterns_that_runs_out_grows(case):
    graph = parallel(12)
    grows, roomy = (case.start(graph, 1, horizon=horizon) for horizon in (5, 5000))
    rng = np.random.default_rng(7)
    for _ in range(600):
        seen = random_round(rng, graph, {})
        for learner in (grows, roomy):
            learner.update({}, seen)
    assert grows.engine.state.patterns.used.max() > 500
    np.testing.assert_allclose(grows.engine.theta(), roomy.engine.theta(), atol=1e-9)


@optimists
def test_data_on_foreign_interventions_are_welcome(case):
    """Sets to 0, sets larger than K, and settings of uncontrollable variables say something about the other nodes."""
    graph = CausalGraph([("a", "b"), ("b", "Y"), ("c", "Y")], target="Y", controllable=["a", "c"])
    learner = case.start(graph, 1)
    learner.update({"a": 0, "c": 1}, {"b": 1, "Y": 0})
    learner.update({"b": 1}, {"a": 0, "c": 1, "Y": 1})
    assert learner.estimate("b").rows == 1
    assert learner.estimate("a").rows == 1
    assert learner.estimate("Y").rows == 2
    assert_sound(learner, learner.propose(), 1)


@pytest.mark.parametrize("case", CASES[:7], ids=[case.name for case in CASES[:7]])
def test_continuous_observations_are_welcome_on_linear_models(case):
    model = LinearModel.of_weights({"a": 0.5, "b": 0.3, ("a", "b"): 0.4, ("a", "Y"): 0.3, ("b", "Y"): 0.6}, target="Y")
    learner = case.start(model.graph, 1, continuous=True)
    rng = np.random.default_rng(8)
    for _ in range(50):
        action = learner.propose()
        assert_sound(learner, action, 1)
        drawn = model.sample(action, 1, rng)
        learner.update(action, {name: float(values[0]) for name, values in drawn.items()})
    assert learner.estimate("Y").parents["a"].low <= 0.3 <= learner.estimate("Y").parents["a"].high


@pytest.mark.parametrize("case", CASES[:7], ids=[case.name for case in CASES[:7]])
def test_hidden_variables_are_removed_first(case):
    model = BinaryGLM.blm(
        {
            "U": 0.5,
            ("U", "a"): 0.4,
            ("U", "c"): 0.5,
            "a": 0.1,
            "b": 0.2,
            ("a", "b"): 0.5,
            ("b", "Y"): 0.5,
            ("c", "Y"): 0.4,
        },
        target="Y",
        latent=["U"],
    )
    learner = case.start(model.graph, 1)
    assert "U" not in learner.graph
    with pytest.raises(ObservationError, match="'U' is none"):
        learner.update({}, {"U": 1})
    rng = np.random.default_rng(9)
    for _ in range(30):
        action = learner.propose()
        assert_sound(learner, action, 1)
        learner.update(action, {name: int(values[0]) for name, values in model.sample(action, 1, rng).items()})


def test_policies_are_values():
    assert BLMLR(0.1) == BLMLR(radius_scale=0.1) != BLMLR(0.2)
    assert len({BLMLR(0.1), BLMLR(0.1), UCB(), UCB(1.0), Random(), Fixed(["a"]), Fixed(("a",))}) == 4
    with pytest.raises(AttributeError):
        BLMLR().radius_scale = 2.0
    assert copy.deepcopy(BGLMOFU(initial=7)) == BGLMOFU(initial=7)


def test_labels_follow_the_paper():
    learner = BGLMOFU(initial=1).start(paper.G1.graph, 3)
    assert learner.label == "BLM-OFU"
    assert BGLMOFU(initial=1, kappa=0.1).start(paper.G1.graph, 3, links=LOGISTIC).label == "BGLM-OFU"
    labels = [policy.label for policy in (BLMLR(), UCB(), UCB(0.1), EpsilonGreedy(0.01), Random(), Fixed(["X2"]))]
    assert labels == ["BLM-LR", "UCB", "UCB (0.1)", "eps-greedy (0.01)", "Random", "Fixed {X2}"]


# -- refusals -------------------------------------------------------------------------------------------------


@every_policy
@pytest.mark.parametrize(
    ("action", "observation", "error", "words"),
    [
        ({}, {"X99": 1}, ObservationError, "'X99' is none"),
        ({"X99": 1}, {}, InterventionError, "'X99' is none"),
        ({"X2": 1}, {"X2": 0}, ObservationError, "was set to 1"),
        ({}, {"Y": 2}, ObservationError, "0 or 1"),
        ({}, {"Y": 0.5}, ObservationError, "0 or 1"),
        ({}, {"Y": "1"}, ObservationError, "0 or 1"),
        ({}, {"Y": float("inf")}, ObservationError, "0 or 1"),
        ({"X2": 0.5}, {}, InterventionError, "0 or 1"),
        ("X2", {}, InterventionError, "list of names"),
    ],
)
def test_a_wrong_round_is_refused_and_not_taken_in(case, action, observation, error, words):
    learner = case.start(paper.G4.graph, 2)
    with pytest.raises(error, match=words):
        learner.update(action, observation)
    assert learner.rounds == 0
    assert not any(array.any() for array in kept(learner.engine.state)[-1:])


@every_policy
@pytest.mark.parametrize("missing", [None, float("nan"), np.float64("nan"), np.float32("nan")])
def test_none_and_nan_are_values_not_seen(case, missing):
    with_it, without = (case.start(paper.G4.graph, 2) for _ in range(2))
    with_it.update({}, {"X2": 1, "X3": missing, "Y": 1})
    without.update({}, {"X2": 1, "Y": 1})
    for left, right in zip(arrays_of(with_it.engine.state), arrays_of(without.engine.state), strict=True):
        np.testing.assert_array_equal(left, right)


@every_policy
@pytest.mark.parametrize("budget", [-1, 5, 1.5, True, "2", None])
def test_a_budget_out_of_range_is_refused(case, budget):
    rule = "needs a budget or a total cost" if budget is None else "from 0 to 4"
    with pytest.raises(InterventionError, match=rule):
        case.make(paper.G4.graph, 1).start(paper.G4.graph, budget, links=case.links)


@every_policy
@pytest.mark.parametrize(
    ("options", "words"), [({"horizon": 0}, "horizon"), ({"horizon": 1.5}, "horizon"), ({"seed": -1}, "seed")]
)
def test_a_wrong_horizon_or_seed_is_refused(case, options, words):
    with pytest.raises(PolicyError, match=words):
        case.start(paper.G4.graph, 2, **options)


INADMISSIBLE = CausalGraph([("U", "a"), ("U", "b"), ("a", "b"), ("b", "Y")], target="Y", latent=["U"])


@every_policy
def test_an_inadmissible_graph_is_refused_with_its_witness(case):
    if case.links is None:
        with pytest.raises(GraphError, match=r"(?s)'U'.*'a'.*'b'"):
            case.make(paper.G4.graph, 1).start(INADMISSIBLE, 1)


@pytest.mark.parametrize("policy", [BGLMOFU(initial=3), UCB(), Random()])
def test_hidden_variables_with_another_link_are_refused(policy):
    graph = CausalGraph([("U", "a"), ("U", "c"), ("a", "Y"), ("c", "Y")], target="Y", latent=["U"])
    with pytest.raises(ModelError, match="linear models only"):
        policy.start(graph, 1, links=LOGISTIC)
    with pytest.raises(ModelError, match="'Y' has the"):
        policy.start(graph, 1, links={"Y": "exponential"})


@pytest.mark.parametrize("policy", [BGLMOFU(initial=3), UCB()])
def test_continuous_variables_with_another_link_are_refused(policy):
    with pytest.raises(ModelError, match="continuous"):
        policy.start(paper.G4.graph, 1, links=LOGISTIC, continuous=True)


def test_blm_lr_is_for_linear_models():
    with pytest.raises(PolicyError, match="BGLMOFU"):
        BLMLR().start(paper.G4.graph, 2, links={"Y": LOGISTIC})


def test_an_initialisation_that_cannot_end_is_refused():
    with pytest.raises(PolicyError, match=r"lambda_min >= .* horizon is 500.*lambda_scale"):
        BGLMOFU().start(paper.G4.graph, 2, horizon=500, links=LOGISTIC)
    with pytest.warns(dob.errors.DobanditWarning, match="nothing will be set"):
        BGLMOFU().start(paper.G4.graph, 2, links=LOGISTIC)
    learner = BGLMOFU(lambda_scale=1e-9).start(paper.G4.graph, 2, horizon=500, links=LOGISTIC)
    assert learner.propose() == {}


def test_a_flat_link_needs_a_kappa():
    with pytest.raises(PolicyError, match="kappa"):
        BGLMOFU(initial=3).start(paper.G4.graph, 2, links=ARCTAN)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BLMLR(radius_scale=-1), "radius_scale"),
        (lambda: BLMLR(radius_scale=float("nan")), "radius_scale"),
        (lambda: BLMLR(radius_scale="1"), "radius_scale"),
        (lambda: BLMLR(region="box"), "Did you mean 'boxed'"),
        (lambda: BLMLR(radius="papr"), "Did you mean 'paper'"),
        (lambda: BGLMOFU(initial=-1), "initial"),
        (lambda: BGLMOFU(initial=True), "initial"),
        (lambda: BGLMOFU(initial="lambda"), "lambda-min"),
        (lambda: BGLMOFU(initial="formula"), "zeta"),
        (lambda: BGLMOFU(kappa=0.0), "kappa"),
        (lambda: BGLMOFU(samples=0), "samples"),
        (lambda: UCB(scale=-0.1), "scale"),
        (lambda: EpsilonGreedy(1.5), "epsilon"),
        (lambda: EpsilonGreedy(True), "epsilon"),
        (lambda: Fixed("X2"), "list of names"),
    ],
)
def test_wrong_settings_are_refused(make, words):
    with pytest.raises(PolicyError, match=words):
        make()


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, float("nan"), True])
@pytest.mark.parametrize("policy", [BLMLR, BGLMOFU])
def test_a_delta_that_is_no_probability_is_refused(policy, delta):
    with pytest.raises(ModelError, match="delta"):
        policy(delta=delta)


@pytest.mark.parametrize(
    ("names", "words"), [(["Y"], "'Y' is none"), (["X2", "X2"], "different"), (["X2", "X3", "X4"], "at most 2")]
)
def test_a_fixed_set_that_cannot_be_played_is_refused(names, words):
    with pytest.raises(InterventionError, match=words):
        Fixed(names).start(paper.G4.graph, 2)


def test_baselines_keep_no_model():
    learner = UCB().start(paper.G4.graph, 2)
    with pytest.raises(PolicyError, match="keeps no model"):
        learner.estimate("Y")
    with pytest.raises(InterventionError, match="exactly 2"):
        learner.interval({"X2": 1})


# -- when the initialisation ends -----------------------------------------------------------------------------


def test_the_formula_needs_as_many_rounds_as_it_says():
    learner = BGLMOFU(initial="formula", zeta=0.5).start(paper.G4.graph, 2, horizon=100)
    n, rounds = 6, learner.engine.plan.settings.initial
    assert rounds == (8 * n**2 - 16 * n + 2) / 0.5
    assert learner.propose() == {}


def test_lambda_min_ends_it_when_every_node_has_seen_enough():
    learner = BGLMOFU().start(parallel(2), 1, horizon=100)
    for values in itertools.product((0, 1), repeat=2):
        assert learner.propose() == {}
        learner.update({}, dict(zip(("P0", "P1"), values, strict=True)) | {"Y": 1})
    rows = np.array([[1, *values] for values in itertools.product((0, 1), repeat=2)], dtype=float)
    done = np.linalg.eigvalsh(rows.T @ rows)[0] >= 1.0
    assert bool(learner.propose()) == done
    for values in [(0, 0), (0, 1), (1, 0)] * 3:
        learner.update({}, dict(zip(("P0", "P1"), values, strict=True)) | {"Y": 1})
    assert len(learner.propose()) == 1
