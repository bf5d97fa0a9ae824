"""`run_study`: a study from its parts to its result, by threads of this process (kernels hold no interpreter lock) or a
Dask cluster.

An executor takes blocks of replication numbers and yields finished blocks in any order; since a block is a function of
the study and its numbers alone, neither the order nor the number of workers can change a result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
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
            yield from (run_block(study, prepared, block) for block in blocks)
            return
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="dobandit")
        try:
            for future in as_completed([pool.submit(run_block, study, prepared, block) for block in blocks]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


class Dask:
    """A Dask cluster: a local one, or the user's by its address. A block on a worker that dies is run again."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise SimulationError(
                "running on Dask needs the 'distributed' extra. Install dobandit[distributed]."
            ) from None
        self._cluster: Any = None
        if address is None:
            count = workers or available_cores()
            self._cluster = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0")
        try:
            self.client: Any = Client(address or self._cluster, timeout=5)
        except (OSError, TimeoutError, ValueError) as error:
            raise SimulationError(f"no Dask scheduler answers at {address} ({error}). Check the address.") from None
        self.workers = max(1, len(self.client.scheduler_info()["workers"]))

    def run(self, study: Study, prepared: Prepared, blocks: Sequence[Sequence[int]]) -> Iterator[Block]:
        from distributed import as_completed as completed

        # A task, not scattered data: that would be gone for good if every worker that holds it died.
        shared = self.client.submit(tuple, (study, prepared), pure=False)
        futures = self.client.map(_run_shared, [list(block) for block in blocks], shared=shared, pure=False, retries=5)
        for future in completed(futures, loop=self.client.loop):  # not that of a client around this call
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
        if not isinstance(executor, type) and callable(getattr(executor, "run", None)) and hasattr(executor, "workers"):
            return executor
    elif executor in ("threads", "dask"):
        return Threads(workers) if executor == "threads" else Dask(None, workers)
    elif "://" in executor:
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
    whole = blank_block(study, prepared.counted, range(study.replications))
    have = np.zeros(study.replications, dtype=np.bool_)

    def take(block: Block) -> None:
        """Put a block where it belongs in the whole study."""
        wanted = np.flatnonzero(block.replications < study.replications)
        numbers = block.replications[wanted]
        pairs: Any = zip(whole[1:], block[1:], strict=True)
        for all_of_them, some in pairs:
            if all_of_them.shape[::2] != some.shape[::2]:
                raise SimulationError(
                    "a block of results does not fit the study. Remove the unfinished work and begin anew."
                )
            all_of_them[:, numbers] = some[:, wanted]
        fresh = int((~have[numbers]).sum())
        have[numbers] = True
        if progress is not None and fresh:
            progress(fresh)

    runner = executor_of(executor, workers)  # last: a cluster is not to be left behind by an error above
    try:
        for block in kept.finished() if kept is not None else ():
            take(block)
        for block in runner.run(study, prepared, _blocks(np.flatnonzero(~have).tolist(), runner.workers)):
            if kept is not None:
                kept.add(block)
            take(block)
    finally:
        if isinstance(executor, str) and hasattr(runner, "close"):
            runner.close()
    if not have.all():
        raise SimulationError(
            f"{int((~have).sum())} replications came back without a result. This is a fault of the executor."
        )
    truth = prepared.truth
    everywhere = truth.best_everywhere()
    return StudyResult(
        study,
        float(truth.chance() @ truth.best),
        everywhere or {},
        *whole[1:],
        time.perf_counter() - start,
        finished=time.time(),
        value_error=truth.value_error,
        best_depends=everywhere is None,
    )


def _blocks(numbers: list[int], workers: int) -> list[list[int]]:
    """Blocks of the replications still to run: large enough to be worth a call, small enough to share out."""
    size = max(1, min(_LARGEST_BLOCK, len(numbers) // (_BLOCKS_PER_WORKER * workers)))
    return [numbers[i : i + size] for i in range(0, len(numbers), size)]
