"""BIF (Bayesian network interchange format), its structure. It holds everything that a CausalGraph holds.

    network graph { property target = "buy" ; }
    variable mood { type discrete [ 2 ] { 0, 1 } ; property latent = true ; }
    variable buy { type discrete [ 2 ] { 0, 1 } ; }
    probability ( mood ) { }
    probability ( buy | mood ) { }

Tables are passed over when a graph is read (`NetworkText.tables` reads them). A graph is written without any.

    probability ( buy | ad ) { (no) 0.9, 0.1; (yes) 0.6, 0.4; }      a row per pattern of the parents
    probability ( buy | ad ) { table 0.9, 0.6, 0.1, 0.4; }           all at once, the last parent changing fastest
    probability ( buy | ad ) { default 0.9, 0.1; (yes) 0.6, 0.4; }   for all patterns that have no row
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.errors import closest
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.binarise import too_few_states
from dobandit.graph.formats.draft import GraphDraft, marks
from dobandit.graph.formats.lexer import QUOTED, Tokens, quote, take_name, token_pattern, unquote
from dobandit.graph.roles import ROLES

_TOKENS = token_pattern(
    skip=r"\s++|//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/",
    word=r'(?!/\*)[^\s"(){}\[\],;|]++',
    quoted=QUOTED,
    sign=r"[(){}\[\],;|]",
)
_ADVICE = "Put names with spaces or brackets in double quotes."
_OPEN, _CLOSE = "({[", ")}]"
Array = NDArray[np.float64]
MOST_ENTRIES = 1 << 24  # of all tables together: 128 MB
_BARE = re.compile(r"[A-Za-z0-9_.<>=+-]+")


def draft_of(text: str) -> GraphDraft:
    """Read a network's variables and who is whose parent."""
    return NetworkText(text).draft


class NetworkText:
    """What a BIF text says, read block by block: the graph's draft, and by variable its states and its parents in the
    order of the table. Tables are passed over, and read by `tables` when all states are known."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens = Tokens(text, _TOKENS, _ADVICE)
        self.draft = GraphDraft(lambda place, message: tokens.error(message, place))
        self.named_at: dict[str, int] = {}  # where probabilities name variables
        self.parents: dict[str, list[str]] = {}  # in the order of the file, which is that of tables
        self.table_at: dict[str, int] = {}
        self.entries = 0
        blocks = {"network": self._network, "variable": self._variable, "probability": self._probability}
        while tokens.kind != "end":
            block = blocks.get(tokens.keyword)
            if block is None:
                raise tokens.unexpected("'network', 'variable' or 'probability'")
            tokens.advance()
            block()
        for name, place in self.named_at.items():
            if name not in self.draft.states:
                hint = closest(name, self.draft.states)
                raise tokens.error(f"a probability names variables, but {name[:40]!r} is none.{hint}", place)

    def _network(self) -> None:
        if self.tokens.kind != "{":
            take_name(self.tokens)
        self.tokens.take("{", "'{'")
        while self.tokens.kind != "}":
            place = self.tokens.at
            said = self._property()
            if said and said[0] == "target":
                self.draft.aim(said[1], place)
        self.tokens.advance()

    def _variable(self) -> None:
        tokens, at = self.tokens, self.tokens.at
        name = take_name(tokens)
        if name in self.draft.states:
            raise tokens.error(f"a variable is declared once, but {name[:40]!r} is declared before.", at)
        self.draft.node(name, at)
        states: tuple[str, ...] = ()
        tokens.take("{", "'{'")
        while tokens.kind != "}":
            if tokens.kind == "word" and tokens.value == "type":
                states = self._states()
            else:
                self._mark(name)
        tokens.advance()
        if len(states) < 2:
            raise tokens.error(too_few_states(name, states), at)
        if len(set(states)) < len(states):
            raise tokens.error(f"the states of a variable differ, but {name[:40]!r} lists one twice.", at)
        self.draft.states[name] = states, at

    def _states(self) -> tuple[str, ...]:
        """The names in `type discrete [ 2 ] { 0, 1 };`."""
        tokens = self.tokens
        tokens.advance()
        if tokens.kind != "word" or tokens.value != "discrete":
            raise tokens.unexpected("'discrete' (a variable has states)")
        tokens.advance()
        if tokens.kind == "[":
            self._skip_brackets()
        tokens.take("{", "'{' before the states")
        found = []
        while tokens.kind != "}":
            found.append(take_name(tokens))
            tokens.skip(",")
        tokens.advance()
        tokens.take(";", "';'")
        return tuple(found)

    def _mark(self, name: str) -> None:
        place = self.tokens.at
        said = self._property()
        if said and said[0] in ROLES:
            self.draft.mark(said[0], name, said[1], place)

    def _property(self) -> tuple[str, str] | None:
        """`property key = value ;` or `property key ;`; None for another form, which is somebody else's."""
        tokens = self.tokens
        if tokens.kind != "word" or tokens.value != "property":
            raise tokens.unexpected("'property' or '}'")
        tokens.advance()
        parts: list[str] = []
        while tokens.kind != ";":
            if tokens.kind == "end":
                raise tokens.unexpected("';'")
            if len(parts) < 4:
                parts.append(unquote(tokens) if tokens.kind == "quoted" and len(parts) == 2 else tokens.value)
            tokens.advance()
        tokens.advance()
        if len(parts) == 1:
            return parts[0], "true"
        return (parts[0], parts[2]) if len(parts) == 3 and parts[1] == "=" else None

    def _probability(self) -> None:
        tokens = self.tokens
        tokens.take("(", "'('")
        at = tokens.at
        child = take_name(tokens)
        if child in self.parents:
            raise tokens.error(f"a variable has one probability, but {child[:40]!r} has one before.", at)
        self.named_at.setdefault(child, at)
        self.parents[child] = []
        tokens.skip("|")
        while tokens.kind != ")":
            place = tokens.at
            parent = take_name(tokens)
            self.parents[child].append(parent)
            self.named_at.setdefault(parent, place)
            self.draft.edge(parent, child, place)
            tokens.skip(",")
        tokens.advance()
        if tokens.kind != "{":
            raise tokens.unexpected("'{'")
        self.table_at[child] = tokens.at
        self._skip_brackets()

    def _skip_brackets(self) -> None:
        """Pass over a table, whose brackets must match."""
        tokens = self.tokens
        waiting: list[str] = []
        while True:
            if tokens.kind in _OPEN:
                waiting.append(_CLOSE[_OPEN.index(tokens.kind)])
                if len(waiting) > limits.MAX_DEPTH:
                    raise tokens.error(f"brackets nest at most {limits.MAX_DEPTH} deep.")
            elif (tokens.kind in _CLOSE and tokens.kind != waiting.pop()) or tokens.kind == "end":
                raise tokens.unexpected("a bracket that closes the last open one")
            tokens.advance()
            if not waiting:
                return

    # -- tables ----------------------------------------------------------------------------------------------

    @property
    def states(self) -> dict[str, tuple[str, ...]]:
        """By variable, the names of its states."""
        return {name: states for name, (states, _) in self.draft.states.items()}

    @cached_property
    def tables(self) -> dict[str, Array]:
        """The tables that the text has, unchecked: an axis per parent, the last one for the variable's own states."""
        found = {}
        for child, start in self.table_at.items():
            self.tokens.jump(start)
            self.tokens.advance()  # the brace
            if self.tokens.kind != "}":
                found[child] = self._table(child)
        return found

    def _table(self, child: str) -> Array:
        tokens, states = self.tokens, self.draft.states
        parents = self.parents[child]
        shape = tuple(len(states[name][0]) for name in (*parents, child))
        self.entries += math.prod(shape)
        if self.entries > MOST_ENTRIES:
            raise tokens.error(f"tables have at most {MOST_ENTRIES:,} entries in all. Take the structure alone.")
        numbers = [{state: i for i, state in enumerate(states[name][0])} for name in parents]
        table, default = np.full(shape, math.nan), None
        while tokens.kind != "}":
            if tokens.kind == "(":
                self._row(child, numbers, table)
            elif tokens.keyword in ("table", "default"):
                whole = tokens.keyword == "table"
                tokens.advance()
                values = self._values(child, table.size if whole else shape[-1])
                if whole:  # the variable's own states change slowest
                    table[...] = np.moveaxis(values.reshape(shape[-1], *shape[:-1]), 0, -1)
                else:
                    default = values
            elif tokens.keyword == "property":
                self._property()
            else:
                raise tokens.unexpected("'(', 'table', 'default', 'property' or '}'")
        unset = np.isnan(table[..., 0])
        if default is not None:
            table[unset] = default
        elif unset.any():
            missing = [states[name][0][i] for name, i in zip(parents, np.argwhere(unset)[0].tolist(), strict=True)]
            raise tokens.error(f"a table has a row for every pattern, but {child[:40]!r} has none for {missing}.")
        return table

    def _row(self, child: str, numbers: list[dict[str, int]], table: Array) -> None:
        """A row `(state, state) number, ..., number;`."""
        tokens, at, shown, given = self.tokens, self.tokens.at, child[:40], []
        tokens.advance()
        while tokens.kind != ")":
            given.append(take_name(tokens))
            tokens.skip(",")
        tokens.advance()
        if len(given) != len(numbers):
            raise tokens.error(f"a row of {shown!r} names {len(numbers)} states, but this one {len(given)}.", at)
        for state, known in zip(given, numbers, strict=True):
            if state not in known:
                raise tokens.error(f"a row names states, but {state[:40]!r} is none.{closest(state, known)}", at)
        where = tuple(known[state] for state, known in zip(given, numbers, strict=True))
        if not math.isnan(table[(*where, 0)]):
            raise tokens.error(f"each row is given once, but {given} of {shown!r} is given before.", at)
        table[where] = self._values(child, table.shape[-1])

    def _values(self, child: str, count: int) -> Array:
        tokens, at, found = self.tokens, self.tokens.at, []
        while tokens.kind != ";":
            try:
                found.append(float(tokens.value if tokens.kind == "word" else "?"))
            except ValueError:
                raise tokens.unexpected("a number or ';'") from None
            tokens.advance()
            tokens.skip(",")
        tokens.advance()
        if len(found) != count:
            raise tokens.error(f"here {child[:40]!r} has {count} numbers, but {len(found)} are given.", at)
        return np.array(found)


def text_of(graph: CausalGraph) -> str:
    """Print the variables and their parents, without tables."""
    parents: dict[str, list[str]] = {name: [] for name in graph.all_nodes}
    for cause, effect in graph.all_edges:
        parents[effect].append(cause)
    return network_text(dict.fromkeys(parents, ("0", "1")), parents, {}, graph.target, marks(graph))


def network_text(
    states: Mapping[str, Sequence[str]],
    parents: Mapping[str, Sequence[str]],
    tables: Mapping[str, Array],
    target: str | None = None,
    roles: Mapping[str, Mapping[str, bool]] | None = None,
) -> str:
    """Variables with their states, parents, tables and roles as BIF, numbers in full: reading it gives the same."""
    aim = "" if target is None else f"  property target = {quote(target)} ;\n"
    lines = [f"network graph {{\n{aim}}}"]
    for name, own in states.items():
        said = "".join(f" property {role} = {str(yes).lower()} ;" for role, yes in (roles or {}).get(name, {}).items())
        lines.append(f"variable {_word(name)} {{ type discrete [ {len(own)} ] {{ {_words(own)} }} ;{said} }}")
    for name in states:
        given = f" | {_words(parents[name])}" if parents[name] else ""
        rows = []
        if name in tables and not given:
            rows = [f"  table {_numbers(tables[name])};"]
        elif name in tables:
            for where in np.ndindex(tables[name].shape[:-1]):
                pattern = [states[parent][i] for parent, i in zip(parents[name], where, strict=True)]
                rows.append(f"  ({_words(pattern)}) {_numbers(tables[name][where])};")
        lines += [f"probability ( {_word(name)}{given} ) {{", *rows, "}"]
    return "\n".join(lines) + "\n"


def _word(name: str) -> str:
    return name if _BARE.fullmatch(name) else quote(name)


def _words(names: Iterable[str]) -> str:
    return ", ".join(map(_word, names))


def _numbers(row: Array) -> str:
    return ", ".join(map(repr, row.tolist()))
