"""A service that is killed while two clients use it, for the zygote to run. The zygote has loaded no web package, so
that tests of what is said without one find none: here they are loaded where they are used."""

import os
import socket
import threading
import time
from functools import partial

import dobandit as dob
from dobandit.cli.main import main
from dobandit.storage import open_storage
from dobandit.storage.access import create_token
from helpers.zygote import Child

GRAPH = dob.CausalGraph([("email", "visit"), ("coupon", "visit"), ("visit", "buy"), ("coupon", "buy")], target="buy")


def serving(send, url, port):
    """A process that serves, once it is told to."""
    os.read(0, 10)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # where the zygote answers
    main(["serve", "--storage", url, "--port", str(port)])


def wait_for(port):
    import httpx

    with httpx.Client(timeout=5) as client:
        for _ in range(6000):
            try:
                if client.get(f"http://127.0.0.1:{port}/healthz").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.01)
    raise AssertionError("the server did not start")


def asks_and_tells(folder, many):
    """Many asks and tells by two clients; the server dies in between, wherever it is just then."""
    import dobandit.service.app  # noqa: F401 - once for both servers

    url = f"sqlite:///{folder}/spring.db"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    servers = [Child(partial(serving, url=url, port=port)) for _ in range(2)]  # before there are threads
    storage = open_storage(url)
    dob.create_experiment("spring", GRAPH, 1, "random", storage, seed=3)
    token = create_token(storage, "worker", "work", time.time(), "the tests")[0]
    servers[0].say("go")
    wait_for(port)
    told, errors = {}, []

    def work(share):
        try:
            with dob.connect(f"http://127.0.0.1:{port}", token, timeout=30.0, patience=120.0) as service:
                experiment = service.open_experiment("spring")
                for number in share:
                    trial = experiment.ask()
                    seen = {"email": number % 2, "coupon": 0, "visit": 1, "buy": int(number % 3 == 0)} | trial.do
                    assert trial.number not in told
                    told[trial.number] = seen
                    experiment.tell(trial, seen)
        except BaseException as error:
            errors.append(repr(error))

    workers = [threading.Thread(target=work, args=(range(start, many, 2),)) for start in (0, 1)]
    for worker in workers:
        worker.start()
    while len(told) < many // 2 and any(worker.is_alive() for worker in workers):
        time.sleep(0.002)
    servers[0].kill()  # no chance to tidy up
    servers[1].say("go")
    for worker in workers:
        worker.join(timeout=50)
    servers[1].kill()
    assert not errors, errors
    rows = dob.open_experiment("spring", storage).trials()
    assert [row["trial"] for row in rows] == list(range(many))
    assert {row["trial"]: row["observation"] for row in rows} == told
    assert {row["state"] for row in rows} == {"told"}
    assert {row["issued"] for row in rows} == {1}
    audit = [line.what for line in storage.audit(most=5 * many)]
    assert (audit.count("ask"), audit.count("tell")) == (many, many)
    storage.close()
