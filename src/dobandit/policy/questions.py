"""What can be asked of every engine, and, as protocols, what an engine may offer besides: where it does, it answers
itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dobandit.policy.answers import Chance, Contrast, Gap, Guaranteed
from dobandit.policy.engine import Action, Actions, Array, Choice, Draws, Engine, Rounds, Situation

if TYPE_CHECKING:
    from dobandit.policy.beliefs import Beliefs
    from dobandit.policy.graph_evidence import Finding
    from dobandit.policy.recording import Recorder
    from dobandit.policy.world import World

HANDFUL = 5  # rows: where fewer bear on an interval, it is as wide as what is proved
MOST_RIVALS = 200  # actions that one is compared with


@runtime_checkable
class Believes(Protocol):
    """Keeps a model of the causes.

    weighs_by_order   whether a round weighs by what was predicted before it, so that the order of rounds matters
    trusts_intervals  whether `choose` goes by intervals that may be wider after rows without an order
    watches_graph     whether it counts what the rounds say against the graph
    """

    weighs_by_order: bool
    trusts_intervals: bool
    watches_graph: bool
    revisions: tuple[Finding, ...]  # causes that the graph leaves out, and it reckons with

    def beliefs(self) -> Beliefs: ...
    def findings(self) -> Sequence[Finding]: ...


@runtime_checkable
class KeepsOutcomes(Protocol):
    """Keeps what each action brought by itself, so that it must know of rounds in which neither a policy nor chance
    decided on the action: what did may have moved the target, too."""

    def update_history(self, rounds: Rounds, sizes: NDArray[np.int64] | None = None) -> None: ...


@runtime_checkable
class Compiled(Protocol):
    """Plays simulated rounds in a loop of its own, and makes the choices that `play_rounds` makes.

    actions  every action it may choose besides setting nothing; None where there is no list
    """

    def actions(self) -> Actions | None: ...
    def run(self, world: World, recorder: Recorder, draws: Draws) -> None: ...


@runtime_checkable
class Promises(Protocol):
    """Says what the intervals of `predict` promise."""

    @property
    def interval_words(self) -> str: ...


@runtime_checkable
class AddsBonus(Protocol):
    """Adds a bonus to a mean, for a reason that it has words for."""

    bonus_words: str


@runtime_checkable
class Contrasts(Protocol):
    """Knows what two actions share, which cancels in their difference; and which actions a better one is among."""

    def contrast(self, action: Action, others: Sequence[Action], context: Array) -> Contrast: ...
    def rivals(self, now: Situation) -> Sequence[Action]: ...


@runtime_checkable
class Weighs(Protocol):
    """Knows how likely an action is to be the best of those that can be chosen now; None where that cannot be told."""

    def chance(self, action: Action, now: Situation) -> Chance | None: ...


@runtime_checkable
class Proves(Protocol):
    """Proves something of an action, with probability 1 - delta (default: the engine's); None: nothing."""

    def guaranteed(self, action: Action, now: Situation, delta: float | None = None) -> Guaranteed | None: ...


@runtime_checkable
class Stops(Protocol):
    """Looks for an answer: has a gap of its own, and says why it took an action, since no index does."""

    def gap(self, action: Action, now: Situation, within: float | None = None) -> Gap: ...
    def reason(self, now: Situation) -> str: ...
    def runner_up(self, action: Action, now: Situation) -> tuple[Action, float] | None: ...


def best(engine: Engine, now: Situation) -> Choice:
    """The allowed action that looks best without optimism, with the value that it seems to have; the first of
    equals."""
    values = engine.compare(now, optimistic=False)
    action, value = max(values, key=lambda pair: -math.inf if math.isnan(pair[1]) else pair[1])
    return Choice(action, math.nan if math.isnan(value) else value)


def runner_up(engine: Engine, action: Action, now: Situation) -> tuple[Action, float] | None:
    """The best of the other actions that `choose` compared, with its index; None where it compared nothing."""
    if isinstance(engine, Stops):
        return engine.runner_up(action, now)
    others = [pair for pair in engine.compare(now) if pair[0] != action]
    return max(others, key=lambda pair: pair[1]) if others and not math.isnan(engine.choose(now).value) else None


def contrast(engine: Engine, action: Action, others: Sequence[Action], context: Array) -> Contrast:
    """By how much each of the other actions is ahead of `action`, with its interval."""
    if isinstance(engine, Contrasts):
        return engine.contrast(action, others, context)
    return contrast_of_intervals(engine, action, others, context)


def contrast_of_intervals(engine: Engine, action: Action, others: Sequence[Action], context: Array) -> Contrast:
    """The difference of two intervals of `predict`."""
    mine, theirs = engine.predict(action, context), [engine.predict(other, context) for other in others]
    value, low, high = np.array(theirs).reshape(-1, 3).T
    ahead = value - mine.value
    return Contrast(ahead, low - mine.high, high - mine.low, high - mine.low - ahead)


def rivals(engine: Engine, now: Situation) -> Sequence[Action]:
    """The actions among which a better one may be: all that are allowed, or, where these are too many, those that
    `choose` compares."""
    if isinstance(engine, Contrasts):
        return engine.rivals(now)
    allowed = engine.problem.allowed(now.available)
    if allowed.count() > MOST_RIVALS:
        return [action for action, _ in engine.compare(now)]
    rows = allowed.rows()
    return [rows.row(i) for i in range(len(rows.ids))]


def gap(engine: Engine, action: Action, now: Situation, within: float | None = None) -> Gap:
    """By how much any other action that can be chosen now may be better than this one at most.

    within  how small that is to be. The width of an interval falls as 1 / sqrt(rounds)
    """
    return engine.gap(action, now, within) if isinstance(engine, Stops) else gap_to_rivals(engine, action, now, within)


def gap_to_rivals(engine: Engine, action: Action, now: Situation, within: float | None = None) -> Gap:
    """By the contrasts with all rivals."""
    others = [other for other in rivals(engine, now) if other != action]
    if not others:
        return Gap(0.0, 0) if engine.problem.allowed(now.available).count() <= 1 else Gap(1.0)
    ahead = contrast(engine, action, others, now.context)
    most = max(float(np.nan_to_num(ahead.high, nan=1.0).max()), 0.0)
    return Gap(most, None if within is None else _more_rounds(ahead, within, engine.rounds))


def _more_rounds(ahead: Contrast, within: float, rounds: int) -> int | None:
    room = within - ahead.value
    if np.isnan(ahead.value).any() or (room <= 0.0).any() or not rounds:
        return None
    wide = (ahead.high > within) & (ahead.high > ahead.value + ahead.half + 1e-9)
    if wide.any():  # hardly a row bears on it: who knows when one will
        return None
    times = float(np.max(ahead.half / room)) ** 2
    return max(math.ceil((times - 1.0) * rounds), 0)


def listed_actions(engine: Engine) -> Actions | None:
    """Every action that an engine may choose besides setting nothing; None where there is no list."""
    return engine.actions() if isinstance(engine, Compiled) else None


def run(engine: Engine, world: World, recorder: Recorder, draws: Draws) -> None:
    """Play rounds against a simulated world.

    world     draws what is seen
    recorder  is told each round's action, context and reward
    draws     the random numbers, a row per round
    """
    if isinstance(engine, Compiled):
        engine.run(world, recorder, draws)
    else:
        play_rounds(engine, world, recorder, draws)


def play_rounds(engine: Engine, world: World, recorder: Recorder, draws: Draws) -> None:
    """One by one, each with a `choose` and an `update`."""
    for world_draws, policy_draws in zip(draws.world, draws.policy, strict=True):
        context = world.context(world_draws)
        action = engine.problem.checked(engine.choose(Situation(policy_draws, context)).action, type(engine).__name__)
        seen = world.play(action, world_draws)
        recorder.note(action, context, float(seen.values[0, engine.problem.graph.arrays.target]))
        engine.update(seen)
