"""TableModel: a causal graph whose binary nodes are 1 with probabilities that tables list, one per parents' pattern.

Any distribution of binary variables that fits the graph is such a model: interactions, exceptions and effects that
change their sign are no more trouble than sums. Simulations use it for worlds that are not what a learner believes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dobandit.errors import ModelError, closest
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.networkx_format import as_graph
from dobandit.graph.ordering import offsets
from dobandit.model.causal_model import CausalModel, FreeNode
from dobandit.model.links import identity

if TYPE_CHECKING:
    import os

    from dobandit.model.bglm import WeightedModel
    from dobandit.model.link_kernels import NodeArrays

Array = NDArray[np.float64]
TableLike = ArrayLike | Mapping[Any, float]
MOST_PARENTS = 20  # a table of 2^20 entries
_SAME = 1e-12  # a step down this small is rounding


class TableModel(CausalModel):
    """A model of binary variables by conditional probability tables.

    graph   what causes what
    tables  by node, P(node = 1 | parents): an array with one axis of length 2 per parent, in the order of
            `graph.parents(node)`, a number for a node without parents; or a mapping from the parents' values in that
            order, {(0, 0): 0.1, (0, 1): 0.1, (1, 0): 0.1, (1, 1): 0.9}
    parts   hidden variables that say which state a variable of several states is in, and of which one (`Network`)
    ones    where the model comes from a network with named states, those that count as 1, by variable; for people

    >>> graph = CausalGraph([("mail", "buy"), ("coupon", "buy")], target="buy")
    >>> model = TableModel(graph, {"mail": 0.5, "coupon": 0.2, "buy": [[0.1, 0.1], [0.1, 0.9]]})
    >>> model.nonnegative
    True
    """

    tables: dict[str, Array]  # read-only arrays

    def __init__(
        self,
        graph: CausalGraph,
        tables: Mapping[str, TableLike],
        *,
        parts: Mapping[str, str] | None = None,
        ones: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        graph = as_graph(graph, "a model stands on a CausalGraph", ModelError)
        if not isinstance(tables, Mapping):
            raise ModelError(f"tables are a mapping from nodes to tables, but got {type(tables).__name__}.")
        for name in tables:
            if name not in graph.all_nodes:
                raise ModelError(f"tables are given by node, but {name!r} is none.{closest(str(name), graph.nodes)}")
        missing = [name for name in graph.nodes if name not in tables]
        if missing:
            raise ModelError(f"every node needs a table, but {missing[0]!r} has none. Add it.", node=missing[0])
        self.graph, self.parts, self.ones = graph, dict(parts or {}), dict(ones or {})
        for part, name in self.parts.items():
            if part not in graph.latent or name not in graph or name in self.parts:
                raise ModelError(
                    f"a part is a hidden variable that says the state of another one, but {part!r} of {name!r} is "
                    "none.",
                    node=part,
                )
        self.tables = {name: _table(name, tables[name], graph.parents(name)) for name in graph.nodes}
        self.noise = np.zeros(len(graph) + 1)
        self._freeze()

    @classmethod
    def of(cls, model: WeightedModel) -> TableModel:
        """The tables of a binary model with weights: the same distribution of all variables.

        model  a `BinaryGLM`, whose nodes have few parents

        >>> import dobandit as dob
        >>> TableModel.of(dob.paper.G5).probability("X2", {})
        0.1
        """
        if model.continuous:
            raise ModelError("tables are of variables of 0 and 1, but the model is continuous. Give a BinaryGLM.")
        free = np.full(len(model.graph) + 1, math.nan)
        free[0] = 1.0
        for name in model.graph.nodes:
            _refuse_many(name, model.graph.parents(name))
        nodes = {name: model.free_node(v, free) for v, name in enumerate(model.graph.nodes, start=1)}
        return cls(model.graph, {name: node.table() for name, node in nodes.items()})

    @classmethod
    def from_bif(cls, path: str | os.PathLike[str], target: str | None = None, **roles: Any) -> TableModel:
        """The model in a BIF file; `Network.from_bif` has an example.

        path    the file (.bif, .bif.gz)
        target  the variable to make likely; default: what the file says
        roles   the further arguments of `Network.binary`: binarise, binarise_rest, latent, controllable, context
        """
        from dobandit.model.model_files import read_model

        return read_model(path, format="bif", target=target, **roles)  # type: ignore[return-value]

    @classmethod
    def from_pgmpy(cls, network: Any, target: str | None = None, **roles: Any) -> TableModel:
        """The model of a network of pgmpy, which need not be installed here; `Network.from_pgmpy` has an example.

        network  a `DiscreteBayesianNetwork`
        target   the variable to make likely
        roles    the further arguments of `Network.binary`
        """
        from dobandit.model.network import Network

        return Network.from_pgmpy(network).binary(target, **roles)

    @cached_property
    def structure(self) -> CausalGraph:
        """The graph without hidden parts of variables: what causes what, as a learner is told it."""
        graph = self.graph
        if not self.parts:
            return graph
        whole = {name: self.parts.get(name, name) for name in graph.nodes}
        edges = {(whole[a], whole[b]) for a, b in graph.edges if whole[a] != whole[b]}
        left, hidden, biased = (
            [name for name in names if name not in self.parts] for names in (graph.nodes, graph.latent, graph.bias)
        )
        return graph.changed(nodes=left, edges=edges, latent=hidden, bias=biased)

    @property
    def is_linear(self) -> bool:
        """False: it has no weights that a linear pass could use, even where the tables happen to be sums."""
        return False

    @cached_property
    def nonnegative(self) -> bool:
        """Whether no parent ever makes its child less likely, in any row of the tables."""
        return all(
            bool(np.all(np.diff(table, axis=axis) >= -_SAME))
            for table in self.tables.values()
            for axis in range(table.ndim)
        )

    def probability(self, name: str, parents: Mapping[str, float]) -> float:
        """P(name = 1 | parents).

        name     the node
        parents  the values of its parents, by name

        >>> graph = CausalGraph([("mail", "buy")], target="buy")
        >>> TableModel(graph, {"mail": 0.5, "buy": [0.1, 0.3]}).probability("buy", {"mail": 1})
        0.3
        """
        return float(self.tables[name][tuple(int(parents[parent]) for parent in self.graph.parents(name))])

    def _knowing(self, context: Mapping[str, float]) -> TableModel:
        graph = self.graph
        left = [name for name in graph.nodes if name not in context]
        edges = [(a, b) for a, b in graph.edges if a not in context and b not in context]
        started = [name for name in left if graph.has_bias(name) or set(graph.parents(name)) & context.keys()]
        smaller = graph.changed(nodes=left, edges=edges, bias=started, context=())
        tables: dict[str, TableLike] = {}
        for name in left:
            at = tuple(int(context[p]) if p in context else slice(None) for p in graph.parents(name))
            kept = [p for p in graph.parents(name) if p not in context]
            # The smaller graph may order its nodes differently.
            axes = [kept.index(parent) for parent in smaller.parents(name)]
            tables[name] = np.asarray(self.tables[name][at]).transpose(axes)
        parts = {part: name for part, name in self.parts.items() if name not in context}
        return TableModel(smaller, tables, parts=parts)

    # -- what inference and worlds ask for --------------------------------------------------------------------------

    def free_node(self, v: int, fixed: Array) -> FreeNode:
        parents = self.graph.arrays.parents_of(v)
        at = tuple(slice(None) if math.isnan(fixed[p]) else int(fixed[p]) for p in parents)
        kept = tuple(p for p in parents if math.isnan(fixed[p]))
        return FreeNode(kept, lambda: np.asarray(self.tables[self.graph.nodes[v - 1]][at]))

    def node_arrays(self) -> NodeArrays:
        from dobandit.model.link_kernels import POINT, TABLE, link_arrays, node_arrays  # needs Numba

        arrays, nodes = self.graph.arrays, range(1, len(self.graph) + 1)
        weights, tables = np.zeros(len(arrays.parent)), [self._flat(v) for v in nodes]
        for v in nodes:
            named = [s for s in range(arrays.parent_ptr[v], arrays.parent_ptr[v + 1]) if arrays.parent[s] > 0]
            weights[named] = 2.0 ** np.arange(len(named))
        starts = offsets([len(table) for table in tables])
        made = node_arrays(self.graph, weights, link_arrays((identity,) * len(nodes), [0.0] * len(nodes)))
        made.nodes["link"][1:], made.nodes["point"][1:] = TABLE, starts[:-1]
        points = np.zeros(starts[-1], POINT)
        points["value"] = np.concatenate(tables)
        return made._replace(points=points)

    def _means_into(self, out: Array, v: int, values: Array) -> None:
        pattern = np.zeros(out.shape, dtype=np.intp)
        for j, p in enumerate(self.graph.arrays.parents_of(v)):
            pattern += values[p].astype(np.intp) << j
        np.take(self._flat(v), pattern, out=out)

    def _flat(self, v: int) -> Array:
        """v's table by the number of its parents' pattern: bit j is the j-th parent."""
        return self.tables[self.graph.nodes[v - 1]].ravel(order="F")

    # -- a value among values ---------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TableModel)
            and self.graph == other.graph
            and self.parts == other.parts
            and all(np.array_equal(table, other.tables[name]) for name, table in self.tables.items())
        )

    def __hash__(self) -> int:
        return hash((self.graph, *(table.tobytes() for table in self.tables.values())))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()  # arrays come writable out of a pickle

    def _freeze(self) -> None:
        for array in (self.noise, *self.tables.values()):
            array.setflags(write=False)


def _refuse_many(name: str, parents: tuple[str, ...]) -> None:
    if len(parents) > MOST_PARENTS:
        raise ModelError(
            f"a table has 2^(number of parents) entries, and the most parents are {MOST_PARENTS}, but {name!r} has "
            f"{len(parents)}. Use a BinaryGLM.",
            node=name,
        )


def _table(name: str, given: TableLike, parents: tuple[str, ...]) -> Array:
    """A node's table, checked."""
    _refuse_many(name, parents)
    shape = (2,) * len(parents)
    if isinstance(given, Mapping):
        given = _from_patterns(name, given, parents)
    try:
        entries = np.asarray(given)
    except ValueError:  # lists of different lengths
        entries = np.asarray(None)
    if entries.shape != shape or entries.dtype.kind not in "iuf":
        what = f"one axis of length 2 for each of {', '.join(parents)}" if parents else "a number"
        came = f"shape {entries.shape}" if entries.dtype.kind in "iuf" else f"{given!r:.60}"
        raise ModelError(f"the table of {name!r} has shape {shape} ({what}), but got {came}.", node=name)
    table = entries.astype(np.float64) + 0.0  # a copy; -0.0 becomes 0.0, so that equal models hash equally
    bad = ~((table >= 0.0) & (table <= 1.0))
    if bad.any():
        where = np.argwhere(bad)[0].tolist()
        at = " with " + ", ".join(f"{p}={x}" for p, x in zip(parents, where, strict=True)) if parents else ""
        raise ModelError(
            f"the table of {name!r} holds probabilities from 0 to 1, but{at} it is {table[tuple(where)]:g}.", node=name
        )
    return table


def _from_patterns(name: str, given: Mapping[Any, float], parents: tuple[str, ...]) -> Array:
    """An array from {(0, 1): 0.3, ...}; with one parent, {0: 0.1, 1: 0.3} is as good."""
    table = np.full((2,) * len(parents), math.nan)
    for key, value in given.items():
        pattern = tuple(key) if isinstance(key, Iterable) else (key,)
        if len(pattern) != len(parents) or any(x not in (0, 1) for x in pattern):
            raise ModelError(
                f"the table of {name!r} maps values of ({', '.join(parents)}), 0 or 1 each, but got {key!r}.", node=name
            )
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise ModelError(f"the table of {name!r} holds numbers, but at {key!r} got {value!r}.", node=name)
        table[tuple(map(int, pattern))] = value
    absent = [p for p in product((0, 1), repeat=len(parents)) if p not in given and math.isnan(table[p])]
    if absent:
        raise ModelError(
            f"the table of {name!r} has an entry for every pattern of ({', '.join(parents)}), but {absent[0]} has "
            "none. Add it.",
            node=name,
        )
    return table
