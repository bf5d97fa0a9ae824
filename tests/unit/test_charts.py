"""Charts and pictures of graphs: files are what their names say, and names do no harm."""

import itertools
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from dobandit import BinaryGLM, CausalGraph, paper, rank
from dobandit.errors import DobanditError, ReportError
from dobandit.report.graph_layout import drawable, picture_of
from dobandit.report.svg.graph_drawing import graph_figure
from dobandit.report.svg.regret_charts import regret_figure
from dobandit.texts import breadth
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
    assert "nan" not in svg.lower().replace("policies", "")
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    text = str(result.summary())
    assert "nan" not in text
    assert "\x1b" not in text
    json.dumps(result.summary().to_document(), allow_nan=False)
    assert "<script" not in result.summary()._repr_html_()


@pytest.fixture(scope="module")
def chart(usual):
    return usual.chart()


MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!doctype html>"}


@pytest.mark.parametrize("suffix", MAGIC)
def test_files_are_what_their_names_say(chart, suffix, tmp_path):
    path = tmp_path / f"regret.{suffix}"
    chart.save(path)
    assert path.read_bytes().startswith(MAGIC[suffix])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def classes(svg, name):
    return [one for one in ElementTree.fromstring(svg).iter() if name in one.get("class", "").split()]


def test_the_picture_holds_title_caption_curves_and_bands(usual):
    svg = usual.chart(title="Mine", subtitle="Sub").svg()
    assert [text.text for text in classes(svg, "title")] == ["Mine"]
    assert [text.text for text in classes(svg, "caption")] == ["Sub"]
    assert not classes(usual.chart(title="").svg(), "title")
    assert len(classes(svg, "band")) == 2 * len(usual.labels)  # in both panels
    labels = sum(len(panel.labels) for panel in regret_figure(usual).panels)
    assert len(classes(svg, "curve")) == 2 * len(usual.labels) + labels  # and a sample beside each name
    assert len({curve.get("stroke-dasharray") for curve in classes(svg, "curve")}) == len(usual.labels)


def test_long_titles_stay_within_the_picture(usual):
    svg = usual.chart(title="A WIDE TITLE " * 20, subtitle="and what is said below it " * 20).svg()
    width = float(ElementTree.fromstring(svg).get("width"))
    for kind, letter in (("title", 18.0), ("caption", 13.0)):
        lines = [text.text for text in classes(svg, kind)]
        assert len(lines) > 1
        assert all(18.0 + 0.6 * breadth(line) * letter < width for line in lines)


def test_files_need_no_variables_of_css_and_may_be_dark(usual, tmp_path):
    light, dark = usual.chart().svg(), usual.chart().svg(dark=True)
    for svg in (light, dark):
        assert "var(" not in svg
        assert "url(" not in svg
        assert "@" not in svg
    assert "fill: #ffffff" in light
    assert "fill: #ffffff" not in dark
    drawn = {name: usual.chart().png(dark=name == "dark") for name in ("light", "dark")}
    assert drawn["light"] != drawn["dark"]


def test_unknown_suffix_and_unwritable_path(chart, tmp_path):
    with pytest.raises(ReportError, match=r"ends in \.png, \.svg"):
        chart.save(tmp_path / "regret.gif")
    with pytest.raises(DobanditError, match="cannot be written"):
        chart.save(tmp_path / "missing" / "regret.svg")


def test_png_and_pdf_need_an_extra_and_say_so(usual, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    for suffix in ("png", "pdf"):
        with pytest.raises(ReportError, match=r"Install dobandit\[plots\]"):
            usual.chart().save(tmp_path / f"regret.{suffix}")
    assert not list(tmp_path.iterdir())
    for suffix in ("svg", "html"):
        usual.chart().save(tmp_path / f"regret.{suffix}")


def test_importing_the_report_layer_loads_no_plotting_package():
    code = (
        "import sys, dobandit.report.simulation_result, dobandit.report.study_report\n"
        "assert not {'vl_convert', 'rich'} & set(sys.modules), set(sys.modules)"
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


def test_picture_says_what_is_hidden_chosen_biased_and_linked():
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
    figure = graph_figure(model, chosen=["a"])
    assert "Dashed: hidden." in figure.caption
    svg = figure.svg()
    assert [box[0].text for box in classes(svg, "latent")] == ["u"]
    assert "exponential" in svg


def test_a_graph_with_nasty_names_is_drawn(tmp_path):
    graph = CausalGraph([(name, "Y") for name in NASTY], target="Y")
    graph_figure(graph).save(tmp_path / "graph.svg")
    ElementTree.parse(tmp_path / "graph.svg")
    assert "<script" not in (tmp_path / "graph.svg").read_text()


def test_too_large_a_graph_is_refused_but_its_study_reported(tmp_path):
    weights = {f"X{i}": 0.5 for i in range(250)} | {(f"X{i}", "Y"): 0.004 for i in range(250)}
    model = BinaryGLM.blm(weights, target="Y")
    assert not drawable(model.graph)
    with pytest.raises(ReportError, match="at most 200 nodes"):
        graph_figure(model)
    files = result_of({"a": 1.0, "b": 2.0}, rounds=30, replications=3, model=model).report(tmp_path)
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
    panel = rank(graph, rows, budget=2).chart().panels[0]
    for drawing, most in ((panel.wide, 44), (panel.narrow, 40)):
        texts = ["".join(text.itertext()) for text in classes(drawing.svg(), "label")]
        assert len(set(texts)) == len(texts) == 7
        assert all(len(text) <= most for text in texts)
