"""`run_study`: a study from its parts to its result, by threads of this process (kernels hold no interpreter lock) or a
Dask cluster.

An executor takes blocks of replication numbers and yields finished blocks in any order; since a block is a function of
the study and its numbers alone, neither the order nor the number of workers can change a result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

import numpy as np

from dobandit.checks import shown, whole_number
from dobandit.errors import SimulationError
from dobandit.simulation.result import StudyResult
from dobandit.simulation.run import Block, Checkpoint, Prepared, blank_block, prepare, run_block
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


Progress = Callable[[int], None]  # called with the number of replications just finished
_BLOCKS_PER_WORKER = 16
_LARGEST_BLOCK = 50


def run_study(
    study: Study,
    *,
    executor: str | Executor = "threads",
    workers: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Run every replication of every policy.

    checkpoint  a folder in which finished replications are kept until the study is done: after a crash or Ctrl-C the
                same call goes on where it stopped
    """
    start = time.perf_counter()
    kept = Checkpoint(checkpoint, study) if checkpoint is not None else None
    prepared = prepare(study)
    collected = _Collected(study, prepared.counted)
    runner = executor_of(executor, workers)  # last: a cluster is not to be left behind by an error above
    try:
        if kept is not None:
            for block in kept.finished():
                _report(progress, collected.add(block))
        for block in runner.run(study, prepared, collected.missing(runner.workers)):
            if kept is not None:
                kept.add(block)
            _report(progress, collected.add(block))
    finally:
        if isinstance(executor, str) and hasattr(runner, "close"):
            runner.close()
    if not collected.have.all():
        raise SimulationError(
            f"{int((~collected.have).sum())} replications came back without a result. This is a fault of the executor."
        )
    truth = prepared.truth
    everywhere = truth.best_everywhere()
    return StudyResult(
        study,
        float(truth.chance() @ truth.best),
        everywhere or {},
        *collected.block[1:],
        time.perf_counter() - start,
        finished=time.time(),
        value_error=truth.value_error,
        best_depends=everywhere is None,
    )


def _report(progress: Progress | None, count: int) -> None:
    if progress is not None and count:
        progress(count)


class _Collected:
    """The arrays of the whole study, filled block by block."""

    def __init__(self, study: Study, sets: int) -> None:
        self.have = np.zeros(study.replications, dtype=bool)
        self.block = blank_block(study, sets, range(study.replications))

    def add(self, block: Block) -> int:
        """Take a block in; how many of its replications were wanted."""
        wanted = np.flatnonzero(block.replications < len(self.have))
        numbers = block.replications[wanted]
        pairs: list[tuple[Any, Any]] = list(zip(self.block[1:], block[1:], strict=True))
        if any(whole.shape[::2] != part.shape[::2] for whole, part in pairs):
            raise SimulationError(
                "a block of results does not fit the study. Remove the unfinished work and begin anew."
            )
        fresh = int((~self.have[numbers]).sum())
        for whole, part in pairs:
            whole[:, numbers] = part[:, wanted]
        self.have[numbers] = True
        return fresh

    def missing(self, workers: int) -> list[list[int]]:
        """Blocks of the replications still to run: large enough to be worth a call, small enough to share out."""
        numbers = np.flatnonzero(~self.have).tolist()
        size = max(1, min(_LARGEST_BLOCK, len(numbers) // (_BLOCKS_PER_WORKER * workers) or 1))
        return [numbers[i : i + size] for i in range(0, len(numbers), size)]
