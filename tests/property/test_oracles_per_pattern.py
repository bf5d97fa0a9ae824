"""Oracles per pattern of the parents, with values other than 1 and in contexts, against sums over all worlds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import transcription as tr
from dobandit import BGLMOFU, BLMLR, CausalGraph, CausalUCB
from dobandit.errors import PolicyError
from dobandit.model.links import identity, logistic
from dobandit.oracle.action_list import action_list
from dobandit.oracle.actions import Action, actions_of, order_of
from dobandit.policy.engine import no_context
from helpers.oracle_problems import Learned, learned, links_for, seeds
from helpers.worlds import ARCTAN, relaxed

# -- per pattern ----------------------------------------------------------------------------------------------


@relaxed(max_examples=30)
@given(learned(most=6, outside=0.3), st.data())
def test_per_pattern_is_the_sum_over_all_worlds(known, data):
    links = data.draw(links_for(known))
    arguments = (known.graph, known.by_name(links), known.theta_hat, known.M_inverse, known.rho)
    truth = [tr.per_pattern_value(*arguments, S) for S in known.sets]
    np.testing.assert_allclose(known.per_pattern(links), truth, atol=1e-11)


def test_per_pattern_with_a_link_of_ones_own():
    rng = np.random.default_rng(1)
    known = Learned(CausalGraph([("a", "c"), ("b", "c"), ("c", "Y"), ("a", "Y")], target="Y"), rng, budget=1)
    known.radii[:] = known.rho = 0.5
    links = [ARCTAN] * 4
    arguments = (known.graph, known.by_name(links), known.theta_hat, known.M_inverse, known.rho)
    truth = [tr.per_pattern_value(*arguments, S) for S in known.sets]
    np.testing.assert_allclose(known.per_pattern(links), truth, atol=1e-10)


def test_twelve_parents_are_tabulated():
    parents = 12
    rng = np.random.default_rng(parents)
    names = [f"X{i}" for i in range(parents)]
    known = Learned(CausalGraph([(name, "Y") for name in names], target="Y"), rng, budget=parents - 2, rows=200)
    known.radii[:] = known.rho = 0.3
    links = [identity] * parents + [logistic(2.0)]
    found = known.per_pattern(links)
    for i in rng.integers(len(known.sets), size=5):
        free = [name for name in names if name not in known.sets[i]]
        truth = 0.0
        for bits in itertools.product((0.0, 1.0), repeat=len(free)):
            world = dict.fromkeys(names, 1.0) | dict(zip(free, bits, strict=True))
            p = 1.0
            for name in free:
                mean = tr.pattern_probability(
                    identity, np.ones(1), known.theta_hat[name], known.M_inverse[name], known.rho
                )
                p *= mean if world[name] else 1.0 - mean
            v = tr.features(known.graph, "Y", world)
            truth += p * tr.pattern_probability(links[-1], v, known.theta_hat["Y"], known.M_inverse["Y"], known.rho)
        assert found[i] == pytest.approx(truth, abs=1e-11)


def test_more_parents_are_refused_with_policies_that_can():
    graph = CausalGraph([(f"X{i}", "Y") for i in range(13)], target="Y")
    with pytest.raises(PolicyError, match=r"up to 12 causes.*Use CausalUCB, or BLMLR"):
        BGLMOFU(initial=3, kappa=0.1).start(graph, 1, links="logistic")
    assert len(BLMLR().start(graph, 1).propose()) == 1
    assert CausalUCB().start(graph, 1).propose() is not None


# -- values other than 1, and what is known before acting ------------------------------------------------------


def some_actions(rng, graph, count, values=(0.0, 1.0)):
    """Different actions of any size, nothing included, on any variables but the target."""
    ids = [v for v in range(1, len(graph) + 1) if v != graph.index(graph.target)]
    found = {Action(): None}
    for _ in range(count):
        chosen = sorted(rng.permutation(ids)[: int(rng.integers(0, len(ids) + 1))].tolist())
        found[Action(tuple(chosen), tuple(float(rng.choice(values)) for _ in chosen))] = None
    return list(found)


def some_context(rng, graph, values=(0.0, 1.0)):
    """Values of some variables by id, the target's never among them."""
    context = no_context(len(graph))
    for v in range(1, len(graph) + 1):
        if v != graph.index(graph.target) and rng.random() < 0.3:
            context[v] = rng.choice(values)
    return context


def given_values(known, action, context):
    """What is not left to chance, by name; what is set counts, whatever the context says."""
    names = known.graph.nodes
    seen = {names[v - 1]: float(context[v]) for v in range(1, len(names) + 1) if not np.isnan(context[v])}
    return seen | {names[v - 1]: value for v, value in zip(action.ids, action.values, strict=True)}


def by_recursion(known, given, best_mean):
    """The target's mean, cause by cause, from the causes' names."""

    def mean(name):
        if name not in done:
            parents = known.graph.parents(name)
            row = [1.0] * known.graph.has_bias(name) + [mean(parent) for parent in parents]
            done[name] = best_mean(name, np.array(row)) if name not in given else given[name]
        return done[name]

    done = {}
    return mean(known.graph.target)


def by_worlds(known, links, given):
    """P(target = 1) as a sum over the worlds, each node with the largest chance that its region allows."""
    total = []
    for bits in itertools.product((0.0, 1.0), repeat=len(known.graph)):
        world = dict(zip(known.graph.nodes, bits, strict=True))
        chance = world[known.graph.target]
        for name, link in zip(known.graph.nodes, links, strict=True):
            row = np.array([1.0] * known.graph.has_bias(name) + [world[p] for p in known.graph.parents(name)])
            inverse = known.M_inverse[name]
            x = row @ known.theta_hat[name] + known.rho * math.sqrt(max(row @ inverse @ row, 0.0))
            p = given[name] if name in given else min(max(float(link.value(max(x, link.domain[0]))), 0.0), 1.0)
            chance *= p if world[name] else 1.0 - p
        total.append(chance)
    return math.fsum(total)


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 0.3, 0.75, 1.0)], ids=["0 and 1", "numbers"])
@relaxed(max_examples=40)
@given(learned(most=7, outside=0.5), seeds)
def test_closed_form_of_any_values_in_any_context_is_the_plain_recursion(values, known, seed):
    rng = np.random.default_rng(seed)
    actions, context = some_actions(rng, known.graph, 12, values), some_context(rng, known.graph, values)
    listed = action_list(order_of(known.graph), actions_of(actions))
    found = known.closed(listed, context)
    assert {listed.actions.row(i) for i in range(len(found))} == set(actions)
    for i, value in enumerate(found):

        def best_mean(name, row):
            spread = math.sqrt(max(row @ known.M_inverse[name] @ row, 0.0))
            return float(row @ known.theta_hat[name]) + known.rho * spread

        truth = by_recursion(known, given_values(known, listed.actions.row(i), context), best_mean)
        assert value == pytest.approx(truth, rel=1e-10, abs=1e-11)


@relaxed(max_examples=25)
@given(learned(most=5, outside=0.3), seeds)
def test_boxed_values_in_any_context_are_the_plain_recursion(known, seed):
    rng = np.random.default_rng(seed)
    context = some_context(rng, known.graph)
    listed = action_list(order_of(known.graph), actions_of(some_actions(rng, known.graph, 6)))
    for i, value in enumerate(known.boxed(listed, context)):

        def best_mean(name, row):
            return tr.boxed_maximum(row, known.theta_hat[name], known.M[name], known.rho).value

        truth = by_recursion(known, given_values(known, listed.actions.row(i), context), best_mean)
        assert value == pytest.approx(truth, abs=1e-9)


@relaxed(max_examples=30)
@given(learned(most=6, outside=0.3), seeds, st.data())
def test_per_pattern_of_values_0_and_1_in_any_context_is_the_sum_over_worlds(known, seed, data):
    links, rng = data.draw(links_for(known)), np.random.default_rng(seed)
    context = some_context(rng, known.graph)
    listed = action_list(order_of(known.graph), actions_of(some_actions(rng, known.graph, 8)))
    for i, value in enumerate(known.per_pattern(links, listed, context)):
        truth = by_worlds(known, links, given_values(known, listed.actions.row(i), context))
        assert value == pytest.approx(truth, abs=1e-11)


def test_what_is_set_counts_whatever_the_context_says():
    known = Learned(CausalGraph([("a", "Y"), ("b", "Y")], target="Y"), np.random.default_rng(0), budget=1)
    a, b = known.graph.index("a"), known.graph.index("b")
    listed = action_list(order_of(known.graph), actions_of([Action((a,), (0.0,)), Action((a, b), (0.0, 1.0))]))
    context = no_context(3)
    context[a] = 1.0
    np.testing.assert_array_equal(known.closed(listed, context), known.closed(listed))
