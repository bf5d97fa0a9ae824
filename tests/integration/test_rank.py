"""fit and rank: what data say of every allowed set is exactly what an experiment with this history then knows."""

from __future__ import annotations

import csv
import itertools
import json
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import InterventionError, ModelError, ObservationError
from dobandit.storage import MemoryStorage
from dobandit.texts import action_words, setting_words, with_interval

EDGES = [("email", "visit"), ("coupon", "visit"), ("visit", "buy"), ("coupon", "buy"), ("price", "buy")]
GRAPH = dob.CausalGraph(EDGES, target="buy", controllable=["email", "coupon", "price"])
WEIGHTS = {
    "email": 0.3,
    "coupon": 0.2,
    "price": 0.5,
    "visit": -1.5,
    "buy": -2.0,
    ("email", "visit"): 1.5,
    ("coupon", "visit"): 0.5,
    ("visit", "buy"): 1.5,
    ("coupon", "buy"): 0.6,
    ("price", "buy"): -1.0,
}
WORLD = dob.BinaryGLM(GRAPH, weights=WEIGHTS, links={"visit": "logistic", "buy": "logistic"})
RULES = {"budget": 2, "levers": {"price": (0, 1)}}


def data(world=WORLD, size=300, seed=0, missing=0.1):
    """Rounds in which nothing, the coupon, or the e-mail and the price are set, some visits not seen."""
    rng = np.random.default_rng(seed)
    rows = []
    for do in ({}, {"coupon": 1}, {"email": 1, "price": 0}):
        drawn = world.sample(do, size=size, rng=rng)
        for i in range(size):
            row = {name: int(drawn[name][i]) for name in world.graph.observed}
            row["intervention_targets"] = " ".join(do)
            if rng.random() < missing:
                row["visit"] = None
            rows.append(row)
    return rows


ROWS = data()


def seen_in(answer):
    """Mean and rounds; their interval is of one look in a ranking, and valid at every look in an experiment."""
    return answer.observed and answer.observed[:2]


def enumerated(model, do):
    """E[target | do] by summing over all worlds."""
    names, total = model.graph.nodes, 0.0
    for values in itertools.product((0, 1), repeat=len(names)):
        world = dict(zip(names, values, strict=True))
        if any(world[name] != value for name, value in do.items()):
            continue
        chance = 1.0
        for name in names:
            if name not in do:
                p = float(model.tables[name][tuple(world[parent] for parent in model.graph.parents(name))])
                chance *= p if world[name] else 1.0 - p
        total += chance * world[model.graph.target]
    return total


def test_a_ranking_says_what_an_experiment_with_this_history_says():
    ranking = dob.rank(GRAPH, ROWS, looks="every", **RULES)
    words = {"storage": MemoryStorage(), "history": ROWS, "randomised": True, "seed": 0}
    experiment = dob.create_experiment("same", GRAPH, **words, **RULES)
    assert len(ranking.actions) == 1 + 4 + (1 + 2 + 2)
    for action in ranking.actions:
        told = experiment.evaluate(action.do)
        assert (action.value, action.interval) == (told.value, told.interval)
        assert action.uplift == told.uplift
        assert ranking.nothing == told.nothing
        assert seen_in(action) == seen_in(told)
    assert experiment.recommend().do == ranking.best.do
    assert experiment.status().rounds == ranking.rounds == len(ROWS)
    values = [action.value for action in ranking.actions]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("links", ["identity", {"visit": "logistic", "buy": "auto"}])
def test_promised_links_are_the_experiments_links(links):
    ranking = dob.rank(GRAPH, ROWS, 1, links=links, looks="every")
    experiment = dob.create_experiment("promised", GRAPH, 1, storage=MemoryStorage(), history=ROWS, links=links, seed=0)
    for action in ranking.actions:
        told = experiment.evaluate(action.do)
        assert (action.value, action.interval, action.uplift) == (told.value, told.interval, told.uplift)


def test_with_hidden_causes_and_contexts_it_is_the_same():
    graph = dob.CausalGraph(
        [*EDGES, ("season", "visit"), ("season", "wish"), ("wish", "buy"), ("mobile", "buy")],
        target="buy",
        latent=["season"],
        controllable=["email", "coupon", "price"],
        context=["mobile"],
        bias=["email", "coupon", "price", "season", "visit", "wish", "mobile", "buy"],
    )
    weights = dict.fromkeys(graph.nodes, 0.1) | dict.fromkeys(graph.edges, 0.15)
    rows = data(dob.BinaryGLM(graph, weights=weights), size=1_500)
    ranking = dob.rank(graph, rows, 2, context={"mobile": 1}, looks="every")
    experiment = dob.create_experiment("hidden", graph, 2, storage=MemoryStorage(), history=rows, randomised=True)
    for action in ranking.actions:
        told = experiment.evaluate(action.do, context={"mobile": 1})
        assert (action.value, action.interval, seen_in(action)) == (told.value, told.interval, seen_in(told))
    variables = {name.partition(" | ")[0] for name in ranking.fit.nodes}
    assert variables == {"email", "coupon", "price", "mobile", "visit", "wish", "buy"}
    assert len(ranking.fit.nodes) == len(variables), "nobody can set what shares the hidden cause"
    assert any(" | " in name for name in ranking.fit.nodes), "one of the two tells of the other"
    assert not any(node.promised for node in ranking.fit.nodes.values())
    with pytest.raises(ObservationError, match="mobile"):
        dob.rank(graph, rows, 2)


def test_it_is_the_same_where_the_graph_is_too_wide_for_exact_passes():
    """Twenty levers stay open until the stages that they act on: the ends come from the means then."""
    edges = [(f"x{i}", f"m{i % 5}") for i in range(20)] + [(f"m{i}", "y") for i in range(5)]
    graph = dob.CausalGraph(edges, target="y", controllable=[f"x{i}" for i in range(20)])
    drawn = np.random.default_rng(0).integers(2, size=(400, len(graph)))
    rows = [dict(zip(graph.nodes, row, strict=True)) for row in drawn.tolist()]
    ranking = dob.rank(graph, rows, 1, looks="every")
    experiment = dob.create_experiment("wide", graph, 1, storage=MemoryStorage(), history=rows, seed=0)
    for action in (ranking.actions[0], ranking.actions[7], ranking.actions[-1]):
        told = experiment.evaluate(action.do)
        assert (action.value, action.interval, action.uplift) == (told.value, told.interval, told.uplift)


def test_a_cause_that_the_graph_lacks_is_reckoned_with_alike():
    """The effect of the coupon on buying is strong, and left out."""
    world = dob.BinaryGLM(
        GRAPH, weights=WEIGHTS | {("coupon", "buy"): 3.0}, links=dict.fromkeys(("visit", "buy"), "logistic")
    )
    graph = dob.CausalGraph(
        [edge for edge in EDGES if edge != ("coupon", "buy")], target="buy", controllable=GRAPH.controllable
    )
    rows = data(world, size=600)
    ranking = dob.rank(graph, rows, looks="every", **RULES)
    experiment = dob.create_experiment("lacks", graph, storage=MemoryStorage(), history=rows, seed=0, **RULES)
    assert any("reckons with" in warning for warning in ranking.warnings)
    for action in ranking.actions:
        told = experiment.evaluate(action.do)
        assert (action.value, action.interval, action.uplift) == (told.value, told.interval, told.uplift)
        assert action.value == pytest.approx(enumerated(ranking.fit.model, action.do), abs=1e-12)
    assert ranking.fit.model.graph.parents("buy") == ("coupon", "price", "visit")


HIDDEN = dob.CausalGraph(
    [*EDGES, ("mood", "visit"), ("mood", "buy")],
    target="buy",
    latent=["mood"],
    controllable=["email", "coupon", "price"],
    bias=GRAPH.nodes,
)


@pytest.mark.parametrize("hide", ["auto", ["visit"]])
def test_a_mediator_that_counts_as_hidden_is_so_for_rankings_too(hide):
    words = {"storage": MemoryStorage(), "history": ROWS, "randomised": True, "seed": 0}
    experiment = dob.create_experiment("aside", HIDDEN, 2, hide=hide, **words)
    without = [{name: value for name, value in row.items() if name != "visit"} for row in ROWS]
    for rows in (ROWS, without):
        ranking = dob.rank(HIDDEN, rows, 2, hide=hide)
        assert set(ranking.fit.nodes) == {"email", "coupon", "price", "buy"}
        assert [action.value for action in ranking.actions] == pytest.approx(
            [experiment.evaluate(action.do).value for action in ranking.actions]
        )
    assert not any(trial["partial"] for trial in experiment.trials())
    told = dob.rank(HIDDEN, ROWS, 2, hide=hide, looks="every")
    assert [(*a[1:-1], seen_in(a)) for a in told.actions] == [
        (e.value, e.interval, e.uplift, seen_in(e)) for e in (experiment.evaluate(a.do) for a in told.actions)
    ]


SEEN_ROW = dict.fromkeys(GRAPH.nodes, 1)


def test_only_rounds_that_set_what_is_always_set_are_ranked():
    """The price is set in a third of the rounds; of doing nothing these say nothing."""
    graph = dob.CausalGraph(
        [*EDGES, ("mood", "price"), ("mood", "buy")],
        target="buy",
        latent=["mood"],
        controllable=["email", "coupon", "price"],
        bias=GRAPH.nodes,
    )
    without = dob.rank(graph, ROWS, 1)
    assert without.nothing is not None
    assert "buy" in without.fit.nodes, "where the price is set"
    assert any(name.startswith("buy | ") for name in without.fit.nodes), "where it is not"
    with pytest.warns(dob.errors.DobanditWarning, match="rounds in which 'price' was not set are left out"):
        ranking = dob.rank(graph, ROWS, 1, always_set=["price"], looks="every")
    with pytest.warns(dob.errors.DobanditWarning, match="rounds in which 'price' was not set are left out"):
        experiment = dob.create_experiment(
            "always", graph, 1, storage=MemoryStorage(), history=ROWS, always_set=["price"]
        )
    assert {tuple(action.do.items()) for action in ranking.actions} == {(("price", 0),), (("price", 1),)}
    for action in ranking.actions:
        told = experiment.evaluate(action.do)
        assert (action.value, action.interval, action.uplift) == (told.value, told.interval, None)
    assert ranking.nothing is None
    assert "against" not in ranking.sentence
    document = ranking.to_document()
    assert document["nothing"] is document["actions"][0]["uplift"] is None
    assert set(ranking.fit.nodes) == {"email", "coupon", "visit", "buy"}
    assert ranking.fit.nodes["buy"].rows <= 300
    assert (ranking.rounds, document["rounds"], ranking.fit.to_document()["rounds"]) == (300, 300, 300)
    assert "from 300 rounds" in ranking.chart().caption
    with pytest.warns(dob.errors.DobanditWarning, match="are left out"):
        fit = dob.fit(graph, ROWS, always_set=["price"])
    assert fit.expect({"price": 0}).value == experiment.evaluate({"price": 0}).value
    for refuse in (
        lambda: dob.rank(graph, [{**SEEN_ROW, "do": "email"}], 1, always_set=["price"]),
        lambda: dob.create_experiment(
            "none", graph, 1, storage=MemoryStorage(), history=[SEEN_ROW], always_set=["price"]
        ),
    ):
        with pytest.raises(ObservationError, match=r"set 'price', which is always set, but none of the 1 given does"):
            refuse()


def rounds_of_iv(rng, do, size):
    """Z -> X -> Y, where a hidden cause of X and Y turns the effect of X around."""
    mood = rng.random(size) < 0.5
    z = np.full(size, bool(do["Z"])) if "Z" in do else rng.random(size) < 0.6
    x = np.full(size, bool(do["X"])) if "X" in do else z ^ mood ^ (rng.random(size) < 0.1)
    y = x ^ mood ^ (rng.random(size) < 0.15)
    rows = [dict(zip("ZXY", map(int, row), strict=True)) for row in zip(z, x, y, strict=True)]
    return [{**row, "do": ";".join(do)} for row in rows]


def test_where_a_hidden_cause_is_shared_rows_speak_for_the_sets_that_they_show():
    graph = dob.CausalGraph([("Z", "X"), ("X", "Y"), ("U", "X"), ("U", "Y")], target="Y", latent=["U"])
    rng, rules = np.random.default_rng(8), {"budget": 1, "levers": {"Z": [0, 1], "X": [0, 1]}}
    watched = rounds_of_iv(rng, {}, 3_000)
    ranking = dob.rank(graph, watched, **rules)
    known = {setting_words(one.do): one for one in ranking.actions}
    # y is 1 exactly where z is, but for noise: 0.9 * 0.85 + 0.1 * 0.15, without a row in which z was set
    assert known["Z = 1"].interval.low < 0.78 < known["Z = 1"].interval.high
    assert known["Z = 0"].interval.low < 0.22 < known["Z = 0"].interval.high
    assert ranking.best.do == {"Z": 1}
    for one in (known["X = 0"], known["X = 1"]):
        assert math.isnan(one.value)
        assert (one.interval, one.uplift, one.observed) == ((0.0, 1.0), None, None)
    assert ranking.actions[-2:] == (known["X = 0"], known["X = 1"])
    assert "The rows say nothing of X = 0, X = 1." in ranking.sentence
    assert "not known" in str(ranking)
    assert [one["value"] for one in ranking.to_document()["actions"][-2:]] == [None, None]
    assert any("how 'Y' answers to 'X' where 'X' is set" in words for words in ranking.warnings)
    assert set(ranking.fit.nodes) == {"Z", "X", "Y", "Y | Z, X"}
    assert (ranking.fit.nodes["Y"].rows, ranking.fit.nodes["Y | Z, X"].rows) == (0, 3_000)
    assert "Z = 0" in ranking.chart().svg()
    assert "X = 0" not in ranking.chart().svg()
    with pytest.raises(ModelError, match="answer in several ways"):
        _ = ranking.fit.model
    both = dob.rank(graph, watched + rounds_of_iv(rng, {"X": 1}, 500), **rules)
    assert not any(math.isnan(one.value) for one in both.actions)
    assert (both.fit.nodes["Y"].rows, both.fit.nodes["Y | Z, X"].rows) == (500, 3_000)
    value = next(one for one in both.actions if one.do == {"X": 1})
    assert value.interval.low < 0.5 < value.interval.high


def test_values_are_those_of_the_fitted_model_by_enumeration():
    ranking = dob.rank(GRAPH, ROWS, **RULES)
    model = ranking.fit.model
    for action in ranking.actions:
        assert action.value == pytest.approx(enumerated(model, action.do), abs=1e-12)
        assert dob.expect(model, do=action.do).value == pytest.approx(action.value, abs=1e-12)
        assert ranking.fit.expect(action.do) == (action.value, action.interval)


def test_intervals_hold_the_truth():
    ranking = dob.rank(GRAPH, data(size=2_000, seed=3), **RULES)
    idle = dob.expect(WORLD).value
    for action in ranking.actions:
        truth = dob.expect(WORLD, do=action.do).value
        assert action.interval.low <= truth <= action.interval.high
        assert action.uplift.interval.low <= truth - idle <= action.uplift.interval.high


def test_a_row_teaches_a_node_whose_value_and_causes_are_there_unless_it_was_set():
    nodes = dob.fit(GRAPH, ROWS).nodes
    for name in GRAPH.nodes:
        wanted = [*GRAPH.parents(name), name]
        told = [
            row
            for row in ROWS
            if name not in row["intervention_targets"].split() and all(row[one] is not None for one in wanted)
        ]
        assert nodes[name].rows == len(told)
        if not GRAPH.parents(name):
            assert nodes[name].bias.value == pytest.approx(np.mean([row[name] for row in told]))
    seen = [row["buy"] for row in ROWS if row["intervention_targets"] == "coupon"]
    coupon = next(action for action in dob.rank(GRAPH, ROWS, 1).actions if action.do == {"coupon": 1})
    assert (coupon.observed.rounds, coupon.observed.mean) == (len(seen), pytest.approx(np.mean(seen)))


def test_the_document_is_json_and_says_what_was_asked_for():
    ranking = dob.rank(GRAPH, ROWS, **RULES)
    document = json.loads(json.dumps(ranking.to_document(), allow_nan=False))
    assert {"actions", "nothing", "nodes"} <= set(document)
    assert [set(action) for action in document["actions"]] == [{"do", "value", "interval", "uplift", "observed"}] * 10
    assert set(document["nothing"]) == {"value", "interval"}
    assert document["nodes"]["buy"]["link"] in ("identity", "logistic", "exponential", "table")
    assert sum(action["observed"] is not None for action in document["actions"]) == 3
    assert len(ranking.to_document(top=2)["actions"]) == 2
    assert ranking.sentence.startswith("Setting ")


def test_too_many_sets_are_refused_with_the_way_out():
    wide = dob.CausalGraph([(f"x{i}", "y") for i in range(60)], target="y")
    with pytest.raises(InterventionError, match="Lower the budget"):
        dob.rank(wide, [dict.fromkeys(wide.nodes, 1)], 10)


# -- the command line ----------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    graph, table = tmp_path / "funnel.json", tmp_path / "visits.csv"
    dob.write_graph(GRAPH, graph)
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    return str(table), str(graph)


def dobandit(*arguments):
    """The command in this process: (exit code, printed, errors)."""
    import contextlib
    import io
    import warnings

    from dobandit.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as done:
            code = done.code
    return code, out.getvalue(), err.getvalue()


def test_the_command_ranks_and_draws(files, tmp_path):
    code, printed, errors = dobandit(
        "rank", *files, "-k", 2, "--lever", "price=0,1", "--top", 3, "--chart", tmp_path / "r.svg"
    )
    assert (code, errors) == (0, "")
    assert "The best 3 of 10 sets, from 900 rounds" in printed
    assert dob.rank(GRAPH, ROWS, **RULES).sentence in " ".join(printed.split())
    assert (tmp_path / "r.svg").read_text().startswith("<svg")


def test_a_ranking_prints_as_the_command_does_and_becomes_a_frame(files, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    ranking = dob.rank(GRAPH, files[0], 1)
    code, printed, _ = dobandit("rank", *files, "-k", 1)
    assert (code, printed) == (0, f"{ranking}\n")
    assert list(ranking.to_pandas()["value"]) == [action.value for action in ranking.actions]
    assert {name.partition(".")[0] for name in ranking.to_pandas()} == set(ranking.to_document()["actions"][0])
    assert ranking._repr_html_().startswith("<svg")


def test_the_commands_json_is_the_librarys(files):
    code, printed, _ = dobandit("rank", *files, "-k", 1, "--json")
    assert code == 0
    assert json.loads(printed) == json.loads(json.dumps(dob.rank(GRAPH, ROWS, 1).to_document()))


def test_an_experiment_begins_with_a_file(files, tmp_path):
    storage = f"sqlite:///{tmp_path / 'log.db'}"
    code, _, errors = dobandit(
        "experiment", "create", "spring", files[1], "-k", 2, "--history", files[0], "--storage", storage
    )
    assert code == 0, errors
    code, printed, _ = dobandit("experiment", "recommend", "spring", "--storage", storage, "--json")
    best = dob.rank(GRAPH, ROWS, 2).best
    assert (json.loads(printed)["do"], json.loads(printed)["value"]) == (best.do, best.value)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda text: text.replace("visit", "vist", 1), "Did you mean 'visit'?"),
        (lambda text: text.replace("\n0,", "\n7,", 1), "must be 0 or 1"),
        (lambda text: "", "empty"),
    ],
)
def test_bad_data_end_in_one_line_and_exit_code_2(files, change, what, tmp_path):
    table = tmp_path / "bad.csv"
    with open(files[0]) as file:
        table.write_text(change(file.read()))
    code, printed, errors = dobandit("rank", table, files[1], "-k", 1)
    assert (code, printed) == (2, "")
    assert what in errors
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1


def test_the_chart_has_a_dot_and_an_interval_for_each_set():
    ranking = dob.rank(GRAPH, ROWS, **RULES)
    drawn = ElementTree.fromstring(ranking.chart(top=4).panels[0].wide.svg())
    marks = [group for group in drawn.iter("g") if group.get("class", "").startswith("value")]
    assert len(marks) == 4
    for mark, action in zip(marks, ranking.actions, strict=False):
        line, dot = mark.find(".//line"), mark.find(".//circle")
        assert float(line.get("x1")) <= float(dot.get("cx")) <= float(line.get("x2"))
        shown = with_interval(action.value, *action.interval)
        assert mark.find(".//title").text == f"{action_words(action.do)}: {shown}"
