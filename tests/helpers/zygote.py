"""Processes for scenarios in which somebody is killed, races, or runs out of disk.

Numba takes seconds to start, so one process starts it once and forks a process for each scenario, which forks its
workers. It reads lines [file, scenario, arguments] and answers each with what became of it.
"""

import gc
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import closing, suppress
from functools import cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import dobandit as dob
from dobandit.rows.stored_trial import PENDING, TOLD

NAME = "spring"
GRAPH = dob.CausalGraph([("X1", "X3"), ("X2", "X3"), ("X1", "X4"), ("X3", "Y"), ("X4", "Y")], target="Y")


class Zygote:
    def __init__(self):
        tests = str(Path(__file__).parents[1])
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # which a fork would not keep
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", "from helpers.zygote import serve; serve()"],
            env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join([tests, *sys.path])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, scenario, *arguments):
        words = [scenario.__code__.co_filename, scenario.__name__, *arguments]
        self._process.stdin.write(json.dumps(words, default=str) + "\n")
        self._process.stdin.flush()
        done, answer = json.loads(self._process.stdout.readline())
        assert done, answer
        return answer

    def close(self):
        self._process.communicate(timeout=60)


class Child:
    """A forked process that runs `work(send)`, the lines that it sends, and what is said to its standard input."""

    def __init__(self, work, seconds=60):
        (reading, writing), (hearing, saying) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(reading)
            os.dup2(hearing, 0)
            self._work(work, partial(send_to, writing), seconds)
        os.close(writing)
        os.close(hearing)
        self._lines, self._saying = os.fdopen(reading), saying

    @staticmethod
    def _work(work, send, seconds):
        code = 1
        try:
            signal.alarm(seconds)
            work(send)
            code = 0
        except BaseException:
            send("failed", traceback.format_exc()[-3000:])
        finally:
            os._exit(code)

    def line(self):
        text = self._lines.readline()
        assert text, "the child ended without a word"
        words = json.loads(text)
        assert words[0] != "failed", words[1]
        return words

    def say(self, word):
        os.write(self._saying, f"{word}\n".encode())

    def finish(self):
        """What it sends until its end."""
        os.close(self._saying)
        with self._lines:
            lines = [json.loads(text) for text in self._lines]
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        failed = [words[1] for words in lines if words[0] == "failed"]
        assert not failed, failed[0]
        assert code in (0, -signal.SIGKILL), code
        return lines

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.finish()


def send_to(descriptor, *words):
    """At once, and whole: a pipe takes up to 4096 bytes in one piece."""
    os.write(descriptor, (json.dumps(words) + "\n").encode())


def create(storage, **settings):
    return dob.create_experiment(NAME, GRAPH, budget=2, storage=storage, seed=3, **settings)


def open_at(storage, now):
    return dob.open_experiment(NAME, storage, clock=lambda: now)


def some_observation(rng, do):
    return {name: do.get(name, rng.randrange(2)) for name in GRAPH.nodes}


def told(experiment):
    """[number, observation] of the closed trials in the order of their positions, once nobody else is writing."""
    with experiment.storage.writing(experiment.storage.find(NAME).id):
        trials = experiment.trials()
    assert [trial["trial"] for trial in trials] == list(range(len(trials)))
    closed = sorted((t for t in trials if t["state"] != PENDING), key=lambda t: t["position"])
    assert [trial["position"] for trial in closed] == list(range(len(closed)))
    assert all(trial["state"] == TOLD and not trial["late"] for trial in closed)
    return [[trial["trial"], trial["observation"]] for trial in closed]


def count_told(experiment):
    with experiment.storage.writing(experiment.storage.find(NAME).id) as writer:
        return writer.closed


def intact(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def refused(kind, run, *arguments):
    try:
        run(*arguments)
    except kind as error:
        message = str(error)
    else:
        raise AssertionError(f"{run} took {arguments!r:.200}")
    assert len(message) < 1000
    return message


def write_for_ever(send, storage, life=0, most=10**9):
    """Ask and tell; each tell is announced before and acknowledged after."""
    experiment, rng = open_at(storage, 1000.0 * life), random.Random(life)
    send("opened", count_told(experiment))
    for _ in range(most):
        trial = experiment.ask()
        observation = some_observation(rng, trial.do)
        send("telling", trial.number, observation)
        experiment.tell(trial.number, observation)
        send("told", trial.number, observation)
    send("idle")
    time.sleep(60)


def warm_up():
    """Import and compile all that the scenarios use."""
    with suppress(ImportError):
        import psycopg  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        experiment = create(f"{folder}/warm.db", lease=3600.0)  # compiling may take minutes
        for _ in range(30):
            trial = experiment.ask()
            experiment.tell(trial.number, dict.fromkeys(GRAPH.nodes, 1))
        experiment.ask(n=2)
        experiment.import_history([({"X1": 1}, {"Y": 0})] * 20)
        told(experiment)
        experiment.recommend(), experiment.status(), experiment.estimates(), experiment.explain(20), repr(experiment)
        experiment.to_csv()
        experiment.close()
        open_at(f"{folder}/warm.db", 1.0).recommend()


@cache
def scenarios_of(file):
    """A module of scenarios, by its file."""
    found = spec_from_file_location(Path(file).stem, file)
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def serve():
    warm_up()
    gc.freeze()  # what the collector does not touch, forks share
    for line in sys.stdin:
        file, name, *arguments = json.loads(line)
        scenario = getattr(scenarios_of(file), name)
        child = Child(lambda send, run=scenario, arguments=arguments: send("done", run(*arguments)), 90)
        try:
            answer = [True, child.finish()[-1][1]]
        except Exception as error:
            answer = [False, str(error)]
        print(json.dumps(answer), flush=True)
