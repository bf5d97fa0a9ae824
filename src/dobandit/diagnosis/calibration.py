"""Predictions against what was then seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation.confidence import Z95, wilson
from dobandit.policy.engine import Array

FAR = 3.0  # standard errors between prediction and observation that are no longer chance
FEWEST = 20  # trials for a verdict on predictions, and rounds for a mean of residuals


class DiagnosisTimeoutError(Exception):
    """A diagnosis was not done within the time that it was given."""


class Foretold(NamedTuple):
    """E[target] as it was predicted before a round, what then came, and which trial it is of, in the log's order."""

    predicted: Array
    came: Array
    trial: NDArray[np.int64]

    def only(self, which: NDArray[Any]) -> Foretold:
        return Foretold(self.predicted[which], self.came[which], self.trial[which])


class Bin(NamedTuple):
    """Rounds with similar predictions; low, high: 95% interval of the mean observed."""

    predicted: float
    observed: float
    rounds: int
    low: float
    high: float
    level: float = 0.95  # of the interval, at this round


@dataclass(frozen=True)
class Calibration:
    """Predicted against observed targets; difference = observed - predicted, z in standard errors.

    count, trials  rounds, and the trials that they are of: all rounds of a trial have one prediction
    """

    count: int
    predicted: float
    observed: float
    difference: float
    z: float
    brier: float
    bins: tuple[Bin, ...]
    trials: int = 0


def calibration_of(p: Array, y: Array, trial: NDArray[np.int64], continuous: bool) -> Calibration | None:
    """Of rounds, with what was predicted of each, what then came, and the trial that each is of."""
    if not len(p):
        return None
    off = y - p
    trials, error = len(np.unique(trial)), _standard_error(p, off, trial, continuous)
    difference = float(off.mean())
    z = difference / error if error > 0.0 else math.nan if error else math.copysign(math.inf, difference)
    z = 0.0 if abs(difference) < 1e-12 else z
    group = quantile_groups(p, 5)
    bins = tuple(_bin(p[group == g], y[group == g], continuous) for g in range(group.max() + 1))
    return Calibration(len(p), float(p.mean()), float(y.mean()), difference, z, float(np.mean(off**2)), bins, trials)


def _standard_error(p: Array, off: Array, trial: NDArray[np.int64], continuous: bool) -> float:
    """Of the mean of `off`. Rounds of one trial share one prediction, and are off by its error all together: where that
    is more than chance among them explains, it is the square of the trial's sum that counts."""
    if continuous:
        each = np.full(len(p), off.var(ddof=1) if len(p) > 1 else math.nan)
    else:  # a prediction of 0 or 1 is meant as one that is near
        near = np.clip(p, 0.001, 0.999)
        each = near * (1.0 - near)
    _, which, rounds = np.unique(trial, return_inverse=True, return_counts=True)
    chance, sums = np.bincount(which, each), np.bincount(which, off)
    variance = np.where(rounds > 1, np.maximum(chance, sums**2), chance)
    return math.sqrt(float(np.sum(variance))) / len(p)


def last_half(trial: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The rounds of the last half of the trials. No trial is split: the order of its rounds was not kept."""
    every = np.unique(trial)
    half: NDArray[np.bool_] = np.isin(trial, every[len(every) // 2 :])
    return half


def quantile_groups(x: Array, parts: int) -> NDArray[np.int64]:
    """Up to `parts` groups of equal size by value; equal values stay together, so that there may be fewer."""
    ends = np.quantile(x, np.arange(1, parts) / parts, method="lower")
    group = np.searchsorted(np.unique(ends), x, side="left")
    return np.cumsum(np.bincount(group) > 0)[group] - 1


def _bin(p: Array, y: Array, continuous: bool) -> Bin:
    """Wilson's interval for 0/1 data, else the normal one."""
    n, mean = len(y), float(y.mean())
    if continuous:
        reach = Z95 * float(y.std(ddof=1)) / math.sqrt(n) if n > 1 else 1.0
        low, high = max(mean - reach, 0.0), min(mean + reach, 1.0)
    else:
        low, high = wilson(mean, n)
    return Bin(float(p.mean()), mean, n, low, high)


def verdict_on(recent: Calibration | None) -> str:
    if recent is None:
        return "no predictions to compare"
    if recent.trials < FEWEST or math.isnan(recent.z):
        return f"too few {'rounds' if recent.trials == recent.count else 'trials'} to tell"
    if abs(recent.z) <= FAR:
        return "calibrated"
    return f"predictions are too {'low' if recent.z > 0 else 'high'} by {abs(recent.difference):.3g}"
