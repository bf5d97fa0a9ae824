"""The protocol of an engine: a policy at work on one problem. Everything here speaks of ids and arrays, never of names.

Situation: all that is known before acting.  Choice: what to set.  Rounds: what was learned, a batch.
A policy of your own implements `choose`, `update`, `predict`, `best` and `compared`; `run` has a plain default, so that
it works in simulations too (see CONTRIBUTING.md).
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dobandit.oracle.actions import NOTHING as NOTHING
from dobandit.oracle.actions import Action as Action
from dobandit.oracle.actions import Actions as Actions

if TYPE_CHECKING:
    from dobandit.policy.beliefs import Beliefs
    from dobandit.policy.graph_evidence import Finding
    from dobandit.policy.problem import Problem
    from dobandit.policy.recording import Recorder
    from dobandit.policy.world import World

Array = NDArray[np.float64]
WORDS_PRACTICAL = "95%, at every look (asymptotic)"
WORDS_ONCE = "95%, at one look"
HANDFUL = 5  # rows: where fewer bear on an interval, it is as wide as what is proved
MOST_RIVALS = 200  # actions that one is compared with
UNIFORMS = 3  # random numbers in a round, unless an engine asks for more: tie-breaking, whether to explore, where


def percent(delta: float) -> str:
    """How sure one is of what fails with probability delta: "95%"."""
    return f"{100.0 * (1.0 - delta):.10g}%"


def words_always(delta: float) -> str:
    """What intervals promise that hold at every round, all together, but with probability delta."""
    return f"holds with {percent(delta)} at every round you look"


class Interval(NamedTuple):
    """Two ends."""

    low: float
    high: float


class Estimate(NamedTuple):
    """E[target] of an action with the ends of its interval; value NaN: nothing is known that would tell."""

    value: float
    low: float
    high: float


class Contrast(NamedTuple):
    """By how much each of some actions is ahead of one, a row each: the estimate and the ends of its interval.

    half  how far the interval would reach if it were not widened where only a handful of rows bear on it
    """

    value: Array
    low: Array
    high: Array
    half: Array


class Guaranteed(NamedTuple):
    """What is proved, with probability 1 - delta, at every round one looks, for all actions together: true as far as
    the graph is, whatever the effects look like.

    interval  of E[target] of the action
    nothing   of E[target] of doing nothing; None where nothing is known of that
    uplift    of the difference of the two; None where `nothing` is
    gap       no other allowed action is better by more than this; None where they are too many to look at
    """

    interval: Interval
    nothing: Interval | None
    uplift: Interval | None
    gap: float | None


class Gap(NamedTuple):
    """No other action that can be chosen is better by more than `gap`, with 95%, at every look.

    more  about how many rounds are still needed until it is as small as it is to be, if they go on as so far; None
          where that cannot be told, or no limit was given
    """

    gap: float
    more: int | None = None


class Chance(NamedTuple):
    """How likely an action is to be the best, by what is known, and how far it falls short of the best on average."""

    best: float
    loss: float


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
        """Some rows: of a slice, which are not copied, of a mask, or of a list of numbers."""
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

    problem           what it works on; never changed
    draws             how many random numbers `choose` needs in a round; it has no others
    trusts_intervals  whether `choose` goes by intervals that may be wider after rows without an order
    watches_graph     whether it counts what the rounds say against the graph (`findings`)
    keeps_outcomes    whether it keeps what each action brought by itself besides a model (`update_history`)
    delta             with what probability what is `guaranteed` is wrong at some round
    looks             "every": intervals hold at every look, as in an experiment; "once": at the one look that a table
                      of rows gets
    bonus_words       why the index of an action is above its mean, for people; "" where it need not be

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
    trusts_intervals: bool = False
    watches_graph: bool = False
    keeps_outcomes: bool = False
    delta: float = 0.05
    looks: str = "every"
    bonus_words: str = ""

    @abstractmethod
    def choose(self, now: Situation) -> Choice:
        """What to set next.

        now  the round's random numbers, the context, what can be set, and what is under way

        Returns an action that the rules allow, of the variables that can be set now, with the index that spoke for it
        (NaN where nothing was compared). Changes nothing that can be seen: asked twice, it answers the same.
        """

    @abstractmethod
    def update(self, rounds: Rounds) -> None:
        """Learn from rounds, in their order.

        rounds  a row per round, NaN where a variable was not seen; they may set other variables than `choose` would,
                to other values (rounds that were recorded or imported)

        A batch teaches what its rows do one by one, and a row with count c what c equal rows do; but where a row has a
        count, the order of the batch is lost, and intervals that rest on it may be wider.
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
    def best(self, now: Situation) -> Choice:
        """The allowed action that looks best without optimism, with the value that it seems to have; the first of
        equals. `now` says what can be set, and the context; its random numbers are of no account."""

    @abstractmethod
    def compared(self, now: Situation) -> Sequence[tuple[Action, float]]:
        """The actions that `choose` compares in this situation, with their indices: among them the chosen one, whose
        index is the largest. Empty where it compares nothing. This is what explanations are made of."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Rounds taken in so far, counts included, whatever was seen in them."""

    def update_unordered(self, rounds: Rounds) -> None:
        """Learn from rounds whose order is lost, such as the summed up rows of one trial; default: as they come.
        Engines whose guarantees rest on the order override this."""
        self.update(rounds)

    def update_batches(self, rounds: Rounds, sizes: NDArray[np.int64]) -> None:
        """Learn from batches one after another: of the first sizes[0] rows the order is lost, then of the next
        sizes[1], and so on. It is `update_unordered` of each, to the last bit; default: that."""
        for part in batches(sizes):
            self.update_unordered(rounds.part(part))

    def update_history(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None:
        """Learn from rounds in which neither a policy nor chance decided on the action: what did may have moved the
        target, too, so that what came of them is not what the action brings by itself.

        sizes  as in `update_batches`; None: single rounds in their order

        Only engines with `keeps_outcomes` are told so. Default: as of all rounds."""
        if sizes is None:
            self.update(rounds)
        else:
            self.update_batches(rounds, sizes)

    @property
    def weighs_by_order(self) -> bool:
        """Whether a round weighs by what was predicted before it, so that the order of rounds matters."""
        return False

    def beliefs(self) -> Beliefs | None:
        """What is known of each node; None where no model is kept."""
        return None

    @property
    def revisions(self) -> tuple[Finding, ...]:
        """Causes that the graph leaves out and the engine reckons with, because the rounds speak for them."""
        return ()

    def findings(self) -> Sequence[Finding]:
        """What the rounds say against the graph besides `revisions`, of an engine that watches it."""
        return ()

    @property
    def interval_words(self) -> str:
        """What the intervals of `predict` promise, for people."""
        return "by the policy's own measure"

    def contrast(self, action: Action, others: Sequence[Action], context: Array) -> Contrast:
        """By how much each of the other actions is ahead of `action`, with its interval. Default: the difference of two
        intervals of `predict`. Engines that know what two actions share override this: that cancels."""
        mine, theirs = self.predict(action, context), [self.predict(other, context) for other in others]
        value, low, high = np.array(theirs).reshape(-1, 3).T
        ahead = value - mine.value
        return Contrast(ahead, low - mine.high, high - mine.low, high - mine.low - ahead)

    def rivals(self, now: Situation) -> Sequence[Action]:
        """The actions among which a better one may be; default: all that are allowed; where these are too many, those
        that `choose` compares."""
        allowed = self.problem.allowed(now.available)
        if allowed.count() > MOST_RIVALS:
            return [action for action, _ in self.compared(now)]
        rows = allowed.rows()
        return [rows.row(i) for i in range(len(rows.ids))]

    def gap(self, action: Action, now: Situation, within: float | None = None) -> Gap:
        """By how much any other action that can be chosen now may be better than this one at most.

        within  how small that is to be. The width of an interval falls as 1 / sqrt(rounds)
        """
        others = [other for other in self.rivals(now) if other != action]
        if not others:
            return Gap(0.0, 0) if self.problem.allowed(now.available).count() <= 1 else Gap(1.0)
        told = self.contrast(action, others, now.context)
        gap = max(float(np.nan_to_num(told.high, nan=1.0).max()), 0.0)
        return Gap(gap, None if within is None else self._more_rounds(told, within))

    def _more_rounds(self, told: Contrast, within: float) -> int | None:
        room = within - told.value
        if np.isnan(told.value).any() or (room <= 0.0).any() or not self.rounds:
            return None
        wide = (told.high > within) & (told.high > told.value + told.half + 1e-9)
        if wide.any():  # hardly a row bears on it: who knows when one will
            return None
        times = float(np.max(told.half / room)) ** 2
        return max(math.ceil((times - 1.0) * self.rounds), 0)

    def guaranteed(self, action: Action, now: Situation, delta: float | None = None) -> Guaranteed | None:
        """What is proved of an action, with probability 1 - delta (default: the engine's); None: nothing."""
        return None

    def runner_up(self, action: Action, now: Situation) -> tuple[Action, float] | None:
        """The best of the other actions that `choose` compared, with its index; None where it compared nothing."""
        others = [(other, index) for other, index in self.compared(now) if other != action]
        return max(others, key=lambda pair: pair[1]) if others else None

    def reason(self, action: Action, now: Situation) -> str | None:
        """Why `choose` took an action in this situation, for people; None: the index that it gave says it all."""
        return None

    def search(self, world: World, draws: Draws, within: float) -> int | None:
        """Play rounds against a simulated world until no action can be better than `best` by more than `within`.

        Returns after how many of these rounds that was, 0 where it was so before the first; None: after none of them.
        """
        for t, (world_draws, policy_draws) in enumerate(zip(draws.world, draws.policy, strict=True)):
            now = Situation(policy_draws, world.context(world_draws))
            if self.gap(self.best(now).action, now).gap <= within:
                return t
            action = self.problem.checked(self.choose(now).action, type(self).__name__)
            self.update(world.play(action, world_draws))
        return None

    def chance(self, action: Action, now: Situation) -> Chance | None:
        """How likely the action is to be best of those that can be chosen now; None where that cannot be told."""
        return None

    def actions(self) -> Actions | None:
        """Every action it may choose besides setting nothing; None where there is no list."""
        return None

    def copy(self) -> Self:
        """One that knows the same, and learns by itself from now on. The problem, which never changes, is shared."""
        return copy.deepcopy(self, {id(self.problem): self.problem})

    def run(self, world: World, recorder: Recorder, draws: Draws) -> None:
        """Play rounds against a simulated world. Compiled engines override this, and make the same choices; the
        default calls `choose` and `update` once per round.

        world     draws what is seen
        recorder  is told each round's action, context and reward
        draws     the random numbers, a row per round
        """
        for world_draws, policy_draws in zip(draws.world, draws.policy, strict=True):
            context = world.context(world_draws)
            action = self.problem.checked(self.choose(Situation(policy_draws, context)).action, type(self).__name__)
            seen = world.play(action, world_draws)
            recorder.note(action, context, float(seen.values[0, self.problem.graph.arrays.target]))
            self.update(seen)


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


def without_helpers(engine: dict[str, Any], of: type) -> dict[str, Any]:
    """An engine's attributes without the helpers that it made for itself when they were first needed."""
    return {name: one for name, one in engine.items() if not isinstance(getattr(of, name, None), cached_property)}
