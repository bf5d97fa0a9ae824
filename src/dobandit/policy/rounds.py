"""The rounds of policies that keep a model, compiled: choosing, and a loop against a simulated world.

A policy is three kernels, which `kernels.with_kernels` puts into the loop:
    LEARN(belief, values, was_set, counts)          takes rounds in (`estimation.estimators`)
    EVALUATE(belief, plan, fixed, reach, draws)     scores every action (`policy.evaluators`)
    CHOOSE(plan, own, fixed, reach, draws)          picks one by its score
"""

from __future__ import annotations

from typing import Any

from dobandit.kernels import borrowed, inlined, kernel
from dobandit.oracle.action_list import IDLE, pick_action
from dobandit.policy.own_outcomes import note_play
from dobandit.policy.radii import initialising, set_radii
from dobandit.policy.recording import record_round, write_codes
from dobandit.policy.world import act, hide_unshown, linear_value, see_context

LEARN: Any = None
EVALUATE: Any = None
CHOOSE: Any = None


@inlined
def pick_best(plan: Any, own: Any, fixed: Any, reach: Any, draws: Any) -> int:
    """The action with the largest index."""
    return pick_action(plan.actions.scores, draws[0])


@kernel
def play(
    belief: Any, plan: Any, optimism: Any, rho: Any, idle: Any, own: Any, world: Any, tape: Any, world_draws: Any,
    policy_draws: Any, codes: Any, once: Any,
) -> None:  # fmt: skip
    """See the context, choose, act, record, learn; into `codes`, where it has rows, goes what was seen.

    idle  what is set while initialising: what is required
    """
    belief, plan, own, world, tape = borrowed(belief), borrowed(plan), borrowed(own), borrowed(world), borrowed(tape)
    world_draws, policy_draws, once = borrowed(world_draws), borrowed(policy_draws), borrowed(once)
    optimism, rho, idle, codes = borrowed(optimism), borrowed(rho), borrowed(idle), borrowed(codes)
    nodes, slots, points, seen, context = world.nodes, world.slots, world.points, world.seen, world.context
    known, values, was_set = world.known, world.values, world.was_set
    actions, clock, expected = plan.actions, belief.clock, tape.expected
    target = actions.order[len(actions.order) - 1]
    rows, sets = values.reshape((1, len(values))), was_set.reshape((1, len(was_set)))
    for t in range(len(world_draws)):
        pattern = see_context(nodes, slots, points, context, known, world_draws, t)
        ids, to, row, number = idle.ids, idle.values, 0, IDLE
        if not initialising(optimism, clock):
            set_radii(optimism, belief.nodes, clock[0], True, rho)
            EVALUATE(belief, plan, known, rho, policy_draws[t])
            row = number = CHOOSE(plan, own, known, rho, policy_draws[t])
            ids, to = actions.ids, actions.to
        act(nodes, slots, points, seen, ids, to, row, world_draws, t, values, was_set)
        reward = values[target]
        if expected.shape[1] > 0:
            truth = expected[pattern, number]
        else:
            truth = linear_value(nodes, slots, seen, context, ids, to, row, target)
        record_round(tape.best, tape.plays, tape.curve, tape.totals, pattern, number, truth, reward)
        if len(own.rounds) > 0:
            note_play(own.sets, own.plays, own.total, own.rounds, pattern, number, reward)
        if len(codes) > 0:
            write_codes(codes, t, values, was_set)
        if len(world.shown) > 0:
            hide_unshown(world.shown, actions.scores[number]["regime"], was_set)
        LEARN(belief, rows, sets, once)
