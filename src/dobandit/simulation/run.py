"""Many seeded runs of many policies.

Replication r draws its random numbers from (seed, r) alone: one stream for the world, one for the policies. All
policies meet the same numbers, and no result depends on which worker ran it, or when.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.model.inference import expect
from dobandit.policy.arms_engine import ArmsEngine
from dobandit.policy.base import UNIFORMS, Engine, Problem, copied
from dobandit.policy.general_engine import GeneralEngine
from dobandit.policy.linear_engines import BoxedEngine, LinearEngine, SearchEngine
from dobandit.simulation.loops import Recorder, run_arms, run_boxed, run_general, run_linear, run_search
from dobandit.simulation.study import Study
from dobandit.simulation.world import world_of

MOST_COUNTED = 256  # sets whose plays are kept run by run
_ROUNDS_AT_ONCE = 2048  # bounds the random numbers held in memory

_LOOPS: dict[type[Engine], Callable[..., None]] = {
    LinearEngine: run_linear,
    BoxedEngine: run_boxed,
    GeneralEngine: run_general,
    ArmsEngine: run_arms,
    SearchEngine: run_search,
}


class Block(NamedTuple):
    """Results of a few replications: (policies, replications, ...)."""

    replications: NDArray[np.int64]  # (replications,) their numbers
    regret: NDArray[np.float64]  # (policies, replications, grid)
    reward: NDArray[np.float64]  # (policies, replications, grid)
    best_plays: NDArray[np.int64]  # (policies, replications) rounds in which an optimal set was played
    plays: NDArray[np.int32]  # (policies, replications, sets) rounds in which each set was played; the last: nothing
    seconds: NDArray[np.float64]  # (policies, replications)


class Values:
    """E[Y | do(set)] of every set that some policy may play, computed once a study."""

    def __init__(self, study: Study, problem: Problem) -> None:
        self.study, self.problem = study, problem
        self._known: dict[tuple[str, ...], float] = {}

    def of(self, names: tuple[str, ...]) -> float:
        if names not in self._known:
            self._known[names] = expect(self.study.model, names).value
        return self._known[names]

    def of_sets(self, sets: NDArray[np.int32]) -> NDArray[np.float64]:
        """A value a row, and that of setting nothing at the end."""
        nodes = self.problem.graph.nodes
        rows = [tuple(nodes[i - 1] for i in row) for row in sets.tolist()] or [()]  # a search has no list: room for one
        return np.array([*(self.of(row) for row in rows), self.of(())])


class Runner:
    """Runs replications of a study one after the other; a worker has one of its own."""

    def __init__(self, study: Study, best: float, tables: Sequence[NDArray[np.float64]]) -> None:
        self.study, self.best, self.tables = study, best, tables
        self.problem = study.problem
        self.world = world_of(study.model, self.problem.graph)

    def run(self, replications: Sequence[int]) -> Block:
        study = self.study
        shape = (len(study.policies), len(replications))
        regret, reward = (np.zeros((*shape, len(study.grid))) for _ in range(2))
        best_plays, seconds = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        plays = np.zeros((*shape, counted_sets(self.tables)), dtype=np.int32)
        engines = [policy.engine(self.problem) for policy in study.policies.values()]
        unlearned = [copied(engine.state) for engine in engines]
        self._warm(engines, [self._recorder(table) for table in self.tables])
        for column, replication in enumerate(replications):
            for engine, state in zip(engines, unlearned, strict=True):
                engine.state = copied(state)
            recorders = [self._recorder(table) for table in self.tables]
            for world_draws, policy_draws in self._draws(replication):
                for row, (engine, recorder) in enumerate(zip(engines, recorders, strict=True)):
                    start = time.perf_counter()
                    loop = _LOOPS[type(engine)]
                    loop(engine.plan, engine.state, self.world, recorder, world_draws, policy_draws)
                    seconds[row, column] += time.perf_counter() - start
            for row, recorder in enumerate(recorders):
                regret[row, column], reward[row, column] = recorder.regret, recorder.reward
                optimal = self.tables[row] >= self.best - 1e-12
                found = recorder.plays[-1] if isinstance(engines[row], SearchEngine) else recorder.plays[optimal].sum()
                best_plays[row, column] = found
                if plays.shape[2] and not isinstance(engines[row], SearchEngine):
                    plays[row, column, : len(recorder.plays) - 1] = recorder.plays[:-1]
                    plays[row, column, -1] = recorder.plays[-1]
        return Block(np.array(replications, dtype=np.int64), regret, reward, best_plays, plays, seconds)

    def _warm(self, engines: Sequence[Engine], recorders: Sequence[Recorder]) -> None:
        """Run no rounds at all, so that compiling is not taken for the policy's own time."""
        nothing = np.zeros((0, len(self.study.model.graph))), np.zeros((0, UNIFORMS))
        for engine, recorder in zip(engines, recorders, strict=True):
            _LOOPS[type(engine)](engine.plan, engine.state, self.world, recorder, *nothing)

    def _recorder(self, expected: NDArray[np.float64]) -> Recorder:
        points, nodes = len(self.study.grid), len(self.problem.graph) + 1
        return Recorder(
            expected.copy(),
            self.best,
            np.array(self.study.grid, dtype=np.int64),
            np.zeros(points),
            np.zeros(points),
            np.zeros(len(expected), dtype=np.int64),
            np.zeros(2),
            np.zeros(2, dtype=np.int64),
            np.ones(nodes),
            np.zeros(nodes, dtype=np.bool_),
            np.zeros(0, dtype=np.int32),
        )

    def _draws(self, replication: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        streams = [
            np.random.default_rng(np.random.SeedSequence(self.study.seed, spawn_key=(replication, stream)))
            for stream in range(2)
        ]
        nodes = len(self.study.model.graph)
        for start in range(0, self.study.rounds, _ROUNDS_AT_ONCE):
            rounds = min(_ROUNDS_AT_ONCE, self.study.rounds - start)
            yield streams[0].random((rounds, nodes)), streams[1].random((rounds, UNIFORMS))


def counted_sets(tables: Sequence[NDArray[np.float64]]) -> int:
    """Columns of `Block.plays`: the longest list of sets and "nothing"; 0 where there are too many to keep."""
    most = max(len(table) for table in tables)
    return most if most <= MOST_COUNTED else 0


def prepare(study: Study) -> tuple[float, list[NDArray[np.float64]]]:
    """The best value, and for each policy the value of every set it may play."""
    problem = study.problem
    values = Values(study, problem)
    tables = [values.of_sets(policy.engine(problem).sets) for policy in study.policies.values()]
    from dobandit.oracle.solve import solve

    return max(solve(study.model, study.budget).value, max(float(t.max()) for t in tables)), tables


def run_block(study: Study, prepared: Any, replications: Sequence[int]) -> Block:
    """What a worker does; a function of its arguments alone."""
    return Runner(study, *prepared).run(replications)
