"""GML (graph modelling language). It holds everything that a CausalGraph holds.

    graph [
      directed 1
      target "buy"
      node [ id 0 label "mood" latent 1 ]     also controllable 0/1 and bias 0/1
      node [ id 1 label "buy" ]
      edge [ source 0 target 1 ]
    ]

Lists are read as they come and only the keys above are kept, so nesting and unknown keys cost no memory.
"""

from __future__ import annotations

import re
from html.entities import name2codepoint

from dobandit import limits
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import ROLES, GraphDraft
from dobandit.graph.formats.roles import marks
from dobandit.graph.formats.tokens import Tokens, token_pattern

_TOKENS = token_pattern(
    skip=r"\s++|\#[^\r\n]*+",
    word=r"[A-Za-z_][A-Za-z0-9_]*+",
    number=r"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+(?![\w.])|[+-]?+(?:INF|NAN)\b",
    quoted=r'"[^"]*+"',
    sign=r"[\[\]]",
)
_ADVICE = "GML consists of keys, numbers, texts in double quotes, and lists in brackets."
# Each entity stands for one character of a fixed table, so a text never grows by reading it.
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|([A-Za-z]\w{1,7}));")
_TO_ESCAPE = re.compile(r'[^ -~]|[&"]')
_PLAIN = re.compile(r"edge\s*+\[\s*+source\s++(\d++)\s++target\s++(\d++)\s*+\]\s*+")
_NODE_KEYS = frozenset({"id", "label", *ROLES})
_EDGE_KEYS = frozenset({"source", "target"})
Record = dict[str, tuple[str, int]]


def draft_of(text: str) -> GraphDraft:
    """Read the one `graph [...]` of a file."""
    tokens = Tokens(text, _TOKENS, _ADVICE)
    reader = None
    while tokens.kind != "end":
        at = tokens.at
        if tokens.take("word", "a key such as 'graph'") != "graph":
            _skip_value(tokens, 0)
        elif reader is not None:
            raise tokens.error("a file holds one graph, but here a second one begins. Remove it.", at)
        else:
            reader = _GraphReader(tokens)
            reader.read()
    if reader is None:
        raise tokens.error("there is no `graph [ ... ]`. Write one around the nodes and edges.")
    return reader.draft


def _scalar(tokens: Tokens) -> tuple[str, int]:
    """A number or a text, and its place."""
    value, at = tokens.value, tokens.at
    if tokens.kind not in ("number", "quoted"):
        raise tokens.unexpected("a number or a text in double quotes")
    if tokens.kind == "quoted":
        value = _ENTITY.sub(_character, value[1:-1])
    tokens.advance()
    return value, at


def _character(entity: re.Match[str]) -> str:
    decimal, hexadecimal, name = entity.groups()
    if name:
        return chr(name2codepoint[name]) if name in name2codepoint else entity[0]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code < 0x110000 else entity[0]


def _skip_value(tokens: Tokens, depth: int) -> None:
    """Pass over a value of an unknown key. `depth`: lists that are open around it."""
    if tokens.kind != "[":
        _scalar(tokens)
        return
    outside = depth
    while True:
        if tokens.kind == "[":
            depth += 1
            if depth > limits.MAX_DEPTH:
                raise tokens.error(f"lists nest at most {limits.MAX_DEPTH} deep. Write a flatter file.")
        elif tokens.kind == "]":
            depth -= 1
        elif tokens.kind == "end":
            raise tokens.unexpected("']'")
        tokens.advance()
        if depth == outside:
            return


class _GraphReader:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.draft = GraphDraft(lambda place, message: tokens.error(message, place))
        self.names: dict[str, str] = {}  # label by id
        self.late: list[tuple[str, str, int]] = []  # edges that come before their nodes
        self.directed: str | None = None

    def read(self) -> None:
        tokens = self.tokens
        start = tokens.at
        tokens.take("[", "'[' after 'graph'")
        while tokens.kind != "]":
            at = tokens.at
            key = tokens.take("word", "a key or ']'")
            if key == "edge":
                self._edge(self._record(_EDGE_KEYS), at)
                tokens.plain_edges(_PLAIN, self._join)
            elif key == "node":
                self._node(self._record(_NODE_KEYS), at)
            elif key == "target":
                self.draft.aim(*_scalar(tokens))
            elif key == "directed":
                self.directed, _ = _scalar(tokens)
            else:
                _skip_value(tokens, 1)
        tokens.advance()
        if self.directed != "1":
            given = "is missing" if self.directed is None else f"is {self.directed[:40]}"
            message = f"causes and effects need a direction, but `directed 1` {given}. Write it in the graph."
            raise tokens.error(message, start)
        for edge in self.late:
            self.draft.edge(self._known(edge[0], edge[2]), self._known(edge[1], edge[2]), edge[2])

    def _record(self, keys: frozenset[str]) -> Record:
        """`[ key value ... ]`: the wanted keys, each at most once."""
        tokens, record = self.tokens, Record()
        tokens.take("[", "'['")
        while tokens.kind != "]":
            at = tokens.at
            key = tokens.take("word", "a key or ']'")
            if key not in keys:
                _skip_value(tokens, 2)
            elif key in record:
                raise tokens.error(f"a key stands once in its list, but {key!r} stands twice. Keep one.", at)
            else:
                record[key] = _scalar(tokens)
        tokens.advance()
        return record

    def _node(self, record: Record, at: int) -> None:
        if "id" not in record:
            raise self.tokens.error("a node needs an id, but this one has none. Write `id 7`.", at)
        number, place = record["id"]
        name, name_place = record.get("label", (number, place))
        if number in self.names:
            raise self.tokens.error(f"ids differ, but {number[:40]} is another node's. Change one.", place)
        if name in self.draft.ids:
            message = f"labels differ, but {name[:40]!r} is another node's. Change one."
            raise self.tokens.error(message, name_place)
        self.draft.node(name, name_place)
        self.names[number] = name
        for role in ROLES:
            if role in record:
                self.draft.mark(role, name, *record[role])

    def _edge(self, record: Record, at: int) -> None:
        if len(record) != 2:
            raise self.tokens.error("an edge needs `source` and `target`, each the id of a node.", at)
        self._join(record["source"][0], record["target"][0], at)

    def _join(self, source: str, target: str, at: int) -> None:
        if source in self.names and target in self.names:
            self.draft.edge(self.names[source], self.names[target], at)
        else:
            self.late.append((source, target, at))
            self.draft.refuse_more(len(self.late), at)

    def _known(self, number: str, at: int) -> str:
        if number not in self.names:
            message = f"an edge joins ids of nodes, but no node has the id {number[:40]!r}. Add the node."
            raise self.tokens.error(message, at)
        return self.names[number]


def text_of(graph: CausalGraph) -> str:
    """Print GML in ASCII: other characters become `&#233;`, as its specification asks."""
    special = marks(graph)
    lines = ["graph [", "  directed 1", f"  target {_text(graph.target)}"]
    for number, name in enumerate(graph.nodes):
        said = "".join(f" {role} {int(yes)}" for role, yes in special.get(name, {}).items())
        lines.append(f"  node [ id {number} label {_text(name)}{said} ]")
    ids = {name: number for number, name in enumerate(graph.nodes)}
    lines += [f"  edge [ source {ids[cause]} target {ids[effect]} ]" for cause, effect in graph.edges]
    return "\n".join([*lines, "]"]) + "\n"


def _text(name: str) -> str:
    return '"' + _TO_ESCAPE.sub(lambda m: f"&#{ord(m[0])};", name) + '"'
