"""Small experiments that are played through in memory so that everything real ones need is compiled ahead of time.

Each covers a month of an experiment: trials under way, single rounds, batches with counts, control rounds, contexts,
recorded and imported rounds, and every answer.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from dobandit.compile_mode import announced_as, compilations, compiling_ahead, is_remembered, remember
from dobandit.experiment.catalogue import create_experiment
from dobandit.experiment.experiment import Experiment
from dobandit.graph.causal_graph import CausalGraph
from dobandit.storage import MemoryStorage

_FUNNEL = [("coupon", "visit"), ("email", "visit"), ("visit", "buy"), ("coupon", "buy")]


class Rehearsal(NamedTuple):
    """What is played: an experiment with these words, in this context."""

    name: str
    words: dict[str, Any]
    context: dict[str, float] | None = None

    @property
    def key(self) -> str:
        return f"rehearsal {self.name}"


class Step(NamedTuple):
    """A rehearsal that was played; compiled: how many kernels that took; None: it had been played before."""

    name: str
    seconds: float
    compiled: int | None


def rehearsals(policies: tuple[str, ...] = ()) -> list[Rehearsal]:
    """Those of the default policy, with and without contexts, and those of other policies by name."""
    usual = [
        Rehearsal("CausalUCB", {}),
        Rehearsal("CausalUCB, contexts", {}, {"mobile": 1}),
        Rehearsal("CausalUCB, straight effects", {"links": "identity"}),
    ]
    return [*usual, *(Rehearsal(policy, {"policy": policy}) for policy in policies if policy != "causal-ucb")]


def warm(policies: tuple[str, ...] = (), again: bool = False) -> Iterator[Step]:
    """Compile what experiments need, a rehearsal at a time. What was compiled before takes no time.

    policies  names of policies besides the default one
    again     play also what was compiled before, so that this process has it loaded

    >>> from dobandit.experiment.rehearsals import warm
    >>> steps = warm()  # nothing is compiled before the first step is asked for
    """
    for rehearsal in rehearsals(policies):
        start, before = time.perf_counter(), len(compilations())
        if is_remembered(rehearsal.key) and not again:
            yield Step(rehearsal.name, 0.0, None)
            continue
        with compiling_ahead(), announced_as("the learner", "about 25 s"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            play(rehearsal)
        remember(rehearsal.key)
        yield Step(rehearsal.name, time.perf_counter() - start, len(compilations()) - before)


def play(rehearsal: Rehearsal) -> Experiment:
    """A month of a small experiment, in a storage of its own."""
    edges = [*_FUNNEL, ("mobile", "visit")] if rehearsal.context else _FUNNEL
    graph = CausalGraph(edges, target="buy", context=list(rehearsal.context or ()))
    words = {"seed": 0, "control": 0.2, "stop_within": 0.05, **rehearsal.words}
    experiment = create_experiment("rehearsal", graph, 2, storage=MemoryStorage(), **words)
    asking: dict[str, Any] = {"context": rehearsal.context} if rehearsal.context else {}
    known = rehearsal.context or {}

    def seen(do: dict[str, float], buy: int) -> dict[str, float]:
        return {"coupon": 0, "email": 1, "visit": buy, "buy": buy, **known, **do}

    first = experiment.ask(control=False, **asking)
    under_way: Any = experiment.ask(n=3, control=False, **asking)
    experiment.tell(first, seen(first.do, 1))
    batch = experiment.ask(size=40, available=["coupon", "email"], **asking)
    experiment.tell(batch, [{**seen(batch.do, 1), "count": 25}, {**seen(batch.do, 0), "count": 15}])
    control = experiment.ask(control=True, **asking)
    experiment.tell(control, seen({}, 0))
    for i, trial in enumerate(under_way[:2]):
        experiment.tell(trial, seen(trial.do, i))
    experiment.record({"email": 1}, seen({"email": 1}, 1))
    rows = [{"do:coupon": 1, **seen({"coupon": 1}, buy), "count": 30 + buy} for buy in (0, 1)]
    experiment.import_history(rows)
    experiment.import_history([*rows, {**seen({}, 0), "count": 7}], randomised=True)
    experiment.ask(**asking)
    experiment.recommend(**asking)
    experiment.evaluate({"coupon": 1}, **asking)
    experiment.explain(first)
    experiment.status()
    experiment.diagnose()
    if experiment.learner.keeps_model:
        experiment.estimates()
    return experiment
