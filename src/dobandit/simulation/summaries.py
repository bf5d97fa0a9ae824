"""Statistics of a sample of regrets: the mean with its 95% interval, and the spread.

The interval is mean +- t sigma / sqrt(N), t Student's quantile (1.96 for many runs). Where the sample is skewed
(|skewness| / sqrt(N) > 0.1, the size of the first Edgeworth correction), it holds less often than in 95 of 100 studies,
and the summary says so. A bootstrap of percentiles would be no better there: of 3 exponential runs it holds the mean in
70 of 100 studies (Student's t: 89), of 20 in 90 (92), of 100 in 94 (95).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import SimulationError

Array = NDArray[np.float64]
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


def grouped_interval(sample: Array, groups: int, size: int) -> tuple[float, float, float]:
    """The paper's layout: `groups` averages of `size` runs each; (mean, low, high) with Student's t over groups."""
    if len(sample) != groups * size or groups < 2:
        raise SimulationError(f"{groups} groups of {size} need {groups * size} replications, but got {len(sample)}.")
    mean, low, high, *_ = summarise(sample.reshape(groups, size).mean(axis=1))
    return mean, low, high


def _quantile(freedom: int) -> float:
    """97.5% quantile of Student's t: 1.96 for many runs, wider for few."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))
