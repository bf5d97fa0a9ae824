"""Which sets of variables can be best at all when hidden causes are about (Lee and Bareinboim, 2018 and 2019).

Variables that cannot be set, hidden or not, are taken out first: what is left are the variables that can be set and the
target, with v -> w where v reaches w through what was taken out, and v <-> w where something taken out reaches both.
    territory  MUCT: the smallest set with the target that holds, of the target's ancestors, with each node all that it
               shares causes with and all that it has an effect on
    border     IB: the parents of the territory that are not in it
A set W is possibly optimal if and only if it is the border where the arrows into W are cut. The theorem takes it for
granted that every set is allowed, and every value. Under rules, `dominates` says when a set is at least as good as
another in every model: the best of its values are no worse than the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, reduce
from operator import or_

from dobandit.errors import InferenceError
from dobandit.graph.causal_graph import CausalGraph

MOST_FOUND = 20_000
Mask = int  # a set of ids, one bit each


class Borders:
    """Territories and borders of a graph, for the variables in `settable` (default: the controllable ones).

    >>> graph = CausalGraph(
    ...     [("Z", "X"), ("X", "Y"), ("U", "X"), ("U", "Y")], target="Y", latent=["U"], controllable=["X", "Z"]
    ... )
    >>> Borders(graph).possibly_optimal()
    [('Z',), ('X',)]
    """

    def __init__(self, graph: CausalGraph, settable: Iterable[str] | None = None) -> None:
        self.graph = graph
        self.settable = self.mask(graph.controllable if settable is None else settable)
        self._target = 1 << graph.arrays.target
        self._parents = [0, *(sum(1 << p for p in graph.arrays.parents_of(v)) for v in range(1, len(graph) + 1))]
        self.matter = self.natural(0) & self.settable

    def mask(self, names: Iterable[str]) -> Mask:
        return sum({1 << self.graph.index(name) for name in names})

    def names(self, mask: Mask) -> tuple[str, ...]:
        return tuple(self.graph.nodes[v - 1] for v in bits(mask))

    def above(self, start: Mask, fence: Mask) -> Mask:
        """`start` with all its ancestors that are reached without setting foot into `fence`."""
        return closed(start, lambda v: self._parents[v] & ~fence)

    def natural(self, chosen: Mask) -> Mask:
        """The target and its ancestors that run their own course where `chosen` is set."""
        return self.above(self._target, chosen)

    # -- the theorem ---------------------------------------------------------------------------------------------

    @cached_property
    def _seen_from(self) -> dict[int, tuple[Mask, Mask]]:
        """Of every node that stays: its parents among these, and what was taken out and reaches it."""
        stay = self.matter | self._target
        found = {}
        for v in bits(stay):
            up = self.above(1 << v, stay & ~(1 << v))
            found[v] = union(self._parents[w] for w in bits(up)) & stay, up & ~(1 << v)
        return found

    def border(self, chosen: Mask) -> tuple[Mask, Mask]:
        """(border, territory) where the arrows into `chosen` are cut."""
        here = closed(self._target, lambda v: 0 if chosen >> v & 1 else self._seen_from[v][0])
        children: dict[int, Mask] = dict.fromkeys(bits(here), 0)
        for v in children:
            for p in bits(self._seen_from[v][0] & here if not chosen >> v & 1 else 0):
                children[p] |= 1 << v
        free = here & ~chosen
        inside, new, outer = 0, self._target, 0
        while new:
            v = new.bit_length() - 1
            new &= ~(1 << v)
            inside |= 1 << v
            outer |= self._seen_from[v][1] if free >> v & 1 else 0
            related = sum(1 << w for w in bits(free & ~inside) if self._seen_from[w][1] & outer)
            new |= (children[v] | related) & ~inside
        return union(self._seen_from[v][0] for v in bits(inside)) & ~inside, inside

    def possibly_optimal(self) -> list[tuple[str, ...]]:
        """Every possibly optimal set, the smallest first.

        Setting a variable of the territory makes it smaller, and every possibly optimal set is reached from the first
        border by such steps: as long as the territory is too large, the set wanted has a variable in it.
        """
        first, territory = self.border(0)
        found, waiting = {first}, [(first, territory)]
        for chosen, inside in waiting:
            for v in bits(inside & ~self._target):
                border, smaller = self.border(chosen | 1 << v)
                if border not in found:
                    if len(found) == MOST_FOUND:
                        raise InferenceError(
                            f"more than {MOST_FOUND:,} sets can be best, too many to list. Make fewer variables "
                            "controllable."
                        )
                    found.add(border)
                    waiting.append((border, smaller))
        return [self.names(mask) for mask in sorted(found, key=lambda mask: (mask.bit_count(), bits(mask)))]

    # -- under rules ---------------------------------------------------------------------------------------------

    def dominates(self, better: Mask, worse: Mask) -> bool:
        """Whether E[Y | do(worse)] is an average of E[Y | do(better)] over values of the variables that only `better`
        sets, in every model: they can then be set to values that are no worse.

        By the rules of the do-calculus: given what is set, seeing these variables is the same as setting them (they
        and the target have no ancestor in common that runs its own course), and with them set, what only `worse` sets
        has no way to the target.
        """
        either, added = better | worse, better & ~worse
        near = self.above(self._target, either)
        if union(self._parents[v] for v in bits(near)) & worse & ~better:
            return False
        return not near & self.above(added, either)

    def undominated(self, sets: Sequence[Mask], whole: Mask) -> list[Mask]:
        """The sets that are left when every one is dropped to which another of them is no worse in every model.

        whole  the variables that can be set to each of their values: only these are added to a set for its good

        What stays undisturbed on the way to the target only ever gets less from a set to one that is no worse, and of
        two that are equal in this the smaller is kept: so the drops never go round in a circle, and a best set stays.
        """
        borders = Borders(self.graph, self.names(whole)) if whole != self.settable else self
        known = set(sets)
        order = sorted(sets, key=lambda mask: (self.natural(mask).bit_count(), mask.bit_count(), bits(mask)))
        kept: list[Mask] = []
        for mask in order:
            usual = borders.border(mask & borders.matter)[0] if mask & ~whole == 0 else mask
            if usual != mask and usual in known:
                continue
            if not any(better & ~mask & ~whole == 0 and self.dominates(better, mask) for better in kept):
                kept.append(mask)
        return sorted(kept, key=lambda mask: (mask.bit_count(), bits(mask)))


def closed(start: Mask, parents: Callable[[int], Mask]) -> Mask:
    """`start` with all that is reached from it over parents."""
    found = new = start
    while new:
        v = new.bit_length() - 1  # the lowest in the graph first: nothing comes twice
        new &= ~(1 << v)
        fresh = parents(v) & ~found
        found |= fresh
        new |= fresh
    return found


def union(masks: Iterable[Mask]) -> Mask:
    return reduce(or_, masks, 0)


def bits(mask: Mask) -> list[int]:
    """The ids in a set, ascending."""
    found = []
    while mask:
        found.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return found
