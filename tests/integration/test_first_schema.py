"""A file of the first version is still understood, and what was learned from it is the same."""

import json
import math
import shutil
from pathlib import Path

import pytest

import dobandit as dob
from dobandit.experiment.storage import schema
from dobandit.experiment.storage.upgrade import upgrade
from fixtures.write_first_schema import answers
from helpers.storages import schema_version

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPECTED = json.loads((FIXTURES / "first_schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    copy = tmp_path_factory.mktemp("first") / "spring.db"
    shutil.copy(FIXTURES / "first_schema.db", copy)
    assert schema_version(str(copy)) == "0001"
    return str(copy)


@pytest.fixture(scope="module")
def found(path):
    return answers(path)


def close(one, other):
    """Equal, but for the last digits of numbers."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    return type(one) is type(other) and one == other


def test_the_file_is_small_and_complete():
    assert (FIXTURES / "first_schema.db").stat().st_size < 200_000
    assert not (FIXTURES / "first_schema.db-wal").exists()
    trials = [trial for experiment in EXPECTED.values() for trial in experiment["trials"]]
    assert {trial["state"] for trial in trials} == {"pending", "told", "failed", "abandoned"}
    assert {trial["source"] for trial in trials} == {"asked", "recorded", "imported"}
    assert all(any(trial[key] for trial in trials) for key in ("late", "partial", "reason", "available"))
    assert {trial["issued"] for trial in trials} == {1, 2}


def test_the_tables_are_brought_up_to_date_when_they_are_opened(path, found):
    assert schema_version(path) == schema.VERSIONS[-1]
    assert upgrade(path) == (schema.VERSIONS[-1], schema.VERSIONS[-1])


def test_an_upgrade_by_command_says_the_same(found, tmp_path):
    copy = str(shutil.copy(FIXTURES / "first_schema.db", tmp_path / "spring.db"))
    assert upgrade(copy) == ("0001", schema.VERSIONS[-1])
    assert answers(copy) == found


def test_a_file_that_may_not_be_written_says_why(tmp_path, monkeypatch):
    copy = str(shutil.copy(FIXTURES / "first_schema.db", tmp_path / "spring.db"))

    def read_only(connection):
        raise dob.errors.StorageError("spring.db may not be written by you.")

    monkeypatch.setattr("dobandit.experiment.storage.upgrade.migrate", read_only)
    with pytest.raises(dob.errors.StorageError, match=r"may not be written.*version 0001"):
        dob.list_experiments(copy)
    monkeypatch.undo()
    assert schema_version(copy) == "0001"
    assert len(dob.list_experiments(copy)) == len(EXPECTED)


def test_what_was_told_before_can_be_told_again(path):
    """A variable without any cause that was not told is kept as 0 now, and was not then."""
    graph = dob.CausalGraph([("A", "Y"), ("B", "Y")], target="Y", bias=["Y"])
    experiment = dob.create_experiment("idle", graph, 1, storage=path, seed=1)
    trial = experiment.ask()
    other = next(name for name in "AB" if name not in trial.do)
    with experiment.storage.writing(experiment._id) as writer:
        row = [trial.do.get(name, 1 if name == "Y" else None) for name in experiment.columns.names]
        text = json.dumps(row, separators=(",", ":"))
        writer.close(writer.trial(trial.number)._replace(state="told", observation=text, partial=True))
    assert experiment.tell(trial.number, {"Y": 1}).repeated
    assert experiment.tell(trial.number, {"Y": 1, other: 0}).repeated
    with pytest.raises(dob.errors.ConflictError):
        experiment.tell(trial.number, {"Y": 1, other: 1})
    dob.delete_experiment("idle", path)


def test_the_names(path, found):
    assert [experiment.name for experiment in dob.list_experiments(path)] == list(EXPECTED) == list(found)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_experiment_of_the_first_schema(found, name):
    now, then = found[name], EXPECTED[name]
    assert {key: now["status"][key] for key in then["status"]} == then["status"]
    assert [{key: row[key] for key in then["trials"][0]} for row in now["trials"]] == then["trials"]
    assert close(now["recommend"], then["recommend"])
    assert close(now["asked"], then["asked"])
