"""Every segment's own line is what its own rows alone would teach."""

from __future__ import annotations

import numpy as np
import pytest

from dobandit import CausalGraph, CausalTS, CausalUCB
from dobandit.errors import ObservationError
from dobandit.estimation.belief import layout_of
from dobandit.estimation.estimators import weighted_squares
from dobandit.estimation.mixture import (
    CURVED,
    OWN_LINES,
    STRAIGHT,
    context_bits,
    judge,
    line_of,
    member_means,
    members_of,
    segments_of,
    weights_of,
)
from dobandit.policy.engine import Rounds

EDGES = [("mobile", "visit"), ("email", "visit"), ("visit", "buy"), ("mobile", "buy"), ("returning", "buy")]
GRAPH = CausalGraph(EDGES, "buy", controllable=["email"], context=["mobile", "returning"])


def random_rounds(rng, graph, count):
    values = (rng.random((count, len(graph) + 1)) < 0.5).astype(float)
    values[:, 0] = 1.0
    was_set = np.zeros(values.shape, dtype=bool)
    was_set[:, graph.index("email")] = rng.random(count) < 0.5
    return Rounds(values, was_set, np.ones(count, dtype=np.int64))


def test_a_line_learns_from_the_rows_of_its_segment_and_no_others():
    rounds = random_rounds(np.random.default_rng(5), GRAPH, 120)
    engine = CausalUCB().start(GRAPH, 1).engine
    engine.update(rounds)
    layout, own = engine.layout, engine.state
    mobile, returning, buy = (GRAPH.index(name) for name in ("mobile", "returning", "buy"))
    parents = layout.parent[layout.ptr[buy] : layout.ptr[buy + 1]].tolist()
    first, second = (p for p in parents if p in (mobile, returning))  # the lower bit is the earlier parent's
    for segment in range(4):
        here = (rounds.values[:, first] == (segment & 1)) & (rounds.values[:, second] == segment >> 1)
        alone, state = weighted_squares(layout, engine.estimator.ridge)
        alone.learn(state, *rounds.part(here))
        line, node = own.nodes[own.nodes[buy]["segments"] + segment], state.nodes[buy]
        assert line["rows"] == here.sum()
        d = len(parents)
        theta, inverse = own.slots["line"][line["start"] :][:d], own.pairs["inverse"][line["square"] :][: d * d]
        assert np.array_equal(theta, state.slots["line"][node["start"] :][:d])
        assert np.array_equal(inverse, state.pairs["inverse"][node["square"] :][: d * d])


def test_only_nodes_with_context_among_their_causes_have_segments():
    has = members_of(CausalUCB().start(GRAPH, 1).engine.state)
    for name, own in (("visit", True), ("buy", True), ("email", False), ("mobile", False)):
        v = GRAPH.index(name)
        assert has[v, OWN_LINES] == own
        assert has[v, STRAIGHT] != own
    promised = members_of(CausalUCB().start(GRAPH, 1, links="logistic").engine.state)
    assert not promised[:, OWN_LINES].any()


def test_segments_are_numbered_one_node_after_another():
    layout = layout_of(GRAPH)
    context = np.isin(layout.parent, [GRAPH.index("mobile"), GRAPH.index("returning")])
    segments = segments_of(layout, context)
    lines = {name: int(segments.first[GRAPH.index(name)]) for name in ("visit", "buy")}
    sizes = np.diff(segments.layout.ptr)
    assert len(sizes) == len(layout.ptr) - 1 + 2 + 4  # behind the nodes
    for name, count in (("visit", 2), ("buy", 4)):
        d = len(GRAPH.parents(name)) + 1
        assert sizes[lines[name] : lines[name] + count].tolist() == [d] * count


@pytest.mark.parametrize("policy", [CausalUCB(), CausalTS()])
def test_what_is_known_of_one_segment_does_not_decide_in_another(policy):
    """An e-mail brings visits on phones and drives others away, without a word on it: two hundred rounds tell."""
    rng = np.random.default_rng(3)
    learner = policy.start(GRAPH, 1, effects="any")
    for number in range(200):
        context = {"mobile": number % 2, "returning": int(rng.random() < 0.5)}
        do = learner.propose(context=context)
        chance = 0.5 + (0.4 if context["mobile"] else -0.4) * do.get("email", 0)
        visit = int(rng.random() < chance)
        learner.update(do, {**context, "email": do.get("email", 0), "visit": visit, "buy": visit})
    best = [dict(learner.best(context={"mobile": mobile, "returning": 1}).do) for mobile in (0, 1)]
    assert best == [{}, {"email": 1}]


def test_the_bits_of_a_pattern_that_are_context_go_through_the_segments_in_order():
    names = ["a", "u", "b", "v", "c", "w"]
    graph = CausalGraph([(name, "y") for name in names], "y", controllable=["a", "b", "c"], context=["u", "v", "w"])
    state, y = CausalUCB().start(graph, 1).engine.state, graph.index("y")
    first, width = (int(state.nodes[y][name]) for name in ("segments", "width"))
    assert len(state.nodes) - first == 8
    bits = context_bits(state.nodes, state.slots, y)
    rest, part, met = (1 << len(names)) - 1 - bits, 0, []
    for segment in range(8):
        for free in (pattern for pattern in range(1 << len(names)) if pattern & rest == pattern):
            row = np.ones(width)
            row[1:] = [(part + free) >> j & 1 for j in range(len(names))]
            assert line_of(state.nodes, state.slots, y, row) == first + segment
            met.append(part + free)
        part = (part - bits) & bits
    assert part == 0
    assert sorted(met) == list(range(1 << len(names)))


def test_a_context_that_is_missing_is_named_whole():
    with pytest.raises(ObservationError, match=r"are missing. Add context={'mobile': 1, 'returning': 1}\."):
        CausalUCB().start(GRAPH, 1).best()


def test_the_curve_that_segments_share_is_weighed_by_all_rows_and_by_nothing_else():
    """Its odds against the others together are those at the start times the likelihood ratio of the predictions."""
    rounds = random_rounds(np.random.default_rng(8), GRAPH, 60)
    engine = CausalUCB().start(GRAPH, 1).engine
    layout, buy = engine.layout, GRAPH.index("buy")
    parents = layout.parent[layout.ptr[buy] : layout.ptr[buy + 1]]
    curve = weights_of(engine.state)[buy, CURVED]
    odds = curve / (1.0 - curve)
    for i in range(60):
        means = member_means(*mixed(engine.state), buy, rounds.values[i, parents])
        weight = weights_of(engine.state)[buy, CURVED]
        others = (means[4] - weight * means[CURVED]) / (1.0 - weight)
        seen = rounds.values[i, buy] > 0.5
        odds *= (means[CURVED] if seen else 1.0 - means[CURVED]) / (others if seen else 1.0 - others)
        engine.update(rounds.part(slice(i, i + 1)))
        after = weights_of(engine.state)[buy]
        assert after.sum() == pytest.approx(1.0)
        assert after[CURVED] / (1.0 - after[CURVED]) == pytest.approx(odds)


def test_a_shared_curve_that_was_refuted_does_not_come_back():
    state, buy = CausalUCB().start(GRAPH, 1).engine.state, GRAPH.index("buy")
    weights_of(state)[buy, CURVED] = 0.0
    row = np.ones(state.nodes[buy]["width"])
    for _ in range(5):
        judge(*mixed(state), buy, row, 1.0)
    assert weights_of(state)[buy, CURVED] == 0.0
    assert weights_of(state)[buy].sum() == pytest.approx(1.0)


def mixed(state):
    """What kernels of a mixture take of a belief."""
    return state.nodes, state.slots, state.pairs, state.cells, state.bits, state.points, state.members
