"""Engines whose likelihood-ratio sets are looked at, and what their kernels say of them."""

from __future__ import annotations

import math

import numpy as np

from dobandit import CausalUCB
from dobandit.estimation.anytime import find_centre, likelihood_sets, promised_interval
from dobandit.estimation.least_squares import pattern_row
from dobandit.estimation.marginal_likelihood import predicted_length
from dobandit.model.links import identity
from dobandit.oracle.actions import Action, actions_of
from dobandit.oracle.anytime_values import anytime_values, fill_intervals
from dobandit.oracle.frontier import frontier_of
from dobandit.oracle.listing import listing_of
from dobandit.policy.anytime_intervals import anytime_intervals
from dobandit.policy.causal_engine import CausalEngine, parts_of
from dobandit.policy.engine import Rounds, no_context
from dobandit.policy.problem import problem_of

NATS = math.log(4 / 0.05)


def engine_of(graph, link=identity, members=""):
    """CausalUCB's engine, or one whose beliefs have only the members named by their first letters."""
    problem = problem_of(graph, 1, links="auto" if members and link == identity else link, effects="any")
    if not members:
        return CausalUCB().engine(problem)
    has = np.tile([letter in members for letter in "scto"], (len(graph) + 1, 1))
    has[0] = False
    engine = CausalEngine(problem, lambda believed: parts_of(believed, 2.0, has=has))
    engine.watches_graph = False
    return engine


def told(engine, values):
    """Learn rows of values by id, in their order; nothing was set."""
    values = np.asarray(values, dtype=float)
    engine.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(len(values), dtype=np.int64)))
    return engine


def ends_of(engine, v, count, nats=NATS):
    """The ends of a node's patterns, by the kernel that fills those of all nodes."""
    order, layout = engine.problem.order, engine.plan.layout
    listing = listing_of(order, actions_of([Action()]))
    oracle = anytime_values(listing, frontier_of(engine.problem.graph, listing.order), layout, engine.plan.estimator)
    fill_intervals(layout, oracle, engine.state, nats, no_context(len(engine.problem.graph)))
    start, end = oracle.frontier.table_ptr[order.index(v) :][:2]
    assert end - start == count
    return oracle.low[start:end], oracle.high[start:end]


def promised_ends(engine, v, count, nats=NATS):
    """The ends of a node's patterns over its set of weights alone."""
    layout, sets = engine.plan.layout, likelihood_sets(engine.plan.layout, engine.plan.estimator)
    centre, ends = find_centre(layout, sets, engine.state, v, nats), np.zeros((count, 2))
    for i in range(count):
        pattern_row(layout, v, i, sets.row)
        promised_interval(layout, sets, engine.state, v, centre, ends[i])
    return ends.T


def length_of(engine, v, length=predicted_length):
    """The code length of a node's rows."""
    layout = engine.plan.layout
    return length(layout, likelihood_sets(layout, engine.plan.estimator), engine.state, v)


def anytime_interval(engine, action, context, delta):
    """The interval of one action, from what an engine has learned."""
    return anytime_intervals(engine.problem, engine.plan.estimator).interval(engine.state, action, context, delta)
