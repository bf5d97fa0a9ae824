"""CausalGraph: a validated, immutable DAG with a target, hidden variables and an implicit constant.

Numerics see the graph as flat arrays in which id 0 is the constant X1 = 1 of the paper and ids 1..n are the
named nodes in topological order (paper, Section 2; there n counts the constant and Y, here it counts names).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import listable, shown
from dobandit.errors import GraphError, closest
from dobandit.graph.ordering import bad_edge, csr, find_cycle, natural_key, reached_from, topological_order
from dobandit.graph.roles import ROLES, refuse_bad_roles, warn_about_useless
from dobandit.texts import shortened

Edge = tuple[str, str]
Names = Iterable[str]
_MOST_SHOWN_LINES, _MOST_SHOWN_OF_LINE = 60, 200


class GraphArrays(NamedTuple):
    """The graph as read-only arrays. Id 0 is the constant; ids 1..n follow `CausalGraph.nodes`.

    Slots of v's parents are `parent_ptr[v]` to `parent_ptr[v + 1]`, ascending, so the constant comes first.
    """

    parent_ptr: NDArray[np.int64]  # (n + 2,)
    parent: NDArray[np.int32]  # (edges + biases,)
    child_ptr: NDArray[np.int64]  # (n + 2,)
    child: NDArray[np.int32]  # (edges + biases,)
    latent: NDArray[np.bool_]  # (n + 1,)
    controllable: NDArray[np.int32]  # ids, ascending
    target: int
    context: NDArray[np.int32]  # ids, ascending

    def parents_of(self, v: int) -> list[int]:
        """The ids of v's parents, ascending, without the constant."""
        return [p for p in self.parent[self.parent_ptr[v] : self.parent_ptr[v + 1]].tolist() if p]

    def children_of(self, v: int) -> list[int]:
        """The ids of v's children, ascending."""
        ids: list[int] = self.child[self.child_ptr[v] : self.child_ptr[v + 1]].tolist()
        return ids


class CausalGraph:
    """What causes what.

    edges         (cause, effect) pairs of names
    target        the variable to make likely; what it causes is kept in `effects` and left aside
    latent        hidden variables
    controllable  variables that may be set (default: every observed one but the target and the context)
    bias          nodes that can become 1 by themselves, that is, have the constant X1 as a parent
                  (default: every observed node)
    nodes         further nodes without edges
    context       variables that are observed before acting, and never set; their causes are context too

    >>> graph = CausalGraph([("ad", "visit"), ("visit", "buy")], target="buy")
    >>> graph.parents("buy"), graph.children("ad")
    (('visit',), ('visit',))
    >>> graph.ancestors("buy"), graph.descendants("ad")
    (('ad', 'visit'), ('visit', 'buy'))
    >>> graph.index("visit"), graph.has_bias("visit")
    (2, True)
    """

    nodes: tuple[str, ...]
    target: str
    latent: tuple[str, ...]
    controllable: tuple[str, ...]
    bias: tuple[str, ...]
    context: tuple[str, ...]
    effects: tuple[str, ...]  # what the target causes, directly or not: these are no nodes of the graph
    edges_aside: tuple[Edge, ...]  # the edges that lead to them
    levers_aside: tuple[str, ...]  # those of them that were listed as controllable
    arrays: GraphArrays
    _index: dict[str, int]

    def __init__(
        self,
        edges: Iterable[Sequence[str]],
        target: str,
        latent: Iterable[str] = (),
        controllable: Iterable[str] | None = None,
        bias: Iterable[str] | None = None,
        nodes: Iterable[str] = (),
        context: Iterable[str] = (),
    ) -> None:
        listed_edges = listable(edges)
        if listed_edges is None:
            raise GraphError(f"edges is a list of (cause, effect) pairs, but got {type(edges).__name__}.")
        pairs = [_edge(edge) for edge in listed_edges]
        names = dict.fromkeys([*(name for pair in pairs for name in pair), *_names(nodes, "nodes")])
        if not names:
            raise GraphError("a causal graph needs nodes, but no edge and no node was given. List some edges.")
        number = {name: i for i, name in enumerate(names)}
        ends = np.array([(number[a], number[b]) for a, b in pairs], dtype=np.int64).reshape(-1, 2)
        self._build(list(names), ends[:, 0], ends[:, 1], target, latent, controllable, bias, context)
        warn_about_useless(self, stacklevel=3)

    @classmethod
    def from_arrays(
        cls,
        names: Sequence[str],
        sources: NDArray[Any],
        destinations: NDArray[Any],
        target: str,
        latent: Iterable[str] = (),
        controllable: Iterable[str] | None = None,
        bias: Iterable[str] | None = None,
        context: Iterable[str] = (),
    ) -> CausalGraph:
        """A large graph from edge arrays: edge i goes from names[sources[i]] to names[destinations[i]].

        target, latent, controllable, bias, context  as in `CausalGraph`

        >>> CausalGraph.from_arrays(["ad", "buy"], [0], [1], target="buy").edges
        (('ad', 'buy'),)
        """
        named = _names(names, "names")
        if len(set(named)) != len(named):
            raise GraphError("names must differ, but some name stands twice. Name each node once.")
        ends = [np.asarray(side) for side in (sources, destinations)]
        ends = [side.astype(np.int64) if side.size == 0 else side for side in ends]
        if ends[0].shape != ends[1].shape or any(
            side.ndim != 1
            or not np.issubdtype(side.dtype, np.integer)
            or (len(side) and (side.min() < 0 or side.max() >= len(named)))
            for side in ends
        ):
            raise GraphError(
                f"sources and destinations must be two arrays of one length with positions from 0 to "
                f"{len(named) - 1}. Check that they index into names."
            )
        graph = cls.__new__(cls)
        graph._build(named, ends[0], ends[1], target, latent, controllable, bias, context)
        return graph

    def _build(
        self, names: list[str], sources: NDArray[np.int64], destinations: NDArray[np.int64], *roles: Any
    ) -> None:
        """`sources` and `destinations` are positions in `names`, which are put in their natural order first; `roles`
        are those of `_take_roles`, the target first."""
        by_name = sorted(range(len(names)), key=lambda i: natural_key(names[i]))
        rank = np.empty(len(names), dtype=np.int64)
        rank[by_name] = np.arange(len(names))
        names, sources, destinations = [names[i] for i in by_name], rank[sources], rank[destinations]
        bad = bad_edge(names, sources, destinations)
        if bad is not None:
            raise GraphError(bad[1])
        order, leftover = topological_order(sources, destinations, len(names))
        if len(leftover):
            cycle = [repr(names[i]) for i in find_cycle(sources, destinations, leftover)]
            if len(cycle) > 21:
                cycle = [*cycle[:10], f"... ({len(cycle) - 20} more)", *cycle[-10:]]
            path = " -> ".join(cycle)
            raise GraphError(f"a causal graph has no cycles, but {path} is one. Remove one of these edges.")
        is_effect = reached_from(roles[0], names, sources, destinations)
        self.effects = tuple(names[i] for i in order if is_effect[i])
        aside = is_effect[destinations]
        pairs = sorted(zip(destinations[aside].tolist(), sources[aside].tolist(), strict=True))
        self.edges_aside = tuple((names[tail], names[head]) for head, tail in pairs)
        sources, destinations = sources[~aside], destinations[~aside]
        self.nodes = self._numbered(tuple(names[i] for i in order if not is_effect[i]))
        self._index = {name: i for i, name in enumerate(self.nodes, start=1)}
        position = np.array([self._index.get(name, 0) for name in names], dtype=np.int64)

        self._take_roles(*roles)

        def ids(names: Sequence[str]) -> NDArray[np.int32]:
            return np.array([self._index[name] for name in names], dtype=np.int32)

        tails = np.concatenate([np.zeros(len(self.bias), dtype=np.int64), position[sources]])
        heads = np.concatenate([ids(self.bias), position[destinations]])
        size = len(self.nodes) + 1
        is_latent = np.zeros(size, dtype=np.bool_)
        is_latent[ids(self.latent)] = True
        lists = (*csr(heads, tails, size), *csr(tails, heads, size))
        settable, given = ids(self.controllable), ids(self.context)
        for array in (*lists, is_latent, settable, given):
            array.setflags(write=False)
        self.arrays = GraphArrays(*lists, is_latent, settable, self._index[self.target], given)
        refuse_bad_roles(self)

    def _numbered(self, ordered: tuple[str, ...]) -> tuple[str, ...]:
        """The nodes in the order of their ids, given their topological order."""
        return ordered

    def _take_roles(
        self, target: str, latent: Names, controllable: Names | None, bias: Names | None, context: Names
    ) -> None:
        self.target = self._known(target, "target")
        self.latent = self._members(latent, "latent")
        self.context = self._members(context, "context")
        others = {self.target, *self.context}
        usual = tuple(name for name in self.observed if name not in others)
        levers = _names(usual if controllable is None else controllable, "controllable")
        self.controllable = self._members(levers, "controllable")
        self.levers_aside = tuple(name for name in self.effects if name in levers)
        self.bias = self.observed if bias is None else self._members(bias, "bias")

    def _members(self, names: Iterable[str], role: str) -> tuple[str, ...]:
        """Those that were named, in the order of the nodes. Effects of the target have no role, and are no context."""
        aside = () if role == "context" else self.effects
        chosen = {self._known(name, role) for name in _names(names, role) if name not in aside}
        return tuple(name for name in self.nodes if name in chosen)

    def _known(self, name: object, role: str) -> str:
        if isinstance(name, str) and name in self._index:
            return name
        if name in self.effects:
            raise GraphError(
                f"{role} must name nodes of the graph, but {name!r} is an effect of the target {self.target!r}, which "
                "is left aside."
            )
        raise GraphError(f"{role} must name nodes of the graph, but {name!r} is none.{closest(name, self.nodes)}")

    # -- looking things up -------------------------------------------------------------------------------

    @cached_property
    def slot_child(self) -> NDArray[np.int64]:
        """The effect of each slot of `arrays.parent`, by id."""
        ptr = self.arrays.parent_ptr
        child = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        child.setflags(write=False)
        return child

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """(cause, effect) pairs, ordered by effect and then by cause."""
        parent, child = self.arrays.parent, self.slot_child
        named = parent > 0
        return tuple(
            (self.nodes[p - 1], self.nodes[c - 1])
            for p, c in zip(parent[named].tolist(), child[named].tolist(), strict=True)
        )

    @property
    def all_nodes(self) -> tuple[str, ...]:
        """The nodes, and behind them the effects of the target."""
        return self.nodes + self.effects

    @property
    def all_edges(self) -> tuple[Edge, ...]:
        """The edges, and behind them those that lead to effects of the target."""
        return self.edges + self.edges_aside

    @property
    def edge_count(self) -> int:
        """How many edges there are, those from the constant not counted."""
        return len(self.arrays.parent) - len(self.bias)

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """Nodes that are not latent, in topological order."""
        hidden = set(self.latent)
        return tuple(name for name in self.nodes if name not in hidden)

    @property
    def topological_order(self) -> tuple[str, ...]:
        """The nodes, every cause before its effects."""
        return self.nodes

    def index(self, name: str) -> int:
        """The id of the node `name` in `arrays` (from 1)."""
        return self._index[self._known(name, "a name")]

    def parents(self, name: str) -> tuple[str, ...]:
        """Direct causes of `name`, in topological order, without the constant."""
        return self._named(self.arrays.parents_of(self.index(name)))

    def children(self, name: str) -> tuple[str, ...]:
        """Direct effects of `name`, in topological order."""
        return self._named(self.arrays.children_of(self.index(name)))

    def has_bias(self, name: str) -> bool:
        """Whether the constant is a parent of `name`."""
        return self._known(name, "a name") in self._biased

    def ancestors(self, name: str) -> tuple[str, ...]:
        """Every node with a path to `name`, in topological order."""
        return self._reached(name, self.arrays.parents_of)

    def descendants(self, name: str) -> tuple[str, ...]:
        """Every node that `name` has a path to, in topological order."""
        return self._reached(name, self.arrays.children_of)

    @cached_property
    def irrelevant(self) -> tuple[str, ...]:
        """Controllable variables that cannot matter: they have no path to the target."""
        useful = set(self.ancestors(self.target))
        return tuple(name for name in self.controllable if name not in useful)

    @cached_property
    def settable_mediators(self) -> tuple[str, ...]:
        """Controllable variables that stand between others and the target: they have observed causes, and can matter.
        Often they can only be seen (nobody makes people visit), and are meant to be left out of controllable."""
        hidden, useful = set(self.latent), set(self.ancestors(self.target))
        return tuple(n for n in self.controllable if n in useful and any(p not in hidden for p in self.parents(n)))

    @cached_property
    def _biased(self) -> frozenset[str]:
        return frozenset(self.bias)

    def _named(self, ids: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.nodes[i - 1] for i in ids)

    def _reached(self, name: str, neighbours: Callable[[int], list[int]]) -> tuple[str, ...]:
        found: set[int] = set()
        queue = [self.index(name)]
        while queue:
            for i in neighbours(queue.pop()):
                if i not in found:
                    found.add(i)
                    queue.append(i)
        return self._named(sorted(found))

    # -- other graphs ------------------------------------------------------------------------------------

    def changed(
        self, *, nodes: Iterable[str] | None = None, edges: Iterable[Edge] | None = None, **roles: Iterable[str]
    ) -> CausalGraph:
        """The graph with other nodes, edges or roles. Nobody is warned once more of variables that cannot matter.

        roles  latent, controllable, bias, context

        >>> CausalGraph([("ad", "visit"), ("visit", "buy")], target="buy").changed(controllable=["ad"]).controllable
        ('ad',)
        """
        kept = self.nodes if nodes is None else nodes
        return CausalGraph.from_arrays(*self._arguments(kept, self.edges if edges is None else edges, roles))

    def _arguments(self, nodes: Iterable[str], edges: Iterable[Edge], roles: dict[str, Iterable[str]]) -> Any:
        """Those of `from_arrays`; effects of the target are kept as they are."""
        names = (*nodes, *self.effects)
        place = {name: i for i, name in enumerate(names)}
        aside = (edge for edge in self.edges_aside if edge[0] in place)
        ends = np.array([(place[a], place[b]) for a, b in (*edges, *aside)], dtype=np.int64).reshape(-1, 2)
        kept = (roles.get(role, getattr(self, role)) for role in ROLES)
        return names, ends[:, 0], ends[:, 1], self.target, *kept

    # -- a value among values ----------------------------------------------------------------------------

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        arrays = self.arrays
        flat = (arrays.parent_ptr.tobytes(), arrays.parent.tobytes())
        return (self.nodes, flat, self.target, self.latent, self.controllable, self.context, self.edges_aside)

    def __eq__(self, other: object) -> bool:
        return self._identity == other._identity if isinstance(other, CausalGraph) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    def __reduce__(self) -> tuple[Callable[..., CausalGraph], tuple[object, ...]]:
        return (CausalGraph.from_arrays, self._arguments(self.nodes, self.edges, {}))

    def __setattr__(self, name: str, value: object) -> None:
        if "arrays" in self.__dict__:  # assigned last; cached properties write to __dict__ directly
            raise AttributeError(f"a CausalGraph does not change, but {name!r} was assigned. Build a new graph.")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a CausalGraph does not change, but {name!r} was deleted. Build a new graph.")

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._index

    def __repr__(self) -> str:
        hidden = f", {len(self.latent)} latent" if self.latent else ""
        return f"CausalGraph({len(self.nodes)} nodes{hidden}, {self.edge_count} edges, target={self.target!r})"

    def __str__(self) -> str:
        """The graph as an edge list, the first lines of it where it is long."""
        from dobandit.graph.formats.edgelist import text_of

        lines = [shortened(line, _MOST_SHOWN_OF_LINE) for line in text_of(self).splitlines()]
        more = len(lines) - _MOST_SHOWN_LINES
        return "\n".join(lines if more <= 0 else [*lines[:_MOST_SHOWN_LINES], f"... and {more:,} more lines"])


def _edge(edge: Sequence[str]) -> Edge:
    if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
        raise GraphError(f"an edge is a pair (cause, effect) of names, but got {edge!r}.")
    cause, effect = edge
    return _name(cause, "an edge"), _name(effect, "an edge")


def _name(name: object, role: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise GraphError(f"names are non-empty strings, but {role} has {name!r}. Give it a name.")
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise GraphError(f"names are Unicode text, but {name!r} has half of a surrogate pair. Rename it.")
    return name


def _names(names: Iterable[str], role: str) -> list[str]:
    if isinstance(names, str):
        raise GraphError(f"{role} is a list of names, but got the string {names!r}. Write [{names!r}].")
    given = listable(names)
    if given is None:
        raise GraphError(f"{role} is a list of names, but got {shown(names)}.")
    return [_name(name, role) for name in given]
