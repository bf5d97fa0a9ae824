"""Nothing slow is done while others wait for a log; and its files."""

import os
import signal
import threading
import time

import pytest
from pyarrow.parquet import read_metadata

from dobandit.compile_mode import compiler_lock
from dobandit.rows.export import csv_parts, write_parquet
from dobandit.storage import open_storage
from helpers import forked
from helpers.experiments import again, make, numbered
from helpers.foreign import ThompsonArms, ThompsonEngine

# -- locks -----------------------------------------------------------------------------------------------------------


class Thinking:
    """Lets a test run something while the first choices are being made."""

    def __init__(self, monkeypatch, meanwhile, times=1):
        self.calls, self.free = 0, []
        plain = ThompsonEngine.choose

        def choose(engine, now):
            self.calls += 1
            if self.calls <= times:
                self.free.append(in_time(meanwhile))
            return plain(engine, now)

        monkeypatch.setattr(ThompsonEngine, "choose", choose)


def in_time(run):
    """Whether another thread gets something done while this one waits."""
    done = threading.Event()
    thread = threading.Thread(target=lambda: (run(), done.set()), daemon=True)
    thread.start()
    return done.wait(timeout=10.0)


def test_others_write_while_a_choice_is_made(storage, monkeypatch):
    """A trial is told meanwhile: the choice stands, and the log says what it was based on."""
    asker = make(storage, policy=ThompsonArms())
    worker = again(asker)
    held = worker.ask()
    thinking = Thinking(monkeypatch, lambda: worker.tell(held, {"Y": 1}))
    trial = asker.ask()
    assert (thinking.free, thinking.calls) == ([True], 1)
    assert asker.log.stored_trial(trial.number).asked_after == 0
    explained = again(asker).explain(trial.number)
    assert (explained.pending, explained.rounds) == (1, 0)
    assert explained.predicted == trial.predicted


def test_a_lost_race_is_chosen_anew(storage, monkeypatch):
    """What is added meanwhile takes the number: the choice is that of an experiment in which it came first."""
    asker = make(storage, policy=ThompsonArms())
    worker = again(asker)
    thinking = Thinking(monkeypatch, lambda: worker.record({"X3": 1}, {"X2": 1, "X4": 0, "X5": 1, "Y": 1}))
    trial = asker.ask()
    assert thinking.free == [True]
    assert thinking.calls == 2
    alone = make(name="alone", policy=ThompsonArms())
    alone.record({"X3": 1}, {"X2": 1, "X4": 0, "X5": 1, "Y": 1})
    assert trial == alone.ask()


def test_nobody_loses_for_ever(tmp_path, monkeypatch):
    """Who lost too often keeps the others out."""
    asker = make(open_storage(str(tmp_path / "spring.db")), policy=ThompsonArms())
    worker = again(asker)
    thinking = Thinking(monkeypatch, lambda: worker.record({}, {"Y": 1}), times=3)
    assert asker.ask().number == 3
    assert (thinking.free, thinking.calls) == ([True] * 3, 4)
    asker.close()


def test_an_answer_keeps_nobody_from_asking(storage, monkeypatch):
    from dobandit.policy.learner import Learner

    experiment, plain, free = make(storage), Learner.assess, []
    experiment.tell(experiment.ask(), {"Y": 1})

    def assess(learner, *arguments, **words):
        free.append(in_time(lambda: experiment.tell(experiment.ask(), {"Y": 0})))
        return plain(learner, *arguments, **words)

    monkeypatch.setattr(Learner, "assess", assess)
    experiment.recommend()
    assert free == [True]


FORK = """
import os, signal, sys, threading, warnings
import dobandit as dob
from dobandit.experiment.replayed_learner import ReplayedLearner

warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads
graph = dob.CausalGraph([("A", "Y"), ("B", "Y")], target="Y")
experiment = dob.create_experiment("spring", graph, 1, dob.Random(), sys.argv[1], seed=1)
experiment.ask()
thinking, forked, plain = threading.Event(), threading.Event(), ReplayedLearner.situation

def situation(replica, *arguments):
    if threading.current_thread() is not threading.main_thread():
        thinking.set()
        forked.wait(30)
    return plain(replica, *arguments)

ReplayedLearner.situation = situation
asking = threading.Thread(target=experiment.ask)
asking.start()
thinking.wait(30)
child = os.fork()
if child == 0:
    signal.alarm(20)
    experiment.tell(experiment.ask(), {"B": 1, "Y": 1})
    os._exit(0 if experiment.status().told == 1 else 3)
forked.set()
asking.join()
print(os.waitpid(child, 0)[1], experiment.status().trials)
"""


@pytest.mark.parametrize("place", ["memory", "file"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")
def test_a_child_that_is_forked_while_another_thread_asks(zygote, tmp_path, place):
    url = "memory" if place == "memory" else f"sqlite:///{tmp_path}/spring.db"
    _, out, err = zygote.run(forked.python, FORK, [url], [])
    assert out.split() == ["0", "2" if place == "memory" else "3"], err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")
def test_a_child_that_is_forked_while_another_thread_compiles():
    begun = threading.Event()
    make().ask()  # Numba is loaded

    def compile_something():
        with compiler_lock:
            begun.set()
            time.sleep(0.2)

    at_work = threading.Thread(target=compile_something)
    at_work.start()
    begun.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # which ends a child that waits for ever
        compiler_lock.acquire()
        os._exit(0)
    at_work.join()
    assert os.waitpid(child, 0)[1] == 0


# -- files -----------------------------------------------------------------------------------------------------------


def test_an_export_is_written_bit_by_bit(tmp_path):
    experiment = make()
    experiment.import_history(numbered([({"X3": 1}, {"Y": i % 2}) for i in range(300)]))
    trials, whole = list(experiment.log.stored_trials()) * 70, experiment.to_csv()
    parts = list(csv_parts(trials, experiment.columns))
    assert len(parts) > 1
    assert max(map(len, parts)) < 1.1 * 2**20
    heading, rows = whole.split("\n", 1)
    assert "".join(parts) == f"{heading}\n{rows * 70}"
    write_parquet(trials, experiment.columns, tmp_path / "long.parquet")
    assert [read_metadata(tmp_path / "long.parquet").row_group(i).num_rows for i in (0, 1)] == [20_000, 1_000]
    experiment.to_csv(tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_text() == whole
    experiment.to_csv(tmp_path / "log.csv.gz")
    experiment.to_parquet(tmp_path / "log.parquet")
    for copy in (tmp_path / "log.csv", tmp_path / "log.csv.gz", tmp_path / "log.parquet"):
        other = make(name=copy.name)
        other.import_history(str(copy))
        assert [row["observation"] for row in other.trials()] == [row["observation"] for row in experiment.trials()]
