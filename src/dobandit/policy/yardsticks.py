"""Policies that do not learn, to measure the others by: always one action, a random one, and the best of a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import listable, shown
from dobandit.errors import InterventionError, PolicyError, closest, listed
from dobandit.kernels import kernel
from dobandit.model.causal_model import CausalModel
from dobandit.model.inference import expect
from dobandit.oracle.actions import Action, action_named, actions_of
from dobandit.oracle.solve import solve
from dobandit.policy.arms import ArmsEngine, any_arm
from dobandit.policy.base import Policy
from dobandit.policy.engine import Choice, Engine, Estimate, Rounds, Situation
from dobandit.policy.problem import Problem


@dataclass(frozen=True, init=False)
class Fixed(Policy):
    """Always set the same variables: what an action of yours would bring, beside what a policy does.

    set     a list of names that are set to 1, or a mapping from names to values
    values  what each is set to, where that is not 1

    >>> import dobandit as dob
    >>> dob.Fixed(["X3", "X4"]).start(dob.paper.G1.graph, budget=3).propose()
    {'X3': 1, 'X4': 1}
    """

    name: ClassVar[str] = "fixed"
    any_graph: ClassVar[bool] = True

    set: tuple[str, ...] = ()
    values: tuple[float, ...] = ()

    def __init__(
        self,
        set: Iterable[str] | Mapping[str, float] = (),  # noqa: A002 - the word that users see
        values: Iterable[float] = (),
    ) -> None:
        if isinstance(set, str):
            raise PolicyError(f"Fixed takes a list of names, but got the string {set!r}. Write [{set!r}].")
        names = listable(set)
        if names is None:
            raise PolicyError(f"Fixed takes a list of names, but got {shown(set)}.")
        to = list(set.values()) if isinstance(set, Mapping) else listable(values)
        if to is None or (to and len(to) != len(names)):
            raise PolicyError(
                f"Fixed sets each of its variables to one value, but got {shown(set)} and {shown(values)}."
            )
        object.__setattr__(self, "set", tuple(names))
        object.__setattr__(self, "values", tuple(to) if any(value != 1 for value in to) else ())

    @property
    def do(self) -> dict[str, float]:
        """What it sets, and to what."""
        return dict(zip(self.set, self.values or (1,) * len(self.set), strict=True))

    @property
    def label(self) -> str:
        parts = [name if value == 1 else f"{name}={value:g}" for name, value in self.do.items()]
        return "Fixed {" + ", ".join(parts) + "}"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, random_arm, (), actions_of([self._checked(problem)]))

    def _checked(self, problem: Problem) -> Action:
        graph, rules = problem.graph, problem.rules
        for name, value in self.do.items():
            if name not in graph.controllable:
                raise InterventionError(
                    f"only controllable variables can be set, but {name!r} is none of {listed(graph.controllable)}."
                    + closest(name, graph.controllable)
                )
            if value not in rules.values_of(name):
                raise InterventionError(
                    f"{name!r} may be set to {', '.join(f'{v:g}' for v in rules.values_of(name))}, but the fixed "
                    f"action sets it to {value!r}. Give it that lever, or change the action."
                )
        if len({*self.set}) != len(self.set) or len(self.set) > problem.budget:
            raise InterventionError(
                f"a set has at most {problem.budget} different variables (the budget), but got {listed(self.set)}."
            )
        if not {*rules.require} <= {*self.set} or {*rules.forbid} & {*self.set} or not rules.allows(self.set):
            raise InterventionError(
                f"the fixed set {listed(self.set)} breaks the costs or the other rules of the problem."
            )
        return action_named(self.do, graph)


@kernel
def random_arm(plays: Any, total: Any, index: Any, settings: Any, t: int, draws: Any) -> int:
    return any_arm(index, draws[0])


@dataclass(frozen=True)
class Random(Policy):
    """A random allowed action every round: of exactly K variables where no effect does harm.

    >>> import dobandit as dob
    >>> len(dob.Random().start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    3
    """

    name: ClassVar[str] = "random"
    any_graph: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return "Random"

    def engine(self, problem: Problem) -> Engine:
        return ArmsEngine(problem, random_arm, ())


@dataclass(frozen=True)
class Oracle(Policy):
    """Knows the model, and always plays its best action (in each context).

    model  what is true

    >>> import dobandit as dob
    >>> sorted(dob.Oracle(dob.paper.G1).start(dob.paper.G1.graph, budget=3, effects="nonnegative").propose())
    ['X3', 'X4', 'X5']
    """

    name: ClassVar[str] = "oracle"
    any_graph: ClassVar[bool] = True

    model: CausalModel

    def __post_init__(self) -> None:
        if not isinstance(self.model, CausalModel):
            raise PolicyError(f"the oracle knows a model, but got {type(self.model).__name__}.")

    def settings(self) -> dict[str, Any]:
        """None: a study that holds it holds the model too."""
        return {}

    @property
    def label(self) -> str:
        return "Oracle"

    def engine(self, problem: Problem) -> Engine:
        if problem.graph.context:
            return OracleEngine(self.model, problem)
        return Fixed(solve(self.model, problem.rules, time_limit=None).do).engine(problem)


class OracleEngine(Engine):
    """Solves the model of each context once."""

    rounds = 0

    def __init__(self, model: CausalModel, problem: Problem) -> None:
        self.model, self.problem = model, problem
        self._best: dict[bytes, Choice] = {}

    def _known(self, context: NDArray[np.float64]) -> dict[str, float]:
        graph = self.problem.graph
        return {name: float(context[graph.index(name)]) for name in graph.context}

    def choose(self, now: Situation) -> Choice:
        rules, graph = self.problem.rules, self.problem.graph
        if now.available is not None:
            rules = rules.limited(graph.nodes[v - 1] for v in now.available)
        key = now.context.tobytes() + repr(now.available).encode()
        if key not in self._best:
            found = solve(self.model.knowing(self._known(now.context)), rules, time_limit=None)
            self._best[key] = Choice(action_named(found.do, graph), math.nan)
        return self._best[key]

    def compare(self, now: Situation, optimistic: bool = True) -> Sequence[tuple[Action, float]]:
        return [] if optimistic else [(self.choose(now).action, math.nan)]

    def predict(self, action: Action, context: NDArray[np.float64]) -> Estimate:
        known = {**self._known(context), **action.named(self.problem.graph)}
        value = expect(self.model, known).value
        return Estimate(value, value, value)

    @property
    def interval_words(self) -> str:
        return "known, not estimated"

    def update(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        self.rounds += int(rounds.counts.sum())
