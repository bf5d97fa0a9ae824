"""The pages of an experiment with a long log: how long the service takes to make each, at first and again.

    python benchmarks/bench_pages.py [--quick]

An experiment on the paper's G1 (K = 3, the default policy) with 100,000 trials of one round each in an SQLite file, the
last 200 of them asked for. The app is called in this process, so that CPU is that of the service alone; its log is read
first, as after every start of a service. Then a trial is told between any two looks at a page. Goal: 300 ms a page.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time

import httpx

import dobandit as dob
from bench_experiments import G1, experiment_in
from dobandit.service.app import create_app
from dobandit.service.service_settings import Settings
from dobandit.storage import open_storage

ADDRESS, ASKED = "http://127.0.0.1:8765", 200


LONGEST = 120.0  # seconds that a log may take to be read


class Browser:
    """Somebody who is logged in."""

    def __init__(self, storage: object) -> None:
        self.app = create_app(storage, Settings())  # type: ignore[arg-type]
        self.cookies: dict[str, str] = {}
        self.open(f"/login?code={self.app.state.login.code}")

    def open(self, path: str) -> tuple[float, float, str]:
        """Milliseconds on the clock and of CPU, and the page."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, cookies=self.cookies) as client:
                return await client.get(path, headers={"accept": "text/html"})

        clock, cpu = time.perf_counter(), time.process_time()
        answer = asyncio.run(send())
        taken = 1e3 * (time.perf_counter() - clock), 1e3 * (time.process_time() - cpu)
        if answer.status_code >= 400:
            raise RuntimeError(answer.text)
        self.cookies |= dict(answer.cookies)
        return *taken, answer.text


def tell_one(experiment: dob.Experiment) -> None:
    trial = experiment.ask()
    experiment.tell(trial, dict.fromkeys(G1.graph.nodes, 0) | trial.do)


def report(browser: Browser, experiment: dob.Experiment, trials: int) -> None:
    wall, cpu, _ = browser.open("/experiments/1")
    print(f"{'after a start, which says that the log is read':<52} {wall:>8.0f} {cpu:>8.0f}", flush=True)
    start = time.perf_counter()
    while "being read" in browser.open("/experiments/1")[2]:
        if time.perf_counter() - start > LONGEST:
            raise SystemExit(f"the log was not read within {LONGEST:.0f} seconds.")
        time.sleep(0.1)
    print(f"{'until it is read':<52} {1e3 * (time.perf_counter() - start):>8.0f}", flush=True)
    pages = {
        "all experiments": "/",
        "the experiment": "/experiments/1",
        "the experiment, half-way": f"/experiments/1?round={trials // 2}",
        "the newest trials": "/experiments/1/trials",
        "some trials": f"/experiments/1/trials?after={trials // 2}",
        "the last trial that was asked, and why": f"/experiments/1/trials/{trials - 1}",
        "the first that was asked, and why": f"/experiments/1/trials/{trials - ASKED}",
        "today's round": "/experiments/1/today",
        "a snapshot": "/experiments/1/snapshot",
    }
    for name, path in pages.items():
        tell_one(experiment)
        first, again = browser.open(path), browser.open(path)
        print(f"{name:<52} {first[0]:>8.0f} {first[1]:>8.0f} {again[0]:>8.0f} {again[1]:>8.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 trials")
    trials = 10_000 if parser.parse_args().quick else 100_000
    with tempfile.TemporaryDirectory(dir=os.environ.get("DOBANDIT_BENCH_DIR")) as folder:
        storage = open_storage(f"sqlite:///{folder}/pages.db")
        experiment = experiment_in(storage, "one", trials - ASKED)
        for _ in range(ASKED):
            tell_one(experiment)
        print(f"dobandit {dob.__version__}, pages of an experiment with {trials:,} trials, SQLite")
        print(f"{'page':<52} {'ms':>8} {'CPU':>8} {'again':>8} {'CPU':>8}")
        report(Browser(storage), experiment, trials)
        storage.close()


if __name__ == "__main__":
    main()
