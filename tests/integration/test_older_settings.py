"""A log names the settings of its policy; one that an earlier version did not have yet means what it stood for then."""

import json
import sqlite3
from contextlib import closing

import pytest

import dobandit as dob
from dobandit.experiment.definition import definition_from_text
from dobandit.simulation.study import Study, study_of

GRAPH = dob.CausalGraph([("a", "m"), ("b", "m"), ("c", "y"), ("m", "y")], target="y", controllable=["a", "b", "c"])
GUARANTEE = dob.CausalUCB(guarantee=True)
# The 40 sets that guarantee=True asked for in the rounds below before it had a leeway; -: nothing.
THEN = "abacca-aaabbaacaccbcbcbbbcccccccccccccca"


def experiment_of(policy, storage, **more):
    return dob.create_experiment("old", GRAPH, budget=1, policy=policy, storage=storage, seed=3, **more)


def without_leeway(experiment):
    """The text of the definition as an earlier version wrote it."""
    document = json.loads(experiment.definition.to_text())
    assert document["policy"].pop("leeway") is not None
    return json.dumps(document)


def asked(experiment, rounds):
    """What it asks for in rounds that are the same for everybody."""
    names = []
    for k in range(rounds):
        trial = experiment.ask()
        names.append("".join(trial.do) or "-")
        u = [(k * step) % 1 for step in (0.618034, 0.414214, 0.732051, 0.236068, 0.645751)]
        seen = {name: trial.do.get(name, int(u[i] < 0.4)) for i, name in enumerate("abc")}
        seen["m"] = int(u[3] < 0.1 + 0.5 * seen["a"] + 0.3 * seen["b"])
        seen["y"] = int(u[4] < 0.1 + 0.3 * seen["c"] + 0.5 * seen["m"])
        experiment.tell(trial, seen)
    return "".join(names)


def test_an_old_log_asks_for_what_it_would_have_asked_for(tmp_path):
    path = str(tmp_path / "old.db")
    experiment = experiment_of(GUARANTEE, path)
    text = without_leeway(experiment)
    assert definition_from_text(text).policy == dob.CausalUCB(guarantee=True, leeway=0)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update experiments set document = ?", (text,))
    old = dob.open_experiment("old", path)
    assert "leeway" not in old.definition.policy_text
    assert asked(old, len(THEN)) == THEN
    # The words that made it still open it, and so do those that say what it does; others do not.
    for policy in (GUARANTEE, dob.CausalUCB(guarantee=True, leeway=0), "causal-ucb:guarantee=true"):
        assert experiment_of(policy, path, if_exists="open").definition.policy.leeway == 0.0
    for policy in (dob.CausalUCB(guarantee=True, leeway=0.25), dob.CausalUCB()):
        with pytest.raises(dob.errors.ExperimentError, match="another policy"):
            experiment_of(policy, path, if_exists="open")


def test_a_new_log_names_its_leeway(tmp_path):
    experiment = experiment_of("causal-ucb:guarantee=true", str(tmp_path / "new.db"))
    assert experiment.definition.document["policy"] == {"name": "causal-ucb", "guarantee": True, "leeway": 0.5}
    assert experiment.definition.policy == GUARANTEE
    strict = experiment_of("causal-ucb:guarantee=true,leeway=0", str(tmp_path / "strict.db"))
    assert strict.definition.policy.leeway == 0.0


def test_an_old_result_was_made_without_a_leeway():
    document = study_of(dob.paper.G4, {"it": GUARANTEE}, 10, 1, 2).to_document()
    assert Study.from_document(document).policies["it"] == GUARANTEE
    del document["policies"]["it"]["leeway"]
    assert Study.from_document(document).policies["it"] == dob.CausalUCB(guarantee=True, leeway=0)


# What this experiment asked for in the rounds below before segments had lines of their own, and before the curve that
# they share stood apart.
THEN_BY_SEGMENT = "bbbaababbbbbbbaaaaabbaabbabaaaaaaaaaaaaaaaaaabbaabaaabbabbaa"
THEN_WITH_OWN_LINES = "bbbababaaaaabaaaaaaaaaaaaaabbbaaaaaaaaaaaaaaabbaabbbbbbbbbaa"
SEGMENTS = dob.CausalGraph(
    [("mobile", "m"), ("a", "m"), ("b", "y"), ("m", "y"), ("mobile", "y")],
    target="y",
    controllable=["a", "b"],
    context=["mobile"],
)


def segments_in(path, **more):
    return dob.create_experiment("old", SEGMENTS, budget=1, storage=path, seed=3, **more)


def asked_by_segment(experiment, rounds):
    names = []
    for k in range(rounds):
        u = [(k * step) % 1 for step in (0.618034, 0.414214, 0.732051, 0.236068, 0.645751)]
        trial = experiment.ask(context={"mobile": int(u[2] < 0.5)})
        names.append("".join(trial.do) or "-")
        seen = {name: trial.do.get(name, int(u[i] < 0.3)) for i, name in enumerate("ab")}
        seen["m"] = int(u[3] < 0.2 + 0.5 * seen["a"] * (u[2] < 0.5))
        seen["y"] = int(u[4] < 0.1 + 0.3 * seen["b"] * (u[2] >= 0.5) + 0.5 * seen["m"])
        experiment.tell(trial, seen)
    return "".join(names)


def test_an_old_log_with_segments_goes_on_with_lines_that_all_of_them_share(tmp_path):
    path = str(tmp_path / "old.db")
    document = json.loads(segments_in(path).definition.to_text())
    assert document["version"] == 4
    assert document.pop("segments") == "own lines, curve apart"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update experiments set document = ?", (json.dumps(document | {"version": 2}),))
    old = dob.open_experiment("old", path)
    assert not old.definition.problem.own_lines
    assert asked_by_segment(old, len(THEN_BY_SEGMENT)) == THEN_BY_SEGMENT
    assert not segments_in(path, if_exists="open").definition.problem.own_lines
    assert segments_in(str(tmp_path / "new.db")).definition.problem.own_lines


def test_a_log_with_own_lines_goes_on_giving_weight_back_to_the_shared_curve(tmp_path):
    path = str(tmp_path / "old.db")
    document = json.loads(segments_in(path).definition.to_text())
    older = document | {"version": 3, "segments": "own lines"}
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update experiments set document = ?", (json.dumps(older),))
    old = dob.open_experiment("old", path)
    assert old.definition.problem.own_lines
    assert not old.definition.problem.curve_apart
    assert asked_by_segment(old, len(THEN_WITH_OWN_LINES)) == THEN_WITH_OWN_LINES
    assert not segments_in(path, if_exists="open").definition.problem.curve_apart
    assert segments_in(str(tmp_path / "new.db")).definition.problem.curve_apart


# E[y] of nothing, a and b after the trials below, when the rounds of a trial were learned sorted by their texts.
THEN_SORTED = ["0x1.0d2d5046089c2p-2", "0x1.f2fda25ec07a1p-2", "0x1.15ab93e42c971p-1"]
BATCHES = {  # what was set: b, m, y, and how often that was seen
    (): [(0, 0, 0, 70), (0, 1, 1, 20), (0, 1, 0, 10)],
    ("a",): [(0, 0, 0, 30), (0, 1, 1, 50), (0, 1, 0, 20)],
    ("b",): [(1, 0, 1, 15), (1, 1, 1, 45), (1, 0, 0, 40)],
}


def test_an_old_log_goes_on_learning_the_rounds_of_a_trial_as_they_are_sorted(tmp_path):
    path = str(tmp_path / "old.db")
    graph = dob.CausalGraph([("a", "m"), ("m", "y"), ("b", "y")], target="y", controllable=["a", "b"], bias=["m", "y"])
    document = json.loads(dob.create_experiment("old", graph, budget=1, storage=path, seed=3).definition.to_text())
    assert document["version"] == 4
    assert document.pop("batches") == "spread"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update experiments set document = ?", (json.dumps(document | {"version": 2}),))
    old, new = dob.open_experiment("old", path), dob.create_experiment("new", graph, budget=1, storage=path, seed=3)
    for names in [("a",), ("b",), ()]:
        rows = [{"a": int("a" in names), "b": b, "m": m, "y": y, "count": count} for b, m, y, count in BATCHES[names]]
        for experiment in (old, new):
            experiment.record(dict.fromkeys(names, 1), rows)
    values = [[one.evaluate(dict.fromkeys(names, 1)).value for names in BATCHES] for one in (old, new)]
    assert [value.hex() for value in values[0]] == THEN_SORTED
    assert [value.hex() for value in values[1]] != THEN_SORTED
    again = dob.open_experiment("new", path)
    assert [again.evaluate(dict.fromkeys(names, 1)).value for names in BATCHES] == values[1]
