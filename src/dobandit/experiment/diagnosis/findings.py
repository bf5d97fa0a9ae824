"""A diagnosis in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from dobandit.errors import listed
from dobandit.experiment.diagnosis.calibration import Array, Calibration
from dobandit.experiment.diagnosis.nodes import CONTRADICTS, LEARNED, UNTESTED, NodeDiagnosis
from dobandit.policy.graph_evidence import Finding
from dobandit.policy.problem import Problem
from dobandit.texts import decimals

_MISSING = 0.1  # share of rounds that may miss a variable without a warning


def on_left_out(problem: Problem, rounds: int) -> str:
    """Rounds that a model must not learn from."""
    why = [f"{listed(problem.rules.always_set)} was not set"] if problem.rules.always_set else []
    why += [f"{listed(problem.hidden)} was set"] if problem.hidden else []
    return f"{rounds:,} rounds in which {' or '.join(why)} are left out: the model does not learn from them."


def on_missing(
    names: tuple[str, ...], seen: NDArray[np.bool_], counts: Array, aside: Collection[str] = ()
) -> Iterator[str]:
    for name, missing in zip(names, np.average(~seen[1:], axis=1, weights=counts).tolist(), strict=True):
        if missing > _MISSING and name not in aside:
            yield (
                f"{name!r} was not seen in {missing:.0%} of the rounds, which then tell nothing of it and of its "
                "direct effects. Record it, or leave it out of the graph."
            )


def calibration_lines(whole: Calibration | None, recent: Calibration | None) -> Iterator[str]:
    for title, part in (("All rounds", whole), ("Last half", recent)):
        if part:
            places = decimals(part.predicted, part.observed)
            yield (
                f"  {title} ({part.count:,}): predicted {part.predicted:.{places}f}, observed "
                f"{part.observed:.{places}f}, z = {part.z:+.2f}, Brier score {part.brier:.{decimals(part.brier)}f}."
            )
    if recent:
        yield "  The verdict rests on the last half: a learner's first predictions are off while it learns."
        places = decimals(*((row.low, row.high) for row in recent.bins))
        for row in recent.bins:
            yield (
                f"  predicted {row.predicted:.{places}f}: observed {row.observed:.{places}f} (95%: "
                f"{row.low:.{places}f} to {row.high:.{places}f}) in {row.rounds:,} rounds"
            )


def node_lines(node: NodeDiagnosis) -> Iterator[str]:
    if node.verdict == LEARNED:
        yield f"{node.name!r}: {node.rows:,} rows; its link is learned from them, pattern by pattern."
        return
    if not node.causes:
        yield f"{node.name!r}: {node.rows:,} rows; it has no causes, so that there is no link to test."
        return
    if node.verdict == UNTESTED or node.p is None or node.corrected is None:
        yield f"{node.name!r}: {node.rows:,} rows; its link cannot be tested on them: too few different causes seen."
        return
    verb = "contradict" if node.verdict == CONTRADICTS else "agree with"
    yield (
        f"{node.name!r}: {node.rows:,} rows {verb} its link (chi-square {node.statistic:.1f}, df {node.df}, "
        f"p = {node.p:.2g}, {node.corrected:.2g} with all nodes counted)."
    )
    if node.verdict == CONTRADICTS and node.worst is not None:
        worst = node.worst
        where = "where it is worst" if worst.ones is None else f"with {listed(worst.ones) or 'no cause'} at 1"
        places = decimals(worst.observed, worst.fitted)
        yield (
            f"  {where} it was {worst.observed:.{places}f} on average, fitted {worst.fitted:.{places}f}, in "
            f"{worst.count:,} rows. Another link, a missing cause or a wrong edge can be the reason."
        )


def graph_lines(found: tuple[Finding, ...]) -> Iterator[str]:
    for finding in found:
        yield f"The rounds speak against the graph (10^{finding.log10:.1f} to 1, {finding.rows:,} rows):"
        yield f"  {finding.advice}"
