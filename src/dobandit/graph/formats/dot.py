"""DOT, the language of graphviz, without graphviz. It holds everything that a CausalGraph holds.

digraph {
  target="buy";
  mood [latent=true];                also context=true, controllable=true/false, bias=true/false
  ad -> visit -> buy;
  visit -> buy [dir=both];           a hidden common cause; dir=back turns an edge round
}
"""

from __future__ import annotations

import re

from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.braces import Attributes, BraceParser, begin
from dobandit.graph.formats.draft import ROLES, GraphDraft, isolated, marks
from dobandit.graph.formats.lexer import QUOTED, Tokens, in_quotes, quoted, token_pattern

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


def draft_of(text: str) -> GraphDraft:
    """Read one digraph."""
    tokens = Tokens(text, _TOKENS, _ADVICE)
    draft = begin(tokens)
    if tokens.keyword == "graph":
        raise tokens.error(f"`graph` {_UNDIRECTED}.")
    if tokens.keyword != "digraph":
        raise tokens.unexpected("'digraph'")
    tokens.advance()
    _DotParser(tokens, draft).document()
    return draft


class _DotParser(BraceParser):
    wanted = frozenset({*ROLES, "dir", "target"})
    keywords = _KEYWORDS

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
    shown = quoted(graph.nodes, _BARE, _KEYWORDS)
    special = marks(graph)
    lines = ["digraph {", f"  target={in_quotes(graph.target)};"]
    for name, said in special.items():
        attributes = ", ".join(f"{role}={str(yes).lower()}" for role, yes in said.items())
        lines.append(f"  {shown[name]} [{attributes}];")
    lines += [f"  {shown[name]};" for name in isolated(graph) if name not in special]
    lines += [f"  {shown[cause]} -> {shown[effect]};" for cause, effect in graph.edges]
    return "\n".join([*lines, "}"]) + "\n"
