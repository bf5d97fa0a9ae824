"""`dobandit experiment` and `dobandit storage` as a user meets them: mistakes, storages, and how commands start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import forked
from helpers.experiment_commands import json_of, refused

EXAMPLE = Path(__file__).parents[2] / "examples" / "experiment.sh"
COMMANDS = [
    *("create", "list", "show", "rename", "delete", "ask", "tell", "fail", "abandon", "record", "import"),
    *("recommend", "evaluate", "best-observed", "explain", "estimates", "diagnose", "trials", "export"),
]

# -- mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        "show sprung",
        "show spring --storage memory",
        "show spring --storage nonsense",
        "show spring --storage sqlite:///no/such/folder.db",
        "create new absent.txt -k 1",
        "create new graph.txt",
        "create new graph.txt -k 9",
        "create new graph.txt -k 1 --lease soon",
        "create new graph.txt -k 1 --lease 0",
        "create new graph.txt -k 1 --lease -5m",
        "create new graph.txt -k 1 --policy clever",
        "create new graph.txt -k 1 --policy oracle",
        "create new graph.txt -k 1 --link cubic",
        "create new graph.txt -k 1 --link nobody=logistic",
        "create new graph.txt -k 1 --link logistic --link probit",
        "create new graph.txt -k 1 --link buy=logistic --link buy=probit",
        "create new graph.txt --total-cost 3 --cost coupon",
        "create new graph.txt -k 1 --if-exists maybe",
        "ask spring -n 0",
        "ask spring --available nobody",
        "ask spring --lease 5x",
        "tell spring zero buy=1",
        "tell spring 7 buy=1",
        "tell spring 0",
        "tell spring 0 buy",
        "tell spring 0 buy=maybe",
        "tell spring 0 buy=2",
        "tell spring 0 buy=1 buy=1",
        "tell spring 0 bye=1",
        "tell spring 0 buy=?",
        "tell spring 0 buy=1 --json-file -",
        "tell spring 0 --json-file absent.json",
        "tell spring 0 --json-file -",
        "tell spring 0 buy=1 --issued 0",
        "record spring --do coupon=? buy=1",
        "record spring --do buy=1 visit=1",
        "record spring --do coupon=1",
        "import spring absent.csv",
        "import spring -",
        "explain spring 7",
        "trials spring --state lost",
        "export spring log.txt",
        "export spring - --json",
        "export spring - --format parquet",
        "export spring no/such/folder.csv",
        "fail spring 7",
        "abandon spring x",
        "rename spring",
        "delete sprung --yes",
        "recommend spring --available nobody",
        "nonsense",
    ],
)
def test_bad_input_is_one_line_on_stderr_and_code_2(x, arguments):
    x("ask", "spring", "--available", "coupon")
    refused(x(*arguments.split(), code=2, stdin=b"[1]"))
    assert json_of(x("show", "spring", "--json"))["pending"] == 1


def test_input_that_is_no_text_is_refused(x):
    assert "UTF-8" in refused(x("import", "spring", "-", code=2, stdin=b"buy\n\xff\n"))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    text = run("experiment", command, "--help").out
    assert "Example" in text
    assert f"dobandit experiment {command}" in text
    assert "--storage" in text
    assert "--json" in text


# -- storage -----------------------------------------------------------------------------------------------------


def test_where_experiments_are_kept(run, tmp_path, monkeypatch):
    create = ["create", "spring", "graph.txt", "-k", 1]
    run("experiment", "--storage", "sqlite:///a.db", *create)
    run("experiment", *create, "--storage", "b.db")
    monkeypatch.setenv("DOBANDIT_STORAGE", "sqlite:///c.db")
    run("experiment", *create)
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["a.db", "b.db", "c.db"]
    assert json_of(run("experiment", "show", "spring", "--json"))["storage"] == "sqlite:///c.db"
    before = run("experiment", "--storage", "a.db", "show", "spring", "--json")
    assert json_of(before)["storage"] == "sqlite:///a.db"
    both = run("experiment", "--storage", "a.db", "show", "spring", "--json", "--storage", "b.db")
    assert json_of(both)["storage"] == "sqlite:///b.db"
    assert "--storage" not in run("experiment", "ask", "spring").out
    assert "--storage sqlite:///a.db" in run("experiment", "ask", "spring", "--storage", "a.db").out


def test_storage_backup(x, run, tmp_path):
    assert "copied to copy.db" in run("storage", "backup", "copy.db").out
    refused(run("storage", "backup", "copy.db", code=2))
    assert json_of(run("storage", "backup", "two.db", "--json"))["file"] == "two.db"
    assert json_of(x("list", "--json", "--storage", "copy.db"))[0]["name"] == "spring"
    assert "dobandit storage backup" in run("storage", "backup", "--help").out
    refused(run("storage", "upgrade", code=2))


# -- start-up ----------------------------------------------------------------------------------------------------


def test_commands_that_choose_nothing_do_not_wait_for_numba(x, tmp_path):
    x("ask", "spring")
    code = """
import sys
from dobandit.cli.main import main

def run(line):
    try:
        main(line.split())
    except SystemExit as end:
        assert not end.code, line

experiment = "experiment tell spring 0 buy=1", "experiment show spring", "experiment trials spring"
for line in (*experiment, "experiment list", "experiment export spring -", "experiment record spring buy=1"):
    run(line)
    assert "numba" not in sys.modules, line
"""
    users = {word: value for word, value in os.environ.items() if word != "DOBANDIT_COMPILE"}  # which tests set
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=users)
    assert done.returncode == 0, done.stderr
    help_code = "import sys\nfrom dobandit.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    help_code += "assert 'sqlalchemy' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", help_code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "experiment" in done.stdout


def test_the_shell_example_runs_as_it_stands(zygote):
    code, out, err = zygote.run(forked.shell, EXAMPLE)
    assert code == 0, err
    assert err == ""
    assert "trial 3 failed: the server was down" in out
    assert "trial 4 abandoned" in out
    assert "what the data alone say" in out
    assert "experiment shop deleted, with 8 trials" in out


def test_the_command_is_installed_under_its_name():
    done = subprocess.run([Path(sys.executable).with_name("dobandit"), "--version"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dobandit, version ")
