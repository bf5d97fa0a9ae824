"""JSON: the arguments of CausalGraph. It holds everything that a CausalGraph holds (`graph.schema.json`).

    {"target": "buy", "edges": [["ad", "visit"], ["visit", "buy"]], "latent": [], "nodes": ["alone"]}

A model file, whose `nodes` is an object, is read as a graph too: its structure counts, its numbers do not.

    {"target": "buy", "nodes": {"ad": {"bias": 0.3}, "buy": {"parents": {"ad": 0.5}}}}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dobandit.errors import ParseError, closest, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import GraphDraft, build, isolated, listed_roles
from dobandit.strict_json import fault_at, load_json

_LISTS = ("nodes", "latent", "controllable", "bias", "context")
_GRAPH_KEYS = ("target", "edges", *_LISTS)
_MODEL_KEYS = ("target", "nodes", "controllable", "kind")
_EXAMPLE = 'Write {"target": "Y", "edges": [["X", "Y"]]}.'
_FLAGS = ("latent", "context")
_NODE_KEYS = ("bias", "link", "parents", *_FLAGS, "noise")
_TABLE_KEYS = ("table", "bias", "parents", "part_of", *_FLAGS)


def draft_of(text: str) -> GraphDraft:
    """Read a graph document, or a model document as a graph."""
    document = load_json(text)
    if not isinstance(document, dict):
        raise fault_at(f"a graph is an object, but got {_kind(document)}. {_EXAMPLE}")
    if isinstance(document.get("nodes"), dict) and "edges" not in document:
        return _draft_of_model(document)
    return _draft_of_graph(document)


def graph_of_model_document(document: dict[str, Any]) -> CausalGraph:
    """The structure of a model document: parents, latent and context flags, the constant where `bias` is present."""
    if not isinstance(document, dict):
        raise fault_at(f"a model is an object, but got {_kind(document)}.")
    return build(_draft_of_model(document))


# -- graph documents -----------------------------------------------------------------------------------------


def _draft_of_graph(document: dict[str, Any]) -> GraphDraft:
    _refuse_unknown(document, _GRAPH_KEYS)

    def refuse(place: int, message: str) -> ParseError:
        """place: the number of an edge, or -1 - the number of a node"""
        if place < 0:
            return fault_at(message, "nodes", -1 - place)
        return fault_at(message, *(("edges", place) if draft.ids or place else ()))

    draft = GraphDraft(refuse)
    for number, edge in enumerate(_list(document, "edges")):
        if not (isinstance(edge, list) and len(edge) == 2):
            raise fault_at(f'an edge is a pair ["cause", "effect"], but got {_kind(edge)}.', "edges", number)
        if not (isinstance(edge[0], str) and isinstance(edge[1], str)):
            end = 1 if isinstance(edge[0], str) else 0
            raise fault_at(f"a name is a string, but got {_kind(edge[end])}.", "edges", number, end)
        draft.edge(edge[0], edge[1], number)
    for number, name in _names(document, "nodes"):
        draft.node(name, -1 - number)
    for role in _LISTS[1:]:
        if role in document:
            draft.assign(role, ((name, 0) for _, name in _names(document, role)))
    _aim(draft, document)
    return draft


def _aim(draft: GraphDraft, document: dict[str, Any]) -> None:
    if "target" in document:
        if not isinstance(document["target"], str):
            raise fault_at(f"target is a name, but got {_kind(document['target'])}.", "target")
        draft.aim(document["target"], 0)


def _list(document: dict[str, Any], key: str) -> list[Any]:
    value = document.get(key, [])
    if not isinstance(value, list):
        raise fault_at(f"{key} is a list, but got {_kind(value)}.", key)
    return value


def _names(document: dict[str, Any], key: str) -> Iterable[tuple[int, str]]:
    for number, name in enumerate(_list(document, key)):
        if not isinstance(name, str):
            raise fault_at(f"a name is a string, but got {_kind(name)}.", key, number)
        yield number, name


def _refuse_unknown(document: dict[str, Any], known: tuple[str, ...], *path: str) -> None:
    for key in document:
        if key not in known:
            message = f"the keys here are {listed(known)}, but found {key[:40]!r}.{closest(key, known)}"
            raise fault_at(message, *path, key)


def _kind(value: object) -> str:
    """A value for a message, in JSON's words and short."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of length {len(value)}"
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 40 else shown[:40] + "..."


# -- model documents -----------------------------------------------------------------------------------------


def _draft_of_model(document: dict[str, Any]) -> GraphDraft:
    _refuse_unknown(document, _MODEL_KEYS)
    nodes = document.get("nodes")
    if not isinstance(nodes, dict):
        raise fault_at(f"nodes is an object of nodes, but got {_kind(nodes)}.", "nodes")
    names = list(nodes)

    def refuse(place: int, message: str) -> ParseError:
        """place: the number of an edge, or -1 - the number of a node"""
        if place < 0:
            return fault_at(message, "nodes", names[-1 - place])
        edge = (names[draft.heads[place]], "parents", names[draft.tails[place]]) if draft.tails else ()
        return fault_at(message, "nodes", *edge)

    draft = GraphDraft(refuse)
    for number, name in enumerate(nodes):
        draft.node(name, -1 - number)
    for name, node in nodes.items():
        for parent in _parents(name, node, nodes):
            draft.edge(parent, name, len(draft.tails))
    for role in _FLAGS:
        draft.assign(role, ((name, 0) for name in nodes if nodes[name].get(role)))
    draft.assign("bias", ((name, 0) for name in nodes if _has_constant(nodes[name])))
    if "controllable" in document:
        draft.assign("controllable", ((name, 0) for _, name in _names(document, "controllable")))
    _aim(draft, document)
    return draft


def _has_constant(node: dict[str, Any]) -> bool:
    """Whether the constant is a parent: a bias says so; a table has it unless hidden, or as "bias" says."""
    if "table" in node:
        return bool(node.get("bias", not node.get("latent", False)))
    return "bias" in node


def _parents(name: str, node: object, nodes: dict[str, Any]) -> Iterable[str]:
    """The names of a node's parents, after its keys are checked; weights are the model's business."""
    if not isinstance(node, dict):
        raise fault_at(f"a node is an object, but got {_kind(node)}.", "nodes", name)
    tabular = "table" in node
    _refuse_unknown(node, _TABLE_KEYS if tabular else _NODE_KEYS, "nodes", name)
    for flag in _FLAGS:
        if not isinstance(node.get(flag, False), bool):
            raise fault_at(f"{flag} is true or false, but got {_kind(node[flag])}.", "nodes", name, flag)
    parents = node.get("parents", [] if tabular else {})
    if not isinstance(parents, list if tabular else dict):
        rule = 'parents of a table are a list ["name"]' if tabular else 'parents is an object {"name": weight}'
        raise fault_at(f"{rule}, but got {_kind(parents)}.", "nodes", name, "parents")
    if not all(isinstance(parent, str) for parent in parents):
        raise fault_at("parents of a table are names.", "nodes", name, "parents")
    for parent in dict.fromkeys(parents):
        if parent not in nodes:
            message = f"parents are keys of nodes, but {parent[:40]!r} is none.{closest(parent, nodes)}"
            raise fault_at(message, "nodes", name, "parents", parent)
    return dict.fromkeys(parents)


def document_of(graph: CausalGraph) -> dict[str, Any]:
    """The graph document; roles that are the default are left out."""
    said = {**listed_roles(graph), "nodes": tuple(isolated(graph)) or None}
    keys = ("latent", "context", "nodes", "controllable", "bias")
    lists = {key: list(names) for key in keys if (names := said.get(key)) is not None}
    return {"target": graph.target, **lists, "edges": [list(edge) for edge in graph.all_edges]}


def graph_of_document(document: dict[str, Any]) -> CausalGraph:
    """The graph of a graph document."""
    return build(_draft_of_graph(document))


def text_of(graph: CausalGraph) -> str:
    """Print a graph document, one edge a line."""
    document, text = document_of(graph), json.JSONEncoder(ensure_ascii=False).encode
    edges = ",\n".join(f"    {text(edge)}" for edge in document.pop("edges"))
    parts = [f'  "{key}": {text(value)}' for key, value in document.items()]
    return "{\n" + ",\n".join([*parts, f'  "edges": [\n{edges}\n  ]']) + "\n}\n"
