"""What a simulated study records, saves and reads back."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from dobandit import BLMLR, UCB, CausalGraph, Fixed, TableModel, simulate
from dobandit.errors import SimulationError
from dobandit.simulation.result import StudyResult
from dobandit.simulation.simulate import run_study
from helpers.simulations import GENERAL_POLICIES, MODELS, assert_same, study

# -- what is recorded ---------------------------------------------------------------------------------------------


def test_every_kind_of_recording_tells_the_same():
    every = run_study(study(rounds=3000, replications=2, record="every"))
    grid = run_study(study(rounds=3000, replications=2, record="grid"))
    some = run_study(study(rounds=3000, replications=2, record=[2049, 7, 2048, 7]))
    assert every.grid.tolist() == list(range(1, 3001))
    assert some.grid.tolist() == [7, 2048, 2049, 3000]
    assert (grid.grid[0], grid.grid[-1]) == (1, 3000)
    assert 200 <= len(grid.grid) <= 400
    for result in (grid, some):
        np.testing.assert_array_equal(result.all_regret, every.all_regret[:, :, result.grid - 1])
        np.testing.assert_array_equal(result.all_reward, every.all_reward[:, :, result.grid - 1])
        np.testing.assert_array_equal(result.best_plays, every.best_plays)
        assert result.summary_of("UCB") == every.summary_of("UCB")
        assert result.summary_of("UCB", int(result.grid[1])) == every.summary_of("UCB", int(result.grid[1]))


@pytest.mark.parametrize("rounds", [1, 2, 10, 401])
def test_short_runs_have_a_grid_too(rounds):
    grid = study(rounds=rounds).grid
    assert grid[-1] == rounds
    assert len(set(grid)) == len(grid)


def test_approximation_regret_is_alpha_beta_best_minus_what_was_earned():
    # G4: E[Y] = .2 X2 + .2 X3 + .1 X4 + .1 X5 with P(X2) = P(X3) = .2, P(X4) = P(X5) = .6
    result = run_study(study(policies={"X4": Fixed(["X4"])}, rounds=50, record="every", replications=2))
    best, earned = 0.2 + 0.2 + 0.06 + 0.06, 0.04 + 0.04 + 0.1 + 0.06
    t = np.arange(1, 51)
    np.testing.assert_allclose(result.regret("X4")[0], (best - earned) * t)
    np.testing.assert_allclose(result.regret("X4", alpha=0.9)[1], (0.9 * best - earned) * t)
    np.testing.assert_allclose(
        result.regret("X4", alpha=1 - 1 / math.e, beta=0.5)[0], ((1 - 1 / math.e) * 0.5 * best - earned) * t
    )
    for wrong in ({"alpha": 0.0}, {"beta": 1.5}, {"alpha": math.nan}):
        with pytest.raises(SimulationError, match="must be above 0 and at most 1"):
            result.regret("X4", **wrong)


def test_questions_about_what_is_not_there_are_refused():
    result = run_study(study(record=[5], rounds=20))
    with pytest.raises(SimulationError, match="Did you mean 'BLM-LR'"):
        result.regret("BLM-RL")
    with pytest.raises(SimulationError, match="round 6 was not recorded; the next recorded one is 20"):
        result.summary_of("UCB", 6)
    with pytest.raises(SimulationError, match="not recorded"):
        result.summary_of("UCB", 21)


def test_differences_are_paired():
    result = run_study(study(replications=40))
    gap = result.difference("UCB", "BLM-LR")
    sample = result.regret("UCB")[:, -1] - result.regret("BLM-LR")[:, -1]
    assert gap.mean == pytest.approx(sample.mean())
    assert gap.mean == pytest.approx(result.summary_of("UCB").mean - result.summary_of("BLM-LR").mean)
    assert result.difference("BLM-LR", "UCB").mean == pytest.approx(-gap.mean)
    assert result.microseconds_per_round("UCB") > 0


# -- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", MODELS)
def test_saving_and_loading_changes_nothing(world, tmp_path):
    policies = {
        "a": GENERAL_POLICIES[0] if world == "logistic" else BLMLR(0.1),
        "b": UCB(0.1),
        "c": Fixed(["X3", "X2"]),
    }
    result = run_study(study(MODELS[world], policies, rounds=30, replications=3, seed=5))
    path = result.save(tmp_path / "deep" / "folder")
    for again in (StudyResult.load(path), StudyResult.load(path.parent)):
        assert_same(again, result)
        np.testing.assert_array_equal(again.seconds, result.seconds)
        assert again.elapsed == result.elapsed
        assert again.study == result.study
        assert again.labels == ["a", "b", "c"]
    assert_same(run_study(StudyResult.load(path).study), result)  # the file is enough to run it again
    assert [file.name for file in path.parent.iterdir()] == ["study.npz"]


def test_saving_again_replaces_the_file(tmp_path):
    for seed in (0, 1):
        run_study(study(rounds=5, seed=seed)).save(tmp_path)
    assert StudyResult.load(tmp_path).study.seed == 1


def test_a_damaged_file_is_refused_or_harmless(tmp_path):
    result = run_study(study(rounds=20, record=[5]))
    path = result.save(tmp_path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for at in rng.integers(0, len(whole), 300).tolist():
        damaged = bytearray(whole)
        damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert_same(StudyResult.load(path), result)
        except SimulationError:
            refused += 1
    assert refused > 100
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(SimulationError, match="not a saved study"):
            StudyResult.load(path)


def rewritten(path, **changes):
    """The file with some of its arrays replaced, or dropped (None)."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"study": np.array("no JSON")}, "not a saved study"),
        ({"study": np.array("[]")}, "not a saved study"),
        ({"study": np.array('{"format": "other", "version": 1}')}, "not a saved study"),
        ({"study": np.array('{"format": "dobandit-study", "version": 2}')}, "version 2.*Update dobandit"),
        ({"study": None}, "not a saved study"),
        ({"regret": None}, "not a saved study"),
        ({"regret": np.array([{}], dtype=object)}, "not a saved study"),
    ],
    ids=["no JSON", "a list", "foreign", "future", "no study", "no regret", "pickled"],
)
def test_foreign_and_future_files_are_refused(changes, words, tmp_path):
    path = run_study(study(rounds=5)).save(tmp_path)
    rewritten(path, **changes)
    with pytest.raises(SimulationError, match=words):
        StudyResult.load(path)


def test_files_that_are_not_there_or_not_ours_are_refused(tmp_path):
    with pytest.raises(SimulationError, match="no saved study"):
        StudyResult.load(tmp_path)
    with pytest.raises(SimulationError, match="no saved study"):
        StudyResult.load(tmp_path / "nowhere" / "study.npz")
    (tmp_path / "notes.txt").write_text("regret")
    np.savez(tmp_path / "foreign.npz", x=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in ("notes.txt", "foreign.npz", "array.npy"):
        with pytest.raises(SimulationError, match="not a saved study"):
            StudyResult.load(tmp_path / name)


def test_the_configuration_is_in_the_file(tmp_path):
    path = run_study(study(rounds=5, seed=9)).save(tmp_path)
    with np.load(path, allow_pickle=False) as archive:
        document = json.loads(str(archive["study"]))
        assert archive["regret"].shape == (4, 6, len(document["study"]["grid"]))
    assert document["format"] == "dobandit-study"
    assert document["study"]["seed"] == 9
    assert document["study"]["policies"]["BLM-LR"] == {"name": "blm-lr", "radius_scale": 0.1}
    assert document["study"]["model"]["target"] == "Y"


def segmented(together):
    """A world in which b brings more in a segment, by so much."""
    edges = [("s", "y"), ("a", "y"), ("b", "y")]
    graph = CausalGraph(edges, target="y", context=["s"], controllable=["a", "b"])
    table = {}
    for values in itertools.product((0, 1), repeat=3):
        seen = dict(zip(graph.parents("y"), values, strict=True))
        table[values] = 0.05 + 0.05 * seen["s"] + 0.4 * seen["a"] + (0.2 + together * seen["s"]) * seen["b"]
    return TableModel(graph, {"s": 0.5, "a": 0.1, "b": 0.1, "y": table})


@pytest.mark.parametrize(("together", "best"), [(0.0, {"a": 1}), (-0.1, {"a": 1}), (0.2, {"a": 1}), (0.25, None)])
def test_a_set_that_is_best_in_every_context_is_said(together, best, tmp_path):
    result = simulate(segmented(together), ["random"], 20, 2, 1)
    assert result.best_depends is (best is None)
    assert result.best_do == (best or {})
    assert ("depends on the context" in result.summary().text(200)) is (best is None)
    assert StudyResult.load(result.save(tmp_path)).best_depends is (best is None)
