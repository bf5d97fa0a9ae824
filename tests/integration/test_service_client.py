"""The client: lost answers, a server that is killed, errors, and what is said where an extra is missing."""

import inspect
import io
import json
import math
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pandas as pd
import pytest

import dobandit as dob
from dobandit.client.connection import Connection
from dobandit.client.service import Service
from dobandit.errors import (
    DobanditWarning,
    ExperimentError,
    MissingError,
    ParseError,
    PolicyError,
    ServiceError,
    StorageError,
)
from dobandit.policy.answers import Guaranteed
from dobandit.storage import MemoryStorage
from helpers import forked, killed_service
from helpers.serving import served
from helpers.worlds import THOROUGH

pytestmark = pytest.mark.processes

GRAPH = dob.CausalGraph([("email", "visit"), ("coupon", "visit"), ("visit", "buy"), ("coupon", "buy")], target="buy")


@pytest.fixture(scope="module")
def house():
    with served() as one:
        yield one


@pytest.fixture
def service(house):
    with dob.connect(house.url, house.tokens["manage"]) as connected:
        yield connected
        for one in connected.list_experiments():
            connected.delete_experiment(one.name)


class Losing(httpx.BaseTransport):
    """A line that loses a request, then the answer to one that was carried out, then nothing, and so on."""

    def __init__(self):
        self.inner, self.count, self.sent = httpx.HTTPTransport(), 0, 0

    def handle_request(self, request):
        self.count += 1
        if self.count % 3 == 1:
            raise httpx.ConnectError("the line is dead")
        response = self.inner.handle_request(request)
        self.sent += 1
        if self.count % 3 == 2:
            response.read()
            response.close()
            raise httpx.ReadError("the answer was lost")
        return response

    def close(self):
        self.inner.close()


def test_lost_requests_and_answers_are_repeated_and_done_once(house, service):
    line = Losing()
    lossy = Service(Connection(house.url, house.tokens["manage"], 60.0, 60.0, line, first_pause=0.005))
    experiment = lossy.create_experiment("lossy", GRAPH, 1, "ucb", seed=1)
    trials = [experiment.ask() for _ in range(5)] + experiment.ask(n=2)
    assert [trial.number for trial in trials] == list(range(7))
    for trial in trials:
        told = experiment.tell(trial, {"email": 0, "coupon": 0, "visit": 1, "buy": 1} | trial.do)
        assert told.repeated  # the first answer was lost: the second time nothing was changed
    assert experiment.record({"email": 1}, {"visit": 0, "buy": 0}) == 7
    assert list(experiment.import_history([({}, {"buy": 1})] * 3)) == [8, 9, 10]
    assert experiment.status().trials == 11
    lossy.rename_experiment("lossy", "lossless")
    assert line.sent > 20
    assert [one.name for one in house.storage.experiments()] == ["lossless"]
    lossy.close()


def test_a_service_that_is_not_there(house):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nobody = dob.connect(f"http://127.0.0.1:{port}", "dob_1_x", patience=0.3)
    started = time.monotonic()
    with nobody, pytest.raises(StorageError, match="cannot be reached"):
        nobody.list_experiments()
    assert time.monotonic() - started < 10
    stranger = dob.connect(house.url, "dob_1_wrong", patience=0.0)
    with stranger, pytest.raises(ServiceError, match="not known here"):
        stranger.list_experiments()
    reader = dob.connect(house.url, house.tokens["work"], patience=0.0)
    with reader, pytest.raises(ServiceError, match="scope 'manage'"):
        reader.create_experiment("x", GRAPH, 1)
    with pytest.raises(ServiceError, match="http://"):
        dob.connect("ftp://here")


def test_too_many_at_once_wait_for_their_turn():
    with served(rate=1.0) as one, dob.connect(one.url, one.tokens["manage"]) as service:
        for _ in range(4):  # three at once, and then one a second
            service.list_experiments()
        assert sum(count for key, count in one.app.state.figures.requests.items() if key[2] == 429) >= 1


def test_errors_are_those_of_python(service):
    experiment = service.create_experiment("spring", GRAPH, 1, seed=2)
    with pytest.raises(MissingError, match="Did you mean 'spring'"):
        service.open_experiment("sprin")
    with pytest.raises(PolicyError, match="ulb"):
        service.create_experiment("x", GRAPH, 1, "ulb")
    with pytest.raises(ParseError, match="line 3") as error:
        experiment.record({}, io.StringIO("visit,buy\n1,0\n1,2\n"))
    assert error.value.line == 3
    arms = service.create_experiment("arms", GRAPH, 1, "ucb")
    with pytest.raises(PolicyError, match="no model"):
        arms.estimates()


WORDS = """ask tell tell_failed abandon record import_history recommend evaluate best_observed explain estimates status
diagnose interval_words delta trials trial to_csv csv_parts to_pandas to_parquet told_rounds name graph definition
columns close"""


def test_a_remote_experiment_has_the_words_of_a_local_one(house, service):
    remote = service.create_experiment("both", GRAPH, 1, "ucb", seed=1)
    local = dob.open_experiment("both", house.storage)
    public = [{name for name in dir(one) if not name.startswith("_")} for one in (local, remote)]
    assert set(WORDS.split()) <= public[0] & public[1]
    assert public[1] - public[0] == {"id"}  # the address has it; a local one is found by name
    for name in public[0] & public[1]:
        if inspect.isroutine(getattr(type(local), name, None)):
            ours, theirs = (inspect.signature(getattr(one, name)).parameters for one in (local, remote))
            assert [(p.name, p.default, p.kind) for p in theirs.values()] == [
                (p.name, p.default, p.kind) for p in ours.values()
            ], name
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        remote.colour  # noqa: B018


def test_trials_are_given_as_in_python(house, service):
    remote = service.create_experiment("given", GRAPH, 1, seed=1)
    local = dob.open_experiment("given", house.storage)
    told, failed, left, other = remote.ask(n=4)
    remote.tell(told, {"buy": 1})
    remote.tell_failed(failed, "rain")
    remote.abandon(left)
    assert [remote.trial(trial)["state"] for trial in (told, failed, left)] == ["told", "failed", "abandoned"]
    assert remote.explain(failed) == local.explain(failed)
    for number in ("3", 3.0, None, True):
        for words in ({"observation": {"buy": 1}}, {}):
            method = "tell" if words else "abandon"
            said = []
            for one in (remote, local):
                with pytest.raises(MissingError, match=r"a whole number such as trial\.number") as error:
                    getattr(one, method)(number, **words)
                said.append(str(error.value))
            assert said[0] == said[1]
    assert remote.trial(other)["state"] == "pending"


def test_logs_are_those_of_python(house, service, tmp_path):
    graph = dob.CausalGraph([("email", "buy"), ("mobile", "buy")], "buy", context=["mobile"])
    remote = service.create_experiment("log", graph, 1, seed=1, lease=60.0)
    local = dob.open_experiment("log", house.storage)
    for number in range(6):
        trial = remote.ask(["email"], context={"mobile": number % 2}, size=1 + number % 2)
        if number == 3:
            remote.tell_failed(trial.number, "=rain")
        elif number < 5:
            rows = [{"email": 0, "buy": n} | trial.do for n in range(trial.size)]
            remote.tell(trial, rows if trial.size > 1 else rows[0])
    brought = remote.import_history([({"email": 1}, {"mobile": 1, "buy": 1})] * 3)
    times = ["trial.asked_at", "trial.lease_expires", "trial.closed_at"]
    expected, found = local.to_pandas(), remote.to_pandas()
    for column in times:
        expected[column] = expected[column].dt.floor("ms").astype(found[column].dtype)
        found[column] = found[column].dt.floor("ms")
    pd.testing.assert_frame_equal(found, expected)
    assert (remote.delta, remote.interval_words) == (local.delta, local.interval_words)
    assert remote.told_rounds == local.told_rounds == 8
    assert remote.rounds_in(brought) == local.rounds_in(brought) == 3
    assert "".join(remote.csv_parts()) == local.to_csv()
    for asked in ({"last": 2}, {"last": 0}, {"last": 5000}, {"last": 1, "state": "failed"}, {"after": 1, "limit": 2}):
        assert remote.trials(**asked) == local.trials(**asked)
    for asked in ({"last": 2, "after": 1}, {"last": -1}, {"limit": "many"}, {"state": "lost"}):
        for one in (remote, local):
            with pytest.raises(ExperimentError):
                one.trials(**asked)
    with pytest.raises(ExperimentError, match="written to a path"):
        remote.to_csv(3)


def test_sums_and_exports_are_the_same_trials_as_in_python(house, service, tmp_path):
    head = "do:coupon,email,coupon,visit,buy,count\n"
    path = tmp_path / "sums.csv"
    path.write_text(head + "1,0,1,1,0,105\n1,0,1,1,1,30\n,0,0,0,0,880\n,1,0,1,0,1\n1,0,1,0,0,1\n1,0,1,1,1,1\n")
    local = dob.create_experiment("spring", GRAPH, 1, storage=MemoryStorage(), seed=1)
    remote = service.create_experiment("sums", GRAPH, 1, seed=1)
    assert remote.import_history(path) == local.import_history(path)
    size = local.status().trials
    posted = service.create_experiment("posted", GRAPH, 1, seed=1)
    assert posted.import_history(io.StringIO(remote.to_csv())) == range(size)
    for one in (remote, posted):
        assert [row["observation"] for row in one.trials()] == [row["observation"] for row in local.trials()]
        assert one.recommend() == local.recommend()


def test_answers_are_those_of_python(house, service, tmp_path):
    experiment = service.create_experiment("spring", GRAPH, 1, seed=2, control=0.2)
    local = dob.open_experiment("spring", house.storage)
    for number in range(25):
        trial = experiment.ask()
        if number % 7 == 6:
            experiment.tell_failed(trial.number, "rain")
            continue
        seen = {"email": number % 2, "coupon": 0, "visit": number % 3 == 0, "buy": number % 4 == 0}
        experiment.tell(trial, seen | trial.do)
    told = experiment.recommend()
    assert told == local.recommend()
    assert told.sentence.startswith("Set ")
    assert isinstance(told.guaranteed, Guaranteed)
    assert [lever.harms for lever in told.levers] == [lever.harms for lever in local.recommend().levers] != []
    assert experiment.recommend(["email"]) == local.recommend(["email"])
    assert experiment.evaluate({"email": 1}) == local.evaluate({"email": 1})
    assert experiment.evaluate(["coupon"]) == local.evaluate(["coupon"])
    assert experiment.best_observed() == local.best_observed()
    assert repr(experiment.estimates()) == repr(local.estimates())
    assert experiment.explain(3) == local.explain(3)
    assert repr(experiment.diagnose()) == repr(local.diagnose())
    assert experiment.diagnose().lines() == local.diagnose().lines()
    status, wanted = experiment.status(), local.status()
    assert status.storage == house.url
    assert status.last_told_at == pytest.approx(wanted.last_told_at, abs=0.002)
    same = {"storage": "", "created_at": 0, "last_told_at": 0}
    assert status._replace(**same) == wanted._replace(**same)
    assert experiment.trials() == local.trials()
    assert experiment.trials(after=3, limit=5) == local.trials(3, 5)
    assert experiment.trials(state="failed") == local.trials(state="failed")
    assert experiment.trial(6) == local.trial(6)
    assert experiment.to_csv() == local.to_csv()
    experiment.to_csv(tmp_path / "log.csv")
    assert (tmp_path / "log.csv").read_text() == local.to_csv()
    experiment.to_parquet(tmp_path / "log.parquet")
    other = service.create_experiment("again", GRAPH, 1, seed=2, history=local.to_pandas())
    assert other.status().rounds == 22
    with pytest.warns(DobanditWarning, match="just these rounds were imported before, as trials 0 to 21,"):
        assert len(other.import_history(tmp_path / "log.parquet")) == 22
    assert repr(other.definition.policy) == repr(local.definition.policy)
    assert (experiment.graph, experiment.columns.names) == (local.graph, local.columns.names)


def test_a_history_of_every_make_is_the_same(service, tmp_path):
    rows = [({"coupon": 1}, {"email": 0, "visit": 1, "buy": i % 2}) for i in range(6)]
    rows += [({}, {"email": 1, "coupon": 0, "visit": 0, "buy": 0})]
    table = "do:coupon,email,coupon,visit,buy\n" + "".join(f"1,0,1,1,{i % 2}\n" for i in range(6)) + ",1,0,0,0\n"
    (tmp_path / "past.csv").write_text(table)
    local = dob.create_experiment("local", GRAPH, 1, storage="memory", seed=4, history=rows)
    wanted = [row["observation"] for row in local.trials()]
    sources = [rows, tmp_path / "past.csv", io.StringIO(table), pd.read_csv(tmp_path / "past.csv")]
    for number, source in enumerate(sources):
        experiment = service.create_experiment(f"past {number}", GRAPH, 1, seed=4, history=source)
        assert [row["observation"] for row in experiment.trials()] == wanted, number


def test_a_prediction_that_is_not_there_is_nan(service):
    experiment = service.create_experiment("arms", GRAPH, 1, dob.UCB(scale=0.5), seed=2)
    local = dob.create_experiment("arms", GRAPH, 1, dob.UCB(scale=0.5), "memory", seed=2)
    assert math.isnan(experiment.ask().predicted) == math.isnan(local.ask().predicted)
    assert experiment.explain(0).bonus is None


def test_pages_of_a_long_list(service):
    """A service gives at most 1,000 trials at once."""
    experiment = service.create_experiment("spring", GRAPH, 1, "random", seed=2)
    experiment.ask(n=1030)
    assert [row["trial"] for row in experiment.trials()] == list(range(1030))
    assert [row["trial"] for row in experiment.trials(limit=1020)] == list(range(1020))
    assert [row["trial"] for row in experiment.trials(last=1010)] == list(range(20, 1030))
    assert [one.trials for one in service.list_experiments()] == [1030]


def test_the_code_in_the_documentation_runs(house, service):
    page = (Path(__file__).parents[2] / "docs/service.md").read_text()
    (code,) = re.findall(r"^```py\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    names = {}
    address = code.replace("http://127.0.0.1:8765", house.url).replace("dob_1_...", house.tokens["manage"])
    exec(compile(address, "service.md", "exec"), names)
    assert names["experiment"].status().told == 1
    names["service"].close()


# -- a server that is killed ---------------------------------------------------------------------------------------


def test_a_killed_server_loses_and_doubles_nothing(zygote, tmp_path):
    zygote.run(killed_service.asks_and_tells, tmp_path, 80 * THOROUGH)


def test_serve_says_where_it_is_and_how_to_log_in(tmp_path):
    url = f"sqlite:///{tmp_path}/spring.db"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dobandit", "serve", "--storage", url, "--port", str(port), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        said = ""
        while "}" not in said:
            line = process.stdout.readline()
            assert line
            said += line
        document = json.loads(said)
        assert (document["url"], document["storage"]) == (f"http://127.0.0.1:{port}", url)
        with httpx.Client(timeout=30, transport=httpx.HTTPTransport(retries=10)) as browser:
            assert browser.get(document["login"]).status_code == 303
            assert browser.get(document["url"]).status_code == 200
            assert browser.get(document["login"]).status_code == 403
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()


# -- what is not installed -----------------------------------------------------------------------------------------


def test_a_missing_extra_says_how_to_get_it(zygote, tmp_path):
    for name in ("httpx", "uvicorn"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ImportError('no {name}', name={name!r})")
    serve = f"import os; from dobandit.cli.main import main; os.chdir({str(tmp_path)!r}); main()"
    code, _, said = zygote.run(forked.python, serve, ["serve"], [tmp_path])
    assert code == 2
    assert "pip install 'dobandit[server]'" in said
    assert "Traceback" not in said
    connect = "import dobandit as dob; dob.connect('http://here')"
    assert "pip install 'dobandit[client]'" in zygote.run(forked.python, connect, [], [tmp_path])[2]


def test_importing_dobandit_needs_no_web_package():
    code = (
        "import sys, dobandit, dobandit.cli.main, dobandit.cli.experiments, dobandit.cli.tokens; "
        "print([name for name in ('fastapi', 'uvicorn', 'jinja2', 'httpx', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.filterwarnings("ignore:the rules leave nothing to set")
def test_rules_say_the_same_on_both_sides(service):
    for i, available in enumerate((None, [], ["email"])):
        words = {"budget": 1, "policy": "random", "seed": 3, "available": available}
        here = dob.create_experiment(f"here {i}", GRAPH, storage=MemoryStorage(), **words)
        there = service.create_experiment(f"there {i}", GRAPH, **words)
        assert there.definition.document["rules"] == here.definition.document["rules"]
        asked = [set(there.ask().do) for _ in range(5)]
        assert asked == [set(here.ask().do) for _ in range(5)]
        assert available is None or all(names <= set(available) for names in asked)
