"""Laws of the formats: parse(print(g)) == g; any text gives a graph or a DobanditError, however it was broken."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from dobandit.errors import DobanditError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import FORMATS, from_networkx, parse_graph, print_graph, sniff, to_networkx
from helpers.worlds import relaxed

pytestmark = pytest.mark.filterwarnings("ignore::dobandit.errors.DobanditWarning")
lawful = relaxed(max_examples=50, suppress_health_check=list(HealthCheck))

NASTY = [
    'a"b', "a\\", "\\n", "a\nb", "x\r\ny", "tab\there", "A -> B", "<->", "--", "->", "{", "}]", "[x]", "(y|z)", "a;b,c",
    "#no", "//no", "/* no */", "é", "e\u0301", "😀", "x\u2028", "x\x85", "\x00x", "0", "007", "2a", "-1", ".5", "1e5",
    "a b", " a", "a ", "\u00a0b", "graph", "Node", "EDGE", "digraph", "strict", "subgraph", "dag", "pdag", "latent",
    "target", "bias", "controllable", "network", "variable", "probability", "property", "true", "NaN", "INF", "null",
    "&quot;", "&amp;", "&#65;", "&", "<b>x</b>", "U_a_b", "a.b", "a-b", "a:b", "=", "+", "'", "\ufeffx", "x\u200d", "İ",
    "context",
]  # fmt: skip
names = st.one_of(
    st.sampled_from(NASTY),
    st.sampled_from("ABCDEXYZ"),
    st.text(min_size=1, max_size=6).filter(lambda name: name.strip()),
)


@st.composite
def graphs(draw: st.DrawFn) -> CausalGraph:
    """A valid graph: the first node is controllable and causes the last one, the target; the rest is free."""
    nodes = draw(st.lists(names, min_size=2, max_size=7, unique=True))
    first, target, middle = nodes[0], nodes[-1], nodes[1:-1]
    pairs = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :] if (a, b) != (first, target)]
    edges = [(first, target), *(pair for pair in pairs if draw(st.booleans()))]
    latent = draw(st.sets(st.sampled_from(middle))) if middle else set()
    context: list[str] = []
    for name in middle:  # causes come first
        causes = [cause for cause, effect in edges if effect == name]
        if name not in latent and all(cause in context for cause in causes) and draw(st.booleans()):
            context.append(name)
    observed = [name for name in middle if name not in latent and name not in context]
    settable = draw(st.none() | st.sets(st.sampled_from(observed))) if observed else None
    started = draw(st.none() | st.sets(st.sampled_from(nodes)))
    controllable = None if settable is None else [first, *settable]
    return CausalGraph(edges, target, latent, controllable, started, nodes, context)


def without_bias(graph: CausalGraph) -> CausalGraph:
    nodes, context = graph.nodes, graph.context
    return CausalGraph(graph.edges, graph.target, graph.latent, graph.controllable, nodes=nodes, context=context)


@lawful
@given(graph=graphs())
def test_parsing_what_was_printed_gives_the_same_graph(graph: CausalGraph) -> None:
    for name in FORMATS:
        text = print_graph(graph, name)
        assert sniff(text) == name, "a printed graph tells its format"
        parsed = parse_graph(text, name)
        assert parsed == (without_bias(graph) if name == "dagitty" else graph), name
        assert print_graph(parsed, name) == text


@lawful
@given(graph=graphs())
def test_networkx_round_trip(graph: CausalGraph) -> None:
    assert from_networkx(to_networkx(graph)) == graph


@lawful
@given(graph=graphs())
def test_networkx_reads_our_gml(graph: CausalGraph) -> None:
    theirs = networkx.parse_gml(print_graph(graph, "gml"))
    assert set(theirs.edges) == set(graph.edges)
    assert set(theirs.nodes) == set(graph.nodes)
    assert from_networkx(theirs) == graph


@lawful
@given(graph=graphs())
def test_we_read_the_gml_of_networkx(graph: CausalGraph) -> None:
    assert parse_graph("\n".join(networkx.generate_gml(to_networkx(graph))), "gml") == graph


# -- broken texts --------------------------------------------------------------------------------------------

PIECES = [
    '"', "\\", "{", "}", "[", "]", "(", ")", "->", "<->", "--", ";", ",", "=", ":", "|", "\n", "#", "//", "/*", "*/",
    "<", ">", "&#", "+", "A", "graph", "node", "edge", "0", "1e999", "NaN", "directed 0", "\ud800", " ", "\r",
]  # fmt: skip


def broken(draw: st.DrawFn, text: str) -> str:
    """A valid text with some pieces cut out, put in or doubled."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 8)))
        piece = draw(st.one_of(st.just(""), st.sampled_from(PIECES), st.just(2 * text[start:stop])))
        text = text[:start] + piece + text[stop:]
    return text


def outcome(text: str, name: str) -> CausalGraph | str:
    """The graph, or the message of its refusal; any other exception fails the test."""
    try:
        return parse_graph(text, name)
    except DobanditError as error:
        return str(error)


@lawful
@given(graph=graphs(), data=st.data())
def test_a_broken_text_gives_a_graph_or_an_error(graph: CausalGraph, data: st.DataObject) -> None:
    for name in FORMATS:
        outcome(broken(data.draw, print_graph(graph, name)), name)


@pytest.mark.parametrize("name", FORMATS)
@lawful
@given(text=st.text(max_size=40) | st.lists(st.sampled_from([*PIECES, *NASTY]), max_size=15).map(" ".join))
@example(text="")
@example(text="{}")
@example(text="digraph { subgraph { } [latent=true] }")
def test_garbage_gives_a_graph_or_an_error(name: str, text: str) -> None:
    outcome(text, name)
    heads = {
        "dot": "digraph {",
        "dagitty": "dag {",
        "gml": "graph [ directed 1 ",
        "json": '{"edges": [',
        "bif": "variable ",
    }
    outcome(heads.get(name, "") + text, name)
