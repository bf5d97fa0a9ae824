"""A file of the first version is still understood, and what was learned from it is the same."""

import json
import math
import shutil
from pathlib import Path

import pytest

import dobandit as dob
from dobandit.experiment.storage import schema
from dobandit.experiment.storage.upgrade import schema_version, upgrade
from fixtures.write_first_schema import answers

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPECTED = json.loads((FIXTURES / "first_schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    copy = tmp_path_factory.mktemp("first") / "spring.db"
    shutil.copy(FIXTURES / "first_schema.db", copy)
    assert schema_version(str(copy)) == "0001"
    assert upgrade(str(copy)) == ("0001", schema.VERSIONS[-1])
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


def test_the_names(path, found):
    assert [experiment.name for experiment in dob.list_experiments(path)] == list(EXPECTED) == list(found)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_experiment_of_the_first_schema(found, name):
    now, then = found[name], EXPECTED[name]
    assert now["status"] == then["status"]
    assert now["trials"] == then["trials"]
    assert close(now["recommend"], then["recommend"])
    assert close(now["asked"], then["asked"])
