"""What the rounds tell of each node, and of each variable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dobandit.estimation.confidence import holm
from dobandit.experiment.diagnosis.findings import on_weights
from dobandit.experiment.diagnosis.link_test import RoundsByVariable, cells_of, tested, zeta_of
from dobandit.experiment.diagnosis.parts import (
    AGREES,
    CONTRADICTS,
    LEARNED,
    LEVEL,
    NodeDiagnosis,
    VariableDiagnosis,
    Worst,
)
from dobandit.model.links import auto
from dobandit.oracle.frontier import MOST_PARENTS
from dobandit.policy.beliefs import NodeBelief
from dobandit.policy.learner import Learner


def diagnose_node(learner: Learner, table: RoundsByVariable, v: int) -> tuple[NodeDiagnosis, list[str]]:
    graph, continuous = learner.graph, learner.problem.continuous
    slots = slice(*graph.arrays.parent_ptr[v : v + 2].tolist())
    parents: list[int] = graph.arrays.parent[slots].tolist()
    named = [p for p in parents if p]
    cells, name = cells_of(table, v, parents, continuous), graph.nodes[v - 1]
    rows, M = int(cells.n.sum()), (cells.V * cells.n[:, None]).T @ cells.V
    identified = rows > 0 and bool(np.linalg.eigvalsh(M).min(initial=1.0) > 1e-9 * max(np.trace(M), 1.0))
    beliefs = learner.engine.beliefs()
    known = None if beliefs is None else beliefs.node(v)
    status = known.status if identified and known is not None else "singular"
    zeta = None if continuous else zeta_of(table, named)
    node = NodeDiagnosis(name, rows, identified, status, _lambda_min(known), zeta, causes=bool(named))
    warnings = list(on_weights(node, cells.V, [graph.nodes[p - 1] if p else "" for p in parents], continuous))
    if not rows:
        return node, warnings
    link = learner.problem.links[v - 1]
    if link == auto and not continuous and 0 < len(named) <= MOST_PARENTS:
        return replace(node, verdict=LEARNED), warnings
    found = tested(cells, link, continuous, learner.problem.effects == "nonnegative")
    if found is None:
        return node, warnings
    fitted, test = found
    at = np.flatnonzero(test.worst[1] == test.worst[0])
    count = float(cells.n[at].sum())
    ones = cells.V[at[0], len(parents) - len(named) :] if len(at) == 1 and not continuous else None
    worst = Worst(
        None if ones is None else tuple(graph.nodes[p - 1] for p, one in zip(named, ones, strict=True) if one),
        float(cells.total[at].sum() / count),
        float((cells.n * fitted)[at].sum() / count),
        int(count),
    )
    return replace(node, verdict=AGREES, statistic=test.statistic, df=test.df, p=test.p, worst=worst), warnings


def _lambda_min(known: NodeBelief | None) -> float | None:
    return max(float(np.linalg.eigvalsh(known.gram)[0]), 0.0) if known is not None and len(known.gram) else None


def corrected(nodes: list[NodeDiagnosis]) -> list[NodeDiagnosis]:
    """Holm's correction over the nodes that could be tested."""
    return [
        node if p is None else replace(node, corrected=p, verdict=CONTRADICTS if p < LEVEL else AGREES)
        for node, p in zip(nodes, holm([node.p for node in nodes]), strict=True)
    ]


def diagnose_variable(name: str, v: int, table: RoundsByVariable) -> VariableDiagnosis:
    own = table.values[v][table.seen[v] & ~table.was_set[v]]
    ends = (float(own.min()), float(own.max())) if len(own) else (None, None)
    times = table.counts.sum()
    missing, was_set = (float(rows @ table.counts / times) for rows in (~table.seen[v], table.was_set[v]))
    return VariableDiagnosis(name, missing, was_set, *ends)
