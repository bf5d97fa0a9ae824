"""`dobandit experiment` as a user meets it: what it answers."""

import json

import pytest

from helpers.experiment_commands import json_of, refused

# -- answers -----------------------------------------------------------------------------------------------------


@pytest.fixture
def told(x):
    """With some rounds behind it, and one pending."""
    rows = ["1,,0,1,1", "1,,1,1,1", "1,,0,0,0", ",1,,1,0", ",1,,0,0", ",,0,0,0"]
    x("import", "spring", "-", "--randomised", stdin="\n".join(["do:coupon,do:email,email,visit,buy", *rows]).encode())
    x("ask", "spring")
    return x


def test_recommend_keeps_the_model_and_the_data_apart(told):
    text = told("recommend", "spring").out
    model, data = text.split("what the data alone say, without any model")
    assert "estimated E[buy]" in model
    assert "rounds with this set  3" in data
    answer = json_of(told("recommend", "spring", "--json"))
    assert list(answer)[:3] == ["do", "value", "interval"]
    assert answer["observed"] is None or answer["observed"]["rounds"] > 0
    assert {"nothing", "uplift", "probability_best", "gap", "verdict", "warnings"} <= set(answer)
    assert answer["best_observed"]["do"] == {"coupon": 1}
    limited = json_of(told("recommend", "spring", "--available", "email", "--json"))
    assert limited["do"] == {"email": 1}


def test_evaluate_answers_for_any_action(told):
    answer = json_of(told("evaluate", "spring", "--do", "coupon=1", "--json"))
    assert answer["do"] == {"coupon": 1}
    assert answer["observed"]["rounds"] == 3
    assert set(answer["nothing"]) == set(answer["uplift"]) == {"value", "interval"}
    assert 0.0 <= answer["gap"] <= 1.0
    assert answer["sentence"].startswith("With coupon set, ")
    assert answer["guaranteed"] is None
    assert answer["verdict"] in ("fits", "contradicted", "unknown")
    assert isinstance(answer["warnings"], list)
    text = told("evaluate", "spring", "--do", "coupon=1").out
    assert "of the policy's confidence regions times 0.1, for which no level is known" in text
    assert "95% confidence, valid at every look" in text
    assert json_of(told("evaluate", "spring", "--json"))["do"] == {}
    refused(told("evaluate", "spring", "--do", "coupon=?", code=2))
    refused(told("evaluate", "spring", "--do", "nobody=1", code=2))


def test_when_to_stop(run):
    run("experiment", "create", "stop", "graph.txt", "-k", 1, "--seed", 0, "--stop-within", 0.999)
    assert "no allowed action is better by more than 0.999" in run("experiment", "show", "stop").out
    assert "95%, at every look (asymptotic)" in run("experiment", "ask", "stop").out
    shown = json_of(run("experiment", "show", "stop", "--json"))
    assert shown["definition"]["stop_within"] == shown["stop_within"] == 0.999
    assert isinstance(shown["may_stop"], bool)
    answer = json_of(run("experiment", "recommend", "stop", "--json"))
    assert 0.0 <= answer["probability_best"] <= 1.0
    assert answer["gap"] == pytest.approx(shown["gap"])
    refused(run("experiment", "create", "no", "graph.txt", "-k", 1, "--stop-within", 2, code=2))


def test_answers_without_a_model_and_without_data(x):
    x("create", "blind", "graph.txt", "-k", 1, "--policy", "ucb")
    x("ask", "blind")
    assert json_of(x("recommend", "blind", "--json"))["best_observed"] is None
    text = x("recommend", "blind").out
    assert "keeps averages and no model" in text
    assert "no round with an allowed set has seen buy yet" in text
    assert json_of(x("explain", "blind", 0, "--json"))["optimistic"] is None
    assert "inf" not in x("explain", "blind", 0).out
    assert x("diagnose", "blind").out
    assert json_of(x("diagnose", "spring", "--json"))
    assert "no model" in refused(x("estimates", "blind", code=2))


def test_explain(told):
    text = told("explain", "spring", 6).out
    assert text.startswith("trial 6: set ")
    assert "6 rounds; 0 other trials under way" in text
    assert "adds to the estimate" in text
    answer = json_of(told("explain", "spring", 6, "--json"))
    assert (answer["trial"], answer["rounds"]) == (6, 6)
    assert "randomised" in refused(told("explain", "spring", 0, code=2))


def test_estimates(told):
    assert "(by itself)" in told("estimates", "spring").out
    rows = json_of(told("estimates", "spring", "--json"))
    assert ("coupon", "visit") in {(row["cause"], row["effect"]) for row in rows}
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows)


def test_a_weight_outside_of_what_is_promised_is_marked(x):
    assert "(outside)" not in x("estimates", "spring").out
    rows = ["coupon,email,visit,buy,count", "1,0,0,0,50", "0,0,0,0,25", "0,0,1,1,25", "0,1,1,1,25", "1,1,0,0,25"]
    x("import", "spring", "-", stdin="\n".join(rows).encode())
    text = x("estimates", "spring").out
    (line,) = [line for line in text.splitlines() if line.split()[:2] == ["coupon", "visit"]]
    assert float(line.split()[2]) < 0
    assert line.rstrip().endswith("(outside)")
    assert "shown as the data have it" in text
    found = {(row["cause"], row["effect"]): row for row in json_of(x("estimates", "spring", "--json"))}
    assert found["coupon", "visit"]["outside"] is True
    assert found["visit", "buy"]["outside"] is False


def test_diagnose(told):
    assert "6 rounds" in told("diagnose", "spring").out
    assert json_of(told("diagnose", "spring", "--json"))


def test_trials(told):
    told("fail", "spring", 6, "rain")
    text = told("trials", "spring").out
    assert "randomised" in text
    assert "rain" in text
    rows = json_of(told("trials", "spring", "--last", 2, "--json"))
    assert [row["trial"] for row in rows] == [5, 6]
    assert rows[1]["reason"] == "rain"
    assert [row["trial"] for row in json_of(told("trials", "spring", "--state", "failed", "--json"))] == [6]
    assert told("trials", "spring", "--state", "pending").out == "no pending trials\n"
    assert json_of(told("trials", "spring", "--state", "pending", "--json")) == []


def test_names_are_shown_and_not_obeyed(run, tmp_path):
    variable, name = "[red]café\x1b[31m", "größe \x07"
    edges = {"target": "日本", "edges": [[variable, "日本"]]}
    (tmp_path / "graph.json").write_text(json.dumps(edges, ensure_ascii=False), encoding="utf-8")
    run("experiment", "create", name, "graph.json", "-k", 1, "--full-size")
    asked = json_of(run("experiment", "ask", name, "--json"))
    assert asked["do"] == {variable: 1}
    assert run("experiment", "tell", name, 0, "日本=1").out == "trial 0 told\n"
    for command in (["ask"], ["trials"], ["show"], ["recommend"], ["estimates"], ["diagnose"]):
        text = run("experiment", *command, name).out
        assert "\x1b" not in text
        assert "\x07" not in text
    assert "[red]café" in run("experiment", "estimates", name).out
    assert "größe" in run("experiment", "list").out
    assert json_of(run("experiment", "list", "--json"))[0]["name"] == name
