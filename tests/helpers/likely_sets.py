"""Engines whose likelihood-ratio sets are looked at, and what their kernels say of them."""

from __future__ import annotations

import math

import numpy as np

from dobandit import CausalUCB
from dobandit.estimation.anytime import narrow_promised, pattern_intervals
from dobandit.estimation.marginal_likelihood import predicted_length, promised_length
from dobandit.model.links import identity
from dobandit.policy.causal_engine import CausalEngine, parts_of
from dobandit.policy.engine import Rounds
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
    """The ends of a node's patterns."""
    low, high = pattern_intervals(engine.state, v, nats)
    assert len(low) == len(high) == count
    return low, high


def promised_ends(engine, v, count, nats=NATS):
    """The ends of a node's patterns over its set of weights alone."""
    state, low, high = engine.state, np.zeros(count), np.ones(count)
    narrow_promised(state.nodes, state.cells, state.bits, state.points, v, nats, low, high)
    return low, high


def promised_length_of(engine, v):
    """The code length of a node's rows by its link alone."""
    return promised_length(engine.state.nodes[v], engine.state.cells, engine.state.bits)


def length_of(engine, v):
    """The code length of a node's rows."""
    return predicted_length(engine.state.nodes[v], engine.state.cells, promised_length_of(engine, v))


def anytime_interval(engine, action, context, delta):
    """The interval of one action, from what an engine has learned."""
    return engine.anytime.interval(engine.state, action, context, delta)
