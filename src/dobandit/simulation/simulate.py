"""`run_study`: a study from its parts to its result."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dobandit.errors import SimulationError
from dobandit.simulation.checkpoint import Checkpoint
from dobandit.simulation.executors import Executor, executor_of
from dobandit.simulation.result import StudyResult
from dobandit.simulation.run import Block, blank_block, prepare
from dobandit.simulation.study import Study

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
