"""How many rounds a policy that looks for the best action needs to find it, and how often it is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import SimulationError
from dobandit.estimation.confidence import wilson
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.causal_model import CausalModel
from dobandit.oracle.rules import Rules
from dobandit.policy.engine import Draws, Engine, Interval, Situation, no_context
from dobandit.policy.problem import Links
from dobandit.policy.questions import best, gap
from dobandit.policy.world import World
from dobandit.simulation.result import QUANTILES, Summary, summarise
from dobandit.simulation.run import Runner, prepare
from dobandit.simulation.study import Policies, Study, study_of

_SAME = 1e-9  # rounding of true values must not make an answer wrong


class Found(NamedTuple):
    """The searches of one policy, a number per run.

    rounds     how many it took, at most the most that were allowed
    finished   whether it had an answer by then
    shortfall  by how much the answer, or what looked best in the end, is truly worse than the best action
    within     how much it was allowed to be worse (epsilon); delta: with what probability it may be worse by more
    """

    rounds: NDArray[np.int64]
    finished: NDArray[np.bool_]
    shortfall: NDArray[np.float64]
    within: float
    delta: float

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Runs whose answer falls short by more than allowed."""
        return self.finished & (self.shortfall > self.within + _SAME)

    @property
    def error(self) -> float:
        """The share of runs with a wrong answer; a run without an answer is not wrong."""
        return float(self.wrong.mean())

    @property
    def error_interval(self) -> Interval:
        """Wilson's 95% interval of the error."""
        return Interval(*wilson(self.error, len(self.wrong)))

    def summary(self) -> Summary:
        """Of the rounds: mean with its interval, and quantiles; unfinished runs count with the most that were allowed,
        so that the mean is too small where there are any."""
        return summarise(self.rounds.astype(float))


@dataclass(frozen=True)
class BestFound:
    """What `find_best` measured.

    found        by label, a `Found`: the rounds that it took, and how often the answer was wrong; `found["LUCB (0.1)"]`
    most_rounds  a run without an answer by then has none
    """

    found: dict[str, Found]
    most_rounds: int

    def __getitem__(self, label: str) -> Found:
        return self.found[label]

    def summary(self) -> str:
        """A table for people: rounds until the answer, runs without one, and the share of wrong answers."""
        rows = [("policy", "rounds", "5%", "median", "95%", "no answer", "wrong", "95% interval")]
        for label, found in self.found.items():
            rounds, (low, high), runs = found.summary(), found.error_interval, len(found.rounds)
            unfinished = int((~found.finished).sum())
            mean = f"{'>' if unfinished else ''}{rounds.mean:,.0f}"
            q05, median, q95 = (f"{rounds.quantiles[q]:,.0f}" for q in QUANTILES)
            shares = f"{unfinished} of {runs}", f"{int(found.wrong.sum())} of {runs}"
            rows.append((label, mean, q05, median, q95, *shares, f"{low:.3f} to {high:.3f}"))
        first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
        return "\n".join("  ".join([row[0].ljust(first), *map(str.rjust, row[1:], widths)]) for row in rows)


def find_best(
    model: CausalModel,
    policies: Policies,
    replications: int,
    budget: int | Rules,
    seed: int = 0,
    most_rounds: int = 100_000,
    *,
    graph: CausalGraph | None = None,
    links: Links = None,
    effects: str | None = None,
) -> BestFound:
    """Let policies such as `BestSet` and `LUCB` look for the best action of a model, on common random numbers.

    model         the world; without context, as each context has an answer of its own
    policies      a policy, or many, that know when they have an answer
    replications  runs of each policy
    budget        the most variables that may be set in a round, or `Rules`
    seed          of the random numbers that all policies share
    most_rounds   a run without an answer by then has none
    graph, links, effects   what the learners believe, as in `simulate`; default: what is true

    Returns a `BestFound`: the rounds that each took, and how often the answer was wrong.

    >>> import dobandit as dob
    >>> found = dob.find_best(dob.paper.G4, dob.LUCB(epsilon=0.3, delta=0.1), replications=5, budget=2)
    >>> found["LUCB (0.3)"].error
    0.0
    >>> found["LUCB (0.3)"].summary().size
    5
    >>> found.summary().splitlines()[0].split()[:4]
    ['policy', 'rounds', '5%', 'median']
    """
    believed: Any = {"graph": graph, "links": links, "effects": effects}
    study = study_of(model, policies, most_rounds, replications, budget, seed, [1], **believed)
    if study.problem.graph.context:
        raise SimulationError("each context has a best action of its own, so that there is no single answer to find.")
    runner = Runner(study, prepare(study))
    return BestFound({label: _searches(runner, study, label) for label in study.policies}, study.rounds)


def _searches(runner: Runner, study: Study, label: str) -> Found:
    """All runs of one policy."""
    policy = study.policies[label]
    within, unlearned = policy.stop_within, policy.engine(study.problem)
    if within is None:
        raise SimulationError(
            f"find_best is for policies that know when they have an answer, but {label} never does. Use BestSet or "
            "LUCB."
        )
    nothing, truth = no_context(len(study.problem.graph)), runner.prepared.truth
    rounds, finished = np.zeros(study.replications, int), np.zeros(study.replications, bool)
    shortfall = np.zeros(study.replications)
    for run in range(study.replications):
        engine = unlearned.copy()
        for _, draws in runner.stretches([engine], run):
            needed = rounds_until(engine, runner.world, draws, within)
            rounds[run] += len(draws.world) if needed is None else needed
            if needed is not None:
                finished[run] = True
                break
        answer = best(engine, Situation(np.zeros(engine.draws), nothing)).action
        shortfall[run] = truth.best[0] - truth.value(answer, nothing)
    return Found(rounds, finished, shortfall, within, unlearned.delta)


def rounds_until(engine: Engine, world: World, draws: Draws, within: float) -> int | None:
    """Play rounds until no action can be better than the best by more than `within`; None: it still could be."""
    for t, (world_draws, policy_draws) in enumerate(zip(draws.world, draws.policy, strict=True)):
        now = Situation(policy_draws, world.context(world_draws))
        if gap(engine, best(engine, now).action, now).gap <= within:
            return t
        action = engine.problem.checked(engine.choose(now).action, type(engine).__name__)
        engine.update(world.play(action, world_draws))
    return None
