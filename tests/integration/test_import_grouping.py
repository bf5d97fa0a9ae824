"""Rows of an import that belong together are one trial: what was summed up, and the lines of a trial in an export."""

import io
import itertools
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import dobandit as dob
from dobandit.client import values
from dobandit.errors import DobanditWarning, ParseError
from dobandit.experiment.storage import MemoryStorage
from helpers.experiments import knowledge, said

EDGES = [("email", "visit"), ("coupon", "visit"), ("visit", "buy"), ("coupon", "buy")]
GRAPH = dob.CausalGraph(EDGES, target="buy", controllable=["email", "coupon"], bias=["visit", "buy"])
SEGMENTED = dob.CausalGraph(
    [("email", "visit"), ("mobile", "visit"), ("visit", "buy")],
    target="buy",
    controllable=["email"],
    context=["mobile"],
    bias=["mobile", "visit", "buy"],
)
SIZE = 1_000
ACTIONS = ({"email": 1}, {"coupon": 1}, {})
HEAD = "do:email,do:coupon,email,coupon,visit,buy,count\n"


def make(graph=GRAPH, storage=None, **settings):
    return dob.create_experiment("spring", graph, 1, storage=storage or MemoryStorage(), seed=3, **settings)


def customers(do, rng):
    """What a thousand of them did, by (visit, buy), and how often."""
    email, coupon = do.get("email", 0), do.get("coupon", 0)
    visits = rng.random(SIZE) < 0.1 + 0.4 * email + 0.2 * coupon
    buys = rng.random(SIZE) < 0.05 + 0.3 * visits + 0.1 * coupon
    return Counter(zip(visits.astype(int).tolist(), buys.astype(int).tolist(), strict=True))


def line(do, visit, buy, count):
    cells = [do.get("email", ""), do.get("coupon", ""), do.get("email", 0), do.get("coupon", 0), visit, buy, count]
    return ",".join(map(str, cells)) + "\n"


def stored(experiment):
    """What the told trials of a log have to teach."""
    told = [trial for trial in experiment.stored_trials() if trial.state == "told"]
    return [(trial.do, trial.observation, trial.counts, trial.rounds, trial.partial) for trial in told]


def imported(source, graph=GRAPH, **settings):
    fresh = make(graph, **settings)
    numbers = fresh.import_history(io.StringIO(source) if isinstance(source, str) else source)
    assert numbers == range(len(fresh.trials()))
    return fresh


def rounds_of(source, graph=GRAPH):
    """How many rounds each trial has."""
    return [row["rounds"] for row in imported(source, graph).trials()]


# -- rows that were summed up ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [dob.CausalUCB(), dob.CausalTS()])
@pytest.mark.parametrize("links", [None, "identity"])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_summed_up_is_expected_as_it_was_seen(policy, links, seed):
    """A mean of 1,000 rounds is off by more than 4 of its standard errors once in 16,000 times, and the model, which
    is true, knows more than the mean does. As a trial each, the rows were expected at up to 9 errors from it."""
    rng = np.random.default_rng(seed)
    seen = [(do, customers(do, rng)) for do in ACTIONS]
    text = HEAD + "".join(line(do, *row, count) for do, found in seen for row, count in sorted(found.items()))
    fresh = imported(text, policy=policy, links=links)
    assert [row["rounds"] for row in fresh.trials()] == [SIZE] * 3
    for do, found in seen:
        mean = sum(count for (_, buy), count in found.items() if buy) / SIZE
        assert abs(fresh.evaluate(do).value - mean) <= 4 * (mean * (1 - mean) / SIZE) ** 0.5
    told = make(policy=policy, links=links)
    for do, found in seen:
        rest = {"email": 0, "coupon": 0} | do
        told.record(do, [{**rest, "visit": v, "buy": b, "count": count} for (v, b), count in found.items()])
    assert stored(fresh) == stored(told)
    assert knowledge(fresh) == knowledge(told)
    assert fresh.recommend() == told.recommend()


def test_rows_without_counts_are_a_trial_each_in_their_order():
    rows = [line(do, visit, visit, 1) for do in ACTIONS for visit in (0, 1, 1, 0)]
    counted = imported(HEAD + "".join(rows))
    plain = imported((HEAD + "".join(rows)).replace(",count\n", "\n").replace(",1\n", "\n"))
    assert len(counted.trials()) == 12
    assert stored(plain) == stored(counted)
    assert [trial.counts for trial in plain.stored_trials()] == [None] * 12
    assert [row["observation"]["visit"] for row in plain.trials()] == [0, 1, 1, 0] * 3


@pytest.mark.parametrize(
    ("rows", "rounds"),
    [
        ([({}, 0, 0, 1), ({}, 1, 0, 2), ({}, 1, 1, 1)], [4]),
        ([({}, 0, 0, 1), ({}, 1, 0, 1), ({"email": 1}, 1, 1, 5), ({"email": 1}, 0, 0, 1), ({}, 0, 1, 1)], [1, 1, 6, 1]),
        ([({}, 0, 0, 2), ({"email": 1}, 0, 1, 0), ({}, 1, 0, 3), ({"email": 0}, 1, 0, 3)], [5, 3]),
        ([({}, 0, 0, 2), ({}, 0, 0, 2)], [4]),
        ([({}, 0, 0, 2), ({"email": 1}, 0, 0, 3), ({}, 0, 0, 4), ({}, 0, 1, 4)], [2, 3, 8]),
    ],
)
def test_neighbours_that_set_the_same_are_one_trial_where_one_was_seen_twice(rows, rounds):
    assert rounds_of(HEAD + "".join(line(*row) for row in rows)) == rounds


def test_rows_of_one_trial_have_one_context():
    text = "do:email,email,mobile,visit,buy,count\n"
    for email, mobile in itertools.product((1, 0), (0, 1)):
        text += "".join(f"{email},{email},{mobile},{v},{v},{count}\n" for v, count in ((0, 30), (1, 4)))
    fresh = imported(text, SEGMENTED)
    assert [row["rounds"] for row in fresh.trials()] == [34] * 4
    contexts = [{seen["mobile"] for seen in row["observation"]} for row in fresh.trials()]
    assert contexts == [{0}, {1}, {0}, {1}]


def test_the_same_rows_with_counts_come_in_every_make():
    text = HEAD + "".join(line(do, v, b, 3 + v) for do in ACTIONS for v, b in itertools.product((0, 1), (0, 1)))
    frame = pd.read_csv(io.StringIO(text))
    wanted = stored(imported(text))
    assert len(wanted) == 3
    pairs = [
        {
            "do": {name[3:]: int(row[name]) for name in ("do:email", "do:coupon") if row[name] == 1},
            "observation": {name: int(row[name]) for name in GRAPH.nodes},
            "count": int(row["count"]),
        }
        for row in frame.to_dict("records")
    ]
    for source in (frame, frame.to_dict("records"), pairs, iter(pairs)):
        assert stored(imported(source)) == wanted
    assert stored(imported(values.rounds(frame, make().columns))) == wanted
    with pytest.raises(ParseError, match=r'row 0: an observation holds variables.* Give the row as {"do"'):
        imported([(one["do"], {**one["observation"], "count": one["count"]}) for one in pairs])


def test_sums_that_are_sorted_by_what_was_seen_are_warned_of():
    rows = [line(do, v, b, 5) for v, b in itertools.product((0, 1), (0, 1)) for do in ACTIONS]
    with pytest.warns(DobanditWarning, match="'email': 1.* stand apart.* sort the table by what was set"):
        assert rounds_of(HEAD + "".join(rows)) == [5] * 12
    days = "".join(line(do, v, 0, 5 + v) for _ in range(3) for do in ACTIONS for v in (0, 1))
    assert rounds_of(HEAD + days) == [11] * 9  # a day at a time, in which outcomes return


def test_a_trial_of_too_many_rounds_is_refused_as_a_whole(tmp_path):
    path = tmp_path / "sums.csv"
    path.write_text(HEAD + line({}, 1, 1, 1) + "".join(line({"email": 1}, v, 0, 6_000_000) for v in (0, 1)))
    experiment = make()
    with pytest.raises(ParseError, match=r"sums.csv: a trial has at most 10,000,000.*'email': 1.* 12,000,000. Import"):
        experiment.import_history(path)
    assert experiment.trials() == []


# -- exports -----------------------------------------------------------------------------------------------------------


def played(graph=GRAPH, **settings):
    """Batches with and without a context, a single round, what failed, what is pending, and what was recorded."""
    experiment, rng = make(graph, **settings), np.random.default_rng(1)
    free = [name for name in ("email", "coupon") if name in graph.nodes]
    for size in (60, 1, 200, 40, 1, 300):
        context = {"mobile": size % 3 // 2} if graph.context else None
        trial = experiment.ask(size=size, context=context)
        rest = dict.fromkeys(free, 0) | trial.do
        seen = [{**rest, "visit": int(v), "buy": int(v and b)} for v, b in rng.random((size, 2)) < 0.4]
        experiment.tell(trial, seen)
        experiment.tell_failed(experiment.ask(context=context).number, "rain")
    context = {"mobile": 1} if graph.context else {}
    rest = {**dict.fromkeys(free, 0), **context}
    for count in (30, 40):  # two trials of one row each that set the same
        experiment.record(None, {**rest, "visit": 0, "buy": 0, "count": count})
    experiment.record(None, {**rest, "visit": 1, "buy": 0})
    if graph.context:  # who records may mix contexts
        experiment.record({"email": 1}, [{"mobile": m, "visit": 1, "buy": m, "count": 9} for m in (0, 1)])
    experiment.ask(size=5, context=context or None)
    return experiment


@pytest.mark.parametrize(
    ("graph", "policy"),
    [
        *itertools.product([GRAPH, SEGMENTED], [dob.CausalUCB(), dob.CausalTS()]),
        (GRAPH, dob.BLMLR()),
    ],
)
def test_an_export_comes_back_as_the_same_trials_to_the_bit(graph, policy, tmp_path):
    experiment = played(graph, policy=policy)
    experiment.to_csv(tmp_path / "log.csv")
    experiment.to_parquet(tmp_path / "log.parquet")
    rows = json.loads(json.dumps(experiment.trials()))
    sources = [tmp_path / "log.csv", tmp_path / "log.parquet", rows, experiment.to_pandas()]
    sources += [pd.read_csv(tmp_path / "log.csv"), values.rounds(tmp_path / "log.csv", experiment.columns)]
    asked = {"size": 50, "context": {"mobile": 1} if graph.context else None}
    answers = []
    for source in sources:
        fresh = imported(source, graph, policy=policy)
        assert stored(fresh) == stored(experiment)
        assert knowledge(fresh) == knowledge(experiment)
        answers.append(said(fresh.ask(**asked)))
    assert len(set(map(repr, answers))) == 1


def test_trial_numbers_say_which_rows_are_one_trial():
    text = "trial.number,visit,buy,count\n0,1,1,1\n0,0,0,1\n1,0,0,7\n1,1,0,1\n,1,0,1\n,0,0,1\n12,1,1,3\n3,1,1,1\n"
    assert rounds_of(text) == [2, 8, 1, 1, 3, 1]
    assert rounds_of([{"trial": 4, "observation": {"visit": v, "buy": 0}} for v in (0, 1, 1)]) == [3]
    assert rounds_of([{"observation": [{"visit": v, "buy": 0} for v in (0, 1)]}] * 2) == [2, 2]
    assert rounds_of(f"trial.number,visit,buy\n{2**62},1,1\n{2**62 + 1},1,1\n") == [1, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trial.number,visit,buy\n3,1,1\n4,1,0\n3,0,0\n", "those of trial 3 stand apart. Sort the table"),
        ("trial.number,do:email,buy\n3,1,1\n3,,0\n", r"trial 3 says both \{'email': 1\} and \{\}"),
        ("trial.number,visit,buy\nx,1,1\n", "line 2: the number of a trial is a whole number from 0.*'x'"),
        ("trial.number,visit,buy\n1,1,1\n1.5,1,1\n", "line 3: the number of a trial"),
        ("trial.number,visit,buy\n-1,1,1\n", "line 2: the number of a trial"),
    ],
)
def test_trial_numbers_that_are_refused(text, words):
    experiment = make()
    with pytest.raises(ParseError, match=words):
        experiment.import_history(io.StringIO(text))
    assert experiment.trials() == []
