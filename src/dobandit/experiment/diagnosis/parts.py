"""What a diagnosis is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LEVEL = 0.01  # chance that some node of a right model is said to contradict its data
FAR = 3.0  # standard errors between prediction and observation that are no longer chance
FEWEST = 20  # trials for a verdict on predictions, and rounds for a mean of residuals
AGREES, CONTRADICTS, UNTESTED = "agrees", "contradicts", "cannot be tested"
LEARNED = "is learned"  # by pattern of its causes: whatever it looks like, no row contradicts it


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


@dataclass(frozen=True)
class Worst:
    """Where a node is furthest from its link; ones: the parents at 1, None where patterns were pooled."""

    ones: tuple[str, ...] | None
    observed: float
    fitted: float
    count: int


@dataclass(frozen=True)
class NodeDiagnosis:
    """A node's data. identified: some data would have told other weights apart.  lambda_min: of the learner's M.

    p, corrected: of the test of its link, alone and by Holm among all nodes.
    zeta: the least share of a parent's value given the other parents, where no parent was set (Assumption 3).
    """

    name: str
    rows: int
    identified: bool
    status: str
    lambda_min: float | None
    zeta: float | None
    verdict: str = UNTESTED
    statistic: float | None = None
    df: int = 0
    p: float | None = None
    corrected: float | None = None
    worst: Worst | None = None
    causes: bool = True  # whether it has any


@dataclass(frozen=True)
class VariableDiagnosis:
    """Shares of the rounds in which it was not seen, and was set; its extremes where it was seen and not set."""

    name: str
    missing: float
    was_set: float
    least: float | None
    most: float | None
