"""Graphs in files: edge list, JSON, DOT, GML, dagitty and BIF, read and written, and networkx graphs.

Each format is one module with `draft_of(text)` and `text_of(graph)`; `docs/formats.md` describes them.
"""

from dobandit.graph.formats.files import (
    FORMATS,
    format_of_path,
    parse_graph,
    print_graph,
    read_graph,
    sniff,
    write_graph,
)
from dobandit.graph.formats.json_text import load_json
from dobandit.graph.formats.networkx_format import as_graph, from_networkx, to_networkx

__all__ = [
    "FORMATS",
    "as_graph",
    "format_of_path",
    "from_networkx",
    "load_json",
    "parse_graph",
    "print_graph",
    "read_graph",
    "sniff",
    "to_networkx",
    "write_graph",
]
