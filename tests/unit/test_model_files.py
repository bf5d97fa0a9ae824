"""Model files: round trips, located errors, and the schema."""

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pytest
from hypothesis import assume, given

import dobandit as dob
from dobandit.errors import DobanditError, GraphError, ModelError, ParseError
from dobandit.model.links import BUILDERS
from dobandit.model.model_files import parse_model, print_model, read_graph_or_model, read_model
from helpers.worlds import bglms, quietly, relaxed

SCHEMA = json.loads(files("dobandit.model").joinpath("schemas/model.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)  # `jsonschema.validate` would check the schema itself each time
EXAMPLE = {
    "target": "Y",
    "nodes": {
        "X2": {"bias": 0.3},
        "U": {"latent": True, "bias": 0.5},
        "Y": {"link": "identity", "bias": 0.0, "parents": {"X2": 0.1, "U": 0.2}},
    },
}


def changed(path, value):
    document = json.loads(json.dumps(EXAMPLE))
    *inner, last = path
    part = document
    for key in inner:
        part = part[key]
    part[last] = value
    return json.dumps(document)


def test_the_documented_example_is_the_model_it_describes():
    model = parse_model(json.dumps(EXAMPLE))
    assert model.weights == {"U": 0.5, "X2": 0.3, "Y": 0.0, ("U", "Y"): 0.2, ("X2", "Y"): 0.1}
    assert model.graph.latent == ("U",)
    assert model.graph.bias == ("U", "X2", "Y")
    jsonschema.validate(EXAMPLE, SCHEMA)


@relaxed(max_examples=60)
@given(bglms())
def test_reading_what_was_written_gives_the_same_model(model):
    assume(all(link.name in BUILDERS for link in model.links))  # a link of the user's own does not fit into a file
    text = print_model(model)
    VALIDATOR.validate(json.loads(text))
    assert quietly(parse_model, text) == model


@pytest.mark.parametrize("name", list(dob.paper.MODELS))
def test_the_papers_models_survive_a_file(name, tmp_path):
    path = tmp_path / "model.json"
    dob.paper.MODELS[name].save(path)
    assert dob.BinaryGLM.from_file(path) == dob.paper.MODELS[name]


def test_continuous_models_survive_a_file(tmp_path):
    weights = {"X": 0.5, "Y": 0.1, ("X", "Y"): 0.5}
    model = dob.LinearModel(dob.CausalGraph([("X", "Y")], "Y"), weights, noise={"X": 0.25})
    model.save(tmp_path / "m.json")
    assert dob.LinearModel.from_file(tmp_path / "m.json") == model
    with pytest.raises(ModelError, match="continuous"):
        dob.BinaryGLM.from_file(tmp_path / "m.json")


def test_controllable_is_kept_when_it_is_not_the_default():
    model = dob.BinaryGLM.blm({"A": 0.1, "B": 0.1, ("A", "Y"): 0.5, ("B", "Y"): 0.4}, "Y", controllable=["B"])
    assert parse_model(print_model(model)).graph.controllable == ("B",)


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        (changed(["nodes", "Y", "parents", "X2"], "lots"), "$.nodes.Y.parents.X2", "number"),
        (changed(["nodes", "Y", "parents", "X2"], -1.1), "$.nodes.Y.parents.X2", "between -1 and 1"),
        (changed(["nodes", "Y", "parents", "X2"], -0.1), "$.nodes.Y", "'X2' at 1 and all other parents at 0"),
        (changed(["nodes", "Y", "link"], "exponential").replace("0.1", "-0.1"), "$.nodes.Y.parents.X2", "at least 0"),
        (changed(["nodes", "Y", "parents", "X2"], 0.9), "$.nodes.Y", "probability would be 1.1"),
        (changed(["nodes", "Y", "parents", "Z"], 0.1), "$.nodes.Y.parents", "'Z'"),
        (changed(["nodes", "X2", "bias"], None), "$.nodes.X2.bias", "number"),
        (changed(["nodes", "X2", "bias"], True), "$.nodes.X2.bias", "number"),
        (changed(["nodes", "Y", "link"], "logit"), "$.nodes.Y.link", "logistic"),
        (changed(["nodes", "Y", "link"], {"name": "logistic", "shfit": 1}), "$.nodes.Y.link", "shfit"),
        (changed(["nodes", "Y", "weight"], 1), "$.nodes.Y", "weight"),
        (changed(["kind"], "discrete"), "$.kind", "discrete"),
        (changed(["nodes", "X2"], 3), "$.nodes.X2", ""),
        (changed(["target"], 3), "$.target", ""),
        (changed(["nodes", "U", "latent"], "yes"), "$.nodes.U.latent", ""),
        (changed(["nodes", "X2", "context"], 1), "$.nodes.X2.context", "true or false"),
        (changed(["controllable"], "X2"), "$.controllable", ""),
        ("[1, 2]", "$", "object"),
        ('{"target": "Y", "target": "X"}', "line 1", "twice"),
        ('{"target": "Y",}', "line 1", ""),
        (json.dumps(EXAMPLE).replace("0.3", "NaN"), "line 1", "NaN"),
        ("[" * 100_000, "line 1", ""),
    ],
)
def test_errors_tell_the_place(text, place, says):
    with pytest.raises(ParseError) as caught:
        parse_model(text)
    assert place in str(caught.value)
    assert says in str(caught.value)


def test_graph_errors_in_a_model_file_name_the_file(tmp_path):
    path = tmp_path / "loop.json"
    path.write_text(
        json.dumps(
            {
                "target": "Y",
                "nodes": {"A": {"parents": {"B": 0.1}}, "B": {"parents": {"A": 0.1}}, "Y": {"parents": {"A": 0.1}}},
            }
        )
    )
    with pytest.raises(GraphError, match=r"loop\.json: .*'A' -> 'B' -> 'A'"):
        read_model(path)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"{}", b"null", b'{"nodes": {}}', b"nonsense"])
def test_files_that_are_no_models_are_refused_in_words(content, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(DobanditError, match=r"bad\.json"):
        read_model(path)
    with pytest.raises(DobanditError):
        read_model(tmp_path)


def test_a_graph_file_is_not_a_model(tmp_path):
    path = tmp_path / "graph.json"
    dob.write_graph(dob.paper.G1.graph, path)
    assert read_graph_or_model(path) == dob.paper.G1.graph
    with pytest.raises(ParseError, match="weights"):
        read_model(path)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.json"
    dob.paper.G1.save(path)
    before = path.read_bytes()
    own = dob.links.custom(
        "steep",
        np.tanh,
        lambda x: 1 - np.tanh(x) ** 2,
        lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
        bounds=(1, 1, 0.01),
        domain=(0, 3),
    )
    model = dob.BinaryGLM(dob.CausalGraph([("X", "Y")], "Y"), {"X": 0.5, "Y": 0.1, ("X", "Y"): 0.5}, links=own)
    with pytest.raises(ModelError, match="your own"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["target: Y\nA -> Y\n", "digraph { A -> Y }", "A Y\n"])
def test_a_graph_is_said_to_be_no_model(tmp_path, text):
    path = tmp_path / "graph.txt"
    path.write_text(text)
    with pytest.raises(ParseError, match="begins like a graph, which has no weights; a model has nodes with bias"):
        read_model(path)
