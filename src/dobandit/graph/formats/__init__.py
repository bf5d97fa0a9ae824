# ruff: noqa: A002 - `format` is the word that users know
"""Graphs in files: edge list, JSON, DOT, GML, dagitty and BIF, read and written, and networkx graphs.

Each format is one module with `draft_of(text)` and `text_of(graph)`; `docs/formats.md` describes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, Unpack

from dobandit import limits
from dobandit.errors import GraphError, ParseError, closest, located
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import bif, dagitty, dot, edgelist, json_format, networkx_format
from dobandit.graph.formats.binarise import STRUCTURE, Binarise, ManyStatesError, states_of_one
from dobandit.graph.formats.draft import GraphDraft, build
from dobandit.graph.formats.networkx_format import as_graph as as_graph
from dobandit.graph.formats.networkx_format import from_networkx as from_networkx
from dobandit.graph.formats.networkx_format import to_networkx as to_networkx
from dobandit.graph.roles import Roles
from dobandit.strict_json import load_json as load_json
from dobandit.text_files import in_file, path_of, read_text, without_gz, write_atomically


class _Format(NamedTuple):
    suffixes: tuple[str, ...]
    beginning: str  # pattern that a text of this format begins with, after blanks and comments
    module: Any  # with `draft_of(text)` and `text_of(graph)`


# In the order in which a text without a telling suffix is tried; an edge list could begin with almost anything.
_FORMATS = {
    "json": _Format((".json",), r"[{\[]", json_format),
    "gml": _Format((".gml",), r"graph\s*+\[|(?:Creator|Version|comment)\s", networkx_format),
    "dot": _Format((".dot", ".gv"), r"(?i:(?:strict\s++)?+(?:di)?+graph\b)[^\[{:,<>\n-]{0,200}+\{", dot),
    "dagitty": _Format((".dagitty",), r"(?i:p?+dag|mag|pag)\b[^\[{:,<>\n-]{0,200}+\{", dagitty),
    "bif": _Format((".bif",), r"network\s[^{:,<>\n-]{0,200}+\{|variable\s[^{:,<>\n]{0,200}+\{", bif),
    "edgelist": _Format((".txt", ".edges"), r'(?:[\w.]++|"[^"\r\n]++")[^\S\r\n]*+(?:[:,#\r\n"\w.]|->|<-|\Z)', edgelist),
}
FORMATS = ("edgelist", "json", "dot", "gml", "dagitty", "bif")
_BY_SUFFIX = {suffix: name for name, kind in _FORMATS.items() for suffix in kind.suffixes}
_BLANK = re.compile(r"(?:\ufeff|\s++|//[^\n]*+|\#[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+")


def read_graph(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    target: str | None = None,
    latent: Iterable[str] = (),
    controllable: Iterable[str] | None = None,
    bias: Iterable[str] | None = None,
    context: Iterable[str] = (),
    binarise: Binarise | None = None,
    binarise_rest: str | None = None,
    structure_only: bool = False,
) -> CausalGraph:
    """The graph in a file, compressed (.gz) or not.

    source          the path
    format          "edgelist", "json", "dot", "gml", "dagitty" or "bif"; default: by the suffix, or how the text begins
    target          the variable to make likely; replaces what the file says
    latent          hidden variables, in addition to those that the file names
    controllable    variables that may be set; replaces what the file says
    bias            nodes that can become 1 by themselves; replaces what the file says
    context         variables that are observed before acting, in addition to those that the file names
    binarise        where a BIF file lists more than two states of a variable, those that count as 1 in your data, as
                    variables of a graph are 0 or 1: {"age": ["adult", "old"]}
    binarise_rest   the same for all other such variables at once: "last" for the last state listed of each, or "first"
    structure_only  take the structure for what it is, however many states there are

    Returns a `CausalGraph`. Raises ParseError with the place where the file is malformed, and GraphError where the
    graph breaks a rule.

    >>> from pathlib import Path
    >>> _ = Path("funnel.txt").write_text("target: buy\\nad -> visit -> buy\\n")
    >>> read_graph("funnel.txt").parents("buy")
    ('visit',)
    """
    roles: Roles = {"latent": latent, "controllable": controllable, "bias": bias, "context": context}
    name, kind = path_of(source), None if format is None else _known(format)
    with in_file(name):
        text = read_text(name)
        return parse_graph(
            text,
            kind or format_of_path(name) or sniff(text),
            target=target,
            binarise=binarise,
            binarise_rest=binarise_rest,
            structure_only=structure_only,
            **roles,
        )


def parse_graph(
    text: str,
    format: str,
    *,
    target: str | None = None,
    binarise: Binarise | None = None,
    binarise_rest: str | None = None,
    structure_only: bool = False,
    **roles: Unpack[Roles],
) -> CausalGraph:
    """The graph in a text.

    text    what a file would hold
    format  its format, as in `read_graph`
    roles   latent, controllable, bias and context, as in `read_graph`

    target, binarise, binarise_rest and structure_only are those of `read_graph` too.

    >>> parse_graph("ad -> visit -> buy", "edgelist", target="buy").controllable
    ('ad', 'visit')
    """
    draft = draft_of(text, format)
    graph = build(draft, target, **roles)
    if not structure_only:
        states = {name: own for name, (own, _) in draft.states.items()}
        try:
            states_of_one(states, binarise, binarise_rest, {*graph.latent, *graph.effects})
        except ManyStatesError as error:
            raise draft.refuse(draft.states[error.variable][1], f"{error.marked}{STRUCTURE}") from None
    return graph


def draft_of(text: str, format: str) -> GraphDraft:
    """What a text says, before anything is made of it."""
    draft: GraphDraft = _FORMATS[_known(format)].module.draft_of(plain_text(text))
    return draft


def plain_text(text: str) -> str:
    """The text without a byte order mark; too long and empty ones are refused."""
    if len(text) > limits.MAX_BYTES:
        raise ParseError(f"a text has at most {limits.MAX_BYTES} characters, but this one has {len(text)}.")
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise ParseError("the text is empty. Write at least one edge.", line=1, column=1)
    return text


def print_graph(graph: CausalGraph, format: str) -> str:
    """The graph as a text of this format; parsing it gives the same graph (dagitty: but for `bias`).

    graph   what to print
    format  as in `read_graph`

    >>> from dobandit import CausalGraph, print_graph
    >>> "ad -> buy" in print_graph(CausalGraph([("ad", "buy")], target="buy"), "edgelist")
    True
    """
    text: str = _FORMATS[_known(format)].module.text_of(graph)
    return text


def write_graph(graph: CausalGraph, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write the graph to a file, at once: at every moment the path holds the old file or the new one.

    graph   what to write
    path    where to; compressed where it ends with .gz
    format  as in `read_graph`; default: by the suffix

    >>> import tempfile
    >>> from dobandit import CausalGraph, read_graph
    >>> graph = CausalGraph([("ad", "buy")], target="buy")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_graph(graph, f"{folder}/funnel.txt")
    ...     read_graph(f"{folder}/funnel.txt") == graph
    True
    """
    name = path_of(path)
    kind = format or format_of_path(name)
    if kind is None:
        suffixes = ", ".join(_BY_SUFFIX)
        raise GraphError(f"{name}: the suffix tells no format. Use one of {suffixes}, or give format=...")
    write_atomically(path, print_graph(graph, kind))


def format_of_path(path: str | os.PathLike[str]) -> str | None:
    """The format that the suffix tells, if it tells one; a .gz behind it only says that the file is compressed."""
    return _BY_SUFFIX.get(without_gz(path).suffix.lower())


def _known(format: str) -> str:
    if format not in FORMATS:
        hint = closest(format, FORMATS) if isinstance(format, str) else ""
        raise GraphError(f"format is one of {', '.join(FORMATS)}, but got {format!r}.{hint}")
    return format


def sniff(text: str) -> str:
    """The format that the text begins like."""
    blank = _BLANK.match(text)
    start = blank.end() if blank else 0
    if start == len(text):
        raise ParseError("the file is empty. Write at least one edge.", line=1, column=1)
    for name, kind in _FORMATS.items():
        if re.compile(kind.beginning).match(text, start):
            return name
    message = f"this begins like none of the formats {', '.join(FORMATS)}. Give format=... (or --format)."
    raise located(text, start, message)
