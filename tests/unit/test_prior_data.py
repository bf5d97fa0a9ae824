"""Data as people have them: every way to write them down says the same."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

import dobandit as dob
from dobandit.errors import DobanditWarning, ExperimentError, ParseError
from dobandit.experiment.definition import define
from dobandit.oracle.rules import Rules
from dobandit.rows.batches import prior_rows
from dobandit.rows.columns import split_batch

GRAPH = dob.CausalGraph(
    [("email", "visit"), ("price", "visit"), ("visit", "buy")], target="buy", controllable=["email", "price"]
)
NAMES = ["email", "price", "visit", "buy"]


def rows(size=200, seed=0):
    """Rows with the names of what was set as a list, and some values missing."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(size):
        row = {name: int(rng.integers(2)) for name in NAMES}
        row["set"] = [name for name in ("email", "price") if rng.random() < 0.3]
        if rng.random() < 0.1:
            row["visit"] = None
        found.append(row)
    return found


def read_past(source, graph=GRAPH):
    return prior_rows(define(graph, Rules(1), seed=0, links="auto").problem, source)


def marked(row, column, write):
    return {**{name: row[name] for name in NAMES}, column: write(row["set"], row)}


WAYS = {
    "commas": lambda names, row: ",".join(names),
    "spaces": lambda names, row: " ".join(names),
    "semicolons": lambda names, row: "; ".join(names),
    "a JSON list": lambda names, row: json.dumps(names),
    "a JSON object": lambda names, row: json.dumps({name: row[name] for name in names}),
    "a list as Python prints it": lambda names, row: str(names),
    "a set as Python prints it": lambda names, row: str(set(names)) if names else "",
    "a mapping as Python prints it": lambda names, row: str({name: row[name] for name in names}),
    "NAME=VALUE": lambda names, row: ", ".join(f"{name}={row[name]}" for name in names),
    "a list": lambda names, row: names,
    "a tuple": lambda names, row: tuple(names),
    "a mapping": lambda names, row: {name: row[name] for name in names},
}


@pytest.mark.parametrize("column", ["intervention_targets", "do"])
@pytest.mark.parametrize("way", WAYS)
def test_every_mark_of_what_was_set_says_the_same(way, column):
    wanted = read_past(
        [({name: row[name] for name in row["set"]}, {name: row[name] for name in NAMES}) for row in rows()]
    )
    assert read_past([marked(row, column, WAYS[way]) for row in rows()]) == wanted
    prefixed = [
        {**{name: row[name] for name in NAMES}, **{f"do:{name}": row[name] for name in row["set"]}} for row in rows()
    ]
    assert read_past(prefixed) == wanted


def test_files_and_frames_say_the_same(tmp_path):
    listed = [marked(row, "intervention_targets", WAYS["commas"]) for row in rows()]
    wanted = read_past(listed)
    assert wanted.rounds == 200
    plain, packed, parquet = (tmp_path / name for name in ("visits.csv", "visits.csv.gz", "visits.parquet"))
    with open(plain, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=[*NAMES, "intervention_targets"])
        writer.writeheader()
        writer.writerows(listed)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    frame = pd.DataFrame(listed)
    frame.to_parquet(parquet)
    bars = tmp_path / "visits.txt"
    frame.assign(visit=frame["visit"].map({0: "n", 1: "Y"})).to_csv(bars, sep="|", index=False, na_rep="null")
    for source in (str(plain), plain, packed, str(parquet), frame, reversed(listed), bars):
        assert read_past(source) == wanted
    with open(plain, newline="") as file:
        assert read_past(file) == wanted


def test_arrow_tables_and_lists_in_parquet_are_read(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    listed = [marked(row, "do", WAYS["a list"]) for row in rows(50)]
    table = pa.Table.from_pylist(listed)
    pq.write_table(table, tmp_path / "data.pq")
    assert read_past(table) == read_past(tmp_path / "data.pq") == read_past(listed)


def test_polars_is_read():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame([(1, 0, 1, 0), (0, 0, 1, 1)], schema=NAMES, orient="row")
    assert read_past(frame).rounds == 2
    with pytest.raises(ExperimentError, match=r"got LazyFrame. Give frame.collect\(\)."):
        read_past(frame.lazy())


class Lazy:
    """What is worked out when it is collected, and warns before."""

    @property
    def columns(self):
        raise AssertionError("a lazy frame was asked for its columns")

    def collect(self):
        return self


def test_a_lazy_frame_is_to_be_collected():
    with pytest.raises(ExperimentError, match=r"got Lazy. Give frame.collect\(\)."):
        read_past(Lazy())


def test_counts_and_repeated_rows_are_the_same_and_trials_hold_every_round_once():
    one = {"email": 1, "price": 0, "visit": 1, "buy": 1}
    other = {"email": 0, "price": 0, "visit": 0, "buy": 0}
    past = read_past([one] * 70 + [other] * 30)
    assert past == read_past([{**other, "count": 30}, {**one, "count": 70}])
    counted: dict[str, int] = {}
    for trial in past.trials:
        for text, count in zip(*split_batch(trial.observation, trial.counts), strict=True):
            counted[text] = counted.get(text, 0) + count
        assert sum(json.loads(trial.counts)) == trial.rounds
    assert sorted(counted.values()) == [30, 70]
    # Each part is a small share of all before it, so that no run of equal rows can flatter or shame a member.
    done = 0
    for trial in past.trials:
        assert trial.rounds <= max(1, -(-done // 16))
        done += trial.rounds


def test_a_slip_in_a_name_is_said_with_the_name_that_was_meant():
    good = {"email": 1, "price": 0, "visit": 1, "buy": 1}
    with pytest.raises(ParseError, match=r"'vist' is none. Did you mean 'visit'\?"):
        read_past([{**good, "vist": 1}])
    with pytest.raises(ParseError, match=r"'intervention_target' is none. Did you mean 'intervention_targets'\?"):
        read_past([{**good, "intervention_target": "email"}])
    with pytest.raises(ParseError, match=r"do:emial.*Did you mean 'do:email'\?"):
        read_past([{**good, "do:emial": 1}])
    with pytest.raises(ParseError, match="emial"):
        read_past([{**good, "do": "emial"}])
    with pytest.raises(ParseError, match=r"'visit' has no value in any row.*latent=\['visit'\]"):
        read_past([{"email": 1, "price": 0, "buy": 1}])
    with pytest.raises(ParseError, match=r"'buy' has no value in any row\. Add its column"):  # the target is not hidden
        read_past([{"email": 1, "price": 0, "visit": 1}])
    with pytest.raises(
        ParseError, match=r"none of the columns 'email price visit buy' is a variable.*separated by commas"
    ):
        read_past(io.StringIO("email price visit buy\n1 0 1 1\n"))


def test_what_is_no_variable_is_passed_over_and_said():
    row = {"email": 1, "price": 0, "visit": 1, "buy": 1, "customer_number": 17, "day": "2026-01-01"}
    with pytest.warns(DobanditWarning, match="'customer_number', 'day'"):
        past = read_past([row])
    assert past.passed == ("customer_number", "day")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"do": "email"}, "does not say to what"),
        ({"do": 7}, "names the variables that were set"),
        ({"do": '{"email": '}, "names the variables that were set"),
        ({"do": "[1, 2]"}, "names the variables that were set"),
        ({"do": "(lambda: 1)()"}, "names the variables that were set"),
        ({"do": "buy"}, "target"),
        ({"do": '{"email": 1}', "email": 0}, "was set to 1 and is said to have been 0"),
        ({"do": '{"email": 1}', "do:email": 0}, "set to one value"),
        ({"do": "price", "intervention_targets": "price", "price": 1}, "Keep one"),
    ],
)
def test_marks_that_cannot_be_are_refused(row, what):
    with pytest.raises(ParseError, match=what):
        read_past([{"visit": 1, "buy": 0, **row}])


def test_a_variable_called_do_is_a_variable():
    graph = dob.CausalGraph([("do", "buy")], target="buy")
    past = read_past([{"do": 1, "buy": 1}, {"do": 0, "buy": 1}], graph)
    assert {trial.do for trial in past.trials} == {"[null,null]"}


def test_parquet_without_its_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as where it is not installed
    with pytest.raises(ExperimentError, match=r"pip install 'dobandit\[parquet\]'"):
        read_past(tmp_path / "visits.parquet")


@pytest.mark.parametrize("name", ["none.parquet", "none.csv", "none.csv.gz"])
def test_a_file_that_is_not_there_is_said(name, tmp_path):
    with pytest.raises(ParseError, match=name):
        read_past(tmp_path / name)


def test_a_compressed_file_that_is_damaged_is_said(tmp_path):
    whole = gzip.compress(b"email,price,visit,buy\n" + b"1,0,1,1\n" * 50)
    (tmp_path / "half.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ParseError, match="damaged"):
        read_past(tmp_path / "half.csv.gz")
