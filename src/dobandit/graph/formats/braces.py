"""The grammar that DOT and dagitty share: `kind name { statements }`, with groups, chains and attributes.

A statement is a node `a [k=v]`, a chain `a -> {b c} -> d [k=v]`, a group, or a setting `k=v`. What a node, an
edge or a setting means is left to the format, which also has its own tokens.
"""

from __future__ import annotations

import re

from dobandit import limits
from dobandit.graph.formats.draft import GraphDraft
from dobandit.graph.formats.lexer import Tokens, unescape

NAMES = ("word", "quoted")
_ANGLE = re.compile("[<>]")
Attributes = dict[str, tuple[str, int]]  # key: (value, place); only the keys that the format wants


def begin(tokens: Tokens) -> GraphDraft:
    """A draft, after the word `strict`, which asks to take an edge listed twice for one."""
    strict = tokens.keyword == "strict"
    if strict:
        tokens.advance()
    return GraphDraft(lambda place, message: tokens.error(message, place), merge=strict)


class Scope:
    """Between two braces: the nodes named there, and the attributes that DOT's `node [...]` sets for them."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.depth: int = 1 if outer is None else outer.depth + 1
        self.node: Attributes = {} if outer is None else dict(outer.node)
        self.edge: Attributes = {} if outer is None else dict(outer.edge)
        self.members: dict[str, None] = {}


class BraceParser:
    """Recursive descent, one method a rule; a format overrides the methods under "meaning"."""

    wanted: frozenset[str] = frozenset()  # keys of attributes; the others are style and fall away
    keywords: frozenset[str] = frozenset()  # words of DOT, which name no node unless they are quoted

    def __init__(self, tokens: Tokens, draft: GraphDraft) -> None:
        self.tokens = tokens
        self.draft = draft

    def document(self) -> None:
        """What follows the word `digraph` or `dag`, up to the end of the file."""
        if self.tokens.kind in NAMES:
            self.name("a name")
        self.body(Scope())
        if self.tokens.kind != "end":
            raise self.tokens.unexpected("the end (a file holds one graph)")

    # -- meaning -----------------------------------------------------------------------------------------

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
        inner = Scope(scope)
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
