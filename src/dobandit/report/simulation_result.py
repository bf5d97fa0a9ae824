"""`simulate`: a study in one call, and its result with summary, chart and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from inspect import signature
from pathlib import Path
from typing import Any, Unpack

from dobandit import paper
from dobandit.checks import shown
from dobandit.errors import SimulationError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.causal_model import CausalModel
from dobandit.oracle.rules import RULE_WORDS, Rules, RuleWords, rules_of
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.problem import Links
from dobandit.report.summary import StudySummary, message, paper_name
from dobandit.report.tables import frame_of
from dobandit.simulation.result import StudyResult
from dobandit.simulation.simulate import Executor, run_study
from dobandit.simulation.study import Policies, study_of
from dobandit.simulation.study_worlds import WorldFunction
from dobandit.texts import keyword


@dataclass(frozen=True, eq=False, repr=False)
class SimulationResult(StudyResult):
    """What a study found, with its pictures and tables: `summary()` prints as a table, `chart()` draws, and
    `report(folder)` writes all of it. Curves are indexed [policy, replication, grid point].

    best         the largest E[Y] of an allowed action; with context variables, on the average over contexts
    best_do      the action that has it; empty where none is best in every context (best_depends)
    all_regret   cumulative expected regret;  all_reward: cumulative Y as it came out
    best_plays   how often a best action was played;  all_plays: how often each was
    seconds      of each run;  elapsed: wall time of the whole study
    name         what the study is called, and finished: when it ended, in seconds since 1970
    value_error  standard error of a regret per round, where values are estimated (a world is a function)

    >>> import dobandit as dob
    >>> study = dob.simulate(dob.paper.G4, ["ucb", "random"], rounds=20, replications=3)
    >>> study.labels, study.best_set
    (['UCB', 'Random'], ('X2', 'X3'))
    """

    @classmethod
    def of(cls, result: StudyResult) -> SimulationResult:
        """The result of a study, `result`, with pictures and tables."""
        return cls(**{field.name: getattr(result, field.name) for field in fields(StudyResult)})

    def summary(self) -> StudySummary:
        """Regret, intervals, quantiles and paired differences of every policy, to print.

        >>> import dobandit as dob
        >>> study = dob.simulate(dob.paper.G4, ["ucb", "random"], rounds=20, replications=3)
        >>> study.summary().text().splitlines()[0]
        'G4: No clear winner after 20 rounds and 3 runs'
        >>> list(study.summary().to_document())
        ['rounds', 'budget', 'replications', 'seed', 'seconds', 'best_set', 'best_do', 'best_value', 'policies']
        """
        return StudySummary(self)

    def table(self) -> list[dict[str, Any]]:
        """The summary's numbers, a row per policy.

        >>> import dobandit as dob
        >>> study = dob.simulate(dob.paper.G4, ["ucb", "random"], rounds=20, replications=3)
        >>> [row["policy"] for row in study.table()]
        ['UCB', 'Random']
        """
        return self.summary().rows

    def to_pandas(self) -> Any:
        """The summary's numbers as a pandas DataFrame, a row per policy."""
        return frame_of(self.table())

    def chart(self, *, title: str | None = None, subtitle: str | None = None) -> Any:
        """The regret curves.

        title     over them; default: what the study found, in a sentence; "" leaves it out
        subtitle  below it; default: what the curves are

        Returns a `Figure`; `.save("regret.png")` writes PNG, SVG, PDF or HTML.

        >>> import dobandit as dob
        >>> study = dob.simulate(dob.paper.G4, ["ucb", "random"], rounds=20, replications=3)
        >>> study.chart(title="A first look").title
        'A first look'
        """
        from dobandit.report.svg.regret_charts import regret_drawing, regret_figure

        return regret_drawing(regret_figure(self, title=title, subtitle=subtitle))

    def report(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Write figures (PNG, SVG), tables (Markdown, JSON) and report.html, a page that opens offline.

        folder  where to write them; it is made where it does not exist

        Returns the paths by file name.
        """
        from dobandit.report.study_report import study_report

        return dict(study_report(self, folder))

    def __repr__(self) -> str:
        return f"SimulationResult({message(self)})"

    def __str__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return f"{self.chart().svg()}\n{self.summary().table().html()}"


def simulate(
    model: CausalModel | WorldFunction,
    policies: Policies = None,
    rounds: int = 1_000,
    replications: int = 20,
    budget: int | Rules | None = None,
    seed: int = 0,
    *,
    executor: str | Executor = "threads",
    workers: int | None = None,
    record: str | Sequence[int] = "grid",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[int], None] = False,
    graph: CausalGraph | None = None,
    links: Links = None,
    effects: str | None = None,
    hide: Hide = (),
    name: str = "",
    **rules: Unpack[RuleWords],
) -> SimulationResult:
    """Run every policy `replications` times for `rounds` rounds on `model`, on common random numbers.

    model       the world: a model, or a function (action, context, rng) -> observation (see `FunctionModel`), whose
                values, and so regret, are estimated
    policies    policies or their names ("ucb:scale=0.1"), or a mapping from labels to them; None: CausalUCB and UCB
    rounds      of each run;  replications: runs of each policy
    budget      how many variables may be set in a round; the paper's models know theirs
    seed        of the random numbers that all policies share
    rules       levers, costs, total_cost, require, forbid, exclusive, smaller, always_set, available: see `Rules`
    executor    "threads", "dask", or the address of a Dask scheduler
    workers     threads or processes; default: all cores. They change no result
    record      "grid" (about 400 rounds, denser at the start), "every" round, or the rounds to record
    checkpoint  a folder that keeps finished replications until the study is done
    name        what the study is called on its page; the paper's models know theirs
    progress    True for a bar with the time left, or a function called with the number of runs just finished

    The policies need not know what the world is made of. Regret is measured by the world in any case.
    graph       the learner's graph: some or all of the world's observed variables, among them the target, the context
                and all that can be set; default: the world's own
    links       the learner's links, one for all nodes or by node; default, also for nodes that are not named: the
                world's; where that has none (tables, a function), what each policy takes for granted, and identity
                beside nodes that are named
    effects     what the learner is promised: "nonnegative" or "any"; default: what is true, and "any" on another graph
    hide        observed variables that count as hidden for the learner, or "auto", as in `create_experiment`

    Returns a `SimulationResult`.

    >>> from dobandit import paper
    >>> result = simulate(paper.G4, ["ucb", "random"], rounds=20, replications=2, seed=0)
    >>> result.regret("UCB").shape == (2, len(result.grid))
    True
    """
    allowed = study_rules(model, budget, rules)
    believed: Any = {"graph": graph, "links": links, "effects": effects, "hide": hide}
    study = study_of(model, policies, rounds, replications, allowed, seed, record, **believed)
    with shown_progress(progress, "Simulating", study.replications) as report:
        result = run_study(study, executor=executor, workers=workers, checkpoint=checkpoint, progress=report)
    return SimulationResult.of(replace(result, name=str(name) or paper_name(study.model) or ""))


def simulate_many(
    models: Mapping[str, CausalModel],
    policies: Policies,
    rounds: int,
    replications: int,
    budget: int | Rules | None = None,
    seed: int = 0,
    **how: Any,
) -> dict[str, SimulationResult]:
    """One study on each of many models, with the same policies.

    models    by name
    how       the further arguments of `simulate`;  policies, rounds, replications, budget and seed are as there

    Returns the results by name.

    >>> from dobandit import random_model
    >>> models = {f"seed {seed}": random_model("layered", 6, seed=seed) for seed in range(2)}
    >>> list(simulate_many(models, ["random"], rounds=10, replications=2, budget=1))
    ['seed 0', 'seed 1']
    """
    if not isinstance(models, Mapping) or not models:
        raise SimulationError("models is a mapping from names to models, with at least one.")
    known = [one.name for one in signature(simulate).parameters.values() if one.kind is one.KEYWORD_ONLY]
    unknown = [key for key in how if key not in (*known, *RULE_WORDS)]
    if unknown:
        raise SimulationError(f"simulate_many takes the arguments of simulate, but got {unknown[0]!r}.")
    results, home = {}, how.pop("checkpoint", None)
    for i, (name, model) in enumerate(models.items()):
        own = {"name": str(name), "checkpoint": None if home is None else Path(home) / f"{i:04d}"}
        results[name] = simulate(model, policies, rounds, replications, budget, seed, **{**own, **how})
    return results


def load_result(path: str | os.PathLike[str]) -> SimulationResult:
    """Read a saved study.

    path  the file, or the folder that holds it, as `dobandit simulate --out` or `result.save` wrote it

    Returns a `SimulationResult`.

    >>> import dobandit as dob
    >>> import tempfile
    >>> study = dob.simulate(dob.paper.G4, [dob.UCB()], rounds=20, replications=2, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = study.save(folder)
    ...     dob.load_result(folder).best == study.best
    True
    """
    return SimulationResult.of(StudyResult.load(path))


def study_rules(model: object, budget: int | Rules | None, words: Mapping[str, Any]) -> Rules:
    """The rules of a study; the paper's models know their budget."""
    name = paper_name(model) if isinstance(model, CausalModel) else None
    if budget is None and name is not None:
        budget = paper.BUDGETS[name]
    rules = rules_of(budget, words)
    if rules.budget is None and rules.total_cost is None:
        raise SimulationError(
            "a study needs a budget, the number of variables that may be set in a round, or a total cost, but none was "
            f"given and the model is not one of the paper's. Add {keyword('budget', 2)}, for instance."
        )
    return rules


@contextmanager
def shown_progress(
    wanted: bool | Callable[[int], None], description: str, total: int
) -> Iterator[Callable[[int], None] | None]:
    """What is to be called with a count: a function that was given, nothing, or that of a bar on standard error, which
    shows the time left and goes away when the work is done."""
    if wanted is not True:
        if wanted is not False and not callable(wanted):
            raise SimulationError(f"progress is True, False or a function of a count, but got {shown(wanted)}.")
        yield wanted or None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    left = TimeRemainingColumn(elapsed_when_finished=True)
    with Progress(*columns, left, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(description), total=total)
        yield lambda count: bar.advance(task, count)
