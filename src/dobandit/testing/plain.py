"""A policy as it is, but for its compiled simulation: what `PolicySuite` compares that with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dobandit.oracle.actions import Action, Actions
from dobandit.policy.base import Policy
from dobandit.policy.engine import Array, Choice, Engine, Estimate, Rounds, Situation
from dobandit.policy.problem import Problem


@dataclass(frozen=True)
class Plain(Policy):
    """A policy whose engine runs simulations by the plain loop."""

    policy: Policy

    @property
    def label(self) -> str:
        return f"plain {self.policy.label}"

    def engine(self, problem: Problem) -> Engine:
        return PlainEngine(self.policy.engine(problem))


class PlainEngine(Engine):
    """Asks another engine everything, and leaves `run` as it stands."""

    def __init__(self, inner: Engine) -> None:
        self.inner, self.problem, self.draws = inner, inner.problem, inner.draws

    def choose(self, now: Situation) -> Choice:
        return self.inner.choose(now)

    def update(self, rounds: Rounds) -> None:
        self.inner.update(rounds)

    def predict(self, action: Action, context: Array) -> Estimate:
        return self.inner.predict(action, context)

    def best(self, now: Situation) -> Choice:
        return self.inner.best(now)

    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        return self.inner.compared(now)

    @property
    def rounds(self) -> int:
        return self.inner.rounds

    def actions(self) -> Actions | None:
        return self.inner.actions()

    def copy(self) -> PlainEngine:
        return PlainEngine(self.inner.copy())
