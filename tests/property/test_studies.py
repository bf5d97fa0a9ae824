"""What a study is made of, and the statistics of its runs."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import transcription as tr
from dobandit import BGLMOFU, BLMLR, UCB, BinaryGLM, CausalGraph, Fixed, LinearModel, Random, paper, simulate
from dobandit.errors import InterventionError, ModelError, PolicyError, SimulationError
from dobandit.model.random_models import random_model
from dobandit.simulation.result import curve_interval, paired_difference, summarise
from dobandit.simulation.run import prepare
from dobandit.simulation.simulate import run_study
from dobandit.simulation.study import Study
from helpers.simulations import (
    HIDDEN,
    LOGISTIC,
    MODELS,
    PAPER_POLICIES,
    assert_played,
    assert_same,
    played_by_hand,
    study,
)
from helpers.worlds import relaxed

# -- a study's parts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"model": paper.G4.graph}, SimulationError, "needs a model of its world, but got CausalGraph"),
        ({"policies": []}, SimulationError, "at least one policy"),
        ({"policies": ["ucb", "ucb", "ucb"]}, SimulationError, "listed twice"),
        ({"policies": ["thomson-arms"]}, PolicyError, "policies are"),
        ({"policies": "ucb:scal=1"}, PolicyError, "Did you mean 'scale'"),
        ({"rounds": 0}, SimulationError, "rounds must be a whole number from 1"),
        ({"rounds": 10.0}, SimulationError, "rounds must be"),
        ({"replications": 0}, SimulationError, "replications must be"),
        ({"replications": True}, SimulationError, "replications must be"),
        ({"seed": -1}, SimulationError, "seed must be"),
        ({"budget": 5}, InterventionError, "budget must be a whole number from 0 to 4"),
        ({"record": "all"}, SimulationError, "record is 'grid', 'every' or a list"),
        ({"record": []}, SimulationError, r"a list of rounds, but got \[\]"),
        ({"record": [201]}, SimulationError, "whole number from 1 to 200, but got 201"),
        ({"record": [0]}, SimulationError, "a recorded round must be"),
        ({"record": [1.5]}, SimulationError, "a recorded round must be"),
    ],
)
def test_wrong_parts_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        study(**arguments)


def test_policies_that_do_not_fit_the_model_are_refused():
    with pytest.raises(PolicyError, match="BLM-LR is for linear models"):
        run_study(study(LOGISTIC, [BLMLR()]))
    hidden = random_model("parallel", 5, seed=0, latent=1, link="logistic")
    with pytest.raises(ModelError, match="share are handled in linear models only"):
        run_study(study(hidden, [BGLMOFU(initial=3)]))
    run_study(study(hidden, [UCB()]))
    with pytest.raises(InterventionError, match="only controllable variables"):
        run_study(study(policies=[Fixed(["X9"])]))


@pytest.mark.parametrize(("workers", "executor"), [(0, "threads"), (-1, "threads"), (1.5, "dask"), (True, "threads")])
def test_a_wrong_number_of_workers_is_refused(workers, executor):
    with pytest.raises(SimulationError, match="workers must be"):
        run_study(study(), executor=executor, workers=workers)


def test_an_unknown_executor_is_refused():
    with pytest.raises(SimulationError, match="'threads', 'dask', a scheduler's address"):
        run_study(study(), executor="processes")


def test_a_recording_that_would_not_fit_in_memory_is_refused():
    with pytest.raises(SimulationError, match=r"Record fewer rounds"):
        study(rounds=100_000, replications=10_000, record="every")
    large = study(rounds=100_000, replications=10_000)  # on the grid it does
    assert 2 * 8 * len(large.grid) * large.replications * len(large.policies) < 1e9


def test_labels_tell_policies_apart():
    policies = study(policies=[BLMLR(), BLMLR(radius_scale=0.1), BGLMOFU(initial=5), UCB(0.1)]).policies
    assert list(policies) == ["BLM-LR (radius scale 1)", "BLM-LR (radius scale 0.1)", "BLM-OFU", "UCB (0.1)"]
    assert list(study(LOGISTIC, BGLMOFU(initial=5)).policies) == ["BGLM-OFU"]
    assert list(study(policies={"mine": "ucb"}).policies) == ["mine"]


def test_the_fingerprint_is_of_all_that_decides_a_replication():
    base = study(rounds=1000)
    assert base.fingerprint() == study(rounds=1000, replications=99).fingerprint()
    others = [
        study(rounds=1001),
        study(rounds=1000, seed=1),
        study(rounds=1000, budget=1),
        study(rounds=1000, policies=PAPER_POLICIES[:2]),
        study(rounds=1000, record="every"),
        study(paper.G3, rounds=1000),
    ]
    assert len({base.fingerprint(), *(other.fingerprint() for other in others)}) == 7


def test_a_studys_document_is_the_study():
    for model in MODELS.values():
        first = study(model, [UCB(0.25), Fixed(["X2", "X4"]), Random()], seed=3)
        again = Study.from_document(json.loads(json.dumps(first.to_document())))
        assert again == first
        assert again.fingerprint() == first.fingerprint()


def test_links_of_ones_own_are_simulated():
    from helpers.worlds import ARCTAN

    model = BinaryGLM(
        CausalGraph([("a", "Y"), ("b", "Y")], target="Y"),
        {"a": 0.1, "b": 0.2, "Y": 0.0, ("a", "Y"): 0.9, ("b", "Y"): 0.4},
        links=ARCTAN,
    )
    result = run_study(study(model, [UCB()], rounds=200, replications=2, budget=1, record="every"))
    sets, rewards = played_by_hand(model, UCB(), 1, 200, 0, 0)
    assert_played(result, 0, 0, sets, rewards)


def test_noise_on_probabilities_does_not_change_a_binary_world():
    noisy = BinaryGLM(paper.G4.graph, paper.G4.weights, noise=0.5)
    assert_same(run_study(study()), run_study(study(noisy)))


def test_noise_in_a_continuous_world_does():
    def rewards(noise):
        return run_study(study(LinearModel(paper.G4.graph, paper.G4.weights, noise=noise), [Random()])).all_reward

    still, noisy = rewards(0.0), rewards(0.9)
    assert not np.array_equal(still, noisy)
    assert abs(still[..., -1] - noisy[..., -1]).max() < 20.0


# -- statistics ---------------------------------------------------------------------------------------------------

samples = st.tuples(st.integers(0, 2**32 - 1), st.integers(2, 200))


def sample_of(seed, size, scale=10.0):
    return np.random.default_rng(seed).normal(50.0, scale, size)


@relaxed(max_examples=30)
@given(samples)
def test_the_interval_is_the_normal_one_where_the_sample_is_even(drawn):
    sample = sample_of(*drawn)
    summary = summarise(sample)
    error = stats.sem(sample)
    assert summary.mean == pytest.approx(sample.mean())
    assert summary.standard_error == pytest.approx(error)
    assert summary.size == len(sample)
    for q, value in summary.quantiles.items():
        assert value == pytest.approx(np.quantile(sample, q))
    if summary.method != "none":
        low, high = stats.t.interval(0.95, len(sample) - 1, loc=sample.mean(), scale=error)
        assert (summary.low, summary.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("size", [30, 600])
def test_a_skewed_sample_is_marked_and_an_even_one_is_not(size):
    even, skewed = np.linspace(3.0, 5.0, size), np.random.default_rng(1).lognormal(0.0, 2.5, size)
    assert summarise(even).method == "normal"
    assert summarise(skewed).method == "skewed"


@pytest.mark.parametrize("size", [3, 20])
def test_of_even_runs_the_interval_holds_as_often_as_it_says(size):
    rng, studies = np.random.default_rng(7), 4000
    found = [summarise(rng.normal(4.0, 2.0, size)) for _ in range(studies)]
    held = sum(one.low <= 4.0 <= one.high for one in found)
    assert abs(held - 0.95 * studies) <= 4.0 * math.sqrt(studies * 0.95 * 0.05)


def test_the_choice_is_by_skewness_over_the_root_of_the_size():
    sample = np.random.default_rng(5).lognormal(0.0, 1.0, 5000)
    for size in (20, 5000):
        part = sample[:size]
        expected = "skewed" if abs(stats.skew(part)) / math.sqrt(size) > 0.1 else "normal"
        assert summarise(part).method == expected
    assert summarise(sample[:20]).method != summarise(sample).method


def test_one_replication_has_no_interval_and_equal_ones_none_to_speak_of():
    one = summarise(np.array([3.0]))
    assert (one.mean, one.low, one.high, one.method, one.size) == (3.0, 3.0, 3.0, "none", 1)
    assert math.isnan(one.standard_error)
    equal = summarise(np.full(20, 0.1))
    assert (equal.low, equal.high, equal.standard_error) == (equal.mean, equal.mean, 0.0)


def test_the_papers_groups_give_students_interval_of_their_averages():
    study = simulate(paper.G4, ["random"], rounds=20, replications=60)
    sample = study.regret("Random")[:, -1]
    mean, low, high = study.grouped("Random", 20, 3)
    averages = [sample[3 * g : 3 * (g + 1)].mean() for g in range(20)]
    assert mean == pytest.approx(sample.mean())
    expected = stats.t.interval(0.95, 19, loc=np.mean(averages), scale=stats.sem(averages))
    assert (low, high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    for groups, size in ((20, 31), (1, 60)):
        with pytest.raises(SimulationError, match=f"{groups} groups of {size} need"):
            study.grouped("Random", groups, size)


@relaxed(max_examples=20)
@given(samples)
def test_paired_differences_are_summaries_of_the_differences(drawn):
    first, second = sample_of(*drawn), sample_of(drawn[0] + 1, drawn[1], 3.0)
    second[0] = first[0]  # a tie counts as half
    gap = paired_difference(first, second)
    summary = summarise(first - second)
    assert gap[:4] == (summary.mean, summary.low, summary.high, summary.method)
    wins = sum(a < b for a, b in zip(first[1:], second[1:], strict=True)) + 0.5
    assert gap.smaller_share == pytest.approx(wins / len(first))
    other = paired_difference(second, first)
    assert other.smaller_share == pytest.approx(1.0 - gap.smaller_share)
    with pytest.raises(SimulationError, match="one length"):
        paired_difference(first, second[1:])


def test_curves_have_the_normal_interval_at_every_point():
    curves = np.random.default_rng(2).random((25, 7)).cumsum(axis=1)
    mean, low, high = curve_interval(curves)
    for point in range(7):
        column = curves[:, point]
        expected = stats.t.interval(0.95, len(column) - 1, loc=column.mean(), scale=stats.sem(column))
        assert (low[point], high[point]) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    np.testing.assert_allclose(mean, curves.mean(axis=0))
    alone = curve_interval(curves[:1])
    assert all(np.array_equal(part, curves[0]) for part in alone)


def test_pairing_on_common_random_numbers_narrows_the_interval():
    result = run_study(study(policies={"a": BLMLR(0.1), "b": BLMLR(0.2)}, rounds=500, replications=100))
    gap = result.difference("a", "b")
    apart = math.hypot(result.summary_of("a").standard_error, result.summary_of("b").standard_error)
    assert (gap.high - gap.low) / 2 < 1.96 * apart


def test_prepared_values_are_those_of_the_definition():
    wanted = study(HIDDEN, [BLMLR(), UCB()], rounds=10)
    truth, tables = prepare(wanted)
    np.testing.assert_allclose(truth.best, [tr.best_reward(HIDDEN, 2)])
    assert truth.chance().tolist() == [1.0]
    for (table,) in tables:
        arms = [tr.expected_reward(HIDDEN, arm) for arm in tr.all_arms(HIDDEN.graph, 2)]
        np.testing.assert_allclose(np.sort(table[:-1]), np.sort(arms))
        assert table[-1] == pytest.approx(tr.expected_reward(HIDDEN, ()))


def test_a_study_is_a_value():
    assert study() == study()
    assert study() != study(seed=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        study().seed = 3
