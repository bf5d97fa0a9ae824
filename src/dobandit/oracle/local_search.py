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

from dobandit.compiled import by_type, kernel
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.actions import Actions, Allowed
from dobandit.oracle.boxed import BoxedForm
from dobandit.oracle.closed_form import ClosedForm
from dobandit.oracle.listing import TIE, Listing, listing_of, prepare, propose, score_prepared
from dobandit.oracle.mean_field import MeanField, index_with
from dobandit.oracle.per_pattern import PerPattern

EXCHANGES = 3  # rounds of exchanges at most
LOOKS = 16  # levers that are looked at whatever they gained before


class LocalSearch(NamedTuple):
    """The oracle: an index over a list of one row, and levers."""

    listing: Listing  # of one row: what was found
    inner: Any  # the oracle of the index, over that list
    id: NDArray[np.int64]  # (levers,)
    to: NDArray[np.float64]  # (levers,)
    place: NDArray[np.int64]  # (levers,) where in `order` its variable stands
    cost: NDArray[np.float64]  # (levers,)
    required: int  # the first so many levers are always taken
    clash: NDArray[np.bool_]  # (levers, levers) which exclude each other
    most: int  # levers that may be taken
    money: float
    full: bool  # whether levers are taken as long as any may be, whatever the index says
    largest: bool  # whether of equal indices that of more levers counts
    taken: NDArray[np.int64]  # (most,) levers
    gain: NDArray[np.float64]  # (levers,) what each added to the index when last looked at
    looked: NDArray[np.bool_]  # (levers,) scratch
    explored: NDArray[np.int64]  # (1,) actions looked at


def local_search(
    graph: CausalGraph, allowed: Allowed, order: list[int], make_inner: Callable[[Listing], Any], largest: bool = False
) -> LocalSearch:
    """The oracle for the allowed actions. make_inner: an index over a list of actions."""
    rules, required = allowed.rules, allowed.required
    levers = [(v, allowed.values[v][-1]) for v in required]
    levers += [(v, to) for v in allowed.candidates for to in allowed.values[v]]
    names = [graph.nodes[v - 1] for v, _ in levers]
    most = allowed.most + len(required)
    row = Actions(np.zeros((1, most), dtype=np.int32), np.zeros((1, most)))
    listing = listing_of(order, row)
    depth = {v: i for i, v in enumerate(order)}
    groups = [set(group) for group in rules.exclusive]
    clash = np.array(
        [[a == b or any({a, b} <= group for group in groups) for b in names] for a in names], dtype=np.bool_
    ).reshape(len(names), len(names))
    money = float("inf") if rules.total_cost is None else float(rules.total_cost) * (1 + 1e-12)
    return LocalSearch(
        listing,
        make_inner(listing),
        np.array([v for v, _ in levers], dtype=np.int64),
        np.array([to for _, to in levers]),
        np.array([depth.get(v, len(order)) for v, _ in levers], dtype=np.int64),
        np.array([rules.unit_cost(name) if rules.total_cost is not None else 0.0 for name in names]),
        len(required),
        clash,
        most,
        money,
        allowed.full_only,
        largest,
        np.zeros(max(most, 1), dtype=np.int64),
        np.zeros(len(levers)),
        np.zeros(len(levers), dtype=np.bool_),
        np.zeros(1, dtype=np.int64),
    )


@by_type
def index_with_lever(inner: Any, c: Any, layout: Any, state: Any, rho: Any, fixed: Any, count: int, lever: int) -> Any:
    """The index of the first `count` levers taken, of which all but `lever` were evaluated last."""


@index_with_lever.of(MeanField)
def index_by_means(inner: Any, c: Any, layout: Any, state: Any, rho: Any, fixed: Any, count: int, lever: int) -> float:
    return index_with(inner, layout, state, rho[layout.target], c.place[lever], c.to[lever])


def index_anew(inner: Any, c: Any, layout: Any, state: Any, rho: Any, fixed: Any, count: int, lever: int) -> float:
    return evaluate(c, layout, state, rho, fixed, count)


index_with_lever.of(ClosedForm)(index_anew)
index_with_lever.of(BoxedForm)(index_anew)
index_with_lever.of(PerPattern)(index_anew)


@kernel
def evaluate(c: Any, layout: Any, state: Any, rho: Any, fixed: Any, count: int) -> float:
    """The index of the first `count` levers taken, to which others can be added then."""
    listing = c.listing
    ids, to, member, member_to = listing.ids[0], listing.to[0], listing.member[0], listing.member_to[0]
    for i in range(len(ids)):
        ids[i], to[i], member[i], member_to[i] = 0, 0.0, len(listing.order), 0.0
    for i in range(count):
        lever = c.taken[i]
        ids[i], to[i] = c.id[lever], c.to[lever]
        j = i  # in the order of the pass
        while j > 0 and member[j - 1] > c.place[lever]:
            member[j], member_to[j] = member[j - 1], member_to[j - 1]
            j -= 1
        member[j], member_to[j] = c.place[lever], c.to[lever]
    listing.first[0] = 0
    score_prepared(c.inner, layout, state, rho, fixed)
    return listing.values[0]


@kernel
def fits(c: Any, lever: int, count: int, but: int) -> bool:
    """Whether a lever goes with those taken, without the one at place `but`."""
    money = c.money - c.cost[lever]
    for i in range(count):
        if i != but:
            if c.clash[lever, c.taken[i]]:
                return False
            money -= c.cost[c.taken[i]]
    return money >= 0.0


@kernel
def next_lever(c: Any, count: int, place: int, shift: int) -> int:
    """Of the levers that fit and were not looked at, the one that gained most when last looked at; -1 for none."""
    found = -1
    for k in range(len(c.id)):
        lever = k + shift if k + shift < len(c.id) else k + shift - len(c.id)
        better = lever >= c.required and not c.looked[lever] and (found < 0 or c.gain[lever] > c.gain[found])
        if better and fits(c, lever, count, place):
            found = lever
    return found


@kernel
def best_at(
    c: Any, layout: Any, state: Any, rho: Any, fixed: Any, place: int, count: int, shift: int, without: float
) -> float:
    """Put the best lever that fits at a place of `taken` (count: how many are taken then); the index it gives, -1 and
    nothing changed where none fits. without: the index of the others, which were evaluated last."""
    best, found, looks = -1.0, -1, 0
    c.looked[:] = False
    while True:
        lever = next_lever(c, count, place, shift)
        if lever < 0 or (looks >= LOOKS and without + c.gain[lever] <= best + TIE):
            break
        c.looked[lever] = True
        looks += 1
        c.taken[place] = lever
        value = index_with_lever(c.inner, c, layout, state, rho, fixed, count, lever)
        c.gain[lever] = value - without
        if found < 0 or value > best + TIE:
            best, found = value, lever
    c.explored[0] += looks
    if found >= 0:
        c.taken[place] = found
    return best


@kernel
def index_without(c: Any, layout: Any, state: Any, rho: Any, fixed: Any, place: int, count: int) -> float:
    """The index of what is taken, without the lever at a place."""
    c.taken[place], c.taken[count - 1] = c.taken[count - 1], c.taken[place]
    value = evaluate(c, layout, state, rho, fixed, count - 1)
    c.taken[place], c.taken[count - 1] = c.taken[count - 1], c.taken[place]
    return value


@propose.of(LocalSearch)
def propose_searched(c: Any, layout: Any, state: Any, rho: Any, fixed: Any, draws: Any) -> int:
    """Greedy, then exchanges. Equal levers in an order that the round draws."""
    shift = int(draws[0] * len(c.id))
    c.explored[0] = 1
    prepare(c.inner, layout, state, rho)
    count = c.required
    for i in range(count):
        c.taken[i] = i
    value = evaluate(c, layout, state, rho, fixed, count)
    while count < c.most:
        c.gain[:] = np.inf
        found = best_at(c, layout, state, rho, fixed, count, count + 1, shift, value)
        if found < 0.0 or not (found > value or c.full or (c.largest and found >= value - TIE)):
            break
        count += 1
        value = evaluate(c, layout, state, rho, fixed, count)
    for _ in range(EXCHANGES):
        before = value
        for place in range(c.required, count):
            old = c.taken[place]
            without = index_without(c, layout, state, rho, fixed, place, count)
            found = best_at(c, layout, state, rho, fixed, place, count, shift, without)
            if found > value + TIE:
                value = found
            else:
                c.taken[place] = old
        if value <= before + TIE:
            break
    c.listing.values[0] = evaluate(c, layout, state, rho, fixed, count)
    return 0
