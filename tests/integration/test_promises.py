"""What is promised of experiments: nothing acknowledged is lost, whoever is killed, races, or runs out of disk.

Numba takes seconds to start, so one process starts it once and forks a process for each scenario, which forks its
workers: this file, run as a script. It reads lines [scenario, arguments] and answers each with what became of it.
"""

import ast
import gc
import json
import math
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

import dobandit as dob
from dobandit.errors import ConflictError, DobanditError, PolicyError, StorageError
from dobandit.experiment.storage import sqlite
from dobandit.experiment.storage.backup import backup
from dobandit.experiment.storage.base import PENDING, TOLD

NAME = "spring"
GRAPH = dob.CausalGraph([("X1", "X3"), ("X2", "X3"), ("X1", "X4"), ("X3", "Y"), ("X4", "Y")], target="Y")

# -- processes ---------------------------------------------------------------------------------------------------


class Zygote:
    def __init__(self):
        tests = str(Path(__file__).parents[1])
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")  # which a fork would not keep
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", __file__],
            env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join([tests, *sys.path])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, scenario, *arguments):
        self._process.stdin.write(json.dumps([scenario.__name__, *map(str, arguments)]) + "\n")
        self._process.stdin.flush()
        done, answer = json.loads(self._process.stdout.readline())
        assert done, answer
        return answer

    def close(self):
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def zygote():
    started = Zygote()
    yield started
    started.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "postgresql":
        yield request.getfixturevalue("postgres_server").new_database()
    elif request.param == "memory" and os.access("/dev/shm", os.W_OK):  # more kills in less time: no disk to wait for
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            yield f"{folder}/spring.db"
    else:
        yield str(tmp_path / "spring.db")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spring.db"


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


# -- what scenarios share ----------------------------------------------------------------------------------------


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


# -- 1: kill -9 --------------------------------------------------------------------------------------------------


def kills(storage, lives):
    """The last tell of a life may be stored without an answer, and then it is stored whole."""
    rng, log, unanswered = random.Random(1), [], None
    counts = dict.fromkeys(("told", "unanswered", "unanswered but stored", "looked through"), 0)
    create(storage, lease=10.0).close()

    def settle(count):
        nonlocal unanswered
        if count == len(log) + 1 and unanswered:
            log.append(unanswered)
            counts["unanswered but stored"] += 1
        assert count == len(log), f"{count} trials are stored, but {len(log)} were acknowledged"
        unanswered = None

    for life in range(int(lives)):
        write = write_with_checkpoints if life % 2 else write_for_ever
        child = Child(partial(write, storage=storage, life=life))
        settle(child.line()[1])
        lines = [child.line() for _ in range(rng.randrange(8))]
        time.sleep(rng.uniform(0.0, rng.choice([0.002, 0.01])))
        for kind, number, observation in lines + child.kill():
            unanswered = [number, observation] if kind == "telling" else None
            log += [[number, observation]] if kind == "told" else []
        counts["unanswered"] += unanswered is not None
        if rng.random() < 0.1 or life == int(lives) - 1:  # seldom, so that logs beside the file live on
            experiment = open_at(storage, 1000.0 * life)
            stored = told(experiment)
            settle(len(stored))
            assert stored == log
            assert experiment.status().pending <= 1
            experiment.close()
            assert "://" in storage or intact(storage)
            counts["looked through"] += 1
    return {**counts, "told": len(log)}


def write_with_checkpoints(send, storage, life):
    """As usual, but with the log brought into the file at every few commits, so that kills hit that too."""
    plain = sqlite.connect

    def eager(*arguments, **settings):
        connection = plain(*arguments, **settings)
        connection.execute("PRAGMA wal_autocheckpoint=8")
        return connection

    sqlite.connect = eager
    write_for_ever(send, storage, life)


@pytest.mark.parametrize(("url", "lives"), [("memory", 150), ("sqlite", 50), ("postgresql", 50)], indirect=["url"])
def test_an_acknowledged_tell_survives_kill_9(zygote, url, lives):
    done = zygote.run(kills, url, lives)
    assert done["told"] > lives


# -- 2: eight processes ------------------------------------------------------------------------------------------


def eight_processes(storage):
    create(storage).close()
    start = time.monotonic() + 0.5
    children = [Child(partial(hundred_rounds, storage=storage, worker=worker, start=start)) for worker in range(8)]
    reported = sorted(line for child in children for line in child.finish())
    assert [number for number, _ in reported] == list(range(800))
    experiment = open_at(storage, 1.0)
    assert sorted(told(experiment)) == reported
    under_way = check_every_ask(experiment)
    fresh = experiment.ask()
    assert repr(fresh) == repr(asked_after_replay(experiment))
    experiment.close()
    return {"other trials under way, on average": under_way}


def hundred_rounds(send, storage, worker, start):
    experiment, rng = open_at(storage, 1.0), random.Random(worker)
    experiment.learner  # noqa: B018
    time.sleep(max(start - time.monotonic(), 0.0))
    for _ in range(100):
        trial = experiment.ask()
        observation = some_observation(rng, trial.do)
        experiment.tell(trial.number, observation)
        send(trial.number, observation)
    experiment.close()


def check_every_ask(experiment):
    """What each of the processes was handed out follows from the log: what was closed, and what was under way."""
    from dobandit.experiment.replica import Replica

    columns, replica = experiment.columns, Replica(experiment.definition, experiment.columns)
    trials, closed = list(experiment.stored_trials()), experiment.storage.closed_since(experiment._id, 0)[:800]
    others = 0
    for trial in trials:
        replica.follow(closed[replica.position : trial.asked_after])
        pending = [replica.pending(t) for t in trials[: trial.number] if t.position >= trial.asked_after]
        now = replica.situation(trial.number, None, pending, replica.known(None))
        choice = replica.learner.engine.choose(now)
        assert choice.action.named(GRAPH) == columns.decode(trial.do)
        expected, low, high = replica.predict(choice.action, now.context)
        assert (trial.predicted, trial.low, trial.high) == (None if math.isnan(expected) else expected, low, high)
        others += len(pending)
    return others / len(trials)


def asked_after_replay(experiment):
    """What is asked next by one process that lived through the log, a round at a time."""
    alone = create("memory")
    for trial in experiment.storage.closed_since(experiment._id, 0)[:800]:
        do, observation = map(alone.columns.decode, (trial.do, trial.observation))
        alone.record(do, observation)
        assert alone.learner.rounds == trial.position + 1
    return alone.ask()


def test_eight_processes_ask_and_tell_a_hundred_times_each(zygote, url):
    zygote.run(eight_processes, url)


# -- 3: races ----------------------------------------------------------------------------------------------------


def races(storage, turns):
    now = 0.0
    asker = create(storage, lease=10.0, clock=lambda: now)
    racers = [Child(partial(race, storage=storage, turns=int(turns))) for _ in range(2)]
    wins = [0, 0]
    for _ in range(int(turns)):
        old = asker.ask()
        for racer in racers:
            assert racer.line() == ["ready"]
        start = time.monotonic() + 0.02
        for racer in racers:
            racer.say(start)
        answers = [racer.line() for racer in racers]
        assert sorted(answers) == [[old.number, 2, False], [old.number + 1, 1, False]]
        wins[answers[1][0] == old.number] += 1
        refused(ConflictError, asker.tell, old.number, {"Y": 1})  # it was told without the first holder
        now += 1000.0
    asker.close()
    assert [racer.finish() for racer in racers] == [[], []]
    return wins


def race(send, storage, turns):
    now = 500.0
    experiment = dob.open_experiment(NAME, storage, clock=lambda: now)
    for _ in range(turns):
        experiment.learner  # noqa: B018
        send("ready")
        start = float(os.read(0, 100))
        while time.monotonic() < start:
            pass
        trial = experiment.ask()
        answer = experiment.tell(trial.number, {"Y": 0})
        send(trial.number, trial.issued, answer.late)
        now += 1000.0
    experiment.close()


def test_an_expired_lease_is_handed_out_once(zygote, url):
    zygote.run(races, url, 30)


# -- 4: disks and permissions ------------------------------------------------------------------------------------


def full_disk(storage):
    now = 0.0
    experiment = create(storage, lease=10.0, clock=lambda: now)
    experiment.ask(n=100)
    now = 100.0
    trials = experiment.ask(n=100)  # again: who tells these is not late
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = os.path.getsize(storage + "-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, hard))
    done = 0
    try:
        for trial in trials:
            experiment.tell(trial.number, {"Y": 1})
            done += 1
    except StorageError as error:
        message = str(error)
    assert 0 < done < 100
    assert "Nothing of this was stored" in message, message
    assert "Free some space" in message, message
    refused(StorageError, experiment.tell, done, {"Y": 1})
    refused(StorageError, experiment.record, {}, {"Y": 1})
    assert told(experiment) == [[i, {**trials[i].do, "Y": 1}] for i in range(done)]
    assert experiment.trial(done)["state"] == PENDING
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    answer = experiment.tell(done, {"Y": 1})
    assert not answer.late
    assert not answer.repeated
    assert experiment.ask(n=2)[0].number == 100
    experiment.close()
    assert intact(storage)
    again = dob.open_experiment(NAME, storage)
    assert len(told(again)) == done + 1
    again.close()
    return message


def test_a_full_disk(zygote, path):
    zygote.run(full_disk, path)


def only_readable(storage):
    experiment = create(storage)
    experiment.ask(n=2)
    os.chmod(storage, 0o444)
    child = Child(partial(look, storage=storage))
    experiment.status()  # keeps the file open
    experiment.tell(0, {"Y": 1})
    messages = child.finish()[0]
    experiment.tell(1, {"Y": 0})
    assert [number for number, _ in told(experiment)] == [0, 1]
    experiment.close()
    return messages


def look(send, storage):
    while not Path(f"{storage}-shm").exists():  # until the other process has the file open again
        time.sleep(0.01)
    if os.geteuid() == 0:
        os.setuid(65534)  # root may do everything
    experiment = dob.open_experiment(NAME, storage)
    while experiment.status().told == 0:
        time.sleep(0.01)
    assert experiment.recommend().do
    send(
        refused(StorageError, experiment.ask),
        refused(StorageError, experiment.tell, 1, {"Y": 0}),
        refused(StorageError, experiment.record, {}, {"Y": 1}),
    )


def test_a_file_that_may_only_be_read(zygote):
    folder = Path(tempfile.mkdtemp(prefix="dobandit-"))  # pytest's own folders are closed to others
    try:
        folder.chmod(0o755)
        messages = zygote.run(only_readable, folder / "spring.db")
    finally:
        shutil.rmtree(folder)
    assert len(messages) == 3
    assert all("may not be written by you. Nothing of this was stored" in message for message in messages)


# -- 5: copies ---------------------------------------------------------------------------------------------------


def backups(storage, folder):
    create(storage).close()
    child = Child(partial(write_for_ever, storage=storage))
    child.line()
    copies, acknowledged = [], []
    for number in range(10):
        while True:
            kind, *word = child.line()
            if kind == "told":
                acknowledged.append(word)
                if len(acknowledged) % 5 == 0:
                    break
        copies.append((backup(storage, f"{folder}/copy{number}.db"), len(acknowledged)))
    child.kill()
    original = dob.open_experiment(NAME, storage)
    log = told(original)
    original.close()
    lengths = [check_copy(copy, log, known) for copy, known in copies]
    assert lengths == sorted(lengths)
    return lengths


def check_copy(copy, log, known):
    """It holds the beginning of the log, at least what was acknowledged before the copy was made, and goes on."""
    assert intact(copy)
    opened = dob.open_experiment(NAME, str(copy))
    found = told(opened)
    assert found == log[: len(found)]
    assert len(found) >= known
    opened.tell(opened.ask().number, {"Y": 1})
    opened.close()
    return len(found)


def plain_copies(storage, folder):
    """While a process has the file open, but writes nothing."""
    create(storage).close()
    child = Child(partial(write_for_ever, storage=storage, most=20))
    acknowledged = []
    while (line := child.line())[0] != "idle":
        acknowledged += [line[1:]] if line[0] == "told" else []
    copy = Path(folder, "plain.db")
    shutil.copy(storage, copy)
    shutil.copy(storage + "-wal", f"{copy}-wal")
    assert os.path.getsize(f"{copy}-wal") > 0
    assert check_copy(copy, acknowledged, 20) == 20
    child.kill()


def test_a_backup_made_while_others_write_opens(zygote, path, tmp_path):
    zygote.run(backups, path, tmp_path)


def test_a_plain_copy_of_file_and_wal_opens_if_nobody_wrote_meanwhile(zygote, path, tmp_path):
    zygote.run(plain_copies, path, tmp_path)


# -- 6: what is stored or imported is never run ------------------------------------------------------------------

FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "joblib",
    "yaml",
    "code",
    "ctypes",
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "Popen", "load_extension"}
FORBIDDEN_CALLS |= {"read_pickle", "to_pickle", "enable_load_extension", "PickleType"}


def test_the_sources_run_nothing_that_they_read():
    sources = list(Path(dob.__file__).parent.glob("experiment/**/*.py"))
    assert len(sources) > 20
    for node in (node for source in sources for node in ast.walk(ast.parse(source.read_text("utf-8")))):
        imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not FORBIDDEN_MODULES & {name.partition(".")[0] for name in imported}
        if isinstance(node, ast.Call) and ast.unparse(node.func) != "re.compile":
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            assert called not in FORBIDDEN_CALLS, ast.unparse(node)
            assert "allow_pickle" not in {keyword.arg for keyword in node.keywords}


RUN = {"exec", "compile", "import", "marshal.loads", "marshal.load", "pickle.find_class", "ctypes.dlopen"}
RUN |= {"os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "sqlite3.load_extension"}
EVIL = (
    "__import__('os').system('touch owned')",
    "'); DROP TABLE trials; DROP TABLE experiments; --",
    "%s %(a)s :a ? {0}",
)
EVIL_JSON = (
    *("", "null", "[]", "{}", "{", "[" * 100_000, "[" * 50_000 + "]" * 50_000, '{"a":' * 50_000),
    *("1" * 100_000, "1e999", '{"version": 1}', '{"version": [[]]}', EVIL[0], json.dumps(EVIL[1])),
    '{"__reduce__": ["os.system", ["touch owned"]], "py/object": "os.system", "!!python/object/apply:os.system": 1}',
)


class Touch:
    def __reduce__(self):
        return os.system, ("touch owned",)


def hostile(storage, folder):
    import pickle

    os.chdir(folder)
    Path("rounds.pickle").write_bytes(pickle.dumps(Touch(), 0))
    Path("rounds.csv").write_text(f'Y\n"{EVIL[0]}"\n')
    watching, ran = False, []
    sys.addaudithook(lambda event, arguments: ran.append((event, arguments)) if watching and event in RUN else None)
    experiment = create(storage)
    experiment.tell(experiment.ask(n=2)[0].number, {"Y": 1})
    for name in EVIL:
        dob.create_experiment(name, GRAPH, budget=1, storage=storage)
    document = experiment.definition.to_text()
    for watching in (False, True):  # noqa: B007 (what the first pass imports is not the storage's doing)
        hostile_names(storage)
        hostile_documents(storage, json.loads(document))
        change(storage, "UPDATE experiments SET document = ?", [(document,)])
        hostile_rows(storage)
        for given in ("rounds.pickle", "rounds.csv", EVIL, [{"Y": EVIL[0]}], [{EVIL[0]: 1}], [(EVIL[0], {"Y": 1})]):
            refused(DobanditError, experiment.import_history, given)
    watching = False
    assert ran == [], ran
    assert not Path("owned").exists()
    assert [number for number, _ in told(experiment)] == [0]
    experiment.close()
    assert intact(storage)


def hostile_names(storage):
    for name in EVIL:
        opened = dob.open_experiment(name, storage)
        opened.tell(opened.ask().number, {"Y": 0})
        opened.close()
        refused(DobanditError, dob.open_experiment, name + "!", storage)
        dob.rename_experiment(name, name + "?", storage)
        dob.rename_experiment(name + "?", name, storage)
    assert len(dob.list_experiments(storage)) == 4


def hostile_documents(storage, document):
    """Not only whole documents, but every part of a sound one."""
    texts = [
        *EVIL_JSON,
        *(json.dumps({**document, key: evil}) for key in document for evil in (EVIL[0], [[]], 1e308)),
    ]
    policies = [
        {"name": 7},
        {"name": "blm-lr", EVIL[0]: 1},
        {"name": ["os.system"]},
        {"name": "blm-lr", "region": []},
    ]
    texts += [json.dumps({**document, "policy": policy}) for policy in policies]
    texts += [json.dumps({**document, "graph": "@"}).replace('"@"', "[" * 5000 + "]" * 5000)]
    messages = []
    for text in texts:
        change(storage, "UPDATE experiments SET document = ?", [(text,)])
        try:
            with closing(dob.open_experiment(NAME, storage)) as opened:
                opened.recommend()
        except StorageError as error:
            messages.append(str(error))
    assert max(map(len, messages)) < 1000
    assert len(messages) > 0.9 * len(texts)  # some change nothing: no links
    for name in (EVIL[0], "os.system", "dobandit.policies:os"):  # a policy that may be somebody's, and is not here
        change(storage, "UPDATE experiments SET document = ?", [(json.dumps({**document, "policy": {"name": name}}),)])
        with closing(dob.open_experiment(NAME, storage)) as opened:
            message = refused(PolicyError, opened.recommend)
            assert name in message
            assert len(message) < 1000
            refused(PolicyError, opened.ask)


def hostile_rows(storage):
    for column in ("do", "observation", "available"):
        with closing(sqlite3.connect(storage)) as connection:
            before = connection.execute(f"SELECT {column}, number FROM trials WHERE experiment = 1").fetchall()
        for text in EVIL_JSON[0 if column != "available" else 1 :]:
            if (column, text) == ("available", "[]"):
                continue  # nothing could be set
            change(storage, f"UPDATE trials SET {column} = ? WHERE experiment = 1", [(text,)])
            with closing(dob.open_experiment(NAME, storage)) as opened:
                refused(StorageError, opened.trials)
                if column != "available":
                    refused(StorageError, opened.ask)
        change(storage, f"UPDATE trials SET {column} = ? WHERE experiment = 1 AND number = ?", before)
    with closing(dob.open_experiment(NAME, storage)) as opened:
        assert len(opened.trials()) == 2


def change(storage, statement, rows):
    with closing(sqlite3.connect(storage)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.executemany(statement, rows)


@pytest.mark.parametrize("url", ["memory"], indirect=True)
def test_a_hostile_file_is_refused_and_nothing_in_it_is_run(zygote, url, tmp_path):
    zygote.run(hostile, url, tmp_path)


# -- the zygote --------------------------------------------------------------------------------------------------


def warm_up():
    """Import and compile all that the scenarios use."""
    with suppress(ImportError):
        import psycopg  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        experiment = create(f"{folder}/warm.db", lease=10.0)
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


def serve():
    warm_up()
    gc.freeze()  # what the collector does not touch, forks share
    scenarios = (kills, eight_processes, races, full_disk, only_readable, backups, plain_copies, hostile)
    by_name = {scenario.__name__: scenario for scenario in scenarios}
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        child = Child(lambda send, name=name, arguments=arguments: send("done", by_name[name](*arguments)), 90)
        try:
            answer = [True, child.finish()[-1][1]]
        except Exception as error:
            answer = [False, str(error)]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
