"""Simulated studies: regret at checkpoints, run by run, and searches for the best action."""

from collections.abc import Callable
from typing import Any

import dobandit as dob
from golden import worlds
from golden.comparing import action_text, plain

ROUNDS, RUNS, SEED = 300, 2, 3
CHECKPOINTS = [10, 30, 100, 300]
POLICIES = {
    "blm-lr": dob.BLMLR(radius_scale=0.1),
    "blm-lr lemma": dob.BLMLR(radius_scale=0.1, radius="lemma"),
    "blm-lr clipped": dob.BLMLR(radius_scale=0.1, clipped=True),
    "bglm-ofu": dob.BGLMOFU(radius_scale=0.1, initial=20),
    "ucb": dob.UCB(),
    "kl-ucb": dob.KLUCB(),
    "eps-greedy": dob.EpsilonGreedy(0.1),
    "causal-ucb": dob.CausalUCB(),
    "causal-ucb guarantee": dob.CausalUCB(guarantee=True),
    "causal-ucb safe": dob.CausalUCB(safe=True),
    "causal-ts": dob.CausalTS(),
    "best-set": dob.BestSet(epsilon=0.1),
    "lucb": dob.LUCB(epsilon=0.1),
    "random": dob.Random(),
}
_ANY = (
    "blm-lr clipped",
    "ucb",
    "kl-ucb",
    "causal-ucb",
    "causal-ucb guarantee",
    "causal-ucb safe",
    "causal-ts",
    "best-set",
)
_TABLES = tuple(name for name in _ANY if name != "blm-lr clipped")
_CONTINUOUS = ("blm-lr", "ucb", "causal-ucb", "causal-ucb safe", "causal-ts", "lucb")
_SIGNED = {
    "X1": 0.3, "X2": 0.5, "X3": 0.1, ("X1", "X3"): 0.6, "X4": 0.8, ("X2", "X4"): -0.5,
    "Y": 0.4, ("X3", "Y"): 0.4, ("X4", "Y"): -0.3,
}  # fmt: skip
_HELPFUL = {slot: abs(weight) / 2 for slot, weight in _SIGNED.items()}


def cases() -> dict[str, Callable[[], dict[str, Any]]]:
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for name, model in dob.paper.MODELS.items():
        wide = len(model.graph.parents("Y")) > 4  # intervals with a proof take seconds where a node has many causes
        names = [one for one in POLICIES if not (wide and one in ("causal-ucb guarantee", "best-set"))]
        found[name] = lambda model=model, names=names: studied(model, (*names, "oracle"))
    for name in ("G4", "G5"):
        found[f"{name}, learned links"] = lambda name=name: studied(
            dob.paper.MODELS[name], _TABLES, links="auto", effects="any"
        )
    signed = dob.BinaryGLM.blm(_SIGNED, target="Y")
    levers = dict.fromkeys(("X1", "X3", "X4"), (0, 1))
    found["signed levers"] = lambda: studied(signed, _ANY, budget=2, levers=levers)
    found["costs and groups"] = lambda: studied(
        signed, _ANY, costs={"X1": 2, "X3": 1.5}, total_cost=3, exclusive=[("X2", "X4")]
    )
    logistic = dob.random_model("layered", 6, seed=2, link="logistic")
    found["logistic"] = lambda: studied(logistic, ("bglm-ofu", "causal-ucb", "causal-ts"), budget=2)
    linear = dob.LinearModel.of_weights(_HELPFUL, target="Y")
    found["continuous"] = lambda: studied(linear, _CONTINUOUS, budget=2)
    found["noisy or"] = lambda: studied(worlds.NOISY_OR.model, _TABLES, budget=2)
    found["harmful"] = lambda: studied(worlds.HARMFUL.model, _TABLES, budget=2, levers={"price": (0, 1)})
    found["context"] = lambda: studied(worlds.CONTEXT.model, ("ucb", "causal-ucb", "causal-ts"), budget=1)
    found["hide"] = lambda: studied(worlds.CONFOUNDED.model, ("ucb", "causal-ucb"), budget=1, hide=["visit"])
    found["always set"] = lambda: studied(worlds.SETTABLE.model, ("ucb", "causal-ucb"), budget=2, always_set=["visit"])
    lacking = dob.CausalGraph(
        [("ad", "visit"), ("mail", "visit"), ("visit", "buy")], "buy", controllable=["ad", "mail"]
    )
    found["a graph that lacks an edge"] = lambda: studied(
        worlds.FUNNEL.model, ("causal-ucb", "causal-ucb safe"), budget=1, graph=lacking
    )
    found["search for the best"] = searched
    return found


def studied(model: Any, names: tuple[str, ...], **settings: Any) -> dict[str, Any]:
    """Regret of each policy at the checkpoints, a list per run."""
    policies = {name: POLICIES.get(name, name) for name in names}
    study = dob.simulate(
        model, policies, rounds=ROUNDS, replications=RUNS, seed=SEED, record=CHECKPOINTS, workers=1, **settings
    )
    found: dict[str, Any] = {"best": {"do": action_text(study.best_do), "value": plain(study.best)}}
    for label in study.labels:
        share = study.best_share(label)
        found[label] = plain({"regret": study.regret(label), "best_share": share})
    return found


def searched() -> dict[str, Any]:
    """How many rounds BestSet and LUCB need."""
    found = {}
    for name, model in {"G4": dob.paper.G4, "funnel": worlds.FUNNEL.model}.items():
        answer = dob.find_best(model, [dob.BestSet(epsilon=0.2), dob.LUCB(epsilon=0.2)], 2, budget=1, seed=SEED)
        for label, one in answer.found.items():
            found[f"{name}, {label}"] = plain({"rounds": one.rounds, "shortfall": one.shortfall, "delta": one.delta})
    return found
