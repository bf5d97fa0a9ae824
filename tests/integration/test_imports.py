"""Imports of many rounds enter the log as a whole: readers see all or nothing, and whoever is killed leaves nothing."""

import os
import signal

import pytest

from dobandit.errors import MissingError
from dobandit.storage import open_storage
from dobandit.storage.sql import SQLWriter
from helpers.experiments import Clock, again, knowledge, make, said
from helpers.storages import id_of

ROUNDS = [({"X3": i % 2}, {"X2": i % 3 % 2, "X4": i // 5 % 2, "X5": 0, "Y": i // 2 % 2}) for i in range(100)]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """A database of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/spring.db"
    return request.getfixturevalue("postgres_server").new_database()


def in_child(run):
    """A forked process."""
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(1)
    return child


def everything(experiment):
    return experiment.trials(), again(experiment).status(), experiment.storage.counters(id_of(experiment))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")
@pytest.mark.parametrize("written", [False, True])
def test_a_killed_import_leaves_nothing_and_can_be_repeated(url, monkeypatch, written):
    """Killed before its trials are written, and after that, but before the end of the transaction."""
    experiment = make(open_storage(url), clock=Clock())
    experiment.tell(experiment.ask(), {"Y": 1})
    before, plain = everything(experiment), SQLWriter.add

    def killed(self, trials):
        if written:
            plain(self, trials)
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(SQLWriter, "add", killed)
        status = os.waitpid(in_child(lambda: experiment.import_history(ROUNDS)), 0)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert everything(experiment) == before
    numbers = experiment.import_history(ROUNDS)
    assert experiment.rounds_in(numbers) == 100
    other = make(name="other", clock=Clock())
    other.tell(other.ask(), {"Y": 1})
    other.import_history(ROUNDS)
    assert knowledge(experiment) == knowledge(other)
    assert said(experiment.ask()) == said(other.ask())
    experiment.close()


def test_an_import_into_an_experiment_that_was_deleted(url):
    experiment = make(open_storage(url))
    experiment.storage.delete("spring")
    with pytest.raises(MissingError, match="was deleted"):
        experiment.import_history(ROUNDS)
    experiment.close()
