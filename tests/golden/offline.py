"""Answers without an experiment: solve, expect, project, possibly_optimal, admissible, fit, rank, history and check."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dobandit as dob
from golden import worlds
from golden.comparing import action_text, plain
from golden.learners import fixed_log
from golden.worlds import World
from helpers.commands import dobandit

_WORLDS = {
    "funnel": worlds.FUNNEL,
    "noisy or": worlds.NOISY_OR,
    "logistic": worlds.LOGISTIC,
    "harmful": worlds.HARMFUL,
    "context": worlds.CONTEXT,
    "admissible": worlds.ADMISSIBLE,
    "confounded": worlds.CONFOUNDED,
    "settable": worlds.SETTABLE,
}
_COSTS = {"costs": {"ad": 2.0, "coupon": 1.5}, "total_cost": 3.0, "exclusive": [("mail", "popup")]}
_SOLVED: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    **{f"{name}, {oracle}": (lambda name=name: dob.paper.MODELS[name], {"oracle": oracle, "budget": k})
       for name, k in dob.paper.BUDGETS.items() for oracle in ("exhaustive", "branch-and-bound", "greedy")},
    **{f"layered {seed}, {oracle}": (
        lambda seed=seed: dob.random_model("layered", 16, seed=seed, signs="mixed"), {"oracle": oracle, "budget": 3})
       for seed in (0, 1) for oracle in ("exhaustive", "branch-and-bound", "greedy")},
    "logistic": (lambda: dob.random_model("erdos-renyi", 9, seed=4, link="logistic"), {"budget": 2}),
    "logistic, greedy": (
        lambda: dob.random_model("erdos-renyi", 9, seed=4, link="logistic"), {"budget": 2, "oracle": "greedy"}),
    "continuous": (lambda: dob.random_model("tree", 9, seed=1, continuous=True), {"budget": 2}),
    "hidden": (lambda: dob.random_model("layered", 8, seed=3, latent=2), {"budget": 2}),
    "funnel": (lambda: worlds.FUNNEL.model, {"budget": 1}),
    "noisy or": (lambda: worlds.NOISY_OR.model, {"budget": 2}),
    "harmful": (lambda: worlds.HARMFUL.model, {"budget": 2, "levers": {"price": (0, 1)}, "smaller": True}),
    "harmful, costs": (lambda: worlds.HARMFUL.model, {**_COSTS, "smaller": True}),
    "harmful, required": (lambda: worlds.HARMFUL.model, {"budget": 3, "require": ["mail"], "forbid": ["ad"]}),
}  # fmt: skip
_RANKED: dict[str, tuple[World, dict[str, Any]]] = {
    "funnel": (worlds.FUNNEL, {"budget": 2}),
    "noisy or": (worlds.NOISY_OR, {"budget": 2}),
    "noisy or, exponential": (worlds.NOISY_OR, {"budget": 2, "links": "exponential"}),
    "logistic": (worlds.LOGISTIC, {"budget": 1, "links": "logistic"}),
    "harmful": (worlds.HARMFUL, {"budget": 1, "levers": {"price": (0, 1)}}),
    "context": (worlds.CONTEXT, {"budget": 1, "context": {"mobile": 1}}),
    "hide": (worlds.CONFOUNDED, {"budget": 1, "hide": ["visit"]}),
}


def cases() -> dict[str, Callable[[], dict[str, Any]]]:
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for name, (model, settings) in _SOLVED.items():
        found[f"solve {name}"] = lambda model=model, settings=settings: solved(model(), settings)
    for name, world in _WORLDS.items():
        found[f"graph of {name}"] = lambda world=world: graphed(world)
    for name, model in {"G1": dob.paper.G1, "G5": dob.paper.G5, "noisy or": worlds.NOISY_OR.model}.items():
        found[f"expect and check {name}"] = lambda model=model: expected(model)
    return found


def data_cases() -> dict[str, Callable[[], dict[str, Any]]]:
    """Answers from rows with counts, in a file of their own."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for name, (world, settings) in _RANKED.items():
        found[f"rank {name}"] = lambda world=world, settings=settings: ranked(world, settings)
    found["history"] = lambda: with_history(worlds.FUNNEL, {"budget": 1})
    found["history, guarantee"] = lambda: with_history(
        worlds.NOISY_OR, {"budget": 2, "policy": dob.CausalUCB(guarantee=True)}
    )
    found["history, ucb"] = lambda: with_history(worlds.FUNNEL, {"budget": 1, "policy": dob.UCB()})
    return found


def solved(model: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The best actions of a model, with what is proved."""
    top = 1 if settings.get("oracle") == "greedy" else 5
    answer = dob.solve(model, top=top, **settings)
    listed = [[action_text(do), value] for do, value in answer.top]
    return plain({"top": listed, "bound": answer.bound, "status": answer.status, "factor": answer.factor})


def graphed(world: World) -> dict[str, Any]:
    """What a graph says by itself."""
    graph = world.graph
    judged = dob.admissible(graph)
    free = dict.fromkeys(graph.controllable, (0, 1))
    found: dict[str, Any] = {
        "possibly_optimal": sorted(map(list, dob.possibly_optimal(graph))),
        "with a budget": sorted(map(list, dob.possibly_optimal(graph, budget=1, levers=free))),
        "admissible": bool(judged),
        "witness": None if judged.witness is None else plain(judged.witness),
    }
    if judged:
        found["projected"] = sorted(map(list, dob.project(graph).edges))
    return found


def expected(model: Any) -> dict[str, Any]:
    """Means under interventions, and what the command `check` says of a model."""
    levers = model.graph.controllable
    found = {action_text(do): plain(dict(dob.expect(model, do))) for do in ({}, {levers[0]: 1}, {levers[-1]: 0})}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        found["check"] = plain(json.loads(dobandit("check", path, "-k", 2, "--json").stdout))
    return found


def rows_of(world: World) -> list[dict[str, float]]:
    """300 rounds of random actions as rows with counts: "do:ad" where ad was set."""
    latent = world.roles.get("latent", ())
    counts: dict[tuple[tuple[str, float], ...], int] = {}
    for do, seen in fixed_log(world, dob.Rules(), range(300)):
        named = {f"do:{name}" if name in do else name: value for name, value in seen.items() if name not in latent}
        row = tuple(named.items())
        counts[row] = counts.get(row, 0) + 1
    return [{**dict(row), "count": count} for row, count in counts.items()]


def ranked(world: World, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Every allowed action from data, and every node's fit."""
    said = plain(dob.rank(world.graph, rows_of(world), **settings).to_document())
    actions = {action_text(one.pop("do")): one for one in said["actions"]}
    order = list(actions)
    found = {"rounds": said["rounds"], "nothing": said["nothing"], "order": order}
    for one in actions.values():
        one.pop("uplift")
    nodes = {}
    for name, node in said["nodes"].items():
        nodes[name] = {key: one for key, one in node.items() if one not in (None, {}, []) and key != "patterns"}
    return {**found, **{f"action {name or 'nothing'}": one for name, one in actions.items()}, "nodes": nodes}


def with_history(world: World, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What an experiment knows that begins with data."""
    with dob.create_experiment(
        "golden", world.graph, storage="memory", seed=1, history=rows_of(world), **settings
    ) as experiment:
        best = experiment.recommend()
        found = {"recommend": {**plain(best), "do": action_text(best.do)}, "rounds": experiment.status().rounds}
        if experiment.learner.keeps_model:
            edges = experiment.estimates()
            found["estimates"] = {
                f"{edge.cause or ''} -> {edge.effect}": plain([edge.value, edge.low, edge.high, edge.rows])
                for edge in edges
            }
    dob.delete_experiment("golden", "memory")
    return found
