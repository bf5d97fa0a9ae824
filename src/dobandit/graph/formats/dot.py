"""DOT, the language of graphviz, without graphviz. It holds everything that a CausalGraph holds.

digraph {
  target="buy";
  mood [latent=true];                also context=true, controllable=true/false, bias=true/false
  ad -> visit -> buy;
  visit -> buy [dir=both];           a hidden common cause; dir=back turns an edge round
}

dagitty has the same grammar: `kind name { statements }`, where a statement is a node `a [k=v]`, a chain
`a -> {b c} -> d [k=v]`, a group, or a setting `k=v`. What a node, an edge or a setting means is left to the format,
which also has its own tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dobandit import limits
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import GraphDraft, isolated, marks
from dobandit.graph.formats.lexer import QUOTED, Tokens, in_quotes, quoted, token_pattern, unescape
from dobandit.graph.roles import ROLES

NAMES = ("word", "quoted")
_ANGLE = re.compile("[<>]")
Attributes = dict[str, tuple[str, int]]  # key: (value, place); only the keys that the format wants
SKIP = r"\s++|//[^\r\n]*+|\#[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/"
_TOKENS = token_pattern(
    skip=SKIP,
    word=r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*+|-?(?:\.\d++|\d++(?:\.\d*+)?+)(?![\w.])",
    arrow=r"->|--",
    quoted=QUOTED,
    sign=r"[{}\[\];,=:+<]",
)
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset({"strict", "graph", "digraph", "subgraph", "node", "edge"})
_ADVICE = 'Put names with other characters than letters, digits and _ in double quotes: "A-B".'
_ARROWS = {"forward": "->", "back": "<-", "both": "<->"}
_UNDIRECTED = "has no direction, but causes and effects need one. Write `digraph` and `->`"


@dataclass
class Scope:
    """Between two braces: the nodes named there, and the attributes that DOT's `node [...]` sets for them."""

    depth: int = 1
    node: Attributes = field(default_factory=dict)
    edge: Attributes = field(default_factory=dict)
    members: dict[str, None] = field(default_factory=dict)

    def inner(self) -> Scope:
        return Scope(self.depth + 1, dict(self.node), dict(self.edge))


class BraceParser:
    """Recursive descent, one method a rule; a format overrides the methods under "meaning"."""

    wanted: frozenset[str] = frozenset()  # keys of attributes; the others are style and fall away
    keywords: frozenset[str] = frozenset()  # words of DOT, which name no node unless they are quoted

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        strict = tokens.keyword == "strict"  # an edge that is listed twice is one
        if strict:
            tokens.advance()
        self.draft = GraphDraft(lambda place, message: tokens.error(message, place), merge=strict)

    def document(self) -> GraphDraft:
        """Read `kind name { statements }`, up to the end of the file."""
        self.kind()
        self.tokens.advance()
        if self.tokens.kind in NAMES:
            self.name("a name")
        self.body(Scope())
        if self.tokens.kind != "end":
            raise self.tokens.unexpected("the end (a file holds one graph)")
        return self.draft

    # -- meaning -----------------------------------------------------------------------------------------

    def kind(self) -> None:
        """Refuse a first word that is not one of the format's."""
        raise NotImplementedError

    def setting(self, key: str, value: str, place: int) -> None:
        """`k=v` on the graph."""

    def mark(self, name: str, attributes: Attributes) -> None:
        """Attributes of a node."""

    def connect(self, left: str, arrow: str, right: str, attributes: Attributes, place: int) -> None:
        """One edge."""
        raise NotImplementedError

    # -- rules -------------------------------------------------------------------------------------------

    def body(self, scope: Scope) -> None:
        """`{ statements }`"""
        tokens = self.tokens
        if scope.depth > limits.MAX_DEPTH:
            raise tokens.error(f"braces nest at most {limits.MAX_DEPTH} deep. Write the groups one by one.")
        tokens.take("{", "'{'")
        while tokens.kind != "}":
            if tokens.kind == "end":
                raise tokens.unexpected("'}'")
            if tokens.keyword in self.keywords and tokens.keyword in ("graph", "node", "edge"):
                self.defaults(scope)
            elif not tokens.skip(";", ","):
                self.statement(scope)
        tokens.advance()

    def defaults(self, scope: Scope) -> None:
        """`graph [...]`, `node [...]` and `edge [...]`: attributes of what follows in this scope."""
        kind = self.tokens.keyword
        self.tokens.advance()
        if self.tokens.kind != "[":
            raise self.tokens.unexpected(f"'[' (a node with the name {kind!r} is written in double quotes)")
        attributes = self.attributes()
        if kind == "node":
            scope.node.update(attributes)
        elif kind == "edge":
            scope.edge.update(attributes)
        elif scope.depth == 1:
            for key, (value, place) in attributes.items():
                self.setting(key, value, place)

    def statement(self, scope: Scope) -> None:
        tokens = self.tokens
        at, single = tokens.at, not self.at_group()
        left = self.operand(scope)
        if single and tokens.skip("="):
            place = tokens.at
            self.setting(left[0], self.value(), place)
        elif tokens.kind == "arrow":
            self.chain(left, scope, at)
        else:
            for name in left:
                self.seen(name, scope, at)
            if single:
                self.mark(left[0], self.attributes())

    def chain(self, left: list[str], scope: Scope, at: int) -> None:
        """The rest of `a -> b -> c [attributes]`; attributes come last, so the edges wait for them."""
        tokens = self.tokens
        links = []
        while tokens.kind == "arrow":
            arrow = tokens.value
            tokens.advance()
            here = tokens.at
            right = self.operand(scope)
            links.append((left, arrow, right, at))
            if len(links) > limits.MAX_NODES:
                raise tokens.error(f"a chain has at most {limits.MAX_NODES} links. Write several chains.", at)
            left, at = right, here
        attributes = {**scope.edge, **self.attributes()}
        for lefts, arrow, rights, place in links:
            self.draft.refuse_more(len(lefts) * len(rights), place)  # {a b ...} -> {c d ...} is short to write
            for name in (*lefts, *rights):
                self.seen(name, scope, place)
            for one in lefts:
                for other in rights:
                    self.connect(one, arrow, other, attributes, place)

    def operand(self, scope: Scope) -> list[str]:
        """A node, or the nodes of a group `{ ... }` or `subgraph name { ... }`."""
        if not self.at_group():
            return [self.node_name()]
        if self.tokens.kind != "{":
            self.tokens.advance()
            if self.tokens.kind in NAMES:
                self.name("a name")
        inner = scope.inner()
        self.body(inner)
        scope.members.update(inner.members)
        return list(inner.members)

    def at_group(self) -> bool:
        return self.tokens.kind == "{" or ("subgraph" in self.keywords and self.tokens.keyword == "subgraph")

    def node_name(self) -> str:
        """A name and its port, which only says where an edge touches the picture."""
        tokens = self.tokens
        if tokens.keyword in self.keywords:
            raise tokens.error(f"{tokens.value!r} is a keyword of DOT. Put a node's name in double quotes.")
        name = self.name("a node, an edge or '}'")
        for _ in range(2):
            if tokens.skip(":"):
                self.name("a port")
        return name

    def seen(self, name: str, scope: Scope, place: int) -> None:
        """A node is named: a new one takes the attributes that hold here."""
        draft = self.draft
        if name not in draft.ids:
            draft.node(name, place)
            if scope.node:
                self.mark(name, scope.node)
        if scope.depth > 1:
            scope.members[name] = None

    def name(self, wanted: str) -> str:
        tokens = self.tokens
        if tokens.kind == "word":
            name = tokens.value
            tokens.advance()
            return name
        if tokens.kind != "quoted":
            raise tokens.unexpected(wanted)
        parts = [unescape(tokens.value)]
        tokens.advance()
        while tokens.skip("+"):
            parts.append(unescape(tokens.take("quoted", "a quoted text after '+'")))
        return "".join(parts)

    def value(self) -> str:
        """An attribute's value: a name, or an HTML-like text, which is skipped (only labels are written so)."""
        tokens = self.tokens
        if tokens.kind != "<":
            return self.name("a value")
        at, depth = tokens.at, 0
        for angle in _ANGLE.finditer(tokens.text, at):
            depth += 1 if angle[0] == "<" else -1
            if not depth:
                tokens.jump(angle.end())
                return tokens.text[at + 1 : angle.start()]
        raise tokens.error("an HTML-like text ends with '>', but this one never does. Close it.", at)

    def attributes(self) -> Attributes:
        """`[k=v, k2, k3=v3] [...]`, possibly nothing; a key alone counts as true."""
        tokens, found = self.tokens, Attributes()
        while tokens.skip("["):
            while tokens.kind != "]":
                place = tokens.at
                key, value = self.name("an attribute or ']'"), "true"
                if tokens.skip("="):
                    value = self.value()
                if key in self.wanted:
                    found[key] = (value, place)
                tokens.skip(",", ";")
            tokens.advance()
        return found


# -- DOT ---------------------------------------------------------------------------------------------------------------


def draft_of(text: str) -> GraphDraft:
    """Read one digraph."""
    return _DotParser(Tokens(text, _TOKENS, _ADVICE)).document()


class _DotParser(BraceParser):
    wanted = frozenset({*ROLES, "dir", "target"})
    keywords = _KEYWORDS

    def kind(self) -> None:
        if self.tokens.keyword == "graph":
            raise self.tokens.error(f"`graph` {_UNDIRECTED}.")
        if self.tokens.keyword != "digraph":
            raise self.tokens.unexpected("'digraph'")

    def setting(self, key: str, value: str, place: int) -> None:
        if key == "target":
            self.draft.aim(value, place)

    def mark(self, name: str, attributes: Attributes) -> None:
        for role in ROLES:
            if role in attributes:
                self.draft.mark(role, name, *attributes[role])

    def connect(self, left: str, arrow: str, right: str, attributes: Attributes, place: int) -> None:
        way, way_place = attributes.get("dir", ("forward", place))
        if arrow == "--":
            raise self.tokens.error(f"`--` {_UNDIRECTED}.", place)
        if way == "none":
            raise self.tokens.error(f"an edge with dir=none {_UNDIRECTED}, without dir=none.", way_place)
        if way not in _ARROWS:
            raise self.tokens.error(f"dir is forward, back or both, but found {way[:40]!r}.", way_place)
        self.draft.connect(left, _ARROWS[way], right, place)


def text_of(graph: CausalGraph) -> str:
    """Print a digraph; roles that are the default are left out."""
    shown = quoted(graph.all_nodes, _BARE, _KEYWORDS)
    special = marks(graph)
    lines = ["digraph {", f"  target={in_quotes(graph.target)};"]
    for name, said in special.items():
        attributes = ", ".join(f"{role}={str(yes).lower()}" for role, yes in said.items())
        lines.append(f"  {shown[name]} [{attributes}];")
    lines += [f"  {shown[name]};" for name in isolated(graph) if name not in special]
    lines += [f"  {shown[cause]} -> {shown[effect]};" for cause, effect in graph.all_edges]
    return "\n".join([*lines, "}"]) + "\n"
