"""Figures, tables and pages: the numbers are right, names do no harm, and files open without a network."""

import dataclasses
import itertools
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import stats

from dobandit import UCB, BinaryGLM, CausalGraph, EpsilonGreedy, paper
from dobandit.errors import DobanditError, ReportError, SimulationError
from dobandit.policy.yardsticks import Random
from dobandit.report import figures
from dobandit.report.charts import graph_chart, regret_chart, save_chart
from dobandit.report.curves import message, regret_figure
from dobandit.report.figures import specification, svg_of
from dobandit.report.html import PageFigure, Section, report_html, study_report, study_section
from dobandit.report.picture import drawable, picture_of
from dobandit.report.readable import amount, columns, markdown, percent, shortened, shortened_apart, signed
from dobandit.report.result import SimulationResult, load_result, simulate
from dobandit.report.spread import spread
from dobandit.report.tables import (
    Table,
    summary_document,
    summary_markdown,
    summary_table,
    summary_text,
    table_markdown,
)
from dobandit.simulation.study import study_of
from dobandit.texts import printable

NASTY = ["<script>alert(1)</script>", "a|b*c_d`e`", "[x](http://evil.example)", "</svg>&\"'", "red\x1b[31m\nline"]


def result_of(finals, rounds=1000, replications=40, model=paper.G4, seed=0):
    """A result made up from final regrets: gamma-distributed runs that grow with the square root of the round."""
    policies = {label: Random() for label in finals}
    study = study_of(model, policies, rounds, replications, 2)
    rng = np.random.default_rng(seed)
    ends = np.array([final * rng.gamma(8.0, 1 / 8.0, replications) for final in finals.values()])
    shape = np.sqrt(np.array(study.grid) / rounds)
    regret = ends[:, :, None] * shape
    return SimulationResult(
        study,
        0.7,
        {"X2": 1, "X3": 1},
        regret,
        0.7 * np.array(study.grid) - regret,
        rng.integers(0, rounds + 1, (len(finals), replications)),
        np.zeros((len(finals), replications, 0), dtype=np.int32),
        rng.uniform(0.001, 0.002, (len(finals), replications)),
        1.5,
    )


@pytest.fixture(scope="module")
def usual():
    return result_of({"BLM-LR": 12.0, "BLM-OFU": 15.0, "UCB": 110.0, "UCB (scaled)": 108.0, "eps-greedy (0.1)": 70.0})


# -- numbers and names ------------------------------------------------------------------------------------------------


def test_numbers_as_people_read_them():
    assert [amount(x) for x in (0, 1e-12, 0.0123, 1, 40.44, 99.96, 1234.5, -3.21)] == [
        "0",
        "0",
        "0.012",
        "1.0",
        "40.4",
        "100",
        "1,234",
        "-3.2",
    ]
    assert amount(float("nan")) == "–"
    assert [signed(x) for x in (3.0, -3.0, 0.0)] == ["+3.0", "-3.0", "0"]
    assert [percent(x) for x in (0.0, 0.00001, 0.5, 0.99999, 1.0)] == ["0.0%", "<0.1%", "50.0%", ">99.9%", "100.0%"]


def test_names_are_shortened_and_control_characters_shown():
    assert shortened("x" * 50, 10) == "x" * 9 + "…"
    assert printable("a\x1b[31m\n") == "a\\x1b[31m\\n"
    assert columns("因果") == 4


def test_markdown_takes_names_literally():
    assert markdown("a|b") == r"a\|b"
    assert markdown("*x* _y_ `z` [l](u) <b> &amp;") == r"\*x\* \_y\_ \`z\` \[l\](u) &lt;b&gt; &amp;amp;"


# -- spreading --------------------------------------------------------------------------------------------------------


def test_places_keep_their_distance_and_order():
    rng = np.random.default_rng(1)
    for _ in range(100):
        wanted = np.sort(rng.uniform(0, 100, rng.integers(1, 6))).tolist()
        places = spread(wanted, [15.0] * (len(wanted) - 1), 0.0, 100.0)
        assert all(b - a >= 15 - 1e-9 for a, b in itertools.pairwise(places))
        assert min(places) >= -1e-9
        assert max(places) <= 100 + 1e-9


def test_places_move_no_more_than_they_must():
    assert spread([10, 50, 90], [15, 15], 0, 100) == [10, 50, 90]
    assert spread([50, 50], [10], 0, 100) == [45, 55]
    assert spread([0, 0], [10], 0, 100) == [0, 10]
    assert spread([50] * 3, [100, 100], 0, 100) == [0, 50, 100]
    assert spread([], [], 0, 1) == []


# -- tables -----------------------------------------------------------------------------------------------------------


def test_summary_agrees_with_numpy(usual):
    rows = {row["policy"]: row for row in summary_table(usual)}
    best = usual.all_regret[0, :, -1]
    for i, label in enumerate(usual.labels):
        sample = usual.all_regret[i, :, -1]
        row = rows[label]
        assert row["mean"] == pytest.approx(np.mean(sample))
        assert row["standard_error"] == pytest.approx(np.std(sample, ddof=1) / np.sqrt(40))
        assert [row["q05"], row["median"], row["q95"]] == pytest.approx(np.quantile(sample, [0.05, 0.5, 0.95]))
        assert row["best_share"] == pytest.approx(np.mean(usual.best_plays[i]) / 1000)
        assert row["microseconds"] == pytest.approx(np.median(usual.seconds[i]) / 1000 * 1e6)
        assert row["reward"] == pytest.approx(np.mean(usual.all_reward[i, :, -1]))
        if i == 0:
            assert row["difference"] is None
        else:
            assert row["difference"]["mean"] == pytest.approx(np.mean(sample - best))
            assert row["difference"]["smaller_share"] == pytest.approx(np.mean(sample < best))
        if row["method"] == "normal":
            quantile = stats.t.ppf(0.975, len(sample) - 1)
            assert row["high"] - row["mean"] == pytest.approx(quantile * row["standard_error"], rel=1e-4)


def test_text_is_aligned_and_holds_every_policy(usual):
    text = summary_text(usual)
    lines = text.split("\n")
    assert lines[0] == message(usual)
    table = lines[2 : 4 + len(usual.labels)]
    assert all(any(line.startswith(label) for line in table) for label in usual.labels)
    ends = [len(line) for line in table if not line.endswith("best")]
    assert len(set(ends)) == 1  # the last column is aligned to the right
    assert "common random numbers" in text


def test_a_skewed_sample_is_marked_as_bootstrapped():
    result = result_of({"steady": 10.0, "wild": 20.0})
    wild = result.all_regret[1]
    wild *= np.where(np.arange(40) < 38, 0.1, 30.0)[:, None]
    row = summary_table(result)[1]
    assert row["method"] == "bootstrap"
    assert "*" in summary_text(result)
    assert "bootstrap" in summary_text(result)


def test_document_is_plain_json(usual):
    document = json.loads(json.dumps(summary_document(usual), allow_nan=False))
    assert document["budget"] == 2
    assert document["best_set"] == ["X2", "X3"]
    policy = document["policies"]["UCB"]
    assert list(policy["regret_quantiles"]) == ["0.05", "0.5", "0.95"]
    assert policy["regret_ci95"][0] < policy["regret_mean"] < policy["regret_ci95"][1]


def test_markdown_table_has_one_cell_a_column_whatever_the_names():
    result = result_of({name: 10.0 + i for i, name in enumerate(NASTY)})
    text = summary_markdown(result)
    rows = [line for line in text.split("\n") if line.startswith("|")]
    assert len(rows) == 2 + len(NASTY)
    counts = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert len(counts) == 1
    assert "<script" not in text
    assert "\x1b" not in text


def test_a_table_of_the_callers_own():
    text = table_markdown(Table(["Graph", "Ours", "Paper"], [["G1", "39", "39"]], ["As *read off* the plots."]))
    assert text == "| Graph | Ours | Paper |\n|---|---:|---:|\n| G1 | 39 | 39 |\n\nAs \\*read off\\* the plots.\n"


# -- what the regret figure shows -------------------------------------------------------------------------------------


def test_message(usual):
    assert re.fullmatch(r"G4: BLM-LR loses 1\d rewards in 1,000 rounds, UCB( \(scaled\))? loses 1\d\d", message(usual))
    assert message(result_of({"UCB": 110.0})).startswith("G4: UCB loses 1")
    assert "No clear winner" in message(result_of({"a": 10.0, "b": 10.0}))
    assert "No clear winner" in message(result_of({"a": 0.0, "b": 0.0}))
    assert message(usual, named=False) == message(usual).removeprefix("G4: ")


def test_curves_are_means_with_their_intervals(usual):
    whole, close = regret_figure(usual).panels
    assert {row["policy"] for row in whole.rows} == set(usual.labels)
    last = next(row for row in whole.rows if row["policy"] == "UCB" and row["round"] == 1000)
    sample = usual.regret("UCB")[:, -1]
    assert last["mean"] == pytest.approx(sample.mean(), rel=1e-5)
    assert last["high"] - last["low"] == pytest.approx(
        2 * stats.t.ppf(0.975, 39) * sample.std(ddof=1) / np.sqrt(40), rel=1e-3
    )
    assert whole.rows[0] == {"policy": "BLM-LR", "round": 0, "mean": 0.0, "low": 0.0, "high": 0.0}
    assert not whole.log
    assert close.log
    assert [label.policy for label in close.labels] == ["BLM-LR", "BLM-OFU"]
    assert close.top < whole.top / 4


def test_curves_stop_where_they_leave_the_close_up(usual):
    close = regret_figure(usual).panels[1]
    assert all(row["high"] <= close.top * 1.00001 for row in close.rows)
    means = [row["mean"] for row in close.rows if row["policy"] == "UCB" and row["mean"] is not None]
    assert means[-1] == pytest.approx(close.top, rel=1e-4)
    assert means == sorted(means)


@pytest.mark.parametrize("count", [1, 2, 6, 12, 30])
def test_labels_never_overlap_and_no_two_curves_look_alike(count):
    figure = regret_figure(result_of({f"policy {i}": 100.0 + 0.01 * i for i in range(count)}, replications=5))
    for panel in figure.panels:
        pixels = sorted(label.place / panel.top * figure.height for label in panel.labels)
        assert all(b - a > 14 for a, b in itertools.pairwise(pixels))
        assert pixels[0] >= 0
        assert pixels[-1] <= figure.height
    looks = list(zip(figure.colours, map(tuple, figure.dashes), strict=True))
    assert len(set(looks)) == count


def test_every_number_recorded_is_thinned():
    result = result_of({"UCB": 10.0}, rounds=5000, replications=2)
    study = study_of(paper.G4, {"UCB": Random()}, 5000, 2, 2, record="every")
    curves = np.repeat(np.linspace(0, 10, 5000)[None, None], 2, axis=1)
    counts = (result.best_plays, result.all_plays, result.seconds)
    every = SimulationResult(study, 0.7, ("X2",), curves, curves, *counts, 1.0)
    for panel in regret_figure(every).panels:
        assert len(panel.rows) < 200
        assert panel.rows[-1]["round"] == 5000


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


MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!doctype html>", "json": b"{"}


@pytest.mark.parametrize("suffix", MAGIC)
def test_files_are_what_their_names_say(usual, suffix, tmp_path):
    path = tmp_path / f"regret.{suffix}"
    usual.chart().save(path)
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


def test_unknown_suffix_and_unwritable_path(usual, tmp_path):
    with pytest.raises(ReportError, match=r"ends in \.png, \.svg"):
        usual.chart().save(tmp_path / "regret.gif")
    with pytest.raises(DobanditError, match="cannot be written"):
        usual.chart().save(tmp_path / "missing" / "regret.json")


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


# -- pages ------------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Tags, ids and every address a browser would load."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.addresses, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "data", "srcset", "action"):
                self.addresses.append(value)
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def assert_offline(text):
    page = Page(text)
    assert not page.open
    assert not {"script", "link", "iframe", "img", "object"} & set(page.tags)
    assert all(address.startswith("#") for address in page.addresses)
    assert len(page.ids) == len(set(page.ids))
    assert "@import" not in text
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    return page


def test_a_report_folder(usual, tmp_path):
    files = usual.report(tmp_path / "new" / "folder")
    assert set(files) == {
        "regret.png",
        "regret.svg",
        "graph.png",
        "graph.svg",
        "summary.md",
        "summary.json",
        "report.html",
    }
    assert {file.name for file in (tmp_path / "new" / "folder").iterdir()} == set(files)
    text = files["report.html"].read_text()
    page = assert_offline(text)
    assert page.tags.count("svg") == 2 * 2 + 2  # two panels and the graph, each for wide screens and for narrow ones
    assert all(f">{label}<" in text for label in usual.labels)
    assert json.loads(files["summary.json"].read_text())["replications"] == 40
    assert len(text) < 300_000


def test_a_folder_that_cannot_be_made(usual, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be made"):
        usual.report(tmp_path / "file" / "folder")


def test_pages_escape_every_text():
    for bad in NASTY[:2] + NASTY[3:]:
        table = Table([bad, bad], [[bad, bad]], [bad])
        text = report_html([Section(bad, bad, (), table, [bad]), Section("two")], title=bad, lead=bad)
        page = assert_offline(text)
        assert page.tags.count("section") == 2
        assert "\x1b" not in text


def test_figures_on_a_page_keep_their_ids_apart():
    svg = '<svg width="10" viewBox="0 0 10 10"><defs><clipPath id="clip0"/></defs><g clip-path="url(#clip0)"/>'
    svg += '<path d="M0.123456,7.98765"/><text>id="kept" 0.123456</text></svg>'
    text = report_html([Section("a", figures=[PageFigure(svg, "one"), PageFigure(svg, "two")])], "t")
    assert re.findall(r'id="(figure\d+-clip0)"', text) == ["figure1-clip0", "figure2-clip0"]
    assert "url(#figure2-clip0)" in text
    assert "M0.12,7.98" in text
    assert 'id="kept" 0.123456' in text


def test_a_page_is_for_dark_screens_phones_and_print_too(usual):
    chart = svg_of(regret_chart(usual))
    text = report_html([Section("a", figures=[PageFigure(chart, "chart")]), study_section(usual)], "t")
    body = text[text.index("<main>") :]
    assert not re.search(r'(fill|stroke)="(#|white|black|rgb)', body)  # colours are the page's, which follow the mode
    assert " style=" not in body
    assert "prefers-color-scheme: dark" in text
    assert re.search(r"@page \{ margin: \d+mm", text)
    # Where a row is a block, each cell says what it is.
    cells = re.findall(r"<td[^>]*>", body)
    assert cells
    assert all("data-label=" in cell for cell in cells)


def test_a_nasty_study_makes_a_harmless_page_and_chart(tmp_path):
    result = result_of({name: 10.0 + 20 * i for i, name in enumerate(NASTY) if "http" not in name}, replications=4)
    assert_offline(study_report(result, tmp_path)["report.html"].read_text())
    result.chart().save(tmp_path / "chart.html")
    page = Page((tmp_path / "chart.html").read_text())
    assert page.tags == ["html", "head", "meta", "meta", "title", "script", "body", "div", "script"]
    assert not page.addresses


# -- the whole way ----------------------------------------------------------------------------------------------------


def test_simulate_then_everything(tmp_path):
    finished = []
    result = simulate(paper.G4, [UCB(), EpsilonGreedy(0.1)], 60, 6, seed=3, progress=finished.append)
    assert sum(finished) == 6
    assert result.study.budget == 2
    assert (result.all_regret[:, :, -1] > 0).all()
    assert repr(result).startswith("SimulationResult(G4: ")
    result.save(tmp_path)
    again = load_result(tmp_path)
    assert isinstance(again, SimulationResult)
    assert again.table() == result.table()
    assert isinstance(SimulationResult.load(tmp_path), SimulationResult)


def test_progress_bar_runs(capsys):
    result = simulate(paper.G4, "ucb", 5, 2, progress=True)
    assert result.labels == ["UCB"]
    assert capsys.readouterr().out == ""


def test_a_model_of_ones_own_needs_a_budget():
    model = BinaryGLM.blm({"a": 0.2, "b": 0.2, ("a", "y"): 0.3, ("b", "y"): 0.3}, target="y")
    with pytest.raises(SimulationError, match="Add budget="):
        simulate(model, "ucb", 5, 2)
    assert simulate(model, "ucb", 5, 2, budget=1).study.budget == 1
    with pytest.raises(SimulationError, match="needs a model"):
        simulate(model.graph, "ucb", 5, 2, budget=1)


def test_notebooks_show_figures_and_tables(usual):
    bundle = usual.chart()._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "<table>" in usual.summary()._repr_html_()


def test_newest_vega_lite_is_used_where_altairs_is_missing(monkeypatch):
    monkeypatch.setattr(figures, "converter", lambda: type("Old", (), {"get_vegalite_versions": lambda: ["5.8"]}))
    assert figures._version() is None


@pytest.mark.parametrize("odd", ["\x00", "\x01", "\x1b[31m", "\ufffe", "\uffff", "\ud800"])
def test_no_text_that_reaches_a_chart_can_abort_the_converter(odd, tmp_path):
    name = odd if odd != "\ud800" else ""  # which a graph refuses
    graph = CausalGraph([(f"a{name}", f"Y{name}")], target=f"Y{name}")
    chart = graph_chart(graph, title=f"A title{odd}", subtitle=f"below it{odd}")
    assert json.dumps(specification(chart), ensure_ascii=False).isprintable()
    assert "A title" in svg_of(chart)  # the converter is met only now: it would end this process
    save_chart(chart, tmp_path / "chart.html")


def test_labels_that_begin_alike_keep_what_differs():
    labels = [f"BGLM-OFU (radius scale 0.1, initial formula, zeta {zeta})" for zeta in ("0.5", "0.25", "0.125")]
    short = shortened_apart(labels, 32)
    assert len(set(short.values())) == 3
    assert all(len(text) <= 32 for text in short.values())
    assert all(text.endswith(label.rpartition("zeta ")[2]) for label, text in short.items())


def test_the_headline_names_the_best_known_loser():
    finals = {"CausalUCB": 10.0, "UCB": 100.0, "Random": 300.0}
    made_up = result_of(finals)
    policies = dict(zip(finals, (Random(), UCB(), Random()), strict=True))
    result = dataclasses.replace(made_up, study=dataclasses.replace(made_up.study, policies=policies))
    assert re.fullmatch(r"G4: CausalUCB loses \S+ rewards in 1,000 rounds, UCB loses (9\d|1[01]\d)", message(result))


def test_a_page_says_which_study_it_is_of_and_when_it_was_run(usual, tmp_path):
    result = dataclasses.replace(usual, name="spring <funnel>", finished=1_700_000_000.0)
    result.save(tmp_path)
    load_result(tmp_path).report(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "Study spring &lt;funnel&gt;, 14 November 2023: 1,000 rounds, 40 runs of each policy" in page
    assert "seed 0" in page
    assert "<li>BLM-LR: random</li>" in page  # what this made-up study ran under that label


def test_a_narrow_screen_gets_cells_under_each_other(usual):
    lines = usual.summary().text(40).split("\n")
    assert max(map(columns, lines)) <= 40
    assert "Policy          BLM-LR" in lines
    assert str(usual.summary()) == usual.summary().text(200)
