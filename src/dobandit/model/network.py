"""Network: a Bayesian network whose variables have named states, as BIF files and pgmpy have them.

It is what comes in. What dobandit computes with is `network.binary(target=...)`, a TableModel of variables of 0 and 1
(`binarised` says what becomes of variables with more than two states), and `network.graph(target=...)`, its structure.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import GraphError, ModelError, closest
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import plain_text
from dobandit.graph.formats.bif import NetworkText, network_of, tables_text
from dobandit.graph.formats.draft import GraphDraft, build
from dobandit.graph.formats.states import Binarise
from dobandit.model.tables import TableModel
from dobandit.text_files import in_file, read_text, write_atomically

Array = NDArray[np.float64]
_EXACT, _ROUNDED = 1e-12, 1e-3  # rows that add up to 1 but for the digits of a file are made to


class Network:
    """Variables with their states, parents and tables.

    states   by variable, the names of its states
    parents  by variable, its parents in the order of its table's axes
    draft    what a file says besides, such as its target
    tables   by variable, P(state | parents): an axis per parent, and the last one for its own states

    >>> network = Network({"ad": ("no", "yes"), "buy": ("no", "yes")}, {"buy": ("ad",)},
    ...                   {"ad": [0.5, 0.5], "buy": [[0.9, 0.1], [0.4, 0.6]]})
    >>> network.binary(target="buy").probability("buy", {"ad": 1})
    0.6
    """

    states: dict[str, tuple[str, ...]]
    parents: dict[str, tuple[str, ...]]
    tables: dict[str, Array]  # read-only

    def __init__(
        self,
        states: Mapping[str, Sequence[str]],
        parents: Mapping[str, Sequence[str]],
        tables: Mapping[str, Any],
        *,
        draft: GraphDraft | None = None,
    ) -> None:
        self.states = {name: tuple(own) for name, own in states.items()}
        self.parents = {name: tuple(parents.get(name, ())) for name in self.states}
        missing = [name for name in self.states if name not in tables]
        if missing:
            raise ModelError(
                f"every variable of a network has a table, but {missing[0]!r} has none. Add it, or read the file as a "
                "graph: read_graph, or --structure-only.",
                node=missing[0],
            )
        for name, given in self.parents.items():
            strange = [parent for parent in given if parent not in self.states]
            if strange:
                hint = closest(strange[0], self.states)
                raise ModelError(f"the parents of {name!r} are variables, but {strange[0]!r} is none.{hint}", node=name)
        self.tables = {name: self._checked(name, tables[name]) for name in self.states}
        self._draft = draft

    def _checked(self, name: str, given: Any) -> Array:
        shape = tuple(len(self.states[other]) for other in (*self.parents[name], name))
        table = np.array(given, dtype=np.float64)
        if table.shape != shape:
            raise ModelError(f"the table of {name!r} has shape {shape}, but got {table.shape}.", node=name)
        sums = table.sum(axis=-1)
        wrong = ~((table >= 0).all(axis=-1) & (np.abs(sums - 1.0) <= _ROUNDED))
        if wrong.any():
            where = tuple(np.argwhere(wrong)[0].tolist())
            at = ", ".join(f"{p}={self.states[p][i]}" for p, i in zip(self.parents[name], where, strict=True))
            raise ModelError(
                f"the rows of a table are probabilities that add up to 1, but that of {name!r}"
                f"{' with ' + at if at else ''} is {table[where].tolist()!r:.80}.",
                node=name,
            )
        rounded = np.abs(sums - 1.0) > _EXACT
        table[rounded] /= sums[rounded][..., None]
        table.setflags(write=False)
        return table

    # -- in and out -------------------------------------------------------------------------------------------------

    @classmethod
    def from_bif(cls, text: str) -> Network:
        """A network from the text of a BIF file.

        text  what stands in it; `from_file` reads a file

        >>> text = '''network n {}
        ... variable buy { type discrete [ 2 ] { no, yes }; }
        ... probability ( buy ) { table 0.9, 0.1; }'''
        >>> Network.from_bif(text).states
        {'buy': ('no', 'yes')}
        """
        return cls.of_text(network_of(plain_text(text)))

    @classmethod
    def of_text(cls, said: NetworkText) -> Network:
        """A network from what a BIF text says.

        said  the text, read
        """
        try:
            return cls(said.states, said.parents, said.tables, draft=said.draft)
        except ModelError as error:
            place = said.draft.states.get(error.node or "", ((), 0))[1]
            raise said.draft.refuse(place, str(error)) from None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Network:
        """A network from a BIF file; `save` has an example.

        path  the file (.bif, .bif.gz)
        """
        with in_file(path):
            return cls.from_bif(read_text(path))

    @classmethod
    def from_pgmpy(cls, network: Any) -> Network:
        """A network from pgmpy.

        network  a `DiscreteBayesianNetwork`, or anything that offers what it does: `nodes()` and `get_cpds()`, each
                 with `variable`, `variables` (itself and its parents), `values` and `state_names`

        >>> from types import SimpleNamespace
        >>> states = {"buy": ["no", "yes"]}
        >>> cpd = SimpleNamespace(variable="buy", variables=["buy"], values=[0.9, 0.1], state_names=states)
        >>> Network.from_pgmpy(SimpleNamespace(nodes=lambda: ["buy"], get_cpds=lambda: [cpd])).states
        {'buy': ('no', 'yes')}
        """
        states: dict[str, tuple[str, ...]] = {}
        parents, tables = {}, {}
        try:
            for cpd in network.get_cpds():
                name = _text(cpd.variable)
                states[name] = tuple(str(state) for state in cpd.state_names[cpd.variable])
                parents[name] = tuple(_text(other) for other in list(cpd.variables)[1:])
                tables[name] = np.moveaxis(np.asarray(cpd.values, dtype=np.float64), 0, -1)
            missing = [_text(name) for name in network.nodes() if _text(name) not in tables]
        except (AttributeError, KeyError, TypeError) as error:
            raise ModelError(
                f"a network of pgmpy has nodes and CPDs with tables, but got {type(network).__name__} ({error})."
            ) from None
        if missing:
            raise ModelError(f"every variable needs a CPD, but {missing[0]!r} has none. Add it: add_cpds.")
        made = cls(states, parents, tables)
        made._draft = made._new_draft()
        for name in sorted(map(str, getattr(network, "latents", None) or ())):
            made._draft.assign("latent", [(name, 0)])
        return made

    def to_bif(self) -> str:
        """The network as BIF, numbers in full; the roles of variables (target, latent, ...) are not part of it.

        >>> network = Network({"buy": ("no", "yes")}, {}, {"buy": [0.9, 0.1]})
        >>> Network.from_bif(network.to_bif()) == network
        True
        """
        return tables_text(self.states, self.parents, self.tables)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a BIF file.

        path  the file, compressed where it ends in .gz

        >>> import tempfile
        >>> network = Network({"buy": ("no", "yes")}, {}, {"buy": [0.9, 0.1]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     network.save(f"{folder}/network.bif")
        ...     Network.from_file(f"{folder}/network.bif") == network
        True
        """
        write_atomically(path, self.to_bif())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Network)
            and self.states == other.states
            and self.parents == other.parents
            and all(np.array_equal(table, other.tables[name]) for name, table in self.tables.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Network({len(self.states)} variables)"

    # -- what dobandit computes with --------------------------------------------------------------------------------

    def graph(
        self,
        target: str | None = None,
        latent: Iterable[str] = (),
        controllable: Iterable[str] | None = None,
        context: Iterable[str] = (),
    ) -> CausalGraph:
        """The structure: what causes what, however many states there are.

        target                         the variable to make likely; default: what the network's file says
        latent, controllable, context  as in `CausalGraph`

        >>> states = {"ad": ("no", "yes"), "buy": ("no", "once", "often")}
        >>> tables = {"ad": [0.5, 0.5], "buy": [[0.8, 0.1, 0.1], [0.6, 0.2, 0.2]]}
        >>> Network(states, {"buy": ("ad",)}, tables).graph(target="buy").edges
        (('ad', 'buy'),)
        """
        return build(self._draft or self._new_draft(), target, latent, controllable, None, context)

    def binary(
        self,
        target: str | None = None,
        *,
        binarise: Binarise | None = None,
        latent: Iterable[str] = (),
        controllable: Iterable[str] | None = None,
        context: Iterable[str] = (),
    ) -> TableModel:
        """The model of variables of 0 and 1. See `binarised` for what is exact.

        target                         the variable to make likely; default: what the network's file says
        binarise                       by variable, the states that count as 1 where there are more than two, or where
                                       the default (`states_of_one`) is not what is meant
        latent, controllable, context  as in `CausalGraph`
        """
        from dobandit.model.binarised import binary_model

        return binary_model(self, self.graph(target, latent, controllable, context), binarise or {})

    def _new_draft(self) -> GraphDraft:
        draft = GraphDraft(lambda _, message: GraphError(message))
        for name in self.states:
            draft.node(name, 0)
        for name, given in self.parents.items():
            for parent in given:
                draft.edge(parent, name, 0)
        return draft


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise ModelError(f"names are strings, but the variable {name!r} is of type {type(name).__name__}. Rename it.")
    return name
