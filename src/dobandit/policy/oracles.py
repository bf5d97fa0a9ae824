"""Which oracle a model policy uses: every action one by one where they can be listed, else a search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dobandit.errors import PolicyError
from dobandit.estimation.estimators import least_squares
from dobandit.estimation.statistics import layout_of
from dobandit.oracle.actions import MOST_LISTED
from dobandit.oracle.boxed import BoxedForm, boxed
from dobandit.oracle.closed_form import closed_form
from dobandit.oracle.listing import Listing, listing_of
from dobandit.oracle.optimistic_plan import optimistic_search
from dobandit.oracle.optimistic_search import propose_searched as propose_searched  # registers the search
from dobandit.oracle.per_pattern import per_pattern
from dobandit.policy.model_engine import ModelEngine, OracleMaker
from dobandit.policy.problem import Problem
from dobandit.policy.region import Region

REGIONS, ORACLES = ("closed-form", "boxed"), ("auto", "exhaustive", "branch-and-bound", "greedy")
_SETS_ONE_BY_ONE = 2_000  # boxed regions: beyond this a search is faster
_SETS_A_ROUND = 500  # looked at by a search before it settles for the best so far
_WORK_A_ROUND = 5e7  # multiplications or so: fewer sets where a node with many parents makes each of them dear


def listed(problem: Problem, available: tuple[int, ...] | None) -> Listing:
    """Every action that can be chosen now, of the variables that can matter."""
    return listing_of(problem.order, problem.allowed(available).rows())


def tried(problem: Problem, available: tuple[int, ...] | None) -> Listing:
    """The actions for the paper's index. Before much is known it is as large where a variable is left alone as where
    it is set: of equal sets the largest are played, or nothing might be set for thousands of rounds."""
    allowed = problem.allowed(available)
    return listing_of(problem.order, allowed.rows(), largest=not allowed.full_only)


def highest_mean(problem: Problem) -> float:
    """What the optimistic mean of a variable may be at most: no limit in the paper's own game, sets of K at 1."""
    return math.inf if problem.monotone and problem.allowed().full_only else 1.0


def closed_form_oracle(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
    """Bare ellipsoids, as in Algorithm 4."""
    return closed_form(problem.graph, listing or tried(problem, available), highest_mean(problem))


def boxed_oracle(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
    """Ellipsoids within [0, 1]."""
    return BoxedForm(listing or tried(problem, available), boxed(layout_of(problem.graph)), highest_mean(problem))


def search_oracle(greedy: bool) -> OracleMaker:
    """Branch and bound, or greedy, over boxed regions; single actions are scored as boxed ones are."""

    def make(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
        if listing is not None:
            return boxed_oracle(problem, listing, available)
        rules, box = problem.allowed(available).rules, boxed(layout_of(problem.graph))
        return optimistic_search(problem.graph, rules, box, sets_a_round(problem), greedy)

    return make


def per_pattern_oracle(samples: int) -> OracleMaker:
    """Any links, pattern by pattern; the same sampled worlds whatever is available."""

    def make(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
        rng = np.random.default_rng([problem.seed, 0xC0FFEE])
        return per_pattern(problem.graph, listing or tried(problem, available), problem.link_arrays, rng, samples)

    return make


def sets_a_round(problem: Problem) -> int:
    degrees = np.diff(problem.graph.arrays.parent_ptr)[problem.order].astype(float)
    return min(_SETS_A_ROUND, max(20, int(_WORK_A_ROUND / max(float((degrees**3).sum()), 1.0))))


def linear_engine(
    problem: Problem, region: Region, ridge: float, kind: str, oracle: str, thresholds: Any = None
) -> ModelEngine:
    """The engine for a linear problem. kind: one of REGIONS; oracle: one of ORACLES."""
    estimator, state = least_squares(layout_of(problem.graph), ridge)
    make = _linear_oracle(problem, kind, oracle)
    return ModelEngine(problem, estimator, state, region, make, thresholds)


def _linear_oracle(problem: Problem, kind: str, oracle: str) -> OracleMaker:
    count = problem.allowed().count()
    searched = oracle in ("branch-and-bound", "greedy")
    if searched or (oracle == "auto" and kind == "boxed" and problem.monotone and count > _SETS_ONE_BY_ONE):
        if kind != "boxed" or not problem.monotone:
            raise PolicyError(
                f"oracle={oracle!r} needs regions within the box and effects that do no harm, where a larger mean "
                "never hurts. Give region='boxed', set variables to 1 only, and promise effects='nonnegative'."
            )
        return search_oracle(oracle == "greedy")
    if count > MOST_LISTED:
        raise PolicyError(
            f"there are {count:,} sets to choose from, and they are looked at one by one only up to {MOST_LISTED:,}. "
            "Give region='boxed' (branch and bound), or lower the budget."
        )
    return closed_form_oracle if kind == "closed-form" else boxed_oracle
