"""Every policy with effects that do harm, in contexts, and in situations that should break it."""

from __future__ import annotations

import copy
import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dobandit import (
    BGLMOFU,
    BLMLR,
    KLUCB,
    UCB,
    BinaryGLM,
    CausalGraph,
    EpsilonGreedy,
    Fixed,
    LinearModel,
    Random,
    paper,
)
from dobandit.errors import InterventionError, ObservationError, PolicyError
from helpers.some_policies import (
    CASES,
    LOGISTIC,
    assert_sound,
    counted_rows,
    every_policy,
    now,
    parallel,
    play,
    random_round,
)
from helpers.worlds import graphs, quietly, relaxed

optimists = pytest.mark.parametrize("case", CASES[:10], ids=[case.name for case in CASES[:10]])

# -- effects that do harm -------------------------------------------------------------------------------------

HARM = BinaryGLM(
    CausalGraph([("good", "Y"), ("bad", "Y")], target="Y"),
    {"good": 0.5, "bad": 0.5, "Y": 0.4, ("good", "Y"): 0.3, ("bad", "Y"): -0.3},
)


@pytest.mark.parametrize("policy", [UCB(0.3), KLUCB(), EpsilonGreedy(0.1)], ids=["UCB", "KL-UCB", "eps-greedy"])
def test_what_does_harm_is_left_alone(policy):
    """P(Y) = .4 + .3 good - .3 bad: two may be set, but good alone is best."""
    learner, rng, actions = policy.start(HARM.graph, 2, seed=0), np.random.default_rng(0), []
    for _ in range(3000):
        actions.append(learner.propose())
        drawn = HARM.sample(actions[-1], 1, rng)
        learner.update(actions[-1], {name: int(values[0]) for name, values in drawn.items()})
    assert {tuple(action) for action in actions} == {(), ("good",), ("bad",), ("bad", "good")}
    assert actions[1000:].count({"good": 1}) > 0.6 * 2000
    assert learner.best().do == {"good": 1}
    assert learner.best().interval.low <= 0.55 <= learner.best().interval.high


def test_with_levers_harm_is_switched_off():
    learner, rng = UCB(0.3).start(HARM.graph, 2, levers={"bad": (0, 1)}), np.random.default_rng(1)
    for _ in range(4000):
        action = learner.propose()
        drawn = HARM.sample(action, 1, rng)
        learner.update(action, {name: int(values[0]) for name, values in drawn.items()})
    assert learner.best().do == {"bad": 0, "good": 1}


@pytest.mark.parametrize("policy", [BLMLR(), BGLMOFU(initial=3)], ids=["BLM-LR", "BLM-OFU"])
def test_the_papers_policies_take_for_granted_that_nothing_does_harm(policy):
    assert policy.effects == "nonnegative"
    assert policy.start(HARM.graph, 2).problem.effects == "nonnegative"
    with pytest.raises(PolicyError, match="clipped=True"):
        policy.start(HARM.graph, 2, effects="any")
    clipped = dataclasses.replace(policy, clipped=True).start(HARM.graph, 2, effects="any")
    for _ in range(4):
        clipped.update(clipped.propose(), {"Y": 1})
    assert clipped.propose() == {"bad": 1, "good": 1}
    for other in (UCB(), KLUCB(), EpsilonGreedy(), Random(), Fixed(["good"])):
        assert other.start(HARM.graph, 2).problem.effects == "any"
    with pytest.raises(PolicyError, match="'nonnegative'"):
        policy.start(HARM.graph, 2, effects="positive")


# -- what is known before acting ------------------------------------------------------------------------------


@st.composite
def graphs_with_context(draw, most=6):
    """Roots and what only they cause may be context."""
    graph = draw(graphs(most=most))
    context, rng = [], np.random.default_rng(draw(st.integers(0, 999)))
    for name in graph.nodes:
        if name != graph.target and all(parent in context for parent in graph.parents(name)) and rng.random() < 0.6:
            context.append(name)
    free = [name for name in graph.controllable if name not in context]
    relevant = [name for name in free if graph.target in graph.descendants(name)]
    if not relevant:
        context, free = [], graph.controllable
    return quietly(CausalGraph, graph.edges, graph.target, (), free, graph.bias, graph.nodes, context=context)


@relaxed(max_examples=30)
@given(graphs_with_context(), st.data())
def test_blm_lr_in_a_context_is_the_recursion_where_known_means_are_what_they_are(graph, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 9999)))
    budget = data.draw(st.integers(0, min(3, len(graph.controllable))))
    zeros = [name for name in graph.controllable if rng.random() < 0.4]
    learner = BLMLR(radius_scale=0.3).start(graph, budget, horizon=500, levers=dict.fromkeys(zeros, (0, 1)))
    learner.engine.update(counted_rows(rng, graph, int(rng.integers(0, 30))))
    beliefs = learner.engine.beliefs()

    def optimistic(given):
        means = {}
        for name in graph.nodes:
            node = beliefs.node(graph.index(name))
            row = np.array([means[graph.nodes[p - 1]] if p else 1.0 for p in node.parents])
            spread = np.sqrt(max(row @ np.linalg.inv(node.gram) @ row, 0.0)) if len(row) else 0.0
            mean = row @ node.theta + node.radius * spread
            if zeros and name != graph.target:  # otherwise no set would beat a variable that is left alone
                mean = min(mean, 1.0)
            means[name] = given.get(name, mean)
        return float(means[graph.target])

    relevant = [name for name in graph.controllable if graph.target in graph.descendants(name)]
    choices = [
        dict(zip(names, values, strict=True))
        for k in range(min(budget, len(relevant)) + 1)
        for names in itertools.combinations(relevant, k)
        for values in itertools.product(*((0, 1) if name in zeros else (1,) for name in names))
    ]
    if not zeros:  # nothing does harm, and everything is set to 1: the largest sets
        choices = [do for do in choices if len(do) == min(budget, len(relevant))]
    for _ in range(3):
        context = {name: int(rng.integers(2)) for name in graph.context}
        truth = {tuple(do.items()): optimistic({**context, **do}) for do in choices}
        found = {tuple(a.named(graph).items()): v for a, v in learner.engine.compare(now(learner, context))}
        assert found.keys() == truth.keys()
        for key, value in found.items():
            assert value == pytest.approx(truth[key], rel=1e-8, abs=1e-8)
        chosen = learner.propose(context=context)
        assert truth[tuple(chosen.items())] >= max(truth.values()) - 1e-8 * max(1.0, abs(max(truth.values())))


@every_policy
def test_a_context_has_to_be_given_whole(case):
    graph = CausalGraph([("day", "a"), ("a", "Y"), ("b", "Y")], target="Y", context=["day"])
    learner = case.start(graph, 1)
    with pytest.raises(ObservationError, match="'day' is missing"):
        learner.propose()
    with pytest.raises(ObservationError, match="'a' is none"):
        learner.propose(context={"day": 1, "a": 1})
    with pytest.raises(ObservationError, match="0 or 1"):
        learner.propose(context={"day": 2})
    for day in (0, 1):
        assert set(learner.propose(context={"day": day})) <= {"a", "b"}
        assert set(learner.best(context={"day": day}).do) <= {"a", "b"}
    with pytest.raises(InterventionError):
        learner.propose(context={"day": 1}, available=["day"])


# -- never breaks ---------------------------------------------------------------------------------------------

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
    for _ in range(40):
        action = learner.propose()
        assert_sound(learner, action, budget)
        done = {name: value for name, value in action.items() if name not in always} | always
        rng = np.random.default_rng(learner.rounds)
        seen = random_round(rng, graph, done, options.get("missing", 0.0), options.get("never", ()))
        seen.update({name: value for name, value in done.items() if name in seen})
        learner.update(done, seen)
    best = learner.best()
    assert set(best.do) <= set(graph.controllable)
    if learner.keeps_model:
        assert 0.0 <= best.interval.low <= best.interval.high <= 1.0
        assert best.interval.low - 1e-9 <= best.value <= best.interval.high + 1e-9
        for name in graph.nodes:
            estimate = learner.estimate(name)
            for weight in [*estimate.parents.values(), *([estimate.bias] if estimate.bias else [])]:
                assert not np.isnan([weight.value, weight.low, weight.high]).any()
                assert weight.low <= weight.high


@every_policy
def test_twenty_parents_do_not_break_it(case):
    patterns = case.name.startswith("BGLMOFU") and case.links is not None  # looks at every pattern of the causes
    if patterns:
        with pytest.raises(PolicyError, match="up to 12 causes"):
            case.start(parallel(20), 2, horizon=200, effects="nonnegative")
    graph = parallel(12 if patterns else 20)
    learner = case.start(graph, 2, horizon=200, effects="nonnegative")
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
    assert np.count_nonzero(grows.engine.state.cells["seen"]) > 500
    np.testing.assert_allclose(grows.engine.beliefs().theta, roomy.engine.beliefs().theta, atol=1e-9)


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
    policies = (BLMLR(), UCB(), UCB(0.1), KLUCB(), KLUCB(3), EpsilonGreedy(0.01), Random(), Fixed(["X2"]))
    labels = [policy.label for policy in policies]
    assert labels == ["BLM-LR", "UCB", "UCB (0.1)", "KL-UCB", "KL-UCB (3)", "eps-greedy (0.01)", "Random", "Fixed {X2}"]
