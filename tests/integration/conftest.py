"""Fixtures that several files use."""

import io
import sys
import tempfile
import warnings
from types import SimpleNamespace

import pytest

from dobandit import open_experiment
from dobandit.cli.main import main
from dobandit.service.pages.demo import NAME, Shop, begin
from helpers.experiment_commands import GRAPH, PAPER
from helpers.pages import Visit
from helpers.serving import served
from helpers.zygote import Zygote


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Runs a command in a folder of its own, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOBANDIT_STORAGE", raising=False)
    (tmp_path / "graph.txt").write_text(GRAPH)

    def dobandit(*arguments, code=0, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        assert (ended.value.code or 0) == code, printed
        return SimpleNamespace(out=printed.out, err=printed.err)

    return dobandit


@pytest.fixture
def x(run):
    """`dobandit experiment ...` where the experiment spring exists, with a policy that always sets something."""
    run("experiment", "create", "spring", "graph.txt", "-k", 1, "--seed", 0, *PAPER)
    return lambda *arguments, **others: run("experiment", *arguments, **others)


@pytest.fixture(scope="module")
def house():
    with served() as one:
        one.spring, one.other = one.create(), one.create("other")
        yield one


@pytest.fixture(scope="module")
def shop():
    """A service with an experiment of 40 rounds and one that is under way."""
    visit = Visit()
    Shop(begin(visit.storage), 0.0).play(40)
    visit.experiment = open_experiment(NAME, visit.storage)
    visit.trial = visit.experiment.ask()
    return visit


@pytest.fixture(scope="session")
def zygote():
    started = Zygote()
    yield started
    started.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    if request.param == "postgresql":
        yield request.getfixturevalue("postgres_server").new_database()
    elif request.param == "disk":  # where most time passes in waiting for it
        with tempfile.TemporaryDirectory() as folder:
            yield f"{folder}/spring.db"
    else:
        yield str(tmp_path / "spring.db")
