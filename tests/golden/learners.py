"""Every policy on every problem that the library ships: 30 rounds of its own, and a fixed log up to 300 rounds."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import dobandit as dob
from dobandit.testing.problems import CASES, Case
from golden.comparing import action_text, choices, plain
from golden.worlds import World, world_of

SEED, OWN, ALL = 11, 30, 300
POLICIES: dict[str, Any] = {
    "blm-lr": dob.BLMLR(radius_scale=0.1),
    "blm-lr lemma": dob.BLMLR(radius="lemma", delta=0.05),
    "blm-lr boxed": dob.BLMLR(radius_scale=0.3, region="boxed", oracle="exhaustive"),
    "blm-lr clipped": dob.BLMLR(radius_scale=0.1, clipped=True),
    "bglm-ofu": dob.BGLMOFU(radius_scale=0.1, initial=10),
    "bglm-ofu lambda-min": dob.BGLMOFU(radius_scale=0.05, lambda_scale=0.0),
    "bglm-ofu boxed": dob.BGLMOFU(radius_scale=0.1, initial=10, region="boxed", oracle="exhaustive"),
    "bglm-ofu clipped": dob.BGLMOFU(radius_scale=0.1, initial=10, clipped=True),
    "ucb": dob.UCB(),
    "ucb pruned": dob.UCB(scale=0.3, prune=True),
    "kl-ucb": dob.KLUCB(),
    "kl-ucb pruned": dob.KLUCB(c=3.0, prune=True),
    "eps-greedy": dob.EpsilonGreedy(0.1),
    "eps-greedy pruned": dob.EpsilonGreedy(0.3, prune=True),
    "causal-ucb": dob.CausalUCB(),
    "causal-ucb guarantee": dob.CausalUCB(guarantee=True),
    "causal-ucb guarantee leeway": dob.CausalUCB(guarantee=True, leeway=0.0),
    "causal-ucb safe": dob.CausalUCB(safe=True),
    "causal-ts": dob.CausalTS(),
    "best-set": dob.BestSet(epsilon=0.1),
    "lucb": dob.LUCB(epsilon=0.1),
    "lucb pruned": dob.LUCB(epsilon=0.1, prune=True),
    "random": dob.Random(),
    "fixed": dob.Fixed(["X1"]),
}
# Policies with a special setting are played on these problems only; the others on all of them.
_FEW = ("nonnegative", "signed levers", "costs and groups", "context", "hidden", "continuous")
_SETTINGS = ("lemma", "boxed", "clipped", "lambda-min", "pruned", "leeway")
# Shipped problems promise their links; these are played with learned links too.
_LEARNED = ("nonnegative", "signed levers", "costs and groups", "signed context", "hidden")
_LEARNERS = ("causal-ucb", "causal-ucb guarantee", "causal-ucb safe", "causal-ts", "best-set")


def cases() -> dict[str, Callable[[], dict[str, Any]]]:
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for case in CASES:
        for name in POLICIES:
            if case.name in _FEW or not name.endswith(_SETTINGS):
                found[f"{name} on {case.name}"] = lambda case=case, name=name: played(case, POLICIES[name])
        if case.name in _LEARNED:
            for name in _LEARNERS:
                found[f"{name} on {case.name}, learned links"] = lambda case=case, name=name: played(
                    case, POLICIES[name], learned=True
                )
        found[f"oracle on {case.name}"] = lambda case=case: played(case, dob.Oracle(case.model))
    return found


def played(case: Case, policy: Any, learned: bool = False) -> dict[str, Any]:
    """A policy on a problem: what it chooses, and what it answers after 0, 30 and 300 rounds; or which error it is."""
    model = case.model
    links = "auto" if learned else {name: model.link(name) for name in model.graph.nodes}
    effects = "nonnegative" if model.nonnegative and not learned else "any"
    try:
        learner = policy.start(model.graph, case.rules, case.horizon, 7, links, model.continuous, effects)
    except dob.errors.DobanditError as error:
        return {"refused": type(error).__name__}
    world, chosen = _world(case.name), []
    found = {"after 0": answers(learner, dict.fromkeys(learner.graph.context, 1))}
    for number in range(OWN):
        context = world.context(SEED, number)
        chosen.append(learner.propose(context=context))
        learner.update(chosen[-1], world.round(SEED, number, {**chosen[-1], **context}))
    context = dict.fromkeys(learner.graph.context, 0)
    found |= {"choices": choices(chosen), f"after {OWN}": answers(learner, context)}
    learner.update_many(_rest(case.name))
    found[f"after {ALL}"] = answers(learner, context)
    if learner.keeps_model:
        found["target"] = target_estimate(learner)
    found["asked"] = situations(learner, case.rules, context)
    return found


@cache
def _world(name: str) -> World:
    return world_of(next(case.model for case in CASES if case.name == name))


@cache
def _rest(name: str) -> list[tuple[dict[str, float], dict[str, float]]]:
    """The log that follows a policy's own rounds: the same for all policies."""
    rules = next(case.rules for case in CASES if case.name == name)
    return fixed_log(_world(name), rules, range(OWN, ALL))


def answers(learner: dob.Learner, context: dict[str, float]) -> dict[str, Any]:
    """What looks best, in numbers."""
    told = learner.assess(context=context)
    numbers = {name: getattr(told, name) for name in ("value", "interval", "probability_best", "expected_loss", "gap")}
    numbers["nothing"] = told.nothing
    return {"do": action_text(told.do), **plain({name: one for name, one in numbers.items() if one is not None})}


def target_estimate(learner: dob.Learner) -> dict[str, Any]:
    """What is known of the target's mechanism."""
    node = learner.estimate(learner.graph.target)
    weights = {"": node.bias, **node.parents}
    found = {name: [weight.value, weight.low, weight.high] for name, weight in weights.items() if weight is not None}
    return plain({"rows": node.rows, "status": node.status, "radius": node.radius, "weights": found})


def situations(learner: dob.Learner, rules: dob.Rules, context: dict[str, float]) -> dict[str, Any]:
    """What it chooses where fewer variables are available, and with trials under way."""
    first = learner.propose(context=context)
    levers = [name for name in learner.graph.controllable if name not in rules.forbid]
    asked = {"now": first, "with one pending": learner.propose(context=context, pending=[first])}
    try:
        asked["without the last"] = learner.propose(context=context, available=levers[:-1])
    except dob.errors.DobanditError as error:
        return {**{name: action_text(do) for name, do in asked.items()}, "without the last": type(error).__name__}
    return {name: action_text(do) for name, do in asked.items()}


def fixed_log(world: World, rules: dob.Rules, numbers: range) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Rounds with random actions of at most two variables, which no policy has a part in."""
    rows, levers = [], world.graph.controllable
    for number in numbers:
        rng = np.random.default_rng([SEED, number, 1])
        names = [levers[i] for i in sorted(rng.permutation(len(levers))[: rng.integers(0, 3)].tolist())]
        do = {name: float(rng.choice(rules.values_of(name))) for name in names}
        rows.append((do, world.round(SEED, number, {**do, **world.context(SEED, number)})))
    return rows
