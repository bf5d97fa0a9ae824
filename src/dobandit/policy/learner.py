"""Learner: a policy at work, in the user's words: propose, update, and questions about what it has learned. This is the
door: names are checked here, and everything behind it speaks of ids and arrays."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import shown
from dobandit.errors import InterventionError, ObservationError, PolicyError, closest, listed
from dobandit.model.links import auto, identity
from dobandit.model.weights import Do, context_values, fixed_values
from dobandit.oracle.actions import NOTHING, Action, action_of
from dobandit.policy.answers import LeverEffect, NodeEstimate, Recommendation, WeightEstimate, Worth, lever_effect
from dobandit.policy.base import Policy, round_draws
from dobandit.policy.engine import Estimate, Interval, Pending, Rounds, Situation, no_context, one_round
from dobandit.policy.graph_evidence import Finding
from dobandit.policy.problem import Problem
from dobandit.policy.questions import (
    MOST_RIVALS,
    Believes,
    KeepsOutcomes,
    Promises,
    Proves,
    Weighs,
    best,
    contrast,
    gap,
)
from dobandit.texts import policy_name

Observation = Mapping[str, float]
Context = Mapping[str, float]
Array = NDArray[np.float64]
_ROUNDING = 1e-9


class Learner:
    """A policy started on a problem. `propose` says what to set, `update` takes in what was seen. Made by `start` of
    a policy, such as `CausalUCB`.

    >>> import dobandit as dob
    >>> graph = dob.CausalGraph([("ad", "buy"), ("mail", "buy")], target="buy", bias=["buy"])
    >>> learner = dob.BLMLR(radius_scale=0.1).start(graph, budget=1, horizon=100, seed=0)
    >>> action = learner.propose()
    >>> learner.update(action, {"ad": 0, "mail": 0, "buy": 1, **action})
    >>> twin = learner.copy()
    >>> twin.rounds, twin.expected(action) == learner.expected(action), twin.interval(action).high
    (1, True, 1.0)
    """

    def __init__(self, policy: Policy, problem: Problem) -> None:
        self.policy = policy
        policy.require_learnable(problem)
        self.engine = policy.engine(problem)
        self.problem = self.engine.problem  # which may take more for granted
        self.graph = self.problem.graph
        self.keeps_model = isinstance(self.engine, Believes)  # weights of causes, and not only how actions have done

    @property
    def label(self) -> str:
        """What the policy is called in tables and figures of this problem."""
        return self.policy.label_on(self.graph, self.problem.links)

    @property
    def rounds(self) -> int:
        """Rounds taken in so far."""
        return self.engine.rounds

    def propose(
        self,
        draws: Array | None = None,
        *,
        context: Context | None = None,
        available: Iterable[str] | None = None,
        pending: Iterable[Do] = (),
    ) -> dict[str, float]:
        """What to set in the next round: {"X3": 1, ...}; empty while observing without intervening.

        draws      the round's random numbers; default: they depend on the seed and the number of rounds told or
                   pending, so that asking twice gives the same answer
        context    the values of the graph's context variables in this round
        available  the variables that can be set in this round; default: all that are controllable
        pending    what is being tried elsewhere right now (in the same context): the news expected of it is counted

        >>> import dobandit as dob
        >>> dob.UCB().start(dob.paper.G4.graph, budget=1).propose(available=["X3"])
        {'X3': 1}
        """
        known = self.context(context)
        under_way = tuple(Pending(self.action(do), known) for do in pending)
        if draws is None:
            draws = round_draws(self.problem.seed, self.rounds + len(under_way), self.engine.draws)
        now = Situation(self._draws(draws), known, self.available(available), under_way)
        return self.engine.choose(now).action.named(self.graph)

    def _draws(self, given: object) -> Array:
        """Random numbers of a round: as many as the engine needs, from 0 to below 1."""
        try:
            draws = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            draws = np.full(1, math.nan)
        if draws.ndim != 1 or len(draws) < self.engine.draws or not np.all((draws >= 0.0) & (draws < 1.0)):
            raise PolicyError(
                f"draws are random numbers from 0 to below 1, {self.engine.draws} of them for {self.label}, but got "
                f"{shown(given)}. Leave them out to have them drawn from the seed."
            )
        return draws

    def available(self, names: Iterable[str] | None) -> tuple[int, ...] | None:
        """Ids of the variables that can be set now, from their names; None: all."""
        return self.problem.settable(names)

    def context(self, given: Context | None) -> Array:
        """The values of the context variables by id, from their names; all of them must be given."""
        known = no_context(len(self.graph))
        for name, value in context_values(self.graph, given, continuous=self.problem.continuous).items():
            known[self.graph.index(name)] = value
        return known

    def action(self, do: Do | None) -> Action:
        """The action in ids of what is set by name, `do`: any variables but the target and the context, to 0 or 1."""
        action = action_of(fixed_values(self.graph, do, continuous=self.problem.continuous))
        self._require_free(action)
        if self.graph.arrays.target in action.ids:
            raise InterventionError(f"an action sets variables other than the target, but got {do!r}.")
        return action

    def _require_free(self, action: Action) -> None:
        """Raises where an action sets a context variable."""
        given = [v for v in action.ids if v in self.problem.context_ids]
        if given:
            raise InterventionError(
                f"a variable of the context is seen, not set, but do names {self.graph.nodes[given[0] - 1]!r}. Leave "
                "it out, and say its value in the context."
            )

    def update(self, action: Do, observation: Observation) -> None:
        """Take in a round.

        action       what was set: {"coupon": 1}
        observation  what was seen; a variable that is not in it, or None or NaN there, counts as not seen. The values
                     of context variables are part of it
        """
        self.take(one_round(*self._checked(action, observation)))

    def take(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None, *, history: bool = False) -> None:
        """Take in rounds in ids, as `Engine.update` does. A model learns nothing from rounds in which a variable that
        is always set was not, or one that counts as hidden was. history: neither an engine nor chance decided on the
        actions."""
        if self.problem.selective and self.keeps_model:
            kept = self.problem.teaches(rounds.was_set)
            if sizes is not None:
                batch = np.repeat(np.arange(len(sizes)), sizes)[kept]
                sizes = np.bincount(batch, minlength=len(sizes))
            rounds = rounds.part(kept)
        if not len(rounds.counts):
            return
        sizes = None if sizes is None else sizes[sizes > 0]
        if history and isinstance(self.engine, KeepsOutcomes):
            self.engine.update_history(rounds, sizes)
        else:
            self.engine.update(rounds, sizes)

    def copy(self) -> Learner:
        """One that knows the same, and learns by itself from now on."""
        twin = copy.copy(self)
        twin.engine = self.engine.copy()
        return twin

    def __repr__(self) -> str:
        return f"Learner({self.label}, {self.rounds} rounds, {self.graph!r})"

    def update_many(self, rows: Iterable[tuple[Do, Observation]]) -> None:
        """Take in many rounds; all are checked before the first is taken in.

        rows  (action, observation) pairs, as `update` takes them

        >>> import dobandit as dob
        >>> learner = dob.UCB().start(dob.CausalGraph([("ad", "buy")], target="buy"), budget=1)
        >>> learner.update_many([({"ad": 1}, {"buy": 1}), ({}, {"ad": 0, "buy": 0})])
        >>> learner.rounds
        2
        """
        if not isinstance(rows, Iterable) or isinstance(rows, Mapping):
            raise ObservationError("rows is a list of (action, observation) pairs.")
        pairs = list(rows)
        if any(not isinstance(pair, Sequence) or len(pair) != 2 for pair in pairs):
            raise ObservationError("each row is a pair (action, observation).")
        checked = [self._checked(action, observation) for action, observation in pairs]
        if checked:
            values, was_set = np.stack([row for row, _ in checked]), np.stack([mask for _, mask in checked])
            self.take(Rounds(values, was_set, np.ones(len(checked), dtype=np.int64)))

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
        """What is known of a node: the weights of its parents, with intervals (see `NodeEstimate`).

        name  the node's, or that of a further mechanism: "Y | Z, X" (`policy.regimes`)

        >>> import dobandit as dob
        >>> learner = dob.CausalUCB().start(dob.paper.G4.graph, budget=1)
        >>> learner.estimate("Y").rows, list(learner.estimate("Y").parents)
        (0, ['X2', 'X3', 'X4', 'X5'])
        """
        if not isinstance(self.engine, Believes):
            raise PolicyError(
                f"{self.label} keeps no model of the causes, so it has no estimate. Use "
                f"{policy_name('CausalUCB')}, {policy_name('BLMLR')} or {policy_name('BGLMOFU')}."
            )
        graph = self.problem.of_mechanisms.graph
        node = self.engine.beliefs().node(graph.index(name))
        # A direction never seen is not bounded by the data at all, only by the box.
        unbounded = (np.diag(node.null) > 1e-9) | (node.status == "separable")
        reach = np.where(unbounded, math.inf, node.radius * np.sqrt(np.maximum(np.diag(node.inverse), 0.0)))
        nonnegative = self.problem.effects == "nonnegative"
        least, highest = node.link.nonnegative_range if nonnegative else node.link.weight_range
        if node.link in (identity, auto) and not any(node.parents):
            least = 0.0  # how often it happens, which is no effect
        weights = []
        for theta, far in zip(node.theta.tolist(), reach.tolist(), strict=True):
            outside = not least - _ROUNDING <= theta <= highest + _ROUNDING
            ends = (-math.inf, math.inf) if outside else (least, highest)
            low, high = (min(max(end, ends[0]), ends[1]) for end in (theta - far, theta + far))
            weights.append(WeightEstimate(min(max(theta, ends[0]), ends[1]), low, high, outside))
        bias = weights.pop(0) if graph.has_bias(name) else None
        causes = [self._cause(p) for p in node.parents if p]
        parents = dict(zip(causes, weights, strict=True))
        return NodeEstimate(parents, bias, node.rows, node.status, node.radius, node.form)

    def _cause(self, v: int) -> str:
        """The name of a cause; below 0: that a variable was set (`policy.revising`)."""
        return self.graph.nodes[v - 1] if v > 0 else f"{self.graph.nodes[-v - 1]} was set"

    @property
    def modelled(self) -> tuple[str, ...]:
        """The nodes that it has weights for: not those that are always set, nor those that count as hidden."""
        out = {*self.problem.rules.always_set, *self.problem.hidden}
        return tuple(name for name in self.graph.nodes if name not in out)

    def interval(self, do: Do | None = None, context: Context | None = None) -> Interval:
        """The confidence interval of E[target | do(...)]; `do` and `context` as in `predict`."""
        return Interval(*self.predict(do, context)[1:])

    def expected(self, do: Do | None = None, context: Context | None = None) -> float:
        """E[target | do(...)] under the estimate; `do` and `context` as in `predict`."""
        return self.predict(do, context).value

    def predict(self, do: Do | None = None, context: Context | None = None) -> Estimate:
        """E[target | do(...)] under the estimate, with the ends of its interval.

        do       what is set: {"coupon": 1}, or names that are set to 1; default: nothing
        context  the values of the graph's context variables, which may also stand in `do`

        >>> import dobandit as dob
        >>> dob.UCB().start(dob.paper.G4.graph, budget=1).predict({"X2": 1})  # before the first round
        Estimate(value=0.5, low=0.0, high=1.0)
        """
        if context is None and self.graph.context:
            context = {name: value for name, value in _mapping(do).items() if name in self.graph.context}
            do = {name: value for name, value in _mapping(do).items() if name not in self.graph.context}
        fixed = fixed_values(self.graph, do, continuous=self.problem.continuous)
        action = action_of(fixed)
        self._require_free(action)
        target = float(fixed[self.graph.arrays.target])
        if not math.isnan(target):
            return Estimate(target, target, target)
        missing = self.unset(action) if self.keeps_model else []
        if missing:
            raise InterventionError(
                f"{listed(missing)} is always set, so that nothing is learned of rounds in which it is not. Add "
                f"{missing[0]!r} to what is set."
            )
        return self.engine.predict(action, self.context(context))

    @property
    def revisions(self) -> tuple[Finding, ...]:
        """The causes that the graph leaves out, and the policy reckons with."""
        return self.engine.revisions if isinstance(self.engine, Believes) else ()

    def findings(self) -> Sequence[Finding]:
        """What the rounds say against the graph besides `revisions`, as far as the policy watches it."""
        return self.engine.findings() if isinstance(self.engine, Believes) else ()

    def unset(self, action: Action) -> list[str]:
        """The variables that are always set, but not by this action."""
        chosen = {self.graph.nodes[v - 1] for v in action.ids}
        return [name for name in self.problem.rules.always_set if name not in chosen]

    def best(self, available: Iterable[str] | None = None, context: Context | None = None) -> Recommendation:
        """The action that looks best under the estimate, without optimism; the first of equals.

        available  the variables that can be set; default: all that are controllable
        context    the values of the graph's context variables

        Returns a `Recommendation` with the action, its value and its interval.

        >>> import dobandit as dob
        >>> learner = dob.UCB().start(dob.paper.G4.graph, budget=1)
        >>> learner.update({"X3": 1}, {"Y": 1})
        >>> learner.best().do
        {'X3': 1}
        """
        now = Situation(np.zeros(self.engine.draws), self.context(context), self.available(available))
        action = self.problem.checked(best(self.engine, now).action, self.label)
        return self._predicted(action, now)

    def assess(
        self,
        do: Do | None = None,
        available: Iterable[str] | None = None,
        context: Context | None = None,
        *,
        within: float | None = None,
        delta: float | None = None,
    ) -> Recommendation:
        """An action beside doing nothing and the other allowed actions: all of a `Recommendation` that needs no log.

        do         the action; None: the best
        available  the variables that can be set; default: all that are controllable
        context    the values of the graph's context variables
        within     how small the gap is to be: `more_rounds` says how many rounds that still takes
        delta      with what probability what is `guaranteed` may fail; default: the policy's

        >>> import dobandit as dob
        >>> learner = dob.UCB().start(dob.paper.G4.graph, budget=1)
        >>> learner.update_many([({"X3": 1}, {"Y": 1}), ({}, {"Y": 0})])
        >>> learner.assess({"X3": 1}).uplift.value
        1.0
        """
        now = Situation(np.zeros(self.engine.draws), self.context(context), self.available(available))
        action = self.problem.checked(best(self.engine, now).action, self.label) if do is None else self.action(do)
        answer = self._predicted(action, now)
        idle = None if self.unset(NOTHING) and self.keeps_model else self._predicted(NOTHING, now)
        answer = answer._replace(nothing=None if idle is None else Worth(idle.value, idle.interval))
        if self.unknowable(action):
            return answer
        engine, chance, proof = self.engine, None, None
        if isinstance(engine, Weighs) and self.problem.allows(action):
            chance = engine.chance(action, now)
        if isinstance(engine, Proves):
            proof = engine.guaranteed(action, now, delta)
        widest, more = gap(engine, action, now, within)
        proved = 1.0 if proof is None or proof.gap is None else proof.gap
        return answer._replace(
            uplift=None if idle is None else self._uplift(action, now),
            probability_best=None if chance is None else chance.best,
            expected_loss=None if chance is None else chance.loss,
            gap=min(widest, proved),
            more_rounds=more,
            guaranteed=proof,
            levers=self._levers(now) if self.keeps_model and idle is not None else (),
        )

    def _uplift(self, action: Action, now: Situation) -> Worth | None:
        """What an action adds to doing nothing, from the contrast of the two."""
        value, low, high, _ = (float(part[0]) for part in contrast(self.engine, NOTHING, [action], now.context))
        if action == NOTHING or math.isnan(value):
            return None if math.isnan(value) else Worth(0.0, Interval(0.0, 0.0))
        return Worth(value, Interval(low, high))

    def _levers(self, now: Situation) -> tuple[LeverEffect, ...]:
        """What setting each variable alone adds to doing nothing, for each value that it may be set to."""
        rules = self.problem.rules
        alone = [
            Action((self.graph.index(name),), (value,))
            for name in self.graph.controllable
            for value in rules.values_of(name)
            if name not in self.problem.hidden and (now.available is None or self.graph.index(name) in now.available)
        ][:MOST_RIVALS]
        if not alone:
            return ()
        effects, lows, highs, _ = (part.tolist() for part in contrast(self.engine, NOTHING, alone, now.context))
        return tuple(
            lever_effect(*next(iter(action.named(self.graph).items())), effect, Interval(low, high))
            for action, effect, low, high in zip(alone, effects, lows, highs, strict=True)
        )

    def gap(self, available: Iterable[str] | None = None, context: Context | None = None) -> float:
        """By how much any allowed action may be better than the recommended one at most: with 95%, at every look.

        available  the variables that can be set; default: all that are controllable
        context    the values of the graph's context variables

        >>> import dobandit as dob
        >>> dob.LUCB(epsilon=0.1, delta=0.1).start(dob.paper.G4.graph, budget=1).gap()
        1.0
        """
        now = Situation(np.zeros(self.engine.draws), self.context(context), self.available(available))
        return gap(self.engine, best(self.engine, now).action, now).gap

    def unknowable(self, action: Action) -> str:
        """Why no model can tell what an action does, whatever is seen; "" where one can."""
        hidden = [name for name in action.named(self.graph) if name in self.problem.hidden]
        if not self.keeps_model:
            return ""
        if hidden:
            return f"{listed(hidden)} counts as hidden, so that nothing is learned of setting it"
        if unset := self.unset(action):
            return f"only rounds in which {listed(unset)} was set enter the model, and this action does not set it"
        return ""

    def _predicted(self, action: Action, now: Situation) -> Recommendation:
        value, low, high = (math.nan, 0.0, 1.0) if self.unknowable(action) else self.engine.predict(action, now.context)
        return Recommendation(action.named(self.graph), value, Interval(low, high), interval_words=self.interval_words)

    @property
    def interval_words(self) -> str:
        """What the intervals of values promise, for people."""
        return self.engine.interval_words if isinstance(self.engine, Promises) else "by the policy's own measure"


def _mapping(do: Do | None) -> Mapping[str, float]:
    if do is None:
        return {}
    return do if isinstance(do, Mapping) else dict.fromkeys(do, 1.0)
