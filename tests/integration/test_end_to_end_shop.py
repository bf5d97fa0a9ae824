"""A shop's experiment from beginning to end: a price that goes up or down, customers of two kinds, a popup that does
harm, control rounds, a hundred customers a trial, a restart, explanations, answers, and the log elsewhere."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest

import dobandit as dob
from dobandit.cli.main import main
from dobandit.storage import MemoryStorage
from helpers.experiments import knowledge, said

SIZE, TRIALS = 100, 40
GRAPH = dob.CausalGraph(
    [("price", "visit"), ("email", "visit"), ("mobile", "visit"), ("visit", "buy"), ("popup", "buy"), ("price", "buy")],
    target="buy",
    controllable=["price", "email", "popup"],
    context=["mobile"],
    bias=["price", "mobile", "visit", "buy"],
)
RULES = {"levers": {"price": (0, 1)}}  # 1: a high price


def chance_of_visit(price, email, mobile):
    return 0.3 + 0.4 * email * (1 - mobile) + 0.25 * mobile - 0.2 * price


def chance_of_buy(visit, popup, price):
    return max(0.05 + 0.6 * visit - 0.3 * popup * visit - 0.15 * price * visit, 0.0)


def truth(do, mobile):
    """E[buy | do(...), mobile]."""
    total = 0.0
    for price, share in [(do["price"], 1.0)] if "price" in do else [(0, 0.5), (1, 0.5)]:
        visit = chance_of_visit(price, do.get("email", 0), mobile)
        popup = do.get("popup", 0)
        total += share * (visit * chance_of_buy(1, popup, price) + (1 - visit) * chance_of_buy(0, popup, price))
    return total


def customers(do, mobile, rng):
    """A hundred customers: each distinct row with how often it was seen."""
    rows = {}
    for _ in range(SIZE):
        price = do.get("price", int(rng.random() < 0.5))
        visit = int(rng.random() < chance_of_visit(price, do.get("email", 0), mobile))
        buy = int(rng.random() < chance_of_buy(visit, do.get("popup", 0), price))
        rows[price, visit, buy] = rows.get((price, visit, buy), 0) + 1
    return [{"price": p, "visit": v, "buy": b, "count": count} for (p, v, b), count in rows.items()]


def carried_out(experiment, trials, rng):
    for _ in range(trials):
        mobile = int(rng.random() < 0.5)
        trial = experiment.ask(size=SIZE, context={"mobile": mobile})
        assert (trial.size, trial.context) == (SIZE, {"mobile": mobile})
        assert len(trial.do) <= 2
        assert trial.do.get("email", 1) == trial.do.get("popup", 1) == 1
        told = experiment.tell(trial, customers(trial.do, mobile, rng))
        assert (told.rounds, told.partial) == (SIZE, False)


def created(url, name="shop"):
    return dob.create_experiment(name, GRAPH, 2, storage=url, control=0.1, seed=11, **RULES)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The experiment after its rounds, half of them by another object."""
    url = f"sqlite:///{tmp_path_factory.mktemp('shop')}/shop.db"
    rng = np.random.default_rng(5)
    with created(url) as experiment:
        carried_out(experiment, TRIALS // 2, rng)
        before = knowledge(experiment)
    with dob.open_experiment("shop", url) as again:
        assert knowledge(again) == before
        carried_out(again, TRIALS // 2, rng)
    return url


@pytest.fixture
def shop(url):
    with dob.open_experiment("shop", url) as experiment:
        yield experiment


def test_a_restart_changes_nothing(shop):
    """One object that never stopped asks and knows the same."""
    alone, rng = created(MemoryStorage()), np.random.default_rng(5)
    carried_out(alone, TRIALS, rng)
    assert [row["do"] for row in alone.trials()] == [row["do"] for row in shop.trials()]
    assert knowledge(alone) == knowledge(shop)
    assert shop.learner.rounds == TRIALS * SIZE


def test_what_was_tried(shop):
    rows = shop.trials()
    status = shop.status()
    assert (status.told, status.rounds) == (TRIALS, TRIALS * SIZE)
    drawn = [np.random.default_rng([11, number]).random(4)[3] < 0.1 for number in range(TRIALS)]
    assert [row["control"] for row in rows] == drawn
    assert status.control.rounds == SIZE * sum(drawn) > 0
    assert status.treated.interval.low > status.control.interval.high  # it pays
    assert any(row["do"].get("price") == 0 for row in rows)
    harmful = sum("popup" in row["do"] for row in rows[TRIALS // 2 :])
    assert harmful == 0


def test_the_answer_depends_on_the_customer(shop):
    """By hand: a low price for all, and an email for those to whom it makes a difference."""
    for mobile in (0, 1):
        best = shop.recommend(context={"mobile": mobile})
        assert best.do["price"] == 0
        assert "popup" not in best.do
        assert best.interval.low <= best.value <= best.interval.high
        assert best.value == pytest.approx(truth(best.do, mobile), abs=0.05)
        options = [{"price": 0}, {"price": 0, "email": 1}, {"email": 1}, {"popup": 1}, {}, {"price": 1, "email": 1}]
        assert truth(best.do, mobile) >= max(truth(do, mobile) for do in options) - 1e-12
        assert shop.best_observed(context={"mobile": mobile}).rounds >= SIZE
    assert "email" in shop.recommend(context={"mobile": 0}).do
    with pytest.raises(dob.errors.ObservationError, match="'mobile' is missing"):
        shop.recommend()


def test_better_nothing_than_harm():
    """Where the popup is all that can be set, and was seen to do harm."""
    shop, rng = created(MemoryStorage()), np.random.default_rng(5)
    for do in ({"popup": 1}, {}) * 3:
        for mobile in (0, 1):
            rows = [{**do, "email": 0, "mobile": mobile, **row} for row in customers(do, mobile, rng)]
            shop.record(do, rows)
    for mobile in (0, 1):
        assert shop.recommend(["popup"], context={"mobile": mobile}).do == {}


def test_a_trial_in_a_context_that_sets_a_price_to_0_is_explained(shop):
    row = next(row for row in reversed(shop.trials()) if row["do"].get("price") == 0 and row["context"]["mobile"] == 1)
    shown = shop.explain(row["trial"])
    assert shown.do == row["do"]
    assert shown.predicted == row["predicted"]
    assert shown.rounds == row["trial"] * SIZE
    then = created(MemoryStorage())
    for known in shop.trials()[: row["trial"]]:
        then.record(known["do"], known["observation"])
    expected = then.learner.predict(row["do"], row["context"])
    assert (expected.value, expected.low, expected.high) == (shown.predicted, *shown.interval)
    assert shown.shares["price"] > 0  # 0 is better than what the price would be by itself
    rest = {name: value for name, value in row["do"].items() if name != "price"}
    assert shown.shares["price"] == shown.predicted - then.learner.predict(rest, row["context"]).value
    assert shown.margin >= 0
    assert shown.runner_up.do != shown.do
    control = next(row["trial"] for row in shop.trials() if row["control"])
    shown = shop.explain(control)
    assert (shown.do, shown.optimistic, shown.runner_up, shown.shares) == ({}, None, None, {})


def test_the_estimates_have_the_signs_of_the_truth(shop):
    found = {(row.cause, row.effect): row for row in shop.estimates()}
    assert found["price", "visit"].value < 0 < found["email", "visit"].value
    assert found["visit", "buy"].value > 0
    forms = ("a straight line (", "a straight line in each segment (", "a curve (", "a table by pattern (")
    assert all(row.form.startswith(forms) for row in found.values())  # links are learned here
    assert not any(row.outside for row in found.values())  # harm is what effects="any" takes into account
    assert all(row.low <= row.value <= row.high for row in found.values())
    assert found["visit", "buy"].rows == TRIALS * SIZE
    assert shop.diagnose().lines()


def test_the_log_goes_elsewhere_and_back(shop, tmp_path):
    text = shop.to_csv()
    fresh = created(f"sqlite:///{tmp_path}/copy.db")
    fresh.import_history(io.StringIO(text))
    assert fresh.learner.rounds == TRIALS * SIZE
    assert knowledge(fresh) == knowledge(shop)
    for mobile in (0, 1):
        ours, theirs = (one.evaluate({"email": 1}, context={"mobile": mobile}) for one in (fresh, shop))
        assert ours.observed == theirs.observed
    by_rows = created(MemoryStorage())
    by_rows.import_history(shop.to_pandas())
    assert knowledge(by_rows) == knowledge(fresh)
    ask = {"size": SIZE, "context": {"mobile": 1}, "control": False}
    assert said(fresh.ask(**ask))[1:] == said(by_rows.ask(**ask))[1:]


def test_the_command_line_says_the_same(shop, url, capsys):
    def run(*words):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["experiment", *words, "--storage", url])
        assert not ended.value.code
        return capsys.readouterr().out

    shown = " ".join(run("show", "shop").split())
    assert "to set at most 2 of email, popup, price (0 or 1) sizes sets of at most 2, nothing included" in shown
    assert "context mobile, known before acting" in shown
    assert "buy in control rounds" in shown
    best = json.loads(run("recommend", "shop", "--context", "mobile=0", "--json"))
    assert best["do"] == shop.recommend(context={"mobile": 0}).do
    estimates = json.loads(run("estimates", "shop", "--json"))
    assert [row["value"] for row in estimates] == [row.value for row in shop.estimates()]
    asked = json.loads(run("ask", "shop", "--context", "mobile=1", "--size", "100", "--json"))
    assert asked["context"] == {"mobile": 1}
    assert not math.isnan(asked["predicted"])
    run("abandon", "shop", str(asked["trial"]))
    assert f"trial {TRIALS}" in run("explain", "shop", str(asked["trial"]))
