"""The service: ask + tell a second of eight clients over HTTP, and how long a request takes while nobody else asks.

    python benchmarks/bench_service.py [--quick]

An experiment on the paper's G1 (K = 3, the default policy) with 100,000 trials in an SQLite file, behind `dobandit
serve`. The world is G1 too: one that contradicts the graph makes the learner revise it, and an ask then takes longer.
Clients are processes with a plain HTTP connection each, keys for repetitions included. Optuna's gRPC proxy runs
in the same run, on an SQLite file on the same disk: six binary parameters, its cheapest sampler, eight processes. Its
log has 10,000 trials before, since more take minutes to enter; that favours it. Goals: 300 ask + tell a second, 99% of
the idle requests under 50 ms, five times Optuna's rate. Server and clients share the machine: the processor time of a
pair, which hardly depends on what else runs, says how many cores that takes. `dob.connect`'s clients come after that.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import dobandit as dob
from bench_experiments import Shop, experiment_in, has_optuna, optuna_file, optuna_space
from dobandit.storage import open_storage
from dobandit.storage.access import create_token

CLIENTS, SECONDS, IDLE = 8, 10.0, 300


class Line:
    """One keep-alive connection, with a token."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, document: Any = None, key: bool = False) -> Any:
        body = None if document is None else json.dumps(document)
        headers = {**self.headers, "Idempotency-Key": uuid.uuid4().hex} if key else self.headers
        self.connection.request(method, f"/api/v1{path}", body, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(text.decode())
        return json.loads(text)


def round_trip(line: Line, experiment: int, shop: Shop) -> tuple[float, float]:
    """Seconds of an ask and of a tell."""
    start = time.perf_counter()
    (trial,) = line.call("POST", f"/experiments/{experiment}/ask", {}, key=True)["trials"]
    middle = time.perf_counter()
    line.call(
        "POST",
        f"/experiments/{experiment}/trials/{trial['trial']}/tell",
        {"observation": shop.seen(trial["do"]), "issued": trial["issued"]},
    )
    return middle - start, time.perf_counter() - middle


def client(port: int, token: str, experiment: int, seconds: float, ready: Any, rates: Any) -> None:
    line, shop = Line(port, token), Shop(os.getpid())
    round_trip(line, experiment, shop)
    counted(lambda: round_trip(line, experiment, shop), seconds, ready, rates)


def connected(port: int, token: str, experiment: int, seconds: float, ready: Any, rates: Any) -> None:
    with dob.connect(f"http://127.0.0.1:{port}", token) as service:
        live, shop = service.open_experiment("one"), Shop(os.getpid())

        def step() -> None:
            trial = live.ask()
            live.tell(trial, shop.seen(trial.do))

        step()
        counted(step, seconds, ready, rates)


class Counted(NamedTuple):
    """Steps a second, how many there were, and the seconds of processor time that they took."""

    rate: float
    steps: int
    spent: float


def counted(step: Callable[[], Any], seconds: float, ready: Any, rates: Any) -> None:
    """Steps, once everybody is ready."""
    ready.wait()
    start, spent, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - start < seconds:
        step()
        count += 1
    rates.put(Counted(count / (time.perf_counter() - start), count, time.process_time() - spent))


def together(target: Callable[..., None], *arguments: Any) -> Counted:
    """What eight processes did, added up."""
    context = multiprocessing.get_context("spawn")
    ready, rates = context.Barrier(CLIENTS), context.Queue()
    workers = [context.Process(target=target, args=(*arguments, ready, rates)) for _ in range(CLIENTS)]
    for process in workers:
        process.start()
    every = [rates.get(timeout=600) for _ in workers]
    for process in workers:
        process.join()
    return Counted(*map(sum, zip(*every, strict=True)))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def spent_by(process: int) -> float:
    """Seconds of processor time that a process took so far; NaN where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """A server, until the end of the block; its process."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    try:
        for _ in range(3000):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait(timeout=60)


def ours(folder: str, past: int, seconds: float) -> tuple[float, float]:
    """The rates of plain HTTP and of `dob.connect`."""
    url, port = f"sqlite:///{folder}/ours.db", free_port()
    experiment_in(url, "one", past).close()
    storage = open_storage(url)
    experiment = storage.find("one").id  # type: ignore[union-attr]
    token = create_token(storage, "bench", "work", time.time(), "the benchmark")[0]
    storage.close()
    with running(["-m", "dobandit", "serve", "--storage", url, "--port", str(port)], port) as server:
        line, shop = Line(port, token), Shop(1)
        start = time.perf_counter()
        round_trip(line, experiment, shop)
        print(f"first ask + tell, after {past:,} trials are taken in: {time.perf_counter() - start:.2f} s", flush=True)
        idle(line, experiment, shop)
        before = spent_by(server)
        plain = together(client, port, token, experiment, seconds)
        rounds = plain.steps + CLIENTS  # each client has one before it counts
        print(f"processor time of an ask + tell: server {1e3 * (spent_by(server) - before) / rounds:.2f} ms", end="")
        print(f", client {1e3 * plain.spent / plain.steps:.2f} ms", flush=True)
        return plain.rate, together(connected, port, token, experiment, seconds).rate


def idle(line: Line, experiment: int, shop: Shop) -> None:
    """One client, with pauses."""
    taken: dict[str, list[float]] = {"ask": [], "tell": [], "status": [], "trials": [], "recommend": []}
    for number in range(IDLE):
        ask, tell = round_trip(line, experiment, shop)
        taken["ask"].append(ask)
        taken["tell"].append(tell)
        for path in ("status", "trials", "recommend") if number % 30 == 0 else ():
            start = time.perf_counter()
            line.call("GET", f"/experiments/{experiment}/{path}")
            taken[path].append(time.perf_counter() - start)
        time.sleep(0.005)
    print(f"{'one client':<46} {'p50, ms':>10} {'p99, ms':>10}")
    for what, seconds in taken.items():
        ordered = sorted(seconds)
        p50, p99 = ordered[len(ordered) // 2], ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]
        print(f"{what:<46} {1e3 * p50:>10.1f} {1e3 * p99:>10.1f}", flush=True)


# -- Optuna ---------------------------------------------------------------------------------------------------

PROXY = """
import sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
optuna.storages.run_grpc_proxy_server(optuna.storages.RDBStorage(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]))
"""


def optuna_client(port: int, seconds: float, ready: Any, rates: Any) -> None:
    import optuna

    has_optuna()  # which makes it quiet
    storage = optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=port)
    sampler = optuna.samplers.RandomSampler(seed=0)
    study, space = optuna.load_study(storage=storage, study_name="study", sampler=sampler), optuna_space()
    study.tell(study.ask(space), 0.0)
    counted(lambda: study.tell(study.ask(space), 1.0), seconds, ready, rates)


def theirs(folder: str, past: int, seconds: float) -> float | None:
    try:
        import grpc  # noqa: F401
    except ImportError:
        return None
    if not has_optuna():
        return None
    url, port = optuna_file(folder, past), free_port()
    with running(["-W", "ignore", "-c", PROXY, url, str(port)], port):
        return together(optuna_client, port, seconds).rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 trials before (Optuna: 1,000), three seconds")
    quick = parser.parse_args().quick
    past, before, seconds = (10_000, 1_000, 3.0) if quick else (100_000, 10_000, SECONDS)
    with tempfile.TemporaryDirectory(dir=os.environ.get("DOBANDIT_BENCH_DIR")) as folder:
        print(f"dobandit {dob.__version__} over HTTP, SQLite, {past:,} trials in the log")
        rate, by_connect = ours(folder, past, seconds)
        print(f"\n{f'{CLIENTS} clients together':<46} {'ask + tell a second':>20}")
        print(f"{'dobandit, HTTP':<46} {rate:>20,.0f}", flush=True)
        print(f"{'dobandit, dob.connect':<46} {by_connect:>20,.0f}", flush=True)
        other = theirs(folder, before, seconds)
        if other is None:
            print("Optuna's gRPC proxy: not installed")
        else:
            print(f"{f'Optuna, gRPC proxy, {before:,} trials before':<46} {other:>20,.1f}")
            print(f"{'ratio':<46} {rate / other:>20,.1f}")


if __name__ == "__main__":
    main()
