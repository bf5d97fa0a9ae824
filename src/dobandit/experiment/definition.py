"""What an experiment is, fixed when it is created and kept as JSON: who causes what, the rules, the policy, the seed.

Nothing here needs Numba: a `tell` from a shell script reads a definition in milliseconds.
"""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dobandit.checks import as_float, shown
from dobandit.errors import DobanditError, DobanditWarning, ExperimentError, GraphError, PolicyError, StorageError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import as_graph
from dobandit.graph.formats.json_format import document_of, graph_of_document
from dobandit.model.bglm import links_by_node
from dobandit.model.causal_model import CausalModel
from dobandit.model.links import BUILDERS, Link, identity
from dobandit.oracle.rules import Rules
from dobandit.policy.base import Policy
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.problem import Links, Problem, checked_horizon, links_for, problem_of
from dobandit.texts import keyword, policy_name

if TYPE_CHECKING:
    from dobandit.policy.learner import Learner

VERSION = 1
# The words of `create_experiment` besides the rules. tests/unit/test_settings.py compares every door with them.
SETTING_WORDS = ("horizon", "seed", "lease", "links", "continuous", "effects", "hide", "control", "stop_within")
# Keys that a document has only where their values are others than these.
_USUAL: Mapping[str, Any] = {"control": 0.0, "stop_within": None, "hide": [], "effects": "nonnegative"}
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
LONGEST_LEASE = 1e9  # seconds: 31 years, which calendars can add to any date


@dataclass(frozen=True)
class Definition:
    """The document, and what it means: read from it when it is first needed, unless `define` had it at hand."""

    document: Mapping[str, Any]

    @cached_property
    def graph(self) -> CausalGraph:
        """As the user gave it, hidden variables included."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DobanditWarning)  # whoever made the graph has been warned
            return graph_of_document(self.document["graph"])

    @cached_property
    def problem(self) -> Problem:
        document = self.document
        return problem_of(
            self.graph,
            Rules(**document["rules"]),
            document["horizon"],
            document["seed"],
            document["links"],
            document["continuous"],
            self._said("effects"),
            self._said("hide"),
        )

    @cached_property
    def policy(self) -> Policy:
        from dobandit.policy.registry import policy_class, policy_from_document

        try:
            policy_class(self.document["policy"]["name"])  # what is not installed here says so itself
        except PolicyError as error:
            raise PolicyError(f"the experiment was made with a policy that is not known here: {error.marked}") from None
        try:
            return policy_from_document(self.document["policy"])
        except (DobanditError, TypeError) as error:
            raise _unreadable(error) from None

    @cached_property
    def learner(self) -> Learner:
        """The policy at work on the problem, before the first round. Take a copy of it to learn with."""
        from dobandit.policy.learner import Learner

        return Learner(self.policy, self.problem)

    @cached_property
    def lease(self) -> float | None:
        return lease_seconds(self.document["lease"])

    @cached_property
    def seed(self) -> int:
        return int(self.document["seed"])

    @cached_property
    def control(self) -> float:
        """The share of rounds in which nothing is set."""
        return float(self._said("control"))

    @cached_property
    def stop_within(self) -> float | None:
        """The experiment may stop when no allowed action can be better than the recommended one by more than this."""
        return self._said("stop_within")  # type: ignore[no-any-return]

    @property
    def policy_text(self) -> str:
        """The policy for people, as the command line takes it."""
        from dobandit.policy.registry import document_to_spec

        return document_to_spec(self.document["policy"])

    def to_text(self) -> str:
        return json.dumps(self.document, ensure_ascii=False, sort_keys=True, allow_nan=False, default=np.generic.item)

    def differences(self, other: Definition) -> list[str]:
        """The parts in which two definitions differ."""
        keys = sorted({*self.document, *other.document})
        different = [key for key in keys if self.document.get(key) != other.document.get(key)]
        return [key for key in different if key != "policy" or not self._same_policy(other)]

    def _said(self, key: str) -> Any:
        return self.document.get(key, _USUAL[key])

    def _same_policy(self, other: Definition) -> bool:
        """Whether two documents that differ mean the same policy."""
        with suppress(DobanditError, TypeError):  # one that is not known here is another one
            return self.policy == other.policy
        return False


def definition_from_text(text: str) -> Definition:
    """Read what a storage kept."""
    try:
        document = json.loads(text)
        version = document["version"]
        if type(version) is not int or version != VERSION:
            raise StorageError(
                f"an experiment's definition must have version {VERSION}, but this one has {shown(version)}. Open it "
                "with the dobandit that wrote it, or a newer one."
            )
        definition = Definition(document)
        if list(definition.problem.graph.nodes) != document["columns"]:
            raise StorageError("the order of an experiment's variables is not the one its log was written in.")
        lease_seconds(document["lease"])
        checked_share(definition.control)
        checked_within(definition.stop_within)
        if not isinstance(document["policy"]["name"], str):
            raise TypeError("the policy has no name")
    except StorageError:
        raise
    except (DobanditError, *_UNREADABLE) as error:
        raise _unreadable(error) from None
    return definition


def _unreadable(error: Exception) -> StorageError:
    said = str(error) if isinstance(error, DobanditError) else repr(error)
    return StorageError(f"an experiment's definition cannot be read ({said:.300}). Restore it from a backup.")


def define(
    graph: CausalGraph | CausalModel,
    rules: Rules,
    policy: Policy | str | None = None,
    *,
    horizon: int | None = None,
    seed: int | None = None,
    lease: float | timedelta | None = None,
    links: Links = None,
    continuous: bool = False,
    effects: str | None = None,
    hide: Hide = (),
    control: float = 0.0,
    stop_within: float | None = None,
) -> Definition:
    """Check the parts, and fill in what was left open. Of a model the structure and links are used, not the weights."""
    if isinstance(graph, CausalModel):
        if links is not None:
            raise ExperimentError(
                f"a model says its links itself. Leave {keyword('links')} out, or give the graph alone."
            )
        links = dict(zip(graph.graph.nodes, graph.links, strict=True)) if graph.links is not None else "auto"
        continuous, graph = continuous or graph.continuous, graph.structure
    graph = as_graph(graph, "the graph must be a CausalGraph", GraphError)
    seed = secrets.randbits(53) if seed is None else seed
    chosen = _policy_of(policy)
    links = links_for(graph, links, chosen.links)
    promised = chosen.effects if effects is None else effects
    problem = problem_of(graph, rules, checked_horizon(horizon), seed, links, continuous, promised, hide)
    if rules.budget != 0 and not problem.idle().ids and not rules.most(rules.candidates(problem.graph)):
        warnings.warn(
            "the rules leave nothing to set, so that every round will set nothing. See what is available, forbidden "
            "and affordable.",
            DobanditWarning,
            stacklevel=3,
        )
    by_node = dict(zip(graph.nodes, links_by_node(graph, links), strict=True))
    if graph.latent or problem.hidden:
        by_node = dict(zip(problem.graph.nodes, problem.links, strict=True))
    kept_links = {name: _link_document(link) for name, link in by_node.items() if link != identity}
    from dobandit.policy.learner import Learner
    from dobandit.policy.registry import policy_to_document

    learner = Learner(chosen, problem)  # a policy that does not fit the problem says so now
    share, within = checked_share(control), checked_within(stop_within)
    if within is not None and chosen.stop_within not in (None, within):
        raise ExperimentError(
            f"{learner.label} has its answer at {chosen.stop_within:g}, but {keyword('stop_within', None)} is "
            f"{within:g}. Leave {keyword('stop_within', None)} out, or give the policy another epsilon."
        )
    within = chosen.stop_within if within is None else within
    unusual = {"control": share, "stop_within": within, "hide": list(problem.hidden), "effects": promised}
    document = {
        "version": VERSION,
        "graph": document_of(graph),
        "columns": list(problem.graph.nodes),
        "links": kept_links,
        "continuous": problem.continuous,
        "rules": rules.to_document(),
        "policy": policy_to_document(chosen),
        "horizon": problem.horizon,
        "seed": problem.seed,
        "lease": lease_seconds(lease),
        **{key: value for key, value in unusual.items() if value != _USUAL[key]},
    }
    # The document is the same, in the same order, as when it is opened again.
    definition = Definition(json.loads(Definition(document).to_text()))
    vars(definition).update(graph=graph, problem=problem, policy=chosen, learner=learner)  # the cached properties
    return definition


def checked_share(control: object) -> float:
    """The share of control rounds, from 0 to below 1."""
    share = as_float(control)
    if not 0.0 <= share < 1.0:
        raise ExperimentError(
            f"control is the share of rounds in which nothing is set, from 0 to below 1, but got {shown(control)}. "
            "Try 0.1."
        )
    return share


def checked_within(within: object) -> float | None:
    """How much may be lost by stopping, above 0 and below 1; None: nobody says."""
    if within is None:
        return None
    gap = as_float(within)
    if not 0.0 < gap < 1.0:
        raise ExperimentError(
            f"{keyword('stop_within', None)} is how much better another action may be when the experiment stops, above "
            f"0 and below 1, but got {shown(within)}. Try 0.02."
        )
    return gap


def lease_seconds(lease: object) -> float | None:
    """Seconds above 0, or a timedelta; None: for ever."""
    if lease is None:
        return None
    seconds = lease.total_seconds() if isinstance(lease, timedelta) else lease
    ok = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not ok or not 0 < seconds <= LONGEST_LEASE:  # type: ignore[operator]
        raise ExperimentError(
            f"a lease is a number of seconds above 0 (up to {LONGEST_LEASE:.0e}), a timedelta, or None for one that "
            f"never ends, but got {shown(lease)}."
        )
    return float(seconds)  # type: ignore[arg-type]


def _policy_of(policy: object) -> Policy:
    from dobandit.policy.registry import default_policy, policy_from_spec

    if policy is None:
        return default_policy()
    if isinstance(policy, str):
        policy = policy_from_spec(policy)
    if not isinstance(policy, Policy):
        hint = " Write BLMLR() with parentheses." if isinstance(policy, type) else ""
        raise PolicyError(f"policy is a policy or its name, but got {policy!r}.{hint}")
    if policy.name == "oracle":
        raise PolicyError(
            f"the oracle knows a model, and the world has none. It is for simulations: use {policy_name('CausalUCB')}."
        )
    return policy


def _link_document(link: Link) -> object:
    if link.name not in BUILDERS:
        raise ExperimentError(f"a storage holds built-in links only, but {link.name!r} is your own.")
    return link.to_document()
