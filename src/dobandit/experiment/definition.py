"""What an experiment is, fixed when it is created and kept as JSON: who causes what, the rules, the policy, the seed.

Nothing here needs Numba: a `tell` from a shell script reads a definition in milliseconds.
"""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np

from dobandit.errors import DobanditError, DobanditWarning, ExperimentError, PolicyError, StorageError
from dobandit.experiment.rounds import shown
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import parse_graph, print_graph
from dobandit.model.bglm import WeightedModel, links_by_node
from dobandit.model.links import BUILDERS, Link, identity
from dobandit.oracle.problem import Problem as Rules
from dobandit.oracle.problem import rules_of
from dobandit.policy.base import Links, Policy, Problem, problem_of

VERSION = 1
_LONGEST_LEASE = 1e9  # seconds: 31 years, which calendars can add to any date


@dataclass(frozen=True)
class Definition:
    """The document, and what it means."""

    document: Mapping[str, Any]

    @cached_property
    def graph(self) -> CausalGraph:
        """As the user gave it, hidden variables included."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DobanditWarning)  # whoever made the graph has been warned
            return parse_graph(json.dumps(self.document["graph"]), "json")

    @cached_property
    def problem(self) -> Problem:
        document = self.document
        return problem_of(
            self.graph,
            _rules_from(document["rules"]),
            document["horizon"],
            document["seed"],
            document["links"],
            document["continuous"],
        )

    @cached_property
    def policy(self) -> Policy:
        from dobandit.policy.registry import policy_from_document

        try:
            return policy_from_document(self.document["policy"])
        except (DobanditError, TypeError) as error:
            raise _unreadable(error) from None

    @property
    def lease(self) -> float | None:
        lease: float | None = self.document["lease"]
        return lease

    @property
    def seed(self) -> int:
        return int(self.document["seed"])

    @property
    def policy_text(self) -> str:
        """The policy for people, as the command line takes it."""
        from dobandit.policy.registry import document_to_spec

        return document_to_spec(self.document["policy"])

    def to_text(self) -> str:
        return json.dumps(self.document, ensure_ascii=False, sort_keys=True, allow_nan=False, default=_plain)

    def differences(self, other: Definition) -> list[str]:
        """The parts in which two definitions differ."""
        keys = sorted({*self.document, *other.document})
        return [key for key in keys if self.document.get(key) != other.document.get(key)]


def definition_from_text(text: str) -> Definition:
    """Read what a storage kept."""
    try:
        document = json.loads(text)
        version = document["version"]
        if version != VERSION:
            raise StorageError(
                f"an experiment's definition has version {VERSION}, but this one has {shown(version)}. "
                "It was written by a newer dobandit: install that."
            )
        definition = Definition(document)
        if list(definition.problem.graph.nodes) != document["columns"]:
            raise StorageError("the order of an experiment's variables is not the one its log was written in.")
        lease_seconds(document["lease"])
        if not isinstance(document["policy"]["name"], str):
            raise TypeError("the policy has no name")
    except StorageError:
        raise
    except (
        DobanditError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise _unreadable(error) from None
    return definition


def _unreadable(error: Exception) -> StorageError:
    said = str(error) if isinstance(error, DobanditError) else repr(error)
    return StorageError(f"an experiment's definition cannot be read ({said:.300}). Restore it from a backup.")


def define(
    graph: CausalGraph | WeightedModel,
    rules: Rules,
    policy: Policy | str | None,
    horizon: int | None,
    seed: int | None,
    lease: float | timedelta | None,
    links: Links,
    continuous: bool,
) -> Definition:
    """Check the parts, and fill in what was left open. Of a model the structure and links are used, not the weights."""
    if isinstance(graph, WeightedModel):
        if links is not None:
            raise ExperimentError("a model says its links itself. Drop links=..., or pass model.graph.")
        links = {name: graph.link(name) for name in graph.graph.nodes}
        continuous, graph = continuous or graph.continuous, graph.graph
    seed = secrets.randbits(53) if seed is None else seed
    problem = problem_of(graph, rules, horizon, seed, links, continuous)
    by_node = dict(zip(graph.nodes, links_by_node(graph, links), strict=True))
    kept_links = {name: _link_document(link) for name, link in by_node.items() if link != identity}
    chosen = _policy_of(policy, problem)
    from dobandit.policy.learner import Learner
    from dobandit.policy.registry import policy_to_document

    Learner(chosen, problem)  # a policy that does not fit the problem says so now
    return Definition(
        {
            "version": VERSION,
            "graph": json.loads(print_graph(graph, "json")),
            "columns": list(problem.graph.nodes),
            "links": kept_links,
            "continuous": problem.continuous,
            "rules": _rules_document(rules),
            "policy": policy_to_document(chosen),
            "horizon": problem.horizon,
            "seed": problem.seed,
            "lease": lease_seconds(lease),
        }
    )


def _plain(value: object) -> object:
    """A number of NumPy's as JSON knows it."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no JSON")


def lease_seconds(lease: object) -> float | None:
    """Seconds above 0, or a timedelta; None: for ever."""
    if lease is None:
        return None
    seconds = lease.total_seconds() if isinstance(lease, timedelta) else lease
    ok = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not ok or not 0 < seconds <= _LONGEST_LEASE:  # type: ignore[operator]
        raise ExperimentError(
            f"a lease is a number of seconds above 0 (up to {_LONGEST_LEASE:.0e}), a timedelta, or None for one that "
            f"never ends, but got {shown(lease)}."
        )
    return float(seconds)  # type: ignore[arg-type]


def _policy_of(policy: object, problem: Problem) -> Policy:
    from dobandit.policy.registry import default_policy, policy_from_spec

    if policy is None:
        return default_policy(problem)
    if isinstance(policy, str):
        policy = policy_from_spec(policy)
    if not isinstance(policy, Policy):
        hint = " Write BLMLR() with parentheses." if isinstance(policy, type) else ""
        raise PolicyError(f"policy is a policy or its name, but got {policy!r}.{hint}")
    from dobandit.policy.yardsticks import Oracle

    if isinstance(policy, Oracle):
        raise PolicyError("the oracle knows a model, and the world has none. It is for simulations: use BLMLR.")
    return policy


def _link_document(link: Link) -> object:
    if link.name not in BUILDERS:
        raise ExperimentError(f"a storage holds built-in links only, but {link.name!r} is your own.")
    return link.to_document()


def _rules_document(rules: Rules) -> dict[str, Any]:
    return {
        "budget": None if rules.budget is None else int(rules.budget),
        "costs": {name: float(cost) for name, cost in rules.costs.items()},
        "total_cost": None if rules.total_cost is None else float(rules.total_cost),
        "require": list(rules.required),
        "forbid": list(rules.forbidden),
        "exclusive": [list(group) for group in rules.exclusive],
    }


def _rules_from(document: Mapping[str, Any]) -> Rules:
    return rules_of(**document)
