"""What every policy offers: a frozen configuration, known by its `name`; `start` gives a learner for one problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import as_float, is_one_of, shown
from dobandit.errors import GraphError, PolicyError, closest, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.networkx_format import as_graph
from dobandit.model.links import Link
from dobandit.oracle.rules import Rules, RuleWords, rules_of
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.problem import Links, Problem, checked_horizon, links_for, problem_of, warn_of_levels
from dobandit.texts import keyword, policy_name, setting

if TYPE_CHECKING:
    from dobandit.policy.engine import Engine
    from dobandit.policy.learner import Learner


@dataclass(frozen=True)
class Policy(ABC):
    """Base of the policies: a frozen configuration that says what it is called, and starts to work on a problem.

    One of your own is a frozen dataclass with a `name`, a `label` and an `engine`; its fields are its settings. It is
    known by its name as soon as the class is defined, and in every process where its package is installed
    (CONTRIBUTING.md has a skeleton, and `dobandit.testing.policies` the tests).

    name     as files and the command line write it, such as "blm-lr": lower-case letters, digits and hyphens. A
             subclass that leaves it out is not known by name, and files refuse it
    effects  what it takes for granted where nobody says: "nonnegative" (no cause does harm), or "any"
    links    the links that it takes for granted where nobody says
    any_graph  whether it keeps no model of the causes, so that hidden causes that cannot be removed do not matter
    learns_mechanisms  whether it learns how each variable answers by what is set, so that they do not matter either

    >>> import dobandit as dob
    >>> policy = dob.UCB(scale=0.5)
    >>> policy.name, policy.label, policy.settings()
    ('ucb', 'UCB (0.5)', {'scale': 0.5})
    """

    name: ClassVar[str] = ""
    effects: ClassVar[str] = "any"
    links: ClassVar[str] = "identity"
    any_graph: ClassVar[bool] = False
    learns_mechanisms: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            from dobandit.policy.registry import remember

            remember(cls)

    @property
    def stop_within(self) -> float | None:
        """How much better another action may be when the policy has its answer; None: it does not look for one."""
        return None

    @property
    @abstractmethod
    def label(self) -> str:
        """The name in tables and figures, such as "UCB (0.5)". It should tell apart policies that one study compares;
        where two labels are equal, the settings that differ are written behind them."""

    def label_on(self, graph: CausalGraph, links: tuple[Link, ...]) -> str:
        """The name in tables and figures of a given problem, where it depends on that; default: `label`. Links are in
        the order of `graph.nodes`.

        >>> import dobandit as dob
        >>> dob.BGLMOFU().label_on(dob.paper.G1.graph, dob.paper.G1.links)
        'BLM-OFU'
        """
        return self.label

    @abstractmethod
    def engine(self, problem: Problem) -> Engine:
        """An engine that knows nothing yet of `problem` (the graph without hidden variables, the rules, the links, and
        what is promised): a new one with every call, none sharing what it learns.

        Raises PolicyError where the problem does not suit the policy; the message says why, and what does.
        """

    def require_learnable(self, problem: Problem) -> None:
        """Raises where hidden causes cannot be removed, unless the policy keeps no model."""
        learns = self.any_graph or (self.learns_mechanisms and problem.mechanisms is not None)
        if problem.obstacle is not None and not learns:
            raise type(problem.obstacle)(problem.obstacle.marked)

    def settings(self) -> dict[str, Any]:
        """The settings that differ from the defaults, as JSON has them (a tuple becomes a list): by these a policy is
        kept in files, so that `type(policy)(**policy.settings()) == policy` must hold. A policy with a tuple among its
        settings therefore takes a list too, and one whose settings are no JSON overrides this.

        >>> import dobandit as dob
        >>> dob.UCB().settings(), dob.Fixed(["X1", "X2"]).settings()
        ({}, {'set': ['X1', 'X2']})
        """
        found = {}
        for field in fields(self):
            value = getattr(self, field.name)
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            if value != default:
                found[field.name] = list(value) if isinstance(value, tuple) else value
        return found

    def start(
        self,
        graph: CausalGraph,
        budget: int | Rules | None = None,
        horizon: int | None = None,
        seed: int = 0,
        links: Links = None,
        continuous: bool = False,
        effects: str | None = None,
        hide: Hide = (),
        **rules: Unpack[RuleWords],
    ) -> Learner:
        """A policy at work: a `Learner` on a graph.

        graph       what causes what
        budget      how many variables may be set in a round at most, or Rules
        horizon     how many rounds there will be, if that is known: the confidence levels are tuned to it
        seed        of the random numbers that ties and sampling policies use
        links       one link for all nodes, or by node; "auto": learned from the data; default, also for nodes that are
                    not named: the policy's
        continuous  whether observations are numbers from 0 to 1 rather than 0 or 1
        effects     "nonnegative": no cause does harm, so that sets of exactly `budget` are enough; "any": some may,
                    and smaller sets count too; default: what the policy takes for granted
        hide        observed variables that count as hidden, so that hidden causes of theirs do no harm; "auto": the
                    fewest of those that cannot be set which make a model learnable
        rules       levers, costs, total_cost, require, forbid, exclusive, smaller, always_set, available: see `Rules`

        >>> import dobandit as dob
        >>> dob.UCB().start(dob.paper.G4.graph, budget=2, seed=1)
        Learner(UCB, 0 rounds, CausalGraph(5 nodes, 4 edges, target='Y'))
        """
        from dobandit.policy.learner import Learner

        graph = as_graph(graph, "the graph must be a CausalGraph", GraphError)
        promised, believed = self.effects if effects is None else effects, links_for(graph, links, self.links)
        allowed, known = rules_of(budget, rules), checked_horizon(horizon)
        problem = problem_of(graph, allowed, known, seed, believed, continuous, promised, hide)
        if not self.any_graph:  # a policy that keeps a model
            warn_of_levels(problem)
        return Learner(self, problem)


def require_nonnegative(problem: Problem, label: str, clipped: bool) -> Problem:
    """The problem as the paper's policies read it: no effect does harm."""
    if problem.effects == "nonnegative":
        return problem
    if not clipped:
        raise PolicyError(
            f"{label} is for effects that do no harm (the paper's weights are nonnegative), but here effects may have "
            f"any sign. Promise {keyword('effects', 'nonnegative')}, let it read harm as no effect with "
            f"{setting('clipped=True')}, or use {policy_name('CausalUCB')}."
        )
    return replace(problem, effects="nonnegative")


def require_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise PolicyError(f"{name} is True or False, but got {shown(value)}.")


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if not is_one_of(value, choices):
        raise PolicyError(f"{name} is one of {listed(choices)}, but got {shown(value)}.{closest(value, choices)}")


def positive(name: str, value: object, *, zero: bool = False, most: float = float("inf")) -> float:
    """`value` as a finite float above 0 (or from 0), at most `most`."""
    number = as_float(value)
    if not (0 if zero else 1e-300) <= number <= min(most, 1e300):
        rule = f"a number {'from' if zero else 'above'} 0" + (f" up to {most:g}" if most < float("inf") else "")
        raise PolicyError(f"{name} must be {rule}, but got {shown(value)}.")
    return number


def round_draws(seed: int, number: int, count: int) -> NDArray[np.float64]:
    """The random numbers of round `number` (from 0): a function of the seed and the number alone."""
    return np.random.default_rng([seed, number]).random(count)
