"""The simulation engine: the same numbers however they are computed, and as if each round were asked and told."""

from __future__ import annotations

import numpy as np
import pytest

import transcription as tr
from dobandit import BLMLR, Fixed
from dobandit.errors import SimulationError
from dobandit.policy.registry import policy_to_spec
from dobandit.simulation.run import run_block
from dobandit.simulation.simulate import run_study
from helpers.simulations import (
    ANY_POLICIES,
    CURVES,
    GENERAL_POLICIES,
    HIDDEN,
    LINEAR_POLICIES,
    LOGISTIC,
    MODELS,
    PAPER_POLICIES,
    assert_played,
    assert_same,
    played_by_hand,
    study,
)
from helpers.worlds import THOROUGH

CASES = [
    (world, policy)
    for world in MODELS
    for policy in [*(GENERAL_POLICIES if world == "logistic" else LINEAR_POLICIES), *ANY_POLICIES]
]

# -- the same, however it is computed ---------------------------------------------------------------------------


class InDisorder:
    """Runs blocks in a random order, and delivers some of them twice."""

    workers = 3

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def run(self, study, prepared, blocks):
        for i in self.rng.permutation([*range(len(blocks)), 0]):
            yield run_block(study, prepared, blocks[i])


@pytest.mark.parametrize("replications", [1, 2, 7, 70])
def test_any_number_of_threads_gives_the_same_bits(replications):
    wanted = study(replications=replications, rounds=60)
    alone = run_study(wanted, workers=1)
    for workers in (2, 3, 8):
        assert_same(alone, run_study(wanted, workers=workers))
    for name in CURVES:
        assert getattr(alone, name).shape[1] == replications
    assert (alone.all_reward[:, :, -1] > 0).all()  # every replication was run


def test_a_lost_block_is_an_error_and_not_a_zero():
    class Forgetful(InDisorder):
        def run(self, study, prepared, blocks):
            yield from super().run(study, prepared, blocks[1:])

    with pytest.raises(SimulationError, match="1 replications came back without a result"):
        run_study(study(replications=30, rounds=5), executor=Forgetful(0))


def test_any_order_of_completion_gives_the_same_bits():
    wanted = study(replications=30, rounds=30)
    in_order = run_study(wanted, workers=1)
    for seed in range(8 * THOROUGH):
        assert_same(in_order, run_study(wanted, executor=InDisorder(seed)))


def test_general_links_and_boxed_regions_do_not_depend_on_threads():
    wanted = study(LOGISTIC, GENERAL_POLICIES, rounds=40, replications=8, budget=1)
    assert_same(run_study(wanted, workers=1), run_study(wanted, workers=8))
    wanted = study(HIDDEN, [BLMLR(region="boxed"), BLMLR()], rounds=40, replications=8)
    assert_same(run_study(wanted, workers=1), run_study(wanted, workers=8))


def test_a_policys_result_does_not_depend_on_its_company_or_its_place():
    full = run_study(study())
    for i, spec in enumerate(PAPER_POLICIES):
        alone = run_study(study(policies=[spec]))
        np.testing.assert_array_equal(alone.all_regret[0], full.all_regret[i])
        np.testing.assert_array_equal(alone.all_reward[0], full.all_reward[i])
    turned = run_study(study(policies=PAPER_POLICIES[::-1]))
    np.testing.assert_array_equal(turned.all_regret[::-1], full.all_regret)


def test_the_first_replications_do_not_depend_on_how_many_follow():
    few, many = (run_study(study(replications=n, rounds=80)) for n in (5, 40))
    np.testing.assert_array_equal(many.all_regret[:, :5], few.all_regret)
    np.testing.assert_array_equal(many.all_reward[:, :5], few.all_reward)


def test_seeds_and_replications_differ():
    result, other = run_study(study(replications=10)), run_study(study(replications=10, seed=1))
    assert len(np.unique(result.all_reward[2, :, :], axis=0)) == 10
    assert not np.array_equal(result.all_reward, other.all_reward)


def test_policies_meet_the_same_world():
    twice = run_study(study(policies={"one": Fixed(["X2"]), "other": Fixed(["X2"])}))
    np.testing.assert_array_equal(twice.reward("one"), twice.reward("other"))
    # setting more can only help on the same random numbers
    nested = run_study(study(policies={"less": Fixed(["X2"]), "more": Fixed(["X2", "X3"])}))
    assert (nested.reward("more") >= nested.reward("less")).all()


def test_progress_counts_every_replication_once():
    counts = []
    run_study(study(replications=25, rounds=10), workers=3, progress=counts.append)
    assert sum(counts) == 25
    assert min(counts) > 0


# -- simulated rounds and rounds by hand --------------------------------------------------------------------------


@pytest.mark.parametrize("world", MODELS)
def test_the_worlds_tell_sets_apart(world):
    """So that equal curves below mean equal choices."""
    model = MODELS[world]
    values = [tr.expected_reward(model, chosen) for chosen in tr.all_arms(model.graph, 2)]
    assert len(set(np.round(values, 12))) == len(values)


@pytest.mark.parametrize(("world", "policy"), CASES, ids=[f"{w}-{policy_to_spec(p)}" for w, p in CASES])
def test_a_simulated_run_is_the_run_by_hand(world, policy):
    model = MODELS[world]
    wanted = study(model, [policy], rounds=70, replications=3, seed=11, record="every")
    result = run_study(wanted, workers=1)
    sets, rewards = played_by_hand(model, policy, 2, 70, seed=11, replication=2)
    assert_played(result, 0, 2, sets, rewards)
    if getattr(policy, "initial", 0) != "lambda-min":  # which may never end in so few rounds
        assert len(set(sets)) > 1
