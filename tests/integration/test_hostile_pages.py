"""Pages with hostile names and forms; snapshots and the demo."""

import re
import time

import numpy as np
import pytest

from dobandit import CausalGraph, create_experiment
from dobandit.errors import StorageError
from dobandit.experiment.stretches import Stretches
from dobandit.policy.base import round_draws
from dobandit.service.pages import page_wording
from dobandit.service.pages.demo import NAME, Shop, begin, carried_out
from dobandit.storage import MemoryStorage, open_storage
from helpers.pages import FUNNEL, HOSTILE, Visit, harmless

# -- hostile names ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile():
    visit = Visit()
    graph = CausalGraph([(name, "y<b>'\"") for name in HOSTILE], target="y<b>'\"")
    for name in HOSTILE:
        experiment = create_experiment(name, graph, budget=2, storage=visit.storage, seed=1)
    for state in range(8):
        trial = experiment.ask()
        experiment.tell(trial, dict.fromkeys(HOSTILE, 0) | trial.do | {graph.target: state % 2})
    experiment.tell_failed(experiment.ask().number, HOSTILE[0])
    experiment.ask()
    visit.number = visit.storage.find(HOSTILE[-1]).id
    return visit


@pytest.mark.parametrize(
    "path", ["", "/trials", "/trials/3", "/trials/8", "/today", "/graph?round=4", "/closed", "/trials?after=2"]
)
def test_hostile_names_do_no_harm(hostile, path):
    text = hostile.get(f"/experiments/{hostile.number}{path}").text
    page = harmless(text)
    assert page.tags.count("script") == text.count('<script src="/static/pages.js" defer>')
    assert "49" not in page.text.replace("7*7", "")  # nothing in a name is a template


def test_hostile_names_in_lists_forms_errors_and_files(hostile):
    listed = harmless(hostile.get("/").text)
    assert "<script>alert(1)</script>" in listed.text
    assert "right\\u202eleft" in listed.text
    arrows = "\n".join(f'"{name}" -> "y"' for name in HOSTILE if "\n" not in name and '"' not in name)
    sketch = hostile.post("/new/preview", status=200, text=f"target: y\n{arrows}\n").text
    assert harmless(sketch).tags.count("script") == 0
    assert "right\\u202eleft" in sketch
    assert harmless(hostile.post("/new", status=200, text=f"{HOSTILE[0]} ->", name=HOSTILE[3]).text)
    answer = hostile.get(f"/experiments/{hostile.number}/snapshot")
    assert re.fullmatch(
        r"attachment; filename=\"[\w-]+\.html\"; filename\*=UTF-8''[\w.-]+", answer.headers["content-disposition"]
    )
    number = re.search(r"Trial (\d+)", hostile.get(f"/experiments/{hostile.number}/today").text)
    assert number is None or harmless(hostile.get(f"/experiments/{hostile.number}/today", trial=number[1]).text)
    assert harmless(hostile.get("/experiments/77", status=404).text)


# -- snapshots --------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_one_file_that_needs_nothing_else(shop):
    answer = shop.get("/experiments/1/snapshot")
    text = answer.text
    assert answer.headers["content-disposition"].startswith('attachment; filename="spring-sale.html"')
    assert not re.search(r"<script|<link|<form|url\(|@import|href=\"/|https?://(?!www\.w3\.org)", text)
    assert page_wording.digits(shop.experiment.recommend().value) in text
    assert "A snapshot of" in text
    assert text.index("<style>") < text.index("<main>")


def test_a_snapshot_from_the_command_line(tmp_path, monkeypatch, capsys):
    from dobandit.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOBANDIT_STORAGE", "sqlite:///shop.db")
    storage = open_storage("sqlite:///shop.db")
    Shop(begin(storage), 0.0).play(3)
    storage.close()
    for arguments, code in (([], 0), ([], 2), (["--force", "-o", "spring-sale.html"], 0)):
        with pytest.raises(SystemExit) as ended:
            main(["experiment", "snapshot", NAME, *arguments])
        assert ended.value.code == code
    said = capsys.readouterr()
    assert "wrote spring-sale.html" in said.out
    assert "spring-sale.html exists" in said.err
    assert (tmp_path / "spring-sale.html").read_text().startswith("<!doctype html>")


def test_storage_trouble_on_the_list_is_said_for_its_line_alone(shop, monkeypatch):
    def broken(stretches, most):
        raise StorageError(f"{shop.storage.url}: the log is damaged")

    monkeypatch.setattr(Stretches, "parts", broken)
    assert "the storage: the log is damaged" in shop.get("/").text


def test_the_shop_plays_while_it_is_open():
    experiment = begin(MemoryStorage())
    shop = Shop(experiment, 50.0)
    with shop.open():
        for _ in range(200):
            if experiment.status().told >= 3:
                break
            time.sleep(0.05)
    told = experiment.status().told
    assert told >= 3
    assert experiment.status().pending == 0


def test_where_there_are_too_many_variables_to_tick_the_page_says_how_the_text_names_the_target():
    visit = Visit()
    arrows = "\n".join(f"x{i} -> y" for i in range(200))
    page = harmless(visit.post("/new/preview", 200, text=arrows).text).text
    assert "Name it in the text" in page
    assert "target: y" in page
    page = harmless(visit.post("/new/preview", 200, text=f"target: y\n{arrows}").text).text
    assert "names no target" not in page
    assert "too many variables for a table" in page


# -- the demo ---------------------------------------------------------------------------------------------------------


def test_the_chance_of_the_demos_shop_has_nothing_to_do_with_which_rounds_are_control_rounds():
    controls = [number for number in range(6_000) if round_draws(0, number, 1)[0] < 0.05]
    assert len(controls) > 250
    visits = np.mean([carried_out({}, 0, number)["visit"] for number in controls])
    truth = 0.05 + 0.1 * 0.25 + 0.15 * 0.35 + 0.4 * 0.25
    assert abs(visits - truth) < 4.0 * (truth * (1.0 - truth) / len(controls)) ** 0.5


# -- forms that no page of ours sends ---------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["nope", "..json", "draft", "dot;gml"])
@pytest.mark.parametrize("path", ["/new", "/new/preview"])
def test_a_format_that_is_none_is_refused_before_anything_is_loaded_by_its_name(shop, path, given):
    answer = shop.post(path, 422, text="a -> y\nb -> y", format=given, step="draw")
    assert "formats are edgelist" in harmless(answer.text).text


def test_a_format_that_was_chosen_stays_chosen(shop):
    page = shop.post("/new", 200, text="digraph { a -> y }", format="dot", step="draw").text
    assert "<option selected>dot</option>" in page
    assert page.count("<option selected>") == 1


def test_of_two_who_tell_one_trial_the_second_hears_that_nothing_was_changed_and_no_good_news():
    visit = Visit()
    experiment = create_experiment("twice", CausalGraph([("a", "y")], "y"), 1, "random", visit.storage)
    trial = experiment.ask()
    seen = {f"v{i}": "1" for i, name in enumerate(experiment.columns.names) if name not in trial.do}
    at = f"/experiments/1/today/{trial.number}"
    visit.post(at, 303, issued="1", step="tell", **seen)
    page = visit.post(at, 422, issued="1", step="tell", **dict.fromkeys(seen, "0")).text
    assert "Nothing was changed" in page
    assert 'class="done"' not in page


def test_an_address_that_somebody_made_up_puts_no_words_on_a_page(shop):
    at = "/experiments/1/today"
    assert "evil" not in shop.get(at, told="Go to evil.example", closed="0", again="1").text
    assert "Trial 0 was told before" in shop.get(at, closed="0", again="1").text
    assert f"Trial {shop.trial.number} is" not in shop.get(at, closed=str(shop.trial.number)).text
    shop.get(at, 404, closed="99999")
    shop.get(at, 422, closed="evil")


def test_a_page_does_not_say_where_the_storage_is(tmp_path):
    visit = Visit(open_storage(f"sqlite:///{tmp_path}/secret-place.db"))
    form = {"text": FUNNEL, "budget": "1", "step": "create"}
    visit.post("/new", name="twice", **form)
    answer = visit.post("/new", 422, name="twice", **form)
    assert "the storage already has one named" in harmless(answer.text).text.replace("&#39;", "'")
    assert "secret-place" not in answer.text
