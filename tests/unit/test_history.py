"""Histories in, logs out: files, tables and rows say the same, and the first bad rows are named."""

import csv
import io
import json
from functools import partial
from importlib import import_module

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dobandit import CausalGraph, limits
from dobandit.errors import DobanditError, ExperimentError, ObservationError, ParseError
from dobandit.rows import export
from dobandit.rows.batches import batch_of, import_rows
from dobandit.rows.columns import Columns
from dobandit.rows.readers import read_rows
from dobandit.rows.stored_trial import StoredTrial
from helpers.worlds import quietly, relaxed

CHAIN = CausalGraph([("X1", "X2"), ("X2", "Y")], target="Y")
BINARY, SMOOTH = Columns(CHAIN, False, latent=("U",)), Columns(CHAIN, True)
PLAIN = [([1, None, None], [1, 0, 1], False), ([None, None, None], [0, None, 1], True)]


def read_history(source, columns):
    """What was set and seen in each row, and whether some variable was not seen."""
    rows = [(columns.values(row.do), columns.values(row.seen), row.times) for row in read_rows(source, columns)]
    assert {times for _, _, times in rows} == {1}
    return [(do, seen, bool(columns.missing(seen))) for do, seen, _ in rows]


def parsed(text, columns=BINARY):
    return read_history(io.StringIO(text, newline=""), columns)


def refused(source, columns=BINARY):
    with pytest.raises(ParseError) as caught:
        import_rows(io.StringIO(source, newline="") if isinstance(source, str) else source, columns)
    return caught.value


# -- the same rounds in all their forms ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "do:X1,X1,X2,Y\n1,,0,1\n,0,,1\n",
        "\ufeffX1;X2;Y;do:X1\r\n;0;1;1\r\n0;;1;\r\n",
        "X1\tX2\tY\tdo:X1\n1.0\tno\tTRUE\tyes\n0.0\tNA\t1e0\tnan",
        '"do:X1", X1 ,"X2",Y\n\n 1 ,"1",0,1\n\n,0,"",1\n\n',
        "do:X1,do:Y,X1,X2,Y,trial.state,trial.why\n1,,1,0,1,told,x\n,,,,,failed,\n1,,,,,pending,\n,,0,,1,told,x",
    ],
)
def test_csv_of_every_make(text, tmp_path):
    assert parsed(text) == PLAIN
    path = tmp_path / "history.csv"
    path.write_bytes(text.encode())
    assert read_history(path, BINARY) == read_history(str(path), BINARY) == PLAIN


FLAT = [{"do:X1": 1, "X1": None, "X2": 0, "Y": True}, {"do:X1": float("nan"), "X1": 0.0, "X2": None, "Y": np.int64(1)}]


@pytest.mark.parametrize(
    "rows",
    [
        [({"X1": 1}, {"X2": 0, "Y": 1}), [None, {"X1": 0, "Y": 1}]],
        [{"do": {"X1": 1}, "observation": {"X2": 0, "Y": 1}}, {"observation": {"X1": 0, "Y": 1}}],
        [{"do": ["X1"], "observation": {"X2": 0, "Y": 1}}, {"do": None, "observation": {"X1": 0, "Y": 1}}],
        FLAT,
        [{"Y": "1", "X2": "no", "do:X1": "1"}, {"X1": "0", "Y": "true", "X2": ""}],
        pd.DataFrame(FLAT),
        pd.DataFrame(FLAT).convert_dtypes(),
        pd.DataFrame(FLAT, dtype=object),
    ],
)
def test_rows_of_every_make(rows):
    assert read_history(rows, BINARY) == PLAIN
    if isinstance(rows, list):
        assert read_history(iter(rows), BINARY) == PLAIN


def test_continuous_values():
    assert parsed("X1,Y,do:X2\n.25,1e-3,0.5\n", SMOOTH) == [([None, 0.5, None], [0.25, 0.5, 0.001], False)]
    assert "0 or 1" in str(refused("X1,Y\n.25,1"))


def test_variables_may_be_called_do_and_observation():
    graph = quietly(CausalGraph, [("do", "observation"), ("state", "observation")], target="observation")
    columns = Columns(graph)
    wanted = [([None, 1, None], [0, 1, 1], False)]
    assert columns.names == ("do", "state", "observation")
    assert read_history([{"do": 0, "observation": 1, "do:state": 1}], columns) == wanted
    assert read_history([{"do": {"state": 1}, "observation": {"do": 0, "observation": 1}}], columns) == wanted


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "empty"),
        ("\n \n", None, "empty"),
        ("X1,Y\n", None, "at least one round"),
        ("X1,Y,trial.state\n1,1,failed\n", None, "at least one round"),
        ("X1,y\n1,1\n", 1, "'y' is none. Did you mean 'Y'"),
        ("X1,Y,do:X3\n1,1,1\n", 1, "'do:X3' is none. Did you mean 'do:X"),
        ("X1,U\n1,1\n", 1, "hidden"),
        ("X1,do:U\n1,1\n", 1, "hidden"),
        ("\nX1,Y,\n1,1,\n", 2, "column 3 has ''"),
        ("X1,Y,X1\n1,1,1\n", 1, "'X1' stands twice"),
        ("X1,Y,seen:X1\n1,1,1\n", 1, "'seen:X1' stands twice"),
        ("X1,Y,trial.stat\n1,1,told\n", 1, "Did you mean 'trial.state'"),
        ("X1,Y\n1,1\n1\n", 3, "each of the 2 columns, but this one has 1"),
        ("X1,Y\n1,1\n1,1,1\n", 3, "each of the 2 columns, but this one has 3"),
        ("X1,Y\n\n\n1,2\n", 4, "'Y' must be 0 or 1, but got 2"),
        ("X1,Y\n1,7\n", 2, "'Y' must be 0 or 1, but got 7. If it is an amount"),
        ("X1,Y\n1,maybe\n", 2, "'Y' must be 0 or 1, but got 'maybe'"),
        ("X1,Y\n1,0_1\n", 2, "'Y' must be 0 or 1, but got '0_1'"),
        ("X1,Y\n1,inf\n", 2, "'Y' must be 0 or 1"),
        ("do:X1,Y\n0.5,1\n", 2, "'do:X1' must be 0 or 1"),
        ("do:X1,Y\non,1\n", 2, "'do:X1' must be 0 or 1, but got 'on'"),
        ("do:X1,X1,Y\n1,0,1\n", 2, "'X1' was set to 1"),
        ("do:Y,X1\n1,0\n", 2, "target"),
        ("X1,Y\n,\n", 2, "as failed"),
        ('X1,Y\n"1\n",1\n1,3\n', 4, "'Y' must be 0 or 1"),
        ('X1,Y\n1,"1\n', 2, "Check the quotes"),
        ("X1,Y,trial.state\n1,1,tld\n", 2, "'tld'"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text, line, message, tmp_path):
    error = refused(text)
    assert message in str(error)
    assert error.line == line
    assert str(error).startswith(f"line {line}: ") or line is None
    path = tmp_path / "history.csv"
    path.write_text(text, newline="")
    with pytest.raises(ParseError) as caught:
        import_rows(path, BINARY)
    assert str(caught.value) == f"{path}: {error}"


def test_the_first_five_problems_are_told_together():
    text = "X1,Y\n" + "1,1\n" * 3 + "1,2\n,\nx,1\n" + "1,1\n" + ",\n" * 100
    lines = str(refused(text)).splitlines()
    assert [line.split(":")[0] for line in lines] == ["line 5", "line 6", "line 7", "line 9", "line 10"]


CATEGORIES = [("red", 3.7), ("green", 12.5), ("blue", 3.7), ("red", 1), ("yes", 0), ("pink", 2), ("grey", 9)] * 1000


@pytest.mark.parametrize("prefix", ["", "do:"])
def test_categories_and_amounts_are_refused_once_per_column(prefix):
    """With the way out: levels are made columns of 0 and 1, and amounts are cut at a number."""
    text = f"{prefix}X1,{prefix}X2,Y\n" + "".join(f"{colour},{price},1\n" for colour, price in CATEGORIES)
    for source, unit in ((text, "line 2"), (pd.read_csv(io.StringIO(text)), "row 0")):
        colours, prices = str(refused(source)).splitlines()
        assert colours.startswith(f"{unit}: the value of '{prefix}X1' must be 0 or 1, but got 'red', 'green', 'blue', ")
        assert "make a column of 0 and 1 for each of them" in colours
        assert prices.startswith(f"{unit}: the value of '{prefix}X2' must be 0 or 1, but got 3.7, 12.5, 2, 9. ")
        assert "cut it at a number: 1 above it, and 0 below" in prices


def test_categories_and_amounts_in_an_observation():
    rows = [{"X1": colour, "X2": price, "Y": 1} for colour, price in CATEGORIES]
    with pytest.raises(ObservationError) as caught:
        batch_of(rows, BINARY, [None] * 3)
    assert len(str(caught.value).splitlines()) == 2
    with pytest.raises(ObservationError, match=r"'X1' .* for each of them.*'X2' must be 0 or 1, but got 3.7. .*cut it"):
        batch_of(rows[0], BINARY, [None] * 3)
    with pytest.raises(ObservationError, match=r"a number from 0 to 1, but got 12.5.*divide it by its largest value"):
        batch_of({"Y": 12.5}, SMOOTH, [None] * 3)


BAD_ROWS = [
    7,
    "ab",
    None,
    ({},),
    ({}, {}, {}),
    ({"Y": 1}, {"X1": 1}),
    (None, {"Q": 1}),
    (None, None),
    {},
    {"Q": 1},
    {3: 1},
]
BAD_ROWS += [
    {"observation": {"Y": 1}, "dO": {}},
    {"do": {"X1": 1}},
    {"observation": {"Y": 1}, "state": "tld"},
    {"Y": 10**5000},
]
BAD_ROWS += [{"do": {"X1": 1}, "observation": None}, {None: ["1"], "Y": "1"}, {"Y": [1]}, {"do:X1": object(), "Y": 1}]


@pytest.mark.parametrize("row", BAD_ROWS, ids=range(len(BAD_ROWS)))
def test_a_bad_row_is_refused_with_its_number(row):
    good = ({}, {"X1": 1, "Y": 0})
    error = refused([good, good, row, good])
    assert str(error).startswith("row 2: ")
    assert error.line is None


def test_what_is_no_row_is_not_gone_through():
    class Endless:
        def __iter__(self):
            raise AssertionError("gone through")

    assert "row 1" in str(refused([{"X1": 1, "X2": 0, "Y": 1}, Endless()]))
    with pytest.raises(ObservationError, match="row 1"):
        batch_of([{"X1": 1, "X2": 0, "Y": 1}, Endless()], BINARY, [None] * 3)


def test_sources_that_are_none(tmp_path):
    for source in (3, None, {"X1": 1}, b"X1,Y\n1,1\n", io.BytesIO(b"X1,Y\n1,1\n")):
        with pytest.raises(ExperimentError, match=r"rounds come as|a table is"):
            import_rows(source, BINARY)
    assert "at least one round" in str(refused([]))
    assert "stands twice" in str(refused(pd.DataFrame([[1, 1]], columns=["Y", "Y"])))
    frame = pd.DataFrame({"X1": [1, 0], "do:X1": [1, None], "Y": [1, 1], "count": [3, 4]})
    for name in frame.columns:  # sums over groups have them in the index
        said = str(refused(frame.set_index([name, "Y"] if name != "Y" else "Y")))
        assert f"{name!r} is its index" in said
        assert "reset_index()" in said
    for table in (frame.set_index("X1").reset_index(), frame.set_index("X1", drop=False), frame.rename_axis("day")):
        assert len(read_rows(table, BINARY)) == 2
    assert "cannot be read" in str(refused(tmp_path / "nowhere.csv"))
    assert "cannot be read" in str(refused(tmp_path))
    (tmp_path / "latin.csv").write_bytes(b"X1,Y\n1,\xe9\n")
    assert "UTF-8" in str(refused(tmp_path / "latin.csv"))


def test_a_file_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "history.csv"
    path.write_text("X1,Y\n" + "1,1\n" * 100)
    monkeypatch.setattr(limits, "MAX_BYTES", 50)
    assert "Import it in parts" in str(refused(path))


# -- out, and in again -------------------------------------------------------------------------------------------

letters = st.one_of(st.characters(exclude_categories=("Cs",)), st.sampled_from(',;"\n\r\t :.\ufeff\x00'))
names = st.one_of(
    st.text(letters, min_size=1, max_size=4).filter(str.strip),
    st.sampled_from(["X", " X", "do:X", "do:do:X", "seen:X", "seen:do:X", "trial.state", "seen:trial.state", "state"]),
    st.sampled_from(["trial.number", "a,b", 'a"b', '"', "a\r\nb", "\rb", "a;b", "observation", "do", "do:", "trial."]),
)


@st.composite
def logs(draw):
    found = draw(st.lists(names, min_size=2, max_size=6, unique=True))
    graph = quietly(CausalGraph, [(name, found[-1]) for name in found[:-1]], target=found[-1])
    columns = Columns(graph, draw(st.booleans()))
    cell = st.sampled_from([None, 0, 1]) | (st.floats(0.0, 1.0) if columns.continuous else st.just(1))
    target = columns.names.index(graph.target)
    trials = []
    for number in range(draw(st.integers(1, 4))):
        do = [None if i == target else draw(cell) for i in range(len(found))]
        seen = [draw(cell) if value is None else value for value in do]
        seen[target] = draw(cell.filter(lambda value: value is not None))
        told = draw(st.booleans()) or number == 0
        trials.append(
            StoredTrial(
                number,
                draw(st.sampled_from(["asked", "recorded", "imported"])),
                columns.encode(do),
                predicted=draw(st.none() | st.floats(0, 1)),
                asked_at=draw(st.none() | st.floats(0, 2e9)),
                state="told" if told else draw(st.sampled_from(["pending", "failed", "abandoned"])),
                observation=columns.encode(seen) if told else None,
                partial=told and None in seen,
                reason=None if told else draw(st.none() | st.text(letters, max_size=5)),
            )
        )
    return columns, trials


@relaxed(max_examples=120)
@given(logs())
def test_an_export_read_again_gives_the_same_rounds(log):
    columns, trials = log
    told = [(json.loads(t.do), json.loads(t.observation), t.partial) for t in trials if t.state == "told"]
    text = export.write_csv(trials, columns, None)
    assert parsed(text, columns) == told
    assert read_history(csv.DictReader(io.StringIO(text, newline="")), columns) == told
    assert read_history([export.row_of(t, columns) for t in trials], columns) == told


@relaxed(max_examples=30)
@given(logs())
def test_tables_say_what_the_log_says(log):
    columns, trials = log
    records = list(csv.DictReader(io.StringIO(export.write_csv(trials, columns, None), newline="")))
    frame = export.to_pandas(trials, columns)
    assert list(frame.columns) == list(records[0]) == list(export.headings(columns))
    assert len(set(frame.columns)) == len(frame.columns) == len(records[0])
    for trial, record in zip(trials, records, strict=True):
        assert record["trial.number"] == str(trial.number)
        assert record["trial.state"] == trial.state
        assert record["trial.reason"] == export.guarded(trial.reason or "")
        assert not any(str(cell).startswith(("=", "+", "-", "@", "\t", "\r")) for cell in record.values())
        done = dict(zip(columns.names, json.loads(trial.do), strict=True))
        for name in columns.names[:-1] if columns.names[-1] == columns.graph.target else ():
            assert record[f"do:{name}"] == ("" if done[name] is None else str(done[name]))
    told = [t for t in trials if t.state == "told"]
    assert read_history(frame, columns) == [(json.loads(t.do), json.loads(t.observation), t.partial) for t in told]


TRIALS = [
    StoredTrial(0, "asked", "[1,null,null]", 0, '["X1"]', 0.5, 0.25, 1.0, float("inf"), "best", 1.5, 61.5),
    StoredTrial(1, "recorded", "[null,null,null]", state="told", position=0, observation="[0,null,1]", closed_at=2.0),
]


def test_a_row_for_json():
    asked, told = (export.row_of(trial, BINARY) for trial in TRIALS)
    assert json.loads(json.dumps([asked, told], allow_nan=False)) == [asked, told]
    assert asked == {
        "trial": 0,
        "state": "pending",
        "source": "asked",
        "do": {"X1": 1},
        "observation": None,
        "predicted": 0.5,
        "interval": [0.25, 1.0],
        "optimistic": None,
        "why": "best",
        "available": ["X1"],
        "asked_after": 0,
        "asked_at": "1970-01-01T00:00:01.500Z",
        "lease_expires": "1970-01-01T00:01:01.500Z",
        "issued": 1,
        "closed_at": None,
        "position": None,
        "late": False,
        "partial": False,
        "reason": None,
        "context": None,
        "size": 1,
        "control": False,
        "rounds": None,
    }
    assert told["do"] == {}
    assert told["observation"] == {"X1": 0, "Y": 1}
    assert told["interval"] is None


def test_files(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("old")
    assert export.write_csv(TRIALS, BINARY, path) is None
    assert path.read_text() == export.write_csv(TRIALS, BINARY, None)
    export.write_parquet(iter(TRIALS), BINARY, tmp_path / "log.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "log.parquet")
    assert table.column_names == list(export.headings(BINARY))
    assert {str(t) for t in table.schema.types} == {"int64", "double", "bool", "string", "timestamp[us, tz=UTC]"}
    assert table["Y"].to_pylist() == [None, 1.0]
    assert table["do:X1"].to_pylist() == [1.0, None]
    assert table["trial.asked_at"][0].as_py().timestamp() == 1.5
    assert read_history(table.to_pandas(), BINARY) == [([None, None, None], [0, None, 1], True)]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv", "log.parquet"]
    for write in (export.write_csv, export.write_parquet):
        with pytest.raises(DobanditError, match="cannot be written"):
            write(TRIALS, BINARY, tmp_path)


def test_an_empty_log_has_its_columns(tmp_path):
    header = list(export.headings(BINARY))
    assert export.write_csv([], BINARY, None) == ",".join(header) + "\n"
    assert list(export.to_pandas([], BINARY).columns) == header
    export.write_parquet([], BINARY, tmp_path / "log.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "log.parquet").column_names == header


@pytest.mark.parametrize(
    ("package", "words"), [("pyarrow", r"dobandit\[parquet\]"), ("pandas", "pip install 'pandas'")]
)
def test_packages_that_are_missing_are_named(package, words, monkeypatch, tmp_path):
    def without(name):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr(export.importlib, "import_module", without)
    write = export.to_pandas if package == "pandas" else partial(export.write_parquet, path=tmp_path / "log.parquet")
    with pytest.raises(ExperimentError, match=words):
        write(TRIALS, BINARY)
