"""The suite of live experiments over HTTP: the tests of local ones, word for word, with a service in between.

What a test looks into besides the experiment's own methods, such as the rows of the log, it sees in the storage behind
the service.
"""

import importlib.util
import time
from pathlib import Path

import pytest

import dobandit as dob
from dobandit.client.experiment import RemoteExperiment
from dobandit.client.service import connect
from dobandit.experiment.experiment import Experiment
from dobandit.service.service_settings import Settings
from dobandit.storage import MemoryStorage, open_storage
from dobandit.storage.access import create_token
from helpers import experiments
from helpers.serving import app_of, listening

HERE = Path(__file__).parent

# Tests that are about something else than an experiment's methods.
ELSEWHERE = {
    "test_a_refused_ask_undoes_what_it_had_handed_out": "breaks the learner from inside",
    "test_weights_never_reach_the_storage": "looks at the file of a storage that it closes",
    "test_what_cannot_be_kept_is_refused": "policies and links of one's own",
    "test_memory_is_shared_in_a_process": "the storage of this process",
    "test_the_engine_is_told_the_context": "watches the learner from inside",
    "test_a_damaged_batch_says_so": "writes into the storage",
    "test_a_policy_never_sees_the_number_that_decides_on_control_rounds": "no experiment",
    "test_of_two_mistakes_in_an_ask_what_can_be_set_is_named": "a client looks at the lease before it sends anything",
    "test_an_experiment_is_built_once_when_it_is_created": "watches how a local one is built",
    "test_an_experiment_lists_what_users_need_and_nothing_else": "the names of a local one",
    "test_a_graph_warns_only_when_it_is_made": "the service is warned in a thread of its own",
}


class Behind(RemoteExperiment):
    """A remote experiment, with what tests see of the local one."""

    storage = None

    def __getattr__(self, name):
        return getattr(Experiment(self.storage, self.storage.by_id(self.id)), name)


class Between:
    """The functions on experiments, through a service for the storage that they are given."""

    def __init__(self, url, apps):
        self.url, self.apps, self.known, self.services = url, apps, {}, []

    def to(self, storage, clock=None):
        kept = open_storage(MemoryStorage() if storage is None else storage)
        if id(kept) not in self.known:
            clocks = [time.time]
            app = app_of(kept, Settings(token_seconds=0.0, warm=False, clock=lambda: clocks[-1]()))
            token = create_token(kept, "suite", "manage", 0.0, "the tests")[0]
            self.apps[f"Bearer {token}"] = app
            self.known[id(kept)] = (kept, token, clocks)
        _, token, clocks = self.known[id(kept)]
        if clock is not None:
            clocks.append(clock)
        self.services.append(connect(self.url, token, patience=0.0))
        return self.services[-1], kept

    def wrapped(self, experiment, storage):
        experiment.__class__, experiment.storage = Behind, storage
        return experiment

    def create(self, name, graph, budget=None, policy=None, storage=None, horizon=None, seed=None, lease=None, **more):
        service, kept = self.to(storage, more.pop("clock", None))
        words = {key: value for key, value in (("horizon", horizon), ("seed", seed)) if value is not None}
        return self.wrapped(service.create_experiment(name, graph, budget, policy, lease=lease, **words, **more), kept)

    def open(self, name, storage=None, clock=None):
        service, kept = self.to(storage, clock)
        return self.wrapped(service.open_experiment(name), kept)

    def list(self, storage):
        return self.to(storage)[0].list_experiments()

    def delete(self, name, storage):
        self.to(storage)[0].delete_experiment(name)

    def rename(self, name, new, storage):
        self.to(storage)[0].rename_experiment(name, new)


@pytest.fixture(scope="module")
def listening_service():
    apps = {}  # by the header with a token of theirs: a test may use several storages

    async def app(scope, receive, send):
        if scope["type"] == "http":
            await apps[dict(scope["headers"])[b"authorization"].decode()](scope, receive, send)

    app.state = type("State", (), {"settings": Settings()})
    with listening(app) as url:
        yield url, apps


@pytest.fixture(autouse=True)
def _over_http(listening_service, monkeypatch):
    between = Between(*listening_service)
    for name in ("create", "open", "delete", "rename"):
        monkeypatch.setattr(dob, f"{name}_experiment", getattr(between, name))
        monkeypatch.setattr(experiments, f"{name}_experiment", getattr(between, name), raising=False)
    monkeypatch.setattr(dob, "list_experiments", between.list)
    yield
    listening_service[1].clear()
    for service in between.services:
        service.close()


@pytest.fixture
def storage(tmp_path):
    opened = open_storage(f"sqlite:///{tmp_path}/spring.db")
    yield opened
    opened.close()


def _tests_of(name):
    spec = importlib.util.spec_from_file_location(f"over_http_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {key: value for key, value in vars(module).items() if key.startswith("test_") and key not in ELSEWHERE}
    for test in found.values():
        test.pytestmark = [_fewer(mark) for mark in getattr(test, "pytestmark", [])]
    return found


def _fewer(mark):
    """HTTP is the same for every policy: some of them are enough."""
    if mark.name != "parametrize" or mark.args[1] is not experiments.CASES:
        return mark
    return pytest.mark.parametrize(mark.args[0], ["closed-form", "ucb", "continuous", "causal-auto"]).mark


for _name in ("test_experiment", "test_asking_and_telling", "test_batches", "test_control_and_context"):
    globals().update(_tests_of(_name))
