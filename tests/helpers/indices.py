"""The actions of an engine's list, and the index of one action, whether an engine lists it or not."""

from __future__ import annotations

from dobandit.oracle.actions import actions_of
from dobandit.oracle.listing import listing_of
from dobandit.policy.model_rounds import score_actions


def listed(actions):
    return [actions.row(i) for i in range(len(actions.ids))]


def index_of(engine, action, now):
    """By the engine's own oracle, for a list of this action alone."""
    problem = getattr(engine, "believed", engine.problem)
    listing = listing_of(problem.order, actions_of([action]), flags=problem.flags)
    plan = engine.plan._replace(oracle=engine.make_oracle(problem, listing, None))
    state = engine.state_with_pending(now.pending)
    score_actions(plan, state, problem.known(now.context), int(state.clock[0]))
    return float(plan.oracle.listing.values[0])
