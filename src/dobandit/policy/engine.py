"""The protocol of an engine: a policy at work on one problem. Everything here speaks of ids and arrays, never of names.

Situation: all that is known before acting.  Choice: what to set.  Rounds: what was learned, a batch.
A policy of your own implements `choose`, `update`, `predict` and `compare` (see CONTRIBUTING.md). What an engine may
offer besides, and what can be asked of every engine, is in `policy.questions`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.oracle.actions import NOTHING as NOTHING
from dobandit.oracle.actions import Action as Action
from dobandit.oracle.actions import Actions as Actions

if TYPE_CHECKING:
    from dobandit.policy.problem import Problem

Array = NDArray[np.float64]
UNIFORMS = 3  # random numbers in a round, unless an engine asks for more: tie-breaking, whether to explore, where


class Interval(NamedTuple):
    """Two ends."""

    low: float
    high: float


class Estimate(NamedTuple):
    """E[target] of an action with the ends of its interval; value NaN: nothing is known that would tell."""

    value: float
    low: float
    high: float


class Pending(NamedTuple):
    """An action that is under way: its context, and how many rounds it will bring."""

    action: Action
    context: Array
    size: int = 1


class Situation(NamedTuple):
    """All that is known before acting.

    draws      the round's random numbers, as many as the engine's `draws`
    context    (n + 1,) the value of each context variable by id, 1 for the constant, NaN elsewhere
    available  ids of the variables that can be set now (None: all that the rules allow)
    pending    actions that are under way: what they are expected to teach counts as known
    """

    draws: Array
    context: Array
    available: tuple[int, ...] | None = None
    pending: tuple[Pending, ...] = ()


class Choice(NamedTuple):
    """What to set, and the index that made the policy choose it (NaN: nothing was compared).

    proved: no allowed action has a larger index; False where a search may have missed it
    note: what was special about this choice, in words
    """

    action: Action
    value: float
    proved: bool = True
    note: str = ""


class Rounds(NamedTuple):
    """Rounds to learn from, a row each.

    values   (rows, n + 1) values by id, NaN where a variable was not seen; 1 for the constant
    was_set  (rows, n + 1) which variables were set
    counts   (rows,) how often the row happened: learning from it is learning from that many equal rows in a row
    """

    values: Array
    was_set: NDArray[np.bool_]
    counts: NDArray[np.int64]

    def part(self, rows: slice | NDArray[Any]) -> Rounds:
        """Some rows, by a slice, a mask or their numbers."""
        return Rounds(self.values[rows], self.was_set[rows], self.counts[rows])


def batches(sizes: NDArray[np.int64]) -> Iterator[slice]:
    """The rows of each batch, where they stand one after another."""
    ends = np.cumsum(sizes).tolist()
    return (slice(end - size, end) for size, end in zip(sizes.tolist(), ends, strict=True))


def one_round(values: Array, was_set: NDArray[np.bool_]) -> Rounds:
    """A single round as a batch."""
    return Rounds(values[None, :], was_set[None, :], np.ones(1, dtype=np.int64))


class Draws(NamedTuple):
    """The random numbers of a stretch of simulated rounds, a row each: the world's (one per node) and the policy's."""

    world: Array
    policy: Array


class Engine(ABC):
    """A policy at work on one problem: what to set next, given what was learned so far.

    problem  what it works on; never changed
    rounds   how many it has taken in, counts included, whatever was seen in them
    draws    how many random numbers `choose` needs in a round; it has no others
    delta    with what probability what it says of all rounds together is wrong

    What an engine knows is a function of the rounds it was told, in their order: an experiment is started again by
    telling its log anew, and a simulated run is repeated by its seed. Ids are those of `problem.graph`: node v is
    `problem.graph.nodes[v - 1]`, and 0 is the constant.

    >>> import numpy as np
    >>> import dobandit as dob
    >>> engine = dob.UCB().start(dob.paper.G4.graph, budget=2, effects="nonnegative").engine
    >>> now = Situation(np.array([0.0, 0.5, 0.5]), no_context(len(engine.problem.graph)))
    >>> engine.choose(now)
    Choice(action=Action(ids=(1, 2), values=(1.0, 1.0)), value=inf, proved=True, note='')
    """

    problem: Problem
    draws: int = UNIFORMS
    delta: float = 0.05

    @property
    @abstractmethod
    def rounds(self) -> int: ...

    @abstractmethod
    def choose(self, now: Situation) -> Choice:
        """What to set next.

        now  the round's random numbers, the context, what can be set, and what is under way

        Returns an action that the rules allow, of the variables that can be set now, with the index that spoke for it
        (NaN where nothing was compared). Changes nothing that can be seen: asked twice, it answers the same.
        """

    @abstractmethod
    def update(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        """Learn from rounds.

        rounds  a row per round, NaN where a variable was not seen; they may set other variables than `choose` would,
                to other values (rounds that were recorded or imported)
        sizes   None: the rounds are in their order. Else they are batches, one after another, whose own order is lost,
                such as the summed up rows of trials: the first has the first sizes[0] rows

        Rounds in their order teach what they do one by one, and a row with count c what c equal rows do; but where a
        row has a count, they are a single batch, and intervals that rest on the order may be wider.
        """

    @abstractmethod
    def predict(self, action: Action, context: Array) -> Estimate:
        """E[target] of an action, without optimism, with its interval.

        action   what is set, whether the rules allow it or not
        context  (n + 1,) the value of each context variable by id, 1 for the constant, NaN elsewhere

        Returns low <= value <= high, all from 0 to 1; a value of NaN, in [0, 1], where nothing is known that would
        tell.
        """

    @abstractmethod
    def compare(self, now: Situation, optimistic: bool = True) -> Sequence[tuple[Action, float]]:
        """What is said of the actions that can be chosen now, a number each.

        optimistic  True: the index by which `choose` takes them, the largest that of the chosen action; empty where it
                    compares nothing. False: the value that they seem to have, NaN where nothing is known; the first
                    action with the largest is recommended. What is under way is of no account then

        Where actions are searched for, only those that the search has come upon.
        """

    def copy(self) -> Self:
        """One that knows the same, and learns by itself from now on. The problem, which never changes, is shared."""
        return copy.deepcopy(self, {id(self.problem): self.problem})


def no_context(nodes: int) -> Array:
    """The context of a graph with `nodes` named nodes in which nothing is known before acting."""
    context = np.full(nodes + 1, np.nan)
    context[0] = 1.0
    return context


def copied(state: Any, done: dict[int, Any] | None = None) -> Any:
    """A state's named tuples with copies of their arrays; an array that stands in two places still does, and one that
    is done already (by its id) is not copied. One that cannot be written stays: kernels are compiled again for arrays
    that can, as its copy could be."""
    done = {} if done is None else done
    if isinstance(state, np.ndarray):
        if not state.flags.writeable:
            return state
        if id(state) not in done:
            done[id(state)] = state.copy(order="K")
        return done[id(state)]
    if not isinstance(state, tuple):
        return state
    parts = [copied(part, done) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
