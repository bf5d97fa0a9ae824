"""What no model can tell is not told, and what speaks against an answer keeps it from being final."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dobandit as dob
from dobandit.cli.main import main
from dobandit.errors import DobanditWarning
from dobandit.storage import MemoryStorage


def made(graph, **more):
    return dob.create_experiment("honest", graph, 1, storage=MemoryStorage(), seed=0, **more)


def test_people_who_were_chosen_are_no_effect():
    """Mail went to those who buy anyway: seg told people whom to write to, and mail does nothing."""
    graph = dob.CausalGraph([("seg", "buy"), ("mail", "buy"), ("ad", "buy")], target="buy", controllable=["mail", "ad"])
    rng, rows = np.random.default_rng(0), []
    for _ in range(1500):
        seg = int(rng.random() < 0.5)
        row = {"seg": seg, "mail": int(rng.random() < 0.2), "ad": int(rng.random() < 0.2), "do": ""}
        if rng.random() < (0.6 if seg else 0.1):
            row |= {"mail": 1, "do": "mail"}
        elif rng.random() < 0.3:
            row |= {"ad": 1, "do": "ad"}
        rows.append(row | {"buy": int(rng.random() < 0.1 + 0.6 * seg + 0.1 * row["ad"])})
    experiment = made(graph, history=rows, stop_within=0.05)
    advice = experiment.recommend()
    assert advice.do == {"ad": 1}
    assert advice.value == pytest.approx(0.5, abs=0.1)
    assert not experiment.learner.engine.revisions  # a node without causes gets none
    assert any("seg" in warning for warning in advice.warnings)
    assert any("make 'seg' context" in finding.advice for finding in experiment.diagnose().graph)
    assert "no allowed action is better" not in experiment.ask().why
    assert not experiment.status().may_stop


def test_what_counts_as_hidden_or_was_not_set_has_no_value():
    graph = dob.CausalGraph(
        [("mail", "visit"), ("visit", "buy"), ("mood", "visit"), ("mood", "buy")],
        target="buy",
        latent=["mood"],
        controllable=["mail", "visit"],
    )
    hidden = made(graph, hide=["visit"])
    for number in range(30):
        hidden.record({"mail": number % 2}, {"visit": number % 2, "buy": number % 3 == 0})
    found = hidden.evaluate({"visit": 1})
    assert math.isnan(found.value)
    assert (found.interval, found.uplift, found.gap) == ((0.0, 1.0), None, None)
    assert any("counts as hidden" in warning for warning in found.warnings)
    held = dob.create_experiment("held", graph, 2, storage=MemoryStorage(), always_set=["visit"])
    nothing = held.evaluate({})
    assert math.isnan(nothing.value)
    assert any("does not set it" in warning for warning in nothing.warnings)
    assert not math.isnan(held.evaluate({"visit": 1, "mail": 1}).value)


def test_an_action_that_is_not_allowed_is_not_the_best_allowed_one():
    graph = dob.CausalGraph([("a", "y"), ("b", "y")], target="y")
    experiment = made(graph)
    for number in range(40):
        experiment.record({"a": number % 2, "b": number % 2}, {"y": number % 2})
    both = experiment.evaluate({"a": 1, "b": 1})
    assert (both.probability_best, both.expected_loss) == (None, None)
    assert experiment.evaluate({"a": 1}).probability_best is not None


def test_a_study_needs_no_policy():
    result = dob.simulate(dob.paper.G4, rounds=20, replications=2)
    assert [label.split()[0] for label in result.labels] == ["CausalUCB", "UCB"]


def shared(seed):
    """A hidden cause of p and q, which the target tells apart: no line knows that setting a helps."""
    rng = np.random.default_rng(seed)
    for _ in range(3000):
        for do in ({}, {"a": 1}, {"b": 1}):
            u, a, b = rng.random() < 0.5, do.get("a", 0), do.get("b", 0)
            p, q = int(rng.random() < (0.5 if a else 0.9 if u else 0.1)), int(rng.random() < (0.9 if u else 0.1))
            y = int(rng.random() < (0.7 if p != q else 0.05) + 0.12 * b)
            yield {"a": a, "b": b, "p": p, "q": q, "y": y, "do": " ".join(do)}


SHARED = dob.CausalGraph(
    [("u", "p"), ("u", "q"), ("a", "p"), ("p", "y"), ("q", "y"), ("b", "y")],
    target="y",
    latent=["u"],
    controllable=["a", "b"],
)


def test_a_shared_hidden_cause_needs_no_lines_and_keeps_no_experiment_from_stopping(tmp_path):
    url = f"sqlite:///{tmp_path / 'e.db'}"
    experiment = dob.create_experiment("shared", SHARED, 1, storage=url, history=list(shared(0)), stop_within=0.3)
    again = dob.open_experiment("shared", storage=url)
    assert again.recommend() == experiment.recommend()
    told = experiment.recommend()
    assert told.gap <= 0.3
    assert not any("promised" in warning or "straight line" in warning for warning in told.warnings)
    assert "straight line" not in told.interval_words
    assert set(told.doubts) == set(experiment.status().doubts) <= set(told.warnings)
    assert experiment.status().may_stop is (not told.doubts and told.verdict in ("fits", "untested"))
    ranking = dob.rank(SHARED, list(shared(0)), budget=1)
    assert not any("straight line" in warning for warning in ranking.warnings)
    promised = made(SHARED, links="identity")
    assert not any("promised" in doubt for doubt in promised.recommend().doubts)
    hidden = made(SHARED, hide="auto", history=list(shared(0)))
    assert hidden.recommend().do == {"a": 1}
    assert not hidden.recommend().doubts


def test_rounds_that_refute_a_promised_link_keep_an_experiment_from_stopping(tmp_path, capsys):
    """The nearly empty set of a curve that is wrong is very narrow."""
    graph = dob.CausalGraph([("a", "y"), ("b", "y")], target="y", controllable=["a", "b"])
    chance = {(0, 0): 0.3, (1, 0): 0.5, (0, 1): 0.6, (1, 1): 0.4}
    rows = [
        {"do:a": a, "do:b": b, "y": y, "count": round((60 if a and b else 3000) * (p if y else 1 - p))}
        for (a, b), p in chance.items()
        for y in (0, 1)
    ]
    url = f"sqlite:///{tmp_path / 'e.db'}"
    settings = {"links": "logistic", "stop_within": 0.5, "history": rows, "seed": 1}
    experiment = dob.create_experiment("refuted", graph, 2, storage=url, **settings)
    told, status = experiment.recommend(), experiment.status()
    assert told.gap <= 0.5
    assert told.verdict == "contradicted"
    assert status.may_stop is False
    assert any("contradict" in doubt for doubt in status.doubts)
    for command, words in (
        ("recommend", "no: something speaks against it, see the notes"),
        ("show", "no: The rounds contradict"),
    ):
        with pytest.raises(SystemExit):
            main(["experiment", command, "refuted", "--storage", url])
        assert words in " ".join(capsys.readouterr().out.split())


def test_what_was_never_set_is_pointed_out(tmp_path):
    """x goes along with a hidden cause of y, and does harm; nobody has ever set it."""
    rng, rows = np.random.default_rng(7), []
    for _ in range(6000):
        u = rng.random() < 0.5
        x, z = int(rng.random() < (0.9 if u else 0.1)), int(rng.random() < 0.3)
        rows.append({"x": x, "z": z, "y": int(rng.random() < (0.6 if u else 0.1) - 0.1 * x * u + 0.1 * z)})
    graph = dob.CausalGraph([("x", "y"), ("z", "y")], target="y", controllable=["x", "z"])
    assert any("No round has set x, z" in warning for warning in dob.rank(graph, rows, budget=1).warnings)
    experiment = made(graph, history=rows, stop_within=0.2)
    assert experiment.recommend().do == {"x": 1}
    assert experiment.recommend().gap <= 0.2
    assert experiment.status().may_stop is False
    assert any("No round has set x to 1" in doubt for doubt in experiment.status().doubts)
    told = [{**row, "x": 1, "do": "x", "y": int(rng.random() < 0.3)} for row in rows[:150]]
    seen = dob.rank(graph, rows + told, budget=1)
    assert any(warning.startswith("Setting x = 1: y was 0.") for warning in seen.warnings)
    assert not any("No round has set x" in warning for warning in seen.warnings)


def test_a_harmful_lever_that_happens_by_itself_is_named_until_somebody_sets_it():
    """The rounds in which a banner was there by itself say that it harms, so that no policy needs to try it."""
    graph = dob.CausalGraph([("banner", "buy"), ("coupon", "buy")], target="buy", controllable=["banner", "coupon"])
    rng, rows = np.random.default_rng(0), []
    for number in range(1500):
        seen = {"banner": int(rng.random() < 0.5), "coupon": number % 2}
        buy = int(rng.random() < 0.5 - 0.4 * seen["banner"] + 0.3 * seen["coupon"])
        rows.append({**seen, "buy": buy, "do": "coupon" if seen["coupon"] else ""})
    settings = {"stop_within": 0.2, "history": rows, "randomised": True}
    experiment = made(graph, **settings)
    told = experiment.recommend()
    assert (told.do, told.gap <= 0.2) == ({"coupon": 1}, True)
    assert [lever.harms for lever in told.levers] == [True, False]
    (doubt,) = told.doubts
    assert doubt.startswith("No round has set banner to 1, or too few have: that no other action is better")
    assert doubt.endswith("carry out some rounds that set it and record them, or forbid it if you never would.")
    assert told.sentence.endswith("But there are doubts: see the notes.")
    experiment.record({"banner": 1}, {"banner": 1, "coupon": 0, "buy": 0})
    assert not experiment.recommend().doubts
    assert not made(graph, forbid=["banner"], **settings).recommend().doubts


def test_a_context_is_given_and_contradicts_nothing():
    """It cannot happen by itself, but somebody says that it is so."""
    graph = dob.CausalGraph(
        [("m", "v"), ("e", "v"), ("c", "v"), ("v", "b"), ("c", "b"), ("m", "b")],
        target="b",
        controllable=["e", "c"],
        context=["m"],
        bias=["v", "b"],
    )
    experiment, rng = made(graph, stop_within=0.9), np.random.default_rng(0)
    for _ in range(150):
        m = int(rng.random() < 0.8)
        trial = experiment.ask(context={"m": m})
        e, c = trial.do.get("e", 0), trial.do.get("c", 0)
        v = int(rng.random() < 0.1 + 0.2 * m + 0.3 * e + 0.2 * c)
        experiment.tell(trial, {"v": v, "b": int(rng.random() < 0.1 + 0.4 * v + 0.2 * c + 0.1 * m)})
    told = experiment.recommend(context={"m": 1})
    assert told.verdict != "contradicted"
    assert not told.doubts


def many_causes(causes, rows, rng, weight):
    """A target with many causes, of which the first four can be set, and rows in which chance decided on them."""
    names = [f"x{i}" for i in range(causes)]
    graph = dob.CausalGraph([(name, "y") for name in names], target="y", controllable=names[:4])
    values = (rng.random((rows, causes)) < 0.3).astype(int)
    y = (rng.random(rows) < 0.5 + values @ weight).astype(int)
    return graph, [dict(zip([*names, "y"], map(int, row), strict=True)) for row in np.column_stack([values, y])]


def test_a_right_link_with_many_causes_and_few_rows_is_not_contradicted():
    """A test of fit needs some rows for each weight; with 5 of them it called 7 of 20 right models wrong."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        graph, rows = many_causes(20, 100, rng, rng.uniform(-0.02, 0.02, 20))
        experiment = dob.create_experiment(f"wide {seed}", graph, 2, storage="memory", links="identity")
        experiment.import_history(rows, randomised=True)
        assert experiment.recommend().verdict != "contradicted"


@pytest.mark.parametrize("causes", [8, 9])
def test_what_is_shown_is_never_wider_than_what_is_proved(causes):
    """Few rows bear on each of so many patterns, but the action's own rounds are many."""
    rng = np.random.default_rng(causes)
    graph, _ = many_causes(causes, 1, rng, np.zeros(causes))
    experiment = dob.create_experiment(f"proved {causes}", graph, 1, storage="memory", seed=1)
    for do, p in (({"x0": 1}, 0.7), ({}, 0.4), ({"x1": 1}, 0.4)):
        rows = (rng.random((300, causes)) < 0.5).astype(int)
        told = [{**{f"x{i}": int(x) for i, x in enumerate(row)}, **do, "y": int(rng.random() < p)} for row in rows]
        experiment.import_history([{**{f"do:{k}": v for k, v in do.items()}, **row} for row in told], randomised=True)
    said = experiment.recommend()
    proof = said.guaranteed
    assert said.do == {"x0": 1}
    shown = (said.value, said.interval, proof.interval), (said.uplift.value, said.uplift.interval, proof.uplift)
    for value, interval, proved in shown:  # the value is always inside
        assert min(proved.low, value) <= interval.low <= value <= interval.high <= max(proved.high, value)


def test_a_lever_that_leads_nowhere_raises_no_doubt():
    with pytest.warns(DobanditWarning, match="no path"):
        graph = dob.CausalGraph([("a", "y"), ("idle", "z")], target="y", controllable=["a", "idle"])
    experiment = dob.create_experiment("nowhere", graph, 1, storage="memory", seed=1)
    rng = np.random.default_rng(3)
    for i in range(200):
        do = {"a": 1} if i % 2 else {}
        seen = {"a": int(rng.random() < 0.5), "idle": int(rng.random() < 0.5), "z": 0, **do}
        experiment.record(do, {**seen, "y": int(rng.random() < (0.8 if seen["a"] else 0.3))})
    assert not any("idle" in doubt for doubt in experiment.recommend().doubts)


def test_before_one_may_stop_every_lever_has_been_tried():
    """What a lever brings can be concluded from rounds in which it was so by itself: an ask then tries it once."""
    graph = dob.CausalGraph(
        [("good", "y"), ("bad", "y")], target="y", controllable=["good", "bad"], bias=["good", "bad"]
    )
    experiment = dob.create_experiment("tried", graph, 1, storage=MemoryStorage(), stop_within=0.1, control=0.1, seed=2)
    rng, tried = np.random.default_rng(4), 0
    for _ in range(60):
        trial = experiment.ask(size=20)
        if trial.why.startswith("tried once"):
            tried += 1
            assert experiment.explain(trial).why == trial.why
        rows = []
        for _ in range(20):
            row = {"good": int(rng.random() < 0.5), "bad": int(rng.random() < 0.5), **trial.do}
            rows.append({**row, "y": int(rng.random() < 0.3 + 0.5 * row["good"] - 0.25 * row["bad"])})
        experiment.tell(trial, rows)
    status = experiment.status()
    assert status.may_stop is True
    assert status.doubts == ()
    assert tried <= 1
    sets = {name for told in experiment.trials() for name in told["do"]}
    assert sets == {"good", "bad"}
