"""Experiments by name: create, open, list, rename, delete."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Unpack

from dobandit.checks import is_one_of, shown
from dobandit.errors import ExperimentError, MissingError, closest
from dobandit.experiment.definition import define, definition_from_text
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.plain_work import needs_compiling
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.causal_model import CausalModel
from dobandit.oracle.rules import Rules, RuleWords, rules_of
from dobandit.policy.base import Policy
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.problem import Links, warn_of_levels
from dobandit.rows.batches import prior_rows
from dobandit.storage import DEFAULT_STORAGE, Storage, open_storage
from dobandit.storage.contract import StoredExperiment

StorageLike = str | Storage | None


def create_experiment(
    name: str,
    graph: CausalGraph | CausalModel,
    budget: int | Rules | None = None,
    policy: Policy | str | None = None,
    storage: StorageLike = DEFAULT_STORAGE,
    horizon: int | None = None,
    seed: int | None = None,
    lease: float | timedelta | None = None,
    if_exists: str = "error",
    *,
    links: Links = None,
    continuous: bool = False,
    effects: str | None = None,
    hide: Hide = (),
    control: float = 0.0,
    stop_within: float | None = None,
    history: Any = None,
    randomised: bool = False,
    clock: Callable[[], float] = time.time,
    **rules: Unpack[RuleWords],
) -> Experiment:
    """A new experiment, kept in `storage`.

    name       how it is called; one name belongs to one experiment of a storage
    graph      who causes what; of a model the structure and links are used, never the weights
    budget     how many variables may be set in a round at most; or `costs` and `total_cost`, as in `solve`
    policy     a policy or its name; default: CausalUCB
    links      how causes add up, for all nodes or by node; default, also for nodes that are not named: what the policy
               takes for granted (CausalUCB learns it from the data)
    continuous  whether values are numbers from 0 to 1 rather than 0 or 1
    effects    "nonnegative": no cause does harm; "any": some may; default: what the policy takes for granted
    hide       observed variables that count as hidden, so that hidden causes of theirs do no harm: their own causes act
               on their effects directly, they are not set, and the log keeps what was seen of them; "auto": the fewest
               of those that cannot be set which make a model learnable
    rules      levers, costs, total_cost, require, forbid, exclusive, smaller, always_set, available: see `Rules`
    storage    "sqlite:///file.db", "postgresql+psycopg://...", "memory" (one for the whole process), or a Storage
    horizon    how many rounds there will be, if that is known
    seed       default: drawn at random, and kept
    lease      seconds (or a timedelta) after which an untold trial is handed out again; default: never
    if_exists  "error", or "open" the experiment of that name, provided that it has the same definition
    control    the share of rounds in which nothing is set, required variables neither, for an honest comparison;
               which rounds these are is drawn from the seed and the trial's number
    stop_within  the experiment may stop when no allowed action can be better than the recommended one by more than
               this, with 95%, at every round one looks: `ask` and `status` say so, and `ask` goes on if it is asked
    history    what is known from before, as `fit` and `rank` take it: a CSV or Parquet file, a frame or rows. It is the
               beginning of the log, and what the experiment then knows is what `fit` says of the same data
    randomised  what was set in the rows of the history was chosen at random, as in `Experiment.import_history`
    clock      seconds since 1970, for tests

    Returns an `Experiment`; `open_experiment` finds it again, in this process or another.

    >>> import dobandit as dob
    >>> graph = dob.CausalGraph([("email", "visit"), ("visit", "buy")], target="buy", controllable=["email"])
    >>> dob.create_experiment("spring", graph, budget=1, storage="memory", seed=1).ask().number
    0
    """
    if not is_one_of(if_exists, ("error", "open")):
        raise ExperimentError(f"if_exists is 'error' or 'open', but got {shown(if_exists)}.")
    kept = open_storage(storage)
    found = kept.find(_text(name)) if if_exists == "open" else None
    allowed = rules_of(budget, rules)
    wanted_seed = definition_from_text(found.document).seed if found and seed is None else seed
    definition = define(
        graph,
        allowed,
        policy,
        horizon=horizon,
        seed=wanted_seed,
        lease=lease,
        links=links,
        continuous=continuous,
        effects=effects,
        hide=hide,
        control=control,
        stop_within=stop_within,
    )
    past = None
    if history is not None:
        past = prior_rows(definition.problem, history, clock(), randomised, not definition.policy.any_graph)
    if found is None:
        if not definition.policy.any_graph:
            warn_of_levels(definition.problem)
        try:
            trials = () if past is None else past.trials
            created = kept.create(name, definition.to_text(), clock(), trials)
        except ExperimentError:
            found = kept.find(name) if if_exists == "open" else None  # somebody else may have been first
            if found is None:
                raise
        else:
            if needs_compiling(definition.learner.engine, len(trials)):
                from dobandit.experiment.rehearsals import rehearse

                rehearse(definition)
            return Experiment(kept, created, clock, definition)
    experiment = Experiment(kept, found, clock)
    different = experiment.definition.differences(definition)
    if different == ["seed"] and seed is None:
        different = []
    if different:
        raise ExperimentError(
            f"experiment {name!r} exists with another {' and '.join(different)}, which never change. "
            "Open it as it is, or take another name."
        )
    if past is not None:
        experiment.log.begin_with(past)
    return experiment


def open_experiment(
    name: str, storage: StorageLike = DEFAULT_STORAGE, clock: Callable[[], float] = time.time
) -> Experiment:
    """The experiment of that name. What it has learned is computed from its log when it is first needed.

    name     as it was created
    storage  where it is kept, as in `create_experiment`
    clock    seconds since 1970, for tests

    Raises ExperimentError where there is none of that name, with one that is near.

    >>> import dobandit as dob
    >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
    >>> _ = dob.create_experiment("opened", graph, budget=1, storage="memory")
    >>> dob.open_experiment("opened", storage="memory").status().told
    0
    """
    kept = open_storage(storage)
    found = kept.find(_text(name))
    if found is None:
        names = [experiment.name for experiment in kept.experiments()]
        hint = closest(name, names) or (" There are none." if not names else "")
        raise MissingError(f"there is no experiment {name!r} in {kept.url}.{hint}")
    return Experiment(kept, found, clock)


def list_experiments(storage: StorageLike = DEFAULT_STORAGE) -> list[StoredExperiment]:
    """The experiments of a storage, by name.

    storage  where they are kept, as in `create_experiment`

    Returns a tuple for each, with its name, its creation time (created_at) and its numbers of trials (trials, closed).

    >>> import dobandit as dob
    >>> graph = dob.CausalGraph([("email", "buy")], target="buy")
    >>> autumn = dob.create_experiment("listed", graph, budget=1, storage="memory")
    >>> "listed" in [one.name for one in dob.list_experiments("memory")]
    True
    """
    return list(open_storage(storage).experiments())


def delete_experiment(name: str, storage: StorageLike = DEFAULT_STORAGE) -> None:
    """Delete an experiment with its whole log, for good.

    name     which
    storage  where it is kept, as in `create_experiment`

    >>> import dobandit as dob
    >>> graph = dob.CausalGraph([("email", "buy")], target="buy")
    >>> autumn = dob.create_experiment("mistaken", graph, budget=1, storage="memory")
    >>> dob.delete_experiment("mistaken", "memory")
    """
    open_storage(storage).delete(_text(name))


def rename_experiment(name: str, new: str, storage: StorageLike = DEFAULT_STORAGE) -> None:
    """Give an experiment another name; processes that hold it go on undisturbed.

    name     as it is called now
    new      as it will be called
    storage  where it is kept, as in `create_experiment`

    >>> import dobandit as dob
    >>> graph = dob.CausalGraph([("email", "buy")], target="buy")
    >>> autumn = dob.create_experiment("autum", graph, budget=1, storage="memory")
    >>> dob.rename_experiment("autum", "autumn", "memory")
    >>> dob.open_experiment("autumn", "memory").name
    'autumn'
    """
    open_storage(storage).rename(_text(name), new)


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise ExperimentError(f"an experiment's name is a text, but got {shown(name)}.")
    return name
