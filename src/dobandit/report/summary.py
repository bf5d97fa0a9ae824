"""What a study says: its headline, its numbers as rows, and these as a table to print."""

from __future__ import annotations

import math
from collections.abc import Callable
from textwrap import wrap
from typing import Any

import numpy as np

from dobandit import paper
from dobandit.model.causal_model import CausalModel
from dobandit.oracle.rules import Rules
from dobandit.report.tables import Table
from dobandit.simulation.result import StudyResult
from dobandit.simulation.study import Study
from dobandit.texts import (
    NOT_KNOWN,
    action_words,
    amount,
    counted,
    headline_amount,
    markdown,
    percent,
    printable,
    shortened_apart,
    signed,
)


class StudySummary:
    """The numbers of a study; print it, or show it in a notebook. Made by `summary` of a result.

    rows  a row per policy, as `SimulationResult.table` gives them
    """

    def __init__(self, result: StudyResult) -> None:
        self._result = result
        self.rows = _rows(result)

    def to_document(self) -> dict[str, Any]:
        """As JSON: rounds, budget, seed, the best action, and the numbers of each policy."""
        result, study = self._result, self._result.study
        return {
            "rounds": study.rounds,
            "budget": study.rules.budget,
            **({} if study.rules == Rules(study.rules.budget) else {"rules": study.rules.to_document()}),
            "replications": study.replications,
            "seed": study.seed,
            "seconds": result.elapsed,
            "best_set": list(result.best_set),
            "best_do": result.best_do,
            **({"best_depends": result.best_depends} if study.model.graph.context else {}),
            "best_value": result.best,
            "policies": {row["policy"]: {key: row[key] for key in row if key != "policy"} for row in self.rows},
        }

    def text(self, width: int | None = None) -> str:
        """As text, with what the study found above.

        width  of the screen in characters; default: any width
        """
        table = self.table()
        short = shortened_apart([row[0] for row in table.rows], 32)
        table = table._replace(rows=[[short[name], *cells] for name, *cells in table.rows])
        above = printable(message(self._result))
        return "\n".join([*([above] if width is None else wrap(above, width)), "", table.text(width)])

    def markdown(self) -> str:
        """As a section in Markdown."""
        return f"## {markdown(message(self._result))}\n\n{self.table().markdown()}"

    def table(self) -> Table:
        """The numbers as people read them."""
        result, best = self._result, best_label(self._result)
        several = len(result.labels) > 1
        heads = ["Policy", "Regret", "95% interval", "Median", "5% to 95%", "Best set", "µs/round"]
        heads += ["More than best", "95% interval", "Beats best"] if several else []
        body, methods = [], set()
        for row in self.rows:
            quantiles, difference = row["regret_quantiles"], row["difference_to_best"]
            methods.add(row["regret_ci95_method"])
            cells = [
                row["policy"],
                amount(row["regret_mean"]),
                _interval(row["regret_ci95"], row["regret_ci95_method"], amount),
                amount(quantiles["0.5"]),
                f"{amount(quantiles['0.05'])} to {amount(quantiles['0.95'])}",
                percent(row["best_set_share"]),
                amount(row["microseconds_per_round"]),
            ]
            if difference is not None:
                methods.add(difference["ci95_method"])
                cells += [
                    signed(difference["mean"]),
                    _interval(difference["ci95"], difference["ci95_method"], signed),
                    percent(difference["smaller_share"]),
                ]
            elif several:
                cells += ["best", "", ""]
            body.append(cells)
        return Table(heads, body, _notes(result, best, several, methods))

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.table().html()


def _rows(result: StudyResult) -> list[dict[str, Any]]:
    """A row per policy, in the study's order, with the names that JSON has too; what is not known (a standard error of
    one run) is None.

    The difference is this policy's regret minus that of the best, pair by pair; None for the best itself. Time is
    that of the median run, since the first one may wait for the compiler.
    """
    best = best_label(result)
    rows = []
    for row, label in enumerate(result.labels):
        summary = result.summary_of(label)
        difference = None if label == best else result.difference(label, best)
        rows.append(
            {
                "policy": label,
                "regret_mean": summary.mean,
                "regret_ci95": [summary.low, summary.high],
                "regret_ci95_method": summary.method,
                "regret_standard_error": summary.standard_error if math.isfinite(summary.standard_error) else None,
                "regret_quantiles": {
                    "0.05": summary.quantiles[0.05],
                    "0.5": summary.quantiles[0.5],
                    "0.95": summary.quantiles[0.95],
                },
                "reward_mean": float(result.reward(label)[:, -1].mean()),
                "best_set_share": result.best_share(label),
                "microseconds_per_round": float(np.median(result.seconds[row])) / result.study.rounds * 1e6,
                "difference_to_best": difference
                and {
                    "mean": difference.mean,
                    "ci95": [difference.low, difference.high],
                    "ci95_method": difference.method,
                    "smaller_share": difference.smaller_share,
                },
            }
        )
    return rows


def best_label(result: StudyResult) -> str:
    """The policy with the least mean regret; the first of equals."""
    return min(result.labels, key=lambda label: float(result.regret(label)[:, -1].mean()))


def _interval(ends: list[float], method: str, number: Callable[[float], str]) -> str:
    if method == "none":
        return NOT_KNOWN
    return " to ".join(map(number, ends)) + ("*" if method == "skewed" else "")


def _notes(result: StudyResult, best: str, several: bool, methods: set[str]) -> list[str]:
    study = result.study
    where = "depends on the context" if result.best_depends else action_words(result.best_do)
    notes = [
        f"Regret: lost rewards after {counted(study.rounds, 'round')}, mean of {counted(study.replications, 'run')}, "
        f"{sizes(study)}, seed {study.seed}.",
        f"Best set: {where}, with E[{study.model.target}] = {result.best:.4g}; its column is the share of rounds in "
        "which a best set was played.",
    ]
    if result.value_error:
        notes.append(
            f"The world is a function, so that regret is estimated: the value of a set is the average of "
            f"{getattr(study.model, 'samples', 0):,} draws, and what a set loses per round is known with a standard "
            f"error of at most {amount(result.value_error)}."
        )
    if methods & {"normal", "skewed"}:
        notes.append("Intervals are of the mean, 95%, by Student's t.")
    if "skewed" in methods:
        notes.append("Marked *: so few runs, and so skewed, that the interval holds less often than that.")
    if several:
        notes.append(
            f"The last columns compare with {best} run by run, on common random numbers: the difference in regret, and "
            "the share of runs in which the policy had the smaller one (a draw counts half)."
        )
    return notes


# -- the headline ----------------------------------------------------------------------------------------------------

_WELL_KNOWN = ("ucb", "eps-greedy", "kl-ucb", "lucb")  # policies, the best known first


def message(result: StudyResult, *, named: bool = True) -> str:
    """The study in a sentence, for instance "G1: BLM-LR loses 39 rewards in 10,000 rounds, UCB loses 637": the best
    beside the best-known policy that clearly lost to it, or the worst where nobody knows any of them.

    named: whether it begins with the name of the paper's graph.
    """
    name = paper_name(result.study.model) if named else None
    prefix = f"{name}: " if name else ""
    means = {label: float(result.regret(label)[:, -1].mean()) for label in result.labels}
    best, worst = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    rounds = counted(result.study.rounds, "round")
    loss = headline_amount(means[best])
    short = shortened_apart(result.labels, 40)
    lost = f"{short[best]} loses {loss} reward{'' if loss == '1.0' else 's'} in {rounds}"
    if len(means) == 1:
        return prefix + lost
    # One run has no interval: its low end is the difference itself.
    if best == worst or result.difference(worst, best).low <= 0:
        return f"{prefix}No clear winner after {rounds} and {counted(result.study.replications, 'run')}"
    other = _best_known(result, [label for label in means if result.difference(label, best).low > 0]) or worst
    return f"{prefix}{lost}, {short[other]} loses {headline_amount(means[other])}"


def _best_known(result: StudyResult, losers: list[str]) -> str | None:
    """The loser that most readers know, whom a headline compares with; None where there is none of these."""
    policies = result.study.policies
    return next((label for kind in _WELL_KNOWN for label in losers if policies[label].name == kind), None)


def explanation(result: StudyResult) -> str:
    """What the curves are."""
    study = result.study
    runs = (
        "One run of each policy."
        if study.replications == 1
        else f"Mean of {study.replications:,} runs on common random numbers; band: 95% interval of the mean."
    )
    return f"{runs} {sizes(study).capitalize()}. Lower is better."


def sizes(study: Study) -> str:
    """How many variables are set in a round."""
    allowed = study.problem.allowed()
    if study.rules.budget is None:
        return f"{allowed.sizes_in_words()}, at a cost of at most {study.rules.total_cost:g} per round"
    exactly = "exactly" if allowed.full_only and allowed.budget_alone else "at most"
    return f"{exactly} {counted(allowed.most + len(allowed.required), 'variable')} set in a round"


def paper_name(model: CausalModel) -> str | None:
    """G1..G5 for the paper's models."""
    return next((name for name, known in paper.MODELS.items() if known == model), None)
