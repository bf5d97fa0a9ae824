"""`oracle.local_search` without any saving: every action that is looked at is scored by itself, from the start."""

from __future__ import annotations

from collections.abc import Callable

from dobandit.oracle.listing import TIE
from dobandit.oracle.local_search import EXCHANGES, LOOKS, LocalSearch


def plain_search(c: LocalSearch, index: Callable[[list[int]], float], uniform: float) -> list[int]:
    """The levers that greedy and exchanges end with. index: of a list of levers."""
    count = len(c.id)
    shift = int(uniform * count)
    around = [(k + shift) % count for k in range(count)]

    def fits(lever: int, others: list[int]) -> bool:
        cost = c.cost[lever] + sum(c.cost[other] for other in others)
        return lever >= c.required and cost <= c.money and not any(c.clash[lever, other] for other in others)

    def best_with(others: list[int], gain: list[float]) -> tuple[int, float]:
        without, best, found = index(others), -1.0, -1
        waiting = [lever for lever in around if fits(lever, others)]
        for looks in range(len(waiting)):
            lever = max(waiting, key=lambda one: gain[one])
            if looks >= LOOKS and without + gain[lever] <= best + TIE:
                break
            waiting.remove(lever)
            value = index([*others, lever])
            gain[lever] = value - without
            if found < 0 or value > best + TIE:
                best, found = value, lever
        return found, best

    taken = list(range(c.required))
    value, gain = index(taken), [float("inf")] * count
    while len(taken) < c.most:
        gain = [float("inf")] * count
        found, best = best_with(taken, gain)
        if found < 0 or not (best > value or c.full or (c.largest and best >= value - TIE)):
            break
        taken, value = [*taken, found], best
    for _ in range(EXCHANGES):
        before = value
        for place in range(c.required, len(taken)):
            found, best = best_with(taken[:place] + taken[place + 1 :], gain)
            if found >= 0 and best > value + TIE:
                taken[place], value = found, best
        if value <= before + TIE:
            break
    return taken
