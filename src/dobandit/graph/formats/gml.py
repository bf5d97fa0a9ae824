"""GML (graph modelling language), as networkx reads and writes it. It holds everything that a CausalGraph holds.

    graph [
      directed 1
      target "buy"
      node [ id 0 label "mood" latent 1 ]     also controllable 0/1, bias 0/1 and context 0/1
      node [ id 1 label "buy" ]
      edge [ source 0 target 1 ]
    ]

networkx is imported on first use: it takes a noticeable part of a second.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from dobandit import limits
from dobandit.errors import ParseError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import GraphDraft
from dobandit.graph.formats.networkx_format import draft_of_digraph, to_networkx

if TYPE_CHECKING:
    import networkx

_PLACE = re.compile(r" at \((\d+), (\d+)\)\Z")  # line and column, at the end of a message of networkx
_SHOWN = 200  # characters of a message, which may repeat a whole line


def draft_of(text: str) -> GraphDraft:
    """Read the one `graph [...]` of a file."""
    digraph = _parsed(text)
    if not digraph.is_directed():
        raise ParseError("causes and effects need a direction, but `directed 1` is missing. Write it in the graph.")
    import networkx

    names = {
        number: _single("label", attributes.get("label", number)) for number, attributes in digraph.nodes(data=True)
    }
    for name, count in Counter(names.values()).items():
        if count > 1:
            raise ParseError(f"labels differ, but {name[:40]!r} is the label of two nodes. Change one.")
    if "target" in digraph.graph:
        target = digraph.graph["target"]
        digraph.graph["target"] = target if isinstance(target, list) and target else _single("target", target)
    return draft_of_digraph(networkx.relabel_nodes(digraph, names), ParseError)


def _parsed(text: str) -> networkx.Graph:
    """The graph by networkx, its nodes called by their ids; whatever it raises becomes an error with a place."""
    import networkx

    if text.count("[") > limits.MAX_NODES + limits.MAX_EDGES:
        raise ParseError("there are more brackets than a graph file may have nodes and edges. Split the graph.")
    try:
        return networkx.parse_gml(text, label="id")
    except networkx.NetworkXError as error:
        message = str(error)
        place = _PLACE.search(message)
        what = message[: place.start()] if place else message
        line, column = (int(place[1]), int(place[2])) if place else (None, None)
        raise ParseError(f"networkx cannot read this GML: {what[:_SHOWN]}.", line=line, column=column) from None
    except RecursionError:
        raise ParseError("lists of this GML nest too deep. Write a flatter file.") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # such as a number in the place of a list
        raise ParseError(f"networkx cannot read this GML: {str(error)[:_SHOWN]}.") from None


def _single(key: str, value: Any) -> str:
    """A text or a number as text; networkx makes a list of a key that stands several times, and () of "()"."""
    if isinstance(value, dict) or (isinstance(value, list) and value):
        raise ParseError(f"{key} is one number or one text in double quotes, but got {str(value)[:40]}. Correct it.")
    return str(value)


def text_of(graph: CausalGraph) -> str:
    """Print GML in ASCII: other characters become `&#233;`, as its specification asks."""
    import networkx

    return "\n".join(networkx.generate_gml(to_networkx(graph))) + "\n"
