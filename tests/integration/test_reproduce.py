"""The paper's experiments and studies of one's own, from the command line to the files."""

import json

import numpy as np
import pytest

import dobandit as dob
from dobandit.simulation.reproduce import PUBLISHED, WORLDS, compare, paper_study
from dobandit.simulation.simulate import run_study
from helpers.commands import dobandit
from helpers.worlds import THOROUGH

pytestmark = pytest.mark.processes


def test_reproduce_writes_what_it_promises(tmp_path):
    done = dobandit("reproduce", "G4", "--replications", 5, "--out", tmp_path / "results", "--json")
    graph = json.loads(done.stdout)["graphs"]["G4"]
    assert (graph["rounds"], graph["budget"], graph["replications"]) == (2000, 2, 5)
    assert list(graph["policies"]) == list(PUBLISHED["G4"])
    for policy in graph["policies"].values():
        low, high = policy["regret_ci95"]
        assert low <= policy["regret_mean"] <= high
        assert set(policy["regret_quantiles"]) == {"0.05", "0.5", "0.95"}
    names = {path.name for path in (tmp_path / "results").iterdir()}
    figures = {f"G4-{kind}.{end}" for kind in ("regret", "graph") for end in ("png", "svg")}
    assert names == figures | {"summary.md", "summary.json", "report.html"}
    assert json.loads((tmp_path / "results/summary.json").read_text()) == json.loads(done.stdout)
    assert "published" in (tmp_path / "results/summary.md").read_text()


@pytest.mark.parametrize("name", ["G3", "G4"])
def test_our_algorithms_agree_with_the_paper(name):
    result = run_study(paper_study(name, replications=100, seed=1))
    rows = {row.policy: row for row in compare(name, result)}
    assert rows["BLM-LR"].agrees
    assert rows["BLM-OFU"].agrees
    assert result.summary_of("BLM-LR").high < result.summary_of("UCB").low


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (run_study(paper_study("G4", 3, seed)) for seed in (5, 5, 6))
    assert np.array_equal(first.all_regret, again.all_regret)
    assert not np.array_equal(first.all_regret, other.all_regret)


def test_a_study_of_ones_own(tmp_path):
    model, out = tmp_path / "model.json", tmp_path / "study"
    dob.paper.G4.save(model)
    arguments = ["--policy", "blm-lr:radius_scale=0.1", "--policy", "ucb:scale=0.1", "--rounds", 300, "-k", 2]
    done = dobandit("simulate", model, *arguments, "--replications", 12, "--out", out, "--json")
    document = json.loads(done.stdout)
    assert {path.name for path in out.iterdir()} >= {"study.npz", "report.html", "regret.png", "summary.md"}
    assert not (out / "unfinished").exists()
    (out / "report.html").unlink()
    dobandit("report", out)
    assert (out / "report.html").exists()
    assert dob.load_result(out).study.model == dob.paper.G4
    text = dobandit("simulate", model, *arguments, "--replications", 12).stdout
    assert "BLM-LR" in text
    assert json.dumps(document)


def test_every_round_is_counted_once_among_the_sets_chosen(tmp_path):
    result = run_study(paper_study("G4", 4))
    result.save(tmp_path)
    for read in (result, dob.load_result(tmp_path)):
        for label in result.labels:
            plays = read.plays(label)
            assert np.array_equal(sum(plays.values()), np.full(4, 2000))
            assert np.array_equal(plays["X2", "X3"], read.best_plays[read.labels.index(label)])
        assert np.array_equal(read.plays("BLM-OFU")[()], np.full(4, 20))  # its initialisation sets nothing


@pytest.mark.parametrize("policy", [dob.Fixed([]), dob.Fixed(["X2"]), dob.Oracle(dob.paper.G4), dob.Random()])
def test_studies_of_the_yardsticks_are_saved_and_read_back(policy, tmp_path):
    result = dob.simulate(dob.paper.G4, [policy], 30, 2, seed=1)
    result.save(tmp_path)
    again = dob.load_result(tmp_path)
    assert list(again.study.policies.values()) == [policy]
    assert np.array_equal(again.all_regret, result.all_regret)


def test_another_study_does_not_overwrite_a_finished_one(tmp_path):
    model = tmp_path / "model.json"
    dob.paper.G4.save(model)
    common = ["simulate", model, "--rounds", 20, "--replications", 2, "-k", 2, "--out", tmp_path / "study"]
    dobandit(*common, "--policy", "ucb")
    before = (tmp_path / "study/study.npz").read_bytes()
    assert "another study" in dobandit(*common, "--policy", "random", code=2).stderr
    assert (tmp_path / "study/study.npz").read_bytes() == before


def test_the_theorem_as_a_curve_lies_above_the_regret():
    result = run_study(paper_study("G4", 5))
    for label in ("BLM-LR", "BLM-OFU"):
        bound = result.bound(label)
        assert bound is not None
        assert np.all(result.regret(label).mean(axis=0) <= bound)
        assert np.all(np.diff(bound) >= 0)
    assert result.bound("UCB") is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["reproduce", "G6"],
        ["reproduce", "G1", "--replications", "0"],
        ["reproduce", "G4", "--replications", "2", "--executor", "cloud"],
        ["simulate", "absent.json", "--rounds", "10", "-k", "1"],
        ["simulate", "{model}", "--rounds", "10", "-k", "9"],
        ["simulate", "{model}", "--rounds", "10", "-k", "1", "--policy", "magic"],
        ["simulate", "{model}", "--rounds", "10", "-k", "1", "--policy", "ucb:scale=-1"],
        ["simulate", "{model}", "--rounds", "10", "-k", "1", "--policy", "ucb:skale=1"],
        ["simulate", "{model}", "--rounds", "10", "-k", "1", "--policy", "fixed:set=X9"],
        ["report", "absent"],
        ["report", "{model}"],
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments, tmp_path):
    model = tmp_path / "model.json"
    dob.paper.G4.save(model)
    done = dobandit(*[a.format(model=model) for a in arguments], "--out", tmp_path / "out", code=2)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")


def test_a_study_over_many_graphs_is_one_call():
    models = {shape: dob.random_model(shape, 6, seed=1) for shape in ("layered", "tree", "scale-free")}
    results = dob.simulate_many(models, ["random", "oracle"], rounds=50, replications=3, budget=2)
    assert list(results) == list(models)
    for name, result in results.items():
        assert result.study.model == models[name]
        assert result.summary_of("Oracle").mean == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(dob.errors.SimulationError, match="rownds"):
        dob.simulate_many(models, ["random"], rounds=5, replications=1, budget=1, rownds=3)


def test_reproduce_goes_beyond_the_paper(tmp_path, monkeypatch):
    """A table and a world with a graph that is not believed; `make thorough` draws the others too."""
    worlds = dict(WORLDS) if THOROUGH > 1 else {name: WORLDS[name] for name in ("interaction", "hidden-cause")}
    for name in WORLDS.keys() - worlds.keys():
        monkeypatch.delitem(WORLDS, name)
    done = dobandit("reproduce", "G4", "--beyond", "--replications", 1, "--out", tmp_path, "--json")
    document = json.loads(done.stdout)
    assert list(document["graphs"]["G4"]["policies"]) == [*PUBLISHED["G4"], "CausalUCB", "CausalTS"]
    assert list(document["worlds"]) == list(worlds)
    assert document["guaranteed"]["G4"]["replications"] == 1
    assert {"worlds.png", *(f"{name}-regret.png" for name in ("G4", "G4-guaranteed", *worlds))} <= {
        path.name for path in tmp_path.iterdir()
    }
    summary = (tmp_path / "summary.md").read_text()
    assert "not in the paper" in summary
    assert "guaranteed; the first 1 run" in summary


def test_more_policies_leave_the_paper_s_numbers_as_they_are():
    plain, extended = run_study(paper_study("G4", 2)), run_study(paper_study("G4", 2, beyond=True))
    for label in plain.labels:
        assert np.array_equal(plain.regret(label), extended.regret(label))


@pytest.mark.parametrize("name", WORLDS)
def test_the_worlds_beyond_do_not_fit_a_sum_of_helpful_effects(name):
    world, budget, told = WORLDS[name]
    assert world.links is None or not world.nonnegative or told is not None
    assert told is None or (set(told.observed) == set(world.graph.observed) and told != world.graph)
    best = {"interaction": 2, "harm": 1, "missing-edge": 1, "hidden-cause": 1}
    assert len(dob.solve(world, budget=budget).do) == best[name]
