"""Mechanisms: how a variable answers to what comes before it, where observed variables share hidden causes.

V: the observed variables, numbered in topological order.  S: what is set.  v <-> w: v and w share a hidden cause.
A: the ancestors of the target, the target included, without S.
C(v, S): what is connected with v by <-> among the variables of A up to v (its confounded component).
E(v, S): C and the parents of C, without v: the effective causes of v.

By Tian's factorisation, for every S and all values of S,
    P(A | do(S)) = product over v in A of P(v | E(v, S)),
and the factor of v depends on S through C(v, S) alone. A mechanism is a variable with such a component. Without hidden
causes C is v alone, E its parents, and each variable has one mechanism. The target needs only those variables of A from
which effective causes lead to it; the others sum to 1.

A is as large as it can matter: where setting more makes a variable irrelevant that shares a hidden cause with the
target, to keep it as an effective cause lets the rounds of both actions teach one mechanism.

A round in which S' was set shows P(v | E) of a mechanism (v, C) if C is free and, among C and its free ancestors up to
v, what is connected with v is C: the factorisation holds of every set of free variables that contains its ancestors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dobandit.errors import listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.interventional_borders import Mask, bits, closed, union
from dobandit.graph.latent import observed_ends

_MOST_WHERE = 3  # sets that are named


class Mechanism(NamedTuple):
    """A variable, the component that it is in (itself included), and its effective causes, by id, ascending."""

    node: int
    component: Mask
    causes: tuple[int, ...]


class Way(NamedTuple):
    """A mechanism in words: the effective causes, and the smallest sets that put it to work, of variables that share
    hidden causes."""

    causes: tuple[str, ...]
    where: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        causes = listed(self.causes) or "nothing that is seen"
        if () in self.where:
            return f"to {causes} otherwise"
        sets = [f"{listed(names)} {'is' if len(names) == 1 else 'are'}" for names in self.where[:_MOST_WHERE]]
        more = ", ..." if len(self.where) > _MOST_WHERE else ""
        return f"to {causes} where {' or '.join(sets)} set{more}"


class Mechanisms:
    """The mechanisms of a graph over observed variables of which some share hidden causes.

    graph   over the observed variables alone
    shared  by id: the variables that share a hidden cause with this one

    >>> from dobandit.graph.hiding import reduced
    >>> whole = CausalGraph([("Z", "X"), ("X", "Y"), ("U", "X"), ("U", "Y")], target="Y", latent=["U"])
    >>> mechanisms = mechanisms_of(whole, reduced(whole))
    >>> x, z = (mechanisms.graph.index(name) for name in "XZ")
    >>> for chosen in (0, 1 << x, 1 << z):
    ...     print([mechanisms.in_words(one) for one in mechanisms.at_work(chosen)])
    ['Z', 'X | Z', 'Y | Z, X']
    ['Y | X']
    ['X | Z', 'Y | Z, X']
    """

    def __init__(self, graph: CausalGraph, shared: dict[int, Mask]) -> None:
        self.graph, self.shared = graph, shared
        self._parents = [0, *(union(1 << p for p in graph.arrays.parents_of(v) if p) for v in range(1, len(graph) + 1))]
        self._matter = self._above(1 << graph.arrays.target, 0)

    def at_work(self, chosen: Mask) -> list[Mechanism]:
        """The mechanisms that decide on the target where `chosen` is set, in topological order."""
        free = self._matter & ~chosen
        found: list[Mechanism] = []
        waiting = 1 << self.graph.arrays.target
        while waiting:  # effective causes come before their effects, so the last one waiting is complete
            v = waiting.bit_length() - 1
            waiting &= ~(1 << v)
            mechanism = self._mechanism(v, self._component(v, free))
            found.append(mechanism)
            waiting |= union(1 << p for p in mechanism.causes) & free
        return found[::-1]

    def shows(self, chosen: Mask, mechanism: Mechanism) -> bool:
        """Whether rounds in which `chosen` was set show this mechanism."""
        node, component, _ = mechanism
        if component & chosen:
            return False
        return self._component(node, self._above(component, chosen) & ~chosen) == component

    def of_sets(self, sets: Iterable[Mask]) -> list[Mechanism]:
        """Every mechanism that is at work where one of these sets is set, each once, by variable."""
        return sorted({mechanism for chosen in sets for mechanism in self.at_work(chosen)})

    def ways(self, sets: Iterable[Mask]) -> dict[str, list[Way]]:
        """How each variable that shares hidden causes answers, and where these sets put that to work.

        >>> graph = CausalGraph([("Z", "X"), ("X", "Y"), ("U", "X"), ("U", "Y")], target="Y", latent=["U"])
        >>> from dobandit.graph.hiding import reduced
        >>> mechanisms = mechanisms_of(graph, reduced(graph))
        >>> mechanisms.ways([0, 1 << mechanisms.graph.index("X")])["Y"]
        [Way(causes=('Z', 'X'), where=((),)), Way(causes=('X',), where=(('X',),))]
        """
        confounded = union(1 << v for v, others in self.shared.items() if others)
        smallest: dict[Mechanism, list[Mask]] = {}
        for chosen in sorted({chosen & confounded for chosen in sets}, key=lambda mask: (mask.bit_count(), mask)):
            for mechanism in self.at_work(chosen):
                found = smallest.setdefault(mechanism, [])
                if not any(other & chosen == other for other in found):
                    found.append(chosen)
        ways: dict[str, list[Way]] = {}
        for mechanism, found in sorted(smallest.items(), key=lambda item: (item[0].node, item[1])):
            if confounded >> mechanism.node & 1:
                where = tuple(self._names(bits(mask)) for mask in found)
                ways.setdefault(self.graph.nodes[mechanism.node - 1], []).append(
                    Way(self._names(mechanism.causes), where)
                )
        return ways

    def _names(self, ids: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.graph.nodes[v - 1] for v in ids)

    def in_words(self, mechanism: Mechanism) -> str:
        """ "Y | Z, X": the variable and its effective causes."""
        causes = ", ".join(self._names(mechanism.causes))
        return self.graph.nodes[mechanism.node - 1] + (f" | {causes}" if causes else "")

    def _mechanism(self, v: int, component: Mask) -> Mechanism:
        causes = (component | union(self._parents[w] for w in bits(component))) & ~(1 << v)
        return Mechanism(v, component, tuple(bits(causes)))

    def _component(self, v: int, free: Mask) -> Mask:
        """What is connected with v by shared hidden causes among the variables of `free` up to v."""
        among = free & ((1 << (v + 1)) - 1)
        found = new = 1 << v
        while new:
            new = union(self.shared.get(w, 0) for w in bits(new)) & among & ~found
            found |= new
        return found

    def _above(self, start: Mask, chosen: Mask) -> Mask:
        """`start` with all its ancestors where the arrows into `chosen` are cut."""
        return closed(start, lambda v: 0 if chosen >> v & 1 else self._parents[v])


def mechanisms_of(whole: CausalGraph, observed: CausalGraph) -> Mechanisms:
    """The mechanisms of a graph with hidden variables; `observed` is the graph without them (`hiding.reduced`)."""
    shared: dict[int, Mask] = {}
    for first, second in _confounded(whole):
        v, w = observed.index(first), observed.index(second)
        shared[v], shared[w] = shared.get(v, 0) | 1 << w, shared.get(w, 0) | 1 << v
    return Mechanisms(observed, shared)


def _confounded(whole: CausalGraph) -> Iterator[tuple[str, str]]:
    """The pairs of observed variables that one hidden variable reaches through hidden ones alone."""
    for _, ends in observed_ends(whole):
        names = [whole.nodes[v - 1] for v in sorted(ends)]
        yield from ((first, second) for i, first in enumerate(names) for second in names[i + 1 :])


def in_ways(ways: dict[str, list[Way]]) -> Iterator[tuple[str, str]]:
    """Each variable, and how it answers.

    >>> list(in_ways({"Y": [Way(("Z", "X"), ((),)), Way(("X",), (("X",),))]}))
    [('Y', "answers in 2 ways: to 'X' where 'X' is set; to 'Z', 'X' otherwise")]
    """
    for name, found in ways.items():
        if len(found) == 1:
            yield name, f"answers {found[0]}".removesuffix(" otherwise")
        else:
            told = sorted(found, key=lambda way: () in way.where)
            yield name, f"answers in {len(found)} ways: {'; '.join(map(str, told))}"
