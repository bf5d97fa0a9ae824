"""E[Y | do(S)] by exact passes over the frontier, for any signs, for a block of actions at once.

low(v), high(v): the interval of P(X = 1 | parents' pattern v).  one, zero: the states after s with X at 1 and 0.
    highest(s) = max over p in [low(v), high(v)] of p highest(one) + (1 - p) highest(zero),   lowest(s) alike.
p is chosen for each state of the frontier, which allows for more than one choice per pattern would: if every interval
holds its probability, E[Y | do(S)] lies between lowest and highest at the start. Where low = high, as for an estimate,
a drawn model or an optimistic one, both are E[Y | do(S)] itself.

The index of CausalUCB is E[Y] + c sqrt(Var E[Y]), whatever the nodes look like, over the joint distribution.
p_X(v): the mixture's probability that X is 1 given its parents' pattern v.
weight, value: of each state of the frontier, the probability of getting there and E[Y] from there on; one pass
forwards, one backwards.
D_X(v) = dE[Y] / dp_X(v): the sum over the states with that pattern of weight (value with X = 1 - value with X = 0).
The variance of E[Y] is the sum over nodes, whose errors are independent, of what `node_tables` makes of D_X.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.kernels import inlined, kernel
from dobandit.oracle.action_list import ActionList
from dobandit.oracle.frontier import Frontier, block_from, columns_for, forwards, hold_block
from dobandit.oracle.node_tables import NodeTables, fill_tables, node_tables, node_variances

Array = NDArray[np.float64]


class ExactPass(NamedTuple):
    """The plan of an evaluator: actions, the frontier, what is believed of every pattern, and scratch by column."""

    actions: ActionList
    steps: NDArray[Any]  # (regimes, depths + 2) STEP
    states: NDArray[Any]  # STATE
    tables: NodeTables
    known: Array  # (depths, columns) value given to a node, NaN: free
    weight: Array  # (states, columns)
    value: Array  # (states, columns) E[Y] from there on


def exact_pass(graph: CausalGraph, actions: ActionList, frontier: Frontier) -> ExactPass:
    """The plan for the actions of a list."""
    widest, states = int(np.diff(graph.arrays.parent_ptr).max(initial=1)), len(frontier.states)
    columns = columns_for(len(actions.scores), states)
    tables = node_tables(frontier.tables, widest, columns)
    known = np.full((len(actions.order), columns), math.nan)
    weight, value = np.zeros((2, states, columns))
    return ExactPass(actions, frontier.steps, frontier.states, tables, known, weight, value)


@inlined
def pass_back(steps: Any, states: Any, low: Any, high: Any, known: Any, value: Any, depth: int, highest: bool) -> None:
    """The pass backwards over the node at `depth`: the highest or lowest E[Y] of each state."""
    here, after, base = steps[depth]["state"], steps[depth + 1]["state"], steps[depth]["table"]
    last = depth == known.shape[0] - 1
    for s in range(here, after):
        cell = base + states[s]["pattern"]
        least, most = low[cell], high[cell]
        if last:
            for c in range(known.shape[1]):
                p = most if highest else least
                value[s, c] = p if math.isnan(known[depth, c]) else known[depth, c]
            continue
        one, zero = after + states[s]["one"], after + states[s]["zero"]
        for c in range(known.shape[1]):
            ahead, behind = value[one, c], value[zero, c]
            p = most if (ahead >= behind) == highest else least
            p = p if math.isnan(known[depth, c]) else known[depth, c]
            value[s, c] = p * ahead + (1.0 - p) * behind


@kernel
def expect_actions(
    steps: Any, states: Any, held: Any, scores: Any, low: Any, high: Any, fixed: Any, known: Any, value: Any,
    highest: bool, out: Any,
) -> None:  # fmt: skip
    """out[i] = the highest or the lowest E[Y] of action i. known, value: scratch, a column per action of a block."""
    columns, start = known.shape[1], 0
    while start < len(out):
        count, own = block_from(scores, start, columns), steps[scores[start]["regime"]]
        hold_block(held, own, start, count, fixed, known)
        for depth in range(known.shape[0] - 1, -1, -1):
            pass_back(own, states, low, high, known, value, depth, highest)
        for c in range(count):
            out[start + c] = value[own[0]["state"], c]
        start += count


@inlined
def influences_at(steps: Any, states: Any, weight: Any, value: Any, influence: Any, depth: int) -> None:
    """D of every pattern of the node at `depth`, from the weights of its states and E[Y] from the next ones on."""
    here, after = steps[depth]["state"], steps[depth + 1]["state"]
    last, columns = depth == len(steps) - 3, influence.shape[1]
    for at in range(steps[depth]["patterns"]):
        for c in range(columns):
            influence[at, c] = 0.0
    for s in range(here, after):
        at, one, zero = states[s]["pattern"], after + states[s]["one"], after + states[s]["zero"]
        for c in range(columns):
            influence[at, c] += weight[s, c] * (1.0 if last else value[one, c] - value[zero, c])


@kernel
def exact_index(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """Mean, standard deviation and index of every action; reach[target]: standard errors of optimism."""
    fill_tables(belief, plan.tables)
    score_exactly(belief, plan, fixed, reach[plan.actions.order[len(plan.actions.order) - 1]])


@kernel
def score_exactly(belief: Any, plan: Any, fixed: Any, bonus: float) -> None:
    """Scores by the tables as they stand; without a bonus, standard deviations are not worked out."""
    nodes, slots, pairs, members = belief.nodes, belief.slots, belief.pairs, belief.members
    states, mean, patterns = plan.states, plan.tables.mean, plan.tables.patterns
    influence, along, sums = plan.tables.influence, plan.tables.along, plan.tables.sums
    known, weight, value, scores = plan.known, plan.weight, plan.value, plan.actions.scores
    columns, start = known.shape[1], 0
    while start < len(scores):
        count, steps = block_from(scores, start, columns), plan.steps[scores[start]["regime"]]
        hold_block(plan.actions.held, steps, start, count, fixed, known)
        for c in range(columns):
            weight[steps[0]["state"], c] = 1.0
        for i in range(start, start + count):
            scores[i]["sd"] = 0.0
        for depth in range(known.shape[0] - 1 if bonus > 0.0 else 0):
            forwards(steps, states, mean, weight, known, depth)
        for depth in range(known.shape[0] - 1, -1, -1):
            pass_back(steps, states, mean, mean, known, value, depth, True)
            v, base, size = steps[depth]["node"], steps[depth]["table"], steps[depth]["patterns"]
            if bonus > 0.0 and v > 0:
                influences_at(steps, states, weight, value, influence, depth)
                node_variances(nodes, slots, pairs, members, mean, patterns, influence, along, sums, v, base, size, 0)
                for c in range(count):
                    scores[start + c]["sd"] += sums[2, c] if math.isnan(known[depth, c]) else 0.0
        for c in range(count):
            score = scores[start + c]
            score["mean"], score["sd"] = value[steps[0]["state"], c], math.sqrt(score["sd"])
            score["index"] = score["mean"] + bonus * score["sd"]
        start += count
