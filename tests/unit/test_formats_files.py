"""Files: suffixes, sniffing, errors with the file's name, atomic writing; JSON schema; networkx."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import networkx
import pytest

from dobandit.errors import DobanditError, GraphError, ParseError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import (
    FORMATS,
    from_networkx,
    load_json,
    parse_graph,
    read_graph,
    sniff,
    to_networkx,
    write_graph,
)
from dobandit.graph.formats.json_format import graph_of_model_document

GRAPH = CausalGraph([("U", "X"), ("U", "Y"), ("X", "Y")], target="Y", latent=["U"], nodes=["X"])
SUFFIXES = [".txt", ".edges", ".json", ".dot", ".gv", ".gml", ".dagitty", ".bif", ".DOT"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_suffix_tells_the_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"graph{suffix}"
    write_graph(GRAPH, path)
    assert read_graph(path) == read_graph(str(path)) == GRAPH
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("name", FORMATS)
def test_the_text_tells_the_format(tmp_path: Path, name: str) -> None:
    path = tmp_path / "graph"
    write_graph(GRAPH, path, format=name)
    assert read_graph(path) == GRAPH
    path.write_text("# a comment\n" + path.read_text() if name in ("edgelist", "dot") else path.read_text())
    assert read_graph(path) == read_graph(path, format=name) == GRAPH


def test_sniffing_names_the_formats() -> None:
    assert sniff("graph -> Y") == sniff('"a b" -> Y') == sniff("dag,Y") == sniff("network Y\n") == "edgelist"
    assert sniff("// c\nstrict digraph {") == sniff("graph{") == sniff('digraph "x y" {') == "dot"
    assert sniff('Creator "x"\ngraph [') == "gml"
    with pytest.raises(ParseError, match=r"line 2, column 1: .*edgelist, json, dot, gml, dagitty, bif"):
        sniff("\n<xml>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"A -> B\nB -> \xff", "line 2, column 6: files are UTF-8"),
        (b"A -> -", "line 1, column 6"),
        (b"A -> B", "no target is named"),
    ],
)
def test_a_refused_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "graph.txt"
    path.write_bytes(content)
    with pytest.raises((ParseError, GraphError)) as caught:
        read_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_what_is_no_file_is_a_parse_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.txt", str(tmp_path / "a\0b.txt"), tmp_path / ("x" * 5000)):
        with pytest.raises(ParseError, match="cannot be read"):
            read_graph(path)
    (tmp_path / "blank").write_text("# nothing\n")
    with pytest.raises(ParseError, match="empty"):
        read_graph(tmp_path / "blank")


def test_writing_leaves_the_old_file_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.txt"
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(DobanditError, match=r"graph.txt: .*No space left"):
            write_graph(GRAPH, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["graph.txt"]
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    write_graph(GRAPH, link)
    assert link.is_symlink()
    assert read_graph(path) == GRAPH


def test_writing_where_it_cannot_be_done(tmp_path: Path) -> None:
    with pytest.raises(DobanditError, match="cannot be written"):
        write_graph(GRAPH, tmp_path / "no" / "graph.txt")
    with pytest.raises(GraphError, match=r"\.txt, \.edges"):
        write_graph(GRAPH, tmp_path / "graph.png")


# -- JSON ----------------------------------------------------------------------------------------------------


def test_printed_graphs_satisfy_the_schema(tmp_path: Path) -> None:
    schema = json.loads((files("dobandit.graph") / "schemas" / "graph.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    rich = CausalGraph([("U", "Y"), ("A", "Y")], "Y", ["U"], ["A"], ["U"], ["A", 'l"one'])
    known = CausalGraph([("C", "A"), ("A", "Y")], "Y", context=["C"])
    for graph in (GRAPH, rich, known):
        write_graph(graph, tmp_path / "graph.json")
        check.validate(json.loads((tmp_path / "graph.json").read_text()))
    for bad in ({"edges": [["A"]]}, {"edges": [["A", ""]]}, {"egdes": []}, {"nodes": {"A": {}}}, []):
        assert not check.is_valid(bad)


def test_a_model_document_has_a_structure() -> None:
    nodes = {"X2": {"bias": 0.3}, "U": {"latent": True}, "Y": {"bias": 0, "parents": {"X2": 0.1, "U": 0.2}}}
    graph = graph_of_model_document({"target": "Y", "nodes": nodes})
    assert graph == CausalGraph([("X2", "Y"), ("U", "Y")], "Y", ["U"], bias=["X2", "Y"])
    with pytest.raises(ParseError, match=r"\$\.nodes\.Y\.parents\.mod: .* Did you mean 'mood'"):
        graph_of_model_document({"target": "Y", "nodes": {"mood": {}, "Y": {"parents": {"mod": 1}}}})
    with pytest.raises(ParseError, match=r"\$\.nodes"):
        graph_of_model_document({"target": "Y"})
    with pytest.raises(ParseError, match="noise"):
        graph_of_model_document({"target": "Y", "nodes": nodes, "noise": 0.1})
    with pytest.raises(ParseError, match="a model is an object"):
        graph_of_model_document([])  # type: ignore[arg-type]


def test_load_json_is_strict() -> None:
    assert load_json(' {"a": [1, 2.5, null, "é"]} ') == {"a": [1, 2.5, None, "é"]}
    for text in ('{"a": {"b": 1, "b": 2}}', "[Infinity]", "[-1e400]", "[" * 70 + "]" * 70, "[1", "", "[" * 10**5):
        with pytest.raises(ParseError) as caught:
            load_json(text)
        assert caught.value.line == 1
    assert load_json("[" * 64 + "]" * 64)


# -- networkx ------------------------------------------------------------------------------------------------


def test_networkx_marks() -> None:
    digraph = networkx.DiGraph([("A", "Y"), ("U", "Y"), ("B", "Y")])
    digraph.nodes["U"]["latent"] = 1
    digraph.nodes["B"]["controllable"] = False
    graph = from_networkx(digraph, "Y")
    assert (graph.latent, graph.controllable) == (("U",), ("A",))
    assert to_networkx(graph).nodes["A"] == {"latent": False, "controllable": True, "bias": True, "context": False}
    assert to_networkx(graph).graph == {"target": "Y"}
    with pytest.raises(GraphError, match="The only observed"):
        from_networkx(digraph)


@pytest.mark.parametrize(
    ("digraph", "message"),
    [
        (networkx.Graph([("A", "Y")]), "Build a DiGraph"),
        (networkx.MultiDiGraph([("A", "Y")]), r"networkx\.DiGraph\(graph\)"),
        (networkx.DiGraph([(1, 2)]), "relabel_nodes"),
        (networkx.DiGraph([("A", "A")]), "does not cause itself"),
        (networkx.DiGraph(), "needs nodes"),
        ({"A": ["Y"]}, "but got dict"),
    ],
)
def test_networkx_refusals(digraph: networkx.Graph, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_networkx(digraph, "Y")


def test_networkx_flag_must_be_a_truth_value() -> None:
    digraph = networkx.DiGraph([("A", "Y")])
    digraph.nodes["A"]["latent"] = "perhaps"
    with pytest.raises(GraphError, match="true or false"):
        from_networkx(digraph, "Y")


def test_networkx_loads_when_first_used() -> None:
    code = "import sys, dobandit.graph.formats; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_documented_examples_are_one_graph() -> None:
    text = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    examples = re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert {name for name, _ in examples} == set(FORMATS)
    edges = [("ad", "visit"), ("visit", "buy"), ("mood", "visit"), ("mood", "buy")]
    shop = CausalGraph(edges, target="buy", latent=["mood"], controllable=["ad"])
    for name, example in examples:
        assert parse_graph(example, name) == shop, name
        assert sniff(example) == name
