"""A trial of many rounds against its rows told one by one in the same order: what is identical, and what is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dobandit as dob
from dobandit.policy.engine import Action, Rounds, Situation, no_context
from dobandit.policy.graph_evidence import GraphEvidence
from dobandit.policy.questions import best
from dobandit.policy.unordered import spread
from helpers.worlds import relaxed

GRAPH = dob.CausalGraph(
    [("a", "m"), ("b", "m"), ("m", "y"), ("c", "y"), ("a", "y")], target="y", controllable=["a", "b", "c"]
)
POLICIES = {
    "blm-lr": (dob.BLMLR(), None),
    "blm-ofu": (dob.BGLMOFU(initial=5), None),
    "bglm-ofu": (dob.BGLMOFU(initial=5), "logistic"),
    "ucb": (dob.UCB(), None),
    "causal-ucb": (dob.CausalUCB(), "auto"),
    "causal-ts": (dob.CausalTS(), "auto"),
}


def batch(rng, action, rounds=120):
    """Distinct rows in the order of the log, each with how often it was seen, some variables unseen now and then."""
    found = {}
    for _ in range(rounds):
        seen = {name: float(rng.random() < 0.3) for name in "abc"} | action.named(GRAPH)
        seen["m"] = float(rng.random() < 0.2 + 0.3 * seen["a"] + 0.2 * seen["b"])
        seen["y"] = float(rng.random() < 0.1 + 0.4 * seen["m"] + 0.2 * seen["c"] + 0.1 * seen["a"])
        if rng.random() < 0.1:
            seen["m"] = math.nan
        row = (1.0, *(float(seen[name]) for name in GRAPH.nodes))
        key = str(row)
        found[key] = (row, found.get(key, (row, 0))[1] + 1)
    rows = [found[key] for key in sorted(found)]
    values = np.array([row for row, _ in rows])
    was_set = np.zeros(values.shape, dtype=bool)
    was_set[:, list(action.ids)] = True
    return Rounds(values, was_set, np.array([count for _, count in rows], dtype=np.int64))


def one_by_one(rounds, spread_out):
    """In the order of learning: as the log has them, or spread out where the order matters."""
    order = spread(rounds.counts) if spread_out else np.repeat(np.arange(len(rounds.counts)), rounds.counts)
    for i in order:
        yield Rounds(rounds.values[i : i + 1], rounds.was_set[i : i + 1], np.ones(1, dtype=np.int64))


def plain(engine):
    """Without the watch for causes that the graph lacks, which knows too which rows have no order: told one by one,
    sorted rows look as if time had an effect."""
    engine.watches_graph = False
    return engine


def parts(state, path="state"):
    """Every array of a state, by its name."""
    if isinstance(state, np.ndarray):
        yield path, state
    for name, part in state._asdict().items() if hasattr(state, "_asdict") else ():
        yield from parts(part, f"{path}.{name}")


@pytest.mark.parametrize("name", POLICIES)
def test_a_batch_teaches_what_its_rows_teach_one_by_one_to_the_last_bit(name):
    policy, links = POLICIES[name]
    summed, single = (plain(policy.start(GRAPH, 2, horizon=5000, links=links).engine) for _ in range(2))
    rng = np.random.default_rng(7)
    for _ in range(4):
        now = Situation(rng.random(summed.draws), no_context(len(GRAPH)))
        choice = summed.choose(now)
        assert choice == single.choose(now)
        assert best(summed, now) == best(single, now)
        assert summed.compare(now) == single.compare(now)
        rounds = batch(rng, choice.action)
        summed.update(rounds, np.array([len(rounds.counts)]))
        for row in one_by_one(rounds, name.startswith("causal")):
            single.update(row)
        assert summed.predict(choice.action, now.context).value == single.predict(choice.action, now.context).value
    one, other = dict(parts(summed.state)), dict(parts(single.state))
    assert one.keys() == other.keys()
    assert [key for key in one if one[key].tobytes() != other[key].tobytes()] == []


@pytest.mark.parametrize("watching", [True, False], ids=["revising", "plain"])
@pytest.mark.parametrize("name", ["blm-lr", "causal-ucb", "causal-ts"])
def test_batches_told_together_teach_what_they_teach_one_after_another_to_the_last_bit(name, watching):
    """A past is thousands of batches; there is more in them than the state has room for at first, and many looks at the
    graph, one of which finds that y depends on b."""
    policy, links = POLICIES[name]
    together, apart, parted = (policy.start(GRAPH, 2, horizon=50, links=links).engine for _ in range(3))
    if not watching:
        together, apart, parted = plain(together), plain(apart), plain(parted)
    rng, actions = np.random.default_rng(11), together.actions()
    told = [batch(rng, actions.row(int(rng.integers(-1, 3))), int(rng.integers(1, 40))) for _ in range(60)]
    for one in told:
        y, b = (GRAPH.index(name) for name in "yb")
        one.values[:, y] = np.where(rng.random(len(one.counts)) < 0.8, one.values[:, b], one.values[:, y])
        apart.update(one, np.array([len(one.counts)]))
    for part in (told[:17], told[17:18], told[18:]):
        parted.update(*joined(part))
    together.update(*joined(told))
    for engine in (apart, parted):
        for (path, one), (_, other) in zip(parts(together.state), parts(engine.state), strict=True):
            assert one.tobytes() == other.tobytes(), path
        assert together.revisions == engine.revisions
    if watching and name != "blm-lr":
        assert [finding.extra for finding in together.revisions][:1] == ["b"]


def joined(told):
    """Batches as one, and how many rows each has."""
    rounds = Rounds(*(np.concatenate(arrays) for arrays in zip(*told, strict=True)))
    return rounds, np.array([len(one.counts) for one in told])


def test_the_evidence_on_the_graph_is_the_same():
    problem = dob.CausalUCB().start(GRAPH, 2).problem
    summed, single, rng = GraphEvidence(problem), GraphEvidence(problem), np.random.default_rng(3)
    for _ in range(3):
        rounds = batch(rng, dob.UCB().start(GRAPH, 2).engine.actions().row(0))
        summed.update(rounds)
        for row in one_by_one(rounds, False):
            single.update(row)
    assert summed.findings() == single.findings()


@given(st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=6), min_size=1, max_size=4))
@relaxed(60)
def test_every_row_is_spread_evenly_over_its_batch(batches):
    counts, sizes = np.concatenate(batches), np.array([len(batch) for batch in batches])
    order, first, done = spread(counts, sizes), 0, 0
    for batch in batches:
        rows = order[done : done + sum(batch)] - first
        np.testing.assert_array_equal(rows, spread(np.array(batch)))
        for i, count in enumerate(batch):
            so_far, share = np.cumsum(rows == i), count * np.arange(1, len(rows) + 1) / len(rows)
            assert so_far[-1] == count
            assert np.abs(so_far - share).max() <= len(batch)  # each row is at most one ahead or behind in time
        first, done = first + len(batch), done + len(rows)


@pytest.mark.parametrize("links", ["identity", "auto"])
def test_a_batch_of_thousands_is_believed_as_it_is(links):
    """By rows sorted by their outcomes the value was 0.26 where 0.39 of a thousand had been seen."""
    graph = dob.CausalGraph([("a", "y"), ("b", "y")], target="y", bias=["y"])
    engine = plain(dob.CausalUCB().start(graph, 2, links=links).engine)
    seen = {(): 50, (1,): 350, (2,): 350, (1, 2): 650}  # of 1,000 each
    for ids, ones in seen.items():
        values = np.zeros((2, 4))
        values[:, [0, *ids]], values[1, 3] = 1.0, 1.0
        was_set = np.zeros((2, 4), dtype=bool)
        was_set[:, 1:3] = True
        engine.update(Rounds(values, was_set, np.array([1000 - ones, ones])), np.array([2]))
    for ids, ones in seen.items():
        fixed = no_context(3)
        fixed[1:3] = [float(v in ids) for v in (1, 2)]
        value = engine.predict(Action((1, 2), (fixed[1], fixed[2])), no_context(3)).value
        assert value == pytest.approx(ones / 1000, abs=0.01)  # less than a standard error
