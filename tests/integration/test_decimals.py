"""Numbers of what happens rarely: as many decimals as they need, the same in every place."""

import math
import re

import pytest

import dobandit as dob
from dobandit.texts import MOST_DECIMALS, decimals, fixed, with_interval
from helpers.experiment_commands import json_of
from helpers.pages import Visit

GRAPH = dob.CausalGraph([("ad", "visit"), ("visit", "buy")], target="buy", bias=["ad", "visit", "buy"])
ROWS = [
    {"ad": ad, "visit": visit, "buy": buy, "count": round(1e6 * 0.5 * p_visit * p_buy)}
    for ad, share in ((0, 0.01), (1, 0.02))
    for visit, p_visit in ((1, share), (0, 1 - share))
    for buy, p_buy in ((1, 0.004 + 0.2 * visit), (0, 0.996 - 0.2 * visit))
]


def places_in(text):
    """How many decimals each number in a text has."""
    return {len(found) for found in re.findall(r"[0-9]\.([0-9]+)", text)}


@pytest.mark.parametrize("usual", [2, 3])
def test_no_interval_has_less_than_its_digits(usual):
    """As many decimals as are needed to tell the ends apart, and no more."""
    for exponent in range(12):
        width = 0.7 * 10 ** (-exponent / 2)
        places = decimals((0.3, 0.3 + width), usual=usual)
        assert usual <= places <= MOST_DECIMALS
        shown = round(width * 10**places)  # the last digits
        assert places == MOST_DECIMALS or shown >= 10 ** (usual - 2)
        assert places == usual or width * 10 ** (places - 1) < 10 ** (usual - 2)


def test_decimals_of_numbers_that_stand_together():
    assert decimals() == decimals(None) == decimals((None, 0.2)) == decimals(0.0) == decimals(math.nan) == 3
    assert decimals((-math.inf, math.inf)) == decimals((0.2, 0.2)) == decimals(1e-9) == 3
    assert decimals(0.31, 0.002) == 3  # a column, by the largest
    assert decimals(0.0031, None, 0.0002) == 4
    assert decimals((0.1, 0.9), (0.0084, 0.0102)) == 4  # a column, by the narrowest
    assert (fixed(-0.0001, 3), fixed(-0.0001, 3, "+"), fixed(0.25, 3, "+")) == ("0.000", "+0.000", "+0.250")
    assert with_interval(0.409, 0.324, 0.501) == "0.409 (0.324 to 0.501)"
    assert with_interval(0.0011, -0.00091, 0.0031, sign="+") == "+0.0011 (-0.0009 to +0.0031)"


def test_a_ranking_and_an_experiment_say_the_same_digits(run, tmp_path, monkeypatch):
    """Columns have one number of decimals; what stands in the table is what JSON has, rounded."""
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "rare.csv").write_text(
        "ad,visit,buy,count\n" + "".join(",".join(map(str, row.values())) + "\n" for row in ROWS)
    )
    (tmp_path / "graph.txt").write_text("target: buy\nad -> visit\nvisit -> buy\n")
    words = ["graph.txt", "-k", 1, "--forbid", "visit"]
    said, ranking = run("rank", "rare.csv", *words).out, json_of(run("rank", "rare.csv", *words, "--json"))
    best = ranking["actions"][0]
    assert (
        places_in(ranking["sentence"]) == {decimals(best["interval"]), decimals(best["uplift"]["interval"])} <= {4, 5}
    )
    assert ranking["sentence"] in said
    column = decimals(*(action["interval"] for action in ranking["actions"]))
    for action in ranking["actions"]:
        value, low, high = (fixed(end, column) for end in (action["value"], *action["interval"]))
        assert f"{value}, {low}..{high}" in said
    run("experiment", "create", "rare", *words, "--history", "rare.csv", "--randomised")
    said = run("experiment", "recommend", "rare").out
    told = json_of(run("experiment", "recommend", "rare", "--json"))
    value, low, high = (fixed(end, decimals(told["interval"])) for end in (told["value"], *told["interval"]))
    assert f"{value}  ({low} .. {high})" in said
    assert told["sentence"] in said
    seen = told["best_observed"]
    low, high = seen["interval"]
    assert high - low < 0.001
    assert f"{seen['mean']:.5f}  ({low:.5f} .. {high:.5f}," in said
    table = run("experiment", "estimates", "rare").out
    (places,) = places_in(table.split("an interval")[0])
    for row in json_of(run("experiment", "estimates", "rare", "--json")):
        assert f"{row['low']:.{places}f} .. {row['high']:.{places}f}" in table


def test_a_page_says_them_too():
    visit = Visit()
    rare = dob.create_experiment(
        "rare", GRAPH, 1, storage=visit.storage, history=ROWS, randomised=True, forbid=["visit"]
    )
    page = visit.get("/experiments/1").text
    told, seen = rare.recommend(), rare.best_observed()
    for value, (low, high) in ((told.value, told.interval), (seen.mean, seen.interval)):
        places = decimals((low, high))
        assert f'{value:.{places}f} <span class="quiet">({low:.{places}f} to {high:.{places}f})' in page
    value, low, high = (fixed(end, decimals(told.interval, usual=2)) for end in (told.value, *told.interval))
    assert f"{value} ({low} to {high}" in page  # the sentence, of two digits
