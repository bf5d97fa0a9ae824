"""What a policy is started on: a graph without hidden variables, the rules of the game, and what is promised of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.checks import MOST_ROUNDS_EVER, as_yes_or_no, is_one_of, is_whole, shown, whole_number
from dobandit.errors import (
    DobanditError,
    DobanditWarning,
    GraphError,
    InferenceError,
    InterventionError,
    ModelError,
    PolicyError,
)
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.networkx_format import as_graph
from dobandit.model.bglm import LinkLike, links_by_node
from dobandit.model.links import Link, auto, identity, logistic
from dobandit.oracle.action_list import ActionList, action_list
from dobandit.oracle.actions import Action, Actions, Allowed, order_of
from dobandit.oracle.frontier import MOST_STATES, Frontier, frontier_of
from dobandit.oracle.possibly_optimal import worth_playing
from dobandit.oracle.rules import Rules
from dobandit.policy.engine import Rounds
from dobandit.policy.hidden_causes import Hide, visible
from dobandit.policy.regimes import Regimes, masks_of
from dobandit.texts import keyword

if TYPE_CHECKING:
    from dobandit.graph.mechanisms import Mechanisms
    from dobandit.model.link_kernels import LinkArrays

Links = LinkLike | Mapping[str, LinkLike] | None
EFFECTS = ("nonnegative", "any")


@dataclass(frozen=True)
class Problem:
    """A graph (hidden variables already removed), the rules, and what is known beforehand.

    effects  "nonnegative": no cause makes an effect less likely; "any": some may do harm
    whole    the graph with its hidden variables, where it has some
    hidden   observed variables that count as hidden: the log keeps them, and nothing is learned from them
    obstacle why hidden causes keep a model from being learned; policies that keep none do not mind
    flags    (flag, variable) ids: nodes behind all others that are 1 where the variable was set (`policy.revising`)
    mechanisms  how each variable answers, where observed ones share hidden causes and links are learned
    regimes  of the allowed actions, where the graph is that of a belief about mechanisms (`policy.regimes`)
    prune    whether a model only chooses from sets that can be best; None: where hidden causes are shared
    """

    graph: CausalGraph
    rules: Rules
    horizon: int | None
    seed: int
    links: tuple[Link, ...]
    continuous: bool
    effects: str = "nonnegative"
    whole: CausalGraph | None = None
    hidden: tuple[str, ...] = ()
    obstacle: DobanditError | None = None
    flags: tuple[tuple[int, int], ...] = ()
    mechanisms: Mechanisms | None = None
    regimes: Regimes | None = None
    prune: bool | None = None

    @cached_property
    def of_mechanisms(self) -> Problem:
        """The problem of a belief about mechanisms: with a node for each of them that an allowed action, or doing
        nothing, puts to work. The problem itself where each variable has one."""
        if self.mechanisms is None or self.regimes is not None:
            return self
        if (count := self.allowed().count()) > limits.MAX_ACTIONS:
            raise PolicyError(
                f"where hidden causes are shared, a learner keeps a mechanism for what each action sets, up to "
                f"{limits.MAX_ACTIONS:,} actions, but there are {count:,}. Lower the budget, or make fewer variables "
                "controllable."
            )
        regimes = Regimes(self.mechanisms, masks_of(self.allowed().rows().ids.tolist()))
        links = (*self.links, *(auto for _ in regimes.further))
        return replace(self, graph=regimes.graph, links=links, regimes=regimes)

    def frontier(self, most_states: int = MOST_STATES) -> Frontier | None:
        """The frontier of exact passes; None where it is too wide."""
        regimes = () if self.regimes is None else self.regimes.answers
        return frontier_of(self.graph, np.array(self.order, dtype=np.int64), most_states, regimes=regimes)

    def regimes_of(self, actions: Actions) -> NDArray[np.int64]:
        """(actions,) the regime of each: which pass of the frontier it takes."""
        return np.zeros(len(actions.ids), dtype=np.int64) if self.regimes is None else self.regimes.of(actions)

    def listed(self, actions: Actions, largest: bool = False) -> ActionList:
        """Actions as evaluators take them."""
        return action_list(self.order, actions, largest, self.flags, self.regimes_of(actions))

    def worth_playing(self, available: tuple[int, ...] | None = None) -> Actions:
        """The allowed actions of the variables that matter, where `prune` says so without those that cannot be best
        whatever the model is."""
        rows = self.allowed(available).rows()
        prune = self.mechanisms is not None if self.prune is None else self.prune
        if not prune or available is not None:  # what is dropped may be best where something is not there
            return rows
        try:
            kept = possible_arms(self, rows)
        except InferenceError:  # too many to compare
            if self.prune:
                raise
            return rows
        return Actions(rows.ids[kept], rows.values[kept])

    @cached_property
    def is_linear(self) -> bool:
        return all(link == identity for link in self.links)

    @property
    def monotone(self) -> bool:
        """Whether one more variable set never lowers E[Y]: effects are nonnegative, and variables are set to 1 only."""
        return self.effects == "nonnegative" and self.rules.at_one

    @property
    def budget(self) -> int:
        """The most variables that an action can set."""
        return len(self.graph.controllable) if self.rules.budget is None else self.rules.budget

    @cached_property
    def link_arrays(self) -> LinkArrays:
        """The links for kernels, over the sums that weights up to 1 can give; a curve where the link is not known."""
        from dobandit.model.link_kernels import link_arrays  # needs Numba, which a `tell` does not

        degrees = np.diff(self.graph.arrays.parent_ptr)[1:]
        links = [logistic() if link == auto else link for link in self.links]
        return link_arrays(links, [float(max(d, 1)) for d in degrees])

    @cached_property
    def order(self) -> list[int]:
        """Ids of the target's ancestors and the target, in topological order."""
        return order_of(self.graph)

    @cached_property
    def context_ids(self) -> NDArray[np.int32]:
        """Ids of the variables whose values are known before acting."""
        return self.graph.arrays.context

    def settable(self, names: Iterable[str] | None) -> tuple[int, ...] | None:
        """Ids of the variables that can be set now, from their names; None: all. Raises where no action is left."""
        if names is None:
            return None
        given = replace(self.rules, available=names)  # type: ignore[arg-type]
        given.candidates(self.graph)  # refuses names of nothing that can be set
        limited = self.rules.limited(given.available or ())
        limited.candidates(self.graph)
        chosen = set(limited.available or ())
        return tuple(self.graph.index(name) for name in self.graph.controllable if name in chosen)

    def allowed(self, available: tuple[int, ...] | None = None, relevant: bool = True) -> Allowed:
        """The allowed actions, of the variables that can be set now; `relevant`: only of those that can matter."""
        rules = self.rules
        if available is not None:
            rules = rules.limited(self.graph.nodes[v - 1] for v in available)
        return Allowed(self.graph, rules, self.monotone, set(self.order) if relevant else None)

    def allows(self, action: Action) -> bool:
        """Whether the rules allow an action. Doing nothing always is: control rounds do it."""
        rules = self.rules
        if not all(0 < v <= len(self.graph) for v in action.ids):
            return False
        names = [self.graph.nodes[v - 1] for v in action.ids]
        if not names or action == self.idle():
            return True
        possible = {*rules.candidates(self.graph), *rules.require}
        return (
            set(rules.require) <= set(names) <= possible
            and all(to in rules.values_of(name) for name, to in zip(names, action.values, strict=True))
            and rules.allows([name for name in names if name not in rules.require])
        )

    def can_be_chosen(self, action: Action, available: tuple[int, ...] | None = None) -> bool:
        """Whether an action is one of those to choose from, with what can be set now. Where smaller sets do not count,
        nothing that matters could be added to it."""
        allowed = self.allowed(available)
        return (
            self.allows(action)
            and set(allowed.required) <= set(action.ids)
            and (available is None or set(action.ids) <= set(available))
            and not (allowed.full_only and allowed.can_grow(action))
        )

    def checked(self, action: Action, label: str) -> Action:
        """The action, or PolicyError where the rules do not allow what a policy chose."""
        if not self.allows(action):
            raise PolicyError(
                f"a policy keeps to the rules of its problem, but {label} chose {action}, which they do not allow. "
                "Mend the policy."
            )
        return action

    def idle(self) -> Action:
        """Setting nothing but what is required, each to its largest value."""
        ids = sorted(self.graph.index(name) for name in self.rules.require)
        return Action(tuple(ids), tuple(self.rules.values_of(self.graph.nodes[v - 1])[-1] for v in ids))

    def flagged(self, action: Action) -> Action:
        """An action with the flags of what it sets, at 1."""
        more = [flag for flag, of in self.flags if of in action.ids]
        return Action((*action.ids, *more), (*action.values, *(1.0 for _ in more)))

    def known(self, context: NDArray[np.float64]) -> NDArray[np.float64]:
        """A context with columns for flags and mechanisms, which nobody knows before acting."""
        more = len(self.graph) + 1 - len(context)
        return np.pad(context, (0, more), constant_values=np.nan) if more else context

    def with_flags(self, rounds: Rounds) -> Rounds:
        """Rounds with columns for flags and mechanisms."""
        if self.regimes is not None:
            return self.regimes.rounds(rounds)
        if not self.flags:
            return rounds
        more = rounds.was_set[:, [of for _, of in self.flags]]
        return rounds._replace(values=np.hstack([rounds.values, more]), was_set=np.hstack([rounds.was_set, more]))

    @property
    def selective(self) -> bool:
        """Whether there can be rounds that a model must not learn from."""
        return bool(self.rules.always_set or self.hidden)

    def teaches(self, was_set: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rounds, by row, a model may learn from: those that set what is always set, and nothing that counts as
        hidden."""
        always = [self.graph.index(name) for name in self.rules.always_set]
        never = [self.graph.index(name) for name in self.hidden]
        return np.asarray(was_set[:, always].all(axis=1) & ~was_set[:, never].any(axis=1))

    def sets_in_words(self) -> str:
        """Which sizes of sets are tried, and why."""
        allowed = self.allowed()
        return f"{allowed.sizes_in_words()}: {allowed.reason_in_words()}"


def possible_arms(problem: Problem, actions: Actions) -> list[int]:
    """The rows of `actions` that can be best at all by what causes what: a set falls away where another of the list is
    no worse in every model (`oracle.possibly_optimal`). Numbers between 0 and 1 cannot all be tried, so that there only
    sets fall away that hold what cannot matter."""
    rules, graph = problem.rules, problem.graph
    whole = [name for name in graph.controllable if not problem.continuous and rules.values_of(name) == (0.0, 1.0)]
    return worth_playing(problem.whole or graph, graph, actions, whole)


def checked_horizon(horizon: int | None) -> int | None:
    """The horizon of something new: None, or a whole number that kernels can count to. (What was begun with a larger
    one goes on as it did.)"""
    if horizon is not None and (not is_whole(horizon) or not 1 <= horizon <= MOST_ROUNDS_EVER):
        raise PolicyError(
            f"horizon must be a whole number from 1 to {MOST_ROUNDS_EVER:.0e}, or None if it is not known, but got "
            f"{shown(horizon)}."
        )
    return None if horizon is None else int(horizon)


def links_for(graph: CausalGraph, links: Links, usual: str) -> Links:
    """What is believed of the nodes where a policy takes the `usual` link for granted: of those that nobody speaks of,
    the usual one."""
    if links is None:
        return usual
    by_node = isinstance(links, Mapping) and ("name" not in links or "name" in graph)
    return {**dict.fromkeys(graph.nodes, usual), **links} if by_node else links  # type: ignore[dict-item]


def warn_of_levels(problem: Problem, stacklevel: int = 3) -> None:
    """Warns where a lever has more than two values: a continuous model learns its effect as a straight line."""
    levels = {name: values for name, values in problem.rules.levers.items() if len(values) > 2}
    if not problem.continuous or not levels:
        return
    name, values = next(iter(levels.items()))
    others = f", as do {len(levels) - 1} other levers" if len(levels) > 1 else ""
    warnings.warn(
        f"{name!r} has {len(values)} values{others}, and the effect of such a lever is learned as a straight line: a "
        "best value in the middle is never found. Where it may lie there, give each value a variable of 0 and 1 of its "
        f"own, and let {keyword('exclusive')} keep them apart (see 'A setting with several values' in "
        "docs/tasks/tuning.md).",
        DobanditWarning,
        stacklevel=stacklevel + 1,
    )


def problem_of(
    graph: CausalGraph,
    rules: Rules | int,
    horizon: int | None = None,
    seed: int = 0,
    links: Links = None,
    continuous: bool = False,
    effects: str = "nonnegative",
    hide: Hide = (),
) -> Problem:
    """Check the rules of the game (or a mere budget) once, and remove hidden variables, those in `hide` too."""
    graph = as_graph(graph, "the graph must be a CausalGraph", GraphError)
    if as_yes_or_no(continuous) is None:
        raise PolicyError(f"continuous is True or False, but got {shown(continuous)}.")
    by_node = links_by_node(graph, links)
    if continuous:  # numbers between 0 and 1 are learned linearly
        by_node = tuple(identity if link == auto else link for link in by_node)
    nonlinear = [name for name, link in zip(graph.nodes, by_node, strict=True) if link != identity]
    if nonlinear and continuous:
        raise ModelError(f"a continuous model is linear, but {nonlinear[0]!r} has another link. Use identity links.")
    if horizon is not None:
        whole_number("horizon", horizon, 1, PolicyError)
    whole_number("seed", seed, 0, PolicyError)
    if not is_one_of(effects, EFFECTS):
        raise PolicyError(f"effects are 'nonnegative' (no cause does harm) or 'any', but got {shown(effects)}.")
    rules = rules if isinstance(rules, Rules) else Rules(rules)
    rules.candidates(graph)  # raises where no action is allowed
    if not continuous:
        for name, values in rules.levers.items():
            if not set(values) <= {0.0, 1.0}:
                raise InterventionError(
                    f"a variable of 0 and 1 is set to 0 or 1, but the levers of {name!r} are "
                    f"{' and '.join(f'{value:g}' for value in values)}. Give 0 and 1 only; numbers between are for "
                    "experiments and models that are continuous."
                )
    seen = visible(graph, by_node, hide, rules.always_set)
    rules.candidates(seen.graph, seen.hidden)
    known = None if horizon is None else int(horizon)
    left = (seen.whole, seen.hidden, seen.obstacle)
    given = (seen.graph, rules, known, int(seed), seen.links, bool(continuous), effects, *left)
    return Problem(*given, mechanisms=seen.mechanisms)
