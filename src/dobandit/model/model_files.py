# ruff: noqa: A002 - `format` is the word that users know
"""Model files: JSON, described by schemas/model.schema.json; errors tell the JSON path.

{"target": "Y", "nodes": {"X2": {"bias": 0.3}, "U": {"latent": true, "bias": 0.5}, "C": {"context": true, "bias": 0.4},
                          "Y": {"link": "identity", "bias": 0.1, "parents": {"X2": 0.1, "U": 0.2, "C": -0.1}}}}
{"target": "Y", "nodes": {"A": {"table": 0.5}, "Y": {"parents": ["A"], "table": [0.1, 0.7]}}}
An absent bias means that the node has none; the link is the identity unless said otherwise. A model has tables at all
of its nodes or at none: a table has one level of lists per parent, in the order in which the parents are listed. BIF
files with tables are models too (`network.py`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Unpack

import numpy as np

from dobandit.errors import GraphError, ModelError, ParseError
from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.graph.formats import format_of_path, parse_graph, plain_text, sniff
from dobandit.graph.formats.bif import NetworkText
from dobandit.graph.formats.binarise import STRUCTURE, Binarise, ManyStatesError
from dobandit.graph.formats.json_format import graph_of_model_document
from dobandit.graph.roles import Roles, usual_controllable
from dobandit.model.bglm import BinaryGLM, LinearModel
from dobandit.model.links import BUILDERS, Link, identity, link_from_document
from dobandit.model.network import Network
from dobandit.model.table_model import TableModel
from dobandit.model.weights import number
from dobandit.strict_json import fault_at, load_json
from dobandit.text_files import in_file, read_text, write_atomically

Model = BinaryGLM | LinearModel | TableModel
PathLike = str | os.PathLike[str]
_MODEL = "a model has nodes with bias and parents"


def read_model(
    path: PathLike,
    *,
    format: str | None = None,
    target: str | None = None,
    binarise: Binarise | None = None,
    binarise_rest: str | None = None,
    **roles: Unpack[Roles],
) -> Model:
    """The model in a file: a model file (JSON), or a BIF file with tables (.bif, .bif.gz).

    path           the file
    format         "json" or "bif"; default: by the suffix
    target         BIF: the variable to make likely
    binarise       BIF: the states that count as 1 where there are more than two, such as {"age": ["adult", "old"]}
    binarise_rest  BIF: "last" or "first", the state that does in all other variables of more than two states
    roles          BIF: latent, controllable and context, as in `CausalGraph`

    BIF does not know of targets and the like; a model file says all this itself. Returns a `BinaryGLM`,
    `LinearModel` or `TableModel`.

    >>> import dobandit as dob
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dob.paper.G1.save(f"{folder}/model.json")
    ...     dob.read_model(f"{folder}/model.json").graph.target
    'Y'
    """
    with in_file(path):
        text = read_text(path)
        kind = format or format_of_path(path)
        with suppress(ParseError):  # it begins like nothing: what reads it says what is wrong
            kind = kind or sniff(text)
        if kind == "bif":
            return Network.from_bif(text).binary(target, binarise=binarise, binarise_rest=binarise_rest, **roles)
        _refuse_roles(target=target, binarise=binarise, binarise_rest=binarise_rest, **roles)
        if format is None and kind not in ("json", None):
            raise ParseError(f"this begins like a graph, which has no weights; {_MODEL}, in JSON.")
        return parse_model(text)


def _refuse_roles(**roles: Any) -> None:
    if any(said not in (None, (), [], {}) for said in roles.values()):
        raise GraphError("a model file says its target and the other roles itself; drop the options.")


def read_graph_or_model(
    path: PathLike, *, format: str | None = None, structure_only: bool = False, tables: bool = False, **roles: Any
) -> CausalGraph | Model:
    """Whatever the file holds: a model where it is a model file, else a graph in any format.

    tables  whether a BIF file that has tables is a model
    roles   the other arguments of `read_graph`; a model file says these itself
    """
    with in_file(path):
        text = read_text(path)
        kind = format or format_of_path(path) or sniff(text)
        if kind == "json":
            document = load_json(text)
            if is_model_document(document):
                _refuse_roles(**{word: said for word, said in roles.items() if not word.startswith("binarise")})
                return model_from_document(document)
        if kind == "bif" and tables and not structure_only:
            said = NetworkText(plain_text(text))
            if said.tables:
                try:
                    return Network.of_text(said).binary(**roles)
                except ManyStatesError as error:
                    raise ManyStatesError(f"{error.marked}{STRUCTURE}") from None
        return parse_graph(text, kind, structure_only=structure_only, **roles)


def write_model(model: Any, path: PathLike) -> None:
    """Write a model file; the file appears whole or not at all."""
    write_atomically(path, print_model(model))


def parse_model(text: str) -> Model:
    return model_from_document(load_json(text))


def print_model(model: Any) -> str:
    return json.dumps(model_to_document(model), ensure_ascii=False, indent=2) + "\n"


def is_model_document(document: object) -> bool:
    return isinstance(document, Mapping) and isinstance(document.get("nodes"), Mapping) and "edges" not in document


def model_from_document(document: object) -> Model:
    """A model from the parsed JSON."""
    if not isinstance(document, Mapping):
        raise fault_at(f"a model is an object with target and nodes, but got {document!r:.60}.")
    if "edges" in document:
        raise fault_at(f"this is a graph, which has no weights; {_MODEL}.", "edges")
    kind = document.get("kind", "binary")
    if kind not in ("binary", "continuous"):
        raise fault_at(f'kind is "binary" or "continuous", but got {kind!r}.', "kind")
    graph = graph_of_model_document(dict(document))
    nodes = {name: node for name, node in document["nodes"].items() if name in graph}  # without effects of the target
    if any("table" in node for node in nodes.values()):
        return _table_model(graph, nodes, kind)
    weights: dict[str | Edge, float] = {}
    noise: dict[str, float] = {}
    links: dict[str, Link] = {}
    for name, node in nodes.items():
        if "bias" in node:
            weights[name] = _number(node["bias"], "the bias", name, "bias")
        for parent, weight in node.get("parents", {}).items():
            weights[parent, name] = _number(weight, "a weight", name, "parents", parent)
        if "noise" in node:
            noise[name] = _number(node["noise"], "the noise", name, "noise")
        with _placed("nodes", name, "link"):
            links[name] = link_from_document(node.get("link", "identity"))
    with _placed():
        if kind == "continuous":
            for name, link in links.items():
                if link is not identity:
                    raise fault_at(f"a continuous model is linear, but the link is {link.name}.", "nodes", name, "link")
            return LinearModel(graph, weights, noise=noise)
        return BinaryGLM(graph, weights, links=links, noise=noise)


def _table_model(graph: CausalGraph, nodes: Mapping[str, Any], kind: str) -> TableModel:
    if kind != "binary":
        raise fault_at("tables are of variables of 0 and 1, but the kind is continuous.", "kind")
    tables: dict[str, Any] = {}
    for name, node in nodes.items():
        if "table" not in node:
            raise fault_at("a model has a table at every node or at none, but this one has none.", "nodes", name)
        if not isinstance(node.get("bias", False), bool):
            raise fault_at("the bias of a table is true or false.", "nodes", name, "bias")
        parents = node.get("parents", [])
        try:
            table = np.asarray(node["table"])
        except ValueError:
            table = np.asarray(None)
        if table.shape != (2,) * len(parents) or table.dtype.kind not in "iuf":
            message = f"a table is a number with one level of lists of length 2 per parent, here {len(parents)}."
            raise fault_at(message, "nodes", name, "table")
        tables[name] = table.transpose([parents.index(parent) for parent in graph.parents(name)])
    parts = {name: str(node["part_of"]) for name, node in nodes.items() if "part_of" in node}
    with _placed():
        return TableModel(graph, tables, parts=parts)


def _number(value: object, what: str, *path: str) -> float:
    try:
        return number(value, what)
    except ModelError as error:
        raise fault_at(str(error), "nodes", *path) from None


@contextmanager
def _placed(*path: str) -> Iterator[None]:
    """What is wrong with a model is wrong at this place of its file, or at the node that the error names."""
    try:
        yield
    except ModelError as error:
        edge = () if error.parent is None else ("parents", error.parent)
        raise fault_at(str(error), *(path if error.node is None else ("nodes", error.node, *edge))) from None


def model_to_document(model: Any) -> dict[str, Any]:
    """The JSON document of a model; nodes in topological order."""
    graph, tabular = model.graph, isinstance(model, TableModel)
    if not tabular and model.links is None:
        raise ModelError(
            f"a file holds models with weights or tables, but a {type(model).__name__} is neither. Keep it in code."
        )
    foreign = [] if tabular else sorted({link.name for link in model.links if link.name not in BUILDERS})
    if foreign:
        raise ModelError(f"a file can hold built-in links only, but {foreign[0]!r} is your own. Keep it in code.")
    hidden, biased, given = set(graph.latent), set(graph.bias), set(graph.context)
    nodes: dict[str, Any] = {}
    for name in graph.nodes:
        said: dict[str, Any] = {"latent": name in hidden or None}  # None: is not said
        said |= {"part_of": model.parts.get(name) if tabular else None, "context": name in given or None}
        if tabular:
            usual = (name in biased) != (name in hidden)
            said |= {"bias": None if usual else name in biased, "parents": list(graph.parents(name)) or None}
            said["table"] = model.tables[name].tolist()
        else:
            bias, parents = model.parent_weights(name)
            link, noise = model.link(name), float(model.noise[graph.index(name)])
            said |= {"link": None if link is identity else link.to_document(), "bias": bias if name in biased else None}
            said |= {"parents": parents or None, "noise": noise or None}
        nodes[name] = {key: value for key, value in said.items() if value is not None}
    return {
        "target": graph.target,
        **({"kind": "continuous"} if model.continuous else {}),
        **({} if usual_controllable(graph) else {"controllable": list(graph.controllable)}),
        "nodes": nodes,
    }
