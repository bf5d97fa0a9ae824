"""Algorithm 1: BGLM-OFU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.links import Link, identity
from transcription.bglm_estimate import least_squares, score_root
from transcription.pair_oracle import closed_form_value
from transcription.shared import Array, Set, Values, candidate_sets, dimension, features, pick, pseudo_inverse, width


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
    parents = {name: graph.parents(name) for name in graph.nodes}
    for name in graph.nodes:
        if name in S:
            continue
        for pattern in itertools.product((0, 1), repeat=len(parents[name])):
            v = features(graph, name, dict(zip(parents[name], pattern, strict=True)))
            p_one[name, pattern] = pattern_probability(links[name], v, theta_hat[name], M_inverse[name], rho)
    total = []
    for bits in itertools.product((0, 1), repeat=len(graph.nodes)):
        world = dict(zip(graph.nodes, bits, strict=True))
        probability = 1.0
        for name in graph.nodes:
            p = 1.0 if name in S else p_one[name, tuple(world[parent] for parent in parents[name])]
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
