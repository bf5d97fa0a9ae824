"""The paper's index: how far each node's region reaches around its estimate, and when optimism begins.

rho_v: radius of {theta: ||theta - estimate||_M <= rho_v}.  t: rounds taken in.
BLM-LR takes rho_t of Algorithm 3 (or of Lemma 11) from the first round, BGLM-OFU rho of Algorithm 1 after an
initialisation in which nothing is set (Eq. 3).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dobandit.compiled import by_type, inlined, kernel
from dobandit.estimation import confidence
from dobandit.estimation.least_squares import reaches_lambda

BEGINS = 500.0  # rounds after which growing optimism shows
RHO_PAPER, RHO_LEMMA, RHO_MLE = 0, 1, 2

_radius_blm_lr = kernel(confidence.radius_blm_lr)
_radius_lemma11 = kernel(confidence.radius_lemma11)
_radius_bglm_ofu = kernel(confidence.radius_bglm_ofu)
_anytime_delta = kernel(confidence.anytime_delta)


class Region(NamedTuple):
    """A policy's numbers, as the kernels need them."""

    radius: int  # RHO_PAPER: rho_t with n; RHO_LEMMA: with d; RHO_MLE: 3/kappa sqrt(log(1/delta))
    scale: float
    delta: float
    anytime: bool  # delta shrinks with t, for want of a horizon (RHO_MLE only: the others hold for all t)
    n: int  # counts the constant and Y
    kappa: float
    initial: int  # rounds without intervention; -1: until lambda_min reaches the thresholds


class Bonus(NamedTuple):
    """Optimism by standard errors of E[Y], from the first round on: sqrt(scale^2 + growth log(1 + t / BEGINS)) of them.
    A constant number leaves single runs with a wrong action for good; one that grows like sqrt(log t) does not."""

    scale: float
    growth: float = 0.0
    initial: int = 0


@by_type
def set_radii(index: Any, ptr: Any, t: int, optimistic: bool, rho: Any) -> None:
    """rho[v] = how far optimism reaches at node v after t rounds; 0 where nobody is optimistic: the plain estimate."""


@set_radii.of(Bonus)
def set_bonus(bonus: Any, ptr: Any, t: int, optimistic: bool, rho: Any) -> None:
    reach = 0.0
    if optimistic:
        reach = math.sqrt(bonus.scale * bonus.scale + bonus.growth * math.log(1.0 + t / BEGINS))
    for v in range(1, len(rho)):
        rho[v] = reach


@set_radii.of(Region)
def set_region(region: Any, ptr: Any, t: int, optimistic: bool, rho: Any) -> None:
    same = 0.0  # for all nodes
    if optimistic and region.radius == RHO_PAPER:
        same = _radius_blm_lr(t, region.n, region.delta, region.scale)
    elif optimistic and region.radius == RHO_MLE:
        delta = _anytime_delta(max(t, 1), region.delta) if region.anytime else region.delta
        same = _radius_bglm_ofu(region.kappa, delta, region.scale)
    for v in range(1, len(rho)):
        rho[v] = same
        if optimistic and region.radius == RHO_LEMMA:
            rho[v] = _radius_lemma11(t, ptr[v + 1] - ptr[v], region.delta, region.scale)


def words_of(region: Region) -> str:
    """What intervals made of the regions promise, for people: Lemma 11 and Lemma 1, over all nodes."""
    if region.scale < 1.0:
        return f"of the policy's confidence regions times {region.scale:g}, for which no level is known"
    level = 1.0 - (3 if region.radius == RHO_MLE else 1) * region.n * region.delta
    return f"of the policy's confidence regions, at least {max(100.0 * level, 0.0):.3g}%"


@inlined
def initialising(region: Any, clock: Any) -> bool:
    """Whether nothing is set yet, to learn what the variables do by themselves."""
    return clock[0] < region.initial if region.initial >= 0 else clock[1] == 0


@kernel
def end_round(initial: int, layout: Any, thresholds: Any, state: Any, clock: Any) -> None:
    """Count the round, and end the initialisation when every node's lambda_min is large enough (Eq. 3)."""
    clock[0] += 1
    if initial < 0 and clock[1] == 0:
        for v in range(1, len(layout.ptr) - 1):
            if not reaches_lambda(layout, state, v, thresholds[v]):
                return
        clock[1] = 1
