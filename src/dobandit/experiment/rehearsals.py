"""Experiments that are played through in memory, so that everything real ones need is compiled ahead of time.

A rehearsal is a month of an experiment: trials under way, single rounds, batches with counts, control rounds, contexts,
recorded and imported rounds, and every answer.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from dobandit.compile_mode import compilations, compiled_before, compiling_ahead, remember
from dobandit.errors import DobanditError
from dobandit.experiment.definition import Definition, define
from dobandit.experiment.experiment import Experiment
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.rules import Rules
from dobandit.policy.questions import listed_actions
from dobandit.storage import MemoryStorage

_FUNNEL = [("coupon", "visit"), ("email", "visit"), ("visit", "buy"), ("coupon", "buy")]
_SEGMENTS = [*_FUNNEL, ("mobile", "visit")]
_WIDE = [(f"lever {i}", f"step {i % 5}") for i in range(24)] + [(f"step {i}", "buy") for i in range(5)]


class Step(NamedTuple):
    """A rehearsal that was played; compiled: how many kernels that took; None: it had been played before."""

    name: str
    seconds: float
    compiled: int | None


def rehearsals(policies: tuple[str, ...] = ()) -> dict[str, Definition]:
    """By name, small experiments with the default policy, and with others."""

    def small(edges: Any = _FUNNEL, policy: str | None = None, links: Any = None, budget: int = 2) -> Definition:
        roles = {"context": ["mobile"]} if edges is _SEGMENTS else {}
        graph = CausalGraph(edges, "buy", **roles)
        within = None if edges is _WIDE else 0.05
        return define(graph, Rules(budget), policy, seed=0, links=links, control=0.2, stop_within=within)

    usual = {
        "CausalUCB": small(),
        "CausalUCB, contexts": small(_SEGMENTS),
        "CausalUCB, straight effects": small(links="identity"),
        "CausalUCB, too many sets to list": small(_WIDE, budget=6),
    }
    return usual | {policy: small(policy=policy) for policy in policies if policy != "causal-ucb"}


def warm(policies: tuple[str, ...] = (), again: bool = False) -> Iterator[Step]:
    """Compile what experiments need, a rehearsal at a time. What was compiled before takes no time.

    policies  names of policies besides the default one
    again     play also what was compiled before, so that this process has it loaded

    >>> from dobandit.experiment.rehearsals import warm
    >>> steps = warm()  # nothing is compiled before the first step is asked for
    """
    for name, definition in rehearsals(policies).items():
        start, before = time.perf_counter(), len(compilations())
        played = rehearse(definition, "about a minute", again)
        compiled = len(compilations()) - before
        yield Step(name, time.perf_counter() - start, compiled) if played else Step(name, 0.0, None)


def rehearse(definition: Definition, duration: str = "about 30 s", again: bool = False) -> bool:
    """Compile all that an experiment will need, unless that was done for one of its kind and is not wanted `again`."""
    if is_rehearsed(definition) and not again:
        return False
    with compiling_ahead("the learner", duration), warnings.catch_warnings(), suppress(DobanditError):
        warnings.simplefilter("ignore")
        play(definition)  # what it may not do is compiled when somebody needs it
    remember(_kind(definition))
    return True


def is_rehearsed(definition: Definition) -> bool:
    """Whether all that an experiment needs has been compiled, for itself or another one of its kind."""
    return _kind(definition) in compiled_before()


def _kind(definition: Definition) -> str:
    """What decides which kernels an experiment needs."""
    problem, graph = definition.problem, definition.problem.graph
    links, listed = sorted({link.name for link in problem.links}), listed_actions(definition.learner.engine) is not None
    traits = links, bool(graph.context), bool(graph.latent), problem.continuous, listed
    return f"rehearsal {definition.policy!r} {traits}"


def play(definition: Definition) -> Experiment:
    """A month of an experiment, in a storage of its own."""
    storage, graph = MemoryStorage(), definition.graph
    experiment = Experiment(storage, storage.create("rehearsal", definition.to_text(), 0.0), definition=definition)
    context = dict.fromkeys(graph.context, 1)
    asking: dict[str, Any] = {"context": context} if context else {}

    def seen(do: dict[str, float], others: float) -> dict[str, float]:
        return {**dict.fromkeys(graph.observed, others), **context, **do}

    first = experiment.ask(control=False, **asking)
    under_way: Any = experiment.ask(n=3, control=False, **asking)
    experiment.tell(first, seen(first.do, 1))
    batch = experiment.ask(size=40, available=list(graph.controllable), **asking)
    experiment.tell(batch, [{**seen(batch.do, 1), "count": 25}, {**seen(batch.do, 0), "count": 15}])
    control = experiment.ask(control=True, **asking)
    experiment.tell(control, seen(control.do, 0))
    for i, trial in enumerate(under_way[:2]):
        experiment.tell(trial, seen(trial.do, i))
    experiment.record(first.do, seen(first.do, 1))
    was_set = {f"do:{name}": value for name, value in first.do.items()}
    rows = [{**was_set, **seen(first.do, others), "count": 30 + others} for others in (0, 1)]
    experiment.import_history(rows)
    experiment.import_history([*rows, {**seen({}, 0), "count": 7}], randomised=True)
    experiment.ask(**asking)
    experiment.recommend(**asking)
    experiment.evaluate(first.do, **asking)
    experiment.explain(first)
    experiment.status()
    experiment.diagnose()
    if experiment.learner.keeps_model:
        experiment.estimates()
    return experiment
