"""Several processes at one storage: killed, forked, copied while they write."""

import signal

import pytest

from dobandit.errors import StorageError
from dobandit.storage import MemoryStorage, open_storage
from helpers.storages import SEEN, add, carried_out, sound, start


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spring.db"


@pytest.fixture
def storage(path):
    opened = open_storage(str(path))
    yield opened
    opened.close()


WRITER = """
experiment = storage.find("spring").id
while True:
    print(add(experiment, SEEN), flush=True)
"""


def test_a_killed_writer_loses_nothing_it_acknowledged(storage, path):
    experiment = storage.create("spring", "{}", 1.0).id
    writer = start(WRITER, path)
    seen = [int(writer.stdout.readline()) for _ in range(40)]
    writer.send_signal(signal.SIGKILL)
    seen += [int(line) for line in writer.stdout]  # what was read ahead too, which `communicate` leaves out
    writer.communicate()
    numbers = [trial.number for trial in storage.rows(experiment)]
    assert numbers[: len(seen)] == seen
    assert len(numbers) - len(seen) in (0, 1)  # the last one may not have had the time to be printed
    assert add(storage, experiment, SEEN) == len(numbers)
    assert sound(path)


def test_a_backup_while_others_write(storage, path, tmp_path):
    experiment = storage.create("spring", "{}", 1.0).id
    add(storage, experiment, *[SEEN] * 5000)
    writer = start(WRITER, path)
    try:
        for number in range(3):
            printed = int(writer.stdout.readline())
            copy = tmp_path / f"copy{number}.db"
            (open_storage(str(path)) if number else storage).backup(copy)
            copied = open_storage(str(copy))
            assert copied.find("spring").trials > printed
            copied.close()
            assert sound(copy)
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()
    assert sorted(file.name for file in tmp_path.glob("*copy*")) == ["copy0.db", "copy1.db", "copy2.db"]


def test_backups_that_are_refused(storage, path, tmp_path):
    with pytest.raises(StorageError, match="must exist"):
        storage.backup(tmp_path / "copy.db")
    storage.create("spring", "{}", 1.0)
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(StorageError, match="never replaces"):
        storage.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"
    with pytest.raises(StorageError, match="folder that can be written"):
        storage.backup(tmp_path / "no" / "copy.db")
    with pytest.raises(StorageError, match="in memory"):
        MemoryStorage().backup(tmp_path / "new.db")
    with pytest.raises(StorageError, match="pg_dump"):
        open_storage("postgresql://u:geheim@h/d").backup(tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


CREATORS = """
def work(name):
    experiment = storage.create(name, "{}", 1.0)
    try:
        storage.create("common", "{}", 1.0)
    except ExperimentError:
        pass
    common = storage.find("common").id
    for _ in range(10):
        add(common, SEEN)
    assert add(experiment.id, SEEN) == 0
    storage.close()

import gc, dobandit.storage.sql
gc.freeze()
start = time.monotonic() + 0.2
children = []
for number in range(8):
    children.append(os.fork())
    if not children[-1]:
        time.sleep(max(start - time.monotonic(), 0.0))
        work(f"own{number}")
        os._exit(0)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_eight_processes_make_the_tables_at_once(kind, path, request, zygote):
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").new_database()
    carried_out(zygote, CREATORS, url)
    storage = open_storage(url)
    assert [experiment.trials for experiment in storage.experiments()] == [80] + [1] * 8
    storage.close()


FORK = """
experiment = storage.create("spring", "{}", 1.0).id
add(experiment, SEEN)
storage.find("spring")
hearing, saying = os.pipe()
child = os.fork()
for _ in range(20):
    add(experiment, SEEN)
if not child:
    os.read(hearing, 10)  # until the parent has let go
    for _ in range(20):
        add(experiment, SEEN)
    os._exit(0)  # as a crash would end it
storage.close()
os.write(saying, b"closed")
assert os.waitpid(child, 0)[1] == 0
assert storage.find("spring").trials == 61, storage.find("spring")
storage.close()
"""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_fork(kind, path, request, zygote):
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").new_database()
    carried_out(zygote, FORK, url)
    assert kind == "postgresql" or sound(path)
