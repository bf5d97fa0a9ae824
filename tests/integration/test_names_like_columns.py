"""Variables that are called like the columns of a log: what is told is kept, or refused with the way out."""

import io
import itertools

import pandas as pd
import pytest

import dobandit as dob
from dobandit.errors import ParseError
from dobandit.rows.export import seen_column
from dobandit.storage import MemoryStorage

ODD = ["trial.number", "trial.why", "trial.count", "trial.state", "do:x", "do:y", "seen:x", "seen:y"]
NAMES = [*((name,) for name in ODD), ("count",), ("count", "trial.count")]


def begun(names):
    """x -> the first of the names -> y, and the others cause y, too."""
    graph = dob.CausalGraph([("x", names[0]), *((name, "y") for name in names)], target="y", controllable=["x"])
    return dob.create_experiment("odd", graph, budget=1, storage=MemoryStorage(), seed=1)


def rows_of(names, x):
    """Every pattern once."""
    return [
        {"x": x, **dict(zip((*names, "y"), values, strict=True))}
        for values in itertools.product((0, 1), repeat=len(names) + 1)
    ]


def seen_in(experiment):
    """What the log says was seen in its first trial, with counts."""
    key, (row,) = experiment.columns.count_key, list(experiment.trials())
    rows = [{**one} for one in row["observation"]]
    return sorted((one.pop(key), sorted(one.items())) for one in rows)


def expected(rows, times):
    return sorted((times, sorted(row.items())) for row in rows)


@pytest.mark.parametrize("names", NAMES, ids=" and ".join)
def test_rows_are_kept_as_they_were_told(names):
    for times in (1, 3):
        experiment = begun(names)
        trial = experiment.ask()
        rows, key = rows_of(names, trial.do.get("x", 0)), experiment.columns.count_key
        experiment.tell(trial, rows if times == 1 else [{**row, key: times} for row in rows])
        assert seen_in(experiment) == expected(rows, times)


@pytest.mark.parametrize("names", NAMES, ids=" and ".join)
def test_trials_are_read_back(names):
    experiment, again = begun(names), begun(names)
    trial = experiment.ask()
    key = experiment.columns.count_key
    experiment.tell(trial, [{**row, key: 2} for row in rows_of(names, trial.do.get("x", 0))])
    again.import_history(list(experiment.trials()))
    assert seen_in(again) == seen_in(experiment)
    third = begun(names)
    (row,) = experiment.trials()
    third.record(row["do"], row["observation"])
    assert seen_in(third) == seen_in(experiment)


@pytest.mark.parametrize("names", NAMES, ids=" and ".join)
def test_a_table_names_them_as_exports_do(names):
    for made in (lambda frame: frame, lambda frame: io.StringIO(frame.to_csv(index=False))):
        experiment = begun(names)
        trial = experiment.ask()
        rows, key = rows_of(names, trial.do.get("x", 0)), experiment.columns.count_key
        experiment.tell(trial, made(pd.DataFrame(rows).rename(columns=seen_column).assign(**{key: 3})))
        assert seen_in(experiment) == expected(rows, 3)


@pytest.mark.parametrize("name", ODD)
def test_a_column_with_two_meanings_is_refused(name):
    experiment = begun((name,))
    trial = experiment.ask()
    rows = rows_of((name,), trial.do.get("x", 0))
    for made in (pd.DataFrame(rows), io.StringIO(pd.DataFrame(rows).to_csv(index=False))):
        with pytest.raises(ParseError, match=f"could be the variable.*Call it 'seen:{name}'"):
            experiment.tell(trial, made)
    with pytest.raises(ParseError, match=f"Call it 'seen:{name}'"):
        experiment.import_history(rows)
    assert [row["state"] for row in experiment.trials()] == ["pending"]
