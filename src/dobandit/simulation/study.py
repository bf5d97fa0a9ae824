"""What is to be simulated, checked once: a model, labelled policies, and the numbers of rounds and replications."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import SimulationError
from dobandit.model.bglm import WeightedModel
from dobandit.model.files import model_from_document, model_to_document
from dobandit.oracle.problem import require_budget
from dobandit.policy.base import Policy, Problem, problem_of
from dobandit.policy.registry import policy_from_document, policy_from_spec, policy_to_document, policy_to_spec

_GRID_POINTS = 400
_MOST_NUMBERS = 60_000_000  # recorded numbers a curve kind: about half a gigabyte


@dataclass(frozen=True)
class Study:
    """A model and policies to compare on it, with common random numbers drawn from `seed`."""

    model: WeightedModel
    policies: dict[str, Policy]  # by label, in the order of the figures
    budget: int
    rounds: int
    replications: int
    seed: int
    grid: tuple[int, ...]

    @property
    def problem(self) -> Problem:
        """What the policies are told: never the weights."""
        links = {name: self.model.link(name) for name in self.model.graph.nodes}
        return problem_of(
            self.model.graph, self.budget, self.rounds, self.seed, links, continuous=self.model.continuous
        )

    def to_document(self) -> dict[str, Any]:
        """Everything that decides the results, as JSON."""
        return {
            "model": model_to_document(self.model),
            "policies": {label: policy_to_document(policy) for label, policy in self.policies.items()},
            "budget": self.budget,
            "rounds": self.rounds,
            "replications": self.replications,
            "seed": self.seed,
            "grid": list(self.grid),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Study:
        model = model_from_document(document["model"])
        return cls(
            model,
            {label: policy_from_document(policy, model) for label, policy in document["policies"].items()},
            budget=int(document["budget"]),
            rounds=int(document["rounds"]),
            replications=int(document["replications"]),
            seed=int(document["seed"]),
            grid=tuple(int(t) for t in document["grid"]),
        )

    def fingerprint(self) -> str:
        """A hash of everything that decides the results of a replication; the number of replications does not."""
        document = {key: value for key, value in self.to_document().items() if key != "replications"}
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def study_of(
    model: WeightedModel,
    policies: Sequence[Policy | str] | Mapping[str, Policy | str] | Policy | str,
    rounds: int,
    replications: int,
    budget: int,
    seed: int = 0,
    record: str | Sequence[int] = "grid",
) -> Study:
    """Check the parts of a study.

    record: "grid" (about 400 rounds, denser at the start), "every" round, or the rounds to record.
    """
    if not isinstance(model, WeightedModel):
        raise SimulationError(f"a study needs a model with weights, but got {type(model).__name__}.")
    rounds = _whole("rounds", rounds, 1)
    replications = _whole("replications", replications, 1)
    seed = _whole("seed", seed, 0)
    budget = require_budget(model.graph, budget)
    grid = _grid(record, rounds)
    labelled = _labelled(model, policies)
    if len(grid) * replications * len(labelled) > _MOST_NUMBERS:
        raise SimulationError(
            f"recording {len(grid):,} rounds of {replications:,} replications of {len(labelled)} policies takes more "
            f"than {_MOST_NUMBERS:,} numbers a curve. Record fewer rounds (record='grid'), or run fewer replications."
        )
    return Study(model, labelled, budget, rounds, replications, seed, tuple(grid.tolist()))


def _labelled(
    model: WeightedModel, policies: Sequence[Policy | str] | Mapping[str, Policy | str] | Policy | str
) -> dict[str, Policy]:
    if not policies or not isinstance(policies, (Mapping, Iterable, Policy)):
        raise SimulationError(f"a study needs at least one policy, but got {policies!r}.")
    if isinstance(policies, Mapping):
        return {str(label): _policy(policy, model) for label, policy in policies.items()}
    listed = [policies] if isinstance(policies, (Policy, str)) else list(policies)
    labelled: dict[str, Policy] = {}
    for policy in [_policy(item, model) for item in listed]:
        label = policy.label_on(model.graph, model.links)
        if policy in labelled.values():
            raise SimulationError(f"each policy is listed once, but {label} is listed twice. Drop one.")
        if label in labelled:
            label += f" [{policy_to_spec(policy)}]"
        labelled[label] = policy
    return labelled


def _policy(policy: object, model: WeightedModel) -> Policy:
    if isinstance(policy, str):
        return policy_from_spec(policy, model)
    if not isinstance(policy, Policy):
        hint = " Write BLMLR() with parentheses." if isinstance(policy, type) else ""
        raise SimulationError(f"policies are policies or their names, but got {policy!r}.{hint}")
    return policy


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise SimulationError(f"{name} must be a whole number from {least}, but got {value!r}.")
    return int(value)


def _grid(record: str | Sequence[int], rounds: int) -> NDArray[np.int64]:
    if isinstance(record, str):
        if record == "every":
            return np.arange(1, rounds + 1)
        if record != "grid":
            raise SimulationError(f"record is 'grid', 'every' or a list of rounds, but got {record!r}.")
        even = np.linspace(1, rounds, _GRID_POINTS // 2)
        early = np.geomspace(1, rounds, _GRID_POINTS // 2)
        return np.unique(np.rint(np.concatenate([even, early])).astype(np.int64))
    if not isinstance(record, Iterable):
        raise SimulationError(f"record is 'grid', 'every' or a list of rounds, but got {record!r}.")
    grid = np.unique(np.array([_whole("a recorded round", t, 1) for t in record], dtype=np.int64))
    if not len(grid) or grid[-1] > rounds:
        raise SimulationError(f"recorded rounds lie between 1 and {rounds}, but got {list(record)[:5]}.")
    return np.union1d(grid, [rounds])
