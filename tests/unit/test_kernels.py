"""Kernels that other kernels take as an argument."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dobandit.kernels import Signature, f8, inlined, kernel, record, typed_kernel

CELL = record(plays=f8, total=f8)
CHOOSE = Signature(0, (np.zeros(0, CELL), np.zeros((0, 0)), 0))


@inlined
def mean_of(cell):
    return cell["total"] / cell["plays"] if cell["plays"] > 0.0 else 1.0


@typed_kernel(CHOOSE)
def best_cell(cells, draws, t):
    best = 0
    for i in range(1, len(cells)):
        if mean_of(cells[i]) > mean_of(cells[best]):
            best = i
    return best


@typed_kernel(CHOOSE)
def any_cell(cells, draws, t):
    return int(draws[t, 0] * len(cells))


@typed_kernel(Signature(None, (np.zeros(0, CELL), 0.0)))
def forget(cells, share):
    for i in range(len(cells)):
        cells[i]["plays"] *= share


@typed_kernel(Signature((0, 0.0), (0.0,)))
def both(x):
    return int(x), 2.0 * x


@kernel
def play(choose, cells, draws):
    """It learns that cell i is worth i / 2."""
    last = -1
    for t in range(len(draws)):
        last = choose(cells, draws, t)
        cells[last]["plays"] += 1.0
        cells[last]["total"] += 0.5 * last
    return last


@kernel
def chosen_by_name(cells, draws):
    return best_cell(cells, draws, 0)


def test_a_loop_takes_one_rule_or_another():
    draws, cells = np.array([[0.9], [0.1], [0.4]]), np.zeros(3, CELL)
    assert play(any_cell, cells, draws) == 1
    assert cells["plays"].tolist() == [1.0, 1.0, 1.0]
    assert play(best_cell, cells, draws) == 2
    assert cells["plays"].tolist() == [1.0, 1.0, 4.0]


def test_python_and_other_kernels_call_a_rule_too():
    cells = np.array([(1.0, 0.0), (2.0, 1.0)], CELL)
    assert best_cell(cells, np.zeros((1, 1)), 0) == chosen_by_name(cells, np.zeros((1, 1))) == 1
    assert forget(cells, 0.5) is None
    assert cells["plays"].tolist() == [0.5, 1.0]
    assert both(3.5) == (3, 7.0)


def test_copies_and_pickles_are_the_rule_itself():
    assert copy.deepcopy(any_cell) is any_cell
    assert pickle.loads(pickle.dumps(any_cell)) is any_cell


@pytest.mark.processes
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled")
def test_another_process_finds_a_loop_and_its_rules_compiled(tmp_path):
    source = Path(__file__).read_text().split("def test_")[0]
    (tmp_path / "rules.py").write_text(source.replace("import pytest\n", ""))
    code = (
        "import rules, numpy as np\n"
        "for rule in (rules.any_cell, rules.best_cell): rules.play(rule, np.zeros(3, rules.CELL), np.zeros((2, 1)))\n"
        "found = rules.play.for_python.stats\n"
        "print(found.cache_hits.total(), found.cache_misses.total())"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path)}

    def python():
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert python() == ["0", "1"]  # one compilation for both rules
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")}
    assert len(files) == 4  # the loop, its rules, and what one of these calls
    assert python() == ["1", "0"]
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")} == files
