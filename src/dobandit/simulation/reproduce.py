"""The paper's simulations (Appendix H.2): five models, six policies, 600 runs of each.

rho is a tenth of the formula for BLM-LR and BLM-OFU; T0 = T / 100 for BLM-OFU; the region is Algorithm 4's ellipsoid;
UCB, UCB with a tenth of its bound, and epsilon-greedy 0.1 and 0.01 play over all K-subsets, ties broken at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dobandit import paper
from dobandit.errors import SimulationError, closest, listed
from dobandit.policy.arms import UCB, EpsilonGreedy
from dobandit.policy.base import Policy
from dobandit.policy.bglm_ofu import BGLMOFU
from dobandit.policy.blm_lr import BLMLR
from dobandit.simulation.result import StudyResult
from dobandit.simulation.study import Study, study_of

REPLICATIONS = 600
_POLICIES = ("BLM-LR", "BLM-OFU", "UCB", "UCB (scaled)", "eps-greedy (0.1)", "eps-greedy (0.01)")
# Cumulative regret at the last round, read off the published plots to about 3 percent.
PUBLISHED: dict[str, dict[str, float]] = {
    graph: dict(zip(_POLICIES, regrets, strict=True))
    for graph, regrets in {
        "G1": (39, 67, 650, 501, 283, 314),
        "G2": (18.6, 19.2, 293, 80, 129, 142),
        "G3": (16.9, 17.5, 224, 133, 85, 162),
        "G4": (11.8, 15.4, 110, 110, 70, 108),
        "G5": (13.7, 72, 291, 346, 365, 260),
    }.items()
}
# The published script keeps one run of each group of 30: its averages are of 20 runs, not of 600.
PUBLISHED_RUNS = 20
READING_ERROR = 0.03


def paper_policies(rounds: int) -> dict[str, Policy]:
    """The policies of the paper's figures for a run of so many rounds."""
    return {
        "BLM-LR": BLMLR(radius_scale=0.1),
        "BLM-OFU": BGLMOFU(radius_scale=0.1, initial=rounds // 100),
        "UCB": UCB(),
        "UCB (scaled)": UCB(scale=0.1),
        "eps-greedy (0.1)": EpsilonGreedy(0.1),
        "eps-greedy (0.01)": EpsilonGreedy(0.01),
    }


def paper_study(name: str, replications: int = REPLICATIONS, seed: int = 0) -> Study:
    """One of the five experiments."""
    if name not in paper.MODELS:
        raise SimulationError(
            f"the paper's models are {listed(paper.MODELS)}, but got {name!r}.{closest(name, paper.MODELS)}"
        )
    rounds = paper.ROUNDS[name]
    return study_of(paper.MODELS[name], paper_policies(rounds), rounds, replications, paper.BUDGETS[name], seed)


@dataclass(frozen=True)
class Comparison:
    """Our mean beside the published one; the difference counts in standard errors of both and of reading the plot."""

    graph: str
    policy: str
    ours: float
    published: float
    standard_errors: float

    @property
    def relative(self) -> float:
        return self.ours / self.published - 1.0

    @property
    def agrees(self) -> bool:
        """Within 10 percent or 3 standard errors."""
        return abs(self.relative) <= 0.10 or abs(self.standard_errors) <= 3.0

    @property
    def remark(self) -> str:
        """What is to be said of the difference."""
        if abs(self.relative) <= 0.10:
            return "within 10%"
        if math.isnan(self.standard_errors):
            return "one run: no error is known"
        size = f"{abs(self.standard_errors):.1f} standard errors"
        if self.agrees:
            return f"{size}: within the error of an average of {PUBLISHED_RUNS} runs"
        return f"{size}: differs; the published value is an average of {PUBLISHED_RUNS} heavy-tailed runs"


def compare(name: str, result: StudyResult) -> list[Comparison]:
    """Our regrets beside the published ones.

    The error of the published average is that of PUBLISHED_RUNS runs with our spread, plus that of reading the plot.
    """
    rows = []
    for policy, published in PUBLISHED[name].items():
        summary = result.summary_of(policy)
        own = summary.standard_error  # of one run: unknown (NaN), and so is the difference
        theirs = own * math.sqrt(summary.size / PUBLISHED_RUNS)
        error = math.sqrt(own**2 + theirs**2 + (READING_ERROR * published) ** 2)
        rows.append(Comparison(name, policy, summary.mean, published, (summary.mean - published) / error))
    return rows
