"""A target may have effects: they are kept in the graph, left aside by models, learners and rows, and said to be so."""

from __future__ import annotations

import json
import pickle

import pytest

import dobandit as dob
from dobandit.errors import DobanditWarning, InterventionError, PolicyError
from dobandit.graph.formats import FORMATS
from helpers.commands import dobandit

EDGES = [("ad", "visit"), ("visit", "buy"), ("buy", "refund"), ("season", "refund"), ("refund", "complaint")]
WEIGHTS = {"ad": 0.3, "visit": 0.1, "buy": 0.1, ("ad", "visit"): 0.5, ("visit", "buy"): 0.6}
ROWS = [
    {"ad": 1, "season": 0, "visit": 1, "buy": 1, "refund": 1, "complaint": 1, "count": 60},
    {"ad": 1, "season": 1, "visit": 1, "buy": 0, "refund": 0, "complaint": 0, "count": 20},
    {"ad": 0, "season": 1, "visit": 0, "buy": 0, "refund": 0, "complaint": 0, "count": 70},
    {"ad": 0, "season": 0, "visit": 1, "buy": 1, "refund": 0, "complaint": 0, "count": 10},
]
pytestmark = pytest.mark.filterwarnings("ignore:.*an effect of the target:dobandit.errors.DobanditWarning")


def shop(**roles):
    return dob.CausalGraph(EDGES, target="buy", controllable=["ad"], **roles)


def test_effects_are_kept_and_no_nodes():
    with pytest.warns(DobanditWarning, match="'refund', 'complaint' is an effect of the target 'buy'.*turn the edge"):
        graph = shop()
    assert graph.effects == ("refund", "complaint")
    assert "refund" not in graph
    assert graph.children("buy") == ()
    assert set(graph.all_edges) == set(EDGES)
    assert graph != dob.CausalGraph(EDGES[:2], target="buy", controllable=["ad"], nodes=["season"])
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert dob.CausalGraph(EDGES[::-1], target="buy", controllable=["ad"]) == graph


def test_a_lever_that_is_only_an_effect_is_said_to_be_useless():
    with pytest.warns(DobanditWarning, match="setting 'refund' cannot change 'buy': it is an effect of it"):
        graph = dob.CausalGraph(EDGES, target="buy", controllable=["ad", "refund"])
    assert graph.controllable == ("ad",)
    with pytest.raises(InterventionError, match="'refund' is an effect of the target"):
        dob.create_experiment("e", graph, budget=1, forbid=["refund"], storage="memory")
    with pytest.raises(InterventionError, match="setting 'refund' changes nothing"):
        dob.expect(dob.BinaryGLM(graph, {**WEIGHTS, "season": 0.5}), {"refund": 1})


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("roles", [{}, {"latent": ["season"]}, {"latent": ["refund"]}], ids=str)
def test_every_format_keeps_them(kind, roles):
    graph = shop(**roles)
    assert dob.parse_graph(dob.print_graph(graph, kind), kind) == graph


def test_marks_that_only_say_who_is_not_set_do_not_make_levers_of_effects():
    text = "digraph { target=buy; visit [controllable=false]; ad -> visit -> buy -> refund; }"
    with pytest.warns(DobanditWarning, match="left aside"):
        graph = dob.parse_graph(text, "dot")
    assert graph.controllable == ("ad",)


def test_states_of_an_effect_need_no_choice():
    text = dob.print_graph(shop(), "bif").replace("variable refund { type discrete [ 2 ] { 0, 1 } ;", MANY)
    assert dob.parse_graph(text, "bif") == shop()


MANY = "variable refund { type discrete [ 3 ] { none, half, all } ;"


def test_models_leave_them_aside():
    every = {**WEIGHTS, "season": 0.5, "refund": 0.0, ("buy", "refund"): 0.2, ("season", "refund"): 0.1}
    every |= {"complaint": 0.0, ("refund", "complaint"): 0.5}
    model = dob.BinaryGLM.blm(every, target="buy", controllable=["ad"])
    assert model.graph == shop()
    assert dob.expect(model, {"ad": 1}).value == pytest.approx(0.1 + 0.6 * 0.6)
    tables = dob.TableModel.of(model)
    assert dob.TableModel(shop(), {**tables.tables, "refund": 0.3}) == tables


def test_model_files_leave_them_aside(tmp_path):
    nodes = {"ad": {"bias": 0.3}, "buy": {"bias": 0.1, "parents": {"ad": 0.5}}, "refund": {"parents": {"buy": 0.2}}}
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"target": "buy", "nodes": nodes}))
    model = dob.read_model(path)
    assert model.graph.effects == ("refund",)
    assert dob.solve(model, 1).set == ("ad",)


def test_a_target_in_the_middle_of_a_network():
    states = dict.fromkeys(("smoke", "ill", "xray"), ("no", "yes"))
    tables = {"smoke": [0.5, 0.5], "ill": [[0.9, 0.1], [0.6, 0.4]], "xray": [[0.95, 0.05], [0.1, 0.9]]}
    network = dob.Network(states, {"ill": ("smoke",), "xray": ("ill",)}, tables)
    model = network.binary("ill")
    assert model.graph.effects == ("xray",)
    assert dob.expect(model, {"smoke": 1}).value == pytest.approx(0.4)


def test_hidden_causes_of_effects_do_no_harm():
    graph = dob.CausalGraph([("ad", "buy"), ("buy", "refund"), ("U", "buy"), ("U", "refund")], "buy", latent=["U"])
    assert dob.admissible(graph)


def test_rows_with_such_columns_are_taken_and_they_teach_nothing(tmp_path):
    graph, without = shop(), [{k: v for k, v in row.items() if k not in ("refund", "complaint")} for row in ROWS]
    assert dob.rank(graph, ROWS, budget=1).to_document() == dob.rank(graph, without, budget=1).to_document()
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in [list(ROWS[0]), *(row.values() for row in ROWS)]))
    assert dob.fit(graph, path).rounds == 160


def test_an_experiment_takes_what_it_is_told_of_them():
    experiment = dob.create_experiment("shop", shop(), budget=1, storage="memory", history=ROWS)
    trial = experiment.ask()
    experiment.tell(trial, {"season": 0, "visit": 1, "buy": 1, "refund": 0.5, "complaint": None})
    assert experiment.status().pending == 0
    assert set(experiment.recommend().do) <= {"ad"}


def test_check_says_that_they_are_left_aside(tmp_path):
    (tmp_path / "shop.txt").write_text("target: buy\ncontrollable: ad\nad -> visit -> buy -> refund\n")
    said = dobandit("check", tmp_path / "shop.txt").stdout
    assert "left aside" in said
    assert "refund (caused by buy" in said
    assert json.loads(dobandit("check", tmp_path / "shop.txt", "--json").stdout)["effects_of_target"] == ["refund"]


def test_policies_refuse_levers_that_are_effects():
    with pytest.raises((PolicyError, InterventionError), match="effect of the target"):
        dob.rank(shop(), ROWS, budget=1, require=["refund"])
