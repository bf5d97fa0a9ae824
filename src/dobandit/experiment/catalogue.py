"""Experiments by name: create, open, list, rename, delete."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from dobandit.errors import ExperimentError, closest
from dobandit.experiment.definition import define
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.rounds import shown
from dobandit.experiment.storage import DEFAULT_STORAGE, Storage, open_storage
from dobandit.experiment.storage.base import StoredExperiment
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.bglm import WeightedModel
from dobandit.oracle.problem import rules_of
from dobandit.policy.base import Links, Policy

StorageLike = str | Storage | None


def create_experiment(
    name: str,
    graph: CausalGraph | WeightedModel,
    budget: int | None = None,
    policy: Policy | str | None = None,
    storage: StorageLike = DEFAULT_STORAGE,
    horizon: int | None = None,
    seed: int | None = None,
    lease: float | timedelta | None = None,
    if_exists: str = "error",
    *,
    links: Links = None,
    continuous: bool = False,
    costs: Mapping[str, float] | None = None,
    total_cost: float | None = None,
    require: Iterable[str] = (),
    forbid: Iterable[str] = (),
    exclusive: Iterable[Iterable[str]] = (),
    clock: Callable[[], float] = time.time,
) -> Experiment:
    """A new experiment, kept in `storage`.

    graph      who causes what; of a model the structure and links are used, never the weights
    budget     how many variables may be set in a round at most; or `costs` and `total_cost`, as in `solve`
    policy     a policy or its name; default: BLM-LR on linear models, BGLM-OFU on others, with the radius_scale of 0.1
               of the paper's simulations (the guarantees, and wider intervals, come with radius_scale=1)
    storage    "sqlite:///file.db", "postgresql+psycopg://...", "memory" (one for the whole process), or a Storage
    horizon    how many rounds there will be, if that is known
    seed       default: drawn at random, and kept
    lease      seconds (or a timedelta) after which an untold trial is handed out again; default: never
    if_exists  "error", or "open" the experiment of that name, provided that it has the same definition
    clock      seconds since 1970, for tests
    """
    if if_exists not in ("error", "open"):
        raise ExperimentError(f"if_exists is 'error' or 'open', but got {if_exists!r}.")
    kept = open_storage(storage)
    found = kept.find(_text(name)) if if_exists == "open" else None
    rules = rules_of(budget, costs, total_cost, require, forbid, exclusive)
    wanted_seed = Experiment(kept, found).definition.seed if found and seed is None else seed
    definition = define(graph, rules, policy, horizon, wanted_seed, lease, links, continuous)
    if found is None:
        try:
            return Experiment(kept, kept.create(name, definition.to_text(), clock()), clock)
        except ExperimentError:
            found = kept.find(name) if if_exists == "open" else None  # somebody else may have been first
            if found is None:
                raise
    experiment = Experiment(kept, found, clock)
    different = experiment.definition.differences(definition)
    if different == ["seed"] and seed is None:
        different = []
    if different:
        raise ExperimentError(
            f"experiment {name!r} exists with another {' and '.join(different)}, which never change. "
            "Open it as it is, or take another name."
        )
    return experiment


def open_experiment(
    name: str, storage: StorageLike = DEFAULT_STORAGE, clock: Callable[[], float] = time.time
) -> Experiment:
    """The experiment of that name. What it has learned is computed from its log when it is first needed."""
    kept = open_storage(storage)
    found = kept.find(_text(name))
    if found is None:
        names = [experiment.name for experiment in kept.experiments()]
        hint = closest(name, names) or (" There are none." if not names else "")
        raise ExperimentError(f"there is no experiment {name!r} in {kept.url}.{hint}")
    return Experiment(kept, found, clock)


def list_experiments(storage: StorageLike = DEFAULT_STORAGE) -> list[StoredExperiment]:
    """Name, creation time and numbers of trials, by name."""
    return list(open_storage(storage).experiments())


def delete_experiment(name: str, storage: StorageLike = DEFAULT_STORAGE) -> None:
    """Delete an experiment with its whole log, for good."""
    open_storage(storage).delete(_text(name))


def rename_experiment(name: str, new: str, storage: StorageLike = DEFAULT_STORAGE) -> None:
    """Give an experiment another name; processes that hold it go on undisturbed."""
    open_storage(storage).rename(_text(name), new)


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise ExperimentError(f"an experiment's name is a text, but got {shown(name)}.")
    return name
