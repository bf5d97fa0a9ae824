"""The context role: what is observed before acting, in graphs, files, models and on the command line."""

import json
import pickle
from importlib.resources import files

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

from dobandit import BinaryGLM, CausalGraph, LinearModel, expect, from_networkx, parse_graph, print_graph, project
from dobandit.cli.main import cli
from dobandit.errors import GraphError, ParseError
from dobandit.graph.formats import FORMATS
from dobandit.model.model_files import parse_model, print_model, read_graph_or_model
from helpers.worlds import brute_force_means, conditionals, joint

EDGES = [("mobile", "visit"), ("returning", "visit"), ("mobile", "returning"), ("ad", "visit"), ("visit", "buy")]
GRAPH = CausalGraph(EDGES, target="buy", context=["returning", "mobile"])
WEIGHTS = {
    "mobile": 0.4,
    "returning": 0.6,
    ("mobile", "returning"): -0.3,
    "ad": 0.5,
    "visit": 0.3,
    ("mobile", "visit"): -0.2,
    ("returning", "visit"): 0.3,
    ("ad", "visit"): 0.3,
    "buy": 0.1,
    ("visit", "buy"): 0.5,
}


def test_context_stands_in_the_graphs_order_and_is_not_controllable():
    assert GRAPH.context == ("mobile", "returning")
    assert GRAPH.controllable == ("ad", "visit")
    assert GRAPH.arrays.context.tolist() == [GRAPH.index("mobile"), GRAPH.index("returning")]
    assert GRAPH.arrays.context.dtype == np.int32
    assert CausalGraph(EDGES, target="buy").context == ()
    assert CausalGraph(EDGES, target="buy").arrays.context.shape == (0,)


def test_context_is_part_of_what_a_graph_is():
    settable = ["ad", "visit"]
    without = CausalGraph(EDGES, target="buy", controllable=settable)
    assert without != GRAPH
    assert hash(GRAPH) != hash(without)
    again = CausalGraph(EDGES, "buy", (), settable, None, (), ["mobile", "returning"])
    assert again == GRAPH
    assert hash(again) == hash(GRAPH)
    copy = pickle.loads(pickle.dumps(GRAPH))
    assert copy == GRAPH
    assert copy.context == GRAPH.context


def test_a_hidden_common_cause_of_context_is_refused_in_a_file_too():
    text = "target: buy\ncontext: mobile\nmobile -> buy\nad -> buy\nmobile <-> buy\n"
    with pytest.raises(GraphError, match=r"no hidden causes, but 'U_buy_mobile' -> 'mobile'"):
        parse_graph(text, "edgelist")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_it(name):
    text = print_graph(GRAPH, name)
    assert "context" in text
    assert parse_graph(text, name) == GRAPH
    few = CausalGraph(EDGES, target="buy", context=GRAPH.context, controllable=["ad"])
    assert parse_graph(print_graph(few, name), name) == few


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("edgelist", "target: buy\ncontext: mobile, returning\nmobile -> buy\nreturning -> buy\nad -> buy\n"),
        ("json", '{"target": "buy", "context": ["mobile", "returning"], '
                 '"edges": [["mobile", "buy"], ["returning", "buy"], ["ad", "buy"]]}'),
        ("dot", "digraph { target=buy; mobile [context=true]; returning [context=true]; "
                "{mobile returning ad} -> buy }"),
        ("dagitty", "dag { buy [outcome] mobile [context] returning [context] {mobile returning ad} -> buy }"),
        ("gml", 'graph [ directed 1 target "buy" node [ id 0 label "mobile" context 1 ] '
                'node [ id 1 label "returning" context 1 ] node [ id 2 label "ad" ] node [ id 3 label "buy" ] '
                "edge [ source 0 target 3 ] edge [ source 1 target 3 ] edge [ source 2 target 3 ] ]"),
    ],
)  # fmt: skip
def test_as_people_write_it(name, text):
    graph = parse_graph(text, name)
    assert (graph.context, graph.controllable) == (("mobile", "returning"), ("ad",))


def test_readers_add_context_to_what_the_file_says():
    text = "target: buy\ncontext: mobile\nmobile -> buy\nreturning -> buy\nad -> buy\n"
    assert parse_graph(text, "edgelist", context=["returning"]).context == ("mobile", "returning")
    with pytest.raises(GraphError, match="the string 'returning'"):
        parse_graph(text, "edgelist", context="returning")
    with pytest.raises(GraphError, match="both context and controllable"):
        parse_graph(text + "controllable: ad returning\n", "edgelist", context=["returning"])
    with pytest.raises(ParseError, match="context is true or false"):
        parse_graph("digraph { target=Y; A [context=maybe]; A -> Y; B -> Y }", "dot")


def test_nodes_marked_not_controllable_leave_context_alone():
    text = "digraph { target=Y; A [context=true]; B [controllable=false]; {A B C D} -> Y }"
    assert parse_graph(text, "dot").controllable == ("C", "D")


def test_networkx_takes_context_as_an_argument():
    nx = pytest.importorskip("networkx")
    graph = from_networkx(nx.DiGraph([("mobile", "buy"), ("ad", "buy")]), "buy", context=["mobile"])
    assert (graph.context, graph.controllable) == (("mobile",), ("ad",))


# -- models ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [BinaryGLM, LinearModel])
def test_model_files_keep_it(kind, tmp_path):
    model = kind(GRAPH, WEIGHTS)
    document = json.loads(print_model(model))
    schema = json.loads(files("dobandit.model").joinpath("schemas/model.schema.json").read_text())
    jsonschema.validate(document, schema)
    assert "controllable" not in document
    assert [name for name, node in document["nodes"].items() if node.get("context")] == ["mobile", "returning"]
    assert parse_model(print_model(model)) == model
    model.save(tmp_path / "model.json")
    assert read_graph_or_model(tmp_path / "model.json") == model
    with pytest.raises(GraphError, match="drop the options"):
        read_graph_or_model(tmp_path / "model.json", context=["ad"])


def test_models_read_off_their_weights_have_context_too():
    assert BinaryGLM.blm(WEIGHTS, "buy", context=["mobile", "returning"]).graph == GRAPH
    assert LinearModel.of_weights(WEIGHTS, "buy", context=["mobile", "returning"]).graph == GRAPH
    weights = {"a": 0.2, "b": 0.2, ("a", "Y"): 0.5, ("b", "Y"): 0.5, "Y": 0.1}
    for build in (BinaryGLM.linear_threshold, BinaryGLM.independent_cascade):
        weights["Y"] = 0.0
        assert build(weights, "Y", context=["a"]).graph.context == ("a",)


def test_seeing_the_context_is_the_same_as_setting_it():
    """The rules of the role, by enumeration: E[X | context = c, do(S)] = E[X | do(context = c, S)]."""
    weights = WEIGHTS | {"mood": 0.5, ("mood", "buy"): 0.2, ("mobile", "mood"): -0.4}
    model = BinaryGLM.blm(weights, "buy", latent=["mood"], context=["mobile", "returning"])
    for do in ({}, {"ad": 1}, {"visit": 0}):
        seen = conditionals(joint(model, do), "buy", ("mobile", "returning"))
        assert len(seen) == 4
        for (mobile, returning), (p, _) in seen.items():
            together = {"mobile": mobile, "returning": returning} | do
            assert expect(model, together).value == pytest.approx(p, abs=1e-12)
            assert brute_force_means(model, together)["buy"] == pytest.approx(p, abs=1e-12)


def test_projection_keeps_it():
    edges = [*EDGES, ("mood", "buy"), ("mobile", "mood")]
    graph = CausalGraph(edges, "buy", latent=["mood"], context=["mobile", "returning"])
    assert project(graph).context == ("mobile", "returning")
    assert ("mobile", "buy") in project(graph).edges
    model = BinaryGLM(graph, dict.fromkeys([*graph.bias, *edges], 0.1))
    assert project(model).graph == project(graph)


# -- command line ---------------------------------------------------------------------------------------------


def run(*arguments, code=0):
    done = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_check_and_project_on_the_command_line(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("context: mobile\nmobile -> returning -> buy\nad -> buy\n")
    report = json.loads(run("check", path, "--target", "buy", "--json"))
    assert (report["context"], report["controllable"]) == (["mobile"], ["ad", "returning"])
    more = json.loads(run("check", path, "--target", "buy", "--context", "returning", "--json"))
    assert (more["context"], more["controllable"]) == (["mobile", "returning"], ["ad"])
    assert "observed before acting" in run("check", path, "--target", "buy")
    text = run("project", path, "--target", "buy", "--context", "returning")
    assert "context: mobile returning" in text


def test_check_lists_harmful_effects(tmp_path):
    path = tmp_path / "model.json"
    BinaryGLM(GRAPH, WEIGHTS).save(path)
    report = json.loads(run("check", path, "--json"))
    assert report["nonnegative"] is False
    assert report["harmful"] == [
        {"cause": "mobile", "effect": "returning", "weight": -0.3},
        {"cause": "mobile", "effect": "visit", "weight": -0.2},
    ]
    words = " ".join(report["theory"]["in_words"])
    assert "sets of exactly K" in words
    assert "policies need nonnegative weights" in words
    shown = " ".join(run("check", path).split())
    assert "harmful effects" in shown
    assert "mobile -> visit (-0.2)" in shown
