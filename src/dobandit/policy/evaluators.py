"""Which evaluator a model policy uses: every action one by one where they can be listed, else a search.

An evaluator is a kernel `evaluate(belief, plan, fixed, reach, draws)` and its plan. It leaves the scores of every
action in `plan.actions.scores`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from dobandit import limits
from dobandit.errors import PolicyError
from dobandit.estimation.belief import Belief, layout_of
from dobandit.estimation.estimators import least_squares
from dobandit.kernels import with_kernels
from dobandit.oracle.action_list import ActionList, action_list
from dobandit.oracle.actions import MOST_LISTED
from dobandit.oracle.boxed import boxed, boxed_index
from dobandit.oracle.exact_pass import exact_index, exact_pass
from dobandit.oracle.frontier import MOST_PARENTS
from dobandit.oracle.index_search import IndexSearch, index_search, search_on
from dobandit.oracle.interval_pass import bounded, highest_index, interval_pass, leeway_index
from dobandit.oracle.mean_field import mean_field, mean_field_index
from dobandit.oracle.per_pattern import pattern_index
from dobandit.oracle.posterior_draw import sampled, sampled_field_index, sampled_index
from dobandit.oracle.upper_means import upper_index, upper_means
from dobandit.policy.problem import Problem
from dobandit.texts import keyword, policy_name, setting

REGIONS, ORACLES = ("closed-form", "boxed"), ("auto", "exhaustive", "greedy")
MOST_BOXED = 20_000  # sets whose boxed values are worked out one by one in a round
_MOST_WORK = 4_000_000  # actions x states of the frontier
_MOST_STATES = 1 << 14


class Evaluator(NamedTuple):
    """The kernel and the plan that it works on."""

    evaluate: Any
    plan: Any

    @property
    def searches(self) -> bool:
        """Whether it searches, without a list of all actions."""
        return isinstance(self.plan, IndexSearch)


# Makes the evaluator of a problem for the actions of a list, or for those of the variables that can be set now.
EvaluatorMaker = Callable[[Problem, ActionList | None, tuple[int, ...] | None], Evaluator]


def listed(problem: Problem, available: tuple[int, ...] | None) -> ActionList:
    """Every action that can be chosen now, of the variables that can matter."""
    return problem.listed(problem.worth_playing(available))


# -- the paper's policies ----------------------------------------------------------------------------------------------


def tried(problem: Problem, available: tuple[int, ...] | None) -> ActionList:
    """The actions for the paper's index. Before much is known it is as large where a variable is left alone as where
    it is set: of equal sets the largest are played, or nothing might be set for thousands of rounds."""
    allowed = problem.allowed(available)
    return action_list(problem.order, allowed.rows(), largest=not allowed.full_only)


def highest_mean(problem: Problem) -> float:
    """What the optimistic mean of a variable may be at most: no limit in the paper's own game, sets of K at 1."""
    return math.inf if problem.monotone and problem.allowed().full_only else 1.0


def ellipsoids(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
    """Bare ellipsoids, as in Algorithm 4."""
    actions = actions or tried(problem, available)
    return Evaluator(upper_index, upper_means(problem.graph, actions, highest_mean(problem)))


def boxed_ellipsoids(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
    """Ellipsoids within [0, 1]."""
    return Evaluator(boxed_index, boxed(problem.graph, actions or tried(problem, available), highest_mean(problem)))


def upper_patterns(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
    """Any links, pattern by pattern."""
    frontier = problem.frontier()
    if frontier is None:
        raise PolicyError(
            f"BGLM-OFU looks at every pattern of a node's causes, which it can for up to {MOST_PARENTS} causes in a "
            f"graph that is not too wide, but this graph is wider. Use {policy_name('CausalUCB')}, or "
            f"{policy_name('BLMLR')} where every link is the identity."
        )
    return Evaluator(pattern_index, interval_pass(actions or tried(problem, available), frontier))


def linear_regions(problem: Problem, kind: str, oracle: str) -> EvaluatorMaker:
    """The evaluator of a linear problem. kind: one of REGIONS; oracle: one of ORACLES."""
    every, most = (ellipsoids, MOST_LISTED) if kind == "closed-form" else (boxed_ellipsoids, MOST_BOXED)
    return listed_or_searched(problem, every, oracle, most)


def linear_estimate(problem: Problem, ridge: float) -> tuple[Any, Belief]:
    """Least squares on a problem before any round."""
    return least_squares(layout_of(problem.graph), ridge)


def listed_or_searched(problem: Problem, make: EvaluatorMaker, oracle: str, most: int = MOST_LISTED) -> EvaluatorMaker:
    """Every action one by one, or a search: as asked for, or where there are more than `most` actions, or too many to
    list."""
    allowed = problem.allowed()
    many = oracle == "greedy" or (oracle == "auto" and allowed.count() > min(most, allowed.most_listed))
    return searched(make) if many else make


def searched(make: EvaluatorMaker) -> EvaluatorMaker:
    """Greedy and exchanges on the index of another evaluator, which scores the actions of a given list."""

    def maker(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
        if actions is not None:
            return make(problem, actions, available)
        allowed, kernels = problem.allowed(available), []

        def inner(row: ActionList) -> Any:
            evaluator = make(problem, row, available)
            kernels.append(search_on(evaluator.evaluate))
            return evaluator.plan

        largest = not allowed.full_only and make is not field  # as for a list: see `tried`
        plan = index_search(problem.graph, allowed, problem.order, inner, largest)
        return Evaluator(kernels[0], plan)

    return maker


# -- CausalUCB and its kin ---------------------------------------------------------------------------------------------


def promised_shares(problem: Problem) -> bool:
    """Whether every node's weights are promised to be nonnegative and to add up to at most 1: probabilities that are
    straight lines without a negative weight."""
    return problem.is_linear and problem.effects == "nonnegative" and not problem.continuous


def joint(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
    """The joint bonus: exact where that can be, else with nodes as if independent; searched where there are too many
    actions to list."""
    graph, allowed = problem.graph, problem.allowed(available)
    if actions is None and allowed.count() > limits.MAX_ACTIONS:
        return searched(field)(problem, None, available)
    actions = actions or listed(problem, available)
    frontier = None if problem.is_linear else problem.frontier(_MOST_STATES)
    if frontier is None or len(frontier.states) // len(frontier.steps) * len(actions.scores) > _MOST_WORK:
        return field(problem, actions, available)
    return Evaluator(exact_index, exact_pass(graph, actions, frontier))


def field(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
    """The joint bonus with nodes as if independent."""
    if problem.regimes is not None:
        raise PolicyError(
            "where variables share hidden causes, the value of a set takes an exact pass, and this graph is too wide "
            "for one, or a variable has too many effective causes. Count variables between as hidden too "
            f"({keyword('hide', 'auto')}), or use a policy that keeps no model ({keyword('policy', 'ucb')})."
        )
    actions = actions or listed(problem, available)
    return Evaluator(mean_field_index, mean_field(problem.graph, actions, problem.is_linear))


def optimistic(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
    """The joint bonus; where effects are promised to be straight and nonnegative, a bonus for every node, carried
    upwards along all paths, which such effects allow, and which loses less there."""
    many = actions is None and problem.allowed(available).count() > limits.MAX_ACTIONS
    if many or not promised_shares(problem):
        return joint(problem, actions, available)
    return Evaluator(upper_index, upper_means(problem.graph, actions or listed(problem, available)))


def drawn(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
    """E[Y] under a model that is drawn from what is believed."""
    evaluate, plan = joint(problem, actions, available)
    kernel = sampled_index if evaluate is exact_index else sampled_field_index
    return Evaluator(kernel, sampled(problem.graph, plan))


def every_action(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
    """The joint bonus of all actions, those of variables that cannot matter too."""
    if actions is None:
        rows = problem.allowed(available, relevant=False).rows()
        actions = problem.listed(rows)
    return joint(problem, actions, available)


def guaranteed(state: Belief, share: float) -> EvaluatorMaker:
    """By intervals that hold at every round: their upper ends, or, with a leeway, within it the index of CausalUCB."""

    def make(problem: Problem, actions: ActionList | None, available: tuple[int, ...] | None) -> Evaluator:
        graph, count = problem.graph, problem.allowed(available).count()
        frontier = bounded(problem.frontier(), state)
        if frontier is None or (actions is None and count > limits.MAX_ACTIONS):
            what, way_out = f"there are {count:,} of them", "Lower the budget, or leave guarantee out"
            if frontier is None:
                what = "the graph is too wide, or a variable has too many causes"
                way_out = "Leave guarantee out, or draw a graph with fewer causes of each variable"
            raise PolicyError(
                f"{setting('guarantee=True')} computes an interval for every action, up to {limits.MAX_ACTIONS:,} of "
                f"them, but {what}. {way_out}."
            )
        actions = actions or listed(problem, available)
        if share > 0.0:
            evaluate, plan = optimistic(problem, actions, available)
            return Evaluator(with_kernels(leeway_index, INDEX=evaluate), interval_pass(actions, frontier, plan, share))
        return Evaluator(highest_index, interval_pass(actions, frontier, exact_pass(graph, actions, frontier)))

    return make
