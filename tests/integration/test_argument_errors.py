"""What is refused at the doors, Python's and the command line's, and in whose words."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import pytest

import dobandit as dob
from dobandit.cli.main import main
from dobandit.errors import DobanditWarning, GraphError, InterventionError, ObservationError, ParseError, PolicyError
from dobandit.model.model_files import write_model
from dobandit.policy.registry import NAMES, policy_class, policy_from_document, policy_from_spec
from dobandit.storage import MemoryStorage
from dobandit.texts import for_commands, for_python, keyword, policy_name

EDGES = [("ad", "visit"), ("price", "visit"), ("visit", "buy")]
SHOP = dob.CausalGraph(EDGES, target="buy", bias=["visit", "buy"])  # ad and price only happen when they are set
MARKS = ("keyword", "setting", "policy_name")
CONTEXT = dob.CausalGraph([*EDGES, ("mobile", "buy")], target="buy", context=["mobile"])


def experiment(graph=SHOP, **words):
    return dob.create_experiment("e", graph, 1, storage=MemoryStorage(), policy="ucb", seed=0, **words)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A command; its output, or its error where it ends with 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOBANDIT_STORAGE", raising=False)
    Path("shop.json").write_text(dob.print_graph(CONTEXT, "json"))
    Path("idle.json").write_text(dob.print_graph(SHOP, "json"))

    def command(*words, fails=False):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == (2 if fails else 0), err
        return err.strip() if fails else out

    return command


# -- a variable that cannot happen by itself ---------------------------------------------------------------------

IMPOSSIBLE = r"'price' can only be other than 0 where it is set.*record the round with it in do.*'do:price'.*bias"


def test_a_variable_without_causes_that_was_not_set_is_not_told_as_1():
    e = experiment()
    trial = e.ask(available=["ad"])
    for seen in ({"price": 1, "buy": 0}, [{"buy": 0}, {"price": 1, "buy": 0}], {"price": 1, "buy": 0, "count": 3}):
        with pytest.raises(ObservationError, match=IMPOSSIBLE):
            e.tell(trial, seen)
        with pytest.raises(ObservationError, match=IMPOSSIBLE):
            e.record({"ad": 1}, seen)
    with pytest.raises(ParseError, match=f"row 1: .*{IMPOSSIBLE}"):
        e.import_history([({}, {"buy": 1}), ({}, {"price": 1, "buy": 1})])
    assert e.status().told == 0
    e.tell(trial, {"price": 0, "visit": 1, "buy": 0})  # which goes without saying
    e.record({"price": 1}, {"price": 1, "buy": 0})
    e.import_history([{"do:price": 1, "price": 1, "buy": 1}])
    assert e.status().told == 3


def test_one_with_a_bias_or_a_cause_may_happen():
    biased = experiment(dob.CausalGraph(EDGES, target="buy"))
    biased.record({}, {"price": 1, "ad": 1, "visit": 1, "buy": 0})
    experiment().record({}, {"visit": 1, "buy": 0})


def test_the_command_line_refuses_it_too(run):
    run("experiment", "create", "s", "idle.json", "-k", 1, "--policy", "ucb")
    said = run("experiment", "record", "s", "--do", "ad=1", "price=1", "buy=0", fails=True)
    assert re.search(IMPOSSIBLE, said)
    Path("past.csv").write_text("price,buy\n0,1\n1,1\n")
    assert re.search(f"past.csv: line 3: .*{IMPOSSIBLE}", run("experiment", "import", "s", "past.csv", fails=True))
    run("experiment", "record", "s", "--do", "price=1", "buy=0")


# -- contexts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.5, 2, 120, "yes", pytest.param(10**400, id="huge"), [1]])
def test_a_wrong_value_in_a_context_is_told_apart_from_a_total(value):
    rule = "the value of the context variable 'mobile' must be 0 or 1"
    e = experiment(CONTEXT)
    for ask in (e.ask, e.recommend, e.learner.best, e.learner.propose):
        with pytest.raises(ObservationError, match=rule) as refused:
            ask(context={"mobile": value})
        assert "total" not in str(refused.value)
    with pytest.raises(ObservationError) as refused:
        e.tell(e.ask(context={"mobile": 1}), {"mobile": 2, "buy": 1})
    assert "total" not in str(refused.value)


@pytest.mark.parametrize("given", [{}, None, {"mobil": 1}, ["mobile"], {"mobile": None}, {"ad": 1, "mobile": 1}])
def test_learners_and_experiments_refuse_a_context_with_the_same_words(given):
    e = experiment(CONTEXT)
    said = []
    for ask in (e.ask, e.learner.propose):
        with pytest.raises(ObservationError) as refused:
            ask(context=given)
        said.append(str(refused.value))
    assert said[0] == said[1]


def test_a_context_variable_is_no_part_of_an_action():
    e = experiment(CONTEXT)
    for wrong in (
        lambda: e.evaluate({"mobile": 1}, context={"mobile": 1}),
        lambda: e.learner.predict({"mobile": 1}, {"mobile": 0}),
        lambda: e.learner.propose(context={"mobile": 1}, pending=[{"mobile": 1}]),
    ):
        with pytest.raises(InterventionError, match="of the context is seen, not set, but do names 'mobile'"):
            wrong()
    assert e.learner.predict({"mobile": 1, "ad": 1}) == e.learner.predict({"ad": 1}, {"mobile": 1})


# -- the words of the command line -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says", "not_python"),
    [
        (["ask", "s"], "Add --context mobile=1.", "context={"),
        (["ask", "s", "--context", "mobile=2"], "'mobile' must be 0 or 1", "total"),
        (["ask", "s", "--context", "mobile=maybe"], "a number after the =", "total"),
        (["evaluate", "s", "--do", "mobile=1", "--context", "mobile=1"], "is seen, not set", "{"),
        (["tell", "s", 0, "buy=15"], "such as visit 1, buy 0, count 105", "{"),
        (["ask", "s", "--context", "mobile=1", "--available", "nobody"], "what is available are controllable", "="),
        (["create", "x", "shop.json"], "needs a budget or a total cost", "="),
        (["create", "x", "shop.json", "-k", 9], "the budget must be a whole number from 0 to 3", "budget="),
        (["create", "x", "shop.json", "-k", 1, "--lever", "nobody=0"], "levers are of controllable", "{"),
        (["create", "x", "shop.json", "-k", 1, "--lever", "price=2"], "a lever is a value from 0 to 1", "{"),
        (["create", "x", "shop.json", "-k", 1, "--lever", "price=0.5"], "the levers of 'price' are 0.5", "True"),
        (["create", "x", "shop.json", "-k", 1, "--require", "nobody"], "what is required are controllable", "require="),
        (["create", "x", "shop.json", "-k", 1, "--control", 2], "from 0 to below 1", "="),
        (["create", "x", "shop.json", "-k", 1, "--policy", "oracle"], "it is for simulations", "CausalUCB"),
        (
            ["create", "x", "shop.json", "-k", 1, "--policy", "blm-lr", "--effects", "any"],
            "Promise --effects nonnegative, let it read harm as no effect with clipped=True in --policy, or use "
            "causal-ucb",
            "='",
        ),
        (["create", "x", "shop.json", "-k", 1, "--lease", "90000d"], "at most 11,574d", "timedelta"),
    ],
)
def test_errors_speak_as_commands_do(run, words, says, not_python):
    run("experiment", "create", "s", "shop.json", "-k", 1, "--policy", "ucb")
    run("experiment", "ask", "s", "--context", "mobile=1")
    said = run("experiment", *words, fails=True)
    assert says in said
    assert not_python not in said.partition(says)[2]
    assert said.count("\n") == 0


def test_every_way_out_that_a_message_names_is_marked():
    """Keywords that are written into the package's errors are marked, for each door to spell them."""
    only_python = {"record", "name", "graph"}  # of `simulate(record=..., graph=...)` and of a policy class of one's own
    found, marked = set(), set()
    for path in Path(dob.__file__).parent.rglob("*.py"):
        if path.parent.name in ("testing", "formats", "cli", "experiments"):
            continue
        for raised in ast.walk(ast.parse(path.read_text())):
            if isinstance(raised, ast.Raise):
                calls = [n for n in ast.walk(raised) if isinstance(n, ast.Call) and getattr(n.func, "id", "") in MARKS]
                inside = {id(n) for call in calls for n in ast.walk(call)}
                constants = [n for n in ast.walk(raised) if isinstance(n, ast.Constant) and id(n) not in inside]
                texts = [n.value for n in constants if isinstance(n.value, str)]
                found |= set(re.findall(r"(?<![\w'\"`:,+-])([a-z][a-z_]+)=(?=['{\[<.]|\w|$)", " ".join(texts)))
                marked |= {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    assert found - only_python == {"key"}  # key=value, of policies' settings
    assert {"context", "effects"} <= marked


def test_ways_on_from_hidden_causes_are_spelled_as_commands():
    graph = dob.CausalGraph(
        [("a", "m"), ("m", "y"), ("u", "m"), ("u", "y"), ("w", "a"), ("w", "y")],
        target="y",
        latent=["u", "w"],
        controllable=["a"],
    )
    with pytest.raises(GraphError, match="Ways on") as refused:
        dob.BLMLR().start(graph, 1, effects="nonnegative")
    said = for_commands(refused.value.marked).partition("Ways on")[2]
    assert "(1) learn how variables answer to each set" in said
    assert "--policy causal-ucb; " in said
    assert "--always-set a" in said
    assert "--policy ucb" in said
    assert "=" not in said


def settings_of_messages():
    """The first words that `setting` marks, in the whole package."""
    for path in Path(dob.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "setting":
                yield call.args[0].value.partition("=")[0]


def test_settings_and_policies_are_those_that_there_are():
    settings = {field.name for name in NAMES for field in fields(policy_class(name))}
    assert {"clipped", "guarantee", "initial", "kappa", "prune", "safe"} == {*settings_of_messages()} <= settings
    for name in ("CausalUCB", "CausalTS", "BLMLR", "BGLMOFU"):
        assert for_python(policy_name(name)) == name == policy_class(for_commands(policy_name(name))).__name__


@pytest.mark.parametrize(
    "text", ["but got 'context=abc'.", "'bglm-ofu:initial=x' has 'initial=x'", "--do X3=1", 'the name "BLMLR" is taken']
)
def test_what_the_user_wrote_is_not_translated(text):
    assert for_commands(text) == text == for_python(text)


@pytest.mark.parametrize("name", ["a\ue000b", "\ue000x\ue001y\ue002", "\ue002\ue001"])
def test_nobody_marks_a_keyword_from_outside(name):
    error = PolicyError(f"but got {name!r}. Use {keyword('hide', [name])}.")
    assert repr(name) in str(error)
    assert repr(name) in for_commands(error.marked)


def test_a_keyword_is_spelled_for_each_door(run):
    """Python's errors and warnings, copies of them, errors that hold others, and the command line's words for each."""
    error = GraphError(f"Use {keyword('hide', ['a b'])} or {keyword('always_set')}, {keyword('continuous', False)}.")
    python = "Use hide=['a b'] or always_set=..., continuous=False."
    for one in (error, pickle.loads(pickle.dumps(error)), copy.copy(error), DobanditWarning(error.marked)):
        assert str(one) == python
        assert for_commands(one.marked) == "Use --hide 'a b' or --always-set, no --continuous."
    placed = ParseError(error.marked, line=3, column=1).in_source("a.csv")
    assert placed.message == python
    assert str(pickle.loads(pickle.dumps(placed))) == f"a.csv: line 3, column 1: {python}"
    assert for_commands(placed.marked).endswith("--hide 'a b' or --always-set, no --continuous.")
    with pytest.warns(DobanditWarning, match=r"hide=\['a b'\]"):
        warnings.warn(error.marked, DobanditWarning, stacklevel=1)


# -- levers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lever", ["price=0,,1", "price=,1", "price=0,", "price=", "price=0,0", "price=1,1.0", "price=0,1x", "price=0,1 x"]
)
def test_a_lever_has_a_number_between_commas_each_once(run, lever):
    said = run("experiment", "create", "x", "shop.json", "-k", 1, "--lever", lever, fails=True)
    assert said.startswith("error: --lever takes")
    assert repr(lever) in said


STRAIGHT = r"'price' has 3 values.*straight line.*exclusive=\.\.\. keep them apart"


@pytest.mark.parametrize(
    "begin",
    [
        lambda **words: dob.create_experiment("e", SHOP, 1, storage=MemoryStorage(), continuous=True, **words),
        lambda **words: dob.CausalUCB().start(SHOP, 1, continuous=True, **words),
    ],
    ids=["create_experiment", "start"],
)
def test_levels_that_are_learned_as_a_line_are_warned_of(begin):
    with pytest.warns(DobanditWarning, match=STRAIGHT) as caught:
        begin(levers={"price": (0, 0.5, 1)})
    assert [Path(one.filename).name for one in caught] == [Path(__file__).name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DobanditWarning)
        begin(levers={"price": (0.25, 0.75)})  # any function of two values is a line
        dob.UCB().start(SHOP, 1, continuous=True, levers={"price": (0, 0.5, 1)})  # each value by itself


def test_the_command_line_warns_of_levels_too(run, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["experiment", "create", "x", "idle.json", "-k", "1", "--continuous", "--lever", "price=0,0.5,1"])
    said = capsys.readouterr().err
    assert (ended.value.code or 0) == 0
    assert "warning: 'price' has 3 values" in said
    assert "let --exclusive keep them apart" in said
    graph = dob.CausalGraph([("price", "buy")], target="buy", bias=["price"])
    model = dob.LinearModel(graph, {"price": 0.2, ("price", "buy"): 0.5})
    write_model(model, "line.json")
    assert "learned as a straight line" in " ".join(run("check", "line.json").split())
    assert json.loads(run("check", "line.json", "--json"))["continuous"] is True


# -- policies of other packages ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picky(dob.UCB):
    """Looks at its settings no more than Python does."""

    name: ClassVar[str] = "picky"
    label: ClassVar[str] = "Picky"
    depth: int = 1
    width: float = 1.0

    def __post_init__(self):
        if self.depth < 1:
            raise PolicyError("depth is from 1")


@pytest.mark.parametrize(
    "spec", ["picky:depth=deep", "picky:depth=deep,width=2", "picky:width=wide", "picky:width=true"]
)
def test_a_setting_of_the_wrong_type_is_a_policy_error_that_names_it(spec):
    key, _, value = spec.partition(":")[2].partition(",")[0].partition("=")
    came = {"true": "True"}.get(value, repr(value))
    document = {"name": "picky", key: {"true": True}.get(value, value)}
    for make in (lambda: policy_from_spec(spec), lambda: policy_from_document(document)):
        with pytest.raises(PolicyError, match="picky") as refused:
            make()
        assert key in str(refused.value)
        assert came in str(refused.value)
    assert policy_from_spec("picky:depth=2,width=3") == Picky(depth=2, width=3)


def test_a_setting_that_a_policy_does_not_have_is_a_policy_error():
    for make in (lambda: policy_from_spec("picky:dept=1"), lambda: policy_from_document({"name": "picky", "dept": 1})):
        with pytest.raises(PolicyError, match=r"picky takes .*'depth'.*but got 'dept'. Did you mean 'depth'"):
            make()


# -- what is shown -----------------------------------------------------------------------------------------------


def test_explain_says_in_which_context_a_trial_was_asked(run):
    run("experiment", "create", "s", "shop.json", "-k", 1, "--policy", "ucb", "--lever", "price=0,1")
    run("experiment", "ask", "s", "--context", "mobile=1")
    assert re.search(r"context +mobile = 1\n", run("experiment", "explain", "s", 0))
    assert json.loads(run("experiment", "explain", "s", 0, "--json"))["context"] == {"mobile": 1}
    lines = run("experiment", "show", "s").splitlines()
    assert [line.split("  ")[-1] for line in lines if line.startswith("  to set")] == [
        "at most 1 of ad, price (0 or 1), visit"
    ]


def test_explain_says_nothing_of_a_context_where_there_is_none(run):
    run("experiment", "create", "s", "idle.json", "-k", 1, "--policy", "ucb")
    run("experiment", "ask", "s")
    assert "context" not in run("experiment", "explain", "s", 0)
    assert json.loads(run("experiment", "explain", "s", 0, "--json"))["context"] == {}
