"""The tables of a BIF network: P(variable | parents) for variables with any number of states.

probability ( buy | ad ) { (no) 0.9, 0.1; (yes) 0.6, 0.4; }      a row per pattern of the parents
probability ( buy | ad ) { table 0.9, 0.6, 0.1, 0.4; }           all at once, the last parent changing fastest
probability ( buy | ad ) { default 0.9, 0.1; (yes) 0.6, 0.4; }   for all patterns that have no row
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import closest
from dobandit.graph.formats.bif import NetworkReader, tokens_of
from dobandit.graph.formats.draft import GraphDraft
from dobandit.graph.formats.lexer import quote, take_name

Array = NDArray[np.float64]
MOST_ENTRIES = 1 << 24  # of all tables together: 128 MB
# A row in its commonest form; possessive, so that no text makes the matcher walk back.
_ROW = re.compile(r'\s*+\(([^(){}";|/\[\]]*+)\)\s*+([-+0-9.eE,\s]++);')
_BARE = re.compile(r"[A-Za-z0-9_.<>=+-]+")


class NetworkText(NamedTuple):
    """What a BIF text says: the graph's draft, and by variable its states, its parents in the order of the table, and
    the table (one axis per parent, the last one for the variable's own states); no table where the text has none."""

    draft: GraphDraft
    states: dict[str, tuple[str, ...]]
    parents: dict[str, tuple[str, ...]]
    tables: dict[str, Array]


def network_of(text: str) -> NetworkText:
    """Read a network with its tables; rows that do not add up to 1 are left to the caller."""
    reader = _TableReader(text)
    reader.read()
    reader.finish()
    states = {name: states for name, (states, _) in reader.draft.states.items()}
    parents = {name: tuple(reader.parents.get(name, ())) for name in states}
    return NetworkText(reader.draft, states, parents, reader.tables)


class _TableReader(NetworkReader):
    """Keeps the places of the tables on the way, and reads them when all states are known."""

    def __init__(self, text: str) -> None:
        super().__init__(tokens_of(text))
        self.starts: dict[str, int] = {}
        self.tables: dict[str, Array] = {}
        self.entries = 0

    def table(self, child: str) -> None:
        self.starts[child] = self.tokens.at
        super().table(child)

    def finish(self) -> None:
        for child, start in self.starts.items():
            self.tokens.jump(start)
            self.tokens.advance()  # the brace
            if self.tokens.kind != "}":
                self.tables[child] = self._read(child)

    def _read(self, child: str) -> Array:
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
                self._rows(child, numbers, table)
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

    def _rows(self, child: str, numbers: list[dict[str, int]], table: Array) -> None:
        """Rows `(state, state) number, ..., number;` for as long as they are plain, or one that is not."""
        tokens = self.tokens
        end, plain = tokens.at, _ROW.match(tokens.text, tokens.at)
        while plain is not None:
            given = [part.strip() for part in plain[1].split(",")] if plain[1].strip() else []
            try:
                values = [float(part) for part in plain[2].replace(",", " ").split()]
            except ValueError:
                break
            self._put(child, numbers, table, given, values, plain.start())
            end = plain.end()
            plain = _ROW.match(tokens.text, end)
        if end > tokens.at:
            tokens.jump(end)
            return
        at = tokens.at
        tokens.advance()
        given = []
        while tokens.kind != ")":
            given.append(take_name(tokens))
            tokens.skip(",")
        tokens.advance()
        self._put(child, numbers, table, given, self._values(child, table.shape[-1]).tolist(), at)

    def _put(
        self, child: str, numbers: list[dict[str, int]], table: Array, given: list[str], row: list[float], at: int
    ) -> None:
        tokens, shown = self.tokens, child[:40]
        if len(given) != len(numbers):
            raise tokens.error(f"a row of {shown!r} names {len(numbers)} states, but this one {len(given)}.", at)
        if len(row) != table.shape[-1]:
            raise tokens.error(f"a row of {shown!r} has {table.shape[-1]} numbers, but this one {len(row)}.", at)
        for state, known in zip(given, numbers, strict=True):
            if state not in known:
                raise tokens.error(f"a row names states, but {state[:40]!r} is none.{closest(state, known)}", at)
        where = tuple(known[state] for state, known in zip(given, numbers, strict=True))
        if not math.isnan(table[(*where, 0)]):
            raise tokens.error(f"each row is given once, but {given} of {shown!r} is given before.", at)
        table[where] = row

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


def tables_text(
    states: Mapping[str, tuple[str, ...]], parents: Mapping[str, tuple[str, ...]], tables: Mapping[str, Array]
) -> str:
    """The variables with their states and tables as BIF, numbers in full: reading it gives the same tables."""
    lines = ["network unknown {", "}"]
    for name, own in states.items():
        lines.append(f"variable {_word(name)} {{\n  type discrete [ {len(own)} ] {{ {_words(own)} }};\n}}")
    for name in states:
        given = f" | {_words(parents[name])}" if parents[name] else ""
        lines.append(f"probability ( {_word(name)}{given} ) {{")
        table = tables[name]
        if not parents[name]:
            lines.append(f"  table {_numbers(table)};")
        for where in np.ndindex(table.shape[:-1]) if parents[name] else ():
            pattern = [states[parent][i] for parent, i in zip(parents[name], where, strict=True)]
            lines.append(f"  ({_words(pattern)}) {_numbers(table[where])};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _word(name: str) -> str:
    return name if _BARE.fullmatch(name) else quote(name)


def _words(names: Iterable[str]) -> str:
    return ", ".join(map(_word, names))


def _numbers(row: Array) -> str:
    return ", ".join(map(repr, row.tolist()))
