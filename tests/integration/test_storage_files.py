"""SQLite files in trouble: what was acknowledged is there, what was not is not, and the message says what to do."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dobandit.errors import ExperimentError, StorageError
from dobandit.storage import MemoryStorage, open_storage, sqlite
from helpers.storages import SEEN, add, finish, sound, start


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spring.db"


@pytest.fixture
def storage(path):
    opened = open_storage(str(path))
    yield opened
    opened.close()


@pytest.mark.parametrize("address", ["memory", "sqlite://", "sqlite:///:memory:"])
def test_memory_is_one_for_the_process(address):
    storage = open_storage(address)
    assert isinstance(storage, MemoryStorage)
    assert open_storage(storage) is storage is open_storage("memory")


def test_no_address_is_the_usual_file():
    assert open_storage(None).url == "sqlite:///dobandit.db"


@pytest.mark.parametrize("form", ["sqlite:///{}", "sqlite+pysqlite:///{}", "{}", "sqlite:///spring.db", "spring.db"])
def test_the_ways_to_name_a_file(form, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = open_storage(form.format(path))
    monkeypatch.chdir("/")
    storage.create("spring", "{}", 1.0)
    storage.close()
    assert path.exists()


@pytest.mark.parametrize(
    "address",
    [
        *("", "spring", "spring.csv", "sqlite://spring.db", "sqlite:///a.db?mode=ro", "mysql://u:geheim@h/d", "://"),
        *("a\0.db", "postgresql+psycopg2://u:geheim@h/d", "postgresql://u:geheim@h:port/d", 7, b"spring.db"),
    ],
)
def test_other_addresses_are_refused_without_telling_secrets(address):
    with pytest.raises(StorageError, match="A storage must be a file that ends with") as caught:
        open_storage(address)
    assert "geheim" not in str(caught.value)


def test_sqlalchemy_is_imported_only_where_it_is_needed():
    script = """
import sys
import dobandit
from dobandit.storage import open_storage
assert "sqlalchemy" not in sys.modules
open_storage("a.db")
assert "sqlalchemy" in sys.modules
assert "psycopg" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_odd_file_names(tmp_path):
    for name in ("a b?c#d%20.db", "ünï'.sqlite3"):
        storage = open_storage(str(tmp_path / name))
        storage.create("spring", "{}", 1.0)
        storage.close()
        assert (tmp_path / name).exists()


def test_looking_makes_no_file(storage, path):
    assert list(storage.experiments()) == []
    assert storage.find("spring") is None
    assert storage.trial(1, 0) is None
    for refused in (lambda: storage.delete("spring"), lambda: storage.rows(1), lambda: add(storage, 1, SEEN)):
        with pytest.raises(ExperimentError):
            refused()
    assert not path.exists()


def test_a_missing_folder(tmp_path):
    storage = open_storage(str(tmp_path / "no" / "spring.db"))
    assert list(storage.experiments()) == []
    with pytest.raises(StorageError, match=r"folder that exists.*Make the folder"):
        storage.create("spring", "{}", 1.0)


def test_a_folder_instead_of_a_file(storage, path):
    path.mkdir()
    with pytest.raises(StorageError, match="cannot be opened"):
        storage.find("spring")
    with pytest.raises(StorageError):
        storage.create("spring", "{}", 1.0)


def test_a_file_of_another_kind_is_left_alone(storage, path):
    text = "date,sales\n" * 500
    path.write_text(text)
    for refused in (lambda: storage.find("spring"), lambda: storage.create("spring", "{}", 1.0)):
        with pytest.raises(StorageError, match="file of another kind"):
            refused()
    assert path.read_text() == text


def test_a_database_of_another_program_gets_our_tables_too(storage, path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sales (amount)")
    assert storage.find("spring") is None
    assert add(storage, storage.create("spring", "{}", 1.0).id, SEEN) == 0


def test_tables_of_the_same_name_are_never_touched(storage, path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE trials (amount)")
    with pytest.raises(StorageError, match=r"tables of other programs.* but has trials"):
        storage.create("spring", "{}", 1.0)


def test_a_damaged_file(storage, path):
    storage.create("spring", "{}", 1.0)
    storage.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(bytes(content))
    with pytest.raises(StorageError, match=r"is damaged.*backup"):
        open_storage(str(path)).experiments()


def test_a_file_that_is_removed_or_replaced_while_in_use(storage, path, tmp_path):
    experiment = storage.create("spring", "{}", 1.0).id
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="was removed"):
        add(storage, experiment, SEEN)
    shutil.copy(tmp_path / "elsewhere", path)
    with pytest.raises(StorageError, match="was replaced"):
        storage.find("spring")
    os.replace(tmp_path / "elsewhere", path)
    assert add(storage, experiment, SEEN) == 0


@contextmanager
def powerless():
    """Root may do everything, so be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder():
    """pytest's own folders are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="dobandit-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_file_and_folder_that_may_only_be_read(open_folder):
    path = open_folder / "spring.db"
    open_folder.chmod(0o555)
    with powerless(), pytest.raises(StorageError, match=r"allowed to write.*Change the permissions"):
        open_storage(str(path)).create("spring", "{}", 1.0)
    open_folder.chmod(0o755)
    writer = open_storage(str(path))
    experiment = writer.create("spring", "{}", 1.0).id
    path.chmod(0o444)
    with powerless():  # while another process has it open
        reader = open_storage(str(path))
        assert reader.find("spring").trials == 0
        with pytest.raises(StorageError, match=r"may not be written by you. Nothing of this was stored"):
            add(reader, experiment, SEEN)
        reader.close()
    writer.close()
    open_folder.chmod(0o555)
    with powerless():
        reader = open_storage(str(path))
        with pytest.raises(StorageError, match=r"even to read.*work on a copy"):
            reader.find("spring")
        reader.close()


def test_no_room_in_the_database(path, monkeypatch):
    plain = sqlite.connect

    def small(*arguments):
        connection = plain(*arguments)
        connection.execute("PRAGMA max_page_count=40")
        return connection

    monkeypatch.setattr(sqlite, "connect", small)
    storage = open_storage(str(path))
    experiment = storage.create("spring", "{}", 1.0).id
    add(storage, experiment, *[SEEN] * 200)
    with pytest.raises(StorageError, match=r"no room left.*Nothing of this was stored.*Free some space"):
        add(storage, experiment, *[SEEN] * 3000)
    assert sum(1 for _ in storage.rows(experiment)) == storage.find("spring").trials == 200
    storage.close()
    monkeypatch.undo()
    assert sound(path)
    storage = open_storage(str(path))
    assert add(storage, experiment, SEEN) == storage.find("spring").trials - 1
    storage.close()


def test_a_full_disk(path):
    script = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
experiment = storage.create("spring", "{}", 1.0).id
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
acknowledged = 0
try:
    while acknowledged < 10_000:
        acknowledged = add(experiment, *[SEEN] * 10) + 10
except StorageError as error:
    assert "Nothing of this was stored" in str(error) and "space" in str(error), error
for _ in range(3):
    try:
        add(experiment, SEEN)
    except StorageError:
        continue
    acknowledged += 1
assert 10 < acknowledged < 10_000
assert storage.find("spring").trials == acknowledged
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert add(experiment, SEEN) == acknowledged
print(acknowledged + 1)
storage.close()
"""
    (acknowledged,) = finish(start(script, path))
    assert sound(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM trials").fetchone() == (int(acknowledged),)
