"""BIF (Bayesian network interchange format), its structure. It holds everything that a CausalGraph holds.

    network graph { property target = "buy" ; }
    variable mood { type discrete [ 2 ] { 0, 1 } ; property latent = true ; }
    variable buy { type discrete [ 2 ] { 0, 1 } ; }
    probability ( mood ) { }
    probability ( buy | mood ) { }

Tables are passed over when a graph is read (`bif_tables` reads them). None is written: a graph has no probabilities.
"""

from __future__ import annotations

import re

from dobandit import limits
from dobandit.errors import closest
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import ROLES, GraphDraft, marks
from dobandit.graph.formats.lexer import QUOTED, Tokens, quote, take_name, token_pattern, unquote
from dobandit.graph.formats.states import many_states

_TOKENS = token_pattern(
    skip=r"\s++|//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/",
    word=r'(?!/\*)[^\s"(){}\[\],;|]++',
    quoted=QUOTED,
    sign=r"[(){}\[\],;|]",
)
_PLAIN = re.compile(r"([\w.]++)(),\s*+")
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_ADVICE = "Put names with spaces or brackets in double quotes."
_OPEN, _CLOSE = "({[", ")}]"


def draft_of(text: str) -> GraphDraft:
    """Read a network's variables and who is whose parent."""
    reader = NetworkReader(tokens_of(text))
    reader.read()
    return reader.draft


def tokens_of(text: str) -> Tokens:
    return Tokens(text, _TOKENS, _ADVICE)


class NetworkReader:
    """Reads a network's blocks one by one; who wants the tables overrides `table`."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.draft = GraphDraft(lambda place, message: tokens.error(message, place))
        self.conditioned: dict[str, int] = {}
        self.parents_at: dict[str, int] = {}
        self.parents: dict[str, list[str]] = {}  # in the order of the file, which is that of tables

    def read(self) -> None:
        tokens = self.tokens
        blocks = {"network": self._network, "variable": self._variable, "probability": self._probability}
        while tokens.kind != "end":
            block = blocks.get(tokens.keyword)
            if block is None:
                raise tokens.unexpected("'network', 'variable' or 'probability'")
            tokens.advance()
            block()
        for name, place in {**self.conditioned, **self.parents_at}.items():
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
            raise tokens.error(many_states(name, states), at)
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
        if child in self.conditioned:
            raise tokens.error(f"a variable has one probability, but {child[:40]!r} has one before.", at)
        self.conditioned[child] = at
        self.parents[child] = []
        tokens.skip("|")
        while tokens.kind != ")":
            place = tokens.at
            self._parent(take_name(tokens), child, place)
            tokens.skip(",")
            tokens.plain_edges(_PLAIN, lambda parent, _, place: self._parent(parent, child, place))
        tokens.advance()
        if tokens.kind != "{":
            raise tokens.unexpected("'{'")
        self.table(child)

    def table(self, child: str) -> None:
        """The table of a variable, from its opening brace on: here it is passed over."""
        self._skip_brackets()

    def _parent(self, parent: str, child: str, place: int) -> None:
        self.parents[child].append(parent)
        self.parents_at.setdefault(parent, place)
        self.draft.edge(parent, child, place)

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


def text_of(graph: CausalGraph) -> str:
    """Print the variables and their parents, without tables."""
    shown = {name: name if _BARE.fullmatch(name) else quote(name) for name in graph.nodes}
    special = marks(graph)
    lines = ["network graph {", f"  property target = {quote(graph.target)} ;", "}"]
    for name in graph.nodes:
        said = "".join(f" property {role} = {str(yes).lower()} ;" for role, yes in special.get(name, {}).items())
        lines.append(f"variable {shown[name]} {{ type discrete [ 2 ] {{ 0, 1 }} ;{said} }}")
    for name in graph.nodes:
        given = ", ".join(shown[parent] for parent in graph.parents(name))
        lines.append(f"probability ( {shown[name]}{' | ' if given else ''}{given} ) {{ }}")
    return "\n".join(lines) + "\n"
