"""Data from before an experiment: summed up to distinct rows with counts, in parts that the log takes in one after
another.

What a node looks like is judged by predictions of rows that are not yet known, so that rows in the order of their
values, as sums have them, would speak for tables and against everything that learns across patterns. So the rounds are
shuffled (always in the same way) and cut into parts, each a small share of all before it: within a part they are
summed up. Each part has a trial for everything that was set. As the order is lost, intervals that rest on an order do
without it (`Engine.update_unordered`).
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import DobanditWarning, ObservationError, ParseError, listed
from dobandit.experiment.batches import Batch
from dobandit.experiment.definition import Definition
from dobandit.experiment.history import Round, read_summed
from dobandit.experiment.rounds import Columns
from dobandit.experiment.storage.base import IMPORTED, ClosedTrial, StoredTrial
from dobandit.experiment.tables import MOST_ROUNDS

if TYPE_CHECKING:
    from dobandit.policy.problem import Problem

_SEED = 20_230_207
_SINGLE = 32  # rounds up to which each is a part by itself
_SHARE = 16  # then a part is one in so many of all before it


class Past(NamedTuple):
    """What is known from before: trials for the log, and what was passed over."""

    trials: tuple[StoredTrial, ...]
    rounds: int
    passed: tuple[str, ...]  # columns that are no variables

    def closed(self) -> list[ClosedTrial]:
        """The trials as a learner takes them in, at the beginning of a log."""
        return [
            ClosedTrial(i, i, trial.state, trial.do, trial.observation, trial.counts, trial.rounds)
            for i, trial in enumerate(self.trials)
        ]


def past_of(definition: Definition, source: Any, now: float | None = None) -> Past:
    """The past of an experiment that is defined, but need not exist."""
    columns = columns_of(definition)
    past = read_past(source, columns, now)
    if definition.problem.selective and not definition.policy.any_graph:
        _require_taught(past, definition.problem, columns)
    return past


def _require_taught(past: Past, problem: Problem, columns: Columns) -> None:
    """A model learns from rounds that set what is always set, and nothing that counts as hidden: some must be there,
    and those that are left out are counted."""
    dos = [trial.do for trial in past.trials]
    taught = problem.teaches(columns.masks(dos))
    left_out = past.rounds - sum(trial.rounds for trial, enters in zip(past.trials, taught, strict=True) if enters)
    if left_out == past.rounds:
        why = [f"set {listed(problem.rules.always_set)}, which is always set"] if problem.rules.always_set else []
        why += [f"leave {listed(problem.hidden)} alone, which counts as hidden"] if problem.hidden else []
        raise ObservationError(
            f"the model learns from rounds that {' and '.join(why)}, but none of the {past.rounds:,} given does. Say "
            "in a column `do` or `intervention_targets` what was set in each row; if it is as the data say, do without "
            f"{'always_set' if problem.rules.always_set else 'hide'}=[...], or take data from other rounds."
        )
    if left_out:
        from dobandit.experiment.diagnosis.findings import on_left_out  # needs Numba, which few commands wait for

        warnings.warn(on_left_out(problem, left_out), DobanditWarning, stacklevel=4)


def columns_of(definition: Definition) -> Columns:
    """The columns of an experiment's log."""
    problem = definition.problem
    return Columns(problem.graph, problem.continuous, definition.graph.latent, problem.hidden)


def read_past(source: Any, columns: Columns, now: float | None = None) -> Past:
    """The past from a CSV or Parquet file, a frame or rows, checked as a whole.

    A row teaches each variable whose value and whose causes' values are there, unless it was set in that row.
    """
    passed: list[str] = []
    rounds = read_summed(source, columns, passed)
    _require_seen(rounds, columns)
    if passed:
        warnings.warn(
            f"columns that are no variables of the graph are passed over: {listed(passed)}.",
            DobanditWarning,
            stacklevel=4,
        )
    counts: Counter[tuple[str, str]] = Counter()
    for one in rounds:
        counts[columns.encode(one.do), columns.encode(one.observation)] += one.times
    partial = {seen for _, seen in counts if "null" in seen and columns.missing(columns.values(seen))}
    total = counts.total()
    if total > MOST_ROUNDS:
        raise ObservationError(f"the data have at most {MOST_ROUNDS:,} rounds, but got {total:,}. Give a part of them.")
    keys = sorted(counts)
    parts = _parts(np.array([counts[key] for key in keys], dtype=np.int64))
    trials = tuple(trial for part in parts for trial in _trials(part, keys, partial, now))
    return Past(trials, total, tuple(passed))


def _require_seen(rounds: list[Round], columns: Columns) -> None:
    """Every variable has a value somewhere: a column that is missing, or misspelt, is not taken for one that is
    empty."""
    seen = {i for one in rounds for i, value in enumerate(one.observation) if value is not None}
    missing = columns.missing([0 if i in seen else None for i in range(len(columns.names))])
    if missing:
        target = columns.graph.target
        way = "Add its column: it is what the data have to tell of."
        if target not in missing:
            way = f"Add the column, or say that it is hidden: latent=[{missing[0]!r}]."
        raise ParseError(
            f"the data have a column for every observed variable, but {listed(missing)} "
            f"{'has' if len(missing) == 1 else 'have'} no value in any row. {way}"
        )


def _parts(counts: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(rows, counts) of each part, of rounds in a shuffled order that depends on the counts alone."""
    order = np.random.default_rng(_SEED).permutation(np.repeat(np.arange(len(counts)), counts))
    parts, done = [], 0
    while done < len(order):
        size = 1 if done < _SINGLE else -(-done // _SHARE)
        parts.append(np.unique(order[done : done + size], return_counts=True))
        done += size
    return parts


def _trials(
    part: tuple[NDArray[np.int64], NDArray[np.int64]], keys: list[tuple[str, str]], partial: set[str], now: float | None
) -> list[StoredTrial]:
    """A trial for everything that was set in a part; keys are sorted, so that equal ones stand together."""
    found: dict[str, list[tuple[str, int]]] = {}
    for row, count in zip(part[0].tolist(), part[1].tolist(), strict=True):
        do, observation = keys[row]
        found.setdefault(do, []).append((observation, count))
    return [
        Batch(
            observation=f"[{','.join(text for text, _ in rows)}]",
            counts=f"[{','.join(str(count) for _, count in rows)}]",
            rounds=sum(count for _, count in rows),
            partial=any(text in partial for text, _ in rows),
        ).trial(IMPORTED, do, now)
        for do, rows in found.items()
    ]
