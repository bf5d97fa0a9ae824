"""What an oracle is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from dobandit.errors import InterventionError
from dobandit.graph.causal_graph import CausalGraph


@dataclass(frozen=True)
class OracleResult:
    """A set with its certificate: no set is worth more than `bound`."""

    set: tuple[str, ...]
    value: float
    bound: float
    status: str  # "optimal" or "approximate"
    oracle: str
    seconds: float


def require_budget(graph: CausalGraph, budget: int) -> int:
    """The budget as an int from 0 to the number of controllable variables."""
    most = len(graph.controllable)
    if isinstance(budget, bool) or not hasattr(budget, "__index__") or not 0 <= budget <= most:
        raise InterventionError(
            f"budget must be a whole number from 0 to {most} (the controllable variables), but got {budget!r}. "
            "Lower it, or make more variables controllable."
        )
    return int(budget)
