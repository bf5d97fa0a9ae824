"""Intervals of a mean of numbers from 0 to 1 by the Kullback-Leibler divergence between coins.

KL(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)), with 0 log 0 = 0. The interval at a level is every q with
count KL(mean, q) <= level: by Chernoff's inequality each of its ends fails with probability exp(-level) at most at a
round fixed beforehand (Garivier and Cappé 2011). It is narrower than Hoeffding's, most of all near 0 and 1.
"""

from __future__ import annotations

import math

from dobandit.kernels import kernel

_ALPHA = 1.1
_SUM = 11.0  # at least the sum over n of n^-alpha: 1 + 1 / (alpha - 1)
_STEPS = 60  # of Newton's method; about eight are needed


@kernel
def kl_level(plays: float, arms: int, delta: float) -> float:
    """log(11 K n^1.1 / delta): with it an end of one of K arms fails at some number n of plays with probability at most
    delta / K, as the sum of n^-1.1 is below 11."""
    return math.log(_SUM * arms / delta) + _ALPHA * math.log(max(plays, 1.0))


@kernel
def kl_upper(mean: float, count: float, level: float) -> float:
    """The largest q with count KL(mean, q) <= level; 1 where nothing was counted.

    In x = -log(1 - q) the divergence is convex and rises from the mean on, so that Newton's method comes down from any
    start on the far side and never passes the root. Two starts are known: Pinsker's inequality, and leaving out
    -mean log q.
    """
    if count <= 0.0 or mean >= 1.0:
        return 1.0
    mean = max(mean, 0.0)
    wanted = level / count
    if wanted <= 0.0:
        return mean
    if mean == 0.0:
        return -math.expm1(-wanted)
    entropy = -mean * math.log(mean) - (1.0 - mean) * math.log1p(-mean)
    x = (wanted + entropy) / (1.0 - mean)
    pinsker = mean + math.sqrt(wanted / 2.0)
    if pinsker < 1.0:
        x = min(x, -math.log1p(-pinsker))
    least = -math.log1p(-mean)
    for _ in range(_STEPS):
        q = -math.expm1(-x)
        above = -entropy - mean * math.log(q) + (1.0 - mean) * x - wanted
        slope = (q - mean) / q
        if above <= 0.0 or slope <= 0.0:
            break
        step = above / slope
        x = max(x - step, least)
        if step <= 1e-13 * x:
            break
    return max(-math.expm1(-x), mean)


@kernel
def kl_lower(mean: float, count: float, level: float) -> float:
    """The smallest q with count KL(mean, q) <= level; 0 where nothing was counted."""
    return min(1.0 - kl_upper(1.0 - mean, count, level), mean) if count > 0.0 else 0.0


@kernel
def largest_likelihood(seen: float, ones: float) -> float:
    """The log-likelihood of rows with `ones` ones of `seen` at p = ones / seen."""
    total = ones * math.log(ones / seen) if ones > 0.0 else 0.0
    return total + (seen - ones) * math.log((seen - ones) / seen) if ones < seen else total


@kernel
def code_length(seen: float, ones: float) -> float:
    """-log of Krichevsky and Trofimov's (KT) probability of rows with `ones` ones of `seen`: P(X = 1) averaged over
    Jeffreys' prior."""
    return math.lgamma(seen + 1.0) + math.log(math.pi) - math.lgamma(ones + 0.5) - math.lgamma(seen - ones + 0.5)


@kernel
def code_length_interval(seen: float, ones: float, nats: float) -> tuple[float, float]:
    """The ends of {p: l(p) <= KT + nats}, l(p) = -log of p's probability of the rows. With q = ones / seen,
    l(p) = l(q) + seen KL(q, p)."""
    if seen <= 0.0:
        return 0.0, 1.0
    mean, level = ones / seen, code_length(seen, ones) + nats + largest_likelihood(seen, ones)
    return kl_lower(mean, seen, level), kl_upper(mean, seen, level)
