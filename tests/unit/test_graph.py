"""CausalGraph: what it refuses and how it says so, its order, and what it looks up (against networkx)."""

import itertools
import pickle
import random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dobandit import BinaryGLM, CausalGraph, LinearModel, parse_graph
from dobandit.errors import DobanditError, DobanditWarning, GraphError
from dobandit.graph.ordering import natural_key, topological_order
from helpers.worlds import dag_edges, graphs, quietly, relaxed

EDGES = [("ad", "visit"), ("mail", "visit"), ("visit", "buy")]


def message(*args, **kwargs) -> str:
    with pytest.raises(GraphError) as caught:
        CausalGraph(*args, **kwargs)
    assert isinstance(caught.value, DobanditError)
    return str(caught.value)


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"edges": [], "target": "Y"}, ["needs nodes"]),
        ({"edges": [("a", "b"), ("b", "a"), ("b", "Y")], "target": "Y"}, ["cycle", "'a' -> 'b' -> 'a'"]),
        (
            {"edges": [*EDGES, ("buy", "refund")], "target": "buy", "context": ["refund"]},
            ["effect of the target 'buy'"],
        ),
        ({"edges": [*EDGES, ("buy", "refund")], "target": "buy", "controllable": ["refund"]}, ["none of 'refund' has"]),
        ({"edges": EDGES, "target": "by"}, ["target", "'by'", "Did you mean 'buy'?"]),
        ({"edges": EDGES, "target": "zzzz"}, ["target", "'zzzz'"]),
        ({"edges": EDGES, "target": None}, ["target", "None"]),
        ({"edges": EDGES, "target": ["buy"]}, ["target", "['buy']"]),
        ({"edges": EDGES, "target": "buy", "latent": ["vist"]}, ["latent", "'vist'", "Did you mean 'visit'?"]),
        (
            {"edges": EDGES, "target": "buy", "controllable": ["mial"]},
            ["controllable", "'mial'", "Did you mean 'mail'?"],
        ),
        ({"edges": EDGES, "target": "buy", "bias": ["vizit"]}, ["bias", "'vizit'", "Did you mean 'visit'?"]),
        ({"edges": EDGES, "target": "buy", "context": ["mial"]}, ["context", "'mial'", "Did you mean 'mail'?"]),
        ({"edges": EDGES, "target": "buy", "context": "mail"}, ["context", "the string 'mail'", "['mail']"]),
        ({"edges": EDGES, "target": "buy", "context": ["buy"]}, ["before acting", "'buy' is the target"]),
        (
            {"edges": EDGES, "target": "buy", "context": ["mail"], "latent": ["mail"]},
            ["context is observed", "'mail' is both context and latent"],
        ),
        (
            {"edges": EDGES, "target": "buy", "context": ["mail"], "controllable": ["mail", "ad"]},
            ["not set", "'mail' is both context and controllable"],
        ),
        (
            {"edges": EDGES, "target": "buy", "context": ["mail", "visit"]},
            ["every cause of a context variable is context too", "'ad' -> 'visit'", "Add 'ad' to context"],
        ),
        (
            {
                "edges": [*EDGES, ("mood", "mail"), ("mood", "buy")],
                "target": "buy",
                "context": ["mail"],
                "latent": ["mood"],
            },
            ["no hidden causes", "'mood' -> 'mail'", "seeing 'mail' would tell something about 'mood'"],
        ),
        ({"edges": EDGES, "target": "buy", "latent": ["buy"]}, ["must be observed", "'buy'", "latent"]),
        (
            {"edges": EDGES, "target": "buy", "latent": ["ad", "visit"], "controllable": ["mail", "ad", "visit"]},
            ["latent and controllable", "'ad', 'visit'"],
        ),
        ({"edges": EDGES, "target": "buy", "controllable": ["ad", "buy"]}, ["target cannot be set", "'buy'"]),
        ({"edges": [*EDGES, ("ad", "visit")], "target": "buy"}, ["once", "'ad' -> 'visit'", "again"]),
        ({"edges": [*EDGES, ("ad", "ad")], "target": "buy"}, ["cause itself", "'ad' -> 'ad'"]),
        ({"edges": EDGES, "target": "ad"}, ["some controllable variable must have a path to 'ad'"]),
        ({"edges": [("a", "b")], "nodes": ["Y"], "target": "Y"}, ["path to 'Y'", "none of 'a', 'b'"]),
        ({"edges": EDGES, "target": "buy", "controllable": []}, ["path to 'buy'", "there is none"]),
        ({"edges": [("U", "Y")], "target": "Y", "latent": ["U"]}, ["path to 'Y'", "there is none"]),
        ({"edges": [("a", "Y"), ("a", "b")], "target": "Y", "controllable": ["b"]}, ["path to 'Y'", "none of 'b'"]),
        ({"edges": ["ab"], "target": "b"}, ["pair (cause, effect)", "'ab'"]),
        ({"edges": [("a", "b", "c")], "target": "b"}, ["pair (cause, effect)", "('a', 'b', 'c')"]),
        ({"edges": [("a", 3)], "target": "a"}, ["non-empty strings", "3"]),
        ({"edges": [("a", "")], "target": "a"}, ["non-empty strings", "''"]),
        ({"edges": [(" ", "a")], "target": "a"}, ["non-empty strings", "' '"]),
        ({"edges": EDGES, "target": "buy", "latent": "ad"}, ["latent", "the string 'ad'", "['ad']"]),
        ({"edges": EDGES, "target": "buy", "controllable": "ad"}, ["controllable", "the string 'ad'"]),
        ({"edges": EDGES, "target": "buy", "bias": "ad"}, ["bias", "the string 'ad'"]),
        ({"edges": EDGES, "target": "buy", "nodes": "ad"}, ["nodes", "the string 'ad'"]),
    ],
)
def test_illegal_graph_is_refused_naming_the_nodes(args, words):
    text = message(**args)
    assert all(word in text for word in words), text


def test_the_cycle_named_is_a_real_one_in_the_direction_of_the_edges():
    ring = [(f"n{i}", f"n{(i + 1) % 5}") for i in range(5)]
    lead_in = [("a", "n3"), ("n2", "z"), ("z", "Y")]
    text = message([*lead_in, *ring], target="Y")
    assert "'n0' -> 'n1' -> 'n2' -> 'n3' -> 'n4' -> 'n0'" in text


@relaxed(max_examples=60)
@given(dag_edges(least=3), st.data())
def test_any_back_edge_is_reported_as_a_path_of_the_graph(drawn, data):
    nodes, edges = drawn
    reachable = nx.DiGraph(edges)
    pairs = [(a, b) for a in reachable for b in nx.descendants(reachable, a)]
    a, b = data.draw(st.sampled_from(sorted(pairs)))
    edges = [*edges, (b, a)]
    text = message(edges, target=nodes[-1], nodes=nodes)
    path = text.split("but ")[1].split(" is one")[0].replace("'", "").split(" -> ")
    assert path[0] == path[-1]
    assert len(set(path)) == len(path) - 1
    assert set(itertools.pairwise(path)) <= set(edges)


def test_the_first_edge_that_is_listed_again_is_named():
    text = message([("a", "b"), ("c", "Y"), ("c", "Y"), ("a", "b"), ("c", "Y")], target="Y")
    assert "'c' -> 'Y' is listed again" in text


def test_long_lists_of_names_are_cut():
    text = message([(f"a{i}", f"b{i}") for i in range(50)], target="Y", nodes=["Y"])
    assert "and 92 more" in text


def test_useless_controllables_are_listed_in_a_warning():
    with pytest.warns(DobanditWarning, match=r"'x2', 'x10' cannot change 'Y'"):
        graph = CausalGraph([("a", "Y"), ("a", "x10"), ("x2", "x3")], target="Y", controllable=["a", "x10", "x2"])
    assert graph.irrelevant == ("x2", "x10")


def test_useless_nodes_that_are_not_controllable_need_no_warning():
    graph = CausalGraph([("a", "Y"), ("a", "b")], target="Y", controllable=["a"])
    assert graph.irrelevant == ()


@pytest.mark.parametrize("name", ["Visit", 3, None, ("ad", "visit")])
def test_looking_up_an_unknown_name_is_refused(name):
    graph = CausalGraph(EDGES, target="buy")
    assert name not in graph
    for look in (graph.parents, graph.children, graph.ancestors, graph.descendants, graph.index, graph.has_bias):
        with pytest.raises(GraphError, match="none"):
            look(name)


# -- roles ----------------------------------------------------------------------------------------------------


def test_defaults_of_the_roles():
    graph = CausalGraph([("U", "a"), ("a", "Y"), ("U", "b"), ("b", "Y")], target="Y", latent=["U"])
    assert graph.latent == ("U",)
    assert graph.observed == ("a", "b", "Y")
    assert graph.controllable == ("a", "b")
    assert graph.bias == ("a", "b", "Y")
    assert [graph.has_bias(n) for n in graph] == [n != "U" for n in graph]
    assert (len(graph), graph.edge_count, "U" in graph, "V" in graph) == (4, 4, True, False)
    assert "4 nodes, 1 latent, 4 edges" in repr(graph)


def test_biases_can_be_switched_off_and_on_for_hidden_nodes_too():
    graph = CausalGraph([("U", "a"), ("a", "Y")], target="Y", latent=["U"], bias=["U"])
    assert graph.bias == ("U",)
    assert not graph.has_bias("a")


def test_names_may_be_any_language():
    graph = CausalGraph([("价格", "кнопка"), ("кнопка", "ação 🎯")], target="ação 🎯")
    assert graph.ancestors("ação 🎯") == ("价格", "кнопка")
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_edges_may_come_from_a_generator_and_as_lists():
    assert CausalGraph((list(edge) for edge in EDGES), target="buy") == CausalGraph(EDGES, target="buy")


# -- a value among values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["target", "nodes", "arrays", "edges", "irrelevant", "anything"])
def test_a_graph_does_not_change(name):
    graph = CausalGraph(EDGES, target="buy")
    with pytest.raises(AttributeError):
        setattr(graph, name, "x")
    with pytest.raises(AttributeError):
        delattr(graph, name)
    assert graph == CausalGraph(EDGES, target="buy")


def test_arrays_are_read_only():
    arrays = CausalGraph(EDGES, target="buy", context=["mail"]).arrays
    assert arrays._fields[-1] == "context"
    for array in arrays:
        assert isinstance(array, int) or not array.flags.writeable


@relaxed(max_examples=60)
@given(graphs(), st.randoms(use_true_random=False))
def test_equal_whatever_the_order_of_edges_and_roles(graph, shuffler: random.Random):
    edges, bias, nodes = list(graph.edges), list(graph.bias), list(graph.nodes)
    for listing in (edges, bias, nodes):
        shuffler.shuffle(listing)
    again = quietly(CausalGraph, edges, target=graph.target, bias=bias, nodes=nodes)
    assert again == graph
    assert hash(again) == hash(graph)
    assert again.nodes == graph.nodes


@pytest.mark.parametrize(
    "change",
    [
        {"edges": [*EDGES, ("ad", "buy")]},
        {"bias": ["ad"]},
        {"controllable": ["ad"]},
        {"latent": ["visit"], "controllable": ["ad", "mail"], "bias": ["ad", "mail", "visit", "buy"]},
        {"nodes": ["other"], "controllable": ["ad", "mail", "visit"]},
    ],
)
def test_any_difference_makes_graphs_unequal(change):
    assert CausalGraph(**{"edges": EDGES, "target": "buy"} | change) != CausalGraph(EDGES, target="buy")


def test_a_graph_is_no_other_thing():
    assert CausalGraph(EDGES, target="buy") != "graph"


@relaxed(max_examples=50)
@given(graphs())
def test_pickle_round_trip(graph):
    again = pickle.loads(pickle.dumps(graph))
    assert again == graph
    assert (again.edges, again.bias, again.controllable) == (graph.edges, graph.bias, graph.controllable)
    assert not again.arrays.parent.flags.writeable


# -- look-ups and order ---------------------------------------------------------------------------------------


@relaxed(max_examples=75)
@given(dag_edges(most=10))
def test_relations_agree_with_networkx(drawn):
    nodes, edges = drawn
    graph = quietly(CausalGraph, edges, target=nodes[-1], nodes=nodes)
    other = nx.DiGraph(edges)
    other.add_nodes_from(nodes)
    for v in nodes:
        assert set(graph.parents(v)) == set(other.predecessors(v))
        assert set(graph.children(v)) == set(other.successors(v))
        assert set(graph.ancestors(v)) == nx.ancestors(other, v)
        assert set(graph.descendants(v)) == nx.descendants(other, v)
        for found in (graph.parents(v), graph.children(v), graph.ancestors(v), graph.descendants(v)):
            assert list(found) == sorted(set(found), key=graph.index)
    assert set(graph.edges) == set(edges)
    assert graph.edge_count == len(edges)
    key = dict(zip(sorted(nodes, key=lambda n: int(n[1:])), range(len(nodes)), strict=True))
    assert graph.nodes == tuple(nx.lexicographical_topological_sort(other, key=key.get))
    assert graph.topological_order == graph.nodes


@relaxed(max_examples=60)
@given(graphs())
def test_arrays_tell_the_same_as_the_names(graph):
    arrays, n = graph.arrays, len(graph)
    name = ("", *graph.nodes)
    assert arrays.parent_ptr.shape == arrays.child_ptr.shape == (n + 2,)
    assert len(arrays.parent) == len(arrays.child) == graph.edge_count + len(graph.bias) == arrays.parent_ptr[-1]
    expected = {("", b) for b in graph.bias} | set(graph.edges)
    for ptr, flat, flip in ((arrays.parent_ptr, arrays.parent, True), (arrays.child_ptr, arrays.child, False)):
        slots = [(v, int(w)) for v in range(n + 1) for w in flat[ptr[v] : ptr[v + 1]]]
        assert slots == sorted(slots)
        assert {(name[w], name[v]) if flip else (name[v], name[w]) for v, w in slots} == expected
        assert all((w < v) == flip for v, w in slots)
    assert [name[i] for i in np.flatnonzero(arrays.latent)] == list(graph.latent)
    assert [name[i] for i in arrays.controllable] == list(graph.controllable)
    assert name[arrays.target] == graph.target


@relaxed(max_examples=60)
@given(graphs(most=12), st.randoms(use_true_random=False))
def test_from_arrays_equals_the_constructor(graph, shuffler: random.Random):
    names, edges = list(graph.nodes), list(graph.edges)
    shuffler.shuffle(names)
    shuffler.shuffle(edges)
    tails = np.array([names.index(a) for a, _ in edges])
    heads = np.array([names.index(b) for _, b in edges])
    assert CausalGraph.from_arrays(names, tails, heads, graph.target, bias=graph.bias) == graph


@pytest.mark.parametrize(
    ("names", "tails", "heads", "words"),
    [
        (["a", "Y"], [0], [2], "positions from 0 to 1"),
        (["a", "Y"], [-1], [1], "positions from 0 to 1"),
        (["a", "Y"], [0, 0], [1], "one length"),
        (["a", "Y"], [[0]], [[1]], "two arrays"),
        (["a", "Y"], 0, 1, "two arrays"),
        (["a", "Y"], [0.0], [1.0], "positions from 0 to 1"),
        (["a", "Y"], [], [], "path to 'Y'"),
        (["a", "a", "Y"], [0], [2], "twice"),
        (["a", "Y"], [0, 0], [1, 1], "listed again"),
        (["a", "Y"], [0, 1], [1, 1], "cause itself"),
        (["a", "b", "Y"], [0, 1, 1], [1, 0, 2], "'a' -> 'b' -> 'a'"),
        ([], [], [], "none"),
    ],
)
def test_from_arrays_refuses_in_words(names, tails, heads, words):
    with pytest.raises(GraphError, match=words):
        CausalGraph.from_arrays(names, tails, heads, "Y")


def test_numbers_in_names_sort_by_value():
    graph = CausalGraph([(f"X{i}", "Y") for i in (10, 9, 2, 100, 1)], target="Y")
    assert graph.nodes == ("X1", "X2", "X9", "X10", "X100", "Y")
    names = ["a", "X", "X1", "X01", "X1a", "X1a2", "X1a10", "X2", "X" + "9" * 5000, "x1", "1", "01", "10", "é1"]
    ordered = sorted(names, key=natural_key)
    names.reverse()
    assert ordered == sorted(names, key=natural_key), "ties are broken by the name itself"
    assert ordered.index("X1a2") < ordered.index("X1a10") < ordered.index("X2") < ordered.index("X" + "9" * 5000)


@relaxed(max_examples=30)
@given(st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_what_a_cycle_keeps_from_being_ordered_is_left_over(size, seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(0, 3 * size))
    a, b = rng.integers(0, size, (2, count))
    if rng.random() < 0.6:  # a DAG
        a, b = np.minimum(a, b), np.maximum(a, b)
        a, b = a[a != b], b[a != b]
    order, leftover = topological_order(a, b, size)
    assert sorted([*order, *leftover]) == list(range(size))
    place = {v: i for i, v in enumerate(order)}
    assert all(place[one] < place[other] for one, other in zip(a, b, strict=True) if other in place)
    assert all(any(one in leftover for one in a[b == other]) for other in leftover)


def test_a_long_chain_needs_no_recursion():
    names = [f"n{i}" for i in range(5000)]
    graph = CausalGraph(list(itertools.pairwise(names)), target=names[-1])
    assert graph.nodes == tuple(names)
    assert len(graph.ancestors(names[-1])) == 4999


@pytest.mark.parametrize("model", [BinaryGLM, LinearModel])
def test_a_model_stands_on_a_graph_of_networkx_too(model):
    graph = nx.DiGraph([("ad", "buy")], target="buy")
    assert model(graph, {"ad": 0.2, "buy": 0.1, ("ad", "buy"): 0.5}).graph.target == "buy"


def test_a_graph_is_printed_as_its_edge_list():
    graph = CausalGraph(
        [("ad", "visit"), ("Rabatt code", "visit"), ("visit", "buy"), ("mood", "buy")],
        target="buy",
        latent=["mood"],
        controllable=["ad", "Rabatt code"],
    )
    assert str(graph).splitlines() == [
        "target: buy",
        "latent: mood",
        'controllable: "Rabatt code" ad',
        '"Rabatt code" -> visit',
        "ad -> visit",
        "mood -> buy",
        "visit -> buy",
    ]
    assert parse_graph(str(graph), "edgelist") == graph
    assert repr(graph) == "CausalGraph(5 nodes, 1 latent, 4 edges, target='buy')"
    wide = CausalGraph([(f"X{i}", "Y") for i in range(100)], target="Y")
    assert str(wide).splitlines()[0] == "target: Y"
    assert str(wide).splitlines()[-1] == "... and 41 more lines"
