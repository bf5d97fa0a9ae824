"""The pages: what they say, today's round, and who may see them."""

import re
import threading
import time
from urllib.parse import unquote

import numpy as np
import pytest

from dobandit import CausalGraph, create_experiment
from dobandit.experiment.reasons import lever_words
from dobandit.service.page_cache import PageCache
from dobandit.service.pages import page_wording
from dobandit.service.pages.demo import GRAPH, NAME, Shop, begin
from dobandit.service.pages.page_pictures import edges_between
from dobandit.storage import MemoryStorage
from dobandit.storage.access import create_token
from helpers.pages import Visit, harmless

# -- what pages say ---------------------------------------------------------------------------------------------------


def test_the_list_says_what_to_set_and_how_far_each_is(shop):
    page = harmless(shop.get("/").text)
    told = shop.experiment.recommend()
    assert NAME in page.text
    assert page_wording.sets(told.do) in page.text
    assert f"{told.value:.2f}" in page.text
    assert "told 40 pending 1" in page.text
    assert ", 95%)" in page.text


def test_the_list_is_paged_by_name_with_the_key_of_the_api():
    visit = Visit()
    document = create_experiment(
        "x 000", CausalGraph([("a", "y")], "y"), 1, "random", visit.storage
    ).definition.to_text()
    names = [f"x {i:03}" for i in range(120)]
    for name in names[1:]:
        visit.storage.create(name, document, 0.0)

    def shown(**query):
        page = harmless(visit.get("/", **query).text)
        links = {unquote(link[1:]) for link in page.links if link.startswith("?")}
        return re.findall(r"x \d{3}", page.text), links

    assert shown() == (names[:50], {"after=x 049"})
    assert shown(after="x 049") == (names[50:100], {"before=x 050", "after=x 099"})
    assert shown(after="x 099") == (names[100:], {"before=x 100"})
    assert shown(before="x 100") == (names[50:100], {"before=x 050", "after=x 099"})
    assert shown(before="x 003")[0] == names[:3]
    assert "There is no experiment here" in visit.get("/", after="z").text
    listed = visit.request("GET", "/api/v1/experiments?after=x%20049&limit=50").json()["experiments"]
    assert [one["name"] for one in listed] == names[50:100]


def test_one_experiment_says_what_the_model_the_data_and_doing_nothing_say(shop):
    page = harmless(shop.get("/experiments/1").text)
    told, seen = shop.experiment.recommend(), shop.experiment.best_observed()
    for value in (told.value, told.nothing.value, seen.mean):
        assert page_wording.digits(value) in page.text
    assert told.interval_words in page.text
    for warning in told.warnings:
        assert warning in page.text
    for row in shop.experiment.estimates():
        assert f"({page_wording.span((row.low, row.high), 2)}" in page.text


def test_every_link_within_a_page_leads_somewhere(shop):
    page = harmless(shop.get("/experiments/1").text)
    anchors = {link[1:] for link in page.links if link.startswith("#")}
    assert any(anchor.startswith("effect-") for anchor in anchors)
    hidden = {"variable-" + str(GRAPH.index(name)) for name in GRAPH.latent}
    hidden |= {f"effect-{GRAPH.index(a)}-{GRAPH.index(b)}" for a, b in GRAPH.edges if a in GRAPH.latent}
    assert anchors - set(page.ids) <= hidden  # of what nobody sees there are no numbers
    for link in {link for link in page.links if link.startswith("/") and "logout" not in link and "today" not in link}:
        assert shop.request("GET", link).status_code in (200, 303), link


def test_the_slider_shows_what_was_known_then(shop):
    then = create_experiment(NAME, GRAPH, budget=2, links="identity", storage=MemoryStorage(), seed=0, control=0.05)
    Shop(then, 0.0).play(17)  # the same rounds, and nothing after them
    part = harmless(shop.get("/experiments/1/graph", round=17).text)
    whole = harmless(shop.get("/experiments/1", round=17).text)
    told = then.recommend()
    for page in (part, whole):
        assert (
            f"After 17 closed trials: set {page_wording.sets(told.do)}; purchase estimated at {told.value:.2f} ("
            in page.text
        )
    shown = shop.get("/experiments/1/graph", round=17).text
    for row in then.estimates():
        if row.cause is not None:
            arrow = f"{row.cause} → {row.effect}: {row.value:.2f} ({row.low:.2f} to {row.high:.2f})"
            assert arrow.replace(">", "&gt;") in shown
    assert "nothing was known" in shop.get("/experiments/1/graph", round=0).text
    assert "After 40 closed" in shop.get("/experiments/1/graph", round=10**9).text


def test_a_trial_shows_why_it_was_chosen(shop):
    number = next(row["trial"] for row in shop.experiment.trials()[::-1] if row["do"] and row["state"] == "told")
    told = shop.experiment.explain(number)
    text = shop.get(f"/experiments/1/trials/{number}").text
    page = harmless(text)
    assert told.why in page.text
    assert page_wording.digits(told.predicted) in page.text
    assert page_wording.sets(told.runner_up.do) in page.text
    fall = re.findall(r'class="label(?: strong)?">([+−]?[0-9.]+)</text>', text)
    assert fall[: len(fall) // 2] == fall[len(fall) // 2 :]  # wide and narrow show the same
    steps = [float(amount.replace("−", "-")) for amount in fall[: len(fall) // 2] if amount[0] in "+−"]
    assert sum(steps) == pytest.approx(told.optimistic, abs=0.0006 * len(steps))
    lit = set(re.findall(r'aria-label="(\w+) → (\w+)[^"]*"><g class="arrow(?: harm)? lit"', text))
    assert lit
    assert lit <= edges_between(GRAPH, told.do)


def test_the_legend_of_a_trial_names_every_colour_and_line(shop):
    number = next(row["trial"] for row in shop.experiment.trials()[::-1] if row["do"] and row["state"] == "told")
    page = harmless(shop.get(f"/experiments/1/trials/{number}").text).text
    for word in ("Blue:", "Filled:", "Shaded:", "Thick:", "Red:", "Dashed:", "pale"):
        assert word in page
    assert "Faint:" not in page  # lit arrows do not fade, and pale ones had no part in it
    control = next((row["trial"] for row in shop.experiment.trials() if row["control"]), None)
    assert control is not None
    assert "Blue:" not in harmless(shop.get(f"/experiments/1/trials/{control}").text).text  # nothing was set


def test_nothing_is_shown_as_known_before_the_first_round():
    visit = Visit()
    begin(visit.storage)
    text = visit.get("/experiments/1").text
    page = harmless(text).text
    assert "Nothing was told yet" in page
    for word in ("Caveats", "Model, data and control", "How well each effect", "by itself", "Shaded"):
        assert word not in page
    assert "box chosen" not in text


def test_the_list_has_a_scale_and_words_for_its_curves(shop):
    text = shop.get("/").text
    means = [float(value) for value in re.search(r"one after the other: ([0-9., ]+)", text)[1].split(", ")]
    assert 1 < len(means) <= 12
    ticks = re.findall(r'class="tick end">([0-9.]+)</text>', text)
    assert ticks == ["0", f"{max(means):.2f}"]
    seen = [row["observation"]["purchase"] for row in shop.experiment.trials() if row["state"] == "told"]
    assert min(means) <= np.mean(seen) <= max(means)


def test_a_name_that_is_cut_is_shown_whole_to_who_points_at_it():
    visit = Visit()
    graph = CausalGraph([("w" * 150, "y" * 120)], "y" * 120)
    experiment = create_experiment("n" * 200, graph, 1, "random", visit.storage, require=["w" * 150])
    trial = experiment.ask()
    for path in ("/", "/experiments/1", "/experiments/1/trials", f"/experiments/1/today?trial={trial.number}"):
        assert f'title="{"n" * 200}"' in visit.get(path).text
    assert f'title="{"w" * 150}"' in visit.get("/experiments/1/trials").text


def test_the_page_of_a_trial_shows_the_weights_of_its_time_whoever_comes_first():
    visit = Visit()
    experiment = begin(visit.storage)
    Shop(experiment, 0.0).play(12)
    then = create_experiment("then", GRAPH, budget=2, links="identity", storage=MemoryStorage(), seed=0, control=0.05)
    Shop(then, 0.0).play(9)
    text = visit.get("/experiments/1/trials/9").text  # before anybody has looked at the experiment
    for row in then.estimates():
        if row.cause is not None:
            assert f"{row.cause} → {row.effect}: {row.value:.2f} ({row.low:.2f} to {row.high:.2f})" in text


def test_lit_edges_are_those_on_paths_from_what_was_set():
    assert edges_between(GRAPH, ["coupon"]) == {("coupon", "basket"), ("coupon", "purchase"), ("basket", "purchase")}
    chain = CausalGraph([("a", "b"), ("b", "c"), ("d", "b")], target="c")
    assert edges_between(chain, ["a", "b"]) == {("b", "c")}  # what comes before a variable that is set does nothing
    assert edges_between(chain, []) == set()


def test_the_log_is_paged(shop):
    for after, numbers in ((-1, range(41)), (29, range(30, 41))):
        page = harmless(shop.get("/experiments/1/trials", after=after).text)
        shown = [int(link.rsplit("/", 1)[1]) for link in page.links if re.search(r"trials/\d+$", link)]
        assert shown == list(numbers)
    assert shop.get("/experiments/1/trials", status=303, position=3).headers["location"].endswith("/trials/3")


def test_behind_the_end_of_the_log_the_way_back_leads_to_its_end(shop):
    assert 'rel="prev" href="?after=-1"' in shop.get("/experiments/1/trials", after=99999).text


def test_what_is_not_there_is_said(shop):
    for path in ("/experiments/99", "/experiments/1/trials/99", "/experiments/99/today", "/experiments/99/snapshot"):
        assert "there is no" in shop.get(path, status=404).text.lower() or "has no trial" in shop.get(path, 404).text


def test_the_sentence_on_top_is_as_sure_as_the_rounds(shop):
    told = shop.experiment.recommend()._replace(verdict="fits", probability_best=0.99, gap=0.5)
    sure = page_wording.headline(told._replace(uplift=None), "", "buy", 40, None, 0.01)
    assert sure.tone == "go"
    assert "almost certainly the best" in sure.more
    assert sure.guaranteed.startswith("Guaranteed (99%, at every look, as far as the graph is right): buy is ")
    assert page_wording.headline(told._replace(probability_best=0.4), "", "buy", 40, None, 0.01).tone == "wait"
    doubt = page_wording.headline(told._replace(verdict="contradicted"), "", "buy", 40, None, 0.01)
    assert doubt.tone == "doubt"
    assert "contradict" in doubt.sure
    sentence = page_wording.headline(told, "", "buy", 40, None, 0.01)
    assert f"{sentence.act} {sentence.sure}" == told.sentence.replace("(-", "(−").replace("purchase", "buy")
    stop = page_wording.headline(told._replace(doubts=()), "", "buy", 40, 0.5, 0.01).more
    assert "May I stop? Yes: no allowed action is better by more than 0.5, with 99%" in stop
    untested = page_wording.headline(told._replace(doubts=(), verdict="unknown"), "", "buy", 40, 0.5, 0.01)
    assert "May I stop? Not yet: the rounds have not tested the model." in untested.more
    doubted = page_wording.headline(told._replace(doubts=("It was never set.",)), "", "buy", 40, 0.5, 0.01)
    assert "May I stop? No: something speaks against it, see the caveats." in doubted.more
    assert "stop?" not in "".join(
        page_wording.headline(told._replace(verdict="contradicted"), "", "buy", 40, 0.5, 0.01)
    )
    assert page_wording.headline(told, "", "buy", 0, None, 0.01).tone == "wait"
    assert page_wording.headline(None, "no model", "buy", 4, None, 0.01)[:3] == (
        "No set can be recommended.",
        "no model",
        "doubt",
    )


def test_the_page_names_levers_that_harm_and_those_that_do_nothing():
    visit = Visit()
    graph = CausalGraph([("banner", "buy"), ("logo", "buy")], target="buy", controllable=["banner", "logo"])
    rows = [
        {"banner": 0, "logo": 0, "buy": buy, "count": 10_000 * times} | lever
        for lever, ones in (({}, 4), ({"do:banner": 1, "banner": 1}, 3), ({"do:logo": 1, "logo": 1}, 4))
        for buy, times in ((1, ones), (0, 10 - ones))
    ]
    experiment = create_experiment("levers", graph, 1, storage=visit.storage, seed=1, stop_within=0.05, history=rows)
    harm, idle = lever_words(experiment.recommend(), "buy")
    assert harm.startswith("banner lowers buy by 0.10")
    assert idle.startswith("logo does next to nothing: -0.0")
    page = harmless(visit.get("/experiments/1").text).text
    assert f"{harm}. " in page
    assert idle.replace(": -", ": −") in page
    assert "Guaranteed (95%, at every look, as far as the graph is right): buy is " in page
    assert "May I stop? " in page


# -- today's round ----------------------------------------------------------------------------------------------------


def test_a_round_is_asked_checked_and_told_once():
    visit = Visit()
    experiment = begin(visit.storage)
    assert "Ask what to set" in visit.get("/experiments/1/today").text
    asked = visit.post("/experiments/1/today/ask").headers["location"]
    assert asked == "/experiments/1/today?trial=0"
    page = visit.get(asked).text
    do = experiment.trial(0)["do"]
    seen = {name: 0 for name in experiment.columns.names if name not in do}
    fields = dict(re.findall(r"<legend>(\w+).*?name=\"(v\d+)\"", page, re.S))
    assert set(fields) == set(seen)
    form = {fields[name]: "0" for name in seen} | {fields["wishlist"]: "?", "issued": "1"}
    check = visit.post("/experiments/1/today/0", status=200, **form).text
    assert "there is no undo" in check
    assert "wishlist not seen" in harmless(check).text
    assert experiment.trial(0)["state"] == "pending"
    done = visit.post("/experiments/1/today/0", **form, step="tell").headers["location"]
    assert "Trial 0 is told. Not seen: wishlist." in visit.get(done).text
    told = experiment.trial(0)
    assert told["observation"] == {**{name: 0 for name in seen if name != "wishlist"}, **do}
    again = visit.post("/experiments/1/today/0", **form, step="tell").headers["location"]
    assert "nothing was changed" in visit.get(again).text
    refused = visit.post("/experiments/1/today/0", status=422, **(form | {fields["visit"]: "1"}), step="tell").text
    assert "a trial is closed once" in refused
    audit = [(line.who, line.what, line.detail) for line in visit.storage.audit()]
    assert audit == [("login link", "ask", "trial 0"), ("login link", "tell", "trial 0")]


def test_a_round_that_fails_or_is_abandoned():
    visit = Visit()
    experiment = begin(visit.storage)
    for _ in range(3):
        experiment.ask()
    assert "Under way" in visit.get("/experiments/1/today").text  # three to choose from
    visit.post("/experiments/1/today/0/fail", reason="the shop was closed")
    visit.post("/experiments/1/today/1/abandon")
    assert [row["state"] for row in experiment.trials()] == ["failed", "abandoned", "pending"]
    assert experiment.trial(0)["reason"] == "the shop was closed"
    assert "nothing was seen" in visit.post("/experiments/1/today/2", status=422).text
    assert "is failed already" in visit.get("/experiments/1/today", trial=0).text


def test_trials_of_many_rounds_and_contexts_and_numbers():
    visit = Visit()
    graph = CausalGraph([("mail", "buy"), ("mobile", "buy")], target="buy", context=["mobile"])
    crowd = create_experiment("crowd", graph, budget=1, storage=visit.storage, seed=0)
    asked = visit.post("/experiments/1/today/ask", c0="1").headers["location"]
    assert "mobile = 1" in visit.get(asked).text
    assert crowd.trial(0)["context"] == {"mobile": 1}
    visit.post("/experiments/1/today/0/abandon")
    crowd.ask(size=10, context={"mobile": 0})
    rows = "mobile,mail,buy,count\n0,{0},1,4\n0,{0},0,6\n".format(crowd.trial(1)["do"].get("mail", 0))
    assert "count" in visit.get("/experiments/1/today", trial=1).text
    assert "Is this right?" in visit.post("/experiments/1/today/1", status=200, rows=rows).text
    visit.post("/experiments/1/today/1", rows=rows, step="tell", issued="1")
    assert crowd.trial(1)["rounds"] == 10
    table = harmless(visit.get("/experiments/1/trials/1").text).text
    assert "What was seen in 10 rounds" in table
    assert re.search(r"mail mobile buy count ([01]) 0 0 6 \1 0 1 4", table), table
    assert visit.get("/experiments/1", c0="1").status_code == 200
    smooth = create_experiment("smooth", GRAPH, budget=1, storage=visit.storage, seed=0, continuous=True, policy="ucb")
    trial = smooth.ask()
    field = f"v{smooth.columns.names.index('purchase')}"
    assert "is a number" in visit.post(f"/experiments/2/today/{trial.number}", status=422, **{field: "much"}).text
    visit.post(f"/experiments/2/today/{trial.number}", **{field: "0,25"}, step="tell")
    assert smooth.trial(trial.number)["observation"]["purchase"] == 0.25


# -- who, and what is not done ----------------------------------------------------------------------------------------


def test_readers_see_no_buttons_that_they_may_not_press(shop):
    token = create_token(shop.storage, "reader", "read", time.time(), "the tests")[0]
    answer = shop.request("GET", "/experiments/1", headers={"accept": "text/html", "authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert "/today" not in answer.text
    assert "/new" not in answer.text
    assert "/today" in shop.get("/experiments/1").text


def test_a_page_of_a_long_log_reads_only_what_is_new(monkeypatch):
    visit = Visit()
    experiment = begin(visit.storage)
    Shop(experiment, 0.0).play(3)
    seen = {"done": dict.fromkeys(experiment.columns.names, 0)}
    experiment.import_history([{"trial": i, "observation": seen["done"]} for i in range(500)])
    visit.get("/experiments/1")
    read = []
    storage = type(visit.storage)
    for name in ("closed_since", "rows"):
        original = getattr(storage, name)

        def counted(self, *given, original=original, **more):
            found = list(original(self, *given, **more))
            read.append(len(found))
            return iter(found) if original.__name__ == "rows" else found

        monkeypatch.setattr(storage, name, counted)
    for path in ("/experiments/1", "/", "/experiments/1/graph?round=503"):
        assert visit.request("GET", path).status_code == 200
    assert sum(read) <= 20  # the newest trials of the table, and no more
    read.clear()
    assert visit.get("/experiments/1/trials", status=303, position=3).headers["location"].endswith("/trials/3")
    assert sum(read) <= 1


def test_a_policy_without_a_model_is_not_called_one():
    visit = Visit()
    experiment = create_experiment("plain", GRAPH, budget=1, policy="ucb", storage=visit.storage, seed=0)
    Shop(experiment, 0.0).play(12)
    page = harmless(visit.get("/experiments/1").text).text
    assert "What the policy says" in page
    assert "the policy keeps no model of the causes." in page
    assert "What the model says" not in page
    assert "too many sets" not in page


def test_what_is_wrong_with_an_address_is_said_in_plain_words(shop):
    page = harmless(shop.get("/experiments/1/trials", 422, after="x").text).text
    assert "This cannot be done" in page
    assert "after is a whole number, but got 'x'" in page
    page = harmless(shop.get("/nowhere", 404).text).text
    assert "there is nothing at /nowhere." in page
    assert "/api/v1" not in page


def test_what_counts_as_hidden_is_named_and_not_drawn():
    visit = Visit()
    graph = CausalGraph([("a", "m"), ("u", "m"), ("u", "y"), ("m", "y"), ("b", "y")], target="y", latent=["u"])
    create_experiment("aside", graph, budget=1, storage=visit.storage, seed=0, hide=["m"])
    text = visit.get("/experiments/1").text
    assert "m counts as hidden too." in harmless(text).text.replace("&#39;", "").replace("'", "")
    assert 'aria-label="m"' not in text
    assert 'aria-label="a"' in text


def test_the_page_of_a_log_that_is_being_read_has_all_that_need_not_be_learned(monkeypatch, request):
    visit = Visit(read_at_once=3)
    experiment = begin(visit.storage)
    Shop(experiment, 0.0).play(6)
    over = threading.Event()
    request.addfinalizer(over.set)
    monkeypatch.setattr(PageCache, "follow", lambda cache: over.wait(60))  # a reader that gets nowhere
    text = visit.get("/experiments/1").text
    page = harmless(text)
    assert "The log is being read" in page.text
    assert 'http-equiv="refresh"' in text
    assert "svg" in page.tags  # the graph
    assert "/experiments/1/trials/5" in page.links  # the newest trials
    assert "What the model says" not in page.text
    trial = harmless(visit.get("/experiments/1/trials/5").text).text
    assert "What was seen" in trial
