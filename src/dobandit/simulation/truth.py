"""What every action is truly worth in a study's world: E[Y | do(action)] in each context, and the best of them."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import SimulationError
from dobandit.model.causal_model import CausalModel
from dobandit.model.inference import expect, target_value
from dobandit.oracle.actions import Action, Actions, action_named
from dobandit.oracle.solve import solve
from dobandit.policy.engine import no_context
from dobandit.policy.problem import Problem
from dobandit.policy.recording import SAME

Array = NDArray[np.float64]
_MOST_CONTEXT = 10  # variables: 2^10 patterns, each with a best action of its own


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
        self.patterns = [self._pattern(bits[::-1]) for bits in product((0.0, 1.0), repeat=len(names))]
        self._known: dict[tuple[Action, bytes], float] = {}
        self.answers = self._solve()
        self.best = np.array([value for _, value in self.answers])

    def _solve(self) -> list[tuple[dict[str, float], float]]:
        """The best action in each context, and its value."""
        worlds, rules = (self.model.knowing(self._context(p)) for p in self.patterns), self.problem.rules
        found = (solve(world, rules, time_limit=None) for world in worlds)  # the same on every machine
        return [(answer.do, answer.value) for answer in found]

    def _pattern(self, bits: tuple[float, ...]) -> Array:
        context = no_context(len(self.problem.graph))
        context[self.problem.context_ids] = bits
        return context

    def _context(self, pattern: Array) -> dict[str, float]:
        graph = self.problem.graph
        return {name: float(pattern[graph.index(name)]) for name in graph.context}

    def value(self, action: Action, context: Array) -> float:
        """E[Y] of an action in a context (by id)."""
        key = action, context.tobytes()
        if key not in self._known:
            graph = self.problem.graph
            self._known[key] = target_value(self.model, {**self._context(context), **action.named(graph)})[0]
        return self._known[key]

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
                values = [self.value(action, pattern) for pattern in self.patterns]
                if (np.array(values) >= self.best - SAME).all():
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
