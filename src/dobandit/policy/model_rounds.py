"""The rounds of policies that keep a model, compiled: choosing, learning, and both in a loop against a simulated world.

The parts of a plan are named tuples; kernels pick the code for each part by its type, so that any combination runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.compiled import kernel
from dobandit.estimation.belief import Layout
from dobandit.estimation.estimators import learn
from dobandit.estimation.kept_intervals import Unwatched, watch_round
from dobandit.oracle.listing import IDLE, propose
from dobandit.oracle.local_search import LocalSearch
from dobandit.policy.own_outcomes import note_play
from dobandit.policy.recording import record, write_codes
from dobandit.policy.region import end_round, initialising, set_radii
from dobandit.policy.world import act, linear_value, see_context

_NO_DRAWS = np.zeros(0)


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
def propose_action(plan: Any, state: Any, context: Any, draws: Any, t: int, optimistic: bool) -> int:
    """Line 9 of Algorithm 1, line 5 of Algorithm 3: the row of the oracle's list to play after t rounds, IDLE while
    initialising. Where nobody is optimistic, the best row under the plain estimate. Without draws: see
    `score_actions`."""
    if optimistic and len(draws) > 0 and initialising(plan.index, state.clock):
        return IDLE
    set_radii(plan.index, plan.layout.ptr, t, optimistic, plan.rho)
    return propose(plan.oracle, plan.layout, state, plan.rho, context, draws)


def score_actions(plan: ModelPlan, state: Any, context: NDArray[np.float64], t: int, optimistic: bool = True) -> None:
    """The index of every listed action after t rounds, or, without optimism, its plain estimate."""
    if isinstance(plan.oracle, LocalSearch):  # it would read draws that are not there
        raise TypeError("a search keeps no list of actions that could be scored")
    propose_action(plan, state, context, _NO_DRAWS, t, optimistic)


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
            watch_round(watch, state, values[t], was_set[t])
            end_round(initial, layout, thresholds, state, state.clock)


@kernel
def run_rounds(
    plan: Any, state: Any, own: Any, world: Any, tape: Any, world_draws: Any, policy_draws: Any, codes: Any
) -> None:
    """See the context, propose, act, record, learn; into `codes`, where it has rows, goes what was seen."""
    listing, listed, target = plan.oracle.listing, tape.expected.shape[1] > 0, plan.layout.target
    for t in range(len(world_draws)):
        pattern = see_context(world, world_draws[t]) if len(world.context) > 0 else 0
        index = propose_action(plan, state, world.known, policy_draws[t], state.clock[0], True)
        ids, to = (listing.ids[index], listing.to[index]) if index >= 0 else (plan.idle_ids, plan.idle_to)
        act(world, ids, to, world_draws[t])
        expected = tape.expected[pattern, index] if listed else linear_value(world, ids, to)
        record(tape, pattern, index, expected, world.values[target])
        note_play(own, pattern, index, world.values[target])
        learn_rounds(
            plan.estimator, plan.layout, plan.watch, plan.index.initial, plan.thresholds, state,
            world.row, world.row_set, world.once,
        )  # fmt: skip
        if len(codes) > 0:
            write_codes(codes, t, world.values, world.was_set)
