"""What is promised of an experiment's file: on full disks, where it may only be read, and in copies."""

import os
import resource
import shutil
import signal
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

import dobandit as dob
from dobandit.errors import StorageError
from dobandit.rows.stored_trial import PENDING
from dobandit.storage import open_storage
from helpers.zygote import NAME, Child, create, intact, refused, told, write_for_ever

# -- processes ---------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spring.db"


# -- disks and permissions ---------------------------------------------------------------------------------------


def full_disk(storage):
    now = 0.0
    experiment = create(storage, lease=10.0, clock=lambda: now)
    experiment.ask(n=100)
    now = 100.0
    trials = experiment.ask(n=100)  # again: who tells these is not late
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = os.path.getsize(storage + "-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, hard))
    done = 0
    try:
        for trial in trials:
            experiment.tell(trial.number, {"Y": 1})
            done += 1
    except StorageError as error:
        message = str(error)
    assert 0 < done < 100
    assert "Nothing of this was stored" in message, message
    assert "Free some space" in message, message
    refused(StorageError, experiment.tell, done, {"Y": 1})
    refused(StorageError, experiment.record, {}, {"Y": 1})
    assert told(experiment) == [[i, {**trials[i].do, "Y": 1}] for i in range(done)]
    assert experiment.trial(done)["state"] == PENDING
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    answer = experiment.tell(done, {"Y": 1})
    assert not answer.late
    assert not answer.repeated
    assert experiment.ask(n=2)[0].number == 100
    experiment.close()
    assert intact(storage)
    again = dob.open_experiment(NAME, storage)
    assert len(told(again)) == done + 1
    again.close()
    return message


def test_a_full_disk(zygote, path):
    zygote.run(full_disk, path)


def only_readable(storage):
    experiment = create(storage)
    experiment.ask(n=2)
    os.chmod(storage, 0o444)
    child = Child(partial(look, storage=storage))
    experiment.status()  # keeps the file open
    experiment.tell(0, {"Y": 1})
    messages = child.finish()[0]
    experiment.tell(1, {"Y": 0})
    assert [number for number, _ in told(experiment)] == [0, 1]
    experiment.close()
    return messages


def look(send, storage):
    while not Path(f"{storage}-shm").exists():  # until the other process has the file open again
        time.sleep(0.01)
    if os.geteuid() == 0:
        os.setuid(65534)  # root may do everything
    experiment = dob.open_experiment(NAME, storage)
    while experiment.status().told == 0:
        time.sleep(0.01)
    assert experiment.recommend().do
    send(
        refused(StorageError, experiment.ask),
        refused(StorageError, experiment.tell, 1, {"Y": 0}),
        refused(StorageError, experiment.record, {}, {"Y": 1}),
    )


def test_a_file_that_may_only_be_read(zygote):
    folder = Path(tempfile.mkdtemp(prefix="dobandit-"))  # pytest's own folders are closed to others
    try:
        folder.chmod(0o755)
        messages = zygote.run(only_readable, folder / "spring.db")
    finally:
        shutil.rmtree(folder)
    assert len(messages) == 3
    assert all("may not be written by you. Nothing of this was stored" in message for message in messages)


# -- copies ------------------------------------------------------------------------------------------------------


def backups(storage, folder):
    create(storage).close()
    child = Child(partial(write_for_ever, storage=storage))
    child.line()
    copies, acknowledged = [], []
    for number in range(10):
        while True:
            kind, *word = child.line()
            if kind == "told":
                acknowledged.append(word)
                if len(acknowledged) % 5 == 0:
                    break
        copy = Path(f"{folder}/copy{number}.db")
        open_storage(storage).backup(copy)
        copies.append((copy, len(acknowledged)))
    child.kill()
    original = dob.open_experiment(NAME, storage)
    log = told(original)
    original.close()
    lengths = [check_copy(copy, log, known) for copy, known in copies]
    assert lengths == sorted(lengths)
    return lengths


def check_copy(copy, log, known):
    """It holds the beginning of the log, at least what was acknowledged before the copy was made, and goes on."""
    assert intact(copy)
    opened = dob.open_experiment(NAME, str(copy))
    found = told(opened)
    assert found == log[: len(found)]
    assert len(found) >= known
    opened.tell(opened.ask().number, {"Y": 1})
    opened.close()
    return len(found)


def plain_copies(storage, folder):
    """While a process has the file open, but writes nothing."""
    create(storage).close()
    child = Child(partial(write_for_ever, storage=storage, most=20))
    acknowledged = []
    while (line := child.line())[0] != "idle":
        acknowledged += [line[1:]] if line[0] == "told" else []
    copy = Path(folder, "plain.db")
    shutil.copy(storage, copy)
    shutil.copy(storage + "-wal", f"{copy}-wal")
    assert os.path.getsize(f"{copy}-wal") > 0
    assert check_copy(copy, acknowledged, 20) == 20
    child.kill()


def test_a_backup_made_while_others_write_opens(zygote, path, tmp_path):
    zygote.run(backups, path, tmp_path)


def test_a_plain_copy_of_file_and_wal_opens_if_nobody_wrote_meanwhile(zygote, path, tmp_path):
    zygote.run(plain_copies, path, tmp_path)
