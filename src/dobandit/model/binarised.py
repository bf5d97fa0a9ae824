"""From variables with many states to variables of 0 and 1, without losing what the states do.

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

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import ModelError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import Binarise, refuse_unknown, states_of_one
from dobandit.graph.hiding import changed
from dobandit.model.tables import MOST_PARENTS, TableModel

if TYPE_CHECKING:
    from dobandit.model.network import Network

Array = NDArray[np.float64]


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


def binary_model(network: Network, graph: CausalGraph, binarise: Binarise) -> TableModel:
    """The model on `graph`, the structure of the network with its roles."""
    refuse_unknown(binarise, network.states)
    codes = {name: _code(network, graph, name, binarise) for name in graph.nodes}
    tables, parents, parts = {}, {}, {}
    for name in graph.nodes:
        for bit, given, table in _bits(network, name, codes):
            tables[bit], parents[bit] = table, given
            if bit != name:
                parts[bit] = name
    edges = [(parent, bit) for bit in tables for parent in parents[bit]]
    made = changed(graph, nodes=tables, edges=edges, latent=[*graph.latent, *parts], bias=tables)
    ordered = {
        bit: table.transpose([parents[bit].index(parent) for parent in made.parents(bit)])
        for bit, table in tables.items()
    }
    ones = {
        name: tuple(network.states[name][i] for i in sorted(i for alike in codes[name].classes[1] for i in alike))
        for name in graph.observed
    }
    return TableModel(made, ordered, parts=parts, ones=ones)


def _code(network: Network, graph: CausalGraph, name: str, binarise: Binarise) -> Code:
    states = network.states[name]
    if name in graph.latent and name not in binarise:
        ones: tuple[str, ...] = states[1:]  # nobody looks at it
    else:
        ones = states_of_one(name, states, binarise)
    columns = [
        np.moveaxis(network.tables[child], network.parents[child].index(name), 0).reshape(len(states), -1)
        for child in graph.children(name)
    ]
    effects = np.hstack(columns) if columns else np.zeros((len(states), 0))
    classes: tuple[list[list[int]], list[list[int]]] = [], []
    for i, state in enumerate(states):
        group = classes[state in ones]
        alike = next((members for members in group if np.array_equal(effects[members[0]], effects[i])), None)
        if alike is None:
            group.append([i])
        else:
            alike.append(i)
    more = (max(map(len, classes)) - 1).bit_length()
    hidden = [_unused(f"{name}_state{j}", network) for j in range(1, more + 1)]
    return Code((name, *hidden), classes)


def _unused(name: str, network: Network) -> str:
    while name in network.states:
        name += "_"
    return name


def _bits(network: Network, name: str, codes: dict[str, Code]) -> list[tuple[str, tuple[str, ...], Array]]:
    """(bit, its parents, P(bit = 1 | parents)) of each bit of a variable."""
    code, above = codes[name], [codes[parent] for parent in network.parents[name]]
    given = tuple(bit for parent in above for bit in parent.bits)
    if len(given) + len(code.bits) - 1 > MOST_PARENTS:
        raise _too_many_bits(network, name, codes)
    rows = _by_class(network.tables[name], code, above)
    usual = rows.reshape(-1, rows.shape[-1]).sum(axis=0)
    sizes = np.array([float(len(alike)) for group in code.classes for alike in group])
    found = []
    for j, bit in enumerate(code.bits):
        shape = rows.shape[:-1] + (2,) * j
        chance = np.empty(shape)
        for so_far in np.ndindex((2,) * j):
            one, either = _matching(code, (*so_far, 1)), _matching(code, so_far)
            mass, of = rows[..., one].sum(axis=-1), rows[..., either].sum(axis=-1)
            spare = _share(usual if usual[either].sum() > 0 else sizes, one, either)
            chance[(..., *so_far)] = np.divide(mass, of, out=np.full(mass.shape, spare), where=of > 0)
        found.append((bit, (*given, *code.bits[:j]), np.clip(chance, 0.0, 1.0)))
    return found


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
        "read_graph(..., structure_only=True), `dobandit check --structure-only`.",
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


def _matching(code: Code, so_far: Sequence[int]) -> NDArray[np.bool_]:
    """Which classes begin with these bits."""
    sizes, width = [len(group) for group in code.classes], len(code.bits) - 1
    words = [
        (group, *(which >> (width - 1 - i) & 1 for i in range(width)))
        for group in (0, 1)
        for which in range(sizes[group])
    ]
    return np.array([word[: len(so_far)] == tuple(so_far) for word in words])


def _share(weights: Array, one: NDArray[np.bool_], either: NDArray[np.bool_]) -> float:
    """What to take where the causes rule the group out: shares of all rows, or of the states where no row has any."""
    whole = float(weights[either].sum())
    return float(weights[one].sum()) / whole if whole > 0 else 0.0
