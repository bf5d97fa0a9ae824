"""Whether the rounds bear out what a learner assumes: its predictions, its links, its weights' data, its graph."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dobandit.experiment.diagnosis.calibration import Calibration, calibration_of, last_half, verdict_on
from dobandit.experiment.diagnosis.findings import calibration_lines, graph_lines, node_lines, on_left_out, on_missing
from dobandit.experiment.diagnosis.link_test import RoundsByVariable
from dobandit.experiment.diagnosis.nodes import (
    CONTRADICTS,
    NodeDiagnosis,
    VariableDiagnosis,
    corrected,
    diagnose_node,
    diagnose_variable,
)
from dobandit.experiment.export import document
from dobandit.experiment.round_counts import Foretold
from dobandit.policy.engine import Rounds
from dobandit.policy.graph_evidence import Finding, GraphEvidence
from dobandit.policy.learner import Learner


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

    def lines(self) -> list[str]:
        """The diagnosis in sentences, as the command prints them."""
        lines = [f"{self.rounds:,} rounds with {self.policy}.", *self.notes]
        if self.rounds:
            lines += [f"Predictions: {self.verdict}.", *calibration_lines(self.calibration, self.recent)]
            lines += [line for node in self.nodes for line in node_lines(node)]
            lines += [*graph_lines(self.graph), *self.warnings]
        return lines


def diagnose_rounds(learner: Learner, every: Rounds, foretold: Foretold) -> Diagnosis:
    """Look at rounds, each as often as it counts, in any order; and at what was foretold of them, where it is known."""
    graph, continuous = learner.graph, learner.problem.continuous
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
    recent = calibration_of(*foretold.only(last_half(foretold.trial)), continuous)
    nodes: list[NodeDiagnosis] = []
    revisions = learner.engine.revisions
    warnings = list(on_missing(graph.nodes, table.seen, table.counts, learner.problem.hidden)) if rounds else []
    if not learner.keeps_model:
        notes.append(f"{learner.label} keeps no model of the causes: there are no links and weights to check.")
    elif rounds:
        for v in map(graph.index, learner.modelled):
            node, warned = diagnose_node(learner, table, v)
            nodes.append(node)
            warnings += warned
        nodes = corrected(nodes)
        notes += [f"{what[0].upper()}{what[1:]}." for what in evidence.unwatched]
        notes += [f"The learner reckons with a cause that the graph lacks: {each.short}." for each in revisions]
    variables = tuple(diagnose_variable(name, v, table) for v, name in enumerate(graph.nodes, 1) if rounds)
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
