"""The world of a study, and what its actions are truly worth: E[Y | do(action)] in each context.

The world is a model, whose values are computed, or a Python function (action, context, rng) -> observation. Of a
function they are estimated: the average of many draws of every allowed action, the same random numbers for all, so
that differences between actions are sharper than the averages themselves. Learners play against it in Python.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import whole_number
from dobandit.errors import ModelError, SimulationError, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.causal_model import CausalModel
from dobandit.model.inference import expect, target_value
from dobandit.oracle.actions import Action, Actions, action_named
from dobandit.oracle.solve import solve
from dobandit.policy.engine import Rounds, no_context, one_round
from dobandit.policy.problem import Problem
from dobandit.policy.recording import SAME
from dobandit.policy.world import World

Array = NDArray[np.float64]
WorldFunction = Callable[[dict[str, float], dict[str, float], np.random.Generator], Mapping[str, float]]
_MOST_CELLS = 5_000  # actions x contexts whose value is estimated
_MOST_CONTEXT = 10  # variables: 2^10 patterns, each with a best action of its own


class FunctionModel(CausalModel):
    """A world that is a function, on the graph that learners are told.

    function  (action, context, rng) -> observation: what is set, by name; the values of the context variables, empty
              where these are still to be drawn; a NumPy generator, in the same state for all policies in a round. It
              returns the values, 0 or 1, of all variables that are observed; those of set variables may be left out.
              Studies call it from several threads (workers=1: from one), so it should keep nothing between calls
    samples   draws by which the value of each action is estimated

    >>> graph = CausalGraph([("ad", "buy")], target="buy")
    >>> def shop(action, context, rng):
    ...     ad = action.get("ad", rng.random() < 0.5)
    ...     return {"ad": ad, "buy": rng.random() < (0.6 if ad else 0.2)}
    >>> FunctionModel(shop, graph).observe({"ad": 1}, {}, np.random.default_rng(0))
    {'ad': 1.0, 'buy': 1.0}
    """

    is_linear = False
    nonnegative = False  # nobody knows

    def __init__(self, function: WorldFunction, graph: CausalGraph, samples: int = 4_000) -> None:
        if not callable(function):
            raise ModelError(f"a world is a function (action, context, rng), but got {type(function).__name__}.")
        try:
            inspect.signature(function).bind({}, {}, None)
        except ValueError:  # some built-in functions do not say what they take
            pass
        except TypeError as error:
            raise SimulationError(
                f"a world is called as world(action, context, rng), but this function cannot be: {error}."
            ) from None
        self.function, self.graph = function, graph
        self.samples = whole_number("samples", samples, 2, SimulationError)
        self.noise = np.zeros(len(graph) + 1)

    def observe(
        self, do: Mapping[str, float], context: Mapping[str, float], rng: np.random.Generator
    ) -> dict[str, float]:
        """One round: the values of all observed variables; arguments are those of the function."""
        seen = self.function(dict(do), dict(context), rng)
        if not isinstance(seen, Mapping):
            raise SimulationError(f"the world returns values by name, but got {type(seen).__name__}.")
        known, values = {**context, **do}, dict[str, float]()
        for name in self.graph.observed:
            value = seen.get(name, known.get(name))
            if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)) or value not in (0, 1):
                what = "is missing" if value is None else f"is {value!r}"
                raise SimulationError(
                    f"the world returns 0 or 1 for each of {listed(self.graph.observed)}, but {name!r} {what}."
                )
            if name in known and value != known[name]:
                why = "is set to" if name in do else "was, before anything was set,"
                raise SimulationError(f"{name!r} {why} {known[name]:g}, but the world returns {value!r} for it.")
            values[name] = float(value)
        return values

    def draw_context(self, rng: np.random.Generator) -> dict[str, float]:
        """The context variables of a round, which do not depend on what is set; empty where the graph has none."""
        seen = self.observe({}, {}, rng) if self.graph.context else {}
        return {name: seen[name] for name in self.graph.context}

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ModelError(
            "a world that is a function has no probabilities to compute with, which solve, expect, sample and the "
            "oracle need. Give a model, such as a TableModel."
        )

    free_node = node_arrays = _means_into = _refuse


class FunctionWorld(World):
    """The function as a world to act in, round by round; it has no arrays for compiled ones."""

    model: FunctionModel

    def __init__(self, model: FunctionModel, graph: CausalGraph) -> None:
        self.model, self.graph = model, graph

    def context(self, uniforms: Array) -> Array:
        known = no_context(len(self.graph))
        for name, value in self.model.draw_context(_generator(uniforms)).items():
            known[self.graph.index(name)] = value
        return known

    def play(self, action: Action, uniforms: Array) -> Rounds:
        graph = self.graph
        context = self.model.draw_context(_generator(uniforms))
        seen = self.model.observe(action.named(graph), context, _generator(uniforms))
        was_set = np.zeros(len(graph) + 1, dtype=np.bool_)
        was_set[list(action.ids)] = True
        return one_round(np.array([1.0, *(seen[name] for name in graph.nodes)]), was_set)


def _generator(uniforms: Array) -> np.random.Generator:
    """A generator for the round, which gives equal numbers whatever the policy does."""
    return np.random.default_rng(np.ascontiguousarray(uniforms[:2]).view(np.uint64).tolist())


class Truth:
    """Values by action and context; each is worked out once.

    answers   (action, E[Y]) of the best allowed action in each context;  best: (patterns,) its E[Y]
    patterns  contexts in the order of their numbers: bit i is the i-th context variable

    Where values are estimated, `value_error` is how well differences between them are known; 0: they are computed.
    """

    value_error = 0.0

    def __init__(self, model: CausalModel, problem: Problem) -> None:
        self.model, self.problem = model, problem
        names = problem.graph.context
        if len(names) > _MOST_CONTEXT or (names and model.continuous):
            raise SimulationError(
                f"a study has at most {_MOST_CONTEXT} context variables of 0 and 1, since each of their patterns has a "
                f"best action of its own, but got {len(names)}{' of numbers' if model.continuous else ''}. "
                "Make fewer of them context."
            )
        bits = np.array(list(product((0.0, 1.0), repeat=len(names))))
        self.patterns = np.tile(no_context(len(problem.graph)), (len(bits), 1))
        self.patterns[:, problem.context_ids] = bits[:, ::-1]
        self._values: dict[tuple[Action, bytes], float] = {}
        self.answers = self._solve()
        self.best = np.array([value for _, value in self.answers])

    def _solve(self) -> list[tuple[dict[str, float], float]]:
        """The best action in each context, and its value."""
        worlds = (self.model.knowing(self._context(pattern)) for pattern in self.patterns)
        answers = (solve(world, self.problem.rules, time_limit=None) for world in worlds)  # the same on every machine
        return [(answer.do, answer.value) for answer in answers]

    def _context(self, pattern: Array) -> dict[str, float]:
        graph = self.problem.graph
        return {name: float(pattern[graph.index(name)]) for name in graph.context}

    def value(self, action: Action, context: Array) -> float:
        """E[Y] of an action in a context (by id)."""
        key = action, context.tobytes()
        if key not in self._values:
            do = {**self._context(context), **action.named(self.problem.graph)}
            self._values[key] = target_value(self.model, do)[0]
        return self._values[key]

    def table(self, actions: Actions | None) -> Array:
        """(patterns, actions + 1): the value of each action, and that of setting nothing but what is required at the
        end. No columns without a list."""
        if actions is None:
            return np.zeros((len(self.patterns), 0))
        rows = [*(actions.row(i) for i in range(len(actions.ids))), self.problem.idle()]
        table = np.array([[self.value(row, pattern) for row in rows] for pattern in self.patterns])
        if table.shape[1] > 1:  # an approximate oracle may have missed one of the list
            self.best = np.maximum(self.best, table[:, :-1].max(axis=1))
        return table

    def best_everywhere(self) -> dict[str, float] | None:
        """An action that is best in every context; None where there is none."""
        if len(self.answers) == 1:
            return self.answers[0][0]
        graph = self.problem.graph
        for do, _ in self.answers:
            if all(name in graph for name in do):
                action = action_named(do, graph)
                if all(self.value(action, p) >= best - SAME for p, best in zip(self.patterns, self.best, strict=True)):
                    return do
        return None

    def chance(self) -> Array:
        """(patterns,) how likely each context is."""
        chance = np.ones(len(self.patterns))
        for i, pattern in enumerate(self.patterns):
            context, so_far = self._context(pattern), dict[str, float]()
            for name in self.model.graph.context:  # in topological order; all causes of a context variable are context
                p = expect(self.model, so_far)[name]
                chance[i] *= p if context[name] else 1.0 - p
                so_far[name] = context[name]
        return chance


class SampledTruth(Truth):
    """What actions are worth in a world that is a function, by the average of its draws.

    value_error  the largest standard error of a difference between the best action and another, in any context
    """

    model: FunctionModel

    def _solve(self) -> list[tuple[dict[str, float], float]]:
        allowed, graph = self.problem.allowed(), self.problem.graph
        cells = allowed.count() * len(self.patterns)
        if cells > _MOST_CELLS:
            raise SimulationError(
                f"regret needs the value of every allowed action in every context, and in a world that is a function "
                f"each is estimated, up to {_MOST_CELLS:,} of them, but there are {cells:,}. Lower the budget, or give "
                "a model."
            )
        self._drawn: dict[tuple[Action, bytes], Array] = {}
        actions = list(allowed.every())
        answers, spreads = [], [0.0]
        for pattern in self.patterns:
            values = {action: self.value(action, pattern) for action in actions}
            best = max(values, key=values.__getitem__)
            answers.append((best.named(graph), values[best]))
            for other in (*actions, self.problem.idle()):
                difference = self._outcomes(best, pattern) - self._outcomes(other, pattern)
                spreads.append(float(difference.std()))
        self.value_error = max(spreads) / math.sqrt(self.model.samples)
        return answers

    def _outcomes(self, action: Action, context: Array) -> Array:
        key = action, context.tobytes()
        if key not in self._drawn:
            do, known = action.named(self.problem.graph), self._context(context)
            rngs = (np.random.default_rng([self.problem.seed, 1, k]) for k in range(self.model.samples))
            self._drawn[key] = np.array([self.model.observe(do, known, rng)[self.model.target] for rng in rngs])
        return self._drawn[key]

    def value(self, action: Action, context: Array) -> float:
        return float(self._outcomes(action, context).mean())

    def chance(self) -> Array:
        """How often each context came in as many draws as an action's value has."""
        names, codes = self.problem.graph.context, []
        for k in range(self.model.samples if names else 1):
            seen = self.model.draw_context(np.random.default_rng([self.problem.seed, 2, k]))
            codes.append(sum(int(seen[name]) << i for i, name in enumerate(names)))
        return np.bincount(codes, minlength=len(self.patterns)) / len(codes)
