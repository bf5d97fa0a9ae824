"""Evidence against a graph: E against its definition in plain Python, batches against rows, what is looked at."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaln, logsumexp

from dobandit import BinaryGLM, CausalGraph, CausalUCB
from dobandit.errors import PolicyError
from dobandit.estimation.evidence import GRID, SHIFTS, ceiling, log_ratio, weigh
from dobandit.policy.engine import Rounds
from dobandit.policy.graph_evidence import HIDDEN_CAUSE, MISSING_EDGE, GraphEvidence
from dobandit.policy.problem import problem_of
from helpers.worlds import relaxed

GRAPH = CausalGraph([("A", "M"), ("B", "M"), ("M", "Y"), ("C", "Y")], target="Y", controllable=["A", "B", "C", "M"])
PLAIN = {"A": 0.3, "B": 0.4, "C": 0.5, "M": 0.1, "Y": 0.1, ("A", "M"): 0.4, ("B", "M"): 0.3}
PLAIN |= {("M", "Y"): 0.4, ("C", "Y"): 0.3}


def evidence_on(graph, **keywords):
    return GraphEvidence(problem_of(graph, 1, **keywords))


def log10_of(evidence):
    """log10 of E of every node that is looked at."""
    nodes, _, alternatives, cells, shares = evidence.state
    if evidence.extras:
        weigh(nodes, alternatives, cells, shares, -math.inf)
    return {evidence.graph.nodes[node["node"] - 1]: node["evidence"] / math.log(10.0) for node in nodes}


def random_rounds(rng, graph, rows, missing=0.0):
    values = np.ones((rows, len(graph) + 1))
    values[:, 1:] = rng.random((rows, len(graph))) < rng.random(len(graph))
    target = graph.arrays.target
    values[:, target] = rng.random(rows) < np.where(values[:, 1] == 1.0, 0.9, 0.2)
    was_set = rng.random(values.shape) < 0.2
    was_set[:, [0, target]] = False
    values[(rng.random(values.shape) < missing) & ~was_set & (np.arange(values.shape[1]) > 0)] = math.nan
    return Rounds(values, was_set, rng.integers(1, 4, size=rows))


# -- the definition ---------------------------------------------------------------------------------------------------


def plain_log_e(graph, rounds, node):
    """log E by the module's docstring: rows in dictionaries, every integral by itself."""
    parents = graph.parents(node)
    no_parent = [w for w in graph.nodes if w != node and w not in parents and w not in graph.descendants(node)]
    bits = [(w, True) for w in parents if w in graph.controllable] + [(w, False) for w in no_parent]
    stories = [plain_story(graph, rounds, node, w, by_set) for w, by_set in bits]
    return logsumexp(stories) - math.log(len(bits))


def plain_story(graph, rounds, node, extra, by_set):
    cells = defaultdict(lambda: np.zeros((2, 2)))  # pattern: by z, zeros and ones of x
    for values, was_set, count in zip(*rounds, strict=True):
        row = {name: values[graph.index(name)] for name in graph.nodes}
        pattern = tuple(row[p] for p in graph.parents(node))
        z = float(was_set[graph.index(extra)]) if by_set else row[extra]
        if was_set[graph.index(node)] or any(math.isnan(number) for number in (row[node], z, *pattern)):
            continue
        cells[pattern][int(z), int(row[node])] += count
    table = sum(aside(plain_table(cell) - plain_null(cell)) for cell in cells.values())
    shifts = [sum(aside(plain_shift(cell, by) - plain_null(cell)) for cell in cells.values()) for by in SHIFTS]
    return np.logaddexp(table, logsumexp(shifts) - math.log(len(SHIFTS))) - math.log(2.0)


def aside(x):
    return np.logaddexp(0.0, x) - math.log(2.0)


def plain_null(cell):
    zeros, ones = cell.sum(axis=0)
    return sum(k * math.log(k / (zeros + ones)) for k in (zeros, ones) if k)


def plain_table(cell):
    return sum(betaln(ones + 0.5, zeros + 0.5) - math.log(math.pi) for zeros, ones in cell)


def plain_shift(cell, by):
    p = np.sin(math.pi * (np.arange(GRID) + 0.5) / (2 * GRID)) ** 2
    moved = 1.0 / (1.0 + (1.0 - p) / p * math.exp(-by))
    (f0, s0), (f1, s1) = cell
    chance = s0 * np.log(p) + f0 * np.log1p(-p) + s1 * np.log(moved) + f1 * np.log1p(-moved)
    return logsumexp(chance) - math.log(GRID)


@relaxed(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([0, 3, 40, 400]), st.sampled_from([0.0, 0.2]))
def test_e_is_the_definition(seed, rows, missing):
    rounds = random_rounds(np.random.default_rng(seed), GRAPH, rows, missing)
    evidence = evidence_on(GRAPH)
    evidence.update(rounds)
    for name, log10 in log10_of(evidence).items():
        assert log10 * math.log(10.0) == pytest.approx(plain_log_e(GRAPH, rounds, name), abs=1e-5)


@relaxed(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.001, 0.9))
def test_findings_are_the_nodes_above_the_threshold(seed, alpha):
    """Nodes that are passed over because they cannot reach it are none of them."""
    rng = np.random.default_rng(seed)
    evidence = evidence_on(GRAPH)
    evidence.update(random_rounds(rng, GRAPH, int(rng.integers(1, 200))))
    found = {finding.node: finding for finding in evidence.findings(alpha)}
    all_of_them = log10_of(evidence)
    assert set(found) == {name for name, log10 in all_of_them.items() if log10 >= math.log10(len(GRAPH) / alpha)}
    assert all(finding.log10 == all_of_them[name] for name, finding in found.items())


@relaxed(max_examples=15)
@given(st.integers(0, 10**6), st.floats(0.001, 0.9), st.sampled_from([0.0, 0.2]))
def test_asking_after_every_round_finds_what_asking_once_does(seed, alpha, missing):
    """What is kept of patterns that no row came to is what is worked out anew, to the bit; a copy keeps its own."""
    rounds = random_rounds(np.random.default_rng(seed), GRAPH, 150, missing)
    asked = evidence_on(GRAPH)
    for end in range(3, 150, 3):
        asked.update(Rounds(*(part[end - 3 : end] for part in rounds)))
        once = evidence_on(GRAPH)
        once.update(Rounds(*(part[:end] for part in rounds)))
        assert asked.findings(alpha) == once.findings(alpha)
        if end % 30 == 0:
            asked.copy().update(rounds)
            assert log10_of(asked) == log10_of(once)


@relaxed(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([1, 30, 3000]))
def test_what_an_alternative_could_reach_is_never_too_little(seed, rows):
    """By what is cheap to know: nodes are passed over by it."""
    evidence = evidence_on(GRAPH)
    evidence.update(random_rounds(np.random.default_rng(seed), GRAPH, rows))
    state = evidence.state
    for alternative in state.alternatives:
        exact = log_ratio(alternative, state.cells, state.shares)
        assert exact <= ceiling(alternative, state.cells) + 1e-9


@relaxed(max_examples=20)
@given(st.integers(0, 10**6))
def test_a_batch_is_its_rows_in_any_order(seed):
    rng = np.random.default_rng(seed)
    rounds = random_rounds(rng, GRAPH, 60, 0.1)
    whole, single = evidence_on(GRAPH), evidence_on(GRAPH)
    whole.update(rounds)
    for i in rng.permutation(np.repeat(np.arange(60), rounds.counts)):
        single.update(Rounds(rounds.values[[i]], rounds.was_set[[i]], np.ones(1, dtype=np.int64)))
    for one, other in zip(whole.state, single.state, strict=True):
        assert np.array_equal(one, other)
    assert log10_of(whole) == log10_of(single)


# -- fair at every step -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_no_node_gains_by_chance(p):
    """E[E] <= 1 after every round, added up over all worlds of 8 rounds; z is what the last round's x was, the most
    that a learner could do to make them look related."""
    graph = CausalGraph([("A", "Y")], target="Y", nodes=["B"], controllable=["A"])
    mean = np.zeros(9)
    for world in range(1 << 8):
        x = [world >> t & 1 for t in range(8)]
        evidence, chance = evidence_on(graph), 1.0
        for t in range(8):
            values, was_set = np.ones((1, 4)), np.zeros((1, 4), dtype=bool)
            values[0, graph.index("A")], was_set[0, graph.index("A")] = 1.0, t % 2
            values[0, graph.index("B")] = x[t - 1] if t else 0.0
            values[0, graph.index("Y")] = x[t]
            evidence.update(Rounds(values, was_set, np.ones(1, dtype=np.int64)))
            chance *= p if x[t] else 1.0 - p
            mean[t + 1] += chance * 10.0 ** log10_of(evidence)["Y"] / (1 << (7 - t))
    assert (mean[1:] <= 1.0 + 1e-9).all()


# -- what is looked at ------------------------------------------------------------------------------------------------


def extras(evidence, node):
    graph = evidence.graph
    return {(graph.nodes[w - 1], by_set) for w, by_set in evidence.extras.get(graph.index(node), ())}


def test_every_node_is_asked_about_what_it_cannot_cause():
    evidence = evidence_on(GRAPH)
    assert extras(evidence, "Y") == {("M", True), ("C", True), ("A", False), ("B", False)}
    assert extras(evidence, "M") == {("A", True), ("B", True), ("C", False)}
    assert extras(evidence, "A") == {("B", False), ("C", False)}
    assert evidence.unwatched == ()


def test_what_a_hidden_variable_of_the_graph_explains_is_no_evidence():
    edges = [("A", "M"), ("M", "Y"), ("B", "W"), ("W", "V"), ("V", "Y"), ("U", "H"), ("H", "M"), ("U", "W")]
    graph = CausalGraph(edges, target="Y", latent=["U", "H"], bias=list("ABMWVYUH"))
    evidence = evidence_on(graph)
    assert extras(evidence, "M") == {("A", True), ("B", False)}
    assert {name for name, by_set in extras(evidence, "Y") if not by_set} == {"A", "B", "W"}


def test_context_is_not_asked_about_but_may_be_the_answer():
    graph = CausalGraph([("K", "M"), ("A", "M"), ("M", "Y")], target="Y", context=["K"], controllable=["A"])
    evidence = evidence_on(graph)
    assert extras(evidence, "K") == set()
    assert extras(evidence, "Y") == {("A", False), ("K", False)}


def test_limits_are_said():
    many = [f"x{i:02}" for i in range(70)]
    wide = evidence_on(CausalGraph([(name, "Y") for name in many[:9]] + [("M", "Y")], target="Y"))
    assert wide.unwatched == ("effects of more than 8 causes are not checked: 'Y'",)
    long = evidence_on(
        CausalGraph(
            [*((x, "M") for x in many[:2]), *((x, "N") for x in many[2:4]), ("M", "Y")]
            + [("N", "Y")]
            + [(x, "Z") for x in many],
            target="Y",
            controllable=["M"],
        )
    )
    assert long.unwatched[0].startswith("no more than 64 extra causes are considered of ")
    assert len(extras(long, "Y")) == 64
    continuous = evidence_on(GRAPH, continuous=True)
    assert continuous.extras == {}
    assert "cannot be counted" in continuous.unwatched[0]
    continuous.update(random_rounds(np.random.default_rng(0), GRAPH, 5))
    assert continuous.findings() == []
    assert log10_of(continuous) == {}


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, math.nan])
def test_alpha_is_a_chance(alpha):
    with pytest.raises(PolicyError, match="alpha is the chance of a false alarm"):
        evidence_on(GRAPH).findings(alpha)


def test_findings_say_what_to_do():
    """A acts on Y directly, and U moves M and Y."""
    truth = CausalGraph([*GRAPH.edges, ("A", "Y")], target="Y")
    world = BinaryGLM(truth, PLAIN | {("M", "Y"): 0.1, ("A", "Y"): 0.5})
    evidence = GraphEvidence(CausalUCB().start(GRAPH, 1).problem)
    drawn = world.sample(None, 1000, np.random.default_rng(1))
    values = np.ones((1000, 6))
    for name, column in drawn.items():
        values[:, GRAPH.index(name)] = column
    evidence.update(Rounds(values, np.zeros(values.shape, dtype=bool), np.ones(1000, dtype=np.int64)))
    (finding,) = evidence.findings()
    assert finding[:3] == ("Y", MISSING_EDGE, "A")
    assert finding.rows == 1000
    assert finding.short == "'Y' and 'A' move together in ways that the graph does not explain"
    assert finding.advice.startswith(f"{finding.short}: add the edge A -> Y, or, if there is none")
    values[:, GRAPH.index("M")] = 1.0
    values[:, GRAPH.index("Y")] = np.arange(1000) % 2
    was_set = np.zeros(values.shape, dtype=bool)
    was_set[:, GRAPH.index("M")] = values[:, GRAPH.index("Y")] == 1.0
    other = evidence_on(GRAPH)
    other.update(Rounds(values, was_set, np.ones(1000, dtype=np.int64)))
    (finding,) = other.findings()
    assert finding[:3] == ("Y", HIDDEN_CAUSE, "M")
    assert "share a hidden cause" in finding.advice
    assert finding.short == "'Y' differs between 'M' set and 'M' seen"
