"""The actions of an engine's list, and the index of one action, whether an engine lists it or not."""

from __future__ import annotations

from dobandit.oracle.action_list import action_list
from dobandit.oracle.actions import actions_of


def listed(actions):
    return [actions.row(i) for i in range(len(actions.ids))]


def index_of(engine, action, now):
    """By the engine's own evaluator, for a list of this action alone."""
    problem = engine.believed
    actions = action_list(problem.order, actions_of([action]), flags=problem.flags)
    evaluator = engine.make_evaluator(problem, actions, None)
    engine.score(evaluator, engine.state_with_pending(now.pending), problem.known(now.context))
    return float(actions.scores["index"][0])
