"""What holds for every policy: what it proposes, that it is reproducible, and what it compares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dobandit import CausalGraph, paper
from dobandit.errors import ObservationError
from dobandit.policy.engine import Rounds
from helpers.some_policies import (
    CASES,
    assert_same_bits,
    counted_rows,
    every_policy,
    kept,
    now,
    parallel,
    play,
    random_round,
)
from helpers.worlds import graphs, quietly, relaxed

# -- what may be proposed -------------------------------------------------------------------------------------


@every_policy
@relaxed(max_examples=8)
@given(graphs(most=6), st.data())
def test_at_most_k_controllable_variables_and_never_nan(case, graph, data):
    some = data.draw(st.lists(st.sampled_from([n for n in graph.nodes if n != graph.target]), unique=True))
    relevant = [name for name in graph.controllable if name not in graph.irrelevant]
    keep = [n for n in graph.nodes if n in {*some, relevant[0]}]
    graph = quietly(CausalGraph, graph.edges, graph.target, controllable=keep, bias=graph.bias, nodes=graph.nodes)
    budget = data.draw(st.integers(0, len(keep)))
    learner = case.start(graph, budget)
    play(learner, np.random.default_rng(data.draw(st.integers(0, 999))), 25)


@every_policy
def test_full_budget_is_used_once_learning_has_begun(case):
    learner = case.start(paper.G5.graph, 2, effects="nonnegative")
    actions = play(learner, np.random.default_rng(0), 60)
    assert len(actions[-1]) == 2


# -- reproducible ---------------------------------------------------------------------------------------------


@every_policy
def test_the_same_seed_gives_the_same_choices_and_another_seed_others(case):
    def choices(seed):
        learner = case.start(paper.G1.graph, 3, seed=seed)
        return play(learner, np.random.default_rng(1), 40)

    assert choices(5) == choices(5)
    never_tied = ("BLMOFU after 5", "BLMOFU lambda-min", "BGLMOFU custom", "Fixed", "Oracle")
    if case.name not in never_tied:
        assert choices(5) != choices(6)


@every_policy
def test_asking_twice_gives_the_same_answer_and_changes_nothing(case):
    learner = case.start(paper.G4.graph, 2)
    play(learner, np.random.default_rng(2), 30)
    before = [array.copy() for array in kept(learner.engine.state)]
    first = learner.propose()
    learner.best()
    if learner.keeps_model:
        learner.interval(first)
        learner.estimate("Y")
    assert learner.propose() == first
    for array, after in zip(before, kept(learner.engine.state), strict=True):
        np.testing.assert_array_equal(array, after)


@every_policy
@pytest.mark.parametrize("horizon", [500, None])
def test_one_by_one_and_in_a_batch_are_the_same_to_the_bit(case, horizon):
    rng = np.random.default_rng(3)
    graph = paper.G5.graph
    with np.errstate(all="raise"):
        one, many = (quietly(case.start, graph, 2, horizon=horizon) for _ in range(2))
    rows = []
    for _ in range(80):
        chosen = rng.choice(graph.controllable, size=rng.integers(3), replace=False)
        action = {str(name): 1 for name in chosen}
        rows.append((action, random_round(rng, graph, action, missing=0.1)))
    for action, observation in rows:
        one.update(action, observation)
    many.update_many(rows[:30])
    many.update_many(rows[30:])
    assert_same_bits(one, many)
    assert one.propose() == many.propose()
    assert one.rounds == many.rounds == 80


@every_policy
def test_a_batch_with_an_error_is_not_taken_in_at_all(case):
    learner = case.start(paper.G4.graph, 2)
    good = ({}, {"Y": 1})
    with pytest.raises(ObservationError):
        learner.update_many([good, ({}, {"Y": 2})])
    assert learner.rounds == 0


@every_policy
def test_choices_do_not_depend_on_questions_in_between(case):
    quiet, asked = (case.start(paper.G4.graph, 2) for _ in range(2))
    rng = np.random.default_rng(4)
    for _ in range(40):
        action = quiet.propose()
        assert asked.propose() == action
        asked.best()
        seen = random_round(rng, quiet.graph, action)
        for learner in (quiet, asked):
            learner.update(action, seen)


# -- rows that happened often ---------------------------------------------------------------------------------


def repeated(rounds):
    """The same rows without counts."""
    total = int(rounds.counts.sum())
    rows = np.repeat(np.arange(len(rounds.counts)), rounds.counts)
    return Rounds(rounds.values[rows], rounds.was_set[rows], np.ones(total, dtype=np.int64))


@every_policy
@pytest.mark.parametrize("seed", range(3))
def test_a_row_with_a_count_leaves_the_bits_of_the_repeated_rows(case, seed):
    graph, rng = paper.G5.graph, np.random.default_rng(seed)
    counted, one_by_one = (case.start(graph, 2) for _ in range(2))
    for rounds in (counted_rows(rng, graph, 25), counted_rows(rng, graph, 1), counted_rows(rng, graph, 40)):
        counted.engine.update(rounds)
        one_by_one.engine.update(repeated(rounds))
    assert_same_bits(counted, one_by_one)
    assert counted.propose() == one_by_one.propose()
    assert counted.best()[:2] == one_by_one.best()[:2]  # counts have no order, on which intervals may rest


@pytest.mark.parametrize("case", [*CASES[:7], *CASES[10:]], ids=lambda case: case.name)
def test_numbers_with_counts_leave_the_bits_of_the_repeated_rows(case):
    """Three times 0.1 is not 0.1 + 0.1 + 0.1."""
    graph, rng = paper.G4.graph, np.random.default_rng(0)
    counted, one_by_one = (case.start(graph, 1, continuous=True) for _ in range(2))
    rounds = counted_rows(rng, graph, 60, continuous=True)
    counted.engine.update(rounds)
    one_by_one.engine.update(repeated(rounds))
    assert_same_bits(counted, one_by_one)


def test_counts_go_with_patterns_that_run_out_of_room():
    """Room apart, which is not knowledge: repeated rows cannot know that they need no more of it."""
    graph, rng = parallel(9), np.random.default_rng(256)
    counted, one_by_one = (quietly(CASES[7].start, graph, 2, horizon=None) for _ in range(2))
    rounds = counted_rows(rng, graph, 1000)
    counted.engine.update(rounds)
    one_by_one.engine.update(repeated(rounds))
    assert counted.rounds == one_by_one.rounds == rounds.counts.sum()
    for v in range(1, len(graph) + 1):
        left, right = (learner.engine.beliefs().node(v) for learner in (counted, one_by_one))
        for part in ("theta", "gram", "inverse", "null"):
            np.testing.assert_array_equal(getattr(left, part), getattr(right, part))
        assert (left.rows, left.status, left.radius) == (right.rows, right.status, right.radius)
    seen = [learner.engine.state.cells["seen"] for learner in (counted, one_by_one)]
    np.testing.assert_array_equal(*seen)
    assert np.count_nonzero(seen[0]) > 256
    assert counted.propose() == one_by_one.propose()


# -- what is compared -----------------------------------------------------------------------------------------

COMPARING = [case for case in CASES if case.name not in ("Fixed", "Random", "Oracle")]


@pytest.mark.parametrize("case", COMPARING, ids=lambda case: case.name)
@pytest.mark.parametrize("effects", ["nonnegative", None])
@relaxed(max_examples=10)
@given(graphs(most=6), st.data())
def test_the_largest_index_compared_is_that_of_the_choice(case, effects, graph, data):
    budget = data.draw(st.integers(0, len(graph.controllable)))
    learner = case.start(graph, budget, effects=effects)
    learner.engine.update(counted_rows(np.random.default_rng(data.draw(st.integers(0, 999))), graph, 12))
    draw = data.draw(st.sampled_from([0.0, 0.4, 0.999]))
    some = data.draw(st.sampled_from([None, graph.controllable[:-1]]))
    situation = now(learner, draws=(draw, 0.95, 0.0), available=learner.available(some))
    compared = learner.engine.compare(situation)
    choice = learner.engine.choose(situation)
    if case.name == "BLMOFU lambda-min" and not compared:
        assert choice.action.ids == ()  # still initialising
        assert np.isnan(choice.value)
        return
    values = dict(compared)
    assert len(values) >= 1
    largest = max(values.values())
    assert choice.value == largest or choice.value == pytest.approx(largest, rel=2e-9, abs=2e-9)  # ties
    assert values[choice.action] == choice.value
    actions = learner.engine.actions()
    if some is None and actions is not None:
        assert [action for action, _ in compared] == [actions.row(i) for i in range(len(actions.ids))]


@pytest.mark.parametrize("case", [c for c in CASES if c not in COMPARING], ids=lambda case: case.name)
def test_policies_that_compare_nothing_say_so(case):
    learner = case.start(paper.G4.graph, 2)
    assert list(learner.engine.compare(now(learner))) == []
    assert np.isnan(learner.engine.choose(now(learner)).value)
