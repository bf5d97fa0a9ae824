"""How far optimism reaches, and when it begins.

rho_v: radius of {theta: ||theta - estimate||_M <= rho_v}.  t: rounds taken in.
BLM-LR takes rho_t of Algorithm 3 (or of Lemma 11) from the first round, BGLM-OFU rho of Algorithm 1 after an
initialisation in which nothing is set (Eq. 3). CausalUCB reaches sqrt(scale^2 + growth log(1 + t / BEGINS)) standard
errors of E[Y]: a constant number leaves single runs with a wrong action for good; one that grows like sqrt(log t) does
not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.estimation import confidence
from dobandit.kernels import kernel, record

BEGINS = 500.0  # rounds after which growing optimism shows
PAPER, LEMMA, LIKELIHOOD, STANDARD_ERRORS = 0, 1, 2, 3

radius_blm_lr = kernel(confidence.radius_blm_lr)
radius_lemma11 = kernel(confidence.radius_lemma11)
radius_bglm_ofu = kernel(confidence.radius_bglm_ofu)
anytime_delta = kernel(confidence.anytime_delta)

# kind: PAPER: rho_t with n; LEMMA: with d; LIKELIHOOD: 3/kappa sqrt(log(1/delta)); STANDARD_ERRORS of E[Y].
# anytime: 1 where delta shrinks with t, for want of a horizon (LIKELIHOOD only: the others hold for all t).
# n: counts the constant and Y.  initial: rounds without intervention; -1: until lambda_min reaches the thresholds.
REACH = record(kind="i8", scale="f8", growth="f8", delta="f8", anytime="i8", n="i8", kappa="f8", initial="i8")


def region_reach(
    kind: int, scale: float, delta: float, n: int, anytime: bool = False, kappa: float = 1.0, initial: int = 0
) -> NDArray[Any]:
    """(1,) The reach of the paper's regions."""
    return np.array([(kind, scale, 0.0, delta, anytime, n, kappa, initial)], REACH)


def standard_errors(scale: float, growth: float = 0.0) -> NDArray[Any]:
    """(1,) The reach of optimism by standard errors, from the first round on."""
    return np.array([(STANDARD_ERRORS, scale, growth, 0.0, 0, 0, 0.0, 0)], REACH)


@kernel
def set_radii(reach: Any, nodes: Any, t: int, optimistic: bool, rho: Any) -> None:
    """rho[v] = how far optimism reaches at node v after t rounds; 0 where nobody is optimistic: the plain estimate."""
    law, same = reach[0], 0.0  # for all nodes
    if optimistic and law["kind"] == STANDARD_ERRORS:
        same = math.sqrt(law["scale"] * law["scale"] + law["growth"] * math.log(1.0 + t / BEGINS))
    elif optimistic and law["kind"] == PAPER:
        same = radius_blm_lr(t, law["n"], law["delta"], law["scale"])
    elif optimistic and law["kind"] == LIKELIHOOD:
        delta = anytime_delta(max(t, 1), law["delta"]) if law["anytime"] else law["delta"]
        same = radius_bglm_ofu(law["kappa"], delta, law["scale"])
    for v in range(1, len(rho)):
        rho[v] = same
        if optimistic and law["kind"] == LEMMA:
            rho[v] = radius_lemma11(t, nodes[v]["width"], law["delta"], law["scale"])


def words_of(reach: NDArray[Any]) -> str:
    """What intervals made of the regions promise, for people: Lemma 11 and Lemma 1, over all nodes."""
    law = reach[0]
    if law["scale"] < 1.0:
        return f"of the policy's confidence regions times {law['scale']:g}, for which no level is known"
    level = 1.0 - (3 if law["kind"] == LIKELIHOOD else 1) * law["n"] * law["delta"]
    return f"of the policy's confidence regions, at least {max(100.0 * level, 0.0):.3g}%"


@kernel
def initialising(reach: Any, clock: Any) -> bool:
    """Whether nothing is set yet, to learn what the variables do by themselves."""
    initial = reach[0]["initial"]
    return clock[0] < initial if initial >= 0 else clock[1] == 0
