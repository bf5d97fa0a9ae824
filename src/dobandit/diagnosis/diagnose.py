"""Whether the rounds bear out what a learner assumes: its predictions, its links, its weights' data, its graph."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dobandit.diagnosis.calibration import (
    Calibration,
    DiagnosisTimeoutError,
    Foretold,
    calibration_of,
    last_half,
    verdict_on,
)
from dobandit.diagnosis.cells import RoundsByVariable
from dobandit.diagnosis.mechanism_nodes import believed, by_mechanism, nodes_of, on_mechanisms
from dobandit.diagnosis.node_diagnosis import (
    CONTRADICTS,
    LEARNED,
    UNTESTED,
    NodeDiagnosis,
    VariableDiagnosis,
    corrected,
    diagnose_node,
    diagnose_variable,
)
from dobandit.errors import listed
from dobandit.policy.engine import Rounds
from dobandit.policy.graph_evidence import Finding, GraphEvidence
from dobandit.policy.learner import Learner
from dobandit.rows.batches import on_left_out
from dobandit.rows.export import document
from dobandit.texts import as_html, decimals

_MISSING = 0.1  # share of rounds that may miss a variable without a warning


@dataclass(frozen=True)
class Diagnosis:
    """Whether the rounds bear out what a policy assumes. Made by `Experiment.diagnose`.

    policy       what it is called;  rounds: how many were looked at
    verdict      on the predictions
    calibration  predicted against observed targets, over all trials
    recent       the calibration over the last half of the trials, on which the verdict rests
    nodes        by node: whether its link fits, and what can be told of its weights
    variables    by variable: how often it was missing, and set
    warnings     what speaks against the model, in sentences;  notes: what else there is to know
    graph        what the rounds say against the graph; not empty by chance in at most 1% of whole experiments, however
                 often one looks

    >>> import dobandit as dob
    >>> diagnosis = dob.create_experiment("checked", dob.paper.G4, budget=1, storage="memory").diagnose()
    >>> diagnosis.lines()
    ['0 rounds with CausalUCB.', 'There are no rounds yet.']
    >>> diagnosis.to_document()["rounds"], diagnosis.contradictions
    (0, ())
    """

    policy: str
    rounds: int
    verdict: str
    calibration: Calibration | None
    recent: Calibration | None
    nodes: tuple[NodeDiagnosis, ...]
    variables: tuple[VariableDiagnosis, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    graph: tuple[Finding, ...] = ()

    @property
    def contradictions(self) -> tuple[str, ...]:
        """The nodes whose rounds contradict their link."""
        return tuple(node.name for node in self.nodes if node.verdict == CONTRADICTS)

    def to_document(self) -> dict[str, Any]:
        """For JSON; null where nothing is known, or a number is infinite."""
        said: dict[str, Any] = document(asdict(self))
        return said

    def __str__(self) -> str:
        return "\n".join(self.lines())

    _repr_html_ = as_html

    def lines(self) -> list[str]:
        """The diagnosis in sentences, as the command prints them."""
        lines = [f"{self.rounds:,} rounds with {self.policy}.", *self.notes]
        if self.rounds:
            lines += [f"Predictions: {self.verdict}.", *calibration_lines(self.calibration, self.recent)]
            lines += [line for node in self.nodes for line in node_lines(node)]
            lines += [*graph_lines(self.graph), *self.warnings]
        return lines


def diagnose_rounds(learner: Learner, every: Rounds, foretold: Foretold, deadline: float = math.inf) -> Diagnosis:
    """Look at rounds, each as often as it counts, in any order; and at what was foretold of them, where it is known.
    Raises DiagnosisTimeoutError where the monotonic clock passes the deadline."""
    graph, continuous, problem = learner.graph, learner.problem.continuous, believed(learner)
    evidence = GraphEvidence(learner.problem)
    evidence.update(every)
    notes = [] if len(every.counts) else ["There are no rounds yet."]
    if learner.problem.selective and learner.keeps_model:
        enters = learner.problem.teaches(every.was_set)
        notes += [] if enters.all() else [on_left_out(learner.problem, int(every.counts[~enters].sum()))]
        every = every.part(enters)
    if continuous:  # numbers hardly repeat, and their tests take each round by itself
        rows = np.repeat(np.arange(len(every.counts)), every.counts)
        every = Rounds(every.values[rows], every.was_set[rows], np.ones(len(rows), dtype=np.int64))
    table, rounds = RoundsByVariable(every), int(every.counts.sum())
    mechanisms = RoundsByVariable(by_mechanism(problem, every))
    recent = calibration_of(*foretold.only(last_half(foretold.trial)), continuous)
    nodes: list[NodeDiagnosis] = []
    revisions = learner.revisions
    variables = tuple(diagnose_variable(name, v, table) for v, name in enumerate(graph.nodes, 1) if rounds)
    warnings = [
        f"{one.name!r} was not seen in {one.missing:.0%} of the rounds, which then tell nothing of it and of its "
        "direct effects. Record it, or leave it out of the graph."
        for one in variables
        if one.missing > _MISSING and one.name not in learner.problem.hidden
    ]
    if not learner.keeps_model:
        notes.append(f"{learner.label} keeps no model of the causes: there are no links and weights to check.")
    elif rounds:
        for name in nodes_of(learner):
            if time.monotonic() > deadline:
                raise DiagnosisTimeoutError
            node, warned = diagnose_node(learner, mechanisms, problem.graph.index(name))
            nodes.append(node)
            warnings += warned
        nodes = corrected(nodes)
        notes += [f"{what[0].upper()}{what[1:]}." for what in evidence.unwatched]
        notes += on_mechanisms(learner)
        notes += [f"The learner reckons with a cause that the graph lacks: {each.short}." for each in revisions]
    return Diagnosis(
        policy=learner.label,
        rounds=rounds,
        verdict=verdict_on(recent),
        calibration=calibration_of(*foretold, continuous),
        recent=recent,
        nodes=tuple(nodes),
        variables=variables,
        warnings=tuple(warnings),
        notes=tuple(notes),
        graph=tuple(evidence.findings()) if learner.keeps_model else (),
    )


# -- sentences -------------------------------------------------------------------------------------------------------


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
