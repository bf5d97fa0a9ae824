"""Each format: what it reads, what it refuses, and at which line and column."""

from __future__ import annotations

import pytest

from dobandit.errors import DobanditWarning, GraphError, ParseError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import FORMATS, parse_graph, print_graph

SHOP = CausalGraph(
    [("ad", "visit"), ("visit", "buy"), ("mood", "visit"), ("mood", "buy")],
    target="buy",
    latent=["mood"],
    controllable=["ad"],
    bias=["ad", "mood"],
    nodes=["alone", "ad"],
)
READ = [
    ("edgelist", "A -> B -> Y", "AB BY"),
    ("edgelist", "Y <- B <- A", "AB BY"),
    ("edgelist", "A B\nB,Y\r\nC, Y\rD Y", "AB BY CY DY"),
    ("edgelist", '# a comment\n\n  "A" -> B # another\n"B" "Y"', "AB BY"),
    ("edgelist", r'"\u0041" -> Y', "AY"),
    ("dot", "digraph { A -> B -> Y }", "AB BY"),
    ("dot", "digraph x { A -> {B C} -> Y; }", "AB AC BY CY"),
    ("dot", "strict digraph { A -> Y A -> Y; }", "AY"),
    ("dot", "DiGraph { subgraph cluster_1 { label=<<b>x</b>>; A; B } -> Y [color=red] }", "AY BY"),
    ("dot", 'digraph { "A" -> B:port:ne [penwidth=2.5, dir=back]; "" + "A" -> Y /* c */ // c\n# c\n }', "BA AY"),
    ("dot", "digraph { edge [dir=back]; Y -> A; edge [dir=forward]; B -> Y }", "AY BY"),
    ("dot", "digraph { A->B;B->Y;A->Y[dir=forward];C->Y }", "AB BY AY CY"),
    ("gml", 'graph [ directed 1 node [ id 1 label "A" ] node [ id 2 label "Y" ] edge [ source 1 target 2 ] ]', "AY"),
    ("gml", "Creator \"x\" graph [ directed 1 edge [ target 2 source 1 w [ a [ b 1 ] ] ] node [ id 1 label \"A\" ] "
            "node [ id 2 label \"&#89;\" graphics [ x 1.5 y -2.0E3 ] ] ]", "AY"),
    ("dagitty", "dag { A -> B -> Y }", "AB BY"),
    ("dagitty", 'dag { bb="0,0,1,1" A [pos="-1.2,0.5"] A -> {B C}; {B C} -> Y Y [adjusted,pos="1,1"] }', "AB AC BY CY"),
    ("dagitty", 'dag g {\nA -> B\n"B" -> Y\nY <- C\n}', "AB BY CY"),
    ("bif", "network n { property x y; } variable A { type discrete [2] { <5, >=5 }; property p = 1 2; } "
            "variable Y { type discrete[ 2 ] {\"no\", yes}; } probability ( A ) { table 0.5, 0.5; } "
            "probability ( Y | A ) { (<5) 0.1, 0.9; (>=5) 0.2, 0.8; }", "AY"),
    ("json", '{"edges": [["A", "B"], ["B", "Y"]]}', "AB BY"),
    ("json", '\ufeff{"edges": [["A", "Y"]], "nodes": ["A"]}', "AY"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "edges"), READ)
def test_reads(name: str, text: str, edges: str) -> None:
    assert parse_graph(text, name, target="Y") == CausalGraph([(a, b) for a, b in edges.split()], target="Y")


@pytest.mark.parametrize("name", FORMATS)
def test_a_graph_with_every_role_survives(name: str) -> None:
    if name == "dagitty":
        with pytest.warns(DobanditWarning, match="dagitty cannot say which nodes have a bias"):
            text = print_graph(SHOP, name)
        assert parse_graph(text, name, bias=SHOP.bias) == SHOP
    else:
        assert parse_graph(print_graph(SHOP, name), name) == SHOP


CONFOUNDED = [
    ("edgelist", "A -> Y\nB -> Y\n{} -> Y\nB <-> A"),
    ("dagitty", "dag {{ A -> Y B -> Y {} -> Y B <-> A }}"),
    ("dot", "digraph {{ A -> Y; B -> Y; {} -> Y; B -> A [dir=both] }}"),
]


@pytest.mark.parametrize(("name", "text"), CONFOUNDED)
def test_a_bidirected_edge_becomes_a_named_latent(name: str, text: str) -> None:
    graph = parse_graph(text.format("C"), name, target="Y")
    assert graph.latent == ("U_A_B",)
    assert graph.children("U_A_B") == ("A", "B")
    assert not graph.has_bias("U_A_B")
    taken = parse_graph(text.format("U_A_B"), name, target="Y")
    assert taken.latent == ("U_A_B_2",)


ROLES = [
    ("edgelist", "target: Y\nlatent: U\ncontrollable: A\nbias:\nU -> Y\nA -> Y\nB -> Y", ("A",), ()),
    ("edgelist", "target: Y\nlatent: U, \nlatent:\nU Y\nA Y\nB Y", ("A", "B"), ("A", "B", "Y")),
    ("dot", 'digraph { graph [target="Y"] U [latent=true]; A [controllable=true] U -> Y A -> Y B -> Y }',
     ("A",), ("A", "B", "Y")),
    ("dot", "digraph { target=Y U [latent]; A [controllable=false, bias=0] U -> Y A -> Y B -> Y }", ("B",), ("B", "Y")),
    ("dot", "digraph { target=Y { node [latent=true]; U } U [bias=yes] U -> Y A -> Y B -> Y }",
     ("A", "B"), ("A", "B", "U", "Y")),
    ("dagitty", "dag { U [unobserved] Y [outcome] A [exposure] U -> Y A -> Y B -> Y }", ("A",), ("A", "B", "Y")),
    ("json", '{"target": "Y", "nodes": {"Y": {"link": "identity", "parents": {"U": 0.1, "A": 0.1, "B": 1}}, "A": {}, '
             '"B": {"bias": 0.5}, "U": {"latent": true}}, "controllable": ["A"], "kind": "binary"}', ("A",), ("B",)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "controllable", "bias"), ROLES)
def test_roles(name: str, text: str, controllable: tuple[str, ...], bias: tuple[str, ...]) -> None:
    graph = parse_graph(text, name)
    assert (graph.target, graph.latent) == ("Y", ("U",))
    assert (graph.controllable, graph.bias) == (controllable, tuple(n for n in graph.nodes if n in bias))


NAMES_WITH_SPACES = [
    ("edgelist", 'target: a sale\ncontrollable: Rabatt code, mail\n"Rabatt code" -> "a sale"\nmail -> "a sale"'),
    ("edgelist", 'target: "a sale"\ncontrollable: mail, "Rabatt code",\n"Rabatt code" "a sale"\nmail, "a sale"'),
    ("edgelist", 'target: a sale\ncontrollable: "Rabatt code" mail\n"a sale" <- mail\n"Rabatt code" -> "a sale"'),
    ("dot", 'digraph { target="a sale"; {"Rabatt code" mail} -> "a sale" }'),
    ("dagitty", 'dag { "a sale" [outcome] {"Rabatt code" mail} -> "a sale" }'),
]


@pytest.mark.parametrize(("name", "text"), NAMES_WITH_SPACES)
def test_names_may_hold_spaces(name: str, text: str) -> None:
    graph = parse_graph(text, name)
    assert (graph.target, set(graph.controllable)) == ("a sale", {"Rabatt code", "mail"})


@pytest.mark.parametrize("text", ["Rabatt code -> buy", "mail -> Rabatt code", "mail -> buy\nRabatt code, buy"])
def test_a_name_with_spaces_that_is_not_quoted_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(ParseError, match='a name with spaces is quoted: "A B" -> C'):
        parse_graph(text, "edgelist", target="buy")


REFUSED = [
    ("edgelist", "A -> B\nB - C", 2, 3, "cannot stand here"),
    ("edgelist", "A -> \nB", 1, 6, "expected a name"),
    ("edgelist", "A B C", 1, 5, "expected the end of the line"),
    ("edgelist", "A -> B\r\n\r\n  A -> B", 3, 3, "'A' -> 'B' is listed again"),
    ("edgelist", "A -> Y\nA <-> B\nB <-> A", 3, 1, "listed twice"),
    ("edgelist", "A -> A", 1, 1, "does not cause itself"),
    ("edgelist", "A <-> A", 1, 1, "both ends"),
    ("edgelist", 'A -> "B', 1, 6, "never does"),
    ("edgelist", r'A -> "B\x"', 1, 8, "is no escape"),
    ("edgelist", r'A -> "\ud800"', 1, 1, "surrogate"),
    ("edgelist", 'A -> " "', 1, 1, "not empty"),
    ("edgelist", "targets: Y\nA -> Y", 1, 1, "Did you mean 'target'?"),
    ("edgelist", "target:\nA -> Y", 1, 8, "expected a name"),
    ("edgelist", "target: Y\ntarget: Z\nA -> Y\nA -> Z", 2, 9, "one target"),
    ("edgelist", "# nothing", 1, 1, "names none"),
    ("edgelist", " \n", 1, 1, "empty"),
    ("dot", "graph { A -- Y }", 1, 1, "has no direction"),
    ("dot", "digraph { A -- Y }", 1, 11, "has no direction"),
    ("dot", "digraph {\n A -> Y [dir=none] }", 2, 10, "has no direction"),
    ("dot", "digraph { A -> Y [dir=up] }", 1, 19, "forward, back or both"),
    ("dot", "digraph { A -> Y [latent=maybe]; B [latent=maybe] }", 1, 37, "true or false"),
    ("dot", "digraph { A -> Y;\n A -> Y }", 2, 2, "listed again"),
    ("dot", "digraph { A -> Y", 1, 17, "expected '}'"),
    ("dot", "digraph { A -> Y } digraph { }", 1, 20, "one graph"),
    ("dot", "digraph { <b>A</b> -> Y }", 1, 11, "expected a node"),
    ("dot", "digraph { A [label=<b] }", 1, 20, "HTML-like"),
    ("dot", "digraph { node -> Y }", 1, 16, "double quotes"),
    ("dot", "digraph { A -> edge }", 1, 16, "keyword"),
    ("dot", "digraph { 2a -> Y }", 1, 11, "cannot stand here"),
    ("dot", "digraph { /* A -> Y }", 1, 11, "ends with */"),
    ("dot", "digraf { }", 1, 1, "expected 'digraph'"),
    ("gml", "graph [ directed 1 x [ y 1 ]", 2, 1, "expected ']', found EOF"),
    ("gml", "graph [ directed 1\n  node [ id 1 ? ] ]", 2, 15, "cannot tokenize"),
    ("gml", "graph [ x latent ]", 1, 11, "expected an int, float, string"),
    ("dagitty", "pdag { A -> Y }", 1, 1, "this is a `pdag`"),
    ("dagitty", "dag { A -- Y }", 1, 7, "leaves the direction open"),
    ("dagitty", "dag { A -> Y B @-> Y }", 1, 14, "leaves the direction open"),
    ("dagitty", "dag { A -> Y\n S [selected] }", 2, 5, "only those that it lets in"),
    ("dagitty", "dag { A [outcome] B [outcome] C -> A }", 1, 22, "one target"),
    ("dagitty", "A -> B", 1, 1, "expected 'dag'"),
    (
        "bif",
        "variable A { type discrete [3] {a, b, c}; }\nvariable B { type discrete [2] {0, 1}; }\n"
        'probability ( B | A ) { }\nnetwork n { property target = "B"; }',
        1,
        10,
        "has 3 states",
    ),
    ("bif", "variable A { }", 1, 10, "has no type"),
    ("bif", "variable A { type continuous; }", 1, 19, "expected 'discrete'"),
    ("bif", "variable A { type discrete [2] {0, 1}; }\nvariable A { }", 2, 10, "declared before"),
    ("bif", "variable Abc { type discrete [2] {0, 1}; }\nprobability ( Abd | Abc ) { }", 2, 15, "Did you mean 'Abc'?"),
    ("bif", "variable A { type discrete [2] {0, 1}; } probability (A) { } probability (A) { }", 1, 75, "one before"),
    ("bif", "probability (A) { (1 }", 1, 22, "closes the last open one"),
    ("bif", "probability (A) { ( 1", 1, 22, "closes the last open one"),
    ("bif", "variable A { property latent = maybe; }", 1, 14, "true or false"),
    ("bif", "table", 1, 1, "expected 'network'"),
    ("json", '{"edges": [["A", "B"],]}', 1, 23, "this is no JSON"),
    ("json", '{"edges": [], "edges": []}', 1, 15, "stands twice"),
    ("json", '{"edges": [[NaN, "A"]]}', 1, 13, "finite"),
    ("json", '{"edges": [[1e999, "A"]]}', 1, 13, "finite"),
    ("json", '{"edges": ' + "9" * 5000 + "}", 1, 11, "finite"),
    ("json", '{"edges": [\n', 2, 1, "the text ends here"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "line", "column", "message"), REFUSED)
def test_refuses_at_the_place(name: str, text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_graph(text, name)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


REFUSED_GML = [
    ("graph [ node [ id 1 ] ]", "`directed 1` is missing"),
    ("graph [ directed 0 ]", "`directed 1` is missing"),
    ("graph [ directed 1 node [ id 1 ]\nnode [ id 1 ] ]", "node id 1 is duplicated"),
    ('graph [ directed 1 node [ id 1 label "A" ] node [ id 2 label "A" ] ]', "labels differ, but 'A'"),
    ('graph [ directed 1 node [ label "A" ] ]', "no 'id' attribute"),
    ("graph [ directed 1 node [ id 1 ]\n edge [ source 1 target 7 ] ]", "undefined target 7"),
    ("graph [ directed 1 edge [ source 1 ] ]", "no 'target' attribute"),
    ("graph [ directed 1 node [ id 1 id 2 ] ]", "networkx cannot read this GML"),
    ("graph [ directed 1 node 1 ]", "networkx cannot read this GML"),
    ('graph [ directed 1 node [ id 1 label "A" label "B" ] ]', "label is one number or one text"),
    ("graph [ directed 1 node [ id 1 latent 7 ] ]", "true or false"),
    ('graph [ directed 1 target "A" target "B" node [ id 1 label "A" ] node [ id 2 label "B" ] ]', "one target"),
    ("graph [ directed 1 ] graph [ ]", "more than one graph"),
    ("Version 1", "contains no graph"),
    ("graph [ " + "x [ " * 5000 + "] " * 5000 + "]", "nest too deep"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED_GML)
def test_gml_that_networkx_or_the_rules_refuse(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_graph(text, "gml")
    assert message in str(caught.value)


@pytest.mark.parametrize("odd", ["()", "[]", "NAN", "5", "1.0", "&amp;", "&#38;", '"', "a\nb", "é", "#", "]", " x "])
def test_names_that_gml_or_networkx_could_take_for_something_else(odd: str) -> None:
    graph = CausalGraph([("a", odd), (odd, "y")], target="y", controllable=["a"], bias=["a"])
    assert parse_graph(print_graph(graph, "gml"), "gml") == graph
    aimed = CausalGraph([("a", odd)], target=odd)
    assert parse_graph(print_graph(aimed, "gml"), "gml") == aimed


REFUSED_JSON = [
    ("[]", "$"),
    ("{}", "$"),
    ('{"edges": {}}', "$.edges"),
    ('{"edges": [["A", "B"], ["A"]]}', "$.edges[1]"),
    ('{"edges": [["A", "B"], "AB"]}', "$.edges[1]"),
    ('{"edges": [["A", 1]]}', "$.edges[0][1]"),
    ('{"edges": [["A", "B"], ["A", "B"]], "target": "B"}', "$.edges[1]"),
    ('{"edges": [["A", "B"]], "latent": ["A", null]}', "$.latent[1]"),
    ('{"edges": [["A", "B"]], "nodes": {"A": {}}}', "$.nodes"),
    ('{"nodes": ["A", " "]}', "$.nodes[1]"),
    ('{"edges": [["A", "B"]], "target": 1}', "$.target"),
    ('{"edges": [["A", "B"]], "targte": "B"}', "$.targte"),
    ('{"edges": [["A", "B"]], "a b": "B"}', '$["a b"]'),
    ('{"nodes": {}}', "$.nodes"),
    ('{"nodes": {"A": 1}}', "$.nodes.A"),
    ('{"nodes": {"A": {"biass": 1}}}', "$.nodes.A.biass"),
    ('{"nodes": {"A": {"latent": 1}}}', "$.nodes.A.latent"),
    ('{"nodes": {"A": {"parents": ["B"]}}}', "$.nodes.A.parents"),
    ('{"nodes": {"A": {"parents": {"B c": 1}}}}', '$.nodes.A.parents["B c"]'),
    ('{"nodes": {"B": {}, "A": {"parents": {"B": 1, "A": 1}}}, "target": "A"}', "$.nodes.A.parents.A"),
    ('{"nodes": {"A": {}}, "controllable": [1]}', "$.controllable[0]"),
    ('{"nodes": {"A": {}}, "edgs": []}', "$.edgs"),
]


@pytest.mark.parametrize(("text", "where"), REFUSED_JSON)
def test_json_is_refused_at_its_path(text: str, where: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_graph(text, "json")
    assert caught.value.where == where


def test_the_rules_of_graphs_stay_graph_errors() -> None:
    with pytest.raises(GraphError, match="no cycles"):
        parse_graph("A -> B -> A\nA -> Y", "edgelist", target="Y")
    with pytest.raises(GraphError, match=r"target must name nodes .* Did you mean 'buy'"):
        parse_graph("ad -> buy\ntarget: bay", "edgelist")
    with pytest.raises(GraphError, match="latent must name nodes"):
        parse_graph("A -> Y\nlatent: U", "edgelist", target="Y")
    with pytest.raises(GraphError, match="list of names"):
        parse_graph("U -> Y", "edgelist", target="Y", latent="U")
    with pytest.warns(DobanditWarning, match="cannot change 'Y'"):
        parse_graph("A -> Y\nB", "edgelist", target="Y")


def test_the_target_is_asked_for_and_never_guessed() -> None:
    with pytest.raises(GraphError, match=r"target=\.\.\. \(or --target.* 'Y'\.$"):
        parse_graph("A -> Y\nA -> U\nalone\nlatent: U", "edgelist")
    with pytest.raises(GraphError, match=r"in the file\.$"):
        parse_graph("A -> Y\nA -> Z", "edgelist")


def test_arguments_change_what_the_file_says() -> None:
    text = "target: Y\nlatent: U\ncontrollable: A\nbias: A\nU -> B\nV -> B\nA -> B -> Y\nB -> Z"
    with pytest.warns(DobanditWarning, match="'Y'"):
        graph = parse_graph(text, "edgelist", target="Z", latent=["V"], controllable=["B", "Y"], bias=["B"])
    assert (graph.target, graph.latent) == ("Z", ("U", "V"))
    assert (graph.controllable, graph.bias) == (("B", "Y"), ("B",))
    two = parse_graph("dag { Y [outcome] Z [outcome] A -> Y A -> Z }", "dagitty", target="Z", controllable=["A"])
    assert two.target == "Z"


def test_unknown_formats_are_listed() -> None:
    with pytest.raises(GraphError, match=r"edgelist, json, dot, gml, dagitty, bif, but got 'jsn'. Did you mean 'json'"):
        parse_graph("A -> Y", "jsn")
    with pytest.raises(GraphError, match="format is one of"):
        print_graph(SHOP, "png")


def test_half_a_surrogate_pair_is_no_name() -> None:
    with pytest.raises(GraphError, match="surrogate"):
        CausalGraph([("\ud800", "Y")], target="Y")
