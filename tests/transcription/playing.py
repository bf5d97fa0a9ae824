"""Playing a world, and regret, Eq. (1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dobandit.model.bglm import WeightedModel
from dobandit.model.links import identity
from transcription.shared import Array, Learner, Set, Values


def conditional_mean(model: WeightedModel, name: str, values: Values) -> float:
    """f_X(theta_X . parents): P(X = 1 | parents), or the mean of X in a continuous model."""
    bias, weights = model.parent_weights(name)
    x = bias
    for parent, weight in weights.items():
        x += weight * float(values[parent])
    return min(1.0, max(0.0, float(model.link(name).value(x))))


def set_to(S: Set | Mapping[str, float], name: str) -> float:
    """What a variable of S is set to: 1 in the paper."""
    return float(S[name]) if isinstance(S, Mapping) else 1.0


def draw_world(model: WeightedModel, S: Set | Mapping[str, float], uniforms: Sequence[float]) -> dict[str, float]:
    """One world under do(S = 1), or under do(S) where S says to what.

    uniforms[i] belongs to graph.nodes[i], also when that node is set.

    A binary model's noise on the probability leaves P(X = 1 | parents) as it is, so it has no part here.
    """
    graph = model.graph
    values: dict[str, float] = {}
    for i, name in enumerate(graph.nodes):
        if name in S:
            values[name] = set_to(S, name)
            continue
        m = conditional_mean(model, name, values)
        if model.continuous:
            noise = float(model.noise[graph.index(name)])
            values[name] = m + (2.0 * uniforms[i] - 1.0) * noise * min(m, 1.0 - m)
        else:
            values[name] = 1.0 if uniforms[i] < m else 0.0
    return values


class Played(NamedTuple):
    sets: list[Set]
    rewards: list[float]


def play(
    model: WeightedModel,
    learner: Learner,
    rounds: int,
    world_uniforms: Array,  # (rounds, nodes)
    policy_uniforms: Array,  # (rounds, 3)
) -> Played:
    """`rounds` rounds of propose, draw, update."""
    sets, rewards = [], []
    for t in range(rounds):
        S = learner.propose(policy_uniforms[t])
        observation = draw_world(model, S, world_uniforms[t])
        learner.update(S, observation)
        sets.append(S)
        rewards.append(observation[model.graph.target])
    return Played(sets, rewards)


def expected_reward(model: WeightedModel, S: Set | Mapping[str, float]) -> float:
    """E[Y | do(S)]: means pass through linear models; otherwise the sum over all worlds."""
    graph = model.graph
    if all(model.link(name) == identity for name in graph.nodes):
        mean: dict[str, float] = {}
        for name in graph.nodes:
            mean[name] = set_to(S, name) if name in S else conditional_mean(model, name, mean)
        return mean[graph.target]
    total = []
    for bits in itertools.product((0, 1), repeat=len(graph.nodes)):
        world = dict(zip(graph.nodes, bits, strict=True))
        probability = 1.0
        for name in graph.nodes:
            p = set_to(S, name) if name in S else conditional_mean(model, name, world)
            probability *= p if world[name] else 1.0 - p
        total.append(probability * world[graph.target])
    return math.fsum(total)


def best_reward(model: WeightedModel, budget: int) -> float:
    """max of E[Y | do(S)] over every S of at most K controllable variables."""
    sizes = range(min(budget, len(model.graph.controllable)) + 1)
    return max(expected_reward(model, S) for k in sizes for S in itertools.combinations(model.graph.controllable, k))


def expected_regret(model: WeightedModel, budget: int, sets: Sequence[Set]) -> Array:
    """Each round's best_reward - E[Y | do(S_t)]; its sum is R(T) of Eq. (1)."""
    best = best_reward(model, budget)
    reward = {S: expected_reward(model, S) for S in set(sets)}
    return np.array([best - reward[S] for S in sets])
