"""The paper's algorithms, transcribed line by line: slow and obvious, for the compiled ones to be compared with.

Notation: X a node; v its feature vector [1 if X has a bias] + [values of graph.parents(X)], of length d; theta_X its
weights in the same order; M_X (d, d) the Gram matrix; n = named nodes + 1, the constant and Y counted.
A policy's randomness in a round is (u0, u1, u2), uniform on [0, 1). Graphs have no hidden nodes.
Paper: Feng & Chen, Combinatorial Causal Bandits, Algorithms 1-4 and Appendix H.
Nothing is imported from the policies, estimators or oracles under test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, linprog, lsq_linear

from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.bglm import WeightedModel
from dobandit.model.links import Link, identity

Array = NDArray[np.float64]
Set = tuple[str, ...]  # names in the order of graph.controllable
Values = Mapping[str, float]

TIE = 1e-9
# Eigenvalues of a singular Gram matrix come out as rounding errors; below this share of the largest they are 0.
PSEUDO_INVERSE_CUTOFF = 1e-10


class Learner(Protocol):
    def propose(self, u: Sequence[float]) -> Set: ...
    def update(self, action_set: Set, observation: Values) -> None: ...


# -- shared by all --------------------------------------------------------------------------------------------


def candidate_sets(graph: CausalGraph, budget: int) -> list[Set]:
    """Every S with |S| = K of the controllable variables with a path to Y; all of them if there are fewer."""
    relevant = [name for name in graph.controllable if graph.target in graph.descendants(name)]
    return list(itertools.combinations(relevant, min(budget, len(relevant))))


def all_arms(graph: CausalGraph, budget: int) -> list[Set]:
    """The baselines' arms: every K-subset of the controllable variables (Appendix H.2)."""
    return list(itertools.combinations(graph.controllable, min(budget, len(graph.controllable))))


def pick(values: Sequence[float], u0: float) -> int:
    """Position of the largest value; values within 1e-9 of it tie, and u0 chooses among them."""
    best = max(values)
    tied = [i for i, value in enumerate(values) if value >= best - TIE * max(1.0, abs(best))]
    return tied[int(u0 * len(tied))]


def dimension(graph: CausalGraph, name: str) -> int:
    """|Pa(X)|, the constant counted where it is a parent."""
    return int(graph.has_bias(name)) + len(graph.parents(name))


def features(graph: CausalGraph, name: str, values: Values) -> Array:
    """V_X: the values of X's parents, the constant first."""
    constant = [1.0] if graph.has_bias(name) else []
    return np.array(constant + [float(values[parent]) for parent in graph.parents(name)])


def pseudo_inverse(M: Array) -> Array:
    return np.linalg.pinv(M, rcond=PSEUDO_INVERSE_CUTOFF, hermitian=True)


def width(v: Array, M_inverse: Array) -> float:
    """||v|| in the norm of M^-1; rounding must not make the square negative."""
    return math.sqrt(max(0.0, float(v @ M_inverse @ v)))


# -- Algorithm 4: the pair-oracle for linear models -----------------------------------------------------------


def forward_value(graph: CausalGraph, S: Set, best_mean: Callable[[str, Array], float]) -> float:
    """Algorithm 4, lines 4-11, for one S: optimistic means in topological order; E[Y | do(S)] is the last."""
    mean: dict[str, float] = {}
    for name in graph.nodes:  # line 4
        v = features(graph, name, mean)  # line 5
        if name not in S:
            mean[name] = best_mean(name, v)  # line 7
        else:
            mean[name] = 1.0  # line 9
    return mean[graph.target]


def closed_form_value(
    graph: CausalGraph, theta_hat: Mapping[str, Array], M_inverse: Mapping[str, Array], rho: float, S: Set
) -> float:
    """Algorithm 4's inner loop as printed: rho sqrt(v' M^-1 v) + v' theta_hat, not clipped."""

    def best_mean(name: str, v: Array) -> float:
        return rho * width(v, M_inverse[name]) + float(v @ theta_hat[name])

    return forward_value(graph, S, best_mean)


def boxed_value(
    graph: CausalGraph, theta_hat: Mapping[str, Array], M: Mapping[str, Array], rho: float, S: Set
) -> float:
    """The same recursion over the ellipsoids of Algorithm 3, line 4, which lie within [0, 1]^d."""
    return boxed_values(graph, theta_hat, M, rho, [S])[0]


def boxed_values(
    graph: CausalGraph, theta_hat: Mapping[str, Array], M: Mapping[str, Array], rho: float, sets: Iterable[Set]
) -> list[float]:
    """`boxed_value` of each set; a node whose parents have the same means under several of them is solved once."""
    found: dict[tuple[str, bytes], float] = {}

    def best_mean(name: str, v: Array) -> float:
        key = name, v.tobytes()
        if key not in found:
            found[key] = boxed_maximum(v, theta_hat[name], M[name], rho).value
        return found[key]

    return [forward_value(graph, S, best_mean) for S in sets]


class BoxedMaximum(NamedTuple):
    value: float  # the dual value: never below the maximum
    theta: Array  # where it is attained
    gap: float  # value - v.theta; with theta in the region this proves both to this precision


def boxed_maximum(v: Array, theta_hat: Array, M: Array, rho: float) -> BoxedMaximum:
    """max v.theta over {theta in [0, 1]^d, ||theta - theta_hat||_M <= rho}; M positive definite.

    Lagrange: for a multiplier 1/(2s) of ||theta - theta_hat||_M^2 <= rho^2 the inner maximum is at
        theta(s) = argmin over the box of ||theta - theta_hat||_M^2 / 2 - s v.theta,
    whose distance from theta_hat grows with s, so the right s is found by root search. theta(0) is the box's nearest
    point: if even that is farther than rho, the region is empty and the radius is enlarged to reach it.
    """
    if not len(v):
        return BoxedMaximum(0.0, np.zeros(0), 0.0)
    reach = M @ theta_hat

    @cache
    def theta_at(s: float) -> Array:
        return box_minimum(M, reach + s * v)

    def distance(theta: Array) -> float:
        return width(theta - theta_hat, M)

    def dual(s: float) -> BoxedMaximum:
        theta = theta_at(s)
        gap = (rho**2 - distance(theta) ** 2) / (2.0 * s)
        return BoxedMaximum(float(v @ theta) + gap, theta, gap)

    nearest = theta_at(0.0)
    if distance(nearest) >= rho:
        return BoxedMaximum(float(v @ nearest), nearest, 0.0)
    best_corner = float(np.maximum(v, 0.0).sum())
    low, high = 0.0, 1.0
    while distance(theta_at(high)) < rho:
        theta = theta_at(high)
        if v @ theta >= best_corner - 1e-13:  # the whole box's maximum is within the ellipsoid
            return BoxedMaximum(best_corner, theta, best_corner - float(v @ theta))
        if dual(high).gap <= 1e-13:
            return dual(high)
        low, high = high, 4.0 * high
    s = brentq(lambda s: distance(theta_at(s)) - rho, low, high, xtol=1e-300, rtol=1e-15, maxiter=1000)
    return dual(s)


def box_minimum(M: Array, c: Array) -> Array:
    """argmin over [0, 1]^d of theta' M theta / 2 - c.theta, M positive definite: exact, by its active set.

    Active bounds are guessed until the answer fulfils the Karush-Kuhn-Tucker conditions, which only the minimum does.
    """
    for bounds in active_bounds(M, c):
        theta = np.array(bounds)
        free = np.isnan(theta)
        theta[free] = np.linalg.solve(M[np.ix_(free, free)], c[free] - M[np.ix_(free, ~free)] @ theta[~free])
        gradient = M @ theta - c
        small = 1e-11 * (1.0 + np.abs(c).max() + np.abs(M).max())
        if (
            np.all((theta >= -1e-11) & (theta <= 1.0 + 1e-11))
            and np.all(gradient[(theta == 0.0) & ~free] >= -small)
            and np.all(gradient[(theta == 1.0) & ~free] <= small)
        ):
            return np.clip(theta, 0.0, 1.0)
    raise AssertionError("a strictly convex function has a minimum over the box")


def active_bounds(M: Array, c: Array) -> Iterator[tuple[float, ...]]:
    """Guesses for `box_minimum`, NaN where no bound is active: none; those of scipy's bounded least squares; all."""
    yield (math.nan,) * len(c)
    root = np.linalg.cholesky(M)
    solved = lsq_linear(root.T, np.linalg.solve(root, c), bounds=(0.0, 1.0), method="bvls", tol=1e-15)
    yield tuple(0.0 if x <= 1e-12 else 1.0 if x >= 1.0 - 1e-12 else math.nan for x in solved.x)
    yield from itertools.product((0.0, 1.0, math.nan), repeat=len(c))


def epsilon_net_value(v: Array, theta_hat: Array, M: Array, rho: float, eps: float) -> float:
    """max v.theta over the points of a grid of step eps in [0, 1]^d that lie within the ellipsoid (small d only).

    The method of Li et al. 2020, Appendix B.5, that Algorithm 4 replaces; -inf if no grid point is inside.
    """
    steps = np.linspace(0.0, 1.0, round(1.0 / eps) + 1)
    net = np.stack([axis.ravel() for axis in np.meshgrid(*[steps] * len(v), indexing="ij")], axis=1)
    away = net - theta_hat
    inside = np.sum((away @ M) * away, axis=1) <= rho**2
    return float(np.max(net[inside] @ v, initial=-math.inf))


# -- Algorithm 3: BLM-LR --------------------------------------------------------------------------------------


class BLMLRTranscription:
    """Algorithm 3, with Algorithm 4 for line 5 ("closed-form") or with the box kept ("boxed")."""

    def __init__(
        self, graph: CausalGraph, budget: int, horizon: int, radius_scale: float = 1.0, region: str = "closed-form"
    ) -> None:
        assert region in ("closed-form", "boxed")
        assert not graph.latent
        self.graph, self.scale, self.region = graph, radius_scale, region
        self.sets = candidate_sets(graph, budget)
        self.n = len(graph.nodes) + 1
        # line 2
        self.M = {name: np.eye(dimension(graph, name)) for name in graph.nodes}
        self.b = {name: np.zeros(dimension(graph, name)) for name in graph.nodes}
        self.theta_hat = {name: np.zeros(dimension(graph, name)) for name in graph.nodes}
        self.delta = 1.0 / (self.n * math.sqrt(horizon))
        self.told = 0  # t - 1

    def radius(self, t: int) -> float:
        """rho_t of line 2."""
        n = self.n
        return self.scale * (math.sqrt(n * math.log(1 + t * n) + 2 * math.log(1 / self.delta)) + math.sqrt(n))

    def values(self) -> list[float]:
        """The optimistic E[Y | do(S)] of every candidate S in round t: lines 4-5, with rho_{t-1}."""
        rho = self.radius(self.told)
        if self.region == "boxed":
            return boxed_values(self.graph, self.theta_hat, self.M, rho, self.sets)
        M_inverse = {name: np.linalg.inv(M) for name, M in self.M.items()}
        return [closed_form_value(self.graph, self.theta_hat, M_inverse, rho, S) for S in self.sets]

    def propose(self, u: Sequence[float]) -> Set:
        return self.sets[pick(self.values(), u[0])]  # line 5

    def update(self, action_set: Set, observation: Values) -> None:
        for name in self.graph.nodes:  # line 7
            if name in action_set:  # line 8: a data pair only if X is not in S_t
                continue
            v = features(self.graph, name, observation)
            self.M[name] = self.M[name] + np.outer(v, v)  # line 9
            self.b[name] = self.b[name] + float(observation[name]) * v
            self.theta_hat[name] = np.linalg.inv(self.M[name]) @ self.b[name]
        self.told += 1


# -- Algorithm 2: BGLM-Estimate -------------------------------------------------------------------------------


def least_squares(V: Array, x: Array) -> Array:
    """Algorithm 2, line 5, for the identity link: M theta = b, the solution of least norm if M is singular."""
    return pseudo_inverse(V.T @ V) @ (V.T @ x)


def score(theta: Array, V: Array, x: Array, link: Link) -> Array:
    """The left-hand side of Algorithm 2, line 5: sum over i of (X^i - f(V_i.theta)) V_i."""
    return V.T @ (x - np.asarray(link.value(V @ theta), dtype=float))


def score_root(V: Array, x: Array, link: Link, tolerance: float = 1e-12) -> Array:
    """Algorithm 2, line 5: the theta where the score is 0, by damped Newton steps from theta = 0.

    Directions without data stay 0. If the data are `separated` there is no root: the score goes to 0 as theta grows
    without end, and the theta returned is merely where the steps ended.
    """
    if not V.size:
        return np.zeros(V.shape[1])
    eigenvalues, vectors = np.linalg.eigh(V.T @ V)
    Q = vectors[:, eigenvalues > PSEUDO_INVERSE_CUTOFF * eigenvalues[-1]]  # theta = Q a: the directions with data
    a = np.zeros(Q.shape[1])
    for _ in range(500):
        now = score(Q @ a, V, x, link)
        if np.linalg.norm(now) <= tolerance:
            break
        slopes = np.asarray(link.slope(V @ Q @ a), dtype=float)
        step = np.linalg.lstsq((V @ Q).T @ (slopes[:, None] * (V @ Q)), Q.T @ now, rcond=None)[0]
        damping = 1.0 / max(1.0, np.abs(V @ Q @ step).max())  # no leap to where f is flat
        while damping > 1e-12:
            tried = a + damping * step
            # f > 1 is beyond the pole of the rational link
            valid = np.all(np.asarray(link.value(V @ Q @ tried)) <= 1.0)
            if valid and np.linalg.norm(score(Q @ tried, V, x, link)) < np.linalg.norm(now):
                a = tried
                break
            damping /= 2.0
        else:
            break  # rounding allows no better
    theta = Q @ a
    assert np.linalg.norm(score(theta, V, x, link)) <= 1e-10 or separated(V, x, link), "Newton did not converge"
    return theta


def separated(V: Array, x: Array, link: Link) -> bool:
    """Whether the score has no root, because moving along some direction fits every row it touches ever better.

    Such a direction raises v.theta in rows with X = 1 only, and lowers it in rows with X = 0 only. Lowering is no
    such improvement for links that fall below 0 there, which are those with a least x in their domain.
    """
    if not V.size:
        return False
    may_rise = x >= 1.0
    may_fall = (x <= 0.0) & math.isinf(link.domain[0])
    sign = np.where(may_rise, 1.0, -1.0)
    gain = (sign[:, None] * V)[may_rise | may_fall]
    fixed = V[~(may_rise | may_fall)]
    found = linprog(
        -gain.sum(axis=0),
        A_ub=-gain if len(gain) else None,
        b_ub=np.zeros(len(gain)) if len(gain) else None,
        A_eq=fixed if len(fixed) else None,
        b_eq=np.zeros(len(fixed)) if len(fixed) else None,
        bounds=(-1.0, 1.0),
    )
    return bool(-found.fun > 1e-7)


# -- Algorithm 1: BGLM-OFU ------------------------------------------------------------------------------------


def pattern_probability(link: Link, v: Array, theta_hat: Array, M_inverse: Array, rho: float) -> float:
    """min(1, f(v.theta_hat + rho ||v||_{M^-1})); below the link's domain f is continued by its value at the edge."""
    x = float(v @ theta_hat) + rho * width(v, M_inverse)
    return min(1.0, float(link.value(max(x, link.domain[0]))))


def per_pattern_value(
    graph: CausalGraph,
    links: Mapping[str, Link],
    theta_hat: Mapping[str, Array],
    M_inverse: Mapping[str, Array],
    rho: float,
    S: Set,
) -> float:
    """E[Y | do(S)] when each X outside S has the optimistic probability of its parents' pattern: sum over worlds."""
    p_one: dict[tuple[str, tuple[int, ...]], float] = {}
    for name in graph.nodes:
        for pattern in itertools.product((0, 1), repeat=len(graph.parents(name))):
            v = features(graph, name, dict(zip(graph.parents(name), pattern, strict=True)))
            p_one[name, pattern] = pattern_probability(links[name], v, theta_hat[name], M_inverse[name], rho)
    total = []
    for bits in itertools.product((0, 1), repeat=len(graph.nodes)):
        world = dict(zip(graph.nodes, bits, strict=True))
        probability = 1.0
        for name in graph.nodes:
            p = 1.0 if name in S else p_one[name, tuple(world[parent] for parent in graph.parents(name))]
            probability *= p if world[name] else 1.0 - p
        total.append(probability * world[graph.target])
    return math.fsum(total)


def eigenvalue_threshold(d: int, l2: float, kappa: float, delta: float) -> float:
    """The right-hand side of Eq. (3)."""
    return 512.0 * d * l2**2 / kappa**4 * (d**2 + math.log(1.0 / delta))


class BGLMOFUTranscription:
    """Algorithm 1. Initialization ends after `initial_rounds`, or by the rule "lambda-min" when `thresholds` are given:
    no intervention until lambda_min(M_X) >= thresholds[X] for every X (the text below Algorithm 2).

    links: by node name; identity where none is given.
    """

    def __init__(
        self,
        graph: CausalGraph,
        links: Mapping[str, Link],
        budget: int,
        horizon: int,
        initial_rounds: int | None = None,
        kappa: float = 1.0,
        radius_scale: float = 1.0,
        thresholds: Mapping[str, float] | None = None,
    ) -> None:
        assert (initial_rounds is None) != (thresholds is None)
        assert not graph.latent
        self.graph = graph
        self.links = {name: links.get(name, identity) for name in graph.nodes}
        self.linear = all(link == identity for link in self.links.values())
        self.sets = candidate_sets(graph, budget)
        self.initial_rounds, self.thresholds = initial_rounds, thresholds
        # line 2
        n = len(graph.nodes) + 1
        self.delta = 1.0 / (3 * n * math.sqrt(horizon))
        self.rho = radius_scale * 3.0 / kappa * math.sqrt(math.log(1.0 / self.delta))
        self.told = 0
        # Algorithm 2, line 3: data pairs (V_{i,X}, X^i)
        self.rows: dict[str, list[Array]] = {name: [] for name in graph.nodes}
        self.outcomes: dict[str, list[float]] = {name: [] for name in graph.nodes}

    def data(self, name: str) -> tuple[Array, Array]:
        """V (rounds, d) and x (rounds,)."""
        V = np.array(self.rows[name], dtype=float).reshape(len(self.rows[name]), dimension(self.graph, name))
        return V, np.array(self.outcomes[name], dtype=float)

    def gram(self, name: str) -> Array:
        """Algorithm 2, line 6: the sum of v v' over the data."""
        V, _ = self.data(name)
        return V.T @ V

    def estimate(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """Algorithm 2: theta_hat and M of every node, from all rounds so far."""
        theta_hat, M = {}, {}
        for name in self.graph.nodes:  # Algorithm 2, line 4
            V, x = self.data(name)
            link = self.links[name]
            theta_hat[name] = least_squares(V, x) if link == identity else score_root(V, x, link)  # line 5
            M[name] = self.gram(name)  # line 6
        return theta_hat, M

    def initializing(self) -> bool:
        if self.thresholds is None:
            return self.told < self.initial_rounds
        for name in self.graph.nodes:
            M = self.gram(name)
            if len(M) and np.linalg.eigvalsh(M)[0] < self.thresholds[name]:
                return True
        return False

    def values(self) -> list[float]:
        """The optimistic E[Y | do(S)] of every candidate S: lines 7-9."""
        theta_hat, M = self.estimate()  # line 7
        M_inverse = {name: pseudo_inverse(M[name]) for name in self.graph.nodes}
        if self.linear:  # line 9 by Algorithm 4
            return [closed_form_value(self.graph, theta_hat, M_inverse, self.rho, S) for S in self.sets]
        return [per_pattern_value(self.graph, self.links, theta_hat, M_inverse, self.rho, S) for S in self.sets]

    def propose(self, u: Sequence[float]) -> Set:
        if self.initializing():
            return ()  # line 4
        return self.sets[pick(self.values(), u[0])]  # line 9

    def update(self, action_set: Set, observation: Values) -> None:
        for name in self.graph.nodes:
            if name not in action_set:  # Algorithm 2, line 3
                self.rows[name].append(features(self.graph, name, observation))
                self.outcomes[name].append(float(observation[name]))
        self.told += 1


# -- Appendix H.2: the baselines ------------------------------------------------------------------------------


class _Arms:
    """Plays and total reward of each K-subset."""

    def __init__(self, graph: CausalGraph, budget: int) -> None:
        self.target = graph.target
        self.arms = all_arms(graph, budget)
        self.plays = [0] * len(self.arms)
        self.total = [0.0] * len(self.arms)
        self.told = 0

    def update(self, action_set: Set, observation: Values) -> None:
        arm = [set(S) for S in self.arms].index(set(action_set))
        self.plays[arm] += 1
        self.total[arm] += float(observation[self.target])
        self.told += 1


class UCBTranscription(_Arms):
    """mean_i + scale sqrt(ln t / n_i), t the number of the current round; arms not yet played come first."""

    def __init__(self, graph: CausalGraph, budget: int, scale: float = 1.0) -> None:
        super().__init__(graph, budget)
        self.scale = scale

    def propose(self, u: Sequence[float]) -> Set:
        unplayed = [arm for arm, plays in zip(self.arms, self.plays, strict=True) if plays == 0]
        if unplayed:
            return unplayed[int(u[0] * len(unplayed))]
        t = self.told + 1
        bounds = [
            total / plays + self.scale * math.sqrt(math.log(t) / plays)
            for total, plays in zip(self.total, self.plays, strict=True)
        ]
        return self.arms[pick(bounds, u[0])]


class KLUCBTranscription(_Arms):
    """The largest q with n_i KL(mean_i, q) <= ln t + c ln ln t, by bisection; arms not yet played come first."""

    def __init__(self, graph: CausalGraph, budget: int, c: float = 0.0) -> None:
        super().__init__(graph, budget)
        self.c = c

    def propose(self, u: Sequence[float]) -> Set:
        unplayed = [arm for arm, plays in zip(self.arms, self.plays, strict=True) if plays == 0]
        if unplayed:
            return unplayed[int(u[0] * len(unplayed))]
        log_t = math.log(self.told + 1)
        level = log_t + self.c * math.log(max(log_t, 1.0))
        bounds = [self.bound(total / plays, level / plays) for total, plays in zip(self.total, self.plays, strict=True)]
        return self.arms[pick(bounds, u[0])]

    @staticmethod
    def bound(mean: float, most: float) -> float:
        low, high = mean, 1.0
        for _ in range(60):
            q = (low + high) / 2
            divergence = relative_entropy(mean, q) + relative_entropy(1 - mean, 1 - q)
            low, high = (q, high) if divergence <= most else (low, q)
        return low


def relative_entropy(p: float, q: float) -> float:
    """p ln(p / q): 0 where p is, and infinite where only q is."""
    if p == 0.0:
        return 0.0
    return p * math.log(p / q) if q > 0.0 else math.inf


class EpsilonGreedyTranscription(_Arms):
    """A random arm with probability epsilon (u1, then u2), else the best mean; an unplayed arm's mean counts as 1."""

    def __init__(self, graph: CausalGraph, budget: int, epsilon: float) -> None:
        super().__init__(graph, budget)
        self.epsilon = epsilon

    def propose(self, u: Sequence[float]) -> Set:
        if u[1] < self.epsilon:
            return self.arms[int(u[2] * len(self.arms))]
        means = [total / plays if plays else 1.0 for total, plays in zip(self.total, self.plays, strict=True)]
        return self.arms[pick(means, u[0])]


class RandomTranscription(_Arms):
    """All arms tie in every round."""

    def propose(self, u: Sequence[float]) -> Set:
        return self.arms[int(u[0] * len(self.arms))]


# -- playing --------------------------------------------------------------------------------------------------


def conditional_mean(model: WeightedModel, name: str, values: Values) -> float:
    """f_X(theta_X . parents): P(X = 1 | parents), or the mean of X in a continuous model."""
    bias, weights = model.parent_weights(name)
    x = bias
    for parent in model.graph.parents(name):
        x += weights[parent] * float(values[parent])
    return min(1.0, max(0.0, float(model.link(name).value(x))))


def set_to(S: Set | Mapping[str, float], name: str) -> float:
    """What a variable of S is set to: 1 in the paper."""
    return float(S[name]) if isinstance(S, Mapping) else 1.0


def draw_world(model: WeightedModel, S: Set | Mapping[str, float], uniforms: Sequence[float]) -> dict[str, float]:
    """One world under do(S = 1), or under do(S) where S says to what.

    uniforms[i] belongs to graph.nodes[i], also when that node is set.

    A binary model's noise on the probability leaves P(X = 1 | parents) as it is, so it has no part here.
    """
    graph = model.graph
    values: dict[str, float] = {}
    for i, name in enumerate(graph.nodes):
        if name in S:
            values[name] = set_to(S, name)
            continue
        m = conditional_mean(model, name, values)
        if model.continuous:
            noise = float(model.noise[graph.index(name)])
            values[name] = m + (2.0 * uniforms[i] - 1.0) * noise * min(m, 1.0 - m)
        else:
            values[name] = 1.0 if uniforms[i] < m else 0.0
    return values


class Played(NamedTuple):
    sets: list[Set]
    rewards: list[float]


def play(
    model: WeightedModel,
    learner: Learner,
    rounds: int,
    world_uniforms: Array,  # (rounds, nodes)
    policy_uniforms: Array,  # (rounds, 3)
) -> Played:
    """`rounds` rounds of propose, draw, update."""
    sets, rewards = [], []
    for t in range(rounds):
        S = learner.propose(policy_uniforms[t])
        observation = draw_world(model, S, world_uniforms[t])
        learner.update(S, observation)
        sets.append(S)
        rewards.append(observation[model.graph.target])
    return Played(sets, rewards)


# -- regret, Eq. (1) ------------------------------------------------------------------------------------------


def expected_reward(model: WeightedModel, S: Set | Mapping[str, float]) -> float:
    """E[Y | do(S)]: means pass through linear models; otherwise the sum over all worlds."""
    graph = model.graph
    if all(model.link(name) == identity for name in graph.nodes):
        mean: dict[str, float] = {}
        for name in graph.nodes:
            mean[name] = set_to(S, name) if name in S else conditional_mean(model, name, mean)
        return mean[graph.target]
    total = []
    for bits in itertools.product((0, 1), repeat=len(graph.nodes)):
        world = dict(zip(graph.nodes, bits, strict=True))
        probability = 1.0
        for name in graph.nodes:
            p = set_to(S, name) if name in S else conditional_mean(model, name, world)
            probability *= p if world[name] else 1.0 - p
        total.append(probability * world[graph.target])
    return math.fsum(total)


def best_reward(model: WeightedModel, budget: int) -> float:
    """max of E[Y | do(S)] over every S of at most K controllable variables."""
    sizes = range(min(budget, len(model.graph.controllable)) + 1)
    return max(expected_reward(model, S) for k in sizes for S in itertools.combinations(model.graph.controllable, k))


def expected_regret(model: WeightedModel, budget: int, sets: Sequence[Set]) -> Array:
    """Each round's best_reward - E[Y | do(S_t)]; its sum is R(T) of Eq. (1)."""
    best = best_reward(model, budget)
    reward = {S: expected_reward(model, S) for S in set(sets)}
    return np.array([best - reward[S] for S in sets])
