"""The best action of a known linear model, proved: depth-first search over options, with effects of any sign.

Options are tried in the order of what they can gain at most, per cost where there are costs; once the bound of the rest
falls to the best known value the rest is cut off. Variables that are required but may be set to
several values are decided first. The search keeps its stack in arrays, so it can stop at a limit and tell the gap that
remains.

The bound on what further options can add to E[Y]:
S: what is set so far.  e_v: mean of v under S.  a_v: total weight of the paths from v to the target that avoid S.
Let R be further options, r of them at most. Take them one at a time, the one nearest to the target first (the last in
topological order). Setting v to x then adds (x - e_v) a_v, where
  e_v is the mean under S alone: what was taken before lies below v, or aside, and does not change it;
  a_v is over the paths that avoid S and what was taken before: setting a variable cuts the paths through it.
So a_v lies between the ends low_v and high_v of an interval pass upwards in which each variable that may still be set
passes on anything from its own interval or 0. For the one nearest to the target nothing was taken before, and a_v is
exact. Hence R adds at most one exact gain and r - 1 gains at the ends of the intervals, of different kinds (a variable,
or an exclusive group): the sum of the largest ones bounds what R can add, and with costs so does their fractional
knapsack. With one option left the bound is exact. Where no weight is negative and all is set to 1 (monotone) high_v is
the exact a_v: then the gains themselves are the ends, E[Y] is submodular, and no interval is needed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.kernels import kernel, record
from dobandit.oracle.objectives import Ancestors, change
from dobandit.oracle.search_space import TOLERANCE, Limits, Options

Chosen = tuple[list[int], float]  # options, and their value
_WORK_AT_ONCE = 200_000  # actions x options and edges between looks at the clock: some 10 ms

STATE = record(
    exact=np.int64,  # whether only actions of as many options as there can be count
    maximal=np.int64,  # whether only those count to which nothing can be added
    costly=np.int64,
    monotone=np.int64,  # whether one more variable never lowers E[Y], so that the gains at hand are the most to be had
    depth=np.int64,  # -1: done
    explored=np.int64,
    counts=np.int64,  # how often `seen` was used
)
DEPTH = record(
    must=np.int64,  # the node of which an option is taken here; 0: any
    width=np.int64,  # candidates
    position=np.int64,  # the next one to try
    value=np.float64,
    money=np.float64,  # cost that is left
)
CANDIDATE = record(
    option=np.int64,
    rate=np.float64,  # gain per cost: infinite where it costs nothing, 0 where it gains nothing
    gain=np.float64,  # at most
    sharp=np.float64,  # exactly
)


class Search(NamedTuple):
    """The stack. Rows are depths: options taken so far; candidates are options."""

    ancestors: Ancestors
    options: NDArray[Any]
    groups: NDArray[np.int64]
    state: NDArray[Any]  # (1,) STATE
    depths: NDArray[Any]  # (depths,) DEPTH
    candidates: NDArray[Any]  # (depths, options) CANDIDATE
    seen: NDArray[np.int64]  # (groups + nodes,) the last count in which a kind of options was met
    top_value: NDArray[np.float64]  # (wanted,) descending; -1: none
    top_set: NDArray[np.int32]  # (wanted, depth) options; -1: none


def search_options(
    ancestors: Ancestors, options: Options, wanted: int, exact: bool, limits: Limits, known: Chosen | None
) -> tuple[list[Chosen], float, bool, int]:
    """(the best options with their values; the bound of what was not looked at; whether the search is done, and not
    stopped by a limit; actions looked at).

    exact: whether only full actions count. known: an action to beat, for a list of one.
    """
    for v, to in options.given:
        change(ancestors, v, to)
    search = start_search(ancestors, options, wanted, options.depth + 1, exact)
    if known is not None:
        search.top_set[0, : len(known[0])], search.top_value[0] = known
    block = max(1, _WORK_AT_ONCE // (1 + len(ancestors.parents) + len(options.table)))
    bound = advance(search, 0)  # compiles it, which is not the search's time
    limits.restart()
    state = search.state[0]
    while state["depth"] >= 0 and not limits.reached(int(state["explored"])):
        bound = advance(search, int(min(block, limits.sets - int(state["explored"]))))
    listing = zip(search.top_set.tolist(), search.top_value.tolist(), strict=True)
    best = [([i for i in chosen if i >= 0], value) for chosen, value in listing if value >= 0.0]
    return best, bound, bool(state["depth"] < 0), int(state["explored"])


def bound_at(ancestors: Ancestors, options: Options) -> float:
    """What no allowed action exceeds, by the gains at what is set: required variables alone, or on a monotone problem
    anything (f(O) <= f(O + S) <= f(S) + the gains of O at S)."""
    nodes, table = ancestors.nodes, options.table
    bound = advance(start_search(ancestors, options, 1, 1, options.exact), 0)
    if options.has_costs and options.allowed.monotone:  # the count alone, which with costs the search does not sort by
        largest, which = np.zeros(len(options.members) + len(nodes)), table["node"]
        np.maximum.at(largest, table["kind"], (1.0 - nodes["mean"][which]) * nodes["paths"][which])
        bound = min(bound, float(nodes[-2]["mean"] + np.sort(largest)[::-1][: options.room].sum()))
    return bound


def start_search(ancestors: Ancestors, options: Options, wanted: int, rows: int, exact: bool) -> Search:
    """A search with what is set as its root, and room for so many depths."""
    count, seen = len(options.table), np.zeros(len(options.members) + len(ancestors.nodes), dtype=np.int64)
    state, depths, candidates = np.zeros(1, STATE), np.zeros(rows, DEPTH), np.zeros((rows, count), CANDIDATE)
    state["exact"], state["maximal"] = exact, exact or options.maximal
    state["costly"], state["monotone"] = options.has_costs, options.allowed.monotone
    depths["must"][: len(options.must)] = options.must[:rows]
    depths["value"], depths["money"] = ancestors.nodes[-2]["mean"], options.money
    candidates["option"][0] = np.arange(count)
    top = np.full(wanted, -1.0), np.full((wanted, options.depth), -1, dtype=np.int32)
    search = Search(ancestors, options.table, options.groups, state, depths, candidates, seen, *top)
    enter(search, 0, count)
    return search


@kernel
def advance(search: Any, actions: int) -> float:
    """Go on for so many actions, or until the search is done (depth -1); returns the most that an action not yet looked
    at can be worth, and at least the last value in the list."""
    options, depths, candidates, top_value = search.options, search.depths, search.candidates, search.top_value
    state = search.state[0]
    stop, k = state["explored"] + actions, state["depth"]
    while k >= 0 and state["explored"] < stop:
        here = depths[k]
        while here["must"] > 0 and here["position"] < here["width"]:
            if options[candidates[k, here["position"]]["option"]]["node"] == here["must"]:
                break
            here["position"] += 1
        at = here["position"]
        if at == here["width"] or bound(search, k) <= top_value[-1] + TOLERANCE:
            k -= 1
            if k >= 0:
                option = options[candidates[k, depths[k]["position"]]["option"]]
                change(search.ancestors, option["node"], math.nan)
                depths[k]["position"] += 1
            continue
        option, rest = options[candidates[k, at]["option"]], 0
        for j in range(0 if here["must"] > 0 else at + 1, here["width"]):
            if not exclude(option, options[candidates[k, j]["option"]], search.groups):
                candidates[k + 1, rest]["option"] = candidates[k, j]["option"]
                rest += 1
        k += 1
        depths[k]["value"] = change(search.ancestors, option["node"], option["to"])
        depths[k]["money"] = here["money"] - option["cost"]
        enter(search, k, rest)
    state["depth"] = k
    most = top_value[-1]
    for depth in range(k + 1):
        most = max(most, bound(search, depth))
    return most


@kernel
def enter(search: Any, k: int, count: int) -> None:
    """At a new action: keep the options that still fit, bound their gains, sort them, and note the action."""
    nodes, options, candidates, state = search.ancestors.nodes, search.options, search.candidates, search.state[0]
    here, left, kept = search.depths[k], search.top_set.shape[1] - k, 0
    state["explored"] += 1
    for i in range(count):
        option = candidates[k, i]["option"]
        if left > 0 and options[option]["cost"] <= here["money"]:
            candidates[k, kept]["option"] = option
            nodes[options[option]["node"]]["open"] = 1
            kept += 1
    loose = left > 1 and not state["monotone"]
    if loose:
        path_ranges(nodes, search.ancestors.children)
    for i in range(kept):
        candidate = candidates[k, i]
        option = options[candidate["option"]]
        node = nodes[option["node"]]
        node["open"] = 0
        step = option["to"] - node["mean"]
        sharp = step * node["paths"]
        gain = max(step * node["low"], step * node["high"]) if loose else sharp
        rate = 0.0 if gain <= 0.0 else gain / option["cost"] if option["cost"] > 0.0 else math.inf
        candidate["rate"], candidate["gain"], candidate["sharp"] = rate, gain, sharp
    here["width"], here["position"] = kept, 0
    sort_candidates(candidates, k, kept)
    growing = left > 0 and state["maximal"] and can_grow(search, k)
    if here["must"] == 0 and not growing:
        note(search, k)


@kernel
def exclude(one: Any, other: Any, groups: Any) -> bool:
    """Whether two options set the same variable, or variables of one exclusive group."""
    for i in range(one["groups"], one["groups_end"]):
        for j in range(other["groups"], other["groups_end"]):
            if groups[i] == groups[j]:
                return True
    return one["node"] == other["node"]


@kernel
def can_grow(search: Any, k: int) -> bool:
    """Whether another option fits besides those taken down to depth k."""
    options, depths = search.options, search.depths
    for i in range(len(options)):
        fits = options[i]["cost"] <= depths[k]["money"]
        for j in range(k):
            taken = options[search.candidates[j, depths[j]["position"]]["option"]]
            fits = fits and not exclude(options[i], taken, search.groups)
        if fits:
            return True
    return False


@kernel
def path_ranges(nodes: Any, children: Any) -> None:
    """The interval of every a_v, with the open variables cutting the paths through them or not."""
    nodes[-2]["low"] = nodes[-2]["high"] = 1.0
    for v in range(len(nodes) - 3, 0, -1):
        low, high = 0.0, 0.0
        for slot in range(nodes[v]["children"], nodes[v + 1]["children"]):
            child, weight = nodes[children[slot]["node"]], children[slot]["weight"]
            if math.isnan(child["fixed"]):
                a, b = weight * child["low"], weight * child["high"]
                a, b = min(a, b), max(a, b)
                low += min(a, 0.0) if child["open"] else a
                high += max(b, 0.0) if child["open"] else b
        nodes[v]["low"], nodes[v]["high"] = low, high


@kernel
def sort_candidates(candidates: Any, k: int, count: int) -> None:
    """Best first, in place (Shell sort: quick on the nearly sorted candidates of the depth before)."""
    gap = count // 2
    while gap > 0:
        for end in range(gap, count):
            i = end
            while i >= gap and rank(candidates[k, i]) > rank(candidates[k, i - gap]):
                one, other = candidates[k, i], candidates[k, i - gap]
                one["option"], other["option"] = other["option"], one["option"]
                one["rate"], other["rate"] = other["rate"], one["rate"]
                one["gain"], other["gain"] = other["gain"], one["gain"]
                one["sharp"], other["sharp"] = other["sharp"], one["sharp"]
                i -= gap
        gap //= 2


@kernel
def rank(candidate: Any) -> Any:
    """More gain per cost comes first, then more gain, then the lower number."""
    return candidate["rate"], candidate["gain"], -candidate["option"]


@kernel
def note(search: Any, k: int) -> None:
    """Enter the action at depth k into the list of the best."""
    depths, top_value, top_set = search.depths, search.top_value, search.top_set
    place, value = len(top_value) - 1, depths[k]["value"]
    if value <= top_value[place] + TOLERANCE:
        return
    while place > 0 and value > top_value[place - 1] + TOLERANCE:
        top_value[place] = top_value[place - 1]
        for i in range(top_set.shape[1]):
            top_set[place, i] = top_set[place - 1, i]
        place -= 1
    top_value[place] = value
    for i in range(top_set.shape[1]):
        top_set[place, i] = search.candidates[i, depths[i]["position"]]["option"] if i < k else -1


@kernel
def bound(search: Any, k: int) -> float:
    """The most that an action can be worth that adds options not yet tried at depth k: up to as many as there is room
    for (exactly so many, where that counts).

    By count: the largest gains of different kinds, one of them exact. By cost: the fractional knapsack. Options are
    sorted by gain, or by gain per cost where there are costs; then the count takes the largest gain so many times.
    """
    options, candidates, seen, state = search.options, search.candidates, search.seen, search.state[0]
    here, left, exact = search.depths[k], search.top_set.shape[1] - k, search.state[0]["exact"]
    start, value = 0 if here["must"] > 0 else here["position"], here["value"]
    if left == 0:
        return value
    if state["costly"]:
        return value + added_by_cost(options, here, candidates, k, start, left)
    state["counts"] += 1
    met, total, last = 0, 0.0, 0.0
    for i in range(start, here["width"]):
        gain, kind = candidates[k, i]["gain"], options[candidates[k, i]["option"]]["kind"]
        if met == left or (gain <= 0.0 and not exact):
            break
        if seen[kind] != state["counts"]:
            seen[kind] = state["counts"]
            total += gain
            last = gain
            met += 1
    if met < left:
        return -math.inf if exact else value + total
    if left == 1 or state["monotone"]:
        return value + total
    # One of them adds its exact gain: if its kind is among those counted, in place of its bound, else of the last one.
    # Unless the size is exact it may be one that adds nothing, set because it cuts paths for the others.
    best = -math.inf if exact else total - last
    for i in range(start, here["width"]):
        candidate = candidates[k, i]
        counted = seen[options[candidate["option"]]["kind"]] == state["counts"]
        best = max(best, total - (candidate["gain"] if counted else last) + candidate["sharp"])
    return value + min(total, best)


@kernel
def added_by_cost(options: Any, here: Any, candidates: Any, k: int, start: int, left: int) -> float:
    added, money, largest = 0.0, here["money"], 0.0
    for i in range(start, here["width"]):
        gain, cost = candidates[k, i]["gain"], options[candidates[k, i]["option"]]["cost"]
        largest = max(largest, gain)
        if gain > 0.0:
            added += gain if cost <= money else gain * money / cost
            money = max(money - cost, 0.0)
    return min(added, left * largest)
