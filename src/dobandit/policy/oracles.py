"""Which oracle a model policy uses: every action one by one where they can be listed, else a search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dobandit.errors import PolicyError
from dobandit.estimation.belief import layout_of, start_belief
from dobandit.estimation.estimators import LeastSquares
from dobandit.oracle.actions import MOST_LISTED
from dobandit.oracle.boxed import BoxedForm, boxed
from dobandit.oracle.closed_form import closed_form
from dobandit.oracle.frontier import MOST_PARENTS, frontier_of
from dobandit.oracle.listing import Listing, listing_of
from dobandit.oracle.local_search import local_search
from dobandit.oracle.per_pattern import per_pattern
from dobandit.policy.model_engine import ModelEngine, OracleMaker
from dobandit.policy.problem import Problem
from dobandit.policy.region import Region

REGIONS, ORACLES = ("closed-form", "boxed"), ("auto", "exhaustive", "greedy")
MOST_BOXED = 20_000  # sets whose boxed values are worked out one by one in a round


def listed(problem: Problem, available: tuple[int, ...] | None) -> Listing:
    """Every action that can be chosen now, of the variables that can matter."""
    return listing_of(problem.order, problem.allowed(available).rows(), flags=problem.flags)


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


def search_oracle(make: OracleMaker) -> OracleMaker:
    """Greedy and exchanges on the index of another oracle, which scores the actions of a given list."""

    def search(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
        if listing is not None:
            return make(problem, listing, available)
        allowed = problem.allowed(available)
        largest = not allowed.full_only  # as for a list: see `tried`
        return local_search(
            problem.graph, allowed, problem.order, lambda row: make(problem, row, available), largest=largest
        )

    return search


def per_pattern_oracle(problem: Problem, listing: Listing | None, available: tuple[int, ...] | None) -> Any:
    """Any links, pattern by pattern."""
    frontier = frontier_of(problem.graph, np.array(problem.order, dtype=np.int64))
    if frontier is None:
        raise PolicyError(
            f"BGLM-OFU looks at every pattern of a node's causes, which it can for up to {MOST_PARENTS} causes in a "
            "graph that is not too wide, but this graph is wider. Use CausalUCB, or BLMLR where every link is the "
            "identity."
        )
    return per_pattern(listing or tried(problem, available), problem.link_arrays, frontier)


def linear_engine(
    problem: Problem, region: Region, ridge: float, kind: str, oracle: str, thresholds: Any = None
) -> ModelEngine:
    """The engine for a linear problem. kind: one of REGIONS; oracle: one of ORACLES."""
    estimator, state = LeastSquares(ridge), start_belief(layout_of(problem.graph), ridge)
    every, most = (closed_form_oracle, MOST_LISTED) if kind == "closed-form" else (boxed_oracle, MOST_BOXED)
    make = listed_or_searched(problem, every, oracle, most)
    return ModelEngine(problem, estimator, state, region, make, thresholds)


def listed_or_searched(problem: Problem, make: OracleMaker, oracle: str, most: int = MOST_LISTED) -> OracleMaker:
    """Every action one by one, or a search: as asked for, or where there are more than `most` actions, or too many to
    list."""
    allowed = problem.allowed()
    searched = oracle == "greedy" or (oracle == "auto" and allowed.count() > min(most, allowed.most_listed))
    return search_oracle(make) if searched else make
