"""BLM-LR (paper, Algorithm 3): linear regression and optimism, for linear models with or without hidden variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobandit.errors import PolicyError
from dobandit.estimation.confidence import DEFAULT_DELTA, checked_delta, delta_blm_lr
from dobandit.policy.base import Policy, positive, require_bool, require_choice, require_nonnegative
from dobandit.policy.engine import Engine
from dobandit.policy.evaluators import ORACLES, REGIONS, linear_estimate, linear_regions
from dobandit.policy.model_engine import ModelEngine, Parts
from dobandit.policy.problem import Problem
from dobandit.policy.radii import LEMMA, PAPER, region_reach


@dataclass(frozen=True)
class BLMLR(Policy):
    """Linear regression with M0 = I; each round plays the set whose optimistic E[Y] is largest.

    radius_scale  multiplies rho_t; the guarantee is for 1, the paper's simulations use 0.1
    region        "closed-form": ellipsoids, as in Algorithm 4; "boxed": ellipsoids within [0,1], exactly
    oracle        "exhaustive": every set of K; "greedy": greedy steps and exchanges, with nothing proved; "auto": every
                  set where they can be listed, else greedy
    radius        "paper": rho_t with n, as in Algorithm 3; "lemma": with a node's number of parents (Lemma 11)
    delta         chance that some region fails; default: 1 / (n sqrt(T)) per node, or 0.05 in all without a horizon
    clipped       run although effects may do harm, and read harm as no effect

    >>> import dobandit as dob
    >>> learner = dob.BLMLR(radius_scale=0.1).start(dob.paper.G1.graph, budget=3, horizon=100, seed=0)
    >>> len(learner.propose())
    3
    """

    name: ClassVar[str] = "blm-lr"
    effects: ClassVar[str] = "nonnegative"

    radius_scale: float = 1.0
    region: str = "closed-form"
    oracle: str = "auto"
    radius: str = "paper"
    delta: float | None = None
    clipped: bool = False

    def __post_init__(self) -> None:
        positive("radius_scale", self.radius_scale, zero=True)
        require_bool("clipped", self.clipped)
        require_choice("region", self.region, REGIONS)
        require_choice("oracle", self.oracle, ORACLES)
        require_choice("radius", self.radius, ("paper", "lemma"))
        if self.delta is not None:
            checked_delta(self.delta)

    @property
    def label(self) -> str:
        return "BLM-LR"

    def engine(self, problem: Problem) -> Engine:
        if not problem.is_linear:
            raise PolicyError("BLM-LR is for linear models, but some link is not the identity. Use BGLMOFU.")
        problem, n = require_nonnegative(problem, self.label, self.clipped), len(problem.graph) + 1
        delta = (DEFAULT_DELTA if self.delta is None else self.delta) / n  # Lemma 11 holds for all rounds at once
        if self.delta is None and problem.horizon is not None:
            delta = delta_blm_lr(n, problem.horizon)
        kind = PAPER if self.radius == "paper" else LEMMA
        reach = region_reach(kind, float(self.radius_scale), delta, n)
        make = linear_regions(problem, self.region, self.oracle)
        return ModelEngine(problem, Parts(*linear_estimate(problem, 1.0), reach, make))
