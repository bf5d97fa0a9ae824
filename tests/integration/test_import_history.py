"""Imports: rows are summed up into trials as `history=` has them, and the lines of an exported log stay its trials."""

import io
import itertools
import json
import time
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import dobandit as dob
from dobandit.client import values
from dobandit.errors import ExperimentError, ParseError
from dobandit.storage import MemoryStorage
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
    told = [trial for trial in experiment.log.stored_trials() if trial.state == "told"]
    return [(trial.do, trial.observation, trial.counts, trial.rounds, trial.partial) for trial in told]


def imported(source, graph=GRAPH, **settings):
    fresh = make(graph, **settings)
    numbers = fresh.import_history(io.StringIO(source) if isinstance(source, str) else source)
    assert numbers == range(len(fresh.trials()))
    return fresh


def rounds_of(source, graph=GRAPH):
    """How many rounds each trial has."""
    return [row["rounds"] for row in imported(source, graph).trials()]


# -- rows that name no trial -------------------------------------------------------------------------------------------


def summed(seed=0):
    rng = np.random.default_rng(seed)
    seen = [(do, customers(do, rng)) for do in ACTIONS]
    return seen, [line(do, *row, count) for do, found in seen for row, count in sorted(found.items())]


@pytest.mark.parametrize("policy", [dob.CausalUCB(), dob.CausalTS(), dob.BLMLR()])
def test_an_import_gives_what_a_history_gives(policy):
    seen, lines = summed()
    fresh = imported(HEAD + "".join(lines), policy=policy)
    begun = make(policy=policy, history=io.StringIO(HEAD + "".join(lines)))
    assert stored(fresh) == stored(begun)
    assert knowledge(fresh) == knowledge(begun)
    assert fresh.recommend() == begun.recommend()
    assert fresh.status().rounds == 3 * SIZE
    assert len(fresh.trials()) < 400
    for do, found in seen if policy != dob.BLMLR() else ():
        # The model is true, and knows more than the mean, which is off by 4 errors once in 16,000 times.
        mean = sum(count for (_, buy), count in found.items() if buy) / SIZE
        assert abs(fresh.evaluate(do).value - mean) <= 4 * (mean * (1 - mean) / SIZE) ** 0.5


def test_the_order_of_rows_does_not_matter_nor_whether_they_were_summed_up():
    _, lines = summed()
    wanted = stored(imported(HEAD + "".join(lines)))
    assert stored(imported(HEAD + "".join(lines[::-1]))) == wanted
    plain = [one.rpartition(",") for one in lines]
    single = [f"{row}\n" for row, _, count in plain for _ in range(int(count))]
    assert stored(imported(HEAD.replace(",count", "") + "".join(single[::-1]))) == wanted
    assert stored(imported(pd.read_csv(io.StringIO(HEAD + "".join(lines))))) == wanted


def test_an_import_comes_after_what_is_there():
    _, lines = summed()
    experiment = make()
    experiment.tell(experiment.ask(), {"visit": 1, "buy": 0})
    first = experiment.import_history(io.StringIO(HEAD + "".join(lines)))
    second = experiment.import_history(io.StringIO(HEAD + line({}, 1, 1, 5)))
    assert (first[0], second[0]) == (1, first[-1] + 1)
    assert (experiment.rounds_in(first), experiment.rounds_in(second)) == (3 * SIZE, 5)
    assert experiment.status().rounds == 3 * SIZE + 6


def test_the_same_rows_with_counts_come_in_every_make():
    text = HEAD + "".join(line(do, v, b, 3 + v) for do in ACTIONS for v, b in itertools.product((0, 1), (0, 1)))
    frame = pd.read_csv(io.StringIO(text))
    wanted = stored(imported(text))
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


def test_a_column_called_read_is_a_column():
    """A frame with such a column was taken for an open file."""
    graph = dob.CausalGraph([("ad", "read"), ("read", "buy")], "buy", controllable=["ad"], bias=["read", "buy"])
    frame = pd.DataFrame({"do:ad": [1, 0, 1], "read": [1, 0, 0], "buy": [1, 0, 0]})
    experiment = make(graph)
    experiment.import_history(frame)
    trial = experiment.ask()
    told = experiment.tell(trial, frame[["read", "buy"]])
    assert told.rounds == 3
    one = experiment.ask()
    experiment.tell(one, frame[["read", "buy"]].iloc[0])  # a row of it
    experiment.record({"ad": 1}, frame[["read", "buy"]])
    assert experiment.status().rounds == 10
    assert dob.fit(graph, frame).rounds == dob.rank(graph, frame, budget=1).rounds == 3
    assert make(graph, history=frame).status().rounds == 3
    assert values.seen(frame)["observation"][0] == {"do:ad": 1, "read": 1, "buy": 1}


@pytest.mark.filterwarnings("ignore:columns that are no variables")
def test_a_frame_with_empty_cells_and_other_columns_is_read_quickly():
    """NaN is not equal to itself, and every customer is another: equal rows were read again and again, 2.5 s here."""
    size, rng = 50_000, np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.integers(0, 2, size) for name in ("visit", "buy")})
    frame["do:email"] = np.where(rng.random(size) < 0.5, 1.0, np.nan)
    start = time.process_time()
    experiment = make(history=frame.assign(customer=np.arange(size), email=frame["do:email"], coupon=0))
    assert time.process_time() - start < 1.0
    assert experiment.status().rounds == size


# -- all or nothing ----------------------------------------------------------------------------------------------------


def test_a_bad_row_keeps_all_others_out(tmp_path):
    path = tmp_path / "sums.csv"
    path.write_text(HEAD + line({}, 1, 1, 1) + line({}, 1, 2, 1))
    experiment = make()
    with pytest.raises(ParseError, match=r"sums.csv: line 3: the value of 'buy' must be 0 or 1"):
        experiment.import_history(path)
    path.write_text("trial.number,visit,buy,count\n" + "7,1,1,6000000\n7,1,0,6000000\n")
    with pytest.raises(ParseError, match=r"sums.csv: a trial has at most 10,000,000.* trial 7 has 12,000,000"):
        experiment.import_history(path)
    with pytest.raises(dob.errors.ObservationError, match="the data have at most 10,000,000 rounds"):
        experiment.import_history([{"visit": v, "buy": 0, "count": 6_000_000} for v in (0, 1)])
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
    [*itertools.product([GRAPH, SEGMENTED], [dob.CausalUCB(), dob.CausalTS()]), (GRAPH, dob.BLMLR())],
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
    assert rounds_of(text) == [2, 8, 3, 1, 1, 1]  # rows without a number come last
    assert rounds_of([{"trial": 4, "observation": {"visit": v, "buy": 0}} for v in (0, 1, 1)]) == [3]
    assert rounds_of([{"observation": [{"visit": v, "buy": 0} for v in (0, 1)]}] * 2) == [2, 2]
    assert rounds_of(f"trial.number,visit,buy\n{2**62},1,1\n{2**62 + 1},1,1\n") == [1, 1]


def test_trials_that_are_named_by_their_time_keep_their_order():
    head = "trial.closed_at,do:email,visit,buy,count\n"
    days = "monday,1,1,1,3\nmonday,1,0,0,1\nmonday,,0,0,5\ntuesday,1,1,1,9\nmonday,1,1,1,2\n"
    fresh = imported(head + days)
    assert [(row["do"], row["rounds"]) for row in fresh.trials()] == [
        ({"email": 1}, 4),
        ({}, 5),
        ({"email": 1}, 9),
        ({"email": 1}, 2),
    ]
    frame = pd.read_csv(io.StringIO(head + days))
    assert stored(imported(frame)) == stored(fresh)


def test_an_exported_import_comes_back_as_the_same_trials(tmp_path):
    """Also its trials of one round, which have no order."""
    experiment = imported([({"email": i % 2}, {"visit": i % 3 % 2, "buy": i % 5 % 2}) for i in range(80)])
    experiment.record({"email": 1}, {"visit": 1, "buy": 1})
    experiment.to_csv(tmp_path / "log.csv")
    for source in (tmp_path / "log.csv", experiment.trials(), values.rounds(tmp_path / "log.csv", experiment.columns)):
        again = imported(source)
        assert stored(again) == stored(experiment)
        assert again.recommend() == experiment.recommend()


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


# -- what an experiment begins with ---------------------------------------------------------------------------------

ROWS = [{"do:email": i % 2, "email": i % 2, "coupon": 0, "visit": i % 3 % 2, "buy": i % 5 % 2} for i in range(60)]


def test_a_history_is_taken_in_once():
    words = {"storage": MemoryStorage(), "history": ROWS, "if_exists": "open"}
    first, again = make(**words), make(**words)
    assert again.status().rounds == first.status().rounds == len(ROWS)
    again.tell(again.ask().number, {"visit": 1, "buy": 0})
    assert make(**words).status().rounds == len(ROWS) + 1
    with pytest.raises(ExperimentError, match="has begun with other rounds"):
        make(**{**words, "history": ROWS[:-1]})


def test_a_bad_history_leaves_no_experiment():
    storage = MemoryStorage()
    with pytest.raises(ParseError, match="visit"):
        make(storage=storage, history=[{"email": 0, "coupon": 0, "buy": 1}])
    assert not dob.list_experiments(storage)


def test_a_history_survives_a_restart(tmp_path):
    storage = f"sqlite:///{tmp_path / 'log.db'}"
    with make(storage=storage, history=ROWS) as experiment:
        before = experiment.recommend()
    with dob.open_experiment("spring", storage) as experiment:
        assert experiment.recommend() == before
        assert {trial["source"] for trial in experiment.trials()} == {"imported"}
