"""A policy as a stranger would write it: plain Python, only what the protocol asks for, no compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaincinv

from dobandit.policy.base import Policy
from dobandit.policy.engine import Action, Choice, Engine, Estimate


@dataclass(frozen=True)
class ThompsonArms(Policy):
    """Thompson sampling with one Beta distribution per allowed action, which starts as Beta(prior, prior)."""

    name: ClassVar[str] = "thompson-arms"

    prior: float = 1.0

    @property
    def label(self):
        return "Thompson arms"

    def engine(self, problem):
        return ThompsonEngine(problem, self.prior)


class ThompsonEngine(Engine):
    draws = 1
    rounds = 0

    def __init__(self, problem, prior):
        self.problem, self.prior = problem, prior
        self.seen = {}  # action: (rounds, sum of Y)
        self.arms = {}  # by what can be set: the allowed actions

    def _arms(self, available):
        if available not in self.arms:
            rows = self.problem.allowed(available, relevant=False).rows()
            self.arms[available] = [rows.row(i) for i in range(len(rows.ids))]
        return self.arms[available]

    def _beta(self, action, pending=()):
        rounds, total = self.seen.get(action, (0, 0.0))
        mean = total / rounds if rounds else 0.5
        expected = sum(one.size for one in pending if one.action == action)
        rounds, total = rounds + expected, total + expected * mean
        return self.prior + total, self.prior + rounds - total

    def choose(self, now):
        action, value = max(self.compare(now), key=lambda pair: pair[1])
        return Choice(action, value)

    def compare(self, now, optimistic=True):
        arms = self._arms(now.available)
        if not optimistic:
            return [(arm, self.predict(arm, now.context).value) for arm in arms]
        levels = np.random.default_rng(int(now.draws[0] * 2**53)).random(len(arms))
        shapes = [self._beta(arm, now.pending) for arm in arms]
        return [(arm, float(betaincinv(a, b, u))) for arm, (a, b), u in zip(arms, shapes, levels, strict=True)]

    def predict(self, action, context):
        a, b = self._beta(action)
        return Estimate(a / (a + b), *(float(betaincinv(a, b, end)) for end in (0.001, 0.999)))

    def update(self, rounds, sizes=None):
        target = self.problem.graph.arrays.target
        for values, was_set, count in zip(*rounds, strict=True):
            self.rounds += int(count)
            if np.isnan(values[target]):
                continue
            ids = np.flatnonzero(was_set).tolist()
            action = Action(tuple(ids), tuple(values[ids].tolist()))
            played, total = self.seen.get(action, (0, 0.0))
            self.seen[action] = played + int(count), total + int(count) * float(values[target])
