"""Pages of reports: they open without a network, and names do no harm; and the whole way from simulation to files."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import pytest

from dobandit import UCB, BinaryGLM, CausalGraph, EpsilonGreedy, paper
from dobandit.errors import ReportError, SimulationError
from dobandit.policy.yardsticks import Random
from dobandit.report.html import Section, report_html
from dobandit.report.simulation_result import SimulationResult, load_result, simulate
from dobandit.report.study_report import study_page
from dobandit.report.summary import message
from dobandit.report.svg.graph_drawing import graph_figure
from dobandit.report.tables import Table
from dobandit.texts import columns, shortened_apart
from helpers.reports import NASTY, result_of

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
    assert_offline(text)
    assert text.count('<svg class="drawn') == 2 * 2 + 2  # two panels and the graph, each for wide and narrow screens
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


def test_a_page_is_for_dark_screens_phones_and_print_too(usual):
    text = study_page(usual)
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
    assert_offline(study_page(result))
    result.chart().save(tmp_path / "chart.html")
    assert_offline((tmp_path / "chart.html").read_text())


# -- the whole way ----------------------------------------------------------------------------------------------------


def test_simulate_then_everything(tmp_path):
    finished = []
    result = simulate(paper.G4, [UCB(), EpsilonGreedy(0.1)], 60, 6, seed=3, progress=finished.append)
    assert sum(finished) == 6
    assert result.study.problem.budget == 2
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
    assert simulate(model, "ucb", 5, 2, budget=1).study.problem.budget == 1
    with pytest.raises(SimulationError, match="needs a model"):
        simulate(model.graph, "ucb", 5, 2, budget=1)


def test_notebooks_show_figures_and_tables(usual):
    bundle = usual.chart()._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "<table>" in usual.summary()._repr_html_()
    assert re.match(r"<svg.*</svg>\n<div class=.table.><table>", usual._repr_html_(), re.S)


def test_a_study_prints_its_summary_and_becomes_a_frame_with_the_names_of_its_json(usual):
    assert str(usual) == usual.summary().text()
    frame, document = usual.to_pandas(), usual.summary().to_document()["policies"]
    assert list(frame["policy"]) == list(document)
    assert list(frame["regret_mean"]) == [policy["regret_mean"] for policy in document.values()]
    assert {name.partition(".")[0] for name in frame} == {"policy", *document[usual.labels[0]]}


@pytest.mark.parametrize("odd", ["\x00", "\x01", "\x1b[31m", "\ufffe", "\uffff", "\ud800"])
def test_no_text_that_reaches_a_chart_can_abort_the_converter(odd, tmp_path):
    name = odd if odd != "\ud800" else ""  # which a graph refuses
    graph = CausalGraph([(f"a{name}", f"Y{name}")], target=f"Y{name}")
    figure = graph_figure(graph, title=f"A title{odd}", caption=f"below it{odd}")
    assert figure.svg().replace("\n", " ").isprintable()
    assert figure.png().startswith(b"\x89PNG")  # the converter is met only now: it would end this process
    figure.save(tmp_path / "chart.html")


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
    page = study_page(load_result(tmp_path))
    assert "Study spring &lt;funnel&gt;, 14 November 2023: 1,000 rounds, 40 runs of each policy" in page
    assert "seed 0" in page
    assert "<li>BLM-LR: random</li>" in page  # what this made-up study ran under that label


def test_a_narrow_screen_gets_cells_under_each_other(usual):
    lines = usual.summary().text(40).split("\n")
    assert max(map(columns, lines)) <= 40
    assert "Policy          BLM-LR" in lines
    assert str(usual.summary()) == usual.summary().text(200)
