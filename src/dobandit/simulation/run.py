"""Many seeded runs of many policies.

Replication r draws its random numbers from (seed, r) alone: one stream for the world, one for the policies. All
policies meet the same numbers, and no result depends on which worker ran it, or when.
Finished blocks are kept on disk (`Checkpoint`), so that a study goes on after a crash: one small file a block, whole or
absent.
"""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import shown
from dobandit.compile_mode import compiling_ahead
from dobandit.errors import SimulationError
from dobandit.policy.engine import Draws, Engine
from dobandit.policy.questions import listed_actions, play_rounds, run
from dobandit.policy.recording import Recorder, blank_tape
from dobandit.policy.world import World
from dobandit.simulation.study import Study
from dobandit.simulation.study_worlds import FunctionModel, FunctionWorld, SampledTruth, Truth
from dobandit.text_files import write_atomically

_ROUNDS_AT_ONCE = 2048  # bounds the random numbers held in memory
_MOST_COUNTED = 256  # actions whose plays are kept run by run
_COMPILED = ("the simulation", "about 10 s for each policy")


class Block(NamedTuple):
    """Results of a few replications: (policies, replications, ...)."""

    replications: NDArray[np.int64]  # (replications,) their numbers
    regret: NDArray[np.float64]  # (policies, replications, grid)
    reward: NDArray[np.float64]  # (policies, replications, grid)
    best_plays: NDArray[np.int64]  # (policies, replications) rounds in which an optimal action was played
    plays: NDArray[np.int32]  # (policies, replications, actions) rounds in which each was played; the last: nothing
    seconds: NDArray[np.float64]  # (policies, replications)


def blank_block(study: Study, columns: int, replications: Sequence[int]) -> Block:
    """Before any round of these replications; columns: of `Block.plays`."""
    shape = (len(study.policies), len(replications))
    regret, reward = np.zeros((2, *shape, len(study.grid)))
    best_plays, plays = np.zeros(shape, dtype=np.int64), np.zeros((*shape, columns), dtype=np.int32)
    return Block(np.array(replications, dtype=np.int64), regret, reward, best_plays, plays, np.zeros(shape))


class Prepared(NamedTuple):
    """What is worked out once per study: the truth that regret is measured by, and the value of every action that some
    policy may play: (patterns, actions + 1) per policy, without columns where it has no list."""

    truth: Truth
    tables: tuple[NDArray[np.float64], ...]

    @property
    def counted(self) -> int:
        """Columns of `Block.plays`: the longest list of actions and "nothing"; 0 where there are too many to keep."""
        most = max(table.shape[1] for table in self.tables)
        return most if most <= _MOST_COUNTED else 0


class Runner:
    """Runs replications of a study one after the other; a worker has one of its own."""

    def __init__(self, study: Study, prepared: Prepared) -> None:
        self.study, self.prepared, self.problem = study, prepared, study.problem
        model, graph = study.model, self.problem.graph
        self.world: Any = FunctionWorld(model, graph) if isinstance(model, FunctionModel) else World(model, graph)

    def run(self, replications: Sequence[int]) -> Block:
        study, block = self.study, blank_block(self.study, self.prepared.counted, replications)
        unlearned = [policy.engine(study.problem_for(policy)) for policy in study.policies.values()]
        self._warm(unlearned)
        for column, replication in enumerate(replications):
            engines = [engine.copy() for engine in unlearned]
            recorders = self._recorders(engines)
            for row, draws in self.stretches(engines, replication):
                start = time.perf_counter()
                self.play(engines[row], recorders[row], draws)
                block.seconds[row, column] += time.perf_counter() - start
            for row, tape in enumerate(recorder.tape for recorder in recorders):
                block.regret[row, column], block.reward[row, column] = tape.curve["regret"], tape.curve["reward"]
                block.best_plays[row, column] = tape.totals[0]["optimal"]
                if block.plays.shape[2] and len(tape.plays):
                    block.plays[row, column, : len(tape.plays) - 1] = tape.plays[:-1]
                    block.plays[row, column, -1] = tape.plays[-1]
        return block

    def play(self, engine: Engine, recorder: Recorder, draws: Draws) -> None:
        if isinstance(self.world, FunctionWorld):  # compiled rounds have no use for a function
            play_rounds(engine, self.world, recorder, draws)
        else:
            run(engine, self.world, recorder, draws)

    def _warm(self, engines: Sequence[Engine]) -> None:
        """Run no rounds at all (against a function: one), so that compiling is not taken for the policy's own time."""
        rounds = 1 if isinstance(self.world, FunctionWorld) else 0
        for engine, recorder in zip(engines, self._recorders(engines), strict=True):
            some = Draws(np.zeros((rounds, len(self.study.model.graph))), np.zeros((rounds, engine.draws)))
            with compiling_ahead(*_COMPILED):
                self.play(engine.copy(), recorder, some)

    def _recorders(self, engines: Sequence[Engine]) -> list[Recorder]:
        truth, grid = self.prepared.truth, np.array(self.study.grid, dtype=np.int64)
        return [
            Recorder(blank_tape(table, truth.best, grid), truth.value, self.problem.context_ids, listed_actions(engine))
            for engine, table in zip(engines, self.prepared.tables, strict=True)
        ]

    def stretches(self, engines: Sequence[Engine], replication: int) -> Iterator[tuple[int, Draws]]:
        """(policy, random numbers) of some rounds at a time. A policy's numbers do not depend on what others need: each
        row begins with those that every policy gets, and the rest is drawn for each policy by itself."""

        def stream(number: int) -> np.random.Generator:
            return np.random.default_rng(np.random.SeedSequence(self.study.seed, spawn_key=(replication, number)))

        shared, own = [stream(0), stream(1)], [stream(2) for _ in engines]
        nodes, usual = len(self.study.model.graph), Engine.draws
        for start in range(0, self.study.rounds, _ROUNDS_AT_ONCE):
            rounds = min(_ROUNDS_AT_ONCE, self.study.rounds - start)
            world, policy = shared[0].random((rounds, nodes)), shared[1].random((rounds, usual))
            for row, engine in enumerate(engines):
                more = own[row].random((rounds, max(engine.draws - usual, 0)))
                yield row, Draws(world, np.hstack([policy[:, : engine.draws], more]))


def prepare(study: Study) -> Prepared:
    """The truth, computed where the world is a model and estimated where it is a function, and the value of every
    action that each policy may play."""
    with compiling_ahead(*_COMPILED):
        truth = (SampledTruth if isinstance(study.model, FunctionModel) else Truth)(study.model, study.problem)
        engines = [policy.engine(study.problem_for(policy)) for policy in study.policies.values()]
        return Prepared(truth, tuple(truth.table(listed_actions(engine)) for engine in engines))


def run_block(study: Study, prepared: Prepared, replications: Sequence[int]) -> Block:
    """What a worker does; a function of its arguments alone."""
    return Runner(study, prepared).run(replications)


_FOLDER, _MARK = "unfinished", "study.json"
UNREADABLE = (OSError, ValueError, LookupError, TypeError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)


def read_arrays(file: Path, names: Iterable[str]) -> dict[str, Any]:
    """The named arrays of an archive; where it is damaged, one of UNREADABLE is raised."""
    with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as archive:
        return {name: archive[name] for name in names}


class Checkpoint:
    """Blocks of one study in a folder; blocks of another study in the same place are refused."""

    def __init__(self, folder: str | os.PathLike[str], study: Study) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise SimulationError(f"a checkpoint is a folder, given by its path, but got {shown(folder)}.")
        mark = {"fingerprint": study.fingerprint()}  # refuses what a file cannot hold, before anything is made
        self.folder = Path(folder) / _FOLDER
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not (self.folder / _MARK).exists():
                write_atomically(self.folder / _MARK, json.dumps(mark))
            found = json.loads((self.folder / _MARK).read_text())
        except (OSError, ValueError) as error:
            raise SimulationError(f"{self.folder}: cannot keep unfinished work here ({error}).") from None
        if found != mark:
            raise SimulationError(
                f"{self.folder} holds an unfinished study with other settings. Finish that one with the same settings, "
                "choose another folder, or remove it."
            )

    def add(self, block: Block) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, **block._asdict())
        write_atomically(self.folder / f"block-{block.replications[0]:09d}.npz", buffer.getvalue())

    def finished(self) -> Iterator[Block]:
        """Blocks of earlier runs; a file that cannot be read counts as absent."""
        for file in sorted(self.folder.glob("block-*.npz")):
            try:
                block = Block(**read_arrays(file, Block._fields))
            except UNREADABLE:
                continue
            yield block


def remove_finished(folder: str | os.PathLike[str], study: Study) -> None:
    """Clear up the unfinished work of a study that is saved whole; that of other studies stays."""
    home = Path(folder) / _FOLDER
    try:
        if json.loads((home / _MARK).read_text()) == {"fingerprint": study.fingerprint()}:
            for file in home.iterdir():
                file.unlink(missing_ok=True)
            home.rmdir()
    except (OSError, ValueError):
        return
