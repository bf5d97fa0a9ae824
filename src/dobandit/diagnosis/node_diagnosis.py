"""What the rounds tell of each node, and of each variable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dobandit.diagnosis.cells import RoundsByVariable, cells_of, zeta_of
from dobandit.diagnosis.link_test import tested
from dobandit.diagnosis.mechanism_nodes import believed
from dobandit.errors import listed
from dobandit.estimation.confidence import holm
from dobandit.model.links import auto
from dobandit.oracle.frontier import MOST_PARENTS
from dobandit.policy.engine import Array
from dobandit.policy.learner import Learner
from dobandit.policy.questions import Believes

LEVEL = 0.01  # chance that some node of a right model is said to contradict its data
AGREES, CONTRADICTS, UNTESTED = "agrees", "contradicts", "cannot be tested"
LEARNED = "is learned"  # by pattern of its causes: whatever it looks like, no row contradicts it


@dataclass(frozen=True)
class Worst:
    """Where a node is furthest from its link; ones: the parents at 1, None where patterns were pooled."""

    ones: tuple[str, ...] | None
    observed: float
    fitted: float
    count: int


@dataclass(frozen=True)
class NodeDiagnosis:
    """A node's data. identified: some data would have told other weights apart.  lambda_min: of the learner's M.

    p, corrected: of the test of its link, alone and by Holm among all nodes.
    zeta: the least share of a parent's value given the other parents, where no parent was set (Assumption 3).
    """

    name: str
    rows: int
    identified: bool
    status: str
    lambda_min: float | None
    zeta: float | None
    verdict: str = UNTESTED
    statistic: float | None = None
    df: int = 0
    p: float | None = None
    corrected: float | None = None
    worst: Worst | None = None
    causes: bool = True  # whether it has any


@dataclass(frozen=True)
class VariableDiagnosis:
    """Shares of the rounds in which it was not seen, and was set; its extremes where it was seen and not set."""

    name: str
    missing: float
    was_set: float
    least: float | None
    most: float | None


def diagnose_node(learner: Learner, table: RoundsByVariable, v: int) -> tuple[NodeDiagnosis, list[str]]:
    problem, continuous = believed(learner), learner.problem.continuous
    graph = problem.graph
    slots = slice(*graph.arrays.parent_ptr[v : v + 2].tolist())
    parents: list[int] = graph.arrays.parent[slots].tolist()
    named = [p for p in parents if p]
    cells, name = cells_of(table, v, parents, continuous), graph.nodes[v - 1]
    rows, M = int(cells.n.sum()), (cells.V * cells.n[:, None]).T @ cells.V
    identified = rows > 0 and bool(np.linalg.eigvalsh(M).min(initial=1.0) > 1e-9 * max(np.trace(M), 1.0))
    beliefs = learner.engine.beliefs() if isinstance(learner.engine, Believes) else None
    known = None if beliefs is None else beliefs.node(v)
    status = known.status if identified and known is not None else "singular"
    zeta = None if continuous else zeta_of(table, named)
    least = max(float(np.linalg.eigvalsh(known.gram)[0]), 0.0) if known is not None and len(known.gram) else None
    node = NodeDiagnosis(name, rows, identified, status, least, zeta, causes=bool(named))
    warnings = list(on_weights(node, cells.V, [graph.nodes[p - 1] if p else "" for p in parents], continuous))
    if not rows:
        return node, warnings
    link = problem.links[v - 1]
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


def on_weights(node: NodeDiagnosis, V: Array, parents: list[str], continuous: bool) -> Iterator[str]:
    """Why a node's weights cannot be told, and the way out. `parents`: '' is the constant."""
    if not node.rows:
        yield (
            f"No round tells of {node.name!r}: it was set, or it or one of its causes was not seen, in every one. "
            "Leave it unset in some rounds, and record its causes."
        )
    elif node.status == "separable":
        yield f"The rounds that tell of {node.name!r} ask for infinite weights. More rounds will settle them."
    if not node.rows or node.identified:
        return
    ends = zip(V.min(axis=0).tolist(), V.max(axis=0).tolist(), parents, strict=True)
    fixed = {name: low for low, high, name in ends if low == high and name}
    rounds = f"in every round that tells of {node.name!r}"
    for name, value in fixed.items():
        if value == 0.0:
            yield f"{name!r} was 0 {rounds}: its effect was never seen. Set it in some rounds."
        elif "" in parents:
            effect = f"its effect cannot be told from the bias of {node.name!r}"
            yield f"{name!r} was {value:g} {rounds}: {effect}. Have it at 0 in some rounds, by do if need be."
    alike: dict[bytes, list[str]] = {}
    for j, name in enumerate(parents):
        if name and (name not in fixed or (fixed[name] and "" not in parents)):
            alike.setdefault(V[:, j].tobytes(), []).append(name)
    for names in alike.values():
        if len(names) > 1:
            yield f"{listed(names)} were equal {rounds}: their effects cannot be told apart. Set one without the other."
    if not fixed and all(len(names) == 1 for names in alike.values()):
        what = "values" if continuous else "patterns"
        yield f"The causes of {node.name!r} showed too few {what} to tell its weights apart. Set other combinations."


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
