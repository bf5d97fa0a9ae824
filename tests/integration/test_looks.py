"""A table that is looked at once has intervals of one look, and differences in which what two sets share cancels."""

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import PolicyError

GRAPH = dob.CausalGraph(
    [("season", "coupon"), ("season", "visit"), ("coupon", "visit"), ("visit", "buy"), ("season", "buy")],
    target="buy",
    controllable=["coupon"],
    bias=["season", "coupon", "visit", "buy"],
)


def table(size, seed):
    rng = np.random.default_rng(seed)

    def drawn(chance):
        return (rng.random(size) < chance).astype(int)

    season = drawn(0.4)
    coupon = drawn(0.2 + 0.4 * season)
    visit = drawn(0.1 + 0.3 * season + 0.4 * coupon)
    buy = drawn(0.05 + 0.1 * season + 0.4 * visit)
    return np.stack([season, coupon, visit, buy], axis=1)


def summed(rows):
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    names = ("season", "coupon", "visit", "buy")
    return [
        {**dict(zip(names, kind, strict=True)), "count": n}
        for kind, n in zip(kinds.tolist(), counts.tolist(), strict=True)
    ]


def g_formula(rows):
    """E[buy | do(coupon = 1)] - E[buy], by the means of each node in each pattern of its causes."""
    season, coupon, visit, buy = rows.T
    total = 0.0
    for z in (0, 1):
        visits = visit[(season == z) & (coupon == 1)].mean()
        buys = [buy[(season == z) & (visit == v)].mean() for v in (0, 1)]
        total += (season == z).mean() * (visits * buys[1] + (1 - visits) * buys[0])
    return total - buy.mean()


def test_the_interval_of_an_uplift_is_near_that_of_a_bootstrap():
    rows, rng = table(30_000, 1), np.random.default_rng(2)
    again = [g_formula(rows[rng.integers(len(rows), size=len(rows))]) for _ in range(200)]
    low, high = np.quantile(again, [0.025, 0.975])
    ranking = dob.rank(GRAPH, summed(rows), 1)
    assert ranking.interval_words == "95%, at one look"
    assert ranking.best.do == {"coupon": 1}
    assert ranking.best.uplift.value == pytest.approx(g_formula(rows), abs=0.003)
    width = ranking.best.uplift.interval.high - ranking.best.uplift.interval.low
    assert (high - low) / 1.5 < width < 1.5 * (high - low)
    assert ranking.undecided == 0
    assert "No other set can be better." in ranking.sentence


@pytest.mark.statistics
def test_an_uplift_at_one_look_holds_in_nineteen_of_twenty_tables():
    truth = g_formula(table(1_000_000, 0))
    found = [dob.rank(GRAPH, summed(table(1_000, seed)), 1).actions for seed in range(60)]
    held = [
        next(action for action in actions if action.do).uplift.interval.low <= truth
        and next(action for action in actions if action.do).uplift.interval.high >= truth
        for actions in found
    ]
    assert sum(held) >= 52  # which 95% miss with a chance below 1 in 200


def test_rows_that_name_trials_are_those_of_an_experiment():
    rows = summed(table(2_000, 3))
    once, every = dob.rank(GRAPH, rows, 1), dob.rank(GRAPH, rows, 1, looks="every")
    assert every.interval_words == "95%, at every look (asymptotic)"
    width = [one.best.interval.high - one.best.interval.low for one in (once, every)]
    assert 1.4 * width[0] < width[1] < 2.0 * width[0]
    assert [one.best.value for one in (once, every)] == [every.best.value] * 2
    named = [{**row, "trial.number": i} for i, row in enumerate(rows)]
    assert dob.rank(GRAPH, named, 1).interval_words == every.interval_words
    assert dob.rank(GRAPH, named, 1, looks="once").interval_words == once.interval_words
    assert (dob.fit(GRAPH, rows).looks, dob.fit(GRAPH, named).looks) == ("once", "every")
    assert dob.fit(GRAPH, rows).expect(["coupon"]).interval == once.best.interval
    assert dob.fit(GRAPH, rows, looks="every").expect(["coupon"]).interval == every.best.interval
    with pytest.raises(PolicyError, match="looks is 'once' or 'every'"):
        dob.rank(GRAPH, rows, 1, looks="twice")


def test_many_sets_are_valued_as_one_by_one():
    """Thousands of sets are looked at in one pass, which says the same of each."""
    levers = [f"x{i}" for i in range(10)]
    edges = [(name, f"m{i % 3}") for i, name in enumerate(levers)] + [(f"m{i}", "y") for i in range(3)]
    graph = dob.CausalGraph(edges, target="y", controllable=levers)
    rng = np.random.default_rng(4)
    drawn = (rng.random((800, len(graph))) < 0.3).astype(int).tolist()
    rows = [dict(zip(graph.nodes, row, strict=True)) for row in drawn]
    many, fit = dob.rank(graph, rows, 4), dob.fit(graph, rows)
    assert len(many.actions) == 386
    few = [action for action in many.actions if len(action.do) <= 1]
    alone = {str(action.do): action for action in dob.rank(graph, rows, 1).actions}
    for action in few:
        other = alone[str(action.do)]
        assert action.value == pytest.approx(other.value, abs=1e-12)
        assert action.interval == pytest.approx(other.interval, abs=1e-9)
        assert action.uplift.value == pytest.approx(other.uplift.value, abs=1e-12)
        assert action.uplift.interval == pytest.approx(other.uplift.interval, abs=0.002)
    best = many.best
    assert fit.expect(best.do).value == pytest.approx(best.value, abs=1e-12)


def test_rows_that_chance_did_not_choose_are_a_warning_not_a_verdict():
    """A coupon for those who buy anyway: what was seen of it is outside of its interval, and nothing is wrong."""
    rng = np.random.default_rng(5)
    rows, given = table(20_000, 6), table(20_000, 7)
    gave = rng.random(len(given)) < np.where(given[:, 0] == 1, 0.9, 0.02)
    given[:, 1] = 1
    given[:, 2] = rng.random(len(given)) < 0.5 + 0.3 * given[:, 0]
    given[:, 3] = rng.random(len(given)) < 0.05 + 0.1 * given[:, 0] + 0.4 * given[:, 2]
    told = summed(rows) + [{**row, "do:coupon": 1} for row in summed(given[gave])]
    warnings = dob.rank(GRAPH, told, 1).warnings
    assert len(warnings) == 1
    assert "outside of the interval of its value. If chance chose these rows, the model is wrong" in warnings[0]
    assert not any("outside" in one for one in dob.rank(GRAPH, summed(rows), 1).warnings)
