"""Networks with named states: read, written, and made 0 and 1 without losing what the states do."""

from __future__ import annotations

import gzip
import json
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import networkx
import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import DobanditError, GraphError, ModelError, ParseError
from dobandit.graph.formats import FORMATS
from dobandit.model.inference import target_value
from dobandit.model.model_files import parse_model, print_model
from dobandit.simulation.study import study_of
from helpers.networks import SEEDS, random_tables

pytestmark = pytest.mark.filterwarnings("ignore::dobandit.errors.DobanditWarning")  # some variables cannot matter
FIXTURES = Path(__file__).parents[1] / "fixtures"
ASIA = FIXTURES / "networks/asia.bif"
ANSWERS = json.loads((FIXTURES / "network_answers.json").read_text())


def network(seed) -> dob.Network:
    return dob.Network(*random_tables(seed))


def binary(net, target, binarise):
    return net.binary(target, binarise=binarise)


def some_ones(net, rng) -> dict[str, list[str]]:
    """A random group of states for every variable."""
    return {
        name: rng.permutation(states)[: int(rng.integers(1, len(states)))].tolist()
        for name, states in net.states.items()
    }


def brute_force(net, target, ones, do) -> float:
    """P(target in its group | do(...)) over all worlds; a variable that is set takes its natural share in the group."""
    names, total = list(net.states), 0.0
    for states in product(*(range(len(own)) for own in net.states.values())):
        world, chance = dict(zip(names, states, strict=True)), 1.0
        for name in names:
            row = net.tables[name][tuple(world[p] for p in net.parents[name])]
            if name in do:
                group = np.array([(state in ones[name]) == bool(do[name]) for state in net.states[name]])
                usual = net.tables[name].reshape(-1, len(row)).sum(axis=0)
                weights = next(w for w in (row, usual, np.ones(len(row))) if w[group].sum() > 0)
                row = np.where(group, weights, 0.0)
                row = row / row.sum()
            chance *= row[world[name]]
        total += chance * (net.states[target][world[target]] in ones[target])
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_what_pgmpy_says_under_do_is_what_the_binary_model_says(seed):
    """A group of one state is set exactly as do() sets it."""
    net = network(seed)
    for asked in ANSWERS["random"][str(seed)]:
        for state, chance in asked["p"].items():
            ones = {name: states[0] for name, states in net.states.items()} | asked["do"] | {asked["target"]: state}
            model = binary(net, asked["target"], ones)
            assert dob.expect(model, list(asked["do"])).value == pytest.approx(chance, abs=1e-12)


def test_asia_is_pgmpys():
    for asked in ANSWERS["asia"]:
        model = dob.TableModel.from_bif(ASIA, target=asked["target"])
        do = {name: int(state == "yes") for name, state in asked["do"].items()}
        assert model.ones["lung"] == ("yes",)
        assert dob.expect(model, do).value == pytest.approx(asked["p"]["yes"], abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_merged_states_are_exact_under_any_intervention(seed):
    net, rng = network(seed), np.random.default_rng(seed)
    names = list(net.states)
    for _ in range(3):
        ones = some_ones(net, rng)
        model = binary(net, names[-1], ones)
        assert model.structure == net.graph(names[-1])
        assert parse_model(print_model(model)) == model
        do = {name: int(rng.integers(2)) for name in names[:-1] if rng.random() < 0.4}
        value = brute_force(net, names[-1], ones, do)
        assert dob.expect(model, do).value == pytest.approx(value, abs=1e-12)
        assert target_value(model, do) == (pytest.approx(value, abs=1e-12), True)


def test_states_that_no_effect_tells_apart_need_no_hidden_variable():
    states = {"age": ("young", "adult", "old"), "buy": ("no", "yes")}
    alike = dob.Network(
        states, {"buy": ("age",)}, {"age": [0.2, 0.5, 0.3], "buy": [[0.9, 0.1], [0.4, 0.6], [0.4, 0.6]]}
    )
    model = alike.binary("buy", binarise={"age": ["adult", "old"]})
    assert (model.graph.nodes, model.parts) == (("age", "buy"), {})
    apart = dob.Network(
        states, {"buy": ("age",)}, {"age": [0.2, 0.5, 0.3], "buy": [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]}
    )
    model = apart.binary("buy", binarise={"age": ["adult", "old"]})
    assert model.parts == {"age_state1": "age"}
    assert dob.expect(model, {"age": 1}).value == pytest.approx((0.5 * 0.6 + 0.3 * 0.8) / 0.8)


def test_a_binarised_world_can_be_learned_by_its_structure():
    study = study_of(binary(network(2), "V5", some_ones(network(2), np.random.default_rng(0))), ["random"], 20, 2, 1)
    assert set(study.problem.graph.nodes) == {f"V{i}" for i in range(6)}


@pytest.mark.parametrize("seed", SEEDS)
def test_networks_and_their_structure_come_back_from_every_format(seed, tmp_path):
    net = network(seed)
    assert dob.Network.from_bif(net.to_bif()) == net
    net.save(tmp_path / "net.bif.gz")
    assert gzip.decompress((tmp_path / "net.bif.gz").read_bytes()).decode() == net.to_bif()
    assert dob.Network.from_file(tmp_path / "net.bif.gz") == net
    graph = dob.read_graph(tmp_path / "net.bif.gz", target="V5", structure_only=True)
    assert graph == net.graph("V5")
    for kind in FORMATS:
        path = tmp_path / f"graph.{'txt' if kind == 'edgelist' else kind}.gz"
        dob.write_graph(graph, path)
        assert path.read_bytes().startswith(b"\x1f\x8b")
        assert dob.read_graph(path) == graph


def test_the_ways_to_write_a_table_are_one():
    head = "variable A { type discrete [ 3 ] { a, b, c }; } variable B { type discrete [ 2 ] { no, yes }; }"
    rows = "probability ( A ) { table 0.2 0.3 0.5; } probability ( B | A ) "
    ways = [
        "{ (a) 0.1, 0.9; (b) 0.5, 0.5; (c) 0.5, 0.5; }",
        "{ table 0.1, 0.5, 0.5, 0.9, 0.5, 0.5; }",
        '{ default 0.5 0.5; ("a") 0.1 0.9; }',
    ]
    first, *others = (dob.Network.from_bif(f"{head} {rows} {way}") for way in ways)
    assert others == [first, first]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("{ (a) 0.1, 0.9; (b) 0.5, 0.5; }", "none for"),
        ("{ (a) 0.1, 0.9; (a) 0.5, 0.5; }", "given before"),
        ("{ (d) 0.1, 0.9; }", "is none"),
        ("{ (a) 0.1; }", "2 numbers"),
        ("{ (a, a) 0.1, 0.9; }", "names 1 states"),
        ("{ table 0.1, 0.9; }", "6 numbers"),
        ("{ default 0.4, 0.9; }", "add up to 1"),
        ("{ default x, 0.9; }", "a number"),
        ("{ (a) 1e, 0.9; }", "a number"),
        ("{ (a) -0.1, 1.1; default 0.5, 0.5; }", "add up to 1"),
    ],
)
def test_bad_tables_are_refused_with_their_place(table, said):
    head = "variable A { type discrete [ 3 ] { a, b, c }; } variable B { type discrete [ 2 ] { no, yes }; }"
    with pytest.raises(ParseError, match=said) as caught:
        dob.Network.from_bif(f"{head} probability ( A ) {{ table 0.2 0.3 0.5; }} probability ( B | A ) {table}")
    assert caught.value.line == 1


def test_more_than_two_states_are_refused_with_both_ways_out(tmp_path):
    path = tmp_path / "net.bif"
    network(0).save(path)
    many = next(name for name, states in network(0).states.items() if len(states) > 2)
    with pytest.raises(DobanditError, match=rf"binarise={{'{many}': .*structure_only=True"):
        dob.read_graph(path, target="V5")
    first, *hidden = [name for name, states in network(0).states.items() if len(states) > 2]
    with pytest.raises(DobanditError, match=r"binarise_rest='last'\.$") as refused:  # a model is more than a structure
        dob.read_model(path, target="V5")
    assert all(f"{name!r} has " in str(refused.value) for name in (first, *hidden))  # every variable, in one message
    assert f"binarise={{{many!r}: " in str(refused.value)
    graph = dob.read_graph(path, target="V5", latent=hidden, binarise={first: "s0"})  # nobody looks at hidden ones
    assert set(graph.latent) == set(hidden)
    for wrong, said in (({many: "x"}, "names states"), ({many: []}, "none of them"), ({"Q": "s0"}, "names variables")):
        with pytest.raises(GraphError, match=said):
            network(0).binary("V5", binarise=wrong)
    with pytest.raises(GraphError, match="'first' or 'last', but got 'middle'"):
        network(0).binary("V5", binarise_rest="middle")
    with pytest.raises(ModelError, match="has none"):
        dob.Network({"A": ("no", "yes")}, {}, {})


def test_one_word_says_which_state_counts_as_1_in_all_the_rest(tmp_path):
    path = tmp_path / "net.bif"
    network(0).save(path)
    many = {name: states for name, states in network(0).states.items() if len(states) > 2}
    named = next(iter(many))
    last = {name: states[-1] for name, states in many.items()}
    assert dob.read_model(path, target="V5", binarise_rest="last") == network(0).binary("V5", binarise=last)
    first = {name: states[0] for name, states in many.items()} | {named: "s1"}
    by_rest = network(0).binary("V5", binarise={named: "s1"}, binarise_rest="first")
    assert by_rest == network(0).binary("V5", binarise=first)
    assert by_rest.ones[named] == ("s1",)
    assert dob.read_graph(path, target="V5", binarise_rest="last") == network(0).graph("V5")


@pytest.mark.parametrize(
    ("states", "one"),
    [
        (("yes", "no"), "yes"),
        (("True", "False"), "True"),
        (("0", "1"), "1"),
        (("M", "F"), "F"),
        (("high", "uni"), "uni"),
    ],
)
def test_of_two_states_the_one_that_says_so_is_1_else_the_last(states, one):
    net = dob.Network(
        {"A": states, "Y": ("no", "yes")}, {"Y": ("A",)}, {"A": [0.3, 0.7], "Y": [[0.9, 0.1], [0.4, 0.6]]}
    )
    model = net.binary("Y")
    assert model.ones["A"] == (one,)
    assert model.probability("A", {}) == pytest.approx([0.3, 0.7][states.index(one)])


class LikePgmpy(networkx.DiGraph):
    """What pgmpy's networks offer, and no more."""

    def __init__(self, seed):
        states, parents, tables = random_tables(seed)
        super().__init__([(p, name) for name, given in parents.items() for p in given])
        self.add_nodes_from(states)
        self.latents = set()
        self._cpds = [
            SimpleNamespace(
                variable=name,
                variables=[name, *parents[name]],
                values=np.moveaxis(tables[name], -1, 0),
                state_names={other: list(states[other]) for other in (name, *parents[name])},
            )
            for name in states
        ]

    def get_cpds(self):
        return self._cpds


@pytest.mark.parametrize("seed", [0, 3])
def test_objects_like_pgmpys_are_networks_and_graphs(seed):
    foreign, net = LikePgmpy(seed), network(seed)
    assert dob.Network.from_pgmpy(foreign) == net
    ones = {name: states[-1] for name, states in net.states.items()}
    assert dob.TableModel.from_pgmpy(foreign, "V5", binarise=ones) == net.binary("V5", binarise=ones)
    foreign.latents = {"V0"}
    assert (
        dob.from_networkx(foreign, target="V5").latent == dob.Network.from_pgmpy(foreign).graph("V5").latent == ("V0",)
    )
    with pytest.raises(GraphError, match="names no target"):
        dob.UCB().start(foreign, budget=1)
    foreign.latents = set()
    foreign.graph["target"] = "V5"
    assert dob.UCB().start(foreign, budget=1).problem.graph == net.graph("V5")
    assert dob.create_experiment(f"net{seed}", foreign, budget=1, storage="memory").definition.graph == net.graph("V5")
    with pytest.raises(ModelError, match="pgmpy"):
        dob.Network.from_pgmpy({"A": 1})


def test_a_damaged_compressed_file_is_refused(tmp_path):
    path = tmp_path / "graph.txt.gz"
    path.write_bytes(gzip.compress(b"target: Y\nA -> Y\n")[:-6])
    with pytest.raises(ParseError, match="damaged"):
        dob.read_graph(path)


@pytest.mark.filterwarnings("ignore::dobandit.errors.DobanditWarning")  # variables that cannot matter to the target
def test_pgmpys_example_networks_come_back_from_every_format(tmp_path):
    """Where pgmpy 1.0 lies beside, with or without what it depends on: its 24 files, from 5 to 1041 variables."""
    spec = find_spec("pgmpy")
    files = sorted(Path(spec.origin).parent.glob("utils/example_models/*.bif.gz")) if spec and spec.origin else []
    if not files:
        pytest.skip("pgmpy with its example networks is not installed")
    for file in files:
        net = dob.Network.from_file(file)
        assert dob.Network.from_bif(net.to_bif()) == net
        causes = {cause for given in net.parents.values() for cause in given}
        target = max(sorted(set(net.states) - causes), key=lambda name: len(net.parents[name]))
        graph = dob.read_graph(file, target=target, structure_only=True)
        assert {(p, name) for name, given in net.parents.items() for p in given} == set(graph.edges)
        for kind in FORMATS:
            assert dob.parse_graph(dob.print_graph(graph, kind), kind) == graph
        dob.write_graph(graph, tmp_path / "graph.json.gz")
        assert dob.read_graph(tmp_path / "graph.json.gz") == graph


def test_pgmpys_example_networks_are_read_and_answered_alike():
    """Where pgmpy is installed: every example network is read as it reads it, and small ones answer alike."""
    utils = pytest.importorskip("pgmpy.utils")
    inference = pytest.importorskip("pgmpy.inference")
    for name in ("asia", "cancer", "earthquake", "survey", "sachs", "child", "alarm"):
        theirs = utils.get_example_model(name)
        net = dob.Network.from_pgmpy(theirs)
        target = next(v for v in net.states if not list(theirs.successors(v)) and net.parents[v])
        cause = net.parents[target][0]
        ones = {v: states[0] for v, states in net.states.items()}
        found = inference.VariableElimination(theirs.do([cause])).query(
            [target], evidence={cause: ones[cause]}, show_progress=False
        )
        value = dob.expect(binary(net, target, ones), [cause]).value
        assert value == pytest.approx(found.get_value(**{target: ones[target]}), abs=1e-9)


def test_a_table_that_would_be_too_large_says_which_causes_make_it_so():
    """Six causes with nine states each, all of them told apart, are 24 variables of 0 and 1."""
    causes, states = [f"C{i}" for i in range(6)], tuple(f"s{k}" for k in range(9))
    share = np.linspace(0.1, 0.9, 9)
    tables = dict.fromkeys(causes, np.full(9, 1 / 9))
    middle = sum(np.meshgrid(*[share] * 6, indexing="ij")) / 6
    tables["Y"] = np.stack([1 - middle, middle], axis=-1)
    net = dob.Network({**dict.fromkeys(causes, states), "Y": ("no", "yes")}, {"Y": causes}, tables)
    with pytest.raises(ModelError, match=r"'Y' needs 24: .*'C0' \(9 states, 4\).*Merge states of 'C0'.*structure_only"):
        net.binary("Y", binarise=dict.fromkeys(causes, "s8"))
