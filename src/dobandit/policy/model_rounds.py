"""The rounds of policies that keep a model, compiled: choosing, learning, and both in a loop against a simulated world.

The parts of a plan are named tuples; kernels pick the code for each part by its type, so that any combination runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dobandit.compiled import Kernel, by_type, kernel
from dobandit.estimation.anytime import keep_order
from dobandit.estimation.estimators import LeastSquares, learn
from dobandit.estimation.kept_intervals import Unwatched, watch_round
from dobandit.estimation.statistics import Layout
from dobandit.kernel_parts import call_of, packed, parts_at, place_of
from dobandit.oracle.closed_form import ClosedForm
from dobandit.oracle.listing import IDLE, propose
from dobandit.oracle.local_search import LocalSearch
from dobandit.policy.insurance import Insured
from dobandit.policy.own_outcomes import NOT_KEPT, OwnOutcomes, note_play
from dobandit.policy.recording import record
from dobandit.policy.region import end_round, initialising, set_radii
from dobandit.policy.round_log import write_codes
from dobandit.policy.world import WorldArrays, act, linear_value, see_context

_NO_DRAWS = np.zeros(0)
_intrinsic: Any = intrinsic


class ModelPlan(NamedTuple):
    """What stays fixed while a learner runs, and its scratch."""

    estimator: Any
    index: Any
    oracle: Any
    layout: Layout
    thresholds: NDArray[np.float64]  # (n + 1,) what lambda_min has to reach before optimism begins
    rho: NDArray[np.float64]  # (n + 1,) scratch
    idle_ids: NDArray[np.int32]  # what is set while initialising: what is required
    idle_to: NDArray[np.float64]
    watch: Any = Unwatched()  # which intervals are kept up to date


@kernel
def propose_action(plan: Any, state: Any, context: Any, draws: Any, t: int) -> int:
    """Line 9 of Algorithm 1, line 5 of Algorithm 3: the row of the oracle's list to play after t rounds, IDLE while
    initialising. t < 0: the best row under the plain estimate. Without draws: see `score_actions`."""
    if t >= 0 and len(draws) > 0 and initialising(plan.index, state.clock):
        return IDLE
    set_radii(plan.index, plan.layout.ptr, t, plan.rho)
    return propose(plan.oracle, plan.layout, state, plan.rho, context, draws)


def score_actions(plan: ModelPlan, state: Any, context: NDArray[np.float64], t: int) -> None:
    """The index of every listed action after t rounds; t < 0: without optimism."""
    if isinstance(plan.oracle, LocalSearch):  # it would read draws that are not there
        raise TypeError("a search keeps no list of actions that could be scored")
    propose_action(plan, state, context, _NO_DRAWS, t)


@kernel
def learn_rounds(
    estimator: Any,
    layout: Any,
    watch: Any,
    initial: int,
    thresholds: Any,
    state: Any,
    values: Any,
    was_set: Any,
    counts: Any,
) -> None:
    """Rounds in their order, each as often as it counts. It is given the parts of a plan that it needs, so that it is
    compiled once for all oracles."""
    for t in range(len(values)):
        for _ in range(counts[t]):
            learn(estimator, layout, state, values[t], was_set[t])
            watch_round(watch, layout, state, values[t], was_set[t])
            end_round(initial, layout, thresholds, state.stats, state.clock)


@kernel
def learn_batches(
    estimator: Any, layout: Any, watch: Any, initial: int, thresholds: Any, state: Any,
    values: Any, was_set: Any, counts: Any, ends: Any, balance: Any,
) -> None:  # fmt: skip
    """Batches whose own order is lost, one after another; batch i ends before row ends[i]."""
    start = 0
    for i in range(len(ends)):
        keep_order(state, balance, False)
        learn_rounds(
            estimator, layout, watch, initial, thresholds, state,
            values[start : ends[i]], was_set[start : ends[i]], counts[start : ends[i]],
        )  # fmt: skip
        keep_order(state, balance, True)
        start = ends[i]


class Merged(NamedTuple):
    """Choosing and learning stand in the loop itself: for rounds of about a microsecond."""

    plan: ModelPlan
    state: Any


class Linked(NamedTuple):
    """Choosing and learning are called where they stand in memory, and so is what they are given: one loop, compiled
    once, runs every combination of parts."""

    propose: int
    learn: int
    plan: int
    state: int
    estimator: int
    layout: int
    watch: int
    initial: int
    thresholds: NDArray[np.float64]


class Stage(NamedTuple):
    """What the loop itself reads of a plan and a state."""

    target: int
    ids: NDArray[np.int32]  # (actions, k) of the list
    to: NDArray[np.float64]  # (actions, k)
    idle_ids: NDArray[np.int32]
    idle_to: NDArray[np.float64]
    clock: NDArray[np.int64]
    own: OwnOutcomes


class Linking(NamedTuple):
    """How the loop over rounds reaches choosing and learning. It holds for this very plan and this very state."""

    plan: ModelPlan
    state: Any
    calls: Merged | Linked
    stage: Stage
    kept: tuple[NDArray[np.int64], ...]  # what stands at the places of `calls`

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """A copied engine has arrays of its own, which stand elsewhere."""


def linking(plan: ModelPlan, state: Any, world: WorldArrays, draws: NDArray[np.float64]) -> Linking:
    """`draws`: the random numbers of some round."""
    listing = plan.oracle.listing
    own = plan.oracle.own if isinstance(plan.oracle, Insured) else NOT_KEPT
    stage = Stage(plan.layout.target, listing.ids, listing.to, plan.idle_ids, plan.idle_to, state.clock, own)
    quick = type(plan.estimator) is LeastSquares and type(plan.oracle) is ClosedForm
    if quick or not isinstance(propose_action, Kernel):
        return Linking(plan, state, Merged(plan, state), stage, ())
    rest = plan.index.initial, plan.thresholds
    parts, rows = (plan.estimator, plan.layout, plan.watch), (world.row, world.row_set, world.once)
    kept = tuple(map(packed, (plan, state, *parts)))
    choosing = place_of(propose_action, plan, state, world.known, draws, 0)
    learning = place_of(learn_rounds, *parts, *rest, state, *rows)
    calls = Linked._make([choosing, learning, *(words.ctypes.data for words in kept), *rest])
    return Linking(plan, state, calls, stage, kept)


@_intrinsic  # type: ignore[untyped-decorator]
def propose_at(typing: Any, place: Any, plan: Any, state: Any, context: Any, draws: Any, t: Any) -> Any:
    """`propose_action`, where it stands."""
    return call_of(types.int64, plan, state, context, draws, t)


@_intrinsic  # type: ignore[untyped-decorator]
def learn_at(
    typing: Any, place: Any, estimator: Any, layout: Any, watch: Any, initial: Any, thresholds: Any, state: Any,
    values: Any, was_set: Any, counts: Any,
) -> Any:  # fmt: skip
    """`learn_rounds`, where it stands."""
    return call_of(types.none, estimator, layout, watch, initial, thresholds, state, values, was_set, counts)


@by_type
def propose_now(calls: Any, clock: Any, world: Any, draws: Any) -> Any:
    """`propose_action` after the rounds so far."""


@propose_now.of(Merged)
def propose_merged(calls: Any, clock: Any, world: Any, draws: Any) -> int:
    return propose_action(calls.plan, calls.state, world.known, draws, clock[0])


@propose_now.of(Linked)
def propose_linked(calls: Any, clock: Any, world: Any, draws: Any) -> int:
    plan, state = parts_at(calls.plan), parts_at(calls.state)
    return propose_at(calls.propose, plan, state, world.known, draws, clock[0])


@by_type
def learn_now(calls: Any, world: Any) -> None:
    """`learn_rounds` for what the world shows now."""


@learn_now.of(Merged)
def learn_merged(calls: Any, world: Any) -> None:
    plan = calls.plan
    learn_rounds(
        plan.estimator, plan.layout, plan.watch, plan.index.initial, plan.thresholds, calls.state,
        world.row, world.row_set, world.once,
    )  # fmt: skip


@learn_now.of(Linked)
def learn_linked(calls: Any, world: Any) -> None:
    learn_at(
        calls.learn, parts_at(calls.estimator), parts_at(calls.layout), parts_at(calls.watch), calls.initial,
        calls.thresholds, parts_at(calls.state), world.row, world.row_set, world.once,
    )  # fmt: skip


@kernel
def run_rounds(calls: Any, stage: Any, world: Any, tape: Any, world_draws: Any, policy_draws: Any, codes: Any) -> None:
    """See the context, propose, act, record, learn; into `codes`, where it has rows, goes what was seen."""
    listed = tape.expected.shape[1] > 0
    for t in range(len(world_draws)):
        pattern = see_context(world, world_draws[t]) if len(world.context) > 0 else 0
        index = propose_now(calls, stage.clock, world, policy_draws[t])
        ids, to = (stage.ids[index], stage.to[index]) if index >= 0 else (stage.idle_ids, stage.idle_to)
        act(world, ids, to, world_draws[t])
        expected = tape.expected[pattern, index] if listed else linear_value(world, ids, to)
        record(tape, pattern, index, expected, world.values[stage.target])
        note_play(stage.own, stage.ids, pattern, index, world.values[stage.target])
        learn_now(calls, world)
        if len(codes) > 0:
            write_codes(codes, t, world.values, world.was_set)
