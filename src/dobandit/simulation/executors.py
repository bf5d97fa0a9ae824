"""Who runs the blocks of a study: threads of this process (kernels hold no interpreter lock), or a Dask cluster.

An executor takes blocks of replication numbers and yields finished blocks in any order; since a block is a function of
the study and its numbers alone, neither the order nor the number of workers can change a result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

from dobandit.checks import shown, whole_number
from dobandit.errors import SimulationError
from dobandit.simulation.run import Block, Prepared, run_block
from dobandit.simulation.study import Study

_MOST_WORKERS = 10_000


class Executor(Protocol):
    """Runs blocks; `workers` tells how many at once."""

    workers: int

    def run(self, study: Study, prepared: Prepared, blocks: Sequence[Sequence[int]]) -> Iterator[Block]: ...


class Threads:
    """Threads of this process."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or available_cores()

    def run(self, study: Study, prepared: Prepared, blocks: Sequence[Sequence[int]]) -> Iterator[Block]:
        if self.workers == 1:
            for block in blocks:
                yield run_block(study, prepared, block)
            return
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="dobandit")
        try:
            yield from _as_finished(lambda block: pool.submit(run_block, study, prepared, block), blocks, self.workers)
        finally:
            pool.shutdown(cancel_futures=True)


def _as_finished(
    submit: Callable[[Sequence[int]], Future[Block]], blocks: Sequence[Sequence[int]], workers: int
) -> Iterator[Block]:
    """Keep a few blocks a worker under way, so that a long study does not queue all of its work at once."""
    waiting = iter(blocks)
    running = {submit(block) for _, block in zip(range(2 * workers), waiting, strict=False)}
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            following = next(waiting, None)
            if following is not None:
                running.add(submit(following))
            yield future.result()


class Dask:
    """A Dask cluster: a local one, or the user's by its address. A block on a worker that dies is run again."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise SimulationError(
                "running on Dask needs the 'distributed' extra. Install dobandit[distributed]."
            ) from None
        if address is None:
            self._cluster: Any = LocalCluster(
                n_workers=workers or available_cores(), threads_per_worker=1, dashboard_address=":0"
            )
        else:
            self._cluster = None
        try:
            self.client: Any = Client(address or self._cluster, timeout=5)
        except (OSError, TimeoutError, ValueError) as error:
            raise SimulationError(f"no Dask scheduler answers at {address} ({error}). Check the address.") from None
        self.workers = max(1, len(self.client.scheduler_info()["workers"]))

    def run(self, study: Study, prepared: Prepared, blocks: Sequence[Sequence[int]]) -> Iterator[Block]:
        from distributed import as_completed

        # A task, not scattered data: that would be gone for good if every worker that holds it died.
        shared = self.client.submit(tuple, (study, prepared), pure=False)
        futures = self.client.map(_run_shared, [list(block) for block in blocks], shared=shared, pure=False, retries=5)
        for future in as_completed(futures, loop=self.client.loop):  # not that of a client around this call
            yield future.result()

    def close(self) -> None:
        self.client.close()
        if self._cluster is not None:
            self._cluster.close()


def _run_shared(block: list[int], shared: tuple[Study, Prepared]) -> Block:
    return run_block(*shared, block)


def executor_of(executor: str | Executor, workers: int | None) -> Executor:
    """An executor from its name: "threads", "dask", or the address of a scheduler such as tcp://host:port."""
    if workers is not None:
        whole_number("workers", workers, 1, SimulationError, _MOST_WORKERS)
    rule = "an executor is 'threads', 'dask', a scheduler's address (tcp://host:port) or an object with run and workers"
    if not isinstance(executor, str):
        if (
            isinstance(executor, type)
            or not callable(getattr(executor, "run", None))
            or not hasattr(executor, "workers")
        ):
            raise SimulationError(f"{rule}, but got {shown(executor)}.")
        return executor
    if executor == "threads":
        return Threads(workers)
    if executor == "dask":
        return Dask(None, workers)
    if "://" in executor:
        return Dask(executor)
    raise SimulationError(f"{rule}, but got {shown(executor)}.")


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
