"""What the tests of oracles share: random problems with all that an oracle is told."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import transcription as tr
from dobandit import CausalGraph
from dobandit.estimation.belief import layout_of, start_belief
from dobandit.model.link_kernels import link_arrays, write_links
from dobandit.model.links import exponential, identity, logistic, probit, rational
from dobandit.oracle.action_list import action_list
from dobandit.oracle.actions import Allowed, order_of
from dobandit.oracle.boxed import boxed, boxed_index
from dobandit.oracle.frontier import frontier_of
from dobandit.oracle.interval_pass import interval_pass
from dobandit.oracle.per_pattern import pattern_index
from dobandit.oracle.rules import Rules
from dobandit.oracle.upper_means import upper_index, upper_means
from dobandit.policy.engine import no_context
from helpers.worlds import graphs

seeds = st.integers(0, 2**32 - 1)


def every_set(graph, budget):
    """The list of every set of `budget` variables that can matter, each set to 1."""
    order = order_of(graph)
    return action_list(order, Allowed(graph, Rules(budget), monotone=True, relevant=set(order)).rows())


class Learned:
    """Random estimates and Gram matrices on a graph, flat for the oracles and by name for the transcription."""

    def __init__(self, graph: CausalGraph, rng: np.random.Generator, budget: int, rows: int = 30, outside: float = 0.0):
        self.graph, self.budget, self.rho = graph, budget, float(rng.choice([0.05, 0.4, 2.0]))
        self.layout, self.actions = layout_of(graph), every_set(graph, budget)
        self.M, self.theta_hat = {}, {}
        for name in graph.nodes:
            d = tr.dimension(graph, name)
            V = (rng.random((int(rng.integers(0, rows)), d)) < 0.5).astype(float)
            self.M[name] = np.eye(d) + V.T @ V
            self.theta_hat[name] = rng.uniform(-outside, 1.0 / max(d, 1) + outside, d)
        self.M_inverse = {name: np.linalg.inv(M) for name, M in self.M.items()}
        self.gram = np.concatenate([np.zeros(0), *(self.M[name].ravel() for name in graph.nodes)])
        self.inverse = np.concatenate([np.zeros(0), *(self.M_inverse[name].ravel() for name in graph.nodes)])
        self.theta = np.concatenate([np.zeros(0), *(self.theta_hat[name] for name in graph.nodes)])
        self.state = start_belief(self.layout, 1.0)
        self.state.pairs["gram"], self.state.pairs["inverse"] = self.gram, self.inverse
        self.state.slots["line"] = self.state.slots["curve"] = self.theta
        self.radii = np.full(len(graph) + 1, self.rho)
        self.sets = tr.candidate_sets(graph, budget)

    def scores(self, evaluate, plan, context=None):
        """The index of every action of the plan's list."""
        fixed = no_context(len(self.graph)) if context is None else context
        evaluate(self.state, plan, fixed, self.radii, np.zeros(1))
        return plan.actions.scores["index"].copy()

    def closed(self, actions=None, context=None):
        return self.scores(upper_index, upper_means(self.graph, actions or self.actions), context)

    def boxed(self, actions=None, context=None):
        return self.scores(boxed_index, boxed(self.graph, actions or self.actions), context)

    def per_pattern(self, links, actions=None, context=None):
        arrays, actions = link_arrays(links, np.maximum(np.diff(self.layout.ptr)[1:], 1.0)), actions or self.actions
        self.state = self.state._replace(points=write_links(self.state.nodes, arrays))
        return self.scores(pattern_index, interval_pass(actions, frontier_of(self.graph, actions.order)), context)

    def by_name(self, links):
        return dict(zip(self.graph.nodes, links, strict=True))


@st.composite
def learned(draw, most=6, **options):
    """On a random graph, any budget, 0 and all included."""
    graph = draw(graphs(most=most))
    budget = draw(st.integers(0, len(graph.controllable)))
    return Learned(graph, np.random.default_rng(draw(seeds)), budget, **options)


@st.composite
def links_for(draw, known):
    kinds = [identity, exponential, logistic(), logistic(1.5), probit(1.0), rational(), rational(20.0)]
    return [draw(st.sampled_from(kinds)) for _ in known.graph.nodes]
