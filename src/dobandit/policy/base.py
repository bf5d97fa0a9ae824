"""What every policy offers: a frozen configuration whose `start` gives a learner for one problem.

An engine is the compiled half of a learner: a plan (fixed), a state (named tuple of arrays), and `propose` and
`update` on them. The simulator takes engines; people take learners.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import GraphError, ModelError, PolicyError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.latent import project_graph
from dobandit.model.bglm import LinkLike, links_by_node
from dobandit.model.links import Link, identity
from dobandit.oracle.problem import Problem as Rules
from dobandit.oracle.problem import rules_of

if TYPE_CHECKING:
    from dobandit.policy.learner import Learner

UNIFORMS = 3  # random numbers a policy may use in a round: tie-breaking, whether to explore, where
Links = LinkLike | Mapping[str, LinkLike] | None


@dataclass(frozen=True)
class Problem:
    """What a policy is started on: a Markovian graph (hidden variables already removed) and the rules of the game."""

    graph: CausalGraph
    rules: Rules
    horizon: int | None
    seed: int
    links: tuple[Link, ...]
    continuous: bool

    @cached_property
    def is_linear(self) -> bool:
        return all(link == identity for link in self.links)

    @property
    def budget(self) -> int:
        """The most variables that a set can hold."""
        return len(self.graph.controllable) if self.rules.budget is None else self.rules.budget

    def required_ids(self) -> list[int]:
        return sorted(self.graph.index(name) for name in self.rules.required)


class Interval(NamedTuple):
    low: float
    high: float


class Choice(NamedTuple):
    """The ids to set, and the value that made the policy choose them (NaN: nothing was compared).

    proved: no set has a larger value; False where a search stopped early, or for greedy
    """

    ids: list[int]
    value: float
    proved: bool = True


class Engine(ABC):
    """A policy at work on one problem."""

    problem: Problem
    sets: NDArray[np.int32]  # (count, size) ids, 0 for none; a simulator's name for a set is its row, -1 for no set
    plan: Any
    state: Any

    @abstractmethod
    def choose(
        self,
        uniforms: NDArray[np.float64],
        available: tuple[str, ...] | None = None,
        pending: Sequence[Sequence[int]] = (),
    ) -> Choice:
        """What to set next; changes nothing.

        available  the variables that can be set now (None: all that the rules allow)
        pending    sets that are being tried now: what they are expected to teach counts as known
        """

    @abstractmethod
    def update(self, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        """Take a round in: values by id (NaN: not seen) and which ids were set."""

    @abstractmethod
    def update_many(self, values: NDArray[np.float64], was_set: NDArray[np.bool_]) -> None:
        """Take rounds in, one a row, exactly as one by one."""

    def copy(self) -> Self:
        """One that knows the same, and learns by itself from now on."""
        twin = copy.copy(self)
        twin.state = copied(self.state)
        return twin

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Rounds taken in so far."""


@dataclass(frozen=True)
class Policy(ABC):
    """Base of the policies."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The name in tables and figures."""

    def label_on(self, graph: CausalGraph, links: tuple[Link, ...]) -> str:
        """The name on a given problem."""
        return self.label

    @abstractmethod
    def engine(self, problem: Problem) -> Engine:
        """Get to work on a problem."""

    def start(
        self,
        graph: CausalGraph,
        budget: int | None,
        horizon: int | None = None,
        seed: int = 0,
        links: Links = None,
        continuous: bool = False,
        *,
        costs: Mapping[str, float] | None = None,
        total_cost: float | None = None,
        require: Iterable[str] = (),
        forbid: Iterable[str] = (),
        exclusive: Iterable[Iterable[str]] = (),
    ) -> Learner:
        """A learner on `graph` that sets at most `budget` variables a round.

        horizon     how many rounds there will be, if that is known: the confidence levels are tuned to it
        links       one link for all nodes, or by node; identity by default
        continuous  whether observations are numbers from 0 to 1 rather than 0 or 1
        costs, total_cost, require, forbid, exclusive: which sets are allowed, as in `solve`
        """
        from dobandit.policy.learner import Learner

        rules = rules_of(budget, costs, total_cost, require, forbid, exclusive)
        return Learner(self, problem_of(graph, rules, horizon, seed, links, continuous))


def problem_of(
    graph: CausalGraph,
    rules: Rules | int,
    horizon: int | None = None,
    seed: int = 0,
    links: Links = None,
    continuous: bool = False,
) -> Problem:
    """Check the rules of the game (or a mere budget) once, and remove hidden variables."""
    if not isinstance(graph, CausalGraph):
        raise GraphError(
            f"the graph must be a CausalGraph, but got {type(graph).__name__}. Pass model.graph, or read one with "
            "read_graph or from_networkx."
        )
    by_node = links_by_node(graph, links)
    nonlinear = [name for name, link in zip(graph.nodes, by_node, strict=True) if link != identity]
    if nonlinear and graph.latent:
        raise ModelError(
            f"hidden variables are handled in linear models only, but {nonlinear[0]!r} has the "
            f"{by_node[graph.index(nonlinear[0]) - 1].name} link. Use identity links, or observe every variable."
        )
    if nonlinear and continuous:
        raise ModelError(f"a continuous model is linear, but {nonlinear[0]!r} has another link. Use identity links.")
    if horizon is not None and (isinstance(horizon, bool) or not hasattr(horizon, "__index__") or horizon < 1):
        raise PolicyError(f"horizon must be a whole number from 1, or None if it is not known, but got {horizon!r}.")
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or seed < 0:
        raise PolicyError(f"seed must be a whole number from 0, but got {seed!r}.")
    rules = rules if isinstance(rules, Rules) else Rules(rules)
    rules.candidates(graph)  # raises where no set is allowed
    projected = project_graph(graph)
    if graph.latent:
        by_node = (identity,) * len(projected)
    known = None if horizon is None else int(horizon)
    return Problem(projected, rules, known, int(seed), by_node, bool(continuous))


def positive(name: str, value: object, *, zero: bool = False, most: float = float("inf")) -> float:
    """`value` as a finite float above 0 (or from 0), at most `most`."""
    ok = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not ok or not (0 if zero else 1e-300) <= float(value) <= min(most, 1e300):  # type: ignore[arg-type]
        rule = f"a number {'from' if zero else 'above'} 0" + (f" up to {most:g}" if most < float("inf") else "")
        raise PolicyError(f"{name} must be {rule}, but got {value!r}.")
    return float(value)  # type: ignore[arg-type]


def round_uniforms(seed: int, number: int) -> NDArray[np.float64]:
    """The random numbers of round `number` (from 0): a function of the seed and the number alone."""
    return np.random.default_rng([seed, number]).random(UNIFORMS)


def copied(state: Any) -> Any:
    """A state's named tuples with copies of their arrays."""
    if isinstance(state, np.ndarray):
        return state.copy()
    return type(state)(*map(copied, state)) if isinstance(state, tuple) else state
