"""What is to be simulated, checked once: a model, labelled policies, the numbers of rounds and replications, and what
the learner believes of the world where that differs from what is true (`View`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dobandit.checks import listable, shown, whole_number
from dobandit.errors import SimulationError, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import as_graph, parse_graph, print_graph
from dobandit.model.bglm import links_by_node
from dobandit.model.causal_model import CausalModel
from dobandit.model.links import BUILDERS, Link, identity, link_from_document
from dobandit.model.model_files import model_from_document, model_to_document
from dobandit.oracle.rules import Rules
from dobandit.policy.base import Policy
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.problem import Links, Problem, problem_of
from dobandit.policy.registry import policy_from_document, policy_from_spec, policy_to_document
from dobandit.simulation.study_worlds import FunctionModel, WorldFunction


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

    def to_document(self) -> dict[str, Any]:
        """What differs from the world, as JSON."""
        foreign = [link.name for link in self.links or () if link.name not in BUILDERS]
        if foreign:
            raise SimulationError(
                f"a file holds built-in links only, but {foreign[0]!r} is your own. Keep the study in code."
            )
        document = {
            "graph": self.graph and json.loads(print_graph(self.graph, "json")),
            "links": self.links and [link.to_document() for link in self.links],
            "effects": self.effects,
            "hide": self.hide if isinstance(self.hide, str) else list(self.hide),
        }
        return {key: value for key, value in document.items() if value}

    @classmethod
    def from_document(cls, document: Mapping[str, Any], world: CausalModel) -> View:
        graph = parse_graph(json.dumps(document["graph"]), "json") if "graph" in document else None
        links = tuple(map(link_from_document, document["links"])) if "links" in document else None
        if links is not None and len(links) != len(world.graph if graph is None else graph):
            raise SimulationError("the learner has one link per node, but the document has another number of them.")
        hide = document.get("hide", ())
        return cls(graph, links, document.get("effects"), hide if isinstance(hide, str) else tuple(hide))


TRUTHFUL = View()


def true_links(world: CausalModel, graph: CausalGraph) -> dict[str, Link]:
    """By node of the learner's graph, the world's; identity where the world has none."""
    known = {} if world.links is None else dict(zip(world.graph.nodes, world.links, strict=True))
    return {name: known.get(name, identity) for name in graph.nodes}


def believed_links(world: CausalModel, graph: CausalGraph, links: Links) -> tuple[Link, ...] | None:
    """By node of the learner's graph; of nodes that are not named, what is true. None: all are what they truly are."""
    if links is None:
        return None
    if isinstance(links, Mapping) and links.keys() <= set(graph.nodes):
        links = {**true_links(world, graph), **links}
    return links_by_node(graph, links)


def _check_graph(world: CausalGraph, graph: CausalGraph) -> None:
    strange = [name for name in graph.observed if name not in set(world.observed)]
    if strange:
        raise SimulationError(
            f"the learner observes variables of the world, but {listed(strange)} is none of {listed(world.observed)}. "
            "List it as latent, or leave it out of the learner's graph."
        )
    if graph.target != world.target:
        raise SimulationError(f"the learner's target is the world's, {world.target!r}, but got {graph.target!r}.")
    for role in ("controllable", "context"):
        wanted, got = sorted(getattr(world, role)), sorted(getattr(graph, role))
        if wanted != got:
            raise SimulationError(
                f"the learner's {role} variables are the world's, {listed(wanted) or 'none'}, but its graph has "
                f"{listed(got) or 'none'}. Give the learner's graph {role}={wanted}."
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
    def graph(self) -> CausalGraph:
        """What the policies know of the world's graph."""
        return self.view.graph or self.model.graph

    @property
    def links(self) -> dict[str, Link]:
        """What is told of the links, by node."""
        if self.view.links is None:
            return true_links(self.model, self.graph)
        return dict(zip(self.graph.nodes, self.view.links, strict=True))

    @property
    def effects(self) -> str:
        """What is promised: on another graph than the world's nothing follows from the world's signs."""
        if self.view.effects is not None:
            return self.view.effects
        own = self.graph in (self.model.graph, self.model.structure)
        return "nonnegative" if own and self.model.nonnegative else "any"

    @property
    def problem(self) -> Problem:
        """What the policies are told: never the weights."""
        return self.problem_for(None)

    def problem_for(self, policy: Policy | None) -> Problem:
        """What this policy is told: where neither the study nor the world says anything of links, those that it takes
        for granted (CausalUCB learns them)."""
        links: Any = self.links
        if policy is not None and self.view.links is None and self.model.links is None:
            links = policy.links
        rounds, continuous = self.rounds, self.model.continuous
        return problem_of(self.graph, self.rules, rounds, self.seed, links, continuous, self.effects, self.view.hide)

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
    """Check the parts of a study, which are those of `simulate`. The policies keep to all the rules (or to a mere
    budget)."""
    if graph is not None:
        graph = as_graph(graph, "the learner's graph is a CausalGraph", SimulationError)
    model = world_of(model, graph)
    if graph is not None:
        _check_graph(model.graph, graph)
    elif model.structure is not model.graph:
        graph = model.structure
    names = listable(hide)
    hidden: Any = hide if names is None else tuple(names)
    view = View(graph, believed_links(model, graph or model.graph, links), effects, hidden)
    rounds = whole_number("rounds", rounds, 1, SimulationError, _MOST_ROUNDS)
    replications = whole_number("replications", replications, 1, SimulationError, _MOST_NUMBERS)
    seed = whole_number("seed", seed, 0, SimulationError)
    rules = rules if isinstance(rules, Rules) else Rules(rules)
    study = Study(model, {}, rules, rounds, replications, seed, _grid(record, rounds), view)
    study.problem.allowed()  # raises where no action is allowed, or the learner's graph and links do not go together
    labelled = _labelled(study, policies)
    if len(study.grid) * replications * len(labelled) > _MOST_NUMBERS:
        raise SimulationError(
            f"recording {len(study.grid):,} rounds of {replications:,} replications of {len(labelled)} policies takes "
            f"more than {_MOST_NUMBERS:,} numbers a curve. Record fewer rounds (record='grid'), or run fewer "
            "replications."
        )
    for policy in labelled.values():
        policy.require_learnable(study.problem_for(policy))
    return replace(study, policies=labelled)


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
    return FunctionModel(world, graph)


def _labelled(study: Study, policies: Policies) -> dict[str, Policy]:
    policies = DEFAULTS if policies is None else policies
    several = [policies] if isinstance(policies, (Policy, str)) else listable(policies)
    if not several:
        raise SimulationError(f"a study needs at least one policy, but got {shown(policies)}.")
    if isinstance(policies, Mapping):
        return {str(label): _policy(policy, study.model) for label, policy in policies.items()}
    chosen = [_policy(policy, study.model) for policy in several]
    labels = [policy.label_on(study.graph, tuple(study.links.values())) for policy in chosen]
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


def _grid(record: str | Sequence[int], rounds: int) -> tuple[int, ...]:
    """The rounds to record; the last is always one of them."""
    kind = record if isinstance(record, str) else ""
    if kind == "every" and rounds > _MOST_NUMBERS:
        raise SimulationError(
            f"recording every round takes a number per round, up to {_MOST_NUMBERS:,}, but there are {rounds:,}. Give "
            "record='grid'."
        )
    if kind == "every":
        return tuple(range(1, rounds + 1))
    if kind == "grid":
        early, even = np.geomspace(1, rounds, _GRID_POINTS // 2), np.linspace(1, rounds, _GRID_POINTS // 2)
        return tuple(np.unique(np.rint([early, even]).astype(np.int64)).tolist())
    chosen = listable(record)
    if not chosen:
        raise SimulationError(f"record is 'grid', 'every' or a list of rounds, but got {shown(record)}.")
    return tuple(sorted({rounds, *(whole_number("a recorded round", t, 1, SimulationError, rounds) for t in chosen)}))


def told_apart(policies: Sequence[Policy], labels: Sequence[str]) -> list[str]:
    """The labels, with the settings in which policies of one label differ behind them.

    >>> import dobandit as dob
    >>> policies = [dob.BLMLR(), dob.BLMLR(radius_scale=0.1), dob.UCB()]
    >>> told_apart(policies, [policy.label for policy in policies])
    ['BLM-LR (radius scale 1)', 'BLM-LR (radius scale 0.1)', 'UCB']
    """
    longer = []
    for policy, label in zip(policies, labels, strict=True):
        alike = [other for other, its in zip(policies, labels, strict=True) if its == label]
        kind = [other for other in alike if type(other) is type(policy)]
        words = [type(policy).name or type(policy).__name__] if len(kind) < len(alike) else []
        for field in fields(policy):
            value = getattr(policy, field.name)
            if any(repr(getattr(other, field.name)) != repr(value) for other in kind):
                words.append(_setting_words(field.name.replace("_", " "), value))
        settings = ", ".join(filter(None, words))
        longer.append(f"{label} ({settings})" if settings else label)
    return [  # settings that print alike, or are no words
        label if longer.count(label) == 1 else f"{label} #{longer[: i + 1].count(label)}"
        for i, label in enumerate(longer)
    ]


def _setting_words(name: str, value: object) -> str:
    """A setting for people: "radius scale 0.1", or "clipped" where it is simply on; empty where there are no words."""
    if value is None:
        return f"no {name}"
    if isinstance(value, bool):
        return name if value else ""
    if isinstance(value, float):
        return f"{name} {value:.6g}"
    values = value if isinstance(value, (tuple, list)) else [value]
    return f"{name} {', '.join(map(str, values))}" if all(isinstance(v, (int, float, str)) for v in values) else ""
