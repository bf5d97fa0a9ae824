"""Pages of an experiment with a context: whatever they say of what to set names the context that it is said of."""

import math
import re
import time

import pytest

from dobandit import CausalGraph, create_experiment
from dobandit.experiment.reasons import may_stop
from dobandit.experiment.stretches import CONTEXTS
from dobandit.service.page_cache import PageCache
from dobandit.service.pages import page_wording
from dobandit.service.pages.experiment_page import snapshot_of, view
from dobandit.service.service_settings import Settings
from helpers.pages import HOSTILE, Visit, harmless

BEST = {0: "email", 1: "banner"}  # what to set, by mobile: each does harm in the other context
ROUNDS = {0: 300, 1: 5700}


def patient():
    """A visitor who waits for all answers, however busy the machine is."""
    return Visit(page_seconds=math.inf, newer_seconds=math.inf)


def shop_rows():
    """A tenth of the rounds sets nothing; the others set either. The target is 1 just as often as the world says."""
    for mobile, rounds in ROUNDS.items():
        for name, share in ((None, 0.1), ("email", 0.45), ("banner", 0.45)):
            chance = 0.4 if name is None else 0.8 if name == BEST[mobile] else 0.1
            here = round(rounds * share)
            row = {"mobile": mobile, **({f"do:{name}": 1} if name else {})}
            seen = {other: 0 for other in BEST.values() if other != name}
            ones = round(here * chance)
            yield {**row, **seen, "y": 1, "count": ones}
            yield {**row, **seen, "y": 0, "count": here - ones}


@pytest.fixture(scope="module")
def shop():
    visit = patient()
    edges = [(name, "y") for name in ("mobile", "email", "banner")]
    graph = CausalGraph(edges, target="y", controllable=["email", "banner"], context=["mobile"])
    visit.experiment = create_experiment(
        "seg", graph, 1, storage=visit.storage, seed=1, stop_within=0.15, history=list(shop_rows())
    )
    return visit


def rows_of(text):
    """The table of contexts, a list of cells a row."""
    table = re.search(r'aria-labelledby="segments">.*?<tbody>(.*?)</tbody>', text, re.S)[1]
    cells = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.S)
    return [
        [" ".join(re.sub("<[^>]+>", "", cell).split()) for cell in cells.findall(row)] for row in table.split("</tr>")
    ][:-1]


def test_the_sentence_on_top_names_the_context_and_begins_with_the_one_seen_most_often(shop):
    for query, mobile in (({}, 1), ({"c0": "1"}, 1), ({"c0": "0"}, 0), ({"c0": "much"}, 1)):
        text = shop.get("/experiments/1", **query).text
        page = harmless(text).text
        assert f"Where mobile = {mobile}: set {BEST[mobile]}: y rises by" in page
        told = shop.experiment.recommend(context={"mobile": mobile})
        assert ("May I stop in this context? Yes" in page) == may_stop(told, 0.15)
        assert f"This context had {ROUNDS[mobile]:,} of 6,000 rounds" in page
        assert ("no other had more" in page) == (mobile == 1)
        assert "In the other context below, another set looks best." in page
        assert f"where mobile = {mobile}: set {BEST[mobile]}; y estimated at" in page  # below the graph
        assert f'<option value="{mobile}" selected>' in text
    assert "where mobile = 0: set email" in shop.get("/experiments/1/graph", c0="0", round=10**9).text


@pytest.mark.parametrize("query", [{}, {"c0": "0"}])
def test_the_page_and_the_snapshot_say_what_to_set_in_each_context_and_whether_one_may_stop_there(shop, query):
    page, file = shop.get("/experiments/1", **query).text, shop.get("/experiments/1/snapshot", **query).text
    assert rows_of(page) == rows_of(file)
    for row, mobile in zip(rows_of(file), (1, 0), strict=True):
        told = shop.experiment.recommend(context={"mobile": mobile})
        where, rounds, to_set, value, stop = row
        assert (where, to_set) == (f"mobile = {mobile}", BEST[mobile])
        assert rounds == f"{ROUNDS[mobile]:,} ({ROUNDS[mobile] / 60:.1f}%)"
        assert value == f"{told.value:.2f} ({told.interval.low:.2f} to {told.interval.high:.2f}, 95%)"
        assert stop.startswith("Yes" if may_stop(told, 0.15) else "Not yet")
        assert f"{told.gap:.2f}" in stop
    assert f"Where mobile = {query.get('c0', 1)}: set" in harmless(file.split("</style>")[1]).text
    assert '"?c0=0"' in page
    assert '"?c0=' not in file


def test_a_snapshot_without_a_service_is_the_same(shop):
    text = snapshot_of(shop.experiment, shop.storage.find("seg"), 0.0)
    assert rows_of(text) == rows_of(shop.get("/experiments/1/snapshot").text)
    assert "Where mobile = 1: set banner:" in text


def test_the_card_of_an_experiment_says_where_each_set_is_best(shop):
    shop.get("/experiments/1")
    card = harmless(shop.get("/").text).text
    assert re.search(r"Set banner where mobile = 1 \(95\.0% of rounds\) .*Set email where mobile = 0 \(5\.0%", card)


# -- many contexts, few, and none -------------------------------------------------------------------------------------


def crowd(visit, number, seen):
    """An experiment of which `seen` says how often each context was seen; the mail does good in all of them.

    number  of context variables
    """
    names = [f"c{i}" for i in range(number)]
    edges = [(name, "y") for name in ("mail", "post", *names)]
    graph = CausalGraph(edges, target="y", controllable=["mail", "post"], context=names)
    rows = [
        {**dict(zip(names, values, strict=True)), f"do:{name}": 1, other: 0, "y": y, "count": times * odds}
        for values, times in seen
        for name, other, chances in (("mail", "post", (1, 3)), ("post", "mail", (3, 1)))
        for y, odds in enumerate(chances)
    ]
    return create_experiment("crowd", graph, 1, storage=visit.storage, seed=1, links="logistic", history=rows or None)


def bits(i, number):
    return tuple(i >> j & 1 for j in range(number))


def test_of_many_contexts_those_seen_most_often_are_shown_and_no_more():
    visit = patient()
    seen = {bits(i, 5): 1 + (7 * i) % 31 for i in range(30)}
    experiment = crowd(visit, 5, seen.items())
    rows = rows_of(snapshot_of(experiment, visit.storage.find("crowd"), 0.0))
    assert len(rows) == CONTEXTS
    most = sorted(seen.items(), key=lambda one: -one[1])[:CONTEXTS]
    assert [int(row[1].split()[0]) for row in rows] == [8 * times for _, times in most]
    assert all(row[2] == "mail" for row in rows)
    page = harmless(visit.get("/experiments/1").text).text
    assert f"The {CONTEXTS} of 30 contexts that were seen most often" in page
    assert "In all 11 other contexts below, the same set looks best." in page
    usual = visit.get("/").text
    share = 100 * sum(times for _, times in most[:3]) / sum(seen.values())
    assert f"in the 3 contexts seen most often ({share:.1f}% of rounds)" in harmless(usual).text
    assert "27 other contexts: see its page" in usual


def test_where_one_set_is_best_in_every_context_that_was_seen_the_card_says_so():
    visit = patient()
    crowd(visit, 2, [((0, 1), 10), ((1, 1), 30)])
    visit.get("/experiments/1")
    card = harmless(visit.get("/").text).text
    assert "Set mail in every context seen" in card
    assert re.search(r"y 0\.\d\d \(.*?\) where c0 = 1, c1 = 1", card)
    page = harmless(visit.get("/experiments/1", c0="0", c1="0").text).text
    assert "Where c0 = 0, c1 = 0: set mail:" in page
    assert "This context had 0 of 320 rounds (0.0%)." in page


def test_where_no_context_was_seen_wholly_zeros_are_shown_and_named():
    visit = patient()
    crowd(visit, 2, [((1, None), 10), ((None, 1), 10)])
    text = visit.get("/experiments/1").text
    assert "Where c0 = 0, c1 = 0: set mail:" in text
    assert "This context had 0 of 160 rounds" in text
    assert "Of 160 rounds the context is not wholly known." in text
    assert "where c0 = 0, c1 = 0" in visit.get("/").text


def test_before_the_first_round_no_context_is_spoken_of():
    visit = patient()
    crowd(visit, 2, [])
    text = visit.get("/experiments/1").text
    assert "Nothing was told yet" in text
    assert "This context had" not in text
    assert "segments" not in harmless(text).ids


def wait_until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_answers_for_many_contexts_that_take_long_come_later():
    visit = Visit()
    experiment = crowd(visit, 3, [(bits(i, 3), 9 - i) for i in range(8)])
    cache, stored = PageCache(experiment, Settings(newer_seconds=0.0)), visit.storage.find("crowd")
    assert cache.ready(stored)
    shown = view(cache, stored, cache.usual, None, seconds=0.0)
    assert [one.answers is None for one in shown["segments"]] == [False, *[True] * 7]  # the headline's is there
    wait_until(lambda: all(one.answers for one in cache.segments(seconds=0.0)))
    before = cache.segments(seconds=0.0)
    for one in before:
        told = experiment.recommend(context=one.context)
        assert one.answers.recommendation == told
    trial = experiment.ask(context=cache.usual)
    experiment.tell(trial, {"mail": 0, "post": 0, **trial.do, "y": 1})
    assert cache.ready(stored)
    other = view(cache, stored, cache.usual, None)  # one visit is enough for all of them, the headline's first
    assert [one.answers.closed for one in other["segments"]] == [one.answers.closed for one in before]
    wait_until(lambda: [one.answers.closed for one in cache.segments()] == [stored.closed + 1] * 8)


def test_a_page_says_what_is_being_worked_out_and_comes_again():
    visit = Visit(page_seconds=-1.0)
    crowd(visit, 2, [((0, 1), 10), ((1, 1), 30)])
    text = visit.get("/experiments/1").text
    assert "being worked out" in text
    assert 'http-equiv="refresh"' in text
    until = time.monotonic() + 60
    while "being worked out" in text and time.monotonic() < until:
        time.sleep(0.05)
        text = visit.get("/experiments/1").text
    assert "being worked out" not in text
    assert 'http-equiv="refresh"' not in text


def test_hostile_names_of_context_variables_do_no_harm():
    visit = Visit()
    edges = [(name, "y") for name in ("mail", *HOSTILE)]
    graph = CausalGraph(edges, target="y", controllable=["mail"], context=HOSTILE)
    experiment = create_experiment("hostile", graph, 1, storage=visit.storage, seed=1)
    for value in (0, 1, 1):
        trial = experiment.ask(context=dict.fromkeys(HOSTILE, value))
        experiment.tell(trial, {"mail": trial.do.get("mail", 0), "y": value})
    for path in ("/", "/experiments/1"):
        assert "<script>alert(1)</script> = 1" in harmless(visit.get(path).text).text


# -- words ------------------------------------------------------------------------------------------------------------


def test_contexts_in_words():
    assert page_wording.context({"mobile": 1, "age": 0.25}) == "mobile = 1, age = 0.25"
    wide = dict.fromkeys("abcdef", 0)
    assert page_wording.context(wide) == "all 6 variables = 0"
    assert page_wording.context(wide | {"c": 1}) == "c = 1, all others = 0"
    assert page_wording.context(dict.fromkeys("abcde", 1)) == "a = 1, b = 1, c = 1, d = 1, e = 1"


def test_what_is_said_of_other_contexts():
    a, b = {"a": 1}, {"b": 1}
    assert page_wording.elsewhere(a, [a]) == "In the other context below, the same set looks best."
    assert page_wording.elsewhere(a, [b]) == "In the other context below, another set looks best."
    assert page_wording.elsewhere(a, [a, b, a]) == "In 1 of the 3 other contexts below, another set looks best."
    assert page_wording.elsewhere(a, [b, b]) == "In all 2 other contexts below, another set looks best."
    assert page_wording.elsewhere(a, [a, a]) == "In all 2 other contexts below, the same set looks best."
