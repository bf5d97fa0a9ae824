"""`oracle.index_search` without any saving: every action that is looked at is scored by itself, from the start."""

from __future__ import annotations

from collections.abc import Callable

from dobandit.oracle.action_list import TIE
from dobandit.oracle.index_search import EXCHANGES, LOOKS, IndexSearch


def plain_search(plan: IndexSearch, index: Callable[[list[int]], float], uniform: float) -> list[int]:
    """The levers that greedy and exchanges end with. index: of a list of levers."""
    rules, cost, count = plan.rules[0], plan.levers["cost"], len(plan.levers)
    required = int(rules["required"])
    shift = int(uniform * count)
    around = [(k + shift) % count for k in range(count)]

    def fits(lever: int, others: list[int]) -> bool:
        affordable = cost[[lever, *others]].sum() <= rules["money"]
        return lever >= required and affordable and not plan.clash[lever, others].any()

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

    taken = list(range(required))
    value, gain = index(taken), [float("inf")] * count
    while len(taken) < rules["most"]:
        gain = [float("inf")] * count
        found, best = best_with(taken, gain)
        if found < 0 or not (best > value or rules["full"] or (rules["largest"] and best >= value - TIE)):
            break
        taken, value = [*taken, found], best
    for _ in range(EXCHANGES):
        before = value
        for place in range(required, len(taken)):
            found, best = best_with(taken[:place] + taken[place + 1 :], gain)
            if found >= 0 and best > value + TIE:
                taken[place], value = found, best
        if value <= before + TIE:
            break
    return taken
