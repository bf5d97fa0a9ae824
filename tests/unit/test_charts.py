"""Charts and pictures of graphs: files are what their names say, and names do no harm."""

import itertools
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from dobandit import BinaryGLM, CausalGraph, paper, rank
from dobandit.errors import DobanditError, ReportError
from dobandit.report.charts import graph_chart, regret_chart, save_chart
from dobandit.report.curves import regret_figure
from dobandit.report.html import study_report
from dobandit.report.picture import drawable, picture_of
from dobandit.report.ranking import ranking_chart
from helpers.reports import NASTY, result_of

# -- charts and files -------------------------------------------------------------------------------------------------


def edge_cases():
    yield "single policy", result_of({"UCB": 50.0})
    yield "single replication", result_of({"a": 5.0, "b": 50.0}, replications=1)
    yield "twelve policies", result_of({f"policy {i}": 10.0 + i for i in range(12)}, replications=5)
    yield "one round", result_of({"a": 0.1, "b": 0.2}, rounds=1, replications=3)
    yield "no regret", result_of({"a": 0.0, "b": 0.0}, replications=3)
    yield "nasty names", result_of({name: 10.0 + 20 * i for i, name in enumerate(NASTY)}, replications=4)


@pytest.mark.parametrize(("name", "result"), list(edge_cases()), ids=lambda x: x if isinstance(x, str) else "")
def test_edge_cases_are_drawn_and_told(name, result, tmp_path):
    result.chart().save(tmp_path / "regret.svg")
    svg = (tmp_path / "regret.svg").read_text()
    assert "NaN" not in svg
    assert "undefined" not in svg
    assert "<script" not in svg
    text = str(result.summary())
    assert "nan" not in text
    assert "\x1b" not in text
    json.dumps(result.summary().to_document(), allow_nan=False)
    assert "<script" not in result.summary()._repr_html_()


@pytest.fixture(scope="module")
def chart(usual):
    return usual.chart()


MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!doctype html>", "json": b"{"}


@pytest.mark.parametrize("suffix", MAGIC)
def test_files_are_what_their_names_say(chart, suffix, tmp_path):
    path = tmp_path / f"regret.{suffix}"
    chart.save(path)
    assert path.read_bytes().startswith(MAGIC[suffix])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_specification_holds_the_curves(usual):
    spec = regret_chart(usual, title="Mine", subtitle="Sub").to_dict()
    assert spec["title"]["text"] == ["Mine"]
    assert spec["title"]["subtitle"] == ["Sub"]
    assert spec["datasets"]["curves0"] == regret_figure(usual).panels[0].rows
    assert len(spec["hconcat"]) == 2
    shown = json.dumps(spec)
    assert '"format": ",~r"' in shown
    assert '"strokeDash"' in shown


def test_unknown_suffix_and_unwritable_path(chart, tmp_path):
    with pytest.raises(ReportError, match=r"ends in \.png, \.svg"):
        chart.save(tmp_path / "regret.gif")
    with pytest.raises(DobanditError, match="cannot be written"):
        chart.save(tmp_path / "missing" / "regret.json")


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_missing_extra_says_what_to_install(usual, package, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ReportError, match=r"Install dobandit\[plots\]"):
        usual.chart().save(tmp_path / "regret.png")
    assert not list(tmp_path.iterdir())
    assert str(usual.summary())  # tables need no extra


def test_importing_the_report_layer_loads_no_plotting_package():
    code = (
        "import sys, dobandit.report.result, dobandit.report.html, dobandit.report.charts\n"
        "assert not {'altair', 'vl_convert', 'rich'} & set(sys.modules), set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- the picture of a graph -------------------------------------------------------------------------------------------


def overlap(a, b):
    return abs(a[0] - b[0]) < (a[2] + b[2]) / 2 and abs(a[1] - b[1]) < (a[3] + b[3]) / 2


@pytest.mark.parametrize("name", paper.MODELS)
def test_weights_are_shown_and_nothing_collides(name):
    model = paper.MODELS[name]
    picture = picture_of(model)
    assert {arrow.edge: arrow.text for arrow in picture.arrows} == {
        edge: f"{model.weights[edge]:.3g}" for edge in model.graph.edges
    }
    boxes = [(box.x, box.y, box.width, box.height) for box in picture.boxes]
    texts = [(*arrow.text_at, 7.0 * len(arrow.text), 12.0) for arrow in picture.arrows]
    assert not any(overlap(a, b) for a, b in itertools.combinations(boxes + texts, 2))
    for x, y, width, height in boxes + texts:
        assert width / 2 <= x <= picture.width - width / 2
        assert height / 2 <= y <= picture.height - height / 2


def test_causes_stand_left_of_their_effects():
    rng = np.random.default_rng(3)
    names = [f"V{i}" for i in range(40)]
    edges = {(names[j], names[i]) for i in range(1, 39) for j in rng.integers(0, i, 3)} | {
        (name, "Y") for name in names
    }
    graph = CausalGraph(sorted(edges), target="Y")
    picture = picture_of(graph)
    x = {box.name: box.x for box in picture.boxes}
    assert all(x[cause] < x[effect] for cause, effect in graph.edges)
    boxes = [(box.x, box.y, box.width, box.height) for box in picture.boxes]
    assert not any(overlap(a, b) for a, b in itertools.combinations(boxes, 2))
    assert not picture.weights_shown


def test_picture_says_what_is_hidden_chosen_biased_and_linked(tmp_path):
    weights = {"a": 0.25, ("a", "m"): 0.3, "m": 0.1, ("m", "y"): 0.5, ("u", "m"): 0.2, ("u", "y"): 0.2}
    graph = CausalGraph([key for key in weights if isinstance(key, tuple)], "y", latent=["u"], bias=["a", "m"])
    model = BinaryGLM(graph, weights, links={"y": "exponential"})
    boxes = {box.name: box for box in picture_of(model, chosen=["a"]).boxes}
    assert {name: box.kind for name, box in boxes.items()} == {
        "a": "chosen",
        "m": "plain",
        "u": "latent",
        "y": "target",
    }
    assert boxes["a"].note == "bias 0.25"
    assert boxes["y"].note == "exponential"
    save_chart(graph_chart(model, chosen=["a"]), tmp_path / "graph.svg")
    svg = (tmp_path / "graph.svg").read_text()
    assert "Dashed: hidden." in svg
    assert 'stroke-dasharray="4,3"' in svg
    assert "exponential" in svg


def test_a_graph_with_nasty_names_is_drawn(tmp_path):
    graph = CausalGraph([(name, "Y") for name in NASTY], target="Y")
    save_chart(graph_chart(graph), tmp_path / "graph.svg")
    assert "<script" not in (tmp_path / "graph.svg").read_text()


def test_too_large_a_graph_is_refused_but_its_study_reported(tmp_path):
    weights = {f"X{i}": 0.5 for i in range(250)} | {(f"X{i}", "Y"): 0.004 for i in range(250)}
    model = BinaryGLM.blm(weights, target="Y")
    assert not drawable(model.graph)
    with pytest.raises(ReportError, match="at most 200 nodes"):
        graph_chart(model)
    files = study_report(result_of({"a": 1.0, "b": 2.0}, rounds=30, replications=3, model=model), tmp_path)
    assert "graph.png" not in files
    assert "too many for a picture" in files["report.html"].read_text()


def test_long_sets_that_begin_alike_have_labels_of_their_own():
    long = [f"a lever with a name that is much longer than a label {end}" for end in ("one", "two", "three")]
    graph = CausalGraph([(name, "buy") for name in long], target="buy")
    rng = np.random.default_rng(0)
    rows = [
        {**dict(zip(long, rng.integers(0, 2, 3).tolist(), strict=True)), "buy": int(rng.random() < 0.5)}
        for _ in range(80)
    ]
    spec = json.dumps(ranking_chart(rank(graph, rows, budget=2)).to_dict())
    labels = dict(re.findall(r'"place": (\d+), "text": "([^"]*)"', spec))
    assert len(set(labels.values())) == len(labels) == 7
    assert all(len(json.loads(f'"{label}"')) <= 44 for label in labels.values())
