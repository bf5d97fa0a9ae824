"""A study's numbers as rows, and the rows as text for terminals, Markdown and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from dobandit.oracle.rules import Rules
from dobandit.report.regret_curves import message, sizes
from dobandit.simulation.result import StudyResult
from dobandit.texts import (
    NOT_KNOWN,
    action_words,
    amount,
    columns,
    counted,
    markdown,
    percent,
    printable,
    shortened_apart,
    signed,
    stacked,
)


class Table(NamedTuple):
    """Cells as text; the first column holds names, the others numbers."""

    columns: list[str]
    rows: list[list[str]]
    notes: Sequence[str] = ()


def best_label(result: StudyResult) -> str:
    """The policy with the least mean regret; the first of equals."""
    return min(result.labels, key=lambda label: float(result.regret(label)[:, -1].mean()))


def summary_table(result: StudyResult) -> list[dict[str, Any]]:
    """A row per policy, in the study's order; numbers as they are.

    The difference is this policy's regret minus that of the best, pair by pair; None for the best itself. Time is
    that of the median run, since the first one may wait for the compiler.
    """
    best = best_label(result)
    rows = []
    for row, label in enumerate(result.labels):
        summary = result.summary_of(label)
        difference = None if label == best else result.difference(label, best)._asdict()
        rows.append(
            {
                "policy": label,
                "mean": summary.mean,
                "low": summary.low,
                "high": summary.high,
                "method": summary.method,
                "standard_error": summary.standard_error,
                "median": summary.quantiles[0.5],
                "q05": summary.quantiles[0.05],
                "q95": summary.quantiles[0.95],
                "reward": float(result.reward(label)[:, -1].mean()),
                "best_share": result.best_share(label),
                "microseconds": float(np.median(result.seconds[row])) / result.study.rounds * 1e6,
                "difference": difference,
            }
        )
    return rows


def summary_document(result: StudyResult) -> dict[str, Any]:
    """The summary as JSON; what is not known (a standard error of one run) is null."""
    study = result.study
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
        "policies": {row["policy"]: _policy_document(row) for row in summary_table(result)},
    }


def _policy_document(row: dict[str, Any]) -> dict[str, Any]:
    difference = row["difference"]
    return {
        "regret_mean": row["mean"],
        "regret_ci95": [row["low"], row["high"]],
        "regret_ci95_method": row["method"],
        "regret_standard_error": row["standard_error"] if math.isfinite(row["standard_error"]) else None,
        "regret_quantiles": {"0.05": row["q05"], "0.5": row["median"], "0.95": row["q95"]},
        "reward_mean": row["reward"],
        "best_set_share": row["best_share"],
        "microseconds_per_round": row["microseconds"],
        "difference_to_best": difference
        and {
            "mean": difference["mean"],
            "ci95": [difference["low"], difference["high"]],
            "ci95_method": difference["method"],
            "smaller_share": difference["smaller_share"],
        },
    }


def summary_cells(result: StudyResult) -> Table:
    """The summary as people read it."""
    best = best_label(result)
    several = len(result.labels) > 1
    heads = ["Policy", "Regret", "95% interval", "Median", "5% to 95%", "Best set", "µs/round"]
    heads += ["More than best", "95% interval", "Beats best"] if several else []
    body, methods = [], set()
    for row in summary_table(result):
        methods.add(row["method"])
        cells = [
            row["policy"],
            amount(row["mean"]),
            _interval(row["low"], row["high"], row["method"], amount),
            amount(row["median"]),
            f"{amount(row['q05'])} to {amount(row['q95'])}",
            percent(row["best_share"]),
            amount(row["microseconds"]),
        ]
        if several:
            difference = row["difference"]
            if difference is None:
                cells += ["best", "", ""]
            else:
                methods.add(difference["method"])
                cells += [
                    signed(difference["mean"]),
                    _interval(difference["low"], difference["high"], difference["method"], signed),
                    percent(difference["smaller_share"]),
                ]
        body.append(cells)
    return Table(heads, body, _notes(result, best, several, methods))


def _interval(low: float, high: float, method: str, number: Callable[[float], str]) -> str:
    if method == "none":
        return NOT_KNOWN
    return f"{number(low)} to {number(high)}" + ("*" if method == "skewed" else "")


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


def summary_text(result: StudyResult, most: int | None = None) -> str:
    """The summary as an aligned table for a terminal, with the message above and notes below; where `most` characters
    are too few for the table, its cells stand under each other."""
    table = summary_cells(result)
    short = shortened_apart([row[0] for row in table.rows], 32)
    rows = [table.columns, *([short[row[0]], *row[1:]] for row in table.rows)]
    widths = [max(columns(row[i]) for row in rows) for i in range(len(table.columns))]
    lines = [_aligned(row, widths) for row in rows]
    lines.insert(1, "-" * (sum(widths) + 2 * (len(widths) - 1)))
    width, above = max(60, columns(lines[1])), [printable(message(result))]
    if most is not None and columns(lines[1]) > most:
        lines, width = stacked(rows[0], rows[1:], most), most
        above = wrap(above[0], most)
    return "\n".join([*above, "", *lines, "", *(w for n in table.notes for w in wrap(printable(n), width))])


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padding = [" " * (width - columns(cell)) for cell, width in zip(cells, widths, strict=True)]
    first, *others = zip(cells, padding, strict=True)
    return "  ".join([first[0] + first[1], *(pad + cell for cell, pad in others)]).rstrip()


def summary_markdown(result: StudyResult) -> str:
    """The summary as a Markdown section."""
    return f"## {markdown(message(result))}\n\n{table_markdown(summary_cells(result))}"


def table_markdown(table: Table) -> str:
    """A table with its notes, names escaped."""
    lines = [
        "| " + " | ".join(map(markdown, table.columns)) + " |",
        "|---" + "|---:" * (len(table.columns) - 1) + "|",
        *("| " + " | ".join(map(markdown, row)) + " |" for row in table.rows),
    ]
    return "\n".join(lines) + "\n" + "".join(f"\n{markdown(note)}\n" for note in table.notes)
