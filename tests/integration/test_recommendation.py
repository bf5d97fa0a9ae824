"""Recommendations that hide nothing, and when an experiment may stop."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dobandit as dob
from dobandit import limits
from dobandit.errors import ExperimentError, InterventionError
from dobandit.experiment.reasons import lever_words, may_stop, sentence_of, stop_words
from dobandit.policy.answers import Recommendation, Worth, lever_effect
from dobandit.policy.engine import Interval
from dobandit.rows.export import document
from dobandit.service.pages.page_wording import headline

GRAPH = dob.CausalGraph([("email", "buy"), ("coupon", "buy")], target="buy")
NAMES = map("spring-{}".format, itertools.count())


def experiment(**settings):
    settings = {"budget": 1, "storage": "memory", "seed": 0, **settings}
    return dob.create_experiment(f"advice {next(NAMES)}", settings.pop("graph", GRAPH), **settings)


def play(test, rounds, weights=(0.1, 0.05, 0.7), seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        trial = test.ask()
        email, coupon = trial.do.get("email", 0), trial.do.get("coupon", 0)
        buy = int(rng.random() < weights[0] + weights[1] * email + weights[2] * coupon)
        test.tell(trial, {"email": email, "coupon": coupon, "buy": buy})
    return test


def test_a_verdict_is_waited_for_no_longer_than_a_few_seconds(monkeypatch):
    test = play(experiment(), 60)
    monkeypatch.setattr(limits, "DIAGNOSIS_SECONDS", 0.0)
    unknown = test.recommend()
    assert unknown.verdict == "unknown"
    assert any("was not tested, since that takes longer" in said for said in unknown.warnings)
    assert test.diagnose().rounds == 60
    assert test.recommend().verdict == "fits"


def test_all_that_is_known_stands_beside_the_value():
    test = play(experiment(control=0.2), 500)
    told = test.recommend()
    do, value, interval = told[:3]
    assert do == {"coupon": 1}
    assert interval.low <= value <= interval.high
    assert told.interval_words == test.interval_words == "95%, at every look (asymptotic)"
    assert told.uplift.value == pytest.approx(value - told.nothing.value)
    assert told.uplift.interval.low >= interval.low - told.nothing.interval.high - 1e-9  # what both share cancels
    assert told.guaranteed.uplift.low <= told.uplift.interval.low <= told.uplift.interval.high
    rows = [row for row in test.trials() if row["do"] == do]
    assert told.observed.rounds == len(rows)
    assert told.observed.mean == pytest.approx(np.mean([row["observation"]["buy"] for row in rows]))
    assert told.probability_best > 0.9
    assert told.expected_loss < 0.02
    assert 0.0 <= told.gap < 1.0
    assert told.verdict == "fits"
    assert told == test.recommend()
    looked_at = test.evaluate(do)
    assert looked_at._replace(sentence=told.sentence) == told
    ends = " to ".join(f"{end:.2f}" for end in told.uplift.interval)
    rises = f"buy rises by {told.uplift.value:.2f} ({ends}; 95%, at every look) over doing nothing."
    assert (told.sentence, looked_at.sentence) == (f"Set coupon: {rises}", f"With coupon set, {rises}")


def test_any_action_can_be_looked_at():
    test = play(experiment(), 200)
    nothing, worse = test.evaluate({}), test.evaluate({"email": 1})
    assert nothing.uplift == (0.0, (0.0, 0.0))
    assert worse.probability_best < 0.1
    assert worse.expected_loss > 0.3
    assert worse.gap > test.recommend().gap
    both = test.evaluate({"email": 1, "coupon": 1})
    assert "The rules of the experiment do not allow this action." in both.warnings
    assert both.observed is None
    assert any("No asked or randomised round with exactly this action" in warning for warning in both.warnings)
    with pytest.raises(InterventionError):
        test.evaluate({"buy": 1})


def test_a_contradiction_is_not_hidden():
    """Only both together work, where the policy was promised a line."""
    test = experiment(budget=2, links="identity")
    rng = np.random.default_rng(0)
    for _ in range(600):
        a, b = rng.integers(0, 2, 2)
        test.record({"email": a, "coupon": b}, {"buy": int(rng.random() < 0.05 + 0.9 * (a != b))})
    told = test.recommend()
    assert told.verdict == "contradicted"
    assert any("contradict" in warning for warning in told.warnings)


def test_policies_without_a_model_give_what_they_can():
    told = play(experiment(policy="ucb"), 30).recommend()
    assert told.observed is not None
    assert (told.probability_best, told.expected_loss, told.levers) == (None, None, ())
    assert told.verdict == "unknown"
    assert told.interval_words == "holds with 95% at every round you look"
    first = experiment().recommend()
    assert first.observed is None
    assert not math.isnan(first.value)


@pytest.mark.parametrize(
    ("policy", "horizon", "level"),
    [
        (dob.BLMLR(), None, "at least 95%"),
        (dob.BLMLR(delta=0.1), None, "at least 90%"),
        (dob.BLMLR(), 10_000, "at least 99%"),  # 1 - 1 / sqrt(T)
        (dob.BGLMOFU(), 10_000, "at least 99%"),
        (dob.BLMLR(radius_scale=0.1), None, "times 0.1, for which no level is known"),
    ],
)
def test_intervals_of_the_papers_regions_say_their_level(policy, horizon, level):
    graph = dob.CausalGraph(edges=[("a", "Y")], target="Y")
    experiment = dob.create_experiment("regions", graph, 1, policy=policy, horizon=horizon, storage="memory")
    words = experiment.interval_words
    assert words.startswith("of the policy's confidence regions")
    assert words.endswith(level)


def test_it_says_when_to_stop_and_goes_on_if_asked():
    test = experiment(stop_within=0.3)
    assert test.status().may_stop is False
    assert test.status().gap > 0.3
    assert "may stop" not in test.ask().why
    play(test, 700)
    status = test.status()
    assert status.may_stop is True
    assert status.gap <= status.stop_within == 0.3
    trial = test.ask()
    agreed = "may stop if recommend says so too"
    assert f"{agreed}: no allowed action is better by more than 0.3, with 95%, at every look" in trial.why
    assert status.guaranteed_gap == test.recommend().guaranteed.gap
    assert test.recommend().gap == status.gap
    assert test.definition.document["stop_within"] == 0.3
    assert "stop_within" not in experiment().definition.document
    assert experiment().status().may_stop is None


@pytest.mark.parametrize("within", [0, 1.0, -0.1, True, "0.1", math.nan])
def test_a_strange_stop_is_refused(within):
    with pytest.raises(ExperimentError, match=r"stop_within is .* Try 0\.02"):
        experiment(stop_within=within)


def told_of(**fields):
    """A recommendation as an experiment gives it, with some of it made up."""
    words = {"interval_words": "95%, at every look (asymptotic)", "verdict": "fits", **fields}
    return Recommendation({"coupon": 1, "mail": 1}, 0.3, Interval(0.2, 0.4), **words)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"uplift": (0.12, (0.05, 0.19))}, "buy rises by 0.12 (0.05 to 0.19; 95%, at every look) over doing nothing."),
        (
            {"uplift": (0.12, (-0.05, 0.29))},
            "buy may rise by 0.12 (-0.05 to 0.29; 95%, at every look) over doing nothing; this is not certain yet.",
        ),
        (
            {"uplift": (-0.04, (-0.07, -0.01))},
            "buy falls by 0.04 (0.01 to 0.07; 95%, at every look) below doing nothing.",
        ),
        (
            {"uplift": (-0.04, (-0.07, 0.02))},
            "buy may fall by 0.04 (-0.02 to 0.07; 95%, at every look) below doing nothing; this is not certain yet.",
        ),
        (
            {"uplift": (-0.003, (-0.05, 0.05))},
            "buy may fall by less than 0.01 (-0.05 to 0.05; 95%, at every look) below doing nothing; this is not "
            "certain yet.",
        ),
        ({}, "buy is estimated at 0.30 (0.20 to 0.40; 95%, at every look)."),
        (
            {"interval_words": "holds with 90% at every round you look"},
            "buy is estimated at 0.30 (0.20 to 0.40; 90%, at every look).",
        ),
        (
            {"verdict": "contradicted"},
            "buy is estimated at 0.30 (0.20 to 0.40; 95%, at every look). Do not rely on this: the rounds contradict "
            "the model.",
        ),
        ({"value": math.nan}, "what buy is then, the policy cannot tell yet."),
    ],
)
def test_one_sentence_says_what_to_do_what_it_brings_and_how_sure_that_is(fields, sentence):
    if "uplift" in fields:
        fields["uplift"] = Worth(fields["uplift"][0], Interval(*fields["uplift"][1]))
    value = fields.pop("value", 0.3)
    told = told_of(**fields)._replace(value=value)
    assert sentence_of(told, "buy") == f"Set coupon and mail: {sentence}"
    assert sentence_of(told, "buy", recommended=False) == f"With coupon and mail set, {sentence}"


@pytest.mark.parametrize("always", [0, 1])
def test_a_target_that_never_differs_tells_nothing(always):
    test = experiment(stop_within=0.3)
    assert test.recommend().sentence == "Nothing can be told yet: no round has seen buy."
    play(test, 300, weights=(always, 0, 0))
    told = test.recommend()
    assert told.gap <= 0.3
    said = f"Nothing can be told yet: buy was never anything but {always} in 300 rounds. Check that it is recorded."
    assert (told.sentence, told.doubts) == (said, (said,))
    assert not test.status().may_stop
    assert headline(told, "", "buy", 300, 0.3, 0.05)[:3] == (*said.replace(":", ".:").split(": "), "wait")
    test.record({}, {"buy": 1 - always})
    assert test.recommend().sentence.startswith("Set ")


def test_where_nothing_is_best_the_sentence_says_so():
    """Both levers do harm, and are named."""
    test = play(experiment(control=0.2), 400, weights=(0.8, -0.4, -0.5))
    for do in ({"email": 1}, {"coupon": 1}):
        test.record(do, [{"email": 0, "coupon": 0, **do, "buy": buy, "count": 100} for buy in (0, 1)])
    told = test.recommend()
    assert told.do == {}
    assert told.sentence.startswith("Set nothing: buy is estimated at 0.")
    assert [line.partition(" by ")[0] for line in lever_words(told, "buy")] == ["coupon lowers buy", "email lowers buy"]
    assert [(one["name"], one["harms"], one["does_nothing"]) for one in document(told)["levers"]] == [
        ("coupon", True, False),
        ("email", True, False),
    ]


def test_levers_that_harm_come_first_and_then_those_that_do_nothing():
    levers = [
        lever_effect("logo", 1, 0.005, Interval(-0.01, 0.02)),
        lever_effect("price", 0, -0.04, Interval(-0.07, -0.01)),
        lever_effect("coupon", 1, 0.1, Interval(0.05, 0.15)),
        lever_effect("mail", 1, 0.01, Interval(-0.1, 0.1)),
    ]
    said = ["price = 0 lowers buy by 0.04 (0.01 to 0.07)", "logo does next to nothing: -0.01 to 0.02"]
    assert lever_words(told_of(levers=tuple(levers)), "buy") == said
    many = lever_words(told_of(levers=tuple(levers[:1] * 30)), "buy")
    assert len(many) == 9
    assert many[-1] == "so it is with 22 others"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"gap": 0.018}, "yes: no allowed action is better by more than 0.018, with 95%, at every look"),
        ({"gap": 0.0}, "yes: no allowed action is better, with 95%, at every look"),
        (
            {"gap": 0.063, "more_rounds": 387},
            "not yet: another allowed action may be better by up to 0.063 (wanted: 0.02); about 390 more rounds",
        ),
        ({"gap": 0.063}, "not yet: another allowed action may be better by up to 0.063 (wanted: 0.02)"),
        ({"gap": 0.01, "doubts": ("No round has set it.",)}, "no: No round has set it."),
        ({"gap": 0.01, "verdict": "unknown"}, "not yet: the rounds have not tested the model"),
    ],
)
def test_when_one_may_not_stop_it_is_said_what_is_missing(fields, words):
    told = told_of(**fields)
    assert stop_words(may_stop(told, 0.02), told.gap, told.more_rounds, told.doubts, 0.02, 0.05) == words


def test_every_policy_says_when_to_stop():
    for settings in ({"policy": "ucb"}, {"policy": "blm-lr"}, {"continuous": True}):
        status = play(experiment(stop_within=0.02, **settings), 5).status()
        assert status.may_stop is False
        assert status.gap > 0.02


def test_what_is_learned_from_trials_of_many_rounds_does_not_depend_on_how_the_log_is_read():
    """Intervals rest on the order of rounds, which the rows of one trial do not have."""
    test = experiment()
    rng = np.random.default_rng(0)
    for number in range(12):
        trial = test.ask(size=3)
        rows = [
            {"email": 0, "coupon": 0, **trial.do, "buy": int(b)} for b in rng.integers(0, 2, 1 if number % 2 else 3)
        ]
        test.tell(trial, rows)
        test.record({}, {"email": 0, "coupon": 0, "buy": int(rng.integers(0, 2))})
    live = test.recommend()
    assert dob.open_experiment(test.name, "memory").recommend() == live
