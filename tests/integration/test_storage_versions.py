"""Databases and definitions that another version wrote are refused, and left as they are."""

import json
import shutil

import pytest

import dobandit as dob
from dobandit.errors import StorageError
from dobandit.storage import open_database, open_storage, schema
from helpers.commands import dobandit
from helpers.storages import SEEN, add, schema_version

GRAPH = dob.CausalGraph([("A", "Y"), ("B", "Y")], target="Y")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/spring.db"
    return request.getfixturevalue("postgres_server").new_database()


def change(url, *statements):
    database = open_database(url)
    with database.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    database.engine.dispose()


@pytest.mark.parametrize("version", ["0001", "0005", "2", "9999"])
def test_tables_of_another_version_are_refused(url, version):
    storage = open_storage(url)
    add(storage, storage.create("spring", "{}", 1.0).id, SEEN)
    storage.close()
    assert schema_version(url) == schema.VERSION == "1"
    change(url, f"UPDATE dobandit_version SET version_num = '{version}'")
    storage = open_storage(url)
    for refused in (
        storage.experiments,
        lambda: storage.create("x", "{}", 1.0),
        lambda: storage.writing(1).__enter__(),
    ):
        with pytest.raises(
            StorageError, match=f"must have tables of schema 1, but has those of schema '{version}'.*Open it"
        ):
            refused()
    storage.close()
    assert schema_version(url) == version


def test_a_command_ends_with_2_where_the_file_has_another_schema(tmp_path):
    url = f"sqlite:///{tmp_path}/spring.db"
    dob.create_experiment("spring", GRAPH, 1, storage=url, seed=1).close()
    change(url, "UPDATE dobandit_version SET version_num = '0005'")
    shutil.copy(tmp_path / "spring.db", tmp_path / "before.db")
    for words in (["list"], ["show", "spring"], ["ask", "spring"]):
        done = dobandit("experiment", *words, "--storage", url, code=2)
        assert "must have tables of schema 1" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert (tmp_path / "spring.db").read_bytes() == (tmp_path / "before.db").read_bytes()


@pytest.mark.parametrize("version", [0, 2, 4, "1", None])
def test_a_definition_of_another_version_is_refused(tmp_path, version):
    url = f"sqlite:///{tmp_path}/spring.db"
    dob.create_experiment("spring", GRAPH, 1, storage=url, seed=1).close()
    storage = open_storage(url)
    document = json.loads(storage.find("spring").document)
    assert document["version"] == 1
    storage.create("other", json.dumps({**document, "version": version}), 1.0)
    with pytest.raises(StorageError, match=r"definition must have version 1, but this one has .*Open it with"):
        dob.open_experiment("other", storage)
    assert dob.open_experiment("spring", storage).ask().number == 0
    storage.close()
    assert "definition must have version 1" in dobandit("experiment", "show", "other", "--storage", url, code=2).stderr
