"""Network: a Bayesian network whose variables have named states, as BIF files and pgmpy have them.

It is what comes in. What dobandit computes with is `network.binary(target=...)`, a TableModel of variables of 0 and 1,
and `network.graph(target=...)`, its structure.

X, with the states that count as 1 in one group and the others in another, becomes the variable X of 0 and 1: which
group it is in. States of a group that no effect of X tells apart become one. Where some are left, hidden variables of
0 and 1 (X_state1, ...) hold which of them it is, given the group and the causes of X: their joint distribution is
that of the network, for every intervention on other variables.

Setting X to 1 puts it into the group of 1, and which state of the group it takes follows the network's own
probabilities given the causes of X and the group (where the causes rule the group out, the group's shares in the sum
of all rows of the table). A group of one state has no such choice: setting X is then setting that state, exactly
do().
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import GraphError, ModelError, closest
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import plain_text
from dobandit.graph.formats.bif import NetworkText, network_text
from dobandit.graph.formats.binarise import Binarise, states_of_one
from dobandit.graph.formats.draft import GraphDraft, build
from dobandit.graph.roles import Roles
from dobandit.model.table_model import MOST_PARENTS, TableModel
from dobandit.text_files import in_file, read_text, write_atomically
from dobandit.texts import keyword

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
        return cls.of_text(NetworkText(plain_text(text)))

    @classmethod
    def of_text(cls, said: NetworkText) -> Network:
        """A network from what a BIF text says.

        said  the text, read
        """
        try:
            return cls(said.states, said.parents, said.tables, draft=said.draft)
        except ModelError as error:
            place = said.draft.states.get(error.node or "", ((), 0))[1]
            raise said.draft.refuse(place, error.marked) from None

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
        return network_text(self.states, self.parents, self.tables)

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

    def graph(self, target: str | None = None, **roles: Unpack[Roles]) -> CausalGraph:
        """The structure: what causes what, however many states there are.

        target  the variable to make likely; default: what the network's file says
        roles   latent, controllable, bias and context, as in `CausalGraph`

        >>> states = {"ad": ("no", "yes"), "buy": ("no", "once", "often")}
        >>> tables = {"ad": [0.5, 0.5], "buy": [[0.8, 0.1, 0.1], [0.6, 0.2, 0.2]]}
        >>> Network(states, {"buy": ("ad",)}, tables).graph(target="buy").edges
        (('ad', 'buy'),)
        """
        return build(self._draft or self._new_draft(), target, **roles)

    def binary(
        self,
        target: str | None = None,
        *,
        binarise: Binarise | None = None,
        binarise_rest: str | None = None,
        **roles: Unpack[Roles],
    ) -> TableModel:
        """The model of variables of 0 and 1. The module says what is exact.

        target         the variable to make likely; default: what the network's file says
        binarise       by variable, the states that count as 1 where there are more than two, or where the default
                       (`states_of_one`) is not what is meant
        binarise_rest  "last" or "first": the state that does in all other variables of more than two states
        roles          latent, controllable and context, as in `CausalGraph`
        """
        graph = self.graph(target, **roles)
        ones = states_of_one(self.states, binarise, binarise_rest, {*graph.latent, *graph.effects})
        return _binary_model(self, graph, ones)

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


# -- from many states to variables of 0 and 1 ------------------------------------------------------------------------


class Code(NamedTuple):
    """How a variable is written in bits: the first says the group, the others which class of states in it."""

    bits: tuple[str, ...]  # names; the first is the variable's own
    classes: tuple[list[list[int]], list[list[int]]]  # by group (0, 1): states that no effect tells apart, together

    def states_of(self, pattern: Sequence[int]) -> list[int]:
        """The states of a pattern; one that is never reached stands for the last class."""
        group, which = self.classes[pattern[0]], 0
        for bit in pattern[1:]:
            which = 2 * which + bit
        return group[min(which, len(group) - 1)]


def _binary_model(network: Network, graph: CausalGraph, ones: Mapping[str, tuple[str, ...]]) -> TableModel:
    """The model on `graph`, the structure of the network with its roles. ones: by variable, the states of 1"""
    codes = {name: _code(network, graph, name, ones) for name in graph.nodes}
    tables, parents, parts = {}, {}, {}
    for name in graph.nodes:
        for bit, given, table in _bits(network, name, codes):
            tables[bit], parents[bit] = table, given
            if bit != name:
                parts[bit] = name
    edges = [(parent, bit) for bit in tables for parent in parents[bit]]
    made = graph.changed(nodes=tables, edges=edges, latent=[*graph.latent, *parts], bias=tables)
    ordered = {
        bit: table.transpose([parents[bit].index(parent) for parent in made.parents(bit)])
        for bit, table in tables.items()
    }
    told = {name: ones[name] for name in graph.observed}
    return TableModel(made, ordered, parts=parts, ones=told)


def _code(network: Network, graph: CausalGraph, name: str, ones: Mapping[str, tuple[str, ...]]) -> Code:
    states = network.states[name]
    one = ones.get(name, states[1:])  # nobody looks at a hidden variable
    columns = [
        np.moveaxis(network.tables[child], network.parents[child].index(name), 0).reshape(len(states), -1)
        for child in graph.children(name)
    ]
    effects = np.hstack(columns) if columns else np.zeros((len(states), 0))
    classes: tuple[list[list[int]], list[list[int]]] = [], []
    for i, state in enumerate(states):
        group = classes[state in one]
        alike = next((members for members in group if np.array_equal(effects[members[0]], effects[i])), None)
        if alike is None:
            group.append([i])
        else:
            alike.append(i)
    more = (max(map(len, classes)) - 1).bit_length()
    hidden = [f"{name}_state{j}" for j in range(1, more + 1)]
    while {*hidden} & network.states.keys():
        hidden = [f"{bit}_" if bit in network.states else bit for bit in hidden]
    return Code((name, *hidden), classes)


def _bits(network: Network, name: str, codes: dict[str, Code]) -> list[tuple[str, tuple[str, ...], Array]]:
    """(bit, its parents, P(bit = 1 | parents)) of each bit of a variable."""
    code, above = codes[name], [codes[parent] for parent in network.parents[name]]
    given = tuple(bit for parent in above for bit in parent.bits)
    if len(given) + len(code.bits) - 1 > MOST_PARENTS:
        raise _too_many_bits(network, name, codes)
    rows = _by_class(network.tables[name], code, above)
    usual = rows.reshape(-1, rows.shape[-1]).sum(axis=0)
    sizes = np.array([float(len(alike)) for group in code.classes for alike in group])
    of_words, usual_of_words, sizes_of_words = (_by_word(code, weights) for weights in (rows, usual, sizes))
    found = []
    for j, bit in enumerate(code.bits):
        later = tuple(range(-(len(code.bits) - 1 - j), 0))
        mass, usual_mass, size = (weights.sum(axis=later) for weights in (of_words, usual_of_words, sizes_of_words))
        # Where the causes rule these bits out: their share of all rows, or of the states where no row has any.
        spare = _shares(usual_mass, _shares(size, np.zeros(size.shape[:-1])))
        found.append((bit, (*given, *code.bits[:j]), np.clip(_shares(mass, spare), 0.0, 1.0)))
    return found


def _by_word(code: Code, weights: Array) -> Array:
    """Weights of the classes (the last axis) on an axis of length 2 per bit; 0 where no class has these bits."""
    width = len(code.bits) - 1
    spread = np.zeros((*weights.shape[:-1], 2, 1 << width))
    first = len(code.classes[0])
    spread[..., 0, :first], spread[..., 1, : weights.shape[-1] - first] = weights[..., :first], weights[..., first:]
    return spread.reshape(*weights.shape[:-1], *(2,) * (width + 1))


def _shares(mass: Array, otherwise: Array) -> Array:
    """How much of the mass the last bit's 1 has; `otherwise` where there is none."""
    whole = mass.sum(axis=-1)
    shares: Array = np.divide(mass[..., 1], whole, out=np.broadcast_to(otherwise, whole.shape).copy(), where=whole > 0)
    return shares


def _too_many_bits(network: Network, name: str, codes: dict[str, Code]) -> ModelError:
    """Which states make a table too large, and what can be done about it."""
    wide = sorted(network.parents[name], key=lambda parent: -len(codes[parent].bits))
    told = [f"{one!r} ({len(network.states[one])} states, {len(codes[one].bits)})" for one in wide]
    own = len(codes[name].bits) - 1
    needed = sum(len(codes[parent].bits) for parent in wide) + own
    beside = f" and {own} for the states of {name!r} itself" if own else ""
    return ModelError(
        f"which state a variable is in is written in variables of 0 and 1, of which a table has at most {MOST_PARENTS} "
        f"as parents, but {name!r} needs {needed}: for its causes {', '.join(told)}{beside}. Merge states of "
        f"{(wide[0] if wide else name)!r} in the network, or, where the graph is enough, take it alone: "
        f"{keyword('structure_only', True)} of read_graph, or of `dobandit check`.",
        node=name,
    )


def _by_class(table: Array, code: Code, above: list[Code]) -> Array:
    """P(class | parents): an axis of length 2 per bit of the parents, and the last one for the classes, those of group
    0 first."""
    for axis, parent in enumerate(reversed(above)):  # from the last parent on, so that earlier axes stay in place
        at = len(above) - 1 - axis
        picked = [parent.states_of(pattern)[0] for pattern in np.ndindex((2,) * len(parent.bits))]
        table = np.take(table, picked, axis=at)
        table = table.reshape(*table.shape[:at], *(2,) * len(parent.bits), *table.shape[at + 1 :])
    members = [*code.classes[0], *code.classes[1]]
    return np.stack([table[..., states].sum(axis=-1) for states in members], axis=-1)
