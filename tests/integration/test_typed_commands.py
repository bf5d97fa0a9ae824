"""Commands as people type them: what is pasted, misspelt, completed by the shell, and written yes or no."""

import os
import re
import shlex
import subprocess
import sys

import pytest

import dobandit as dob
from dobandit.policy.registry import NAMES
from helpers.commands import dobandit


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOBANDIT_STORAGE", raising=False)
    nodes = [("sent mail", "visit"), ("coupon", "visit"), ("visit", "buy"), ("on phone", "buy")]
    graph = dob.CausalGraph(nodes, target="buy", context=["on phone"], controllable=["sent mail", "coupon"])
    dob.write_graph(graph, tmp_path / "funnel.json")
    return tmp_path


def pasted(text, command):
    """The arguments of the suggested command, with 1 for each gap."""
    (line,) = re.findall(rf"dobandit experiment {command} .*", text)
    return shlex.split(line.replace("=_", "=1"))[1:]


def test_suggested_commands_can_be_pasted_whatever_the_names(folder):
    created = dobandit("experiment", "create", "spring sale", "funnel.json", "-k", 1, "--policy", "ucb").stdout
    ask = pasted(created, "ask")
    assert "on phone=1" in ask
    for size in ([], ["--size", 2]):
        asked = dobandit(*ask, *size).stdout
        (folder / "rows.csv").write_text("visit,buy\n1,0\n")
        assert "told" in dobandit(*pasted(asked, "tell")).stdout
    created = dobandit("experiment", "create", "--policy", "ucb", "-k", 1, "--", "-x", "funnel.json").stdout
    assert "trial 0" in dobandit(*pasted(created, "ask")).stdout


def test_misspelt_commands_and_policies_are_answered_with_the_nearest(folder):
    assert "Did you mean 'simulate'?" in dobandit("simualte", code=2).stderr
    assert "Did you mean 'recommend'?" in dobandit("experiment", "recomend", code=2).stderr
    said = dobandit("experiment", "create", "x", "funnel.json", "-k", 1, "--policy", "casual-ucb", code=2).stderr
    assert "Did you mean 'causal-ucb'?" in said


def test_help_names_every_policy_and_has_no_escapes():
    text = "".join(dobandit("simulate", "--help").stdout.split())  # names may be broken at their hyphens
    assert f"Apolicy:{','.join(NAMES)},orone" in text
    assert "\\n" not in dobandit("experiment", "tell", "--help").stdout


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("True", "FALSE"), ("1", "0"), ("y", "n")])
def test_values_are_typed_as_a_table_has_them(folder, yes, no):
    dobandit("experiment", "create", "spring", "funnel.json", "-k", 1, "--policy", "ucb")
    dobandit("experiment", "ask", "spring", "--context", f"on phone={yes}")
    dobandit("experiment", "tell", "spring", 0, f"visit={yes}", f"buy={no}")
    (folder / "rows.csv").write_text(f"on phone,visit,buy\n{yes},{yes},{no}\n")
    dobandit("experiment", "record", "spring", "--do", f"coupon={yes}", "--rows", "rows.csv")
    typed, read = dob.open_experiment("spring", "sqlite:///dobandit.db").trials()
    assert typed["context"] == {"on phone": 1}
    assert (typed["observation"]["visit"], typed["observation"]["buy"]) == (1, 0)
    assert read["do"] == {"coupon": 1}
    assert read["observation"].items() >= {"on phone": 1, "visit": 1, "buy": 0}.items()


@pytest.mark.parametrize("words", [["visit=maybe"], ["visit="], ["visit=1_0"], ["visit=inf"], ["visit=na"]])
def test_other_words_are_refused(folder, words):
    dobandit("experiment", "create", "spring", "funnel.json", "-k", 1, "--policy", "ucb")
    dobandit("experiment", "ask", "spring", "--context", "on phone=1")
    assert "an observation takes NAME=VALUE" in dobandit("experiment", "tell", "spring", 0, *words, code=2).stderr


def completed(*words, **environment):
    """What a shell offers after these words."""
    line = " ".join(map(shlex.quote, ["dobandit", *words]))
    asked = {"_DOBANDIT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-c", "from dobandit.cli.main import main; main()"],
        env={**os.environ, **asked, **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line.partition(",")[2] for line in done.stdout.split()]


def test_a_shell_completes_names_of_experiments(folder):
    graph = dob.read_graph("funnel.json")
    for name, file in (("spring", "dobandit.db"), ("summer", "dobandit.db"), ("other", "other.db")):
        dob.create_experiment(name, graph, budget=1, policy="ucb", storage=f"sqlite:///{file}")
    assert completed("experiment", "ask", "s") == ["spring", "summer"]
    assert completed("experiment", "show", "--storage", "sqlite:///other.db", "") == ["other"]
    assert completed("experiment", "delete", "", DOBANDIT_STORAGE="sqlite:///other.db") == ["other"]
    assert completed("experiment", "show", "--storage", "sqlite:///none.db", "") == []
    assert not (folder / "none.db").exists()
    assert completed("experiment", "rec") == ["recommend", "record"]
