"""When an experiment may stop: not on what hardly a round has set beside a history, and also with few large trials."""

from __future__ import annotations

import numpy as np

import dobandit as dob

GRAPH = dob.CausalGraph([("coupon", "buy"), ("mail", "buy")], "buy", bias=["coupon", "mail", "buy"])


def confounded(rows):
    """A mood that is not in the graph brings coupons and purchases along."""
    rng = np.random.default_rng(1)
    mood = rng.random(rows) < 0.5
    coupon, mail = rng.random(rows) < np.where(mood, 0.6, 0.1), rng.random(rows) < 0.3
    buy = rng.random(rows) < 0.1 + 0.5 * mood + 0.06 * mail
    return [
        dict(zip(("coupon", "mail", "buy"), map(int, row), strict=True)) for row in zip(coupon, mail, buy, strict=True)
    ]


def test_a_few_rounds_do_not_outweigh_a_confounded_history():
    shop = dob.create_experiment(
        "shop", GRAPH, 1, storage="memory", stop_within=0.05, history=confounded(8_000), seed=1
    )
    rng = np.random.default_rng(2)
    for name in ("coupon", "mail"):
        rows = [{"coupon": 0, "mail": 0, "buy": int(rng.random() < 0.35), name: 1} for _ in range(20)]
        shop.record({name: 1}, rows)
    told = shop.recommend()
    assert told.do == {"coupon": 1}  # what the history says
    assert any("too few have" in doubt for doubt in told.doubts)
    assert "doubts" in told.sentence
    assert not shop.status().may_stop


def test_few_trials_of_many_rounds_may_stop():
    shop = dob.create_experiment("shop", GRAPH, 1, storage="memory", stop_within=0.1, seed=1)
    rng = np.random.default_rng(3)
    for _ in range(12):
        trial = shop.ask(size=400)
        rows = []
        for _ in range(400):
            seen = {"coupon": int(rng.random() < 0.2), "mail": int(rng.random() < 0.2), **trial.do}
            rows.append({**seen, "buy": int(rng.random() < 0.2 + 0.4 * seen["coupon"])})
        shop.tell(trial, rows)
    told = shop.recommend()
    assert (told.do, told.verdict) == ({"coupon": 1}, "fits")
    assert shop.status().may_stop == (not told.doubts)


def test_what_lowers_the_target_is_certain():
    rows = [{"do:mail": 1, "coupon": 0, "buy": int(i % 5 == 0), "count": 100} for i in range(10)]
    rows += [{"coupon": 0, "mail": 0, "buy": int(i % 2), "count": 100} for i in range(10)]
    shop = dob.create_experiment("shop", GRAPH, 1, storage="memory", history=rows)
    told = shop.evaluate({"mail": 1})
    assert told.uplift.interval.high < 0
    assert not any("not certain" in warning for warning in told.warnings)
