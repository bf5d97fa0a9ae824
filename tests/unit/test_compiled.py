"""Kernels where compiled code cannot be kept, and when it is thrown away."""

import copy
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import typeof

from dobandit import BLMLR, CausalUCB, TableModel, compiled, inner_kernels, paper
from dobandit.policy import model_rounds
from dobandit.policy.engine import Draws, Situation
from dobandit.policy.recording import Recorder, blank_tape
from dobandit.policy.world import World
from dobandit.testing.problems import CASES

pytestmark = pytest.mark.processes  # most of them start processes that compile


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


class Few(NamedTuple):
    weights: Any
    flags: Any
    on: bool
    count: int


class Many(NamedTuple):
    rows: Any
    few: Few
    scale: float
    again: Few


def weigh(few, row):
    total = 0.0
    for j in range(len(few.weights)):
        total += few.weights[j] * row[j] * (2.0 if few.flags[j] else 1.0)
    return total if few.on else few.count


def weigh_all(many, out):
    """Which of two named tuples it reads depends on the row, and it writes to an array that stands in one of them."""
    for i in range(len(many.rows)):
        few = many.few if i % 2 == 0 else many.again
        out[i] = many.scale * weigh(few, many.rows[i])
        many.again.weights[0] += 1.0


def many_parts(seed, order="C"):
    rng = np.random.default_rng(seed)
    few, again = (Few(rng.random(4), rng.random(4) < 0.5, on, seed) for on in (True, seed % 2 == 0))
    return Many(np.asarray(rng.random((6, 4)), order=order), few, 1.5, again)


@pytest.mark.parametrize("order", ["C", "F"])
def test_named_tuples_are_handed_from_kernel_to_kernel_as_they_are(monkeypatch, order):
    plain = np.zeros((4, 6))
    for seed in range(4):
        weigh_all(many_parts(seed, order), plain[seed])
    monkeypatch.setitem(globals(), "weigh", compiled.kernel(weigh))
    whole, out = compiled.kernel(weigh_all), np.zeros((4, 6))
    given = [many_parts(seed, order) for seed in range(4)]
    with ThreadPoolExecutor(4) as threads:  # every call has its own place
        list(threads.map(whole, given, out))
    assert out.tobytes() == plain.tobytes()
    assert all(many.again.weights[0] == many_parts(seed).again.weights[0] + 6.0 for seed, many in enumerate(given))


def test_a_named_tuple_with_something_else_in_it_is_another_kind():
    @compiled.kernel
    def first(few):
        return few.weights[0] + few.count

    few = Few(np.array([2.5]), np.array([True]), True, 1)
    assert first(few) == 3.5
    assert first(few._replace(weights=np.array([2]))) == 3
    assert first(few._replace(count=0.25)) == 2.75
    with pytest.raises(Exception, match="count"):
        first((1.0, 2.0))
    assert first(few) == 3.5


def test_a_deep_copy_of_an_engine_that_has_run_runs_by_itself():
    engine = CausalUCB().engine(CausalUCB().start(paper.G4.graph, 2).problem)
    actions = engine.actions()
    tape = blank_tape(np.zeros((1, len(actions.ids) + 1)), np.ones(1), np.arange(1, 31))
    recorder = Recorder(tape, lambda *_: 0.0, np.zeros(0, np.int32), actions)
    rng = np.random.default_rng(0)
    draws = Draws(rng.random((10, len(paper.G4.graph))), rng.random((10, engine.draws)))
    engine.run(World(paper.G4, paper.G4.graph), recorder, draws)
    copied = copy.deepcopy(engine)
    copied.run(World(paper.G4, paper.G4.graph), recorder, draws)
    assert (engine.rounds, copied.rounds) == (10, 20)


def test_every_module_with_kernels_counts_for_the_freshness_of_the_cache():
    package = Path(compiled.__file__).parent
    with_kernels = {
        source.relative_to(package).parts[0]
        for source in package.rglob("*.py")
        if "from dobandit.compiled import" in source.read_text()
    }
    assert with_kernels <= set(compiled.WITH_KERNELS)


def test_a_kernel_that_is_made_where_it_is_called_is_one_kernel():
    """Loading compiled code takes milliseconds: a search that did it for each problem spent its time on that."""

    def double(x):
        return 2.0 * x

    assert compiled.kernel(double) is compiled.kernel(double)
    assert compiled.kernel(double) is not compiled.inlined(double)


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
    plans = [engine.plan_now(now._replace(available=available)) for available in (None, some)]
    assert [plan.oracle.own.plays.shape for plan in plans] == [(2, 3), (2, 2)]  # a row per context, a column per action
    assert typeof(plans[0]) == typeof(plans[1])


@pytest.mark.parametrize("policy", [BLMLR(), CausalUCB(), CausalUCB(safe=True), CausalUCB(guarantee=True)], ids=str)
def test_a_copy_runs_in_the_same_compiled_code(policy):
    """Answers are worked out on copies of a learner, so a live experiment would compile everything twice."""
    engine = policy.engine(policy.start(paper.G4.graph, 2, horizon=300).problem)
    assert typeof(engine.copy().plan) == typeof(engine.plan)
    assert typeof(engine.copy().state) == typeof(engine.state)


def test_a_search_has_no_list_to_score():
    policy = BLMLR(region="boxed", oracle="greedy")
    engine = policy.engine(policy.start(paper.G4.graph, 2, horizon=300).problem)
    with pytest.raises(TypeError, match="no list"):
        model_rounds.score_actions(engine.plan, engine.state, np.full(len(paper.G4.graph) + 1, np.nan), 0)
