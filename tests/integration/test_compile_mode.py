"""Small work runs as plain Python, compiling is announced, and `dobandit warm` compiles ahead of time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dobandit.compile_mode import MOST_SECONDS

pytestmark = pytest.mark.processes

KERNELS = """
import math
from dobandit.kernels import kernel

@kernel
def double(x):
    return 2.0 * x

@kernel
def fill(values, x):
    for i in range(len(values)):
        values[i] += double(x)
    return math.log(values[0])
"""

MONTHS = """
import dobandit as dob
import json
from dobandit.compile_mode import compilations
from dobandit.experiment.rehearsals import play, rehearsals

told = {}
for name, definition in rehearsals(MORE).items():
    if LISTED and "too many" in name:
        continue
    month = play(definition)
    asking = {"context": dict.fromkeys(month.graph.context, 1)} if month.graph.context else {}
    recommended = month.recommend(**asking)
    rows = [row for row in month.trials() if row["source"] == "asked"]
    told[name] = {
        "choices": [row["do"] for row in rows],
        "numbers": [n for row in rows for n in (row["predicted"], *row["interval"], row["optimistic"]) if n is not None]
        + [n for n in (recommended.value, *recommended.interval, recommended.gap, recommended.probability_best)
           if n is not None],
        "recommended": recommended.do,
        "sentence": recommended.sentence,
    }
print(json.dumps({"told": told, "compiled": compilations()}))
"""


def run(code, *, cache=None, path=(), **environment):
    """What a new process prints; cache: an own folder for compiled code."""
    told = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *filter(None, sys.path)])}
    told.pop("DOBANDIT_COMPILE", None)
    told |= environment | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})
    done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()


def months(policies, listed=False, **settings):
    """The months of the rehearsals: what was told, and announced. listed: only of experiments that list their sets."""
    code = MONTHS.replace("MORE", str(policies)).replace("LISTED", str(listed))
    out, err = run(code, NUMBA_DEBUG_CACHE="1", **settings)
    *_, told = out.splitlines()
    return json.loads(told) | {"kept": kept(out)}, err


def kept(out):
    """The files that a process wrote, which says so with NUMBA_DEBUG_CACHE; others may compile at the same time."""
    return [line for line in out.splitlines() if " saved to " in line]


POLICIES = ("causal-ucb:safe=true", "causal-ucb:guarantee=true", "causal-ts", "ucb", "lucb")
LINE = "compiling the learner, once per installation: about 10 s"


@pytest.mark.parametrize("policies", [POLICIES[:2], POLICIES[2:]])  # a process has some seconds for plain Python
def test_a_young_experiment_does_not_wait_and_says_the_same_as_compiled(policies, tmp_path):
    plain, announced = months(policies, listed=True, cache=tmp_path)
    compiled, _ = months(policies, listed=True, DOBANDIT_COMPILE="always")
    assert announced == ""
    assert not plain["compiled"]
    assert not list(tmp_path.rglob("*.nbi"))
    for name, one in plain["told"].items():
        other = compiled["told"][name]
        assert one["choices"] == other["choices"], name
        assert (one["recommended"], one["sentence"]) == (other["recommended"], other["sentence"]), name
        assert one["numbers"] == pytest.approx(other["numbers"], rel=1e-9, abs=1e-12), name


def test_after_warm_a_month_compiles_nothing():
    """Trials under way, contexts, batches, control rounds, imports, wide graphs and every answer included."""
    chosen = [word for policy in POLICIES for word in ("--policy", policy)]
    warm = [sys.executable, "-m", "dobandit", "warm", *chosen, "--json"]
    environment = {key: value for key, value in os.environ.items() if key != "DOBANDIT_COMPILE"}
    for _ in range(2):
        done = subprocess.run(warm, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    assert [step["compiled"] for step in json.loads(done.stdout)] == [None] * 9
    for settings in ({}, {"DOBANDIT_COMPILE": "always"}):
        told, said = months(POLICIES, **settings)
        assert (told["compiled"], told["kept"], said) == ([], [], "")


WIDE = """
import dobandit as dob
from dobandit.compile_mode import compilations

edges = [(f"a{i}", f"m{i % MIDDLE}") for i in range(LEVERS)] + [(f"m{i}", "y") for i in range(MIDDLE)]
graph = dob.CausalGraph(edges, "y", controllable=[f"a{i}" for i in range(LEVERS)])
experiment = dob.create_experiment("wide", graph, BUDGET, storage="memory", policy=POLICY, control=0.1)
at_first = compilations()
print("created")
first, second = experiment.ask(), experiment.ask(size=10)
experiment.tell(first, {**dict.fromkeys(graph.observed, 1), **first.do})
experiment.tell(second, [{**dict.fromkeys(graph.observed, y), **second.do, "count": 5} for y in (0, 1)])
experiment.ask(n=2)
experiment.recommend()
experiment.explain(first)
experiment.status()
print(compilations() == at_first)
"""


@pytest.mark.parametrize(
    ("policy", "levers", "middle", "budget"),
    [
        ("causal-ucb", 24, 5, 6),  # sets cannot be listed
        ("causal-ucb:safe=true", 9, 3, 3),
        ("causal-ucb:guarantee=true", 9, 3, 3),
    ],
)
def test_what_is_too_much_for_plain_python_is_compiled_when_an_experiment_is_created(policy, levers, middle, budget):
    settings = {"POLICY": repr(policy), "LEVERS": levers, "MIDDLE": middle, "BUDGET": budget}
    code = WIDE
    for name, value in settings.items():
        code = code.replace(name, str(value))
    _, afterwards = run(code, NUMBA_DEBUG_CACHE="1")[0].split("created")
    assert (kept(afterwards), afterwards.split()[-1]) == ([], "True")


@pytest.fixture
def kernels(tmp_path):
    (tmp_path / "own_kernels.py").write_text(KERNELS)

    def python(code):
        start = "import numpy as np, own_kernels as own; from dobandit.compile_mode import *; "
        return run(start + code, cache=tmp_path / "cache", path=[tmp_path])

    return python


LARGE, SMALL = f"with work({2 * MOST_SECONDS}): ", "with work(0.0): "
CALL = "print(round(own.fill(np.ones(3), 1.0), 6), len(compilations()))"


def test_large_work_is_compiled_with_one_line_and_only_once(kernels):
    code = f"""
{SMALL}{CALL}
{LARGE}
    {CALL}
    print(own.double(1.5), len(compilations()))
"""
    assert kernels(code) == ("1.098612 0\n1.098612 1\n3.0 2", LINE)
    assert kernels(f"\n{SMALL}{CALL}") == ("1.098612 0", "")


def test_outside_of_experiments_everything_is_compiled(kernels):
    said = "compiling the simulation, once per installation: about a minute"
    assert kernels(f"\nwith compiling_ahead('the simulation', 'about a minute'): {CALL}") == ("1.098612 1", said)


def test_where_python_refuses_a_number_the_compiled_form_runs_on_what_was_there_before(kernels):
    code = f"values = np.full(2, -2.0)\n{SMALL}print(own.fill(values, 1.0), values, len(compilations()))"
    assert kernels("\n" + code)[0] == "-inf [0. 0.] 1"


def test_the_choice_of_one_thread_is_not_that_of_another(kernels):
    code = f"""
from threading import Thread
{SMALL}
    other = Thread(target=own.double, args=(1.5,))
    other.start()
    other.join()
    print(own.fill(np.ones(3), 1.0) > 0.0, compilations())
"""
    assert kernels(code)[0] == "True ('own_kernels.double',)"


def test_the_variable_compiles_everything_without_a_line(tmp_path):
    (tmp_path / "own_kernels.py").write_text(KERNELS)
    start = "import own_kernels as own\nfrom dobandit.compile_mode import *"
    code = f"{start}\n{SMALL}own.double(1.0)\nprint(len(compilations()))"
    assert run(code, cache=tmp_path / "cache", path=[tmp_path], DOBANDIT_COMPILE="always") == ("1", "")


def test_without_a_place_for_compiled_code_experiments_work(tmp_path):
    (tmp_path / "file").write_text("")
    code = "from dobandit.compile_mode import *\nremember('x')\nprint('x' in compiled_before())"
    assert run(code, cache=Path(tmp_path, "file", "none"))[0] == "True"
