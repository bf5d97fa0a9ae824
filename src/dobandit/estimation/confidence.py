"""Radii, initialisation constants and regret bounds, as the paper prints them.

n: nodes, the constant X1 and Y counted.  d = |Pa(X)| and D = max d, the constant counted.
t: a round; T: the horizon.  delta: probability that a confidence region fails.  log is natural.
rho: radius of {theta': ||theta' - theta_hat||_M <= rho}, M the node's Gram matrix.
L1, L2, kappa: bounds on f' and f'' (Assumptions 1 and 2).  zeta: Assumption 3.  c: see `initial_rounds`.

The radii and deltas are scalar and use nothing but `math`, so that `dobandit.kernels.kernel` compiles them; like
every formula here they trust their arguments. `checked_delta` is the door.

Read before relying on a guarantee:
- Lemma 1 is proved for one fixed v at a time; the proof of Theorem 1 uses it for all v at once. Its radius has no d in
  it, so it is optimistic where a node has very many parents.
- Lemma 9 (the sum of ||V||) is printed for lambda_min(M) >= 1 but needs lambda_min(M) >= d: from M = I with d = 16 the
  rows of a Hadamard matrix break it.
- delta = 1 / (3 n sqrt(T)) is small enough for the last step of Lemma 1 where log(1/delta) > 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dobandit.checks import shown
from dobandit.compile_mode import work
from dobandit.errors import ModelError
from dobandit.estimation.kl import code_length_interval

DEFAULT_DELTA = 0.05  # our choice for users without a horizon
Z95 = 1.959963984540054  # 95% of normal numbers lie within so many standard errors
_SECONDS = 2e-4  # that an interval takes as plain Python: nothing is compiled for it
DEFAULT_C = 1.0  # our choice: the paper calls c an absolute constant and gives no value


# -- how sure to be -------------------------------------------------------------------------------------------


def delta_bglm_ofu(n: int, horizon: int) -> float:
    """delta = 1 / (3 n sqrt(T)): Algorithm 1, line 2."""
    return 1.0 / (3.0 * n * math.sqrt(horizon))


def delta_blm_lr(n: int, horizon: int) -> float:
    """delta = 1 / (n sqrt(T)): Algorithm 3, line 2."""
    return 1.0 / (n * math.sqrt(horizon))


def anytime_delta(t: int, delta: float = DEFAULT_DELTA) -> float:
    """delta_t = 6 delta / (pi^2 t^2) for round t = 1, 2, ...: no horizon is needed.

    sum over t of 1 / t^2 = pi^2 / 6, so the deltas of all rounds add up to delta, however long the run.
    Lemma 1 holds at one round, for one node, up to 3 delta_t: with delta / (3 n) in place of delta, every region of
    every node and round holds together with probability 1 - delta, and the rounds lost to failed regions are at
    most delta in expectation. Lemma 11 holds for all rounds at once: for the same statement a fixed delta / n is
    enough there. But then the run as a whole fails with probability delta, which costs up to delta T in expected
    regret; delta_t costs at most delta there too.
    """
    return 6.0 * delta / (math.pi * math.pi * t * t)


# -- radii ----------------------------------------------------------------------------------------------------


def radius_bglm_ofu(kappa: float, delta: float, scale: float = 1.0) -> float:
    """rho = 3 / kappa sqrt(log(1 / delta)): Algorithm 1, line 2, and Lemma 1. The theory is for scale >= 1."""
    return scale * 3.0 / kappa * math.sqrt(math.log(1.0 / delta))


def radius_blm_lr(t: int, n: int, delta: float, scale: float = 1.0) -> float:
    """rho_t = sqrt(n log(1 + t n) + 2 log(1 / delta)) + sqrt(n): Algorithm 3, line 2. Round t uses rho_{t-1}."""
    return scale * (math.sqrt(n * math.log(1.0 + t * n) + 2.0 * math.log(1.0 / delta)) + math.sqrt(n))


def radius_lemma11(t: int, d: int, delta: float, scale: float = 1.0) -> float:
    """rho_t = sqrt(d log(1 + t d) + 2 log(1 / delta)) + sqrt(d), d = |Pa(X)|: Lemma 11, sharper, as d < n."""
    return scale * (math.sqrt(d * math.log(1.0 + t * d) + 2.0 * math.log(1.0 / delta)) + math.sqrt(d))


# -- initialisation of BGLM-OFU -------------------------------------------------------------------------------


def initial_lambda(d: int, l2: float, kappa: float, delta: float) -> float:
    """What Eq. (3) of Lemma 1 asks of lambda_min(M_{t,X}): 512 d L2^2 / kappa^4 (d^2 + ln(1 / delta))."""
    if l2 > 1e150 or kappa > 1e75:  # so bent or so steep that powers would be beyond all numbers
        return math.inf
    if not (kappa**4):  # a flat link, or a nearly flat one with very many causes: more than rounds can give
        return math.inf if l2 or not kappa else 0.0
    return 512.0 * d * l2**2 / kappa**4 * (d**2 + math.log(1.0 / delta))


def constant_R(D: int, l2: float, kappa: float, delta: float) -> float:  # noqa: N802
    """R = ceil(512 D L2^2 / kappa^4 (D^2 + ln(1 / delta))): Algorithm 1, line 2; L2 is the largest of all nodes.

    The paper's L2 is above 0 (Assumption 1), also in linear models, where any such number will do (Section 4.2).
    Then R is at least 1; so it is here for l2 = 0, the limit.
    """
    asked = initial_lambda(D, l2, kappa, delta)
    return max(1, math.ceil(asked)) if math.isfinite(asked) else math.inf


def initial_rounds(n: int, zeta: float, delta: float, R: float, c: float = DEFAULT_C) -> float:
    """T0 = max{c / zeta^2 ln(1 / delta), (8 n^2 - 16 n + 2) R / zeta}: Algorithm 1, line 2.

    c is the absolute constant of Lecue and Mendelson's inequality, which nobody states; 1 is our choice. That
    inequality also asks for T0 >= c D / zeta^2, which this maximum gives only where ln(1 / delta) >= D.
    """
    if not (zeta**2):
        return math.inf
    return max(c / zeta**2 * math.log(1.0 / delta), (8.0 * n**2 - 16.0 * n + 2.0) * R / zeta)


# -- regret bounds --------------------------------------------------------------------------------------------


def regret_bound_bglm_ofu(
    t: int,
    n: int,
    degrees: Sequence[int],
    l1: float,
    kappa: float,
    zeta: float,
    delta: float,
    initial: float,
    c: float = DEFAULT_C,
) -> float:
    """R(t) <= 2 rho L1 sum_X sqrt(2 s d_X log(s d_X + T0)) + (6 delta + exp(-T0 zeta^2 / c)) n s + T0, s = t - T0.

    The last inequality before the O in the proof of Theorem 1. `degrees` holds d_X for every X, l1 is the largest L1
    and `initial` is T0. Until then every round may be lost, so the bound is t itself.
    """
    if t <= initial:
        return float(t)
    s = t - initial
    widths = math.fsum(math.sqrt(2.0 * s * d * math.log(s * d + initial)) for d in degrees if d)
    failure = (6.0 * delta + math.exp(-initial * zeta**2 / c)) * n * s
    return 2.0 * radius_bglm_ofu(kappa, delta) * l1 * widths + failure + initial


def regret_bound_blm_lr(t: int, n: int, D: int, delta: float) -> float:
    """R(t) <= 2 rho_t n sqrt(t n D / log(n + 1) log(1 + t)) + n delta t: end of the proof of Theorem 3.

    The last term, which the O there swallows, is for the regions that fail, with probability at most n delta.
    """
    widths = n * math.sqrt(t * n * D / math.log(n + 1.0) * math.log(1.0 + t))
    return 2.0 * radius_blm_lr(t, n, delta) * widths + n * delta * t


# -- the door -------------------------------------------------------------------------------------------------


def checked_delta(delta: float) -> float:
    """`delta` as a float strictly between 0 and 1."""
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0.0 < delta < 1.0:
        raise ModelError(
            f"delta is a probability strictly between 0 and 1, but got {shown(delta)}. Try {DEFAULT_DELTA}."
        )
    return float(delta)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """p values of several tests, corrected for their number (Holm 1979); None stays where nothing was tested."""
    ranked = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    corrected, reached = list(p_values), 0.0
    for rank, (p, i) in enumerate(ranked):
        corrected[i] = reached = max(reached, min(1.0, p * (len(ranked) - rank)))
    return corrected


def wilson(mean: float, count: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share of 0 and 1."""
    z2 = Z95**2
    centre = (mean + z2 / (2 * count)) / (1 + z2 / count)
    reach = math.sqrt(z2 * (mean * (1 - mean) / count + z2 / (4 * count * count))) / (1 + z2 / count)
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


def beta_binomial(mean: float, count: int, alpha: float = 0.05) -> tuple[float, float]:
    """A confidence sequence: an interval of the mean of numbers from 0 to 1 that is valid at every look.

    s is the sum of n numbers. The likelihood ratio of a coin q against p is q^s (1 - q)^(n - s) / p^s (1 - p)^(n - s).
    For 0/1 outcomes with mean p it is a martingale that starts at 1. For other numbers from 0 to 1 with mean p it is a
    supermartingale, since each factor is convex in its outcome. Its average over Jeffreys' prior of q is one, too. By
    Ville's inequality it ever exceeds 1 / alpha with probability at most alpha (Robbins 1970). The interval holds every
    p against which it does not: B(s + 1/2, n - s + 1/2) / B(1/2, 1/2) <= p^s (1 - p)^(n - s) / alpha.
    Batches are looks that are left out, so that it stays valid with them.
    """
    with work(_SECONDS):
        low, high = code_length_interval(float(count), mean * count, math.log(1.0 / alpha))
    return float(low), float(high)


def standard_error(count: float, total: float) -> float:
    """Of the mean of numbers from 0 to 1 whose sum is `total`: that of outcomes of 0 and 1, the widest; half an outcome
    of each counts as seen, so that it is not 0 where all were equal."""
    mean = (total + 0.5) / (count + 1.0)
    return math.sqrt(mean * (1.0 - mean) / count)


def asymptotic_reach(rounds: int, alpha: float = 0.05) -> float:
    """How many standard errors an asymptotic confidence sequence reaches after t rounds; infinite before the first.

    f_t^2 = 2 (1 + 1 / u) log(sqrt(1 + u) / alpha), u = t rho^2: the boundary of Waudby-Smith, Arbour, Sinha, Kennedy
    and Ramdas (Annals of Statistics 2024, Theorem 2.2). rho^2 = (-2 log alpha + log(-2 log alpha) + 1) / 300 makes it
    nearly as narrow as can be around 300 rounds. At alpha = 0.05 it is 3.0 to 3.5 from 100 to 10,000 rounds.
    """
    if rounds < 1:
        return math.inf
    rho2 = (-2.0 * math.log(alpha) + math.log(-2.0 * math.log(alpha)) + 1.0) / 300.0
    u = rounds * rho2
    return math.sqrt(2.0 * (1.0 + 1.0 / u) * math.log(math.sqrt(1.0 + u) / alpha))
