"""Algorithm 3: BLM-LR."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dobandit.graph.causal_graph import CausalGraph
from transcription.pair_oracle import boxed_values, closed_form_value
from transcription.shared import Set, Values, candidate_sets, dimension, features, pick


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
