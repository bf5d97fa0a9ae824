"""Kernels where compiled code cannot be kept, and when it is thrown away."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import typeof

from dobandit import BLMLR, CausalUCB, TableModel, compiled, inner_kernels, paper
from dobandit.policy.engine import Situation
from dobandit.policy.world import World
from dobandit.testing.problems import CASES


def test_kernels_compile_without_a_place_for_a_cache(monkeypatch):
    def nowhere(self):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(inner_kernels.OuterForm, "enable_caching", nowhere)

    def double(x):
        return 2.0 * x

    assert compiled.kernel(double)(1.5) == pytest.approx(3.0)


_CALLED = """
from dobandit.compiled import kernel

@kernel
def double(x):
    return 2.0 * x

@kernel
def sixfold(x):
    return 3.0 * double(x)
"""


def test_kernels_loaded_from_the_disk_can_be_called_from_new_ones(tmp_path):
    """They are loaded without Numba's registries, which compiling needs: also where it comes later."""
    (tmp_path / "called.py").write_text(_CALLED)

    def python(code):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert python("import called; print(called.double(1.5))") == ["3.0"]
    loaded = "import called, sys; print(called.double(1.5), sum(called.double.for_python.stats.cache_hits.values()))"
    registries = "print('numba.np.linalg' in sys.modules)"
    assert python(f"{loaded}; {registries}; print(called.sixfold(1.5))") == ["3.0", "1", "False", "9.0"]


def test_every_module_with_kernels_counts_for_the_freshness_of_the_cache():
    package = Path(compiled.__file__).parent
    with_kernels = {
        source.relative_to(package).parts[0]
        for source in package.rglob("*.py")
        if "from dobandit.compiled import" in source.read_text()
    }
    assert with_kernels <= set(compiled._WITH_KERNELS)


def test_errors_raised_in_kernels_that_others_call_arrive():
    @compiled.allocating
    def refuse(x):
        if x < 0.0:
            raise ValueError("negative")
        return x

    @compiled.allocating
    def ask(x):
        return refuse(x) + 1.0

    assert ask(1.0) == 2.0
    with pytest.raises(ValueError, match="negative"):
        ask(-1.0)


def test_a_kernel_that_is_made_where_it_is_called_is_one_kernel():
    """Loading compiled code takes milliseconds: a search that did it for each problem spent its time on that."""

    def double(x):
        return 2.0 * x

    assert compiled.kernel(double) is compiled.kernel(double)
    assert compiled.allocating(double) is compiled.allocating(double)
    assert compiled.kernel(double) is not compiled.allocating(double)


def test_worlds_of_every_kind_run_in_the_same_compiled_code():
    """Numba compiles again for arrays that differ in no more than whether they can be written to."""
    graph = paper.G4.graph
    table = TableModel(graph, {name: np.full((2,) * len(graph.parents(name)), 0.5) for name in graph})
    weighted, tabulated = (World(model, graph).arrays for model in (paper.G4, table))
    assert typeof(weighted) == typeof(tabulated)


def test_a_choice_among_what_is_available_runs_in_the_same_compiled_code():
    problem = next(case.problem for case in CASES if case.name == "context")
    engine = CausalUCB(safe=True).engine(problem)
    now = Situation(np.zeros(engine.draws), np.where(np.arange(len(problem.graph) + 1) == 2, 1.0, np.nan))
    some = problem.graph.index("X1"), problem.graph.index("X3")
    plans = [engine._plan_of(now._replace(available=available)) for available in (None, some)]
    assert [plan.oracle.plays.shape for plan in plans] == [(2, 3), (2, 2)]  # a row per context, a column per action
    assert typeof(plans[0]) == typeof(plans[1])


@pytest.mark.parametrize("policy", [BLMLR(), CausalUCB(), CausalUCB(safe=True), CausalUCB(guarantee=True)], ids=str)
def test_a_copy_runs_in_the_same_compiled_code(policy):
    """Answers are worked out on copies of a learner, so a live experiment would compile everything twice."""
    engine = policy.engine(policy.start(paper.G4.graph, 2, horizon=300).problem)
    assert typeof(engine.copy().plan) == typeof(engine.plan)
    assert typeof(engine.copy().state) == typeof(engine.state)
