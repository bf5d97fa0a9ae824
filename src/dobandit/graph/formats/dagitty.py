"""dagitty's language. It holds everything but `bias`.

dag {
  ad [exposure]                      exposures, where any is marked, are the controllable variables
  buy [outcome]                      the target
  mood [latent]                      or [unobserved]
  mobile [context]                   known before acting; a word of ours, which dagitty passes over
  ad -> visit -> buy
  visit <-> buy                      a hidden common cause
  mood -> {ad buy}
}
"""

from __future__ import annotations

import re
import warnings

from dobandit.errors import DobanditWarning
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.dot import SKIP, Attributes, BraceParser
from dobandit.graph.formats.draft import GraphDraft, isolated
from dobandit.graph.formats.lexer import QUOTED, Tokens, quoted, token_pattern
from dobandit.graph.roles import usual_bias, usual_controllable

_TOKENS = token_pattern(
    skip=SKIP,
    word=r"[\w.]++(?:-[\w.]++)*+|-\d[\w.]*+",
    arrow=r"<->|->|<-(?![-@])|<?--[@>]?|@-[-@>]|<-@",
    quoted=QUOTED,
    sign=r"[{}\[\];,=+<]",
)
_BARE = re.compile(r"[A-Za-z0-9_]+")  # what every version of dagitty takes without quotes
_KINDS = ("dag", "digraph")
_KEYWORDS = frozenset({"strict", "graph", "dag", "digraph", "pdag", "mag", "pag"})
_ADVICE = "Put names with other characters than letters, digits, _ and . in double quotes."


def draft_of(text: str) -> GraphDraft:
    """Read one dag."""
    return _DagittyParser(Tokens(text, _TOKENS, _ADVICE)).document()


class _DagittyParser(BraceParser):
    wanted = frozenset({"outcome", "latent", "unobserved", "exposure", "selected", "context", "o", "u", "l", "e"})

    def kind(self) -> None:
        word = self.tokens.keyword
        if word in _KEYWORDS and word not in _KINDS:
            raise self.tokens.error(f"a causal graph is a `dag`, but this is a `{word}`. Orient its edges first.")
        if word not in _KINDS:
            raise self.tokens.unexpected("'dag'")

    def mark(self, name: str, attributes: Attributes) -> None:
        marks = self.draft.marks
        for key, (word, place) in attributes.items():
            if key in ("outcome", "o"):
                self.draft.aim(name, place)
            elif key in ("exposure", "e"):
                marks["controllable"][name] = True
            elif key == "context":
                self.draft.mark(key, name, word, place)
            elif key == "selected":
                message = (
                    f"{name!r} is [selected]: the data are only those that it lets in, which no causal graph tells."
                )
                raise self.tokens.error(f"{message} Remove the mark if every round is observed.", place)
            else:
                marks["latent"][name] = True

    def connect(self, left: str, arrow: str, right: str, attributes: Attributes, place: int) -> None:
        if arrow not in ("->", "<-", "<->"):
            message = f"{left!r} {arrow} {right!r} leaves the direction open, but a causal graph knows it."
            raise self.tokens.error(f"{message} Write ->, <- or <->.", place)
        self.draft.connect(left, arrow, right, place)


def text_of(graph: CausalGraph) -> str:
    """Print a dag. `bias` falls away, with a warning where it is not the default."""
    if not usual_bias(graph):
        warnings.warn(
            "dagitty cannot say which nodes have a bias, so `bias` is not written. Give it again when reading, "
            "or write another format.",
            DobanditWarning,
            stacklevel=3,
        )
    shown = quoted(graph.all_nodes, _BARE, _KEYWORDS)
    marks = {**dict.fromkeys(graph.latent, "latent"), **dict.fromkeys(graph.context, "context")}
    if not usual_controllable(graph):
        marks.update((name, "exposure") for name in graph.controllable)
    marks[graph.target] = "outcome"
    lines = ["dag {", *(f"  {shown[name]} [{mark}]" for name, mark in marks.items())]
    lines += [f"  {shown[name]}" for name in isolated(graph) if name not in marks]
    lines += [f"  {shown[cause]} -> {shown[effect]}" for cause, effect in graph.all_edges]
    return "\n".join([*lines, "}"]) + "\n"
