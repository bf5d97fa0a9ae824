"""Models of tables against enumeration that is written here, from the definition, with dictionaries and loops."""

from __future__ import annotations

import json
import pickle
from importlib.resources import files
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given as drawn_from
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dobandit import BinaryGLM, CausalGraph, LinearModel, TableModel, expect, read_model, solve
from dobandit.errors import DobanditError, InterventionError, ModelError, ParseError
from dobandit.model.model_files import model_from_document, model_to_document
from dobandit.model.random_models import random_model
from helpers.worlds import relaxed

SCHEMA = json.loads(files("dobandit.model").joinpath("schemas/model.schema.json").read_text())
AND = CausalGraph([("mail", "buy"), ("coupon", "buy")], target="buy")


# -- plainly ----------------------------------------------------------------------------------------------------------


def plain_worlds(graph, tables, do):
    """Every world that can happen, with its probability; tables[name] maps the parents' values to P(name = 1)."""
    worlds = [({}, 1.0)]
    for name in graph.nodes:
        grown = []
        for world, chance in worlds:
            p = do[name] if name in do else tables[name][tuple(world[parent] for parent in graph.parents(name))]
            grown += [({**world, name: 0}, chance * (1 - p)), ({**world, name: 1}, chance * p)]
        worlds = grown
    return worlds


def plain_mean(graph, tables, do, name=None, known=None):
    """E[name | do, known] (the target's by default)."""
    worlds = [(w, p) for w, p in plain_worlds(graph, tables, do) if all(w[k] == v for k, v in (known or {}).items())]
    return sum(p for w, p in worlds if w[name or graph.target]) / sum(p for _, p in worlds)


@st.composite
def table_worlds(draw, hidden=True, context=False):
    """A random graph on A, B, ... and T (hidden ones among them), with tables; some probabilities are 0 or 1."""
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.permutation(list("ABCDE")[: rng.integers(2, 6)])]
    edges = [(a, b) for a, b in combinations(names, 2) if rng.random() < 0.5]
    edges += [(name, "T") for name in names if rng.random() < 0.6 or name == names[0]]
    known = names[: rng.integers(1, 3)] if context else []
    known = [k for k in known if all(a in known for a, b in edges if b == k)]
    free = [name for name in names[1:] if name not in known]
    latent = [name for name in free if hidden and rng.random() < 0.3]
    moving = {"T"}  # what has a path to T
    for name in reversed(names):
        moving |= {name} if any(a == name and b in moving for a, b in edges) else set()
    settable = [name for name in names if name not in latent and name not in known and name in moving]
    if not settable:
        edges.append(("Z", "T"))
        settable.append("Z")
        names.append("Z")
    graph = CausalGraph.from_arrays(
        [*names, "T"],
        np.array([[*names, "T"].index(a) for a, _ in edges]),
        np.array([[*names, "T"].index(b) for _, b in edges]),
        "T",
        latent,
        settable,
        context=known,
    )
    tables = {
        name: {
            pattern: float(rng.choice([0.0, 1.0]) if rng.random() < 0.1 else rng.random())
            for pattern in product((0, 1), repeat=len(graph.parents(name)))
        }
        for name in graph.nodes
    }
    return graph, tables


def some_do(draw, graph):
    names = [name for name in graph.observed if name != graph.target]
    return {name: draw(st.sampled_from((0, 1))) for name in names if draw(st.booleans())}


# -- what it is worth -------------------------------------------------------------------------------------------------


@relaxed(max_examples=40)
@drawn_from(table_worlds(), st.data())
@pytest.mark.parametrize("method", ["auto", "elimination", "enumeration"])
def test_expectations_equal_enumeration(method, drawn, data):
    graph, tables = drawn
    do = some_do(data.draw, graph)
    answer = expect(TableModel(graph, tables), do, method)
    assert answer.samples == 0
    for name in graph.nodes:
        assert answer[name] == pytest.approx(plain_mean(graph, tables, do, name), abs=1e-12)


@relaxed(max_examples=15)
@drawn_from(table_worlds(), st.data())
def test_monte_carlo_and_samples_agree_with_enumeration(drawn, data):
    graph, tables = drawn
    do = some_do(data.draw, graph)
    model, size = TableModel(graph, tables), 20_000
    simulated = expect(model, do, "monte-carlo", samples=size)
    sample = model.sample(do, size, rng=1, latent=True)
    for name in graph.nodes:
        truth = plain_mean(graph, tables, do, name)
        slack = 5.5 * np.sqrt(max(truth * (1 - truth), 1e-9) / size)
        assert abs(simulated[name] - truth) <= slack
        assert abs(sample[name].mean() - truth) <= slack


@relaxed(max_examples=30)
@drawn_from(st.integers(0, 10**6), st.sampled_from(["identity", "logistic", "exponential"]), st.data())
def test_the_tables_of_a_model_with_weights_are_the_same_world(seed, link, data):
    model = random_model("layered", 6, seed=seed, parents=3, link=link)
    tables = TableModel.of(model)
    do = some_do(data.draw, model.graph)
    assert tables.nonnegative == model.nonnegative
    assert dict(expect(tables, do)) == pytest.approx(dict(expect(model, do, "enumeration")), abs=1e-12)
    drawn, same = tables.sample(do, 500, rng=3), model.sample(do, 500, rng=3)
    assert all(np.array_equal(drawn[name], same[name]) for name in drawn)


def test_random_numbers_do_not_depend_on_what_is_set():
    model = TableModel(AND, {"mail": 0.5, "coupon": 0.4, "buy": [[0.1, 0.2], [0.3, 0.9]]})
    free, forced = model.sample(size=4000, rng=5), model.sample({"mail": 1}, 4000, rng=5)
    assert np.array_equal(free["coupon"], forced["coupon"])
    already = free["mail"] == 1
    assert np.array_equal(free["buy"][already], forced["buy"][already])


@relaxed(max_examples=30)
@drawn_from(table_worlds())
def test_nonnegative_means_that_no_parent_ever_lowers_a_probability(drawn):
    graph, tables = drawn
    lowers = any(
        table[(*pattern[:i], 1, *pattern[i + 1 :])] < p
        for table in tables.values()
        for pattern, p in table.items()
        for i in range(len(pattern))
        if pattern[i] == 0
    )
    assert TableModel(graph, tables).nonnegative == (not lowers)
    rising = {name: {pattern: (1 + sum(pattern)) / 9 for pattern in table} for name, table in tables.items()}
    assert TableModel(graph, rising).nonnegative


@relaxed(max_examples=30)
@drawn_from(table_worlds(context=True), st.data())
def test_a_known_context_is_conditioning(drawn, data):
    graph, tables = drawn
    known = {name: data.draw(st.sampled_from((0, 1))) for name in graph.context}
    if plain_mean_of_pattern(graph, tables, known) == 0:
        return
    do = {name: 1 for name in graph.controllable if data.draw(st.booleans())}
    smaller = TableModel(graph, tables).knowing(known)
    assert set(smaller.graph.nodes) == set(graph.nodes) - set(known)
    assert expect(smaller, do).value == pytest.approx(plain_mean(graph, tables, do, known=known), abs=1e-12)


def plain_mean_of_pattern(graph, tables, known):
    return sum(p for w, p in plain_worlds(graph, tables, {}) if all(w[k] == v for k, v in known.items()))


# -- the best action --------------------------------------------------------------------------------------------------


@relaxed(max_examples=25)
@drawn_from(table_worlds(), st.integers(1, 3), st.booleans())
def test_solve_finds_the_best_of_all_actions(drawn, budget, both):
    graph, tables = drawn
    budget = min(budget, len(graph.controllable))
    values = (0, 1) if both else (1,)
    found = solve(TableModel(graph, tables), budget, levers=dict.fromkeys(graph.controllable, values))
    sets = [s for size in range(budget + 1) for s in combinations(graph.controllable, size)]
    actions = [dict(zip(s, to, strict=True)) for s in sets for to in product(values, repeat=len(s))]
    best = max(plain_mean(graph, tables, do) for do in actions)
    assert found.value == pytest.approx(best, abs=1e-12)
    assert plain_mean(graph, tables, found.do) == pytest.approx(best, abs=1e-12)
    assert (found.status, found.bound) == ("optimal", found.value)


@pytest.mark.parametrize("limits", [{"oracle": "greedy"}, {"oracle": "exhaustive", "node_limit": 2}])
def test_an_approximate_answer_has_an_honest_bound(limits):
    model = TableModel(AND, {"mail": 0.5, "coupon": 0.4, "buy": [[0.3, 0.2], [0.2, 0.9]]})
    best = max(expect(model, do={name: 1}).value for name in ("mail", "coupon"))
    found = solve(model, 1, **limits)
    assert found.status == "approximate"
    assert found.value <= best <= found.bound < 1.0


def test_branch_and_bound_is_for_linear_models():
    with pytest.raises(DobanditError, match="needs a linear model"):
        solve(
            TableModel(AND, {"mail": 0.5, "coupon": 0.4, "buy": [[0.3, 0.2], [0.2, 0.9]]}), 1, oracle="branch-and-bound"
        )


# -- files and values -------------------------------------------------------------------------------------------------


@relaxed(max_examples=25)
@drawn_from(st.booleans().flatmap(lambda context: table_worlds(context=context)))
def test_files_and_pickles_change_nothing(drawn):
    graph, tables = drawn
    model = TableModel(graph, tables)
    document = json.loads(json.dumps(model_to_document(model)))
    Draft202012Validator(SCHEMA).validate(document)
    for same in (model_from_document(document), pickle.loads(pickle.dumps(model))):
        assert same == model
        assert hash(same) == hash(model)
        assert not any(table.flags.writeable for table in same.tables.values())
    changed = {**tables, "T": {pattern: 0.5 * p + 0.1 for pattern, p in tables["T"].items()}}
    assert TableModel(graph, changed) != model


def test_a_file_may_list_parents_in_any_order(tmp_path):
    nodes = {"b": {"table": 0.1}, "a": {"table": 0.2}, "y": {"parents": ["b", "a"], "table": [[0.0, 0.25], [0.5, 1.0]]}}
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"target": "y", "nodes": nodes}))
    model = read_model(path)
    assert model == TableModel.from_file(path)
    assert model.probability("y", {"a": 1, "b": 0}) == 0.25
    assert model.probability("y", {"a": 0, "b": 1}) == 0.5
    model.save(path)
    assert read_model(path) == model
    with pytest.raises(ModelError, match="holds a TableModel"):
        BinaryGLM.from_file(path)


@pytest.mark.parametrize(
    ("nodes", "where"),
    [
        ({"a": {"table": 0.2}, "y": {"parents": ["a"], "table": [0.1]}}, "$.nodes.y.table"),
        ({"a": {"table": 0.2}, "y": {"parents": ["a"], "table": [0.1, 1.5]}}, "$.nodes.y"),
        ({"a": {"bias": 0.2}, "y": {"parents": ["a"], "table": [0.1, 0.5]}}, "$.nodes.a"),
        ({"a": {"table": 0.2}, "y": {"parents": {"a": 1}, "table": [0.1, 0.5]}}, "$.nodes.y.parents"),
        ({"a": {"table": 0.2, "link": "identity"}, "y": {"parents": ["a"], "table": [0.1, 0.5]}}, "$.nodes.a.link"),
        ({"a": {"table": 0.2, "bias": 0.3}, "y": {"parents": ["a"], "table": [0.1, 0.5]}}, "$.nodes.a.bias"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(nodes, where):
    with pytest.raises(ParseError) as error:
        model_from_document({"target": "y", "nodes": nodes})
    assert where in str(error.value)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"mail": 0.5, "coupon": 0.4}, "'buy' has none"),
        ({"mail": 0.5, "coupon": 0.4, "buy": 0.3, "sell": 0.1}, "'sell' is none"),
        ({"mail": 0.5, "coupon": 0.4, "buy": [0.1, 0.2]}, r"shape \(2, 2\)"),
        ({"mail": 0.5, "coupon": 0.4, "buy": [[0.1, 0.2], [0.3]]}, r"shape \(2, 2\)"),
        ({"mail": [0.5], "coupon": 0.4, "buy": np.zeros((2, 2))}, "a number"),
        ({"mail": 0.5, "coupon": 0.4, "buy": [[0.1, 0.2], [0.3, 1.2]]}, "with coupon=1, mail=1 it is 1.2"),
        ({"mail": 0.5, "coupon": 0.4, "buy": [[0.1, 0.2], [0.3, np.nan]]}, "it is nan"),
        ({"mail": 0.5, "coupon": 0.4, "buy": {(0, 0): 0.1, (1, 1): 0.2}}, r"\(0, 1\) has none"),
        ({"mail": 0.5, "coupon": 0.4, "buy": {(0,): 0.1}}, r"values of \(coupon, mail\)"),
        ({"mail": "often", "coupon": 0.4, "buy": np.zeros((2, 2))}, "often"),
        ([0.5], "mapping"),
    ],
)
def test_bad_tables_are_refused(tables, words):
    with pytest.raises(ModelError, match=words):
        TableModel(AND, tables)


def test_what_has_no_tables_is_refused():
    with pytest.raises(ModelError, match="continuous"):
        TableModel.of(LinearModel.of_weights({"a": 0.2, "y": 0.1, ("a", "y"): 0.5}, "y"))
    wide = {f"a{i}": 0.5 for i in range(21)}
    with pytest.raises(ModelError, match="most parents are 20"):
        TableModel.of(BinaryGLM.blm({**wide, "y": 0.1, **{(a, "y"): 0.01 for a in wide}}, "y"))
    with pytest.raises(InterventionError, match="0 or 1"):
        expect(TableModel(AND, {"mail": 0.5, "coupon": 0.4, "buy": np.zeros((2, 2))}), {"mail": 0.5})
