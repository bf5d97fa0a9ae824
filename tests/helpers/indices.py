"""The index of one action, whether an engine lists it or not."""

from __future__ import annotations

from dobandit.oracle.actions import actions_of
from dobandit.oracle.listing import listing_of
from dobandit.policy.model_rounds import score_actions
from dobandit.policy.revising import RevisingEngine


def index_of(engine, action, now):
    """By the engine's own oracle, for a list of this action alone."""
    if isinstance(engine, RevisingEngine):
        action, now, engine = engine.revision.action(action), engine.revision.situation(now), engine.inner
    listing = listing_of(engine.problem.order, actions_of([action]))
    plan = engine.plan._replace(oracle=engine._make_oracle(engine.problem, listing, None))
    state = engine._expecting(now.pending)
    score_actions(plan, state, now.context, int(state.clock[0]))
    return float(plan.oracle.listing.values[0])
