"""What a study found: curves of every replication, their statistics, and the file that holds it all.

The file is a NumPy archive (.npz, no pickles) with these arrays and one JSON text:
    study        JSON: {"format": "dobandit-study", "version": 1, "study": {...}, "best": E[Y | do(best set)], ...}
    regret       (policies, replications, grid) cumulative expected regret at the rounds in the study's grid
    reward       (policies, replications, grid) cumulative Y
    best_plays   (policies, replications) rounds in which an optimal action was played
    plays        (policies, replications, sets) rounds in which each set was played, the last column: nothing was set;
                 no columns where there are more than 256 sets, or where a policy searches without a list of sets
    seconds      (policies, replications) compute time

Intervals of a mean are mean +- t sigma / sqrt(N), t Student's quantile (1.96 for many runs). Where the sample is skewed
(|skewness| / sqrt(N) > 0.1, the size of the first Edgeworth correction), it holds less often than in 95 of 100 studies,
and the summary says so. A bootstrap of percentiles would be no better there: of 3 exponential runs it holds the mean in
70 of 100 studies (Student's t: 89), of 20 in 90 (92), of 100 in 94 (95).
"""

from __future__ import annotations

import io
import json
import math
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import shown
from dobandit.errors import DobanditError, SimulationError, closest, listed
from dobandit.estimation.assumptions import diagnose_assumptions
from dobandit.model.bglm import BinaryGLM, LinearModel
from dobandit.policy.questions import listed_actions
from dobandit.simulation.run import UNREADABLE, read_arrays, remove_finished
from dobandit.simulation.study import TRUTHFUL, Study
from dobandit.text_files import write_atomically

FORMAT, VERSION = "dobandit-study", 1
FILE_NAME = "study.npz"
Array = NDArray[np.float64]
_ARRAYS: dict[str, tuple[str, Any]] = {  # in the file: the attribute, and its type
    "regret": ("all_regret", float),
    "reward": ("all_reward", float),
    "best_plays": ("best_plays", np.int64),
    "plays": ("all_plays", np.int32),
    "seconds": ("seconds", float),
}
QUANTILES = (0.05, 0.5, 0.95)


class Summary(NamedTuple):
    """Statistics of a sample, such as the regrets of all runs.

    mean            with its 95% interval: low, high
    method          of the interval: "normal", "skewed" (it holds less often) or "none" (one replication)
    standard_error  of the mean
    quantiles       by probability: those of QUANTILES
    size            how many there are
    """

    mean: float
    low: float
    high: float
    method: str
    standard_error: float
    quantiles: dict[float, float]
    size: int


class Difference(NamedTuple):
    """Of paired samples, the first minus the second.

    mean           with its 95% interval: low, high
    method         of the interval, as in `Summary`
    smaller_share  the share of pairs in which the first is smaller
    """

    mean: float
    low: float
    high: float
    method: str
    smaller_share: float


def summarise(sample: Array) -> Summary:
    count, mean = len(sample), float(sample.mean())
    quantiles = {q: float(np.quantile(sample, q)) for q in QUANTILES}
    if count < 2:
        return Summary(mean, mean, mean, "none", math.nan, quantiles, count)
    spread = float(sample.std(ddof=1))
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return Summary(mean, mean, mean, "normal", 0.0, quantiles, count)
    skewness = float(np.mean(((sample - mean) / spread) ** 3))
    method = "skewed" if abs(skewness) / math.sqrt(count) > 0.1 else "normal"
    error = spread / math.sqrt(count)
    half = _quantile(count - 1) * error
    return Summary(mean, mean - half, mean + half, method, error, quantiles, count)


def paired_difference(first: Array, second: Array) -> Difference:
    if len(first) != len(second):
        raise SimulationError(f"paired samples have one length, but got {len(first)} and {len(second)}.")
    difference = first - second
    difference[np.abs(difference) <= 1e-9 * np.maximum(1.0, np.abs(first))] = 0.0  # rounding is no difference
    mean, low, high, method, *_ = summarise(difference)
    return Difference(mean, low, high, method, float(np.mean(difference < 0) + 0.5 * np.mean(difference == 0)))


def curve_interval(sample: Array) -> tuple[Array, Array, Array]:
    """(mean, low, high) of curves (replications, grid): Student's interval at every point."""
    mean = sample.mean(axis=0)
    if len(sample) < 2:
        return mean, mean, mean
    half = _quantile(len(sample) - 1) * sample.std(axis=0, ddof=1) / math.sqrt(len(sample))
    return mean, mean - half, mean + half


def _quantile(freedom: int) -> float:
    """97.5% quantile of Student's t: 1.96 for many runs, wider for few."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


@dataclass(frozen=True)
class StudyResult:
    """Curves are indexed [policy, replication, grid point]; policies and grid are the study's, and a policy is named by
    its label, one of `labels`."""

    study: Study
    best: float  # the largest E[Y] of an allowed action; with context variables, on the average over contexts
    best_do: dict[str, float]  # the action that has it; empty where none is best in every context
    all_regret: Array
    all_reward: Array
    best_plays: NDArray[np.int64]
    all_plays: NDArray[np.int32]
    seconds: Array
    elapsed: float  # wall time of the whole study
    name: str = ""  # what the study is called on its page
    finished: float | None = None  # when it was done, in seconds since 1970; None where that was not kept
    value_error: float = 0.0  # standard error of a regret per round, where values are estimated (a world is a function)
    best_depends: bool = False  # whether no action is best in every context

    @property
    def labels(self) -> list[str]:
        """What the policies are called here, in the order in which they were given."""
        return list(self.study.policies)

    @cached_property
    def grid(self) -> NDArray[np.int64]:
        """The rounds at which curves are recorded."""
        return np.array(self.study.grid, dtype=np.int64)

    def regret(self, label: str, *, alpha: float = 1.0, beta: float = 1.0) -> Array:
        """(replications, grid): cumulative expected regret, Eq. (1).

        label        the policy's, one of `labels`
        alpha, beta  below 1: the (alpha, beta)-approximation regret of Eq. (2), for policies with an approximate oracle

        >>> import dobandit as dob
        >>> study = dob.simulate(dob.paper.G4, ["oracle", "random"], rounds=20, replications=3)
        >>> study.regret("Random").shape == study.reward("Random").shape == (3, len(study.grid))
        True
        >>> study.summary_of("Random").size, study.difference("Random", "Random").mean, study.best_share("Oracle")
        (3, 0.0, 1.0)
        >>> mean, low, high = study.grouped("Random", groups=3, size=1)
        >>> low < mean < high, study.plays("Random")[()].tolist(), study.bound("Random")
        (True, [0, 0, 0], None)
        """
        for name, value in (("alpha", alpha), ("beta", beta)):
            if not 0 < value <= 1:
                raise SimulationError(f"{name} must be above 0 and at most 1, but got {value!r}.")
        return np.asarray(self.all_regret[self._row(label)] - (1.0 - alpha * beta) * self.best * self.grid)

    def reward(self, label: str) -> Array:
        """(replications, grid): cumulative Y as it came out."""
        return np.asarray(self.all_reward[self._row(label)])

    def summary_of(self, label: str, round_number: int | None = None) -> Summary:
        """Statistics of the cumulative regret of one policy: see `Summary`.

        round_number  a recorded round (default: the last)
        """
        return summarise(self.regret(label)[:, self._column(round_number)])

    def difference(self, label: str, other: str, round_number: int | None = None) -> Difference:
        """Regret of one policy minus that of another, run by run on common random numbers: see `Difference`.

        round_number  a recorded round (default: the last)
        """
        column = self._column(round_number)
        return paired_difference(self.regret(label)[:, column], self.regret(other)[:, column])

    def grouped(self, label: str, groups: int = 20, size: int = 30) -> tuple[float, float, float]:
        """The paper's layout: (mean, low, high) of the last regret, from averages of groups of runs.

        groups, size  how many groups, and how many runs in each: together the study's replications
        """
        sample = self.regret(label)[:, -1]
        if len(sample) != groups * size or groups < 2:
            raise SimulationError(f"{groups} groups of {size} need {groups * size} runs, but got {len(sample)}.")
        mean, low, high, *_ = summarise(sample.reshape(groups, size).mean(axis=1))
        return mean, low, high

    def bound(self, label: str) -> Array | None:
        """(grid,): what the paper's theorem promises at most for a policy on this model; None where it says nothing.

        The constants in the proofs are large: at usual horizons the bound exceeds the number of rounds.
        """
        name = self.study.policies[self.labels[self._row(label)]].name
        if not isinstance(self.study.model, (BinaryGLM, LinearModel)) or self.study.view != TRUTHFUL:
            return None  # the theorem is about a learner whose model is the world's
        known = diagnose_assumptions(self.study.model, self.study.rounds)
        bounds = {"blm-lr": known.regret_bound_blm_lr, "bglm-ofu": known.regret_bound_bglm_ofu}
        values = [bounds[name](int(t)) for t in self.grid] if name in bounds else [None]
        return None if None in values else np.array(values)

    @property
    def best_set(self) -> tuple[str, ...]:
        """The variables that the best action sets."""
        return tuple(self.best_do)

    def plays(self, label: str) -> dict[tuple[str, ...], NDArray[np.int64]]:
        """How often each action was played: by its variables ("price=0" where one is not set to 1), a count per
        replication; () is setting nothing.

        Empty where the actions are too many to keep (more than 256), or are not listed (branch and bound, greedy).
        """
        counts, policy = self.all_plays[self._row(label)].astype(np.int64), self.study.policies[label]
        problem = self.study.problem_for(policy)
        actions = listed_actions(policy.engine(problem))
        if not counts.shape[1] or actions is None:
            return {}
        named: dict[tuple[str, ...], NDArray[np.int64]] = {}
        for k in (*range(len(actions.ids)), -1):
            do = (problem.idle() if k < 0 else actions.row(k)).named(problem.graph)
            key = tuple(name if value == 1 else f"{name}={value:g}" for name, value in do.items())
            named[key] = named.get(key, 0) + counts[:, k]
        return named

    def best_share(self, label: str) -> float:
        """The share of rounds in which a policy played an optimal action."""
        return float(self.best_plays[self._row(label)].mean() / self.study.rounds)

    def microseconds_per_round(self, label: str) -> float:
        """What a round of a policy took, on the average."""
        return float(self.seconds[self._row(label)].mean() / self.study.rounds * 1e6)

    def _row(self, label: str) -> int:
        if label not in self.study.policies:
            hint = closest(label, self.study.policies)
            raise SimulationError(f"the study's policies are {listed(self.study.policies)}, not {label!r}.{hint}")
        return self.labels.index(label)

    def _column(self, round_number: int | None) -> int:
        if round_number is None:
            return len(self.grid) - 1
        column = int(np.searchsorted(self.grid, round_number))
        if column >= len(self.grid) or self.grid[column] != round_number:
            near = self.grid[min(column, len(self.grid) - 1)]
            raise SimulationError(f"round {round_number} was not recorded; the next recorded one is {near}.")
        return column

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write study.npz; the file appears whole or not at all. Unfinished work of this study that was kept in the
        folder is then removed.

        folder  where to write it; it is made where it does not exist

        Returns the path of the file, which `load_result` reads: there is an example.
        """
        path = Path(folder) / FILE_NAME
        document = {
            "format": FORMAT,
            "version": VERSION,
            "study": self.study.to_document(),
            "best": self.best,
            "best_do": self.best_do,
            "best_depends": self.best_depends,
            "elapsed": self.elapsed,
            "name": self.name,
            "finished": self.finished,
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SimulationError(f"{folder}: the folder cannot be made ({error.strerror}). Choose another.") from None
        buffer = io.BytesIO()
        arrays = {name: getattr(self, attribute) for name, (attribute, _) in _ARRAYS.items()}
        np.savez_compressed(buffer, study=np.array(json.dumps(document)), **arrays)
        write_atomically(path, buffer.getvalue())
        remove_finished(folder, self.study)
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> StudyResult:
        """A saved study; `load_result` reads one with its pictures and tables, and has an example.

        path  the file, or the folder that holds it
        """
        if not isinstance(path, (str, os.PathLike)):
            raise SimulationError(f"a saved study is given by its path, but got {shown(path)}. Write the path as text.")
        file = Path(path)
        try:
            file = file / FILE_NAME if file.is_dir() else file
            arrays = read_arrays(file, ("study", *_ARRAYS))
            document = json.loads(str(arrays["study"]))
        except FileNotFoundError:
            raise SimulationError(f"{file}: there is no saved study. Run `dobandit simulate ... --out DIR`.") from None
        except UNREADABLE as error:
            raise SimulationError(f"{file}: this is not a saved study ({error}).") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise SimulationError(f"{file}: this is not a saved study.")
        if document.get("version") != VERSION:
            raise SimulationError(
                f"{file}: the study was saved in version {document.get('version')}, but this dobandit reads version "
                f"{VERSION}. Update dobandit."
            )
        try:
            study = Study.from_document(document["study"])
            curves: Any = {to: np.asarray(arrays[name], dtype) for name, (to, dtype) in _ARRAYS.items()}
            result = cls(
                study,
                float(document["best"]),
                dict(document["best_do"]),
                **curves,
                elapsed=float(document["elapsed"]),
                name=str(document["name"]),
                finished=None if document["finished"] is None else float(document["finished"]),
                best_depends=bool(document["best_depends"]),
            )
            shape = len(study.policies), study.replications
            for array in (result.all_regret, result.all_reward):
                if array.shape != (*shape, len(study.grid)) or not np.all(np.isfinite(array)):
                    raise ValueError("a curve is incomplete")
            if not result.best_plays.shape == result.seconds.shape == result.all_plays.shape[:2] == shape:
                raise ValueError("the counts are incomplete")
        except (DobanditError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise SimulationError(f"{file}: the saved study is damaged ({error}).") from None
        return result
