"""The action with a large index where there are too many to list: greedy, then exchanges, on any index.

A lever is a variable and a value. From what is required, the lever that raises the index most is taken until none does
or the rules allow no more; then levers are exchanged for others while that raises it. Nothing is proved of the end.
One lever more on the same action changes little of a pass over means (`mean_field.index_with`); other indices are
worked out anew.
Every lever is looked at when one is taken. When one is exchanged, they are looked at in the order of what they gained
when last looked at, until the next one would have to gain more than it did then, and no fewer than a few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.kernels import inlined, kernel, record, with_kernels
from dobandit.oracle.action_list import TIE, ActionList, action_list
from dobandit.oracle.actions import Actions, Allowed
from dobandit.oracle.mean_field import fill_nodes, index_with, mean_field_index, score_means
from dobandit.oracle.per_pattern import fill_upper_tables, pattern_index, score_per_pattern

EXCHANGES = 3  # rounds of exchanges at most
LOOKS = 16  # levers that are looked at whatever they gained before
EVALUATE: Any = None  # the evaluator of the only action of a list, which `kernels.with_kernels` puts in
INDEX: Any = None  # its index of the levers taken
# A variable and a value: where in the order it stands, its cost, what it added to the index when last looked at.
LEVER = record(id="i8", to="f8", depth="i8", cost="f8", gain="f8", looked="i8")
# required: the first so many levers are always taken; most: levers that may be taken; full: whether levers are taken as
# long as any may be, whatever the index says; largest: whether of equal indices that of more levers counts.
RULES = record(required="i8", most="i8", full="i8", largest="i8", money="f8", explored="i8")


class IndexSearch(NamedTuple):
    """The plan of a search: an evaluator's plan over a list of one row, and levers."""

    actions: ActionList  # of one row: what was found
    inner: Any  # the plan of the index, over that list
    levers: NDArray[Any]  # LEVER
    rules: NDArray[Any]  # (1,) RULES
    clash: NDArray[np.bool_]  # (levers, levers) which exclude each other
    taken: NDArray[np.int64]  # (most,) levers


def index_search(
    graph: CausalGraph, allowed: Allowed, order: list[int], make_inner: Callable[[ActionList], Any], largest: bool
) -> IndexSearch:
    """The plan for the allowed actions. make_inner: an evaluator's plan over a list of actions."""
    rules, required = allowed.rules, allowed.required
    pairs = [(v, allowed.values[v][-1]) for v in required]
    pairs += [(v, to) for v in allowed.candidates for to in allowed.values[v]]
    names = [graph.nodes[v - 1] for v, _ in pairs]
    most = allowed.most + len(required)
    actions = action_list(order, Actions(np.zeros((1, most), dtype=np.int32), np.zeros((1, most))))
    depth = {v: i for i, v in enumerate(order)}
    levers = np.zeros(len(pairs), LEVER)
    for lever, (v, to), name in zip(levers, pairs, names, strict=True):
        cost = rules.unit_cost(name) if rules.total_cost is not None else 0.0
        lever["id"], lever["to"], lever["depth"], lever["cost"] = v, to, depth.get(v, len(order)), cost
    groups = [set(group) for group in rules.exclusive]
    exclude = [[a == b or any({a, b} <= group for group in groups) for b in names] for a in names]
    clash = np.array(exclude, dtype=np.bool_).reshape(len(names), len(names))
    money = float("inf") if rules.total_cost is None else float(rules.total_cost) * (1 + 1e-12)
    limits = np.array([(len(required), most, allowed.full_only, largest, money, 0)], RULES)
    taken = np.zeros(max(most, 1), dtype=np.int64)
    return IndexSearch(actions, make_inner(actions), levers, limits, clash, taken)


@kernel
def write_taken(actions: Any, levers: Any, taken: Any, count: int) -> None:
    """Make the first `count` levers taken the only row of the list."""
    ids, to, held, order = actions.ids, actions.to, actions.held, actions.order
    for i in range(ids.shape[1]):
        ids[0, i], to[0, i], held[0, i]["depth"], held[0, i]["to"] = 0, 0.0, len(order), 0.0
    for i in range(count):
        lever = levers[taken[i]]
        ids[0, i], to[0, i] = lever["id"], lever["to"]
        j = i  # in the order of the pass
        while j > 0 and held[0, j - 1]["depth"] > lever["depth"]:
            held[0, j]["depth"], held[0, j]["to"] = held[0, j - 1]["depth"], held[0, j - 1]["to"]
            j -= 1
        held[0, j]["depth"], held[0, j]["to"] = lever["depth"], lever["to"]
    actions.scores[0]["first"] = 0


@kernel
def fits(levers: Any, clash: Any, taken: Any, money: float, lever: int, count: int, but: int) -> bool:
    """Whether a lever goes with those taken, without the one at place `but`."""
    money -= levers[lever]["cost"]
    for i in range(count):
        if i != but:
            if clash[lever, taken[i]]:
                return False
            money -= levers[taken[i]]["cost"]
    return money >= 0.0


@kernel
def next_lever(levers: Any, rules: Any, clash: Any, taken: Any, count: int, place: int, shift: int) -> int:
    """Of the levers that fit and were not looked at, the one that gained most when last looked at; -1 for none."""
    found = -1
    for k in range(len(levers)):
        i = k + shift if k + shift < len(levers) else k + shift - len(levers)
        lever = levers[i]
        better = found < 0 or lever["gain"] > levers[found]["gain"]
        if i < rules[0]["required"] or lever["looked"] or not better:
            continue
        if fits(levers, clash, taken, rules[0]["money"], i, count, place):
            found = i
    return found


@inlined
def best_at(
    index: Any, belief: Any, plan: Any, fixed: Any, reach: Any, place: int, count: int, shift: int, without: float
) -> float:
    """Put the best lever that fits at a place of `taken` (count: how many are taken then); the index it gives, -1 and
    nothing changed where none fits. without: the index of the others, which were evaluated last."""
    levers, rules, taken = plan.levers, plan.rules, plan.taken
    best, found, looks = -1.0, -1, 0
    for i in range(len(levers)):
        levers[i]["looked"] = 0
    while True:
        lever = next_lever(levers, rules, plan.clash, taken, count, place, shift)
        if lever < 0 or (looks >= LOOKS and without + levers[lever]["gain"] <= best + TIE):
            break
        levers[lever]["looked"] = 1
        looks += 1
        taken[place] = lever
        value = index(belief, plan, fixed, reach, count, lever)
        levers[lever]["gain"] = value - without
        if found < 0 or value > best + TIE:
            best, found = value, lever
    rules[0]["explored"] += looks
    if found >= 0:
        taken[place] = found
    return best


@inlined  # its argument `index` could not be kept in a file of compiled code otherwise
def search(index: Any, belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    """Greedy, then exchanges. Equal levers in an order that the round draws.

    index  (belief, plan, fixed, reach, count, lever): the index of the first `count` levers taken; where `lever` is not
           below 0, all of them but that one were evaluated last
    """
    levers, taken, required = plan.levers, plan.taken, plan.rules[0]["required"]
    shift, count = int(draws[0] * len(levers)), required
    plan.rules[0]["explored"] = 1
    for i in range(count):
        taken[i] = i
    value = index(belief, plan, fixed, reach, count, -1)
    while count < plan.rules[0]["most"]:
        for i in range(len(levers)):
            levers[i]["gain"] = np.inf
        found = best_at(index, belief, plan, fixed, reach, count, count + 1, shift, value)
        more = plan.rules[0]["full"] or (plan.rules[0]["largest"] and found >= value - TIE)
        if found < 0.0 or not (found > value or more):
            break
        count += 1
        value = index(belief, plan, fixed, reach, count, -1)
    for _ in range(EXCHANGES):
        before = value
        for place in range(required, count):
            old = taken[place]
            taken[place], taken[count - 1] = taken[count - 1], old
            without = index(belief, plan, fixed, reach, count - 1, -1)
            taken[place], taken[count - 1] = old, taken[place]
            found = best_at(index, belief, plan, fixed, reach, place, count, shift, without)
            if found > value + TIE:
                value = found
            else:
                taken[place] = old
        if value <= before + TIE:
            break
    plan.actions.scores[0]["index"] = index(belief, plan, fixed, reach, count, -1)


@kernel
def index_by_means(belief: Any, plan: Any, fixed: Any, reach: Any, count: int, lever: int) -> float:
    """One lever more on the same action changes little of a pass over means."""
    bonus = reach[plan.actions.order[len(plan.actions.order) - 1]]
    if lever >= 0:
        return index_with(belief, plan.inner, bonus, plan.levers[lever]["depth"], plan.levers[lever]["to"])
    write_taken(plan.actions, plan.levers, plan.taken, count)
    score_means(belief, plan.inner, fixed, bonus)
    return plan.actions.scores[0]["index"]


@kernel
def index_by_patterns(belief: Any, plan: Any, fixed: Any, reach: Any, count: int, lever: int) -> float:
    write_taken(plan.actions, plan.levers, plan.taken, count)
    score_per_pattern(plan.inner, fixed)
    return plan.actions.scores[0]["index"]


@kernel
def index_by_evaluator(belief: Any, plan: Any, fixed: Any, reach: Any, count: int, lever: int) -> float:
    write_taken(plan.actions, plan.levers, plan.taken, count)
    EVALUATE(belief, plan.inner, fixed, reach, reach)
    return plan.actions.scores[0]["index"]


@kernel
def search_means(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    fill_nodes(belief, plan.inner)
    search(index_by_means, belief, plan, fixed, reach, draws)


@kernel
def search_patterns(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    fill_upper_tables(belief, plan.inner, reach)
    search(index_by_patterns, belief, plan, fixed, reach, draws)


@kernel
def search_evaluator(belief: Any, plan: Any, fixed: Any, reach: Any, draws: Any) -> None:
    search(INDEX, belief, plan, fixed, reach, draws)


def search_on(evaluate: Any) -> Any:
    """The kernel that searches on the index of an evaluator."""
    if evaluate is mean_field_index:
        return search_means
    if evaluate is pattern_index:
        return search_patterns
    return with_kernels(search_evaluator, INDEX=with_kernels(index_by_evaluator, EVALUATE=evaluate))
