"""A study on a real Dask cluster: the same bits as on threads, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import socket
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster

from dobandit import paper
from dobandit.errors import SimulationError
from dobandit.simulation.simulate import Dask, run_study
from dobandit.simulation.study import study_of
from helpers.worlds import THOROUGH

pytestmark = pytest.mark.processes

CURVES = ("all_regret", "all_reward", "best_plays")


def study(**options):
    given = {"rounds": 2000, "replications": 64, "rules": 2, "record": [10, 500], **options}
    return study_of(paper.G4, ["blm-lr:radius_scale=0.1", "eps-greedy", "ucb"], **given)


def assert_same(first, second):
    for name in CURVES:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.fixture(scope="module")
def on_threads():
    return run_study(study(), workers=2)


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as running:
        yield running


def test_a_cluster_of_ones_own_gives_the_same_bits(cluster, on_threads):
    counts = []
    assert_same(run_study(study(), executor=cluster.scheduler_address, progress=counts.append), on_threads)
    assert sum(counts) == 64


def test_a_study_leaves_the_users_cluster_running(cluster):
    for _ in range(2):
        run_study(study(rounds=10, replications=3, record=[5]), executor=cluster.scheduler_address)
    with Client(cluster) as client:
        assert len(client.scheduler_info()["workers"]) == 2


def test_a_killed_worker_loses_nothing_and_changes_nothing(cluster, on_threads):
    with Client(cluster) as client:
        victims = list(client.run(os.getpid).values())
        counts = []

        def kill_one(count):
            counts.append(count)
            if len(counts) == 3:
                os.kill(victims[0], signal.SIGKILL)

        result = run_study(study(), executor=cluster.scheduler_address, progress=kill_one)
        assert_same(result, on_threads)
        assert sum(counts) == 64
        client.wait_for_workers(2, timeout=60)
        assert victims[0] not in client.run(os.getpid).values()


def test_even_if_every_worker_dies(cluster, on_threads):
    with Client(cluster) as client:
        victims = list(client.run(os.getpid).values())

    def kill_all(count):
        while victims:
            os.kill(victims.pop(), signal.SIGKILL)

    assert_same(run_study(study(), executor=cluster.scheduler_address, progress=kill_all), on_threads)


def test_work_on_a_cluster_is_kept_and_goes_on_elsewhere(cluster, on_threads, tmp_path):
    counts = []

    def stop(count):
        counts.append(count)
        if len(counts) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study(), executor=cluster.scheduler_address, checkpoint=tmp_path, progress=stop)
    assert len(list((tmp_path / "unfinished").glob("block-*"))) == 4
    assert_same(run_study(study(), checkpoint=tmp_path, workers=2), on_threads)


def test_dask_by_name_starts_a_local_cluster_and_closes_it(on_threads):
    assert_same(run_study(study(), executor="dask", workers=1 if THOROUGH == 1 else 2), on_threads)


def test_an_error_on_a_worker_is_the_callers_error(cluster):
    broken = study()
    object.__setattr__(broken, "grid", ("no number",))
    with pytest.raises(ValueError, match="no number"):
        run_study(broken, executor=cluster.scheduler_address)


def test_a_wrong_address_is_refused_within_seconds(monkeypatch):
    waits = []

    def hurried(address, timeout):
        waits.append(timeout)
        return Client(address, timeout=timeout if THOROUGH > 1 else timeout / 20)

    monkeypatch.setattr("distributed.Client", hurried)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = time.perf_counter()
    with pytest.raises(SimulationError, match=f"no Dask scheduler answers at tcp://127.0.0.1:{port}"):
        Dask(f"tcp://127.0.0.1:{port}")
    assert time.perf_counter() - start < 15
    with pytest.raises(SimulationError, match="Check the address"):
        Dask("carrier-pigeon://here:1")
    assert max(waits) <= 10
