"""Appendix H.2: the baselines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dobandit.graph.causal_graph import CausalGraph
from transcription.shared import Set, Values, all_arms, pick


class _Arms:
    """Plays and total reward of each K-subset."""

    def __init__(self, graph: CausalGraph, budget: int) -> None:
        self.target = graph.target
        self.arms = all_arms(graph, budget)
        self.place = {frozenset(arm): i for i, arm in enumerate(self.arms)}
        self.plays = [0] * len(self.arms)
        self.total = [0.0] * len(self.arms)
        self.told = 0

    def update(self, action_set: Set, observation: Values) -> None:
        arm = self.place[frozenset(action_set)]
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
