"""Policies that do not learn, to measure the others by: always one set, a random set, and the best set of a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dobandit.errors import InterventionError, PolicyError, closest, listed
from dobandit.model.bglm import WeightedModel
from dobandit.oracle.solve import solve_problem
from dobandit.policy.arms import FIXED, RANDOM
from dobandit.policy.arms_engine import ArmsEngine
from dobandit.policy.base import Engine, Policy, Problem


@dataclass(frozen=True, init=False)
class Fixed(Policy):
    """Always set the same variables."""

    set: tuple[str, ...]

    def __init__(self, set: Iterable[str] = ()) -> None:  # noqa: A002 - the word that users see
        if isinstance(set, str):
            raise PolicyError(f"Fixed takes a list of names, but got the string {set!r}. Write [{set!r}].")
        if not isinstance(set, Iterable):
            raise PolicyError(f"Fixed takes a list of names, but got {set!r}.")
        object.__setattr__(self, "set", tuple(set))

    @property
    def label(self) -> str:
        return "Fixed {" + ", ".join(self.set) + "}"

    def engine(self, problem: Problem) -> Engine:
        graph = problem.graph
        for name in self.set:
            if name not in graph.controllable:
                raise InterventionError(
                    f"only controllable variables can be set, but {name!r} is none of {listed(graph.controllable)}."
                    + closest(name, graph.controllable)
                )
        if len(set(self.set)) != len(self.set) or len(self.set) > problem.budget:
            raise InterventionError(
                f"a set has at most {problem.budget} different variables (the budget), but got {listed(self.set)}."
            )
        rules = problem.rules
        if (
            not set(rules.required) <= set(self.set)
            or set(rules.forbidden) & set(self.set)
            or not rules.allows(self.set)
        ):
            raise InterventionError(
                f"the fixed set {listed(self.set)} breaks the costs or the other rules of the problem."
            )
        ids = np.array(sorted(graph.index(name) for name in self.set), dtype=np.int32)
        return ArmsEngine(problem, FIXED, 0.0, ids.reshape(1, -1))


@dataclass(frozen=True)
class Random(Policy):
    """A random set of exactly K variables every round."""

    @property
    def label(self) -> str:
        return "Random"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, RANDOM, 0.0)


@dataclass(frozen=True)
class Oracle(Policy):
    """Knows the model, and always plays its best set."""

    model: WeightedModel

    def __post_init__(self) -> None:
        if not isinstance(self.model, WeightedModel):
            raise PolicyError(f"the oracle knows a model, but got {type(self.model).__name__}.")

    @property
    def label(self) -> str:
        return "Oracle"

    def engine(self, problem: Problem) -> Engine:
        return Fixed(solve_problem(self.model, problem.rules).set).engine(problem)
