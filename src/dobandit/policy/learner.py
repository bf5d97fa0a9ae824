"""Learner: a policy at work, in the user's words: propose, update, and questions about what it has learned."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import InterventionError, ObservationError, PolicyError, closest, listed
from dobandit.estimation.confidence import hoeffding
from dobandit.model.weights import Do, fixed_values
from dobandit.oracle.problem import rules_of
from dobandit.policy.arms_engine import ArmsEngine
from dobandit.policy.base import Interval, Policy, Problem, round_uniforms
from dobandit.policy.intervals import target_interval
from dobandit.policy.optimist_engine import OptimistEngine

Observation = Mapping[str, float]


class WeightEstimate(NamedTuple):
    """A weight's estimate with its confidence interval, cut to the weights that the link allows."""

    value: float
    low: float
    high: float


class NodeEstimate(NamedTuple):
    """What is known of a node: the weight of each parent and of the constant (bias; None where it has none).

    status: "solved", "singular" (some combination of parents was never seen) or "separable" (the data alone would ask
    for infinite weights). radius: rho, of {theta: ||theta - estimate||_M <= rho}.
    """

    parents: dict[str, WeightEstimate]
    bias: WeightEstimate | None
    rows: int
    status: str
    radius: float


class Recommendation(NamedTuple):
    """The set that looks best under the estimate, without optimism, with its value and interval."""

    do: dict[str, int]
    value: float
    interval: Interval


class Learner:
    """A policy started on a problem. `propose` says what to set, `update` takes in what was seen.

    >>> import dobandit as dob
    >>> learner = dob.BLMLR(radius_scale=0.1).start(dob.paper.G1.graph, budget=3, horizon=100, seed=0)
    >>> action = learner.propose()
    >>> len(action)
    3
    """

    def __init__(self, policy: Policy, problem: Problem) -> None:
        self.policy = policy
        self.problem = problem
        self.graph = problem.graph
        self.engine = policy.engine(problem)

    @property
    def label(self) -> str:
        return self.policy.label_on(self.graph, self.problem.links)

    @property
    def rounds(self) -> int:
        """Rounds taken in so far."""
        return self.engine.rounds

    def propose(
        self,
        uniforms: NDArray[np.float64] | None = None,
        *,
        available: Iterable[str] | None = None,
        pending: Iterable[Do] = (),
    ) -> dict[str, int]:
        """What to set in the next round: {"X3": 1, ...}; empty while observing without intervening.

        available  the variables that can be set in this round; default: all that are controllable
        pending    what is being tried elsewhere right now: the news expected of it is counted

        Asking twice gives the same answer: the round's random numbers depend on the seed and the number of rounds
        told or pending. `uniforms` replaces them.
        """
        names = self.available(available)
        under_way = [self._ids(do) for do in pending]
        if uniforms is None:
            uniforms = round_uniforms(self.problem.seed, self.rounds + len(under_way))
        return self.named(self.engine.choose(uniforms, names, under_way).ids)

    def named(self, ids: Iterable[int]) -> dict[str, int]:
        return {self.graph.nodes[i - 1]: 1 for i in ids}

    def available(self, names: Iterable[str] | None) -> tuple[str, ...] | None:
        """Names of variables that can be set now, checked, in the graph's order; None: all."""
        if names is None:
            return None
        limited = self.problem.rules.limited(rules_of(available=names).available or ())
        limited.candidates(self.graph)
        chosen = set(limited.available or ())
        return tuple(name for name in self.graph.controllable if name in chosen)

    def _ids(self, do: Do) -> list[int]:
        fixed = fixed_values(self.graph, do, continuous=self.problem.continuous)
        ids = [v for v in np.flatnonzero(~np.isnan(fixed)).tolist() if v]
        if any(fixed[v] != 1.0 for v in ids) or self.graph.arrays.target in ids:
            raise InterventionError(f"what is pending sets variables other than the target to 1, but got {do!r}.")
        return ids

    def update(self, action: Do, observation: Observation) -> None:
        """Take in a round: what was set, and what was seen. A variable not in `observation`, or None or NaN there,
        counts as not seen."""
        self.engine.update(*self._checked(action, observation))

    def copy(self) -> Learner:
        """One that knows the same, and learns by itself from now on."""
        twin = copy.copy(self)
        twin.engine = self.engine.copy()
        return twin

    def __repr__(self) -> str:
        return f"Learner({self.label}, {self.rounds} rounds, {self.graph!r})"

    def update_many(self, rows: Iterable[tuple[Do, Observation]]) -> None:
        """Take in many rounds; all are checked before the first is taken in."""
        if not isinstance(rows, Iterable) or isinstance(rows, Mapping):
            raise ObservationError("rows is a list of (action, observation) pairs.")
        pairs = list(rows)
        if any(not isinstance(pair, Sequence) or len(pair) != 2 for pair in pairs):
            raise ObservationError("each row is a pair (action, observation).")
        checked = [self._checked(action, observation) for action, observation in pairs]
        if checked:
            self.engine.update_many(np.stack([row for row, _ in checked]), np.stack([mask for _, mask in checked]))

    def _checked(self, action: Do, observation: Observation) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        if not isinstance(observation, Mapping):
            raise ObservationError(f"an observation maps names to values, but got {type(observation).__name__}.")
        fixed = fixed_values(self.graph, action, continuous=self.problem.continuous)
        was_set = ~np.isnan(fixed)
        values = np.where(was_set, fixed, math.nan)
        for name, value in observation.items():
            if name not in self.graph:
                hint = closest(str(name), self.graph.nodes)
                raise ObservationError(f"observations are of observed variables, but {name!r} is none.{hint}")
            if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
                continue
            v = self.graph.index(name)
            number = self._value(name, value)
            if was_set[v] and number != fixed[v]:
                raise ObservationError(f"{name!r} was set to {fixed[v]:g}, but is said to have been {number:g}.")
            values[v] = number
        was_set[0] = False
        return values, was_set

    def _value(self, name: str, value: object) -> float:
        ok = isinstance(value, (int, float, np.integer, np.floating, np.bool_))
        try:
            number = float(value) if ok else math.nan  # type: ignore[arg-type]
        except OverflowError:
            number = math.inf
        if not (0.0 <= number <= 1.0 if self.problem.continuous else number in (0.0, 1.0)):
            allowed = "a number from 0 to 1" if self.problem.continuous else "0 or 1"
            raise ObservationError(f"the value of {name!r} must be {allowed}, but got {value!r}.")
        return number

    # -- what it has learned ------------------------------------------------------------------------------------

    def estimate(self, name: str) -> NodeEstimate:
        """The weights of a node's parents, with intervals."""
        engine = self._with_model("estimate")
        v = self.graph.index(name)
        start, end = (int(engine.linear.layout.ptr[i]) for i in (v, v + 1))
        d, at = end - start, int(engine.linear.layout.square[v])
        theta, rho = engine.theta()[start:end], float(engine.radii()[v])
        inverse = engine.linear_state.stats.inverse[at : at + d * d].reshape(d, d)
        null = engine.linear_state.stats.null[at : at + d * d].reshape(d, d)
        # A direction never seen is not bounded by the data at all, only by the box.
        unbounded = (np.diag(null) > 1e-9) | (engine.status(v) == "separable")
        reach = np.where(unbounded, math.inf, rho * np.sqrt(np.maximum(np.diag(inverse), 0.0)))
        allowed = self.problem.links[v - 1].weight_range
        ends = np.clip([theta - reach, theta + reach], *allowed).T.tolist()
        shown = np.clip(theta, *allowed).tolist()  # few rows can ask for weights that cannot be
        weights = [WeightEstimate(value, *end) for value, end in zip(shown, ends, strict=True)]
        bias = weights.pop(0) if self.graph.has_bias(name) else None
        rows = int(engine.linear_state.stats.rows[v])
        parents = dict(zip(self.graph.parents(name), weights, strict=True))
        return NodeEstimate(parents, bias, rows, engine.status(v), rho)

    @property
    def keeps_model(self) -> bool:
        """Whether it learns the weights of causes, and not only how sets have done."""
        return isinstance(self.engine, OptimistEngine)

    def interval(self, do: Do | None = None) -> Interval:
        """The confidence interval of E[target | do(...)]."""
        return self.predict(fixed_values(self.graph, do, continuous=self.problem.continuous))[1]

    def expected(self, do: Do | None = None) -> float:
        """E[target | do(...)] under the estimate."""
        return self.predict(fixed_values(self.graph, do, continuous=self.problem.continuous))[0]

    def predict(self, fixed: NDArray[np.float64]) -> tuple[float, Interval]:
        """E[target | do(...)] and its interval; `fixed`: the value a variable is set to by id, NaN where it is free."""
        if isinstance(self.engine, ArmsEngine):
            plays, total = self._arm(fixed)
            return total / plays if plays else 0.5, _arm_interval(plays, total)  # nothing is known: the middle
        low, value, high = target_interval(self._with_model("prediction"), self.problem, fixed)
        return value, Interval(low, high)

    def best(self, available: Iterable[str] | None = None) -> Recommendation:
        """The set that looks best under the estimate, without optimism; the first of equals."""
        names = self.available(available)
        if isinstance(self.engine, ArmsEngine):
            chosen = self.engine.best_arm(names)
        else:
            chosen = self._with_model("best").plain_best(names)
        do = self.named(chosen)
        return Recommendation(do, self.expected(do), self.interval(do))

    def _with_model(self, what: str) -> OptimistEngine:
        if isinstance(self.engine, OptimistEngine):
            return self.engine
        raise PolicyError(f"{self.label} keeps no model of the causes, so it has no {what}. Use BLMLR or BGLMOFU.")

    def _arm(self, fixed: NDArray[np.float64]) -> tuple[int, float]:
        assert isinstance(self.engine, ArmsEngine)
        chosen = [v for v in np.flatnonzero(~np.isnan(fixed)).tolist() if v]
        arm = self.engine.arm(chosen)
        if arm < 0 or any(fixed[v] != 1.0 for v in chosen):
            names = listed(self.graph.nodes[v - 1] for v in chosen)
            raise InterventionError(f"{self.label} knows sets of exactly {self.problem.budget} variables, not {names}.")
        return int(self.engine.state.plays[arm]), float(self.engine.state.total[arm])


def _arm_interval(plays: int, total: float) -> Interval:
    """An arm's interval at 95%."""
    if not plays:
        return Interval(0.0, 1.0)
    return Interval(*hoeffding(total / plays, plays))
