"""Tables of other versions, and the migrations that make the same tables as the program does."""

import shutil

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from dobandit.errors import StorageError
from dobandit.experiment.storage import open_storage, schema
from dobandit.experiment.storage import upgrade as upgrading
from dobandit.experiment.storage.addresses import open_database
from dobandit.experiment.storage.base import StoredTrial
from dobandit.experiment.storage.upgrade import configuration, migrate, upgrade
from helpers.storages import SEEN, add, carried_out, schema_version


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/spring.db"
    return request.getfixturevalue("postgres_server").new_database()


@pytest.fixture
def spring(url):
    """An experiment with a trial, in tables of this version."""
    storage = open_storage(url)
    add(storage, storage.create("spring", "{}", 1.0).id, SEEN)
    storage.close()
    return url


def run(url, *statements):
    database = open_database(url)
    with database.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    database.engine.dispose()


def described(connection):
    """What Alembic does not compare."""
    inspector = sa.inspect(connection)
    checks = {name: inspector.get_check_constraints(name) for name in schema.metadata.tables}
    if connection.dialect.name == "sqlite":
        made = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master ORDER BY name")
        return checks, [(kind, name, "".join((sql or "").split())) for kind, name, sql in made]
    return checks, [inspector.get_indexes(name) for name in schema.metadata.tables]


def test_the_migrations_make_the_same_tables(url, spring, request, tmp_path):
    if url.startswith("sqlite"):
        other = open_database(f"sqlite:///{tmp_path}/migrated.db")
        other.make()
    else:
        other = open_database(request.getfixturevalue("postgres_server").new_database())
    options = {"version_table": schema.VERSION_TABLE, "compare_type": True, "compare_server_default": True}
    with other.engine.connect() as migrated:
        other.begin(migrated)
        migrate(migrated)
        assert compare_metadata(MigrationContext.configure(migrated, opts=options), schema.whole_metadata()) == []
        database = open_database(url)
        with database.engine.connect() as made:
            assert compare_metadata(MigrationContext.configure(made, opts=options), schema.whole_metadata()) == []
            assert described(migrated) == described(made)
        migrated.commit()
        database.engine.dispose()
    other.engine.dispose()


def test_the_versions_are_those_of_the_migrations():
    revisions = ScriptDirectory.from_config(configuration()).walk_revisions()
    assert tuple(revision.revision for revision in revisions)[::-1] == schema.VERSIONS


def test_the_present_version(spring):
    assert schema_version(spring) == schema.VERSIONS[-1]
    assert upgrade(spring) == (schema.VERSIONS[-1], schema.VERSIONS[-1])


@pytest.fixture
def first(url):
    """Tables of the first version, with an experiment, a told trial and a pending one."""
    database = open_database(url)
    database.make()
    with database.engine.connect() as connection:
        database.begin(connection)
        migrate(connection, "0001")
        connection.exec_driver_sql("INSERT INTO experiments VALUES (1, 'spring', '{}', 1.0, 2, 1)")
        for number, state, position in ((0, "told", "0"), (1, "pending", "NULL")):
            connection.exec_driver_sql(OLD_TRIAL.format(number=number, state=state, position=position))
        connection.commit()
    database.engine.dispose()
    return url


OLD_TRIAL = """
INSERT INTO trials
(experiment, number, source, "do", asked_after, why, issued, state, position, observation, late, partial)
VALUES (1, {number}, 'asked', '[1,null]', 0, '', 1, '{state}', {position}, '[1,0]', false, false)
"""


def test_tables_of_the_first_version_are_brought_up_to_date_by_whoever_comes_first(first, zygote):
    script = """
import gc, dobandit.experiment.storage.sql, dobandit.experiment.storage.upgrade  # loaded once
gc.freeze()
start, children = time.monotonic() + 0.1, []
for _ in range(4):
    children.append(os.fork())
    if not children[-1]:
        time.sleep(max(start - time.monotonic(), 0.0))
        spring = storage.find("spring")
        assert [trial.rounds for trial in storage.closed_since(spring.id, 0)] == [1], spring
        assert spring.trials == 2, spring
        storage.close()
        os._exit(0)
print([os.waitpid(child, 0)[1] for child in children])
"""
    assert carried_out(zygote, script, first) == ["[0,", "0,", "0,", "0]"]
    assert schema_version(first) == schema.VERSIONS[-1]
    storage = open_storage(first)
    told, pending = storage.rows(1)
    assert told == StoredTrial(0, "asked", "[1,null]", state="told", position=0, observation="[1,0]")
    assert pending == StoredTrial(1, "asked", "[1,null]", observation="[1,0]")
    with storage.writing(1) as writer:
        writer.close(pending._replace(state="told", observation="[[1,0]]", counts="[7]", rounds=7))
    # An older program that has been running all the while knows nothing of the new columns.
    run(first, OLD_TRIAL.format(number=2, state="told", position=2), "UPDATE experiments SET trials = 3, closed = 3")
    assert [trial.rounds for trial in storage.closed_since(1, 0)] == [1, 7, 1]
    storage.close()


def test_a_failed_step_to_the_present_version_changes_nothing(first, monkeypatch):
    def broken(connection):
        connection.exec_driver_sql("ALTER TABLE trials ADD COLUMN size INTEGER")
        connection.exec_driver_sql("DROP TABLE nothing")

    storage = open_storage(first)
    with monkeypatch.context() as patch:
        patch.setattr("dobandit.experiment.storage.upgrade.migrate", broken)
        for refused in (lambda: storage.find("spring"), lambda: storage.create("x", "{}", 1.0)):
            with pytest.raises(StorageError, match=r"Nothing of this was stored.*version 0001"):
                refused()
    assert schema_version(first) == "0001"
    assert storage.find("spring").trials == 2
    storage.close()


NOW = schema.VERSIONS[-1]
AFTER = f"{int(NOW) + 1:04}"
NEXT = f"""
import sqlalchemy as sa
from alembic import op

revision, down_revision = "{AFTER}", "{NOW}"


def upgrade():
    with op.batch_alter_table("experiments", recreate="always" if op.get_bind().dialect.name == "sqlite" else "auto",
                              table_kwargs={{"sqlite_autoincrement": True}}) as table:
        table.add_column(sa.Column("colour", sa.Text, nullable=False, server_default="red"))
"""


@pytest.fixture
def next_version(tmp_path, monkeypatch):
    """A next version of the tables; SQLite has to copy and drop the table of experiments for it."""
    migrations = tmp_path / "migrations"
    shutil.copytree(upgrading._MIGRATIONS, migrations)
    (migrations / "versions" / f"{AFTER}_next.py").write_text(NEXT)
    monkeypatch.setattr(upgrading, "_MIGRATIONS", migrations)
    monkeypatch.setattr(schema, "VERSIONS", (*schema.VERSIONS, AFTER))


def test_older_tables_are_upgraded_when_asked(spring, next_version):
    storage = open_storage(spring)
    for refused in (lambda: storage.find("spring"), lambda: storage.create("x", "{}", 1.0)):
        with pytest.raises(StorageError, match="dobandit storage upgrade"):
            refused()
    assert upgrade(spring) == (NOW, AFTER)
    assert upgrade(spring) == (AFTER, AFTER)
    run(spring, "UPDATE experiments SET colour = 'green'")
    found = storage.find("spring")
    assert [trial.number for trial in storage.rows(found.id)] == [0]
    storage.delete("spring")
    storage.close()


def test_newer_tables_are_left_alone(spring):
    run(spring, "UPDATE dobandit_version SET version_num = '9999'")
    storage = open_storage(spring)
    for refused in (storage.experiments, lambda: storage.create("x", "{}", 1.0), lambda: upgrade(spring)):
        with pytest.raises(StorageError, match="newer dobandit"):
            refused()
    storage.close()
    assert schema_version(spring) == "9999"


def test_there_is_nothing_to_upgrade(url, tmp_path):
    assert schema_version(url) is None
    with pytest.raises(StorageError, match="has none"):
        upgrade(url)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_upgrade_changes_nothing(spring, monkeypatch):
    monkeypatch.setattr(schema, "VERSIONS", (*schema.VERSIONS, "9999"))

    def broken(connection):
        connection.exec_driver_sql("DROP TABLE trials")
        connection.exec_driver_sql("DROP TABLE nothing")

    with monkeypatch.context() as patch:
        patch.setattr("dobandit.experiment.storage.upgrade.migrate", broken)
        with pytest.raises(StorageError, match="Nothing of this was stored"):
            upgrade(spring)
    monkeypatch.undo()
    storage = open_storage(spring)
    assert [trial.number for trial in storage.rows(storage.find("spring").id)] == [0]
    storage.close()
