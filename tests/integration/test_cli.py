"""The command line as a user meets it: output, exit codes, one line on stderr for bad input."""

import json
import re
import subprocess
import sys

import pytest

import dobandit as dob
from helpers.commands import dobandit, dobandit_process

MODEL = {
    "target": "Y",
    "nodes": {
        "X2": {"bias": 0.3},
        "U": {"latent": True, "bias": 0.5},
        "Y": {"bias": 0.0, "parents": {"X2": 0.1, "U": 0.2}},
    },
}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(MODEL))
    return path


@pytest.fixture
def confounded(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("target: Y\nlatent: U\nU -> A\nU -> B\nA -> B\nB -> Y\nC -> A\n")
    return path


def test_check_reports_the_witness(confounded):
    report = json.loads(dobandit("check", confounded, "-k", 2, "--json").stdout)
    assert report["valid"] is True
    assert report["admissible"] is False
    assert report["witness"] == {"hidden": "U", "paths": [["U", "A"], ["U", "B"]]}
    assert report["arms"] == 3
    assert report["parents"]["B"] == 2
    assert report["refused_by"][0] == "project"
    assert "--always-set A" in report["ways_on"]
    assert report["mechanisms"] == {
        "A": [{"causes": ["C"], "where": [[]]}],
        "B": [{"causes": ["C", "A"], "where": [[]]}, {"causes": ["A"], "where": [["A"]]}],
    }
    text = dobandit("check", confounded, "-k", 2).stdout
    assert "not admissible" in text
    assert "answers in 2 ways: to 'A' where 'A' is set; to 'C', 'A' otherwise" in " ".join(text.split())
    assert "refused by" in text
    assert "--policy ucb" in text
    assert "3 sets of exactly 2" in text


def test_check_names_what_cannot_matter(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("A -> Y\nA -> Z\n")
    done = dobandit("check", path, "--target", "Y", "--json")
    assert json.loads(done.stdout)["cannot_matter"] == ["Z"]
    assert done.stderr.startswith("warning: ")


def test_check_of_a_model_speaks_of_the_guarantees(model):
    report = json.loads(dobandit("check", model, "--json").stdout)
    assert report["kind"] == "model"
    assert report["theory"]["kappa"] == 1.0
    assert report["theory"]["zeta"] == pytest.approx(0.3)
    assert report["theory"]["lambda_min_rounds"] >= 2
    assert "BLM-LR is guaranteed" in dobandit("check", model).stdout


def test_expect_prints_means_and_the_method(model):
    answer = json.loads(dobandit("expect", model, "--do", "X2=1", "--json").stdout)
    assert answer["means"] == pytest.approx({"X2": 1.0, "U": 0.5, "Y": 0.2})
    assert (answer["method"], answer["standard_error"]) == ("linear", 0.0)
    assert "0.200000" in dobandit("expect", model, "--do", "X2=1").stdout
    sampled = json.loads(dobandit("expect", model, "--method", "monte-carlo", "--samples", 1000, "--json").stdout)
    assert sampled["method"] == "monte-carlo"
    assert sampled["standard_error"] > 0


def test_project_writes_the_format_it_reads(model, tmp_path):
    out = tmp_path / "observed.json"
    dobandit("project", model, "-o", out)
    assert dob.BinaryGLM.from_file(out) == dob.project(dob.BinaryGLM.from_file(model))
    assert json.loads(dobandit("project", model).stdout) == json.loads(out.read_text())
    graph = tmp_path / "hidden.dot"
    graph.write_text('digraph { target="Y"; U [latent=true]; U -> A; U -> C; A -> Y; C -> Y }')
    dobandit("project", graph, "-o", tmp_path / "observed.dot")
    assert dob.read_graph(tmp_path / "observed.dot").latent == ()
    assert dobandit("project", graph).stdout.startswith("digraph")


def test_paper_lists_the_five_models():
    graphs = json.loads(dobandit("paper", "--json").stdout)["graphs"]
    assert {name: graph["arms"] for name, graph in graphs.items()} == {"G1": 20, "G2": 28, "G3": 15, "G4": 6, "G5": 10}
    assert graphs["G5"]["set"] == ["X2", "X4"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "absent.txt"],
        ["check", "."],
        ["check", "{graph}", "--target", "Z"],
        ["check", "{graph}", "-k", "9"],
        ["check", "{graph}", "-k", "-1"],
        ["check", "{graph}", "--latent", "Q"],
        ["project", "{graph}"],
        ["expect", "{graph}"],
        ["expect", "{model}", "--do", "U=1"],
        ["expect", "{model}", "--do", "X2=2"],
        ["expect", "{model}", "--do", "X2=nan"],
        ["expect", "{model}", "--do", "X2"],
        ["expect", "{model}", "--do", "Q=1"],
        ["expect", "{model}", "--do", "X2=1", "--do", "X2=0"],
        ["expect", "{model}", "--method", "guess"],
        ["expect", "{model}", "--samples", "0"],
        ["project", "{model}", "-o", "no/such/folder/out.json"],
        ["nonsense"],
        ["check"],
    ],
)
def test_bad_input_is_one_line_on_stderr_and_code_2(arguments, model, confounded, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = dobandit(*(a.format(model=model, graph=confounded) for a in arguments), code=2)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")


def test_an_invalid_file_is_said_in_json_too(tmp_path):
    path = tmp_path / "loop.txt"
    path.write_text("A -> B\nB -> A\nA -> Y\n")
    done = dobandit("check", path, "--target", "Y", "--json", code=2)
    assert json.loads(done.stdout)["valid"] is False


@pytest.mark.parametrize("command", ["check", "project", "expect", "paper", "simulate", "report", "reproduce"])
def test_help_has_an_example(command):
    text = dobandit(command, "--help").stdout
    assert "Example" in text
    assert f"dobandit {command}" in text


PROCESSES = {  # each command where nothing is loaded but what it loads itself
    "check {graph} -k 2": (0, "not admissible", ""),
    "check absent.txt": (2, "", "error: "),
    "nonsense": (2, "", "error: "),
    "expect {model} --do X2=1": (0, "0.200000", ""),
    "project {model}": (0, '"target": "Y"', ""),
    "paper": (0, "G5", ""),
    "solve {model} -k 1": (0, "X2", ""),
}


@pytest.mark.parametrize("command", PROCESSES)
def test_a_process_of_its_own_says_the_same(command, model, confounded, tmp_path, monkeypatch):
    code, says, complains = PROCESSES[command]
    words = [word.format(model=model, graph=confounded) for word in command.split()]
    done = dobandit_process(*words, code=code, cwd=tmp_path)
    assert says in done.stdout
    assert done.stderr.startswith(complains)
    assert done.stderr.count("\n") == bool(complains)
    monkeypatch.chdir(tmp_path)
    here = dobandit(*words, code=code)
    took = re.compile(r"\d+\.\d{3} s")
    assert (took.sub("", done.stdout), done.stderr) == (took.sub("", here.stdout), here.stderr)


def test_names_are_never_markup(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps({"target": "[red]Y[/red]", "edges": [["[bold]", "[red]Y[/red]"]]}))
    assert "[red]Y[/red]" in dobandit("check", path).stdout


def test_import_is_light():
    heavy = ("numba", "scipy", "networkx", "vl_convert", "click")
    code = f"import dobandit, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_simulate_takes_what_the_learner_believes(tmp_path):
    path = tmp_path / "harm.json"
    nodes = {"a": {"bias": 0.1}, "b": {"bias": 0.1}, "Y": {"bias": 0.5, "parents": {"a": 0.3, "b": -0.3}}}
    path.write_text(json.dumps({"target": "Y", "nodes": nodes}))
    usual = ("simulate", path, "--rounds", 30, "--replications", 2, "-k", 1, "--json")
    world = dob.read_model(path)
    for words, believed in (
        (["--effects", "any", "--link", "auto"], {"effects": "any", "links": "auto"}),
        (["--policy", "blm-lr:clipped=true", "--effects", "nonnegative"], {"effects": "nonnegative"}),
    ):
        found = json.loads(dobandit(*usual, *words).stdout)["policies"]
        policies = ["blm-lr:clipped=true"] if "--policy" in words else ["causal-ucb", "ucb"]
        truth = dob.simulate(world, policies, 30, 2, 1, **believed).summary().to_document()["policies"]
        assert {name: one["regret_mean"] for name, one in found.items()} == {
            name: one["regret_mean"] for name, one in truth.items()
        }
    assert "links are" in dobandit(*usual, "--link", "nonsense", code=2).stderr
