"""What one user stores or types never acts on the terminal of another; commands end in a line, never in a traceback."""

import json
import os
import pty
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import dobandit as dob
from dobandit.cli.main import main
from dobandit.errors import PolicyError
from dobandit.policy.engine import Choice
from dobandit.storage import MemoryStorage, open_database
from helpers.foreign import ThompsonArms, ThompsonEngine

HUGE = "9" * 400
ODD = "red\x1b[31m\x7f\x9b\u202e\u200f"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A command: what it prints; with fails=True what it says on standard error, one line, with exit code 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOBANDIT_STORAGE", raising=False)
    Path("graph.txt").write_text("target: Y\na -> v\nb -> v\nv -> Y\n")
    model = {"target": "Y", "nodes": {"[/x]": {"bias": 0.5}, "Y": {"bias": 0.1, "parents": {"[/x]": 0.3}}}}
    Path("model.json").write_text(json.dumps(model))

    def command(*words, fails=False):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == (2 if fails else 0), printed
        if fails:
            assert printed.err.count("\n") == 1
            assert len(printed.err) < 1500
        assert printed.err.replace("\n", "").isprintable()
        assert printed.out.replace("\n", "").isprintable()
        return printed.err if fails else printed.out

    return command


def test_a_stored_reason_a_file_and_an_address_reach_a_terminal_as_text(run):
    run("experiment", "create", ODD, "graph.txt", "-k", 1, "--policy", "ucb")
    run("experiment", "ask", ODD)
    run("experiment", "fail", ODD, 0, f"because {ODD}")
    assert "because red\\x1b[31m" in run("experiment", "tell", ODD, 0, "Y=1", fails=True)
    assert "red\\x1b" in run("check", ODD, fails=True)
    assert "red\\x1b" in run("experiment", "list", "--storage", f"{ODD}/x.db")
    assert "red\\x1b" in run("experiment", "ask", "e", "--storage", f"{ODD}/x.db", fails=True)
    assert "red\\x1b" in run("experiment", "create", "e", "graph.txt", "-k", 1, "--policy", ODD, fails=True)
    assert "red\\x1b" in run("storage", "backup", f"{ODD}.db")
    assert "red\\x1b" in run("experiment", "trials", ODD)
    assert json.loads(run("experiment", "trials", ODD, "--json"))[0]["reason"] == f"because {ODD}"
    assert json.loads(run("experiment", "list", "--json"))[0]["name"] == ODD


def test_long_arguments_are_repeated_in_part(run):
    for words in (
        ("check", "x" * 5000),
        ("solve", "model.json", "-k", 1, "--top", HUGE * 9),
        ("experiment", "ask", "x" * 5000),
        ("experiment", "create", "e", "graph.txt", "-k", 1, "--policy", f"ucb:scale={HUGE}"),
        ("simulate", "model.json", "-k", 1, "--rounds", HUGE),
        ("simulate", "model.json", "-k", 1, "--replications", HUGE, "--rounds", 10),
        ("experiment", "create", "e", "graph.txt", "-k", 1, "--horizon", HUGE),
        ("experiment", "create", "e", "graph.txt", "-k", 1, "--policy", f"bglm-ofu:initial={HUGE}"),
        ("check", "model.json", "--horizon", HUGE),
    ):
        said = run(*words, fails=True)
        assert "x" * 220 not in said
        assert "9" * 220 not in said


@pytest.mark.parametrize("group", ["", ",", "a", "a,a"])
def test_a_group_of_fewer_than_two_is_no_group(run, group):
    assert "two or more variables" in run("solve", "model.json", "-k", 1, "--exclusive", group, fails=True)


def test_markup_in_a_name_is_a_name(run):
    assert "do([/x] = 1)" in run("expect", "model.json", "--do", "[/x]=1")


def test_names_on_a_narrow_screen_are_not_cut_in_two(run, monkeypatch):
    run("experiment", "create", "a-rather-long-name", "graph.txt", "-k", 1, "--policy", "ucb")
    run("experiment", "ask", "a-rather-long-name")
    monkeypatch.setenv("COLUMNS", "40")
    for words in (("list",), ("trials", "a-rather-long-name")):
        lines = run("experiment", *words).split("\n")
        assert max(map(len, lines)) <= 40
    assert "experiment  a-rather-long-name" in run("experiment", "list")


# -- what can be set ---------------------------------------------------------------------------------------------


def test_mediators_that_can_be_set_are_pointed_out(run):
    assert json.loads(run("check", "graph.txt", "--json"))["settable_mediators"] == ["v"]
    assert "--controllable" in run("check", "graph.txt")
    assert "note: v can be set, though other variables cause it" in run(
        "experiment", "create", "one", "graph.txt", "-k", 1, "--policy", "ucb"
    )
    said = ["--controllable", "a", "--controllable", "b"]
    assert "--controllable" not in run("check", "graph.txt", *said)
    made = run("experiment", "create", "two", "graph.txt", "-k", 1, "--policy", "ucb", *said)
    assert "note:" not in made
    assert "at most 1 of a, b" in made or "exactly 1 of a, b" in made


# -- passwords ---------------------------------------------------------------------------------------------------


def test_a_suggested_command_can_be_run_where_the_address_holds_a_password(run, capsys, monkeypatch):
    from dobandit.cli.experiments.printing import command_line, password_note

    pytest.importorskip("psycopg")
    experiment = dob.create_experiment("e", dob.CausalGraph([("a", "Y")], target="Y"), 1, storage=MemoryStorage())
    experiment.storage.url = open_database("postgresql://u:SECRET@h/db").url
    words = shlex.split(command_line(experiment, "ask", ["e"]))
    assert words == ["dobandit", "experiment", "ask", "e"]
    password_note(experiment)
    assert "export it as DOBANDIT_STORAGE" in capsys.readouterr().out
    monkeypatch.setenv("DOBANDIT_STORAGE", "postgresql://u:SECRET@h/db")
    password_note(experiment)
    assert capsys.readouterr().out == ""


# -- problems that kernels cannot hold ---------------------------------------------------------------------------


def test_very_many_causes_are_refused_before_memory_ends(run, monkeypatch):
    monkeypatch.setattr("dobandit.limits.MAX_SQUARES", 100)
    Path("wide.txt").write_text("\n".join(f"x{i} -> Y" for i in range(12)))
    for policy in ("causal-ucb", "blm-lr", "bglm-ofu"):
        said = run("experiment", "create", policy, "wide.txt", "--target", "Y", "-k", 1, "--policy", policy, fails=True)
        assert "'Y' alone has 12 causes" in said
        assert "such as UCB" in said
    run("experiment", "create", "ucb", "wide.txt", "--target", "Y", "-k", 1, "--policy", "ucb")


@pytest.mark.parametrize(
    ("link", "causes"),
    [
        ("logistic", 186),
        ("logistic", 300),
        ({"name": "logistic", "shift": 700}, 1),
        ({"name": "rational", "a": 1e-300}, 1),
    ],
)
def test_links_that_are_nearly_flat_end_in_words(link, causes):
    graph = dob.CausalGraph([(f"x{i}", "Y") for i in range(causes)], target="Y")
    with pytest.raises(PolicyError, match=r"kappa = inf f' must be above 0|Eq. \(3\) asks for lambda_min >= inf"):
        dob.BGLMOFU().start(graph, 1, horizon=1000, links={"Y": link})
    if causes == 186:
        with pytest.raises(PolicyError, match=r"up to 12 causes.*Use CausalUCB"):
            dob.BGLMOFU(initial=5).start(graph, 1, horizon=1000, links={"Y": link})


# -- explain and export ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hasty(ThompsonArms):
    """Takes the first action that it sees, and only later looks at the others."""

    name: ClassVar[str] = "hasty"

    def engine(self, problem):
        return HastyEngine(problem, self.prior)


class HastyEngine(ThompsonEngine):
    def choose(self, now):
        return Choice(self.compare(now)[0][0], 0.25, proved=False)

    def compare(self, now, optimistic=True):
        return [(arm, 0.25 + 0.125 * (i > 0)) for i, arm in enumerate(self._arms(now.available))]


def test_a_better_set_that_explain_finds_belongs_to_the_story(run):
    graph = dob.CausalGraph([("a", "Y"), ("b", "Y")], target="Y")
    with dob.create_experiment("e", graph, 1, policy=Hasty(), storage="sqlite:///e.db", seed=0) as experiment:
        told = experiment.explain(experiment.ask().number)
    assert told.margin == -0.125
    assert "not the best: a longer look, made for this explanation, finds that setting" in told.why
    assert next(iter(told.runner_up.do)) in told.why
    said = run("experiment", "explain", "e", 0, "--storage", "sqlite:///e.db")
    assert "0.125 more" in said
    assert "better one" in said


def test_no_cell_of_an_export_is_a_formula(tmp_path):
    graph = dob.CausalGraph([("=1+1", "@Y"), ("-x", "@Y")], target="@Y")

    def begun():
        return dob.create_experiment("e", graph, 1, policy="ucb", storage=MemoryStorage(), seed=0)

    experiment = begun()
    experiment.record({"=1+1": 1}, {"-x": 0, "@Y": 1})
    experiment.tell_failed(experiment.ask().number, "=HYPERLINK(0)")
    text = experiment.to_csv()
    cells = [cell.strip('"') for line in text.split("\n") for cell in line.split(",")]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert "'=HYPERLINK(0)" in cells
    again = begun()
    again.import_history(_file(tmp_path, text), randomised=True)
    assert again.trials()[0]["do"] == {"=1+1": 1}
    assert again.trials()[0]["observation"] == experiment.trials()[0]["observation"]
    assert np.isfinite(again.best_observed().mean)


def _file(folder, text):
    path = folder / "log.csv"
    path.write_text(text)
    return path


def test_an_export_to_a_terminal_is_shown_and_to_a_file_kept(run, tmp_path):
    run("experiment", "create", "e", "graph.txt", "-k", 1, "--policy", "ucb")
    run("experiment", "ask", "e")
    run("experiment", "fail", "e", 0, f"because {ODD}")
    command = [sys.executable, "-m", "dobandit", "experiment", "export", "e", "-"]
    kept = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout.decode()
    assert f"because {ODD}" in kept
    terminal, screen = pty.openpty()
    subprocess.run(command, stdout=screen, check=True, cwd=tmp_path)
    os.close(screen)
    shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert "because red\\x1b[31m" in shown
    assert shown.replace("\r\n", "").isprintable()


@pytest.mark.parametrize(
    "words", [["paper"], ["--help"], ["check", "graph.txt"], ["check", "graph.txt", "--json"]], ids=" ".join
)
def test_a_reader_who_has_left_is_no_error(words, run, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "dobandit", *words]
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
