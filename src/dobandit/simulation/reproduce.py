"""The paper's simulations (Appendix H.2): five models, six policies, 600 runs of each; and what goes beyond the paper.

rho is a tenth of the formula for BLM-LR and BLM-OFU; T0 = T / 100 for BLM-OFU; the region is Algorithm 4's ellipsoid;
UCB, UCB with a tenth of its bound, and epsilon-greedy 0.1 and 0.01 play over all K-subsets, ties broken at random.

Beyond the paper are its experiments with the policies that it does not have, and worlds that its policies do not fit:
interaction   two causes of the target work only together, which no sum of effects can say
harm          some causes do harm, so that smaller sets can be better than larger ones
missing-edge  the learners do not know that the coupon is a cause of buying
hidden-cause  the learners do not know that a mood, which nobody sees, makes people both visit and buy
The learners are told a graph alone; BLM-LR reads it as it must: linear, with harm as no effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from dobandit import paper
from dobandit.errors import SimulationError, closest, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.bglm import BinaryGLM
from dobandit.model.causal_model import CausalModel
from dobandit.model.links import identity
from dobandit.model.table_model import TableModel
from dobandit.policy.arms import UCB, EpsilonGreedy
from dobandit.policy.base import Policy
from dobandit.policy.causal_ucb import CausalTS, CausalUCB
from dobandit.policy.engine import Engine
from dobandit.policy.paper_policies import BGLMOFU, BLMLR
from dobandit.policy.problem import Problem
from dobandit.policy.yardsticks import Random
from dobandit.simulation.result import StudyResult
from dobandit.simulation.study import Study, study_of

REPLICATIONS = 600
_POLICIES = ("BLM-LR", "BLM-OFU", "UCB", "UCB (scaled)", "eps-greedy (0.1)", "eps-greedy (0.01)")
_REGRETS = {
    "G1": (39, 67, 650, 501, 283, 314),
    "G2": (18.6, 19.2, 293, 80, 129, 142),
    "G3": (16.9, 17.5, 224, 133, 85, 162),
    "G4": (11.8, 15.4, 110, 110, 70, 108),
    "G5": (13.7, 72, 291, 346, 365, 260),
}
# Cumulative regret at the last round, read off the published plots to about 3 percent.
PUBLISHED = {graph: dict(zip(_POLICIES, regrets, strict=True)) for graph, regrets in _REGRETS.items()}
# The published script keeps one run of each group of 30: its averages are of 20 runs, not of 600.
PUBLISHED_RUNS = 20
READING_ERROR = 0.03


def paper_policies(rounds: int) -> dict[str, Policy]:
    """The policies of the paper's figures for a run of so many rounds."""
    return {
        "BLM-LR": BLMLR(radius_scale=0.1),
        "BLM-OFU": BGLMOFU(radius_scale=0.1, initial=rounds // 100),
        "UCB": UCB(),
        "UCB (scaled)": UCB(scale=0.1),
        "eps-greedy (0.1)": EpsilonGreedy(0.1),
        "eps-greedy (0.01)": EpsilonGreedy(0.01),
    }


def paper_study(name: str, replications: int = REPLICATIONS, seed: int = 0, beyond: bool = False) -> Study:
    """One of the five experiments; beyond: with our policies too, on the same random numbers."""
    if name not in paper.MODELS:
        raise SimulationError(
            f"the paper's models are {listed(paper.MODELS)}, but got {name!r}.{closest(name, paper.MODELS)}"
        )
    rounds = paper.ROUNDS[name]
    policies = paper_policies(rounds) | (our_policies() if beyond else {})
    return study_of(paper.MODELS[name], policies, rounds, replications, paper.BUDGETS[name], seed)


@dataclass(frozen=True)
class Comparison:
    """Our mean beside the published one; the difference counts in standard errors of both and of reading the plot."""

    graph: str
    policy: str
    ours: float
    published: float
    standard_errors: float

    @property
    def relative(self) -> float:
        return self.ours / self.published - 1.0

    @property
    def agrees(self) -> bool:
        """Within 10 percent or 3 standard errors."""
        return abs(self.relative) <= 0.10 or abs(self.standard_errors) <= 3.0

    @property
    def remark(self) -> str:
        """What is to be said of the difference."""
        if abs(self.relative) <= 0.10:
            return "within 10%"
        if math.isnan(self.standard_errors):
            return "one run: no error is known"
        size = f"{abs(self.standard_errors):.1f} standard errors"
        if self.agrees:
            return f"{size}: within the error of an average of {PUBLISHED_RUNS} runs"
        return f"{size}: differs; the published value is an average of {PUBLISHED_RUNS} heavy-tailed runs"


def compare(name: str, result: StudyResult) -> list[Comparison]:
    """Our regrets beside the published ones.

    The error of the published average is that of PUBLISHED_RUNS runs with our spread, plus that of reading the plot.
    """
    rows = []
    for policy, published in PUBLISHED[name].items():
        summary = result.summary_of(policy)
        own = summary.standard_error  # of one run: unknown (NaN), and so is the difference
        theirs = own * math.sqrt(summary.size / PUBLISHED_RUNS)
        error = math.sqrt(own**2 + theirs**2 + (READING_ERROR * published) ** 2)
        rows.append(Comparison(name, policy, summary.mean, published, (summary.mean - published) / error))
    return rows


ROUNDS = 2_000
GUARANTEED_RUNS = 10  # intervals that hold at every round take much longer than the others
Weights = dict[str | tuple[str, str], float]
_LEVERS = ["ad", "mail", "coupon"]


class Misfit(NamedTuple):
    """A world that the paper's model does not fit, and the graph that learners are told; None: the world's."""

    model: CausalModel
    budget: int
    graph: CausalGraph | None = None


def _interaction() -> Misfit:
    """A coupon works only for those who read the mail; advertising and the site add a little each."""
    edges = [("ad", "visit"), ("site", "visit"), ("visit", "buy"), ("mail", "buy"), ("coupon", "buy")]
    graph = CausalGraph(edges, target="buy", controllable=["ad", "site", "mail", "coupon"])
    buy = [[[0.10, 0.40], [0.05, 0.35]], [[0.10, 0.40], [0.40, 0.70]]]  # by coupon, mail, visit
    roots = {"ad": 0.3, "site": 0.3, "mail": 0.2, "coupon": 0.2}
    return Misfit(TableModel(graph, {**roots, "visit": [[0.1, 0.45], [0.45, 0.8]], "buy": buy}), 2)


def _harm() -> Misfit:
    """Advertising brings visits and annoys; the best set is smaller than the budget allows."""
    weights: Weights = {"ad": 0.3, "mail": 0.3, "popup": 0.3, "visit": 0.15, "annoyed": 0.05, "buy": 0.5}
    weights |= {("ad", "visit"): 0.35, ("mail", "visit"): 0.4, ("visit", "buy"): 0.4, ("annoyed", "buy"): -0.4}
    weights |= {("ad", "annoyed"): 0.45, ("mail", "annoyed"): 0.05, ("popup", "annoyed"): 0.4, ("popup", "buy"): -0.05}
    return Misfit(BinaryGLM.blm(weights, "buy", controllable=["ad", "mail", "popup"]), 2)


def _missing_edge() -> Misfit:
    """A coupon brings few visits and makes many buy."""
    weights: Weights = {"ad": 0.3, "mail": 0.3, "coupon": 0.2, "visit": 0.1, "buy": 0.1}
    weights |= {("ad", "visit"): 0.35, ("mail", "visit"): 0.3, ("coupon", "visit"): 0.05}
    weights |= {("visit", "buy"): 0.4, ("coupon", "buy"): 0.3}
    edges = [("ad", "visit"), ("mail", "visit"), ("coupon", "visit"), ("visit", "buy")]
    graph = CausalGraph(edges, target="buy", controllable=_LEVERS)
    return Misfit(BinaryGLM.blm(weights, "buy", controllable=_LEVERS), 1, graph)


def _hidden_cause() -> Misfit:
    """Those in the mood visit and buy, so that visits seem to matter much more than they do."""
    weights: Weights = {"mood": 0.5, "ad": 0.3, "mail": 0.3, "coupon": 0.3, "visit": 0.02, "buy": 0.1}
    weights |= {("ad", "visit"): 0.5, ("mail", "visit"): 0.03, ("mood", "visit"): 0.45}
    weights |= {("coupon", "buy"): 0.1, ("visit", "buy"): 0.05, ("mood", "buy"): 0.6}
    edges = [("ad", "visit"), ("mail", "visit"), ("coupon", "buy"), ("visit", "buy")]
    graph = CausalGraph(edges, target="buy", controllable=_LEVERS)
    return Misfit(BinaryGLM.blm(weights, "buy", latent=["mood"], controllable=_LEVERS), 1, graph)


WORLDS = {
    "interaction": _interaction(),
    "harm": _harm(),
    "missing-edge": _missing_edge(),
    "hidden-cause": _hidden_cause(),
}


@dataclass(frozen=True)
class Linear(Policy):
    """Another policy that takes every link for the identity, whatever the others learn."""

    policy: Policy

    @property
    def label(self) -> str:
        return self.policy.label

    def engine(self, problem: Problem) -> Engine:
        return self.policy.engine(replace(problem, links=(identity,) * len(problem.graph)))


def our_policies() -> dict[str, Policy]:
    """The policies that the paper does not have."""
    return {"CausalUCB": CausalUCB(), "CausalTS": CausalTS()}


def guaranteed_study(name: str, replications: int = REPLICATIONS, seed: int = 0) -> Study:
    """One of the paper's experiments with the learners whose regret is guaranteed, in the first runs of the others."""
    study = paper_study(name, min(replications, GUARANTEED_RUNS), seed)
    return replace(study, policies={"BLM-LR (guarantee)": BLMLR(), "CausalUCB (guarantee)": CausalUCB(True)})


def world_study(name: str, replications: int = REPLICATIONS, seed: int = 0) -> Study:
    """One of WORLDS, of which the learners know the graph alone."""
    policies: dict[str, Policy] = {
        **our_policies(),
        "BLM-LR": Linear(BLMLR(radius_scale=0.1, clipped=True)),
        "UCB": UCB(),
        "UCB (scaled)": UCB(scale=0.1),
        "eps-greedy (0.1)": EpsilonGreedy(0.1),
        "Random": Random(),
    }
    model, budget, graph = WORLDS[name]
    return study_of(model, policies, ROUNDS, replications, budget, seed, graph=graph, links="auto", effects="any")
