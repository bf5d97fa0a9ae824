"""The paper's simulations (Appendix H.2): five models, six policies, 600 runs of each.

rho is a tenth of the formula for BLM-LR and BLM-OFU; T0 = T / 100 for BLM-OFU; the region is Algorithm 4's ellipsoid;
UCB, UCB with a tenth of its bound, and epsilon-greedy 0.1 and 0.01 play over all K-subsets, ties broken at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dobandit import paper
from dobandit.errors import SimulationError, closest, listed
from dobandit.policy.base import Policy
from dobandit.policy.bglm_ofu import BGLMOFU
from dobandit.policy.blm_lr import BLMLR
from dobandit.policy.epsilon_greedy import EpsilonGreedy
from dobandit.policy.ucb import UCB
from dobandit.simulation.result import StudyResult
from dobandit.simulation.study import Study, study_of

REPLICATIONS = 600
# Cumulative regret at the last round, read off the published plots to about 3 percent.
PUBLISHED: dict[str, dict[str, float]] = {
    "G1": {
        "BLM-LR": 39,
        "BLM-OFU": 67,
        "UCB": 650,
        "UCB (scaled)": 501,
        "eps-greedy (0.1)": 283,
        "eps-greedy (0.01)": 314,
    },
    "G2": {
        "BLM-LR": 18.6,
        "BLM-OFU": 19.2,
        "UCB": 293,
        "UCB (scaled)": 80,
        "eps-greedy (0.1)": 129,
        "eps-greedy (0.01)": 142,
    },
    "G3": {
        "BLM-LR": 16.9,
        "BLM-OFU": 17.5,
        "UCB": 224,
        "UCB (scaled)": 133,
        "eps-greedy (0.1)": 85,
        "eps-greedy (0.01)": 162,
    },
    "G4": {
        "BLM-LR": 11.8,
        "BLM-OFU": 15.4,
        "UCB": 110,
        "UCB (scaled)": 110,
        "eps-greedy (0.1)": 70,
        "eps-greedy (0.01)": 108,
    },
    "G5": {
        "BLM-LR": 13.7,
        "BLM-OFU": 72,
        "UCB": 291,
        "UCB (scaled)": 346,
        "eps-greedy (0.1)": 365,
        "eps-greedy (0.01)": 260,
    },
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
