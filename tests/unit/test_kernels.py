"""How kernels are compiled, kept on the disk, thrown away and called, by Numba's public words alone."""

import ast
import copy
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import typeof

from dobandit import BLMLR, CausalUCB, TableModel, kernels, paper
from dobandit.compile_mode import WITH_KERNELS
from dobandit.kernels import borrowed, inlined, kernel, with_kernels
from dobandit.policy.engine import Situation, one_round
from dobandit.policy.world import World
from dobandit.testing.problems import CASES

PACKAGE = Path(kernels.__file__).parent
DOUBLE = """
from dobandit.kernels import kernel

@kernel
def double(x):
    return 2.0 * x
"""
SIXFOLD = DOUBLE.replace("double", "sixfold").replace("2.0 * x", "3.0 * double(x)")


def python(code, *places, **environment):
    """(stdout, stderr) of a new process that finds modules in these places first."""
    path = os.pathsep.join(map(str, [*places, *filter(None, sys.path)]))
    told = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.processes
def test_a_kernel_is_compiled_once_which_is_announced_and_loaded_by_other_processes(tmp_path):
    (tmp_path / "inner.py").write_text(DOUBLE)
    (tmp_path / "outer.py").write_text("from inner import double" + SIXFOLD)
    code = "from outer import sixfold; print(sixfold(1.5), sum(sixfold.compiled.stats.cache_hits.values()))"
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "DOBANDIT_COMPILE": ""}
    line = "compiling the learner, once per installation: about 10 s"
    assert python(code, tmp_path, **settings) == ("9.0 0", line)
    assert python(code, tmp_path, **settings) == ("9.0 1", "")


@pytest.mark.processes
def test_an_edit_in_one_file_is_seen_by_kernels_of_other_files(tmp_path):
    """Numba itself looks at the file of the kernel that is called, and at no other."""
    shutil.copytree(PACKAGE, tmp_path / "dobandit", ignore=shutil.ignore_patterns("__pycache__"))
    inner, outer = tmp_path / "dobandit/estimation/inner.py", tmp_path / "dobandit/oracle/outer.py"
    inner.write_text(DOUBLE)
    outer.write_text("from dobandit.estimation.inner import double" + SIXFOLD)
    code = "from dobandit.oracle.outer import sixfold; print(sixfold(1.5))"
    assert python(code, tmp_path)[0] == "9.0"
    assert list(outer.parent.rglob("*.nbi"))
    inner.write_text(DOUBLE.replace("2.0", "10.0"))
    assert python(code, tmp_path)[0] == "45.0"


def test_every_package_with_kernels_counts_for_the_freshness_of_the_cache():
    using = [source for source in PACKAGE.rglob("*/*.py") if "\n@kernel\n" in source.read_text()]
    assert {source.relative_to(PACKAGE).parts[0] for source in using} == set(WITH_KERNELS)


def test_kernels_compile_where_nothing_can_be_kept():
    module = {"__name__": "nowhere"}
    exec(DOUBLE, module)  # there is no file that compiled code could be kept beside
    assert module["double"](1.5) == 3.0


STEP: Any = None


@inlined
def double(x):
    return 2.0 * x


@kernel
def squared(x):
    return x * x


@kernel
def add_up(values):
    total = 0.0
    for i in range(len(values)):
        total += STEP(values[i])
    return total


def test_one_loop_with_different_kernels_in_it():
    for step, total in ((double, 12.0), (squared, 14.0)):
        loop = with_kernels(add_up, STEP=step)
        assert loop(np.arange(4.0)) == loop.py_func(np.arange(4.0)) == total
        assert with_kernels(add_up, STEP=step) is loop  # loading compiled code takes milliseconds
        assert copy.deepcopy(loop) is loop
    assert with_kernels(add_up, STEP=double).name != with_kernels(add_up, STEP=squared).name


class Sums(NamedTuple):
    total: Any
    parts: Any


@kernel
def note(sums, column):
    views = borrowed(sums)
    views.parts[1, :] += borrowed(column)
    views.total[0] += 1.0


@pytest.mark.parametrize("step", [1, 2], ids=["contiguous", "every other"])
def test_a_kernel_writes_to_the_arrays_that_it_borrows(step):
    sums = Sums(np.zeros(1), np.zeros((2, 3)))
    for _ in range(2):
        note(sums, np.arange(3.0 * step)[::step])
    assert sums.total.tolist() == [2.0]
    assert sums.parts.tolist() == [[0.0, 0.0, 0.0], [0.0, 2.0 * step, 4.0 * step]]


PLAYED = """
import json, numpy as np, dobandit as dob

graph = dob.CausalGraph([("a", "m"), ("b", "m"), ("m", "y"), ("b", "y")], "y", controllable=["a", "b"])
rng, told = np.random.default_rng(0), {}
for policy in (dob.BLMLR(radius_scale=0.1), dob.CausalUCB(), dob.CausalTS(), dob.CausalUCB(guarantee=True), dob.UCB()):
    learner, told[policy.label] = policy.start(graph, 1, horizon=50), []
    for _ in range(12):
        do = learner.propose()
        learner.update(do, {**dict(zip("abmy", rng.integers(0, 2, 4).tolist())), **do})
        told[policy.label] += ["a" in do, "b" in do, learner.expected(do), *learner.interval(do)]
print(json.dumps(told))
"""


@pytest.mark.processes
def test_plain_python_and_compiled_code_give_the_same_numbers():
    plain, compiled = (json.loads(python(PLAYED, NUMBA_DISABLE_JIT=disabled)[0]) for disabled in "10")
    for policy, numbers in plain.items():
        assert numbers == pytest.approx(compiled[policy], rel=1e-9, abs=1e-12), policy


def test_worlds_of_every_kind_run_in_the_same_compiled_code():
    """Numba compiles again for arrays that differ in no more than whether they can be written to."""
    graph = paper.G4.graph
    table = TableModel(graph, {name: np.full((2,) * len(graph.parents(name)), 0.5) for name in graph})
    assert typeof(World(paper.G4, graph).arrays) == typeof(World(table, graph).arrays)


@pytest.mark.parametrize("policy", [BLMLR(), CausalUCB(), CausalUCB(safe=True), CausalUCB(guarantee=True)], ids=str)
def test_a_copy_and_a_choice_among_what_is_available_run_in_the_same_compiled_code(policy):
    """Answers are worked out on copies of a learner, so a live experiment would compile everything twice."""
    problem = next(case.problem for case in CASES if case.name == "context")
    engine, some = policy.engine(problem), tuple(map(problem.graph.index, ("X1", "X3")))
    now = Situation(np.zeros(engine.draws), np.where(np.arange(len(problem.graph) + 1) == 2, 1.0, np.nan))
    seen = one_round(np.ones(len(problem.graph) + 1), np.zeros(len(problem.graph) + 1, dtype=bool))
    compiled = []
    for asked, available in ((engine, None), (engine.copy(), None), (engine, some), (engine.copy(), some)):
        asked.update(seen)
        asked.choose(now._replace(available=available))
        used = asked.evaluator.evaluate, asked.choose_rule, asked.estimator.learn
        compiled.append([one.compiled.signatures for one in used])
    assert compiled == compiled[:1] * 4


def private_words(source):
    """What a source takes of Numba and llvmlite that they do not promise to keep."""
    words = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                words += [name.name for name in names]
            case ast.ImportFrom(str(module), names):
                words += [f"{module}.{name.name}" for name in names]
            case ast.Attribute():
                words.append(ast.unparse(node))
            case ast.Constant(str(word)) | ast.keyword(str(word)):
                words.append(word)
    return [word for word in words if re.match(r"numba\.core\b|llvmlite\b|numba\b.*\._(?!_)|_nrt$", word)]


def test_the_package_uses_nothing_private_of_numba():
    found = {str(path): words for path in PACKAGE.rglob("*.py") if (words := private_words(path.read_text()))}
    assert not found


@pytest.mark.parametrize(
    "line",
    ["from numba import core", "from llvmlite import ir", "from numba._x import y", "numba.np._x", "njit(_nrt=False)"],
)
def test_what_is_private_of_numba_is_found(line):
    assert len(private_words(line)) == 1
    assert not private_words("from numba import __version__, njit, typeof")
