"""A good action of a known linear model with effects of any sign: greedy steps, then exchanges while they help.

Every gain is exact, (x - e_v) a_v, from two passes (`passes.py`). Nothing is proved of the result but what a bound
beside it proves: with effects of both signs E[Y] is neither monotone nor submodular.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dobandit.oracle.exhaustive import Limits
from dobandit.oracle.options import Options, Steps
from dobandit.oracle.passes import toggle

_BETTER = 1e-12
_MOST_EXCHANGES = 200
_MOST_LOOKS = 20_000_000  # options looked at: some 0.2 s


def signed_greedy(options: Options, limits: Limits | None = None) -> Steps:
    """By gain, and with costs also by gain per cost; the better of the two, after exchanges."""
    best: _Walk | None = None
    looked = 0
    for by_rate in (True, False) if options.has_costs else (False,):
        walk = _Walk(options, by_rate, limits or Limits(), looked)
        walk.fill()
        walk.exchange()
        looked = walk.looked
        if best is None or walk.value > best.value + _BETTER:
            best = walk
    assert best is not None
    return Steps(best.chosen, best.value, 1.0, None, looked)


class _Walk:
    def __init__(self, options: Options, by_rate: bool, limits: Limits, looked: int) -> None:
        self.options, self.by_rate, self.limits, self.looked = options, by_rate, limits, looked
        self.value = options.restart()
        self.chosen: list[int] = []
        self.money = options.money
        self.taken = np.zeros(options.group_count + 1, dtype=np.int64)
        t = options.table
        self.must = np.isin(t.node, t.must)
        for v in t.must:
            self.take(self.best_of(t.node == v))

    @property
    def filling(self) -> bool:
        """Whether variables are added even where they lower E[Y]."""
        return self.options.exact or self.options.maximal

    def take(self, option: int) -> None:
        self._turn(option)
        self.chosen.append(option)
        self.money -= self.options.table.cost[option]

    def drop(self, option: int) -> None:
        self._turn(option, -1)
        self.chosen.remove(option)
        self.money += self.options.table.cost[option]

    def _turn(self, option: int, by: int = 1) -> None:
        t, p = self.options.table, self.options.passes
        v = t.node[option]
        p.to[v] = t.to[option]
        self.value = float(toggle(p, v))
        self.taken[t.group[t.group_ptr[v] : t.group_ptr[v + 1]]] += by

    def gains(self) -> NDArray[np.float64]:
        t, p = self.options.table, self.options.passes
        self.looked += len(t.node)
        return (t.to - p.means[t.node]) * p.paths[t.node]

    def fitting(self) -> NDArray[np.bool_]:
        """Options that may be taken besides, the required ones left out."""
        t = self.options.table
        room = len(self.chosen) < self.options.depth
        fits = room & ~self.options.passes.is_set[t.node] & (t.cost <= self.money + 1e-15) & ~self.must
        if self.options.group_count:
            full = np.flatnonzero(self.taken > 0)
            owner = np.repeat(np.arange(len(t.group_ptr) - 1), np.diff(t.group_ptr))
            fits &= ~np.isin(t.node, owner[np.isin(t.group, full)])
        return fits

    def best_of(self, among: NDArray[np.bool_]) -> int:
        """The option with the largest gain (or gain per cost); -1 where there is none."""
        where = np.flatnonzero(among)
        if not len(where):
            return -1
        gains = self.gains()[where]
        if self.by_rate:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                gains = np.where(gains > 0.0, gains / self.options.table.cost[where], gains)
        return int(where[np.argmax(gains)])

    def fill(self) -> None:
        """Take the best option while it helps, or while one fits where actions must be full."""
        while not (self.chosen and self.limits.reached(self.looked) and not self.filling):
            option = self.best_of(self.fitting())
            if option < 0 or (not self.filling and self.gain_of(option) <= _BETTER):
                break
            self.take(option)

    def gain_of(self, option: int) -> float:
        t, p = self.options.table, self.options.passes
        return float((t.to[option] - p.means[t.node[option]]) * p.paths[t.node[option]])

    def exchange(self) -> None:
        """Leave out one option and fill up again, as long as that helps."""
        t = self.options.table
        for _ in range(_MOST_EXCHANGES):
            before, kept = self.value, list(self.chosen)
            for option in kept:
                if self.limits.reached(self.looked) or self.looked > _MOST_LOOKS:
                    return
                self.drop(option)
                if self.must[option]:
                    self.take(self.best_of(t.node == t.node[option]))
                self.fill()
                if self.value > before + _BETTER:
                    break
                for new in [o for o in self.chosen if o not in kept]:
                    self.drop(new)
                if option not in self.chosen:
                    self.take(option)
            else:
                return
