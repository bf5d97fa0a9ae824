"""Trials of many rounds: one entry of the log, whatever the rows come as."""

import io
import itertools
import json
import random
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import dobandit as dob
from dobandit.errors import ConflictError, DobanditError, ExperimentError, ObservationError, ParseError
from dobandit.policy.unordered import spread
from dobandit.storage import MemoryStorage
from helpers.experiments import CASES, knowledge, said
from helpers.storages import id_of

GRAPH = dob.CausalGraph([("email", "visit"), ("coupon", "visit"), ("visit", "buy"), ("coupon", "buy")], target="buy")
ROWS = [{"email": 0, "coupon": 0, "visit": v, "buy": b} for v, b in [(0, 0), (1, 0), (1, 1), (0, 0), (1, 0), (0, 0)]]
SUMMED = [{**ROWS[2], "count": 1}, {**ROWS[0], "count": 3}, {**ROWS[1], "count": 2}]


def make(storage=None, graph=GRAPH, budget=1, **settings):
    storage = MemoryStorage() if storage is None else storage
    return dob.create_experiment("spring", graph, budget, storage=storage, seed=3, **settings)


def rows_after(do, rows=ROWS):
    return [{**row, **do} for row in rows]


def every_make(rows, tmp_path):
    """The same rows in every form that is understood."""
    path = tmp_path / "rows.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    yield from (rows, tuple(rows), iter(rows), pd.DataFrame(rows), path, str(path), io.StringIO(path.read_text()))
    yield [dict(reversed(row.items())) for row in reversed(rows)]
    yield [{name: np.int64(value) for name, value in row.items()} for row in rows]
    yield [{name: str(value) for name, value in row.items()} for row in rows]


def test_rows_of_every_make_are_the_same_content(storage, tmp_path):
    experiment = make(storage)
    trial = experiment.ask(size=6)
    assert trial.size == 6
    rows, summed = rows_after(trial.do), rows_after(trial.do, SUMMED)
    told = experiment.tell(trial, rows)
    assert (told.rounds, told.partial, told.repeated, told.missing) == (6, False, False, ())
    stored = experiment.log.stored_trial(0)
    assert (stored.rounds, stored.size) == (6, 6)
    for same in itertools.chain(every_make(rows, tmp_path), every_make(summed, tmp_path)):
        again = experiment.tell(trial, same)
        assert (again.repeated, again.rounds) == (True, 6)
    for other in (rows[1:], [*rows, rows[0]], rows[0], summed[:2]):
        with pytest.raises(ConflictError, match="6 rounds"):
            experiment.tell(trial, other)
    assert experiment.log.stored_trial(0) == stored


def test_a_batch_of_one_is_a_round():
    one, two = make(), make()
    row = {**ROWS[1], **one.ask().do}
    two.ask()
    one.tell(0, row)
    assert two.tell(0, [row]).rounds == 1
    assert one.log.stored_trial(0).observation == two.log.stored_trial(0).observation
    assert one.tell(0, {**row, "count": 1}).repeated
    assert two.tell(0, row).repeated


@pytest.mark.parametrize("case", CASES)
def test_a_batch_teaches_what_its_rows_teach_one_by_one(case):
    model, budget, policy, settings = CASES[case]
    rng = random.Random(case)
    whole, single = MemoryStorage(), MemoryStorage()
    links = None if model.continuous else {name: model.link(name) for name in model.graph.nodes}
    settings = {"policy": policy, "links": links, **settings}
    one, two = (make(storage, model.graph, budget, **settings) for storage in (whole, single))
    names = one.columns.names
    for _ in range(4):
        trial = one.ask(size=40)
        value = (lambda: round(rng.random(), 1)) if one.columns.continuous else (lambda: rng.randrange(2))
        rows = [{**{name: value() for name in names if rng.random() < 0.9}, **trial.do} for _ in range(40)]
        rows = [row for row in rows if set(row) - set(trial.do)]
        one.tell(trial, rows)
        do_row = two.columns.do_row(trial.do)
        found = Counter(two.columns.encode(two.columns.observation_row(row, do_row)) for row in rows)
        texts, counts = sorted(found), np.array([found[text] for text in sorted(found)])
        spreads = getattr(two.learner.engine, "weighs_by_order", False)
        for i in spread(counts) if spreads else np.arange(len(texts)).repeat(counts):
            two.record(trial.do, two.columns.decode(texts[i]), randomised=True)
        assert knowledge(one) == knowledge(two)
    again = dob.open_experiment("spring", whole)
    assert knowledge(again) == knowledge(two)
    assert again.learner.rounds == two.learner.rounds
    assert again.recommend()[:2] == two.recommend()[:2]  # intervals may rest on the order
    assert again.recommend() == one.recommend()
    assert again.best_observed() == two.best_observed()
    assert again.status().mean_target == pytest.approx(two.status().mean_target)
    assert again.status().rounds == two.status().rounds == two.status().told


def test_answers_weigh_by_counts():
    experiment = make()
    rows = [{"visit": 1, "buy": 1, "email": 0, "count": 30}, {"visit": 0, "buy": 0, "count": 10}]
    experiment.record({"coupon": 1}, rows, randomised=True)
    experiment.record({"email": 1}, {"visit": 1, "buy": 0, "coupon": 0, "count": 100}, randomised=True)
    status = experiment.status()
    assert (status.told, status.rounds) == (2, 140)
    assert status.mean_target == pytest.approx(30 / 140)
    assert status.untaught == {"email": 10, "visit": 10}
    best = experiment.best_observed()
    assert (best.do, best.mean, best.rounds) == ({"coupon": 1}, 0.75, 40)
    assert experiment.diagnose().rounds == 140
    assert {edge.rows for edge in experiment.estimates() if edge.effect == "buy"} == {140}


def stored(experiment):
    """What the told trials of a log have to teach."""
    told = [trial for trial in experiment.log.stored_trials() if trial.state == "told"]
    return [(trial.do, trial.observation, trial.counts, trial.rounds, trial.partial) for trial in told]


def test_tables_hold_a_line_per_distinct_row_and_read_back(tmp_path):
    experiment = make()
    trial = experiment.ask(size=6)
    experiment.tell(trial, rows_after(trial.do))
    experiment.record({"email": 1}, {"visit": 1, "buy": 1, "count": 7})
    experiment.tell_failed(experiment.ask().number, "rain")
    experiment.ask(size=9)
    frame = experiment.to_pandas()
    distinct = len({tuple(row.items()) for row in rows_after(trial.do)})
    assert list(frame["trial.number"]) == [0] * distinct + [1, 2, 3]
    assert frame["trial.count"].dropna().sum() == 13
    assert list(frame["trial.size"].dropna().unique()) == [6, 1, 9]
    experiment.to_csv(tmp_path / "log.csv")
    experiment.to_parquet(tmp_path / "log.parquet")
    parquet = pd.read_parquet(tmp_path / "log.parquet")
    for source in (tmp_path / "log.csv", frame, parquet, experiment.trials()):
        other = make()
        assert len(other.import_history(source)) == 2
        assert stored(other) == stored(experiment)
        assert knowledge(other) == knowledge(experiment)
    row = experiment.trial(0)
    assert sum(seen["count"] for seen in row["observation"]) == row["rounds"] == 6
    assert experiment.tell(0, row["observation"]).repeated
    json.dumps(experiment.trials(), allow_nan=False)


def test_imported_rows_have_counts():
    one, two = make(), make()
    text = "coupon,visit,buy,do:email,count\n1,1,0,1,3\n0,0,0,,2\n0,1,0,,0\n"
    assert one.rounds_in(one.import_history(io.StringIO(text))) == 5
    rows = [({"email": 1}, {"coupon": 1, "visit": 1, "buy": 0})] * 3 + [({}, {"coupon": 0, "visit": 0, "buy": 0})] * 2
    two.import_history(rows)
    same = [{"do": do, "observation": seen, "count": count} for (do, seen), count in [(rows[0], 3), (rows[-1], 2)]]
    three = make()
    three.import_history(same)
    assert stored(one) == stored(two) == stored(three)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({"visit": 120, "buy": 15}, "which effect went with which cause"),
        ([{"visit": 120, "buy": 15}], "which effect went with which cause"),
        ([{"visit": 0.8, "buy": 0.1, "count": 120}], "a share does not say which effect went with which cause"),
        ([{"visit": 1}, {"visit": 1, "bux": 0}], "row 1: .*'bux'"),
        ([{"visit": 1, "count": 0}], "at least one row"),
        ([], "at least one row"),
        ([{"visit": 1, "count": 1.5}], "count of a row is a whole number"),
        ([{"visit": 1, "count": -1}], "count of a row is a whole number"),
        ([{"visit": 1, "count": True}], "count of a row is a whole number"),
        ([{"visit": 1, "count": 10**8}], "count of a row is a whole number"),
        ([{"visit": 1, "count": 10**7}, {"visit": 0}], "at most 10,000,000 rounds"),
        ([{"visit": 1, "buy": [1]}], "row 0"),
        ([{"visit": 1, "buy": "maybe"}], "row 0"),
        ([7], "row 0"),
        (["visit"], "row 0"),
        ([{"visit": 1, "do:email": 0, "do:coupon": 0}], "what was set is the trial's own"),
        (io.StringIO("visit,bux\n1,0\n"), "bux"),
        (io.StringIO("visit,buy\n1,0\n1,2\n"), "line 3"),
        (io.StringIO("visit,buy,count\n1,0,many\n"), "line 2"),
        (io.BytesIO(b"visit\n1\n"), "text mode"),
        ("no-such-file.csv", "no-such-file"),
        (7, "maps names to values"),
        (b"visit", "maps names to values"),
    ],
)
def test_rows_that_are_refused(seen, words):
    experiment = make()
    experiment.ask(size=1000)
    with pytest.raises(DobanditError, match=words) as error:
        experiment.tell(0, seen)
    assert isinstance(error.value, (ObservationError, ParseError, ExperimentError, DobanditError))
    assert experiment.status().pending == 1


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "9", 10**9])
def test_sizes_that_are_refused(size):
    with pytest.raises(ExperimentError, match="size is how many"):
        make().ask(size=size)


def test_a_variable_may_be_called_count():
    graph = dob.CausalGraph([("count", "buy"), ("ad", "buy")], target="buy")
    experiment = make(graph=graph)
    experiment.record({"ad": 1}, [{"count": 1, "buy": 1, "trial.count": 3}, {"count": 0, "buy": 0}])
    assert experiment.status().rounds == 4
    assert experiment.trial(0)["observation"][1] == {"ad": 1, "count": 1, "buy": 1, "trial.count": 3}
    for source in (io.StringIO(experiment.to_csv()), experiment.trials()):
        other = make(graph=graph)
        other.import_history(source)
        assert stored(other) == stored(experiment)
        assert knowledge(other) == knowledge(experiment)


def test_a_damaged_batch_says_so():
    experiment = make()
    experiment.record({"email": 1}, ROWS_OF_EMAIL)
    for field, text in (("counts", "[1]"), ("counts", "[0,1]"), ("counts", "{}"), ("observation", "[[1,1,1,1]]")):
        storage = MemoryStorage()
        broken = make(storage)
        with storage.writing(id_of(broken)) as writer:
            writer.add([experiment.log.stored_trial(0)._replace(**{field: text})])
        with pytest.raises(dob.errors.StorageError, match="damaged"):
            broken.ask()


ROWS_OF_EMAIL = [{"coupon": 0, "visit": 0, "buy": 0}, {"coupon": 0, "visit": 1, "buy": 0}]


def test_an_expired_batch_goes_out_again_to_an_ask_of_its_size():
    clock = type("Clock", (), {"now": 0.0, "__call__": lambda self: self.now})()
    experiment = make(lease=10.0, clock=clock)
    first = experiment.ask(size=50)
    clock.now = 20.0
    assert experiment.ask(size=1).number == 1
    again = experiment.ask(size=50)
    assert said(again)[:2] == said(first)[:2]
    assert (again.issued, again.size) == (2, 50)
