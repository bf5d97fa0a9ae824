"""Hostile files end in an error or a graph, in bounded time; each case here takes about a second at most."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dobandit import limits
from dobandit.errors import DobanditError, ParseError
from dobandit.graph.formats import FORMATS, load_json, parse_graph, read_graph

pytestmark = [
    pytest.mark.filterwarnings("ignore::dobandit.errors.DobanditWarning"),
    pytest.mark.usefixtures("one_of_many"),
]
MANY = 4_000_000


@pytest.fixture(autouse=True)
def _in_bounded_time() -> Iterator[None]:
    start = time.perf_counter()
    yield
    assert time.perf_counter() - start < 20  # far above what it takes, far below what a blow-up takes


OPENINGS = {
    "edgelist": ("A -> ", "latent: ", ""),
    "json": ("", '{"edges": ', '{"nodes": {"A": '),
    "dot": ("", "digraph ", "digraph { a [x=", "digraph { a [", "digraph { a -> "),
    "gml": ("", "graph ", "graph [ directed 1 node [ id ", "graph [ x "),
    "dagitty": ("", "dag ", "dag { a [", "dag { a -> "),
    "bif": ("", "network x ", "probability ", "probability ( A ) ", "variable x { type discrete "),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("piece", ["[", "{", "(", "<", '"', "/*", "a [", "x{", '{"a":', "{{}", "a [ b "])
def test_brackets_without_end(name: str, piece: str) -> None:
    for opening in OPENINGS[name]:
        with pytest.raises(DobanditError):
            parse_graph(opening + piece * (MANY // 10 // len(piece)), name, target="Y")


@pytest.mark.parametrize("piece", ["[", "{", "(", " ", "\n", "\\", "&amp;", "#\n", "//\n", '"a" '])
@pytest.mark.parametrize("name", FORMATS)
def test_megabytes_of_one_thing(name: str, piece: str) -> None:
    with pytest.raises(DobanditError):
        parse_graph(piece * (MANY // len(piece) ** 2), name, target="Y")


def test_depth_is_limited_where_nesting_is_legal() -> None:
    deep = limits.MAX_DEPTH + 1
    cases = [
        ("json", '{"edges": ' + "[" * deep + "]" * deep + "}"),
        ("dot", "digraph " + "{" * deep + "}" * deep),
        ("dagitty", "dag " + "{" * deep + "}" * deep),
        ("bif", "probability ( A ) " + "{" * deep + "}" * deep),
    ]
    for name, text in cases:
        with pytest.raises(ParseError, match="nest at most 64 deep"):
            parse_graph(text, name)
    shallow = limits.MAX_DEPTH - 1
    assert len(parse_graph("digraph {A -> Y" + "{" * shallow + "B" + "}" * shallow + "}", "dot", target="Y")) == 3


def test_entities_do_not_laugh() -> None:
    entities = "".join(f"<!ENTITY l{i} '{f'&l{i - 1};' * 10}'>" for i in range(1, 10))
    with pytest.raises(ParseError):
        parse_graph(entities + "graph [ directed 1 ]", "gml")
    nodes = 'node [ id 0 label "&l9;&amp;amp;&#38;#38;" ] node [ id 1 label "Y" ]'
    text = f"graph [ directed 1 {nodes} edge [ source 0 target 1 ] ]"
    assert parse_graph(text, "gml", target="Y").nodes == ("&l9;&amp;&#38;", "Y")


@pytest.mark.parametrize("name", ["dot", "dagitty"])
def test_a_product_of_groups_is_counted_before_it_is_made(name: str) -> None:
    group = "{" + " ".join(f"a{i}" for i in range(20_000)) + "}"
    with pytest.raises(ParseError, match="at most 5000000 edges"):
        parse_graph(f"{'digraph' if name == 'dot' else 'dag'} {{ {group} -> {group.replace('a', 'b')} }}", name)


@pytest.mark.parametrize(("limit", "value", "message"), [
    ("MAX_BYTES", 10, "at most 10"),
    ("MAX_NODES", 2, "at most 2 nodes"),
    ("MAX_EDGES", 1, "at most 1 edges"),
    ("MAX_NAME", 3, "at most 3 characters"),
    ("MAX_NAMES", 5, "at most 5 characters"),
])  # fmt: skip
def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, message: str) -> None:
    path = tmp_path / "graph.txt"
    path.write_text("long -> B -> Y")
    monkeypatch.setattr(limits, limit, value)
    for read in (lambda: parse_graph(path.read_text(), "edgelist", target="Y"), lambda: read_graph(path, target="Y")):
        with pytest.raises(ParseError, match=message):
            read()


def test_endless_files_are_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/zero").exists():
        pytest.skip("there is no endless file here")
    monkeypatch.setattr(limits, "MAX_BYTES", 1000)
    with pytest.raises(ParseError, match="at most 1000 bytes"):
        read_graph("/dev/zero", format="json")


def test_too_many_brackets_are_counted_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_EDGES", 10)
    monkeypatch.setattr(limits, "MAX_NODES", 10)
    with pytest.raises(ParseError, match="more brackets"):
        load_json("[" + "[]," * 30 + "[]]")


LINES = {
    "edgelist": ("", "{0} -> {1}\n", ""),
    "dot": ("digraph {\n", "{0} -> {1}\n", "}"),
    "dagitty": ("dag {\n", "{0} -> {1}\n", "}"),
    "json": ('{"edges": [', '["{0}", "{1}"],\n', '["v0", "Y"]]}'),
    "gml": ("graph [ directed 1 ", "edge [\n source {0}\n target {1}\n]\n", "]"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_hundred_thousand_edges(name: str) -> None:
    start, line, end = LINES[name]
    width = 320
    pairs = [(f"v{i}", f"w{j}") for i in range(width) for j in range(width)]
    if name == "gml":  # every edge before its nodes, with ids that are numbers
        pairs = [(str(i), str(width + j)) for i in range(width) for j in range(width)]
        end = "".join(f"node [ id {i} ] " for i in range(2 * width)) + end
    goal = pairs[-1][1]
    graph = parse_graph(start + "".join(line.format(*pair) for pair in pairs) + end, name, target=goal)
    assert graph.edge_count == len(pairs) + (name == "json")
