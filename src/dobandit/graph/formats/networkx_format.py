"""networkx: a DiGraph with `target` on the graph and `latent`, `controllable`, `bias`, `context` on its nodes; and GML
(graph modelling language), as networkx reads and writes it. Both hold everything that a CausalGraph holds.

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
from typing import TYPE_CHECKING, Any, Unpack

from dobandit import limits
from dobandit.errors import DobanditError, GraphError, ParseError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import GraphDraft, build
from dobandit.graph.roles import ROLES, Roles

if TYPE_CHECKING:
    import networkx

_PLACE = re.compile(r" at \((\d+), (\d+)\)\Z")  # line and column, at the end of a message of networkx
_SHOWN = 200  # characters of a message, which may repeat a whole line


def from_networkx(digraph: networkx.DiGraph, target: str | None = None, **roles: Unpack[Roles]) -> CausalGraph:
    """A causal graph from a networkx DiGraph whose nodes are strings.

    digraph  may say `target` in digraph.graph, and latent, controllable, bias, context on its nodes
    target   the variable to make likely; replaces what the graph says
    roles    controllable and bias replace what is marked, latent and context are added to the marked nodes

    >>> import networkx
    >>> from_networkx(networkx.DiGraph([("ad", "buy")]), target="buy").parents("buy")
    ('ad',)
    """
    _refuse_other_kinds(digraph)
    return build(_draft_of_digraph(digraph, GraphError), target, **roles)


def _draft_of_digraph(digraph: networkx.DiGraph, error: type[DobanditError]) -> GraphDraft:
    """What a DiGraph says. error: what is wrong is said with it"""
    draft = GraphDraft(lambda _, message: error(message))
    for name, attributes in digraph.nodes(data=True):
        draft.node(_named(name), 0)
        for role in ROLES:
            if role in attributes:
                draft.mark(role, name, str(attributes[role]), 0)  # True, or the 1 that a GML file leaves
    for cause, effect in digraph.edges():
        draft.edge(cause, effect, 0)
    for name in getattr(digraph, "latents", None) or ():  # as pgmpy's networks have them
        draft.mark("latent", _named(name), "true", 0)
    targets = digraph.graph.get("target")
    for name in targets if isinstance(targets, list) else [] if targets is None else [targets]:
        draft.aim(name, 0)
    return draft


def as_graph(given: Any, rule: str, error: type[DobanditError]) -> CausalGraph:
    """A CausalGraph as it is, and a networkx DiGraph (pgmpy's networks are such) that names its target as one.

    rule, error  what to say of anything else, and as what
    """
    if isinstance(given, CausalGraph):
        return given
    if not (hasattr(given, "is_directed") and hasattr(given, "graph")):
        raise error(
            f"{rule}, but got {type(given).__name__}. Pass model.graph, or read one with read_graph or from_networkx."
        )
    if not given.graph.get("target"):
        raise error(
            f"{rule}, but a {type(given).__name__} came that names no target. Give it one, graph.graph['target'] = "
            "'buy', or use from_networkx(graph, target='buy')."
        )
    return from_networkx(given)


def to_networkx(graph: CausalGraph) -> networkx.DiGraph:
    """A DiGraph that says everything: `target` in its `graph`, and all roles on each node.

    graph  what it is made of; `from_networkx` is the way back

    >>> from dobandit import CausalGraph
    >>> made = to_networkx(CausalGraph([("ad", "buy")], target="buy"))
    >>> made.graph["target"], list(made.edges)
    ('buy', [('ad', 'buy')])
    """
    import networkx

    digraph = networkx.DiGraph(target=graph.target)
    members = {role: set(getattr(graph, role)) for role in ROLES}
    for name in graph.nodes:
        digraph.add_node(name, **{role: name in members[role] for role in ROLES})
    digraph.add_edges_from(graph.all_edges)
    return digraph


def _refuse_other_kinds(digraph: object) -> None:
    import networkx

    if not isinstance(digraph, networkx.Graph):
        raise GraphError(f"from_networkx takes a networkx.DiGraph, but got {type(digraph).__name__}.")
    if digraph.is_multigraph():
        way_out = "Convert it: networkx.DiGraph(graph)."
        raise GraphError(f"each edge is listed once, but got a {type(digraph).__name__}. {way_out}")
    if not digraph.is_directed():
        way_out = "Build a DiGraph with an edge (cause, effect) for each effect."
        raise GraphError(f"causes and effects need a direction, but got a {type(digraph).__name__}. {way_out}")


def _named(node: object) -> str:
    if not isinstance(node, str):
        way_out = "Relabel the nodes: networkx.relabel_nodes(graph, str)."
        raise GraphError(f"names are strings, but the node {node!r} is of type {type(node).__name__}. {way_out}")
    return node


# -- GML ---------------------------------------------------------------------------------------------------------------


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
    return _draft_of_digraph(networkx.relabel_nodes(digraph, names), ParseError)


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
