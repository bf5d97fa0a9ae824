"""Edge list: one edge a line. It holds everything that a CausalGraph holds.

# comment
target: buy
latent: mood            also controllable:, bias: and context:, each with a list that may be empty
ad -> visit -> buy      a chain; <- and <-> are read too
"other word" -> buy     a name with other characters than letters, digits, _ and . is quoted; in a list with commas,
                        and as the target, a name may hold spaces without quotes
alone                   a node without edges
ad buy                  the common two-column forms, with a blank or a comma
"""

from __future__ import annotations

import re

from dobandit.errors import closest
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import GraphDraft, isolated, listed_roles
from dobandit.graph.formats.lexer import QUOTED, Tokens, quote, take_name, token_pattern

_TOKENS = token_pattern(
    skip=r"[^\S\r\n]++|#[^\r\n]*+",
    word=r"[\w.]++",
    arrow=r"<->|->|<-",
    newline=r"[\r\n]\s*+",
    quoted=QUOTED,
    sign=r"[:,]",
)
_BARE = re.compile(r"[\w.]+")
_ADVICE = 'Put names with other characters than letters, digits, _ and . in double quotes: "A-B".'
_DIRECTIVES = ("target", "latent", "controllable", "bias", "context")


def draft_of(text: str) -> GraphDraft:
    """Read an edge list."""
    tokens = Tokens(text, _TOKENS, _ADVICE)
    draft = GraphDraft(lambda place, message: tokens.error(message, place))
    while tokens.kind != "end":
        if not tokens.skip("newline"):
            _line(tokens, draft)
    return draft


def _line(tokens: Tokens, draft: GraphDraft) -> None:
    at, bare = tokens.at, tokens.kind == "word"
    first = take_name(tokens)
    if tokens.kind == "arrow":
        left, place = first, at
        while tokens.kind == "arrow":
            arrow = tokens.value
            tokens.advance()
            here = tokens.at
            right = take_name(tokens)
            draft.connect(left, arrow, right, place)
            left, place = right, here
    elif tokens.skip(",") or tokens.kind in ("word", "quoted"):
        draft.edge(first, take_name(tokens), at)
    elif tokens.kind == ":" and bare:
        _directive(tokens, draft, first, at)
    else:
        draft.node(first, at)
    if not tokens.skip("newline") and tokens.kind != "end":
        form = 'a line is one chain `A -> B -> C`, or two columns `A B`; a name with spaces is quoted: "A B" -> C'
        raise tokens.unexpected(f"the end of the line ({form})")


def _directive(tokens: Tokens, draft: GraphDraft, word: str, at: int) -> None:
    if word not in _DIRECTIVES:
        hint = closest(word, _DIRECTIVES)
        known = ", ".join(f"{name}:" for name in _DIRECTIVES)
        raise tokens.error(f"a line may begin with {known}, but found {word + ':'!r}.{hint}", at)
    tokens.advance()
    if word == "target":
        here = tokens.at
        words = [take_name(tokens)]
        while tokens.kind == "word":
            words.append(take_name(tokens))
        draft.aim(" ".join(words), here)
    else:
        draft.assign(word, _listed_names(tokens))


def _listed_names(tokens: Tokens) -> list[tuple[str, int]]:
    """The names up to the end of the line: a word each, or, where there are commas, what stands between these."""
    between_commas: list[list[tuple[str, int]]] = [[]]
    while tokens.kind in ("word", "quoted", ","):
        if tokens.skip(","):
            between_commas.append([])
        else:
            at = tokens.at
            between_commas[-1].append((take_name(tokens), at))
    if len(between_commas) == 1:
        return between_commas[0]
    return [(" ".join(word for word, _ in words), words[0][1]) for words in between_commas if words]


def text_of(graph: CausalGraph) -> str:
    """Print an edge list; roles that are the default are left out."""
    shown = {name: name if _BARE.fullmatch(name) else quote(name) for name in graph.all_nodes}
    roles = {"target": (graph.target,), **listed_roles(graph)}
    lines = [" ".join([f"{role}:", *(shown[n] for n in roles[role])]) for role in _DIRECTIVES if role in roles]
    lines += [f"{shown[cause]} -> {shown[effect]}" for cause, effect in graph.all_edges]
    lines += [shown[name] for name in isolated(graph)]
    return "\n".join(lines) + "\n"
