"""The insurance of CausalUCB(safe=True): its correction against numerical integration, what it refuses, and that own
outcomes win where the model cannot."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dobandit import BinaryGLM, CausalGraph, CausalUCB, TableModel, create_experiment, expect, simulate
from dobandit.errors import PolicyError
from dobandit.oracle.actions import NOTHING, Action
from dobandit.policy.engine import Pending, Rounds, Situation, no_context
from dobandit.policy.insurance import OFF, SPREAD, by_own_outcomes, deviation
from dobandit.policy.questions import best
from dobandit.policy.registry import policy_from_spec, policy_to_spec
from dobandit.policy.world import World

GRAPH = CausalGraph([("A", "M"), ("B", "M"), ("M", "Y")], "Y", controllable=["A", "B"])
SAFE = CausalUCB(safe=True)


def engine_on(graph=GRAPH, **more):
    return SAFE.start(graph, 1, seed=0, effects="any", **more).engine


def told(engine, action, reward, times=1):
    graph = engine.problem.graph
    values, was_set = np.ones((1, len(graph) + 1)), np.zeros((1, len(graph) + 1), dtype=bool)
    values[0, graph.arrays.target] = reward
    for v, to in zip(*action, strict=True):
        values[0, v], was_set[0, v] = to, True
    engine.update(Rounds(values, was_set, np.array([times])))


@pytest.mark.parametrize("seed", range(8))
def test_the_correction_is_the_posterior(seed):
    """P(d is not 0) and the mean and spread of d, by integration over d."""
    rng = np.random.default_rng(seed)
    m, y, error, n = rng.uniform(0.05, 0.95), rng.uniform(0.0, 1.0), rng.uniform(0.0, 0.1), float(rng.integers(1, 60))
    w, up = deviation(m, error, n, y, 2.0)
    pooled = (n * y + 1) / (n + 2)
    noise = max(m * (1 - m), pooled * (1 - pooled)) / n
    zero = norm.pdf(y, m, math.sqrt(noise + error**2))
    some = quad(lambda d: norm.pdf(d, 0, SPREAD) * norm.pdf(y, m + d, math.sqrt(noise + error**2)), -2, 2, limit=400)[0]
    chance = OFF * some / (OFF * some + (1 - OFF) * zero)
    assert w == pytest.approx(max((chance - OFF) / (1 - OFF), 0.0), abs=1e-6)
    weight = quad(lambda d: norm.pdf(d, 0, SPREAD) * norm.pdf(y, m + d, math.sqrt(noise)), -2, 2, limit=400)[0]
    moments = [
        quad(lambda d, k=k: d**k * norm.pdf(d, 0, SPREAD) * norm.pdf(y, m + d, math.sqrt(noise)), -2, 2, limit=400)[0]
        for k in (1, 2)
    ]
    mean, square = (moment / weight for moment in moments)
    assert up == pytest.approx(mean + 2 * math.sqrt(max(square - mean**2, 0.0)), abs=1e-4)


def test_about_a_root_of_the_rounds_are_left_to_own_outcomes():
    own, rng, count = engine_on().own, np.random.default_rng(0), 0
    for t in range(10_000):
        own.rounds[0] = t
        count += by_own_outcomes(own, rng.random())
    assert abs(count - 100) < 4 * math.sqrt(100)


def test_own_outcomes_correct_what_the_model_says():
    engine, context = engine_on(), no_context(len(GRAPH))
    a, b = (Action((GRAPH.index(name),), (1.0,)) for name in "AB")
    for action in (NOTHING, a, b):
        told(engine, action, 1.0, 60)
        told(engine, action, 0.0, 60)
    even = engine.predict(a, context).value
    told(engine, a, 1.0, 400)
    assert engine.predict(a, context).value > even + 0.2
    assert best(engine, Situation(np.ones(3), context)).action == a
    estimate = engine.predict(a, context)
    assert estimate.low <= estimate.value <= estimate.high


def test_what_is_under_way_is_no_reason_to_doubt_the_model():
    engine, now = engine_on(), Situation(np.array([0.3, 0.99, 0.5]), no_context(len(GRAPH)))
    a = Action((GRAPH.index("A"),), (1.0,))
    for action in (NOTHING, a):
        told(engine, action, 1.0, 30)
    pending = now._replace(pending=(Pending(a, now.context, 500),))
    before, after = (dict(engine.compare(each))[a] for each in (now, pending))
    assert after <= before + 1e-9
    index = dict(engine.compare(now._replace(available=(GRAPH.index("A"),))))
    assert set(index) == {NOTHING, a}
    assert index[a] == pytest.approx(before, abs=1e-12)


def test_contexts_have_outcomes_of_their_own():
    """In one context A does good, in the other harm: each is corrected by itself."""
    graph = CausalGraph([("A", "Y"), ("C", "Y")], "Y", controllable=["A"], context=["C"])
    world = TableModel(graph, {"A": np.array(0.5), "C": np.array(0.5), "Y": np.array([[0.5, 0.1], [0.2, 0.9]])})
    learner = SAFE.start(graph, 1, seed=0, effects="any")
    engine, place, rng = learner.engine, World(world, graph), np.random.default_rng(0)
    for _ in range(300):
        draws = rng.random(3)
        action = engine.choose(Situation(rng.random(3), place.context(draws))).action
        engine.update(place.play(action, draws))
    own = engine.own
    assert own.plays.shape[0] == 2
    nothing = [i for i in range(own.plays.shape[1]) if engine.listed.actions.row(i) == NOTHING]
    assert own.plays.sum() == 300
    assert own.rounds[0] == 300 - own.plays[:, nothing].sum()
    for value in (0.0, 1.0):
        best = learner.best(context={"C": value})
        truth = {0.0: expect(world, {"C": 0}), 1.0: expect(world, {"C": 1, "A": 1})}[value]
        assert best.value == pytest.approx(truth["Y"], abs=0.15)


def test_what_it_refuses():
    wide = CausalGraph([(f"X{i}", "Y") for i in range(40)], "Y")
    with pytest.raises(PolicyError, match=r"safe=True keeps the outcomes of every allowed action, up to 20,000"):
        SAFE.start(wide, 6, effects="any")
    many = CausalGraph(
        [(f"X{i}", "Y") for i in range(12)] + [(f"C{i}", "Y") for i in range(16)],
        "Y",
        context=[f"C{i}" for i in range(16)],
    )
    with pytest.raises(PolicyError, match=r"in every context, but \d+ actions and 16 context variables"):
        SAFE.start(many, 2, effects="any")
    with pytest.raises(PolicyError, match="they do not go together"):
        CausalUCB(safe=True, guarantee=True)
    with pytest.raises(PolicyError, match="safe"):
        CausalUCB(safe=1)
    assert policy_from_spec(policy_to_spec(SAFE)) == SAFE == policy_from_spec("causal-ucb:safe=true")


def test_it_says_which_rounds_are_insurance(tmp_path):
    storage = f"sqlite:///{tmp_path / 'log.db'}"
    experiment = create_experiment("spring", GRAPH, budget=1, policy=SAFE, seed=0, storage=storage)
    whys = []
    for _ in range(30):
        trial = experiment.ask()
        whys.append(trial.why)
        experiment.tell(trial.number, {"A": 1, "B": 1, "M": 1, "Y": 1} | {k: int(v) for k, v in trial.do.items()})
    assert any(why.startswith("an insurance round") for why in whys)
    assert any("estimate" in why for why in whys)


def test_a_lie_that_no_round_shows_is_found_out():
    """The graph says that B acts through M alone, where A does more, but B acts on Y directly; and by itself B is
    hardly ever 1, so that a learner which trusts the graph may never know."""
    true = CausalGraph([("A", "M"), ("B", "M"), ("M", "Y"), ("B", "Y")], "Y", controllable=["A", "B"])
    weights = {"A": 0.02, "B": 0.02, "M": 0.3, "Y": 0.1, ("A", "M"): 0.4, ("B", "M"): 0.05, ("M", "Y"): 0.4}
    world = BinaryGLM(true, weights | {("B", "Y"): 0.4})
    result = simulate(
        world, {"safe": SAFE}, 1_500, 6, 1, 0, workers=1, graph=GRAPH, links="auto", effects="any", record=[1000, 1500]
    )
    regret = result.regret("safe")
    missed = expect(world, {"B": 1})["Y"] - expect(world, {"A": 1})["Y"]
    assert np.median(regret[:, 1] - regret[:, 0]) < 0.25 * 500 * missed
