"""The examples run as they stand."""

from __future__ import annotations

import dis
import inspect
import io
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stdout, suppress
from itertools import pairwise
from pathlib import Path

import pytest

import dobandit as dob
from helpers import forked
from helpers.worlds import THOROUGH

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, *arguments, monkeypatch):
    """What an example prints, in this process."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):  # which --help raises
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return printed.getvalue()


@pytest.fixture
def run_process(zygote):
    """What an example prints, in a process of its own; by `make thorough` it has loaded nothing yet."""

    def run(name, *arguments):
        if THOROUGH > 1:
            command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            script = "import runpy, sys; sys.argv[:1] = []; runpy.run_path(sys.argv[0], run_name='__main__')"
            code, out, err = zygote.run(forked.python, script, [EXAMPLES / name, *arguments], [])
        assert code == 0, err
        return out

    return run


def test_the_scaling_study_prints_a_table_for_each_size(run_process):
    many = str(2 * THOROUGH)
    printed = run_process("scaling_study.py", "--quick", "--graphs", many, "--replications", many)
    assert re.findall(r"Regret against (\w+)", printed) == ["nodes", "budget", "parents", "rounds"]
    rows = re.findall(r"^ +\d+ +[\d,]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+$", printed, re.MULTILINE)
    assert len(rows) == 12
    assert printed.count("grows as") == 4
    assert "nan" not in printed
    for label in ("BLM-LR", "BLM-OFU", "UCB"):
        assert label in printed


@pytest.mark.parametrize("shape", ["parallel", "scale-free"])
def test_the_scaling_study_takes_other_shapes_and_one_size_only(shape, monkeypatch):
    sizes = "--vary", "budget", "--graphs", "1"
    printed = run("scaling_study.py", "--quick", "--shape", shape, *sizes, monkeypatch=monkeypatch)
    assert printed.startswith(f"{shape} models: 1 a row")
    assert re.findall(r"Regret against (\w+)", printed) == ["budget"]


def test_the_scaling_study_says_what_is_wrong():
    command = [sys.executable, str(EXAMPLES / "scaling_study.py"), "--quick", "--shape", "circle"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "shapes are 'layered'" in done.stderr


def test_the_funnel_goes_on_where_it_was_after_a_restart(run_process, tmp_path, monkeypatch):
    halves, whole = (f"sqlite:///{tmp_path}/{name}.db" for name in ("halves", "whole"))
    run("funnel.py", "--rounds", "30", "--storage", halves, monkeypatch=monkeypatch)
    printed = run_process("funnel.py", "--rounds", "30", "--storage", halves)
    assert printed.startswith("60 days so far")
    assert run("funnel.py", "--rounds", "60", "--storage", whole, monkeypatch=monkeypatch) == printed
    logs = [dob.open_experiment("funnel", storage).trials() for storage in (halves, whole)]
    without_times = [[{k: v for k, v in row.items() if not k.endswith("_at")} for row in log] for log in logs]
    assert without_times[0] == without_times[1]


def test_ignoring_a_hidden_cause_picks_the_wrong_set_and_the_ways_on_the_right_one(run_process):
    printed = run_process("hidden_cause.py", "--quick")
    picks = dict(re.findall(r"^(.+?)  +[\d.]+ +[\d.]+  (\w+)$", printed, re.MULTILINE))
    assert picks.pop("the season ignored") == "email"
    assert set(picks.values()) == {"coupon"}
    assert len(picks) == 5
    assert "hide='auto'" in printed


def used(code, module):
    """What a program takes from a module, whatever has been loaded by others; annotations are not carried out."""
    words = [(one.opname, one.argval) for one in dis.get_instructions(code)]
    for (_, what), (how, attribute) in pairwise(words):
        if what == module and how in ("LOAD_ATTR", "LOAD_METHOD"):
            yield attribute
    for inner in code.co_consts:
        if inspect.iscode(inner):
            yield from used(inner, module)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_every_example_explains_itself_and_takes_what_every_process_has(name, monkeypatch):
    assert set(used(compile((EXAMPLES / name).read_text(), name, "exec"), "dob")) <= set(dob.__all__)
    printed = run(name, "--help", monkeypatch=monkeypatch)
    assert "usage:" in printed
    assert "--quick" in printed


def test_the_study_of_misspecification_writes_its_table_and_figure(run_process, tmp_path):
    printed = run_process("misspecification.py", "--quick", "--out", str(tmp_path))
    assert printed.count("CausalUCB, told sums") == 5
    assert (tmp_path / "losses.txt").read_text().strip() in printed
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")


def test_from_data_ranks_and_goes_on(run_process, tmp_path):
    printed = run_process("from_data.py", "--quick", "--folder", str(tmp_path))
    assert "looks best" in printed
    assert "knows the same: True" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"visits.csv", "funnel.json", "ranking.png"}
