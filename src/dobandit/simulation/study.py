"""What is to be simulated, checked once: a model, labelled policies, the numbers of rounds and replications, and what
the learner believes of the world where that differs from what is true (`View`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import is_one_of, listable, shown, whole_number
from dobandit.errors import SimulationError, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import as_graph, parse_graph, print_graph
from dobandit.model.base import CausalModel
from dobandit.model.bglm import links_by_node
from dobandit.model.files import model_from_document, model_to_document
from dobandit.model.links import BUILDERS, Link, identity, link_from_document
from dobandit.oracle.rules import Rules
from dobandit.policy.base import Policy
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.problem import EFFECTS, Links, Problem, problem_of
from dobandit.policy.registry import policy_from_document, policy_from_spec, policy_to_document
from dobandit.simulation.function_model import FunctionModel, WorldFunction


@dataclass(frozen=True)
class View:
    """The learner's graph, links and promise; None: what is true.

    graph    some or all of the world's observed variables; it may have hidden ones of its own
    links    by node of the learner's graph, in its order
    effects  "nonnegative" or "any"
    hide     observed variables that count as hidden, or "auto"
    """

    graph: CausalGraph | None = None
    links: tuple[Link, ...] | None = None
    effects: str | None = None
    hide: str | tuple[str, ...] = ()

    def graph_in(self, world: CausalModel) -> CausalGraph:
        return world.graph if self.graph is None else self.graph

    def links_in(self, world: CausalModel) -> tuple[Link, ...]:
        """Its own, else the world's; identity where the world has none (`Study.problem_for` asks the policy)."""
        if self.links is not None:
            return self.links
        graph = self.graph_in(world)
        if world.links is None:
            return (identity,) * len(graph)
        by_name = dict(zip(world.graph.nodes, world.links, strict=True))
        return tuple(by_name.get(name, identity) for name in graph.nodes)

    def effects_in(self, world: CausalModel) -> str:
        """What is promised: on another graph than the world's nothing follows from the world's signs."""
        if self.effects is not None:
            return self.effects
        own = self.graph is None or self.graph in (world.graph, world.structure)
        return "nonnegative" if own and world.nonnegative else "any"

    def to_document(self) -> dict[str, Any]:
        """What differs from the world, as JSON."""
        document: dict[str, Any] = {}
        if self.graph is not None:
            document["graph"] = json.loads(print_graph(self.graph, "json"))
        if self.links is not None:
            foreign = [link.name for link in self.links if link.name not in BUILDERS]
            if foreign:
                raise SimulationError(
                    f"a file holds built-in links only, but {foreign[0]!r} is your own. Keep the study in code."
                )
            document["links"] = [link.to_document() for link in self.links]
        if self.effects is not None:
            document["effects"] = self.effects
        if self.hide:
            document["hide"] = self.hide if isinstance(self.hide, str) else list(self.hide)
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any], world: CausalModel) -> View:
        graph = parse_graph(json.dumps(document["graph"]), "json") if "graph" in document else None
        links = tuple(map(link_from_document, document["links"])) if "links" in document else None
        if links is not None and len(links) != len(world.graph if graph is None else graph):
            raise SimulationError("the learner has one link per node, but the document has another number of them.")
        hide = document.get("hide", ())
        return cls(graph, links, document.get("effects"), hide if isinstance(hide, str) else tuple(hide))


TRUTHFUL = View()


def view_of(world: CausalModel, graph: CausalGraph | None, links: Links, effects: str | None, hide: Hide = ()) -> View:
    """Check what the learner is to believe."""
    if graph is not None:
        graph = as_graph(graph, "the learner's graph is a CausalGraph", SimulationError)
        _check_graph(world.graph, graph)
    if effects is not None and not is_one_of(effects, EFFECTS):
        raise SimulationError(f"effects are 'nonnegative' (no cause does harm) or 'any', but got {shown(effects)}.")
    own = world.graph if graph is None else graph
    names = listable(hide)
    if names is None and not isinstance(hide, str):
        raise SimulationError(f"hide is a list of names or 'auto', but got {shown(hide)}.")
    hidden = hide if isinstance(hide, str) else tuple(names or ())
    if links is None:
        return View(graph, None, effects, hidden)
    given = links_by_node(own, links)
    if isinstance(links, Mapping) and links.keys() <= set(own.nodes):  # of nodes that are not named: what is true
        true = View(graph).links_in(world)
        given = tuple(one if name in links else other for name, one, other in zip(own.nodes, given, true, strict=True))
    return View(graph, given, effects, hidden)


def _check_graph(world: CausalGraph, graph: CausalGraph) -> None:
    if graph.target != world.target:
        raise SimulationError(
            f"the learner's target is the world's, {world.target!r}, but its graph has {graph.target!r}."
        )
    strange = [name for name in graph.observed if name not in set(world.observed)]
    if strange:
        raise SimulationError(
            f"the learner observes variables of the world, but {listed(strange)} is none of {listed(world.observed)}. "
            "List it as latent, or leave it out of the learner's graph."
        )
    for role in ("controllable", "context"):
        wanted, got = set(getattr(world, role)), set(getattr(graph, role))
        if wanted != got:
            raise SimulationError(
                f"the learner's {role} variables are the world's, {listed(sorted(wanted)) or 'none'}, but its graph "
                f"has {listed(sorted(got)) or 'none'}. Give the learner's graph {role}={sorted(wanted)}."
            )


Policies = Sequence[Policy | str] | Mapping[str, Policy | str] | Policy | str | None
DEFAULTS = ("causal-ucb", "ucb")  # the policies of those who name none
_GRID_POINTS = 400
_MOST_ROUNDS = 2**31 - 1  # plays are counted in 32 bits
_MOST_NUMBERS = 60_000_000  # recorded numbers a curve kind: about half a gigabyte


@dataclass(frozen=True)
class Study:
    """A model and policies to compare on it, with common random numbers drawn from `seed`."""

    model: CausalModel
    policies: dict[str, Policy]  # by label, in the order of the figures
    rules: Rules
    rounds: int
    replications: int
    seed: int
    grid: tuple[int, ...]
    view: View = TRUTHFUL  # what the learner believes where it differs from the world

    @property
    def problem(self) -> Problem:
        """What the policies are told: never the weights."""
        graph, links = self.view.graph_in(self.model), self.view.links_in(self.model)
        return self._told(dict(zip(graph.nodes, links, strict=True)))

    def problem_for(self, policy: Policy) -> Problem:
        """What this policy is told: where neither the study nor the world says anything of links, those that it takes
        for granted (CausalUCB learns them)."""
        said = self.view.links is not None or self.model.links is not None
        return self.problem if said else self._told(policy.links)

    def _told(self, links: Links) -> Problem:
        view, model = self.view, self.model
        graph, effects = view.graph_in(model), view.effects_in(model)
        return problem_of(graph, self.rules, self.rounds, self.seed, links, model.continuous, effects, view.hide)

    @property
    def budget(self) -> int:
        """The most variables that may be set in a round."""
        return self.problem.budget

    def to_document(self) -> dict[str, Any]:
        """Everything that decides the results, as JSON."""
        return {
            "model": model_to_document(self.model),
            "policies": {label: policy_to_document(policy) for label, policy in self.policies.items()},
            "budget": self.rules.budget,
            **({} if self.rules == Rules(self.rules.budget) else {"rules": self.rules.to_document()}),
            "rounds": self.rounds,
            "replications": self.replications,
            "seed": self.seed,
            "grid": list(self.grid),
            **({} if self.view == TRUTHFUL else {"learner": self.view.to_document()}),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Study:
        model = model_from_document(document["model"])
        return cls(
            model,
            {label: policy_from_document(policy, model) for label, policy in document["policies"].items()},
            rules=Rules(**document["rules"]) if "rules" in document else Rules(int(document["budget"])),
            rounds=int(document["rounds"]),
            replications=int(document["replications"]),
            seed=int(document["seed"]),
            grid=tuple(int(t) for t in document["grid"]),
            view=View.from_document(document["learner"], model) if "learner" in document else TRUTHFUL,
        )

    def fingerprint(self) -> str:
        """A hash of everything that decides the results of a replication; the number of replications does not."""
        document = {key: value for key, value in self.to_document().items() if key != "replications"}
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def study_of(
    model: CausalModel | WorldFunction,
    policies: Policies,
    rounds: int,
    replications: int,
    rules: Rules | int,
    seed: int = 0,
    record: str | Sequence[int] = "grid",
    *,
    graph: CausalGraph | None = None,
    links: Links = None,
    effects: str | None = None,
    hide: Hide = (),
) -> Study:
    """Check the parts of a study. The policies keep to all the rules (or to a mere budget).

    record                 "grid" (about 400 rounds, denser at the start), "every" round, or the rounds to record
    graph, links, effects  what the learner believes (`View`); what is true unless given
    hide                   observed variables that count as hidden for the learner, or "auto"
    """
    model = world_of(model, graph)
    if graph is None and model.structure is not model.graph:
        graph = model.structure
    view = view_of(model, graph, links, effects, hide)
    rounds = whole_number("rounds", rounds, 1, SimulationError, _MOST_ROUNDS)
    replications = whole_number("replications", replications, 1, SimulationError, _MOST_NUMBERS)
    seed = whole_number("seed", seed, 0, SimulationError)
    rules = rules if isinstance(rules, Rules) else Rules(rules)
    rules.candidates(model.graph)  # raises where no action is allowed
    grid = _grid(record, rounds)
    labelled = _labelled(model, view, policies)
    if len(grid) * replications * len(labelled) > _MOST_NUMBERS:
        raise SimulationError(
            f"recording {len(grid):,} rounds of {replications:,} replications of {len(labelled)} policies takes more "
            f"than {_MOST_NUMBERS:,} numbers a curve. Record fewer rounds (record='grid'), or run fewer replications."
        )
    study = Study(model, labelled, rules, rounds, replications, seed, tuple(grid.tolist()), view)
    problem = study.problem  # raises where the learner's graph and links do not go together
    for policy in labelled.values():
        policy.require_learnable(problem)
    return study


def world_of(world: object, graph: CausalGraph | None) -> CausalModel:
    """A model as it is; a function becomes one on the learner's graph."""
    if isinstance(world, CausalModel):
        return world
    if isinstance(world, type) or not callable(world):
        raise SimulationError(
            f"a study needs a model of its world, but got {type(world).__name__}. A function (action, context, rng) of "
            "your own will do too."
        )
    if graph is None:
        raise SimulationError("a world that is a function needs the learner's graph. Give graph=...")
    return FunctionModel(world, as_graph(graph, "the learner's graph is a CausalGraph", SimulationError))


def _labelled(model: CausalModel, view: View, policies: Policies) -> dict[str, Policy]:
    if policies is None:
        policies = DEFAULTS
    listed = [policies] if isinstance(policies, (Policy, str)) else listable(policies)
    if not listed:
        raise SimulationError(f"a study needs at least one policy, but got {shown(policies)}.")
    if isinstance(policies, Mapping):
        return {str(label): _policy(policy, model) for label, policy in policies.items()}
    chosen = [_policy(item, model) for item in listed]
    labels = [policy.label_on(view.graph_in(model), view.links_in(model)) for policy in chosen]
    for i, policy in enumerate(chosen):
        if policy in chosen[:i]:
            raise SimulationError(f"each policy is listed once, but {labels[i]} is listed twice. Drop one.")
    return dict(zip(told_apart(chosen, labels), chosen, strict=True))


def _policy(policy: object, model: CausalModel) -> Policy:
    if isinstance(policy, str):
        return policy_from_spec(policy, model)
    if not isinstance(policy, Policy):
        hint = " Write BLMLR() with parentheses." if isinstance(policy, type) else ""
        raise SimulationError(f"policies are policies or their names, but got {shown(policy)}.{hint}")
    return policy


def _grid(record: str | Sequence[int], rounds: int) -> NDArray[np.int64]:
    if isinstance(record, str):
        if record == "every":
            if rounds > _MOST_NUMBERS:
                raise SimulationError(
                    f"recording every round takes a number per round, up to {_MOST_NUMBERS:,}, but there are "
                    f"{rounds:,}. Give record='grid'."
                )
            return np.arange(1, rounds + 1)
        if record != "grid":
            raise SimulationError(f"record is 'grid', 'every' or a list of rounds, but got {shown(record)}.")
        even = np.linspace(1, rounds, _GRID_POINTS // 2)
        early = np.geomspace(1, rounds, _GRID_POINTS // 2)
        return np.unique(np.rint(np.concatenate([even, early])).astype(np.int64))
    listed = listable(record)
    if not listed:
        raise SimulationError(f"record is 'grid', 'every' or a list of rounds, but got {shown(record)}.")
    grid = np.unique(np.array([whole_number("a recorded round", t, 1, SimulationError, rounds) for t in listed]))
    return np.union1d(grid, [rounds])


def told_apart(policies: Sequence[Policy], labels: Sequence[str]) -> list[str]:
    """The labels, with the settings in which policies of one label differ behind them.

    >>> import dobandit as dob
    >>> policies = [dob.BLMLR(), dob.BLMLR(radius_scale=0.1), dob.UCB()]
    >>> told_apart(policies, [policy.label for policy in policies])
    ['BLM-LR (radius scale 1)', 'BLM-LR (radius scale 0.1)', 'UCB']
    """
    found = []
    for policy, label in zip(policies, labels, strict=True):
        alike = [other for other, its in zip(policies, labels, strict=True) if its == label]
        words = [_words(name, getattr(policy, name)) for name in _differing(policy, alike)]
        words = [word for word in words if word]
        if len({type(other) for other in alike}) > 1:
            words.insert(0, type(policy).name or type(policy).__name__)
        found.append(f"{label} ({', '.join(words)})" if words else label)
    return [  # settings that print alike, or are no words
        label if found.count(label) == 1 else f"{label} #{found[: i + 1].count(label)}" for i, label in enumerate(found)
    ]


def _differing(policy: Policy, alike: Sequence[Policy]) -> list[str]:
    """The settings in which policies of this kind differ."""
    kind = [other for other in alike if type(other) is type(policy)]
    names = [field.name for field in fields(policy)]
    return [name for name in names if any(repr(getattr(other, name)) != repr(getattr(policy, name)) for other in kind)]


def _words(name: str, value: object) -> str:
    """A setting for people: "radius scale 0.1"; "clipped" where it is simply on, and nothing where it is off."""
    said = name.replace("_", " ")
    if isinstance(value, bool):
        return said if value else ""
    if isinstance(value, float):
        return f"{said} {value:.6g}"
    if isinstance(value, (int, str)):
        return f"{said} {value}"
    if isinstance(value, (tuple, list)) and all(isinstance(item, (int, float, str)) for item in value):
        return f"{said} {', '.join(map(str, value))}"
    return f"no {said}" if value is None else ""
