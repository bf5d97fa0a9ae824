"""The paper's policies. BLM-LR (Algorithm 3): linear regression and optimism, for linear models with or without hidden
variables. BGLM-OFU (Algorithms 1 and 2): maximum likelihood and optimism, for any link; BLM-OFU on linear models."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import MOST_ROUNDS_EVER, is_whole, shown
from dobandit.errors import DobanditWarning, PolicyError, listed
from dobandit.estimation.belief import layout_of
from dobandit.estimation.confidence import (
    DEFAULT_C,
    DEFAULT_DELTA,
    checked_delta,
    constant_R,
    delta_bglm_ofu,
    delta_blm_lr,
    initial_lambda,
    initial_rounds,
)
from dobandit.estimation.estimators import maximum_likelihood
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.links import Link, LinkBounds, identity
from dobandit.policy.base import Policy, positive, require_bool, require_choice, require_nonnegative
from dobandit.policy.engine import Engine
from dobandit.policy.evaluators import (
    ORACLES,
    REGIONS,
    linear_estimate,
    linear_regions,
    listed_or_searched,
    upper_patterns,
)
from dobandit.policy.model_engine import ModelEngine, Parts
from dobandit.policy.problem import Problem
from dobandit.policy.radii import LEMMA, LIKELIHOOD, PAPER, region_reach
from dobandit.texts import policy_name, setting

_FLAT = 1e-100  # slopes below this make regions that reach further than numbers go


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
            raise PolicyError(
                f"BLM-LR is for linear models, but some link is not the identity. Use {policy_name('BGLMOFU')}."
            )
        problem, n = require_nonnegative(problem, self.label, self.clipped), len(problem.graph) + 1
        delta = (DEFAULT_DELTA if self.delta is None else self.delta) / n  # Lemma 11 holds for all rounds at once
        if self.delta is None and problem.horizon is not None:
            delta = delta_blm_lr(n, problem.horizon)
        kind = PAPER if self.radius == "paper" else LEMMA
        reach = region_reach(kind, float(self.radius_scale), delta, n)
        make = linear_regions(problem, self.region, self.oracle)
        return ModelEngine(problem, Parts(*linear_estimate(problem, 1.0), reach, make))


@dataclass(frozen=True)
class BGLMOFU(Policy):
    """Observe without intervening first; then play the set whose optimistic E[Y] is largest.

    radius_scale    multiplies rho = 3/kappa sqrt(log(1/delta)); the guarantee is for 1, the simulations use 0.1
    initial         when the initialisation ends: "lambda-min" (Eq. 3 holds at every node), "formula" (T0 of
                    Algorithm 1; needs zeta), or a number of rounds
    lambda_scale    multiplies what Eq. (3) asks of lambda_min (never below 1, so that M is invertible)
    kappa           inf of f'; default: over the weighted sums that weights and parents in [0,1] can give
    zeta, c         of Assumption 3 and of T0; for initial="formula"
    region          on linear models (see BLMLR);  oracle: see BLMLR
    delta           default: 1 / (3 n sqrt(T)) per node, or 0.05 over all nodes and rounds without a horizon
    clipped         run although effects may do harm, and read harm as no effect

    >>> import dobandit as dob
    >>> learner = dob.BGLMOFU(initial=10).start(dob.paper.G1.graph, budget=3, horizon=100, seed=0)
    >>> learner.propose()  # the first ten rounds observe
    {}
    """

    name: ClassVar[str] = "bglm-ofu"
    effects: ClassVar[str] = "nonnegative"

    radius_scale: float = 1.0
    initial: str | int = "lambda-min"
    lambda_scale: float = 1.0
    kappa: float | None = None
    zeta: float | None = None
    c: float = DEFAULT_C
    region: str = "closed-form"
    oracle: str = "auto"
    delta: float | None = None
    clipped: bool = False

    def __post_init__(self) -> None:
        positive("radius_scale", self.radius_scale, zero=True)
        require_bool("clipped", self.clipped)
        positive("lambda_scale", self.lambda_scale, zero=True)
        positive("c", self.c)
        require_choice("region", self.region, REGIONS)
        require_choice("oracle", self.oracle, ORACLES)
        for name in ("kappa", "zeta"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if self.delta is not None:
            checked_delta(self.delta)
        if isinstance(self.initial, str):
            require_choice("initial", self.initial, ("lambda-min", "formula"))
        elif not is_whole(self.initial) or not 0 <= self.initial <= MOST_ROUNDS_EVER:
            raise PolicyError(
                f"initial is 'lambda-min', 'formula' or a number of rounds up to {MOST_ROUNDS_EVER:.0e}, but got "
                f"{shown(self.initial)}."
            )
        if self.initial == "formula" and self.zeta is None:
            raise PolicyError(
                f"{setting('initial=formula')} needs zeta of Assumption 3; `dobandit check MODEL` computes it."
            )

    @property
    def label(self) -> str:
        return "BGLM-OFU"

    def label_on(self, graph: CausalGraph, links: tuple[Link, ...]) -> str:
        return "BLM-OFU" if all(link == identity for link in links) else self.label

    def engine(self, problem: Problem) -> Engine:
        problem, n = require_nonnegative(problem, self.label, self.clipped), len(problem.graph) + 1
        bounds = [link_bounds(problem.graph, v, link) for v, link in enumerate(problem.links, start=1)]
        kappa = float(self.kappa) if self.kappa is not None else min(b.kappa for b in bounds)
        if not kappa >= _FLAT:
            raise PolicyError(
                f"kappa = inf f' must be above 0 (Assumption 2), but a link is flat where its causes can take it: its "
                f"slope is {kappa:.2g} there. Give {setting('kappa=...')}, a slope that the weights of your world keep "
                f"to, or use {policy_name('CausalUCB')}, which needs none."
            )
        delta = (DEFAULT_DELTA if self.delta is None else self.delta) / (3 * n)
        if self.delta is None and problem.horizon is not None:
            delta = delta_bglm_ofu(n, problem.horizon)
        thresholds = self.thresholds(problem, bounds, kappa, delta)
        scale, initial = float(self.radius_scale), self._initial(problem, bounds, kappa, delta, thresholds)
        reach = region_reach(LIKELIHOOD, scale, delta, n, problem.horizon is None, kappa, initial)
        if problem.is_linear:
            estimator, state = linear_estimate(problem, 0.0)
            make = linear_regions(problem, self.region, self.oracle)
        else:
            estimator, state = maximum_likelihood(layout_of(problem.graph), problem.link_arrays, problem.horizon)
            make = listed_or_searched(problem, upper_patterns, self.oracle)
        state.nodes["threshold"], state.clock[2] = thresholds, initial < 0
        return ModelEngine(problem, Parts(estimator, state, reach, make))

    def thresholds(self, problem: Problem, bounds: list[LinkBounds], kappa: float, delta: float) -> NDArray[np.float64]:
        """What each node's lambda_min has to reach: Eq. (3), and 1, which the bound on sum ||V|| needs (Lemma 9)."""
        degrees = np.diff(problem.graph.arrays.parent_ptr)
        least = np.where(degrees > 0, 1.0, 0.0)
        for v in np.flatnonzero(degrees).tolist() if self.lambda_scale else []:
            asked = initial_lambda(int(degrees[v]), bounds[v - 1].l2, kappa, delta)
            least[v] = max(self.lambda_scale * asked, 1.0)
        return least

    def _initial(
        self, problem: Problem, bounds: list[LinkBounds], kappa: float, delta: float, thresholds: NDArray[np.float64]
    ) -> int:
        if self.initial == "lambda-min":
            most = float(thresholds.max())
            if problem.horizon is not None and most > problem.horizon:
                smaller = "" if math.isinf(most) else f", or a lambda_scale below {problem.horizon / most:.1g}"
                raise PolicyError(
                    f"Eq. (3) asks for lambda_min >= {most:.3g}, which takes at least as many rounds, but the horizon "
                    f"is {problem.horizon}: nothing would ever be set. Give {setting('initial=<rounds>')}{smaller}."
                )
            if problem.horizon is None and most > 10_000:
                rounds = "at least as many rounds" if math.isfinite(most) else "ever"
                warnings.warn(
                    f"Eq. (3) asks for lambda_min >= {most:.3g}, so nothing will be set for {rounds}. "
                    f"Give {setting('initial=<rounds>')} or a smaller lambda_scale to begin earlier.",
                    DobanditWarning,
                    stacklevel=5,
                )
            if problem.rules.require:
                warnings.warn(
                    f"{listed(problem.rules.require)} is required, so it is set in every round, and rounds played by "
                    "this policy never fulfil Eq. (3) there: nothing else would be set. "
                    f"Give {setting('initial=<rounds>')}.",
                    DobanditWarning,
                    stacklevel=5,
                )
            return -1
        if self.initial == "formula":
            assert self.zeta is not None
            degree = int(np.diff(problem.graph.arrays.parent_ptr).max())
            R = constant_R(degree, max(b.l2 for b in bounds), kappa, delta)
            n = len(problem.graph) + 1
            return int(np.ceil(min(initial_rounds(n, self.zeta, delta, R, self.c), 2.0**62)))
        return int(self.initial)


def link_bounds(graph: CausalGraph, v: int, link: Link) -> LinkBounds:
    """L1, L2 and kappa over the weighted sums that weights and parents in [0,1] can give node v: from 0 to d."""
    if link == identity:
        return LinkBounds(1.0, 0.0, 1.0)
    d = int(graph.arrays.parent_ptr[v + 1] - graph.arrays.parent_ptr[v])
    return link.bounds(0.0, float(d))
