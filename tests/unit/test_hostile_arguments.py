"""Odd arguments of the Python doors end in an error of dobandit's own, with a message, and in nothing else."""

import os

import numpy as np
import pytest

import dobandit as dob
from dobandit.errors import DobanditError, PolicyError, SimulationError
from dobandit.storage import MemoryStorage

pd = pytest.importorskip("pandas")
GRAPH = dob.CausalGraph([("a", "v"), ("b", "v"), ("v", "Y")], target="Y")
WEIGHTS = {"a": 0.5, "b": 0.5, "v": 0.1, "Y": 0.1, ("a", "v"): 0.3, ("b", "v"): 0.2, ("v", "Y"): 0.5}
MODEL = dob.BinaryGLM(GRAPH, WEIGHTS)
ODD = {
    "an array without dimensions": np.array(3),
    "a name without dimensions": np.array("a"),
    "a table of numbers": np.array([[1, 2], [3, 4]]),
    "a frame": pd.DataFrame({"a": [1], "Y": [0]}),
    "NA": pd.NA,
    "400 digits": 10**400,
    "an imaginary number": 1j,
    "a list in a list": [[]],
    "an object": object(),
}


def experiment(**words):
    given = {"budget": 1, "storage": MemoryStorage(), "seed": 0, "policy": "ucb", **words}
    return dob.create_experiment("e", GRAPH, **given)


def study(**words):
    given = {"rounds": 3, "replications": 1, "budget": 1, "workers": 1, **words}
    return dob.simulate(MODEL, given.pop("policies", ["random"]), **given)


DOORS = {
    **{f"graph, {w}": lambda odd, w=w: dob.CausalGraph(**{"edges": [("a", "Y")], "target": "Y", w: odd})
       for w in ("edges", "latent", "controllable", "bias", "context")},
    "a model's graph": lambda odd: dob.BinaryGLM(odd, WEIGHTS),
    "expect, do": lambda odd: dob.expect(MODEL, do=odd),
    **{f"solve, {w}": lambda odd, w=w: dob.solve(MODEL, **{"budget": 1, w: odd})
       for w in ("budget", "levers", "require", "forbid", "exclusive", "smaller", "always_set")},
    "a lever": lambda odd: dob.solve(MODEL, 1, levers={"a": odd}),
    **{f"a learner, {w}": lambda odd, w=w: dob.UCB().start(GRAPH, **{"budget": 1, w: odd})
       for w in ("horizon", "continuous", "effects", "hide", "links")},
    "draws": lambda odd: dob.UCB().start(GRAPH, 1).propose(odd),
    **{f"create, {w}": lambda odd, w=w: experiment(**{w: odd})
       for w in ("policy", "horizon", "continuous", "effects", "hide", "control", "stop_within", "history", "if_exists",
                 "storage", "lease")},
    "ask, available": lambda odd: experiment().ask(odd),
    "tell": lambda odd: (e := experiment()).tell(e.ask().number, odd),
    "record, do": lambda odd: experiment().record(odd, {"Y": 1}),
    "evaluate": lambda odd: experiment().evaluate(odd),
    "import": lambda odd: experiment().import_history(odd),
    "to_csv": lambda odd: experiment().to_csv(odd),
    **{f"simulate, {w}": lambda odd, w=w: study(**{w: odd})
       for w in ("policies", "rounds", "replications", "record", "executor", "effects", "hide", "checkpoint", "graph",
                 "workers", "progress")},
    **{f"{read.__name__}": read for read in (dob.read_graph, dob.read_model, dob.load_result)},
}  # fmt: skip
DOORS |= {
    f"{kind.__name__}, {word}": lambda odd, kind=kind, word=word: kind(**{word: odd})
    for kind, words in {
        dob.BLMLR: ("radius_scale", "region", "oracle", "radius", "delta"),
        dob.BGLMOFU: ("radius_scale", "initial", "kappa"),
        dob.UCB: ("scale",),
        dob.EpsilonGreedy: ("epsilon",),
        dob.BestSet: ("epsilon", "delta"),
        dob.Fixed: ("set", "values"),
    }.items()
    for word in words
}


@pytest.mark.parametrize("door", DOORS)
def test_odd_arguments_are_refused_in_words(door):
    for odd in ODD.values():
        said = ""
        try:
            DOORS[door](odd)  # some doors take some of them
        except DobanditError as refused:
            said = str(refused)
        assert said.replace("\n", "").isprintable()
        assert len(said) < 1000


def test_a_number_is_no_path_and_closes_no_file():
    number = os.open(os.devnull, os.O_RDONLY)
    for read in (dob.read_graph, dob.read_model, dob.load_result):
        with pytest.raises(DobanditError, match="path"):
            read(number)
    os.close(number)  # OSError if somebody had closed it


def test_an_executor_has_run_and_workers():
    with pytest.raises(SimulationError, match="an object with run and workers, but got 5"):
        study(executor=5)
    with pytest.raises(SimulationError, match="but got 'thread'"):
        study(executor="thread")


def test_numbers_beyond_what_kernels_count_are_refused():
    huge = 10**400
    for policy in ("blm-lr", "bglm-ofu", "ucb", "causal-ucb"):
        with pytest.raises(PolicyError, match="horizon must be a whole number from 1 to"):
            experiment(policy=policy, horizon=huge)
    with pytest.raises(PolicyError, match="radius_scale must be a number from 0"):
        dob.BLMLR(radius_scale=huge)
    with pytest.raises(PolicyError, match="a number of rounds up to"):
        experiment(policy=f"bglm-ofu:initial={huge}")
    with pytest.raises(SimulationError, match="rounds must be a whole number from 1 to"):
        study(rounds=huge)
    with pytest.raises(SimulationError, match="recording every round"):
        study(rounds=10**9, record="every")
