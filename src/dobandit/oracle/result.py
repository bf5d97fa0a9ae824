"""What an oracle answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OracleResult:
    """An action with its certificate: no allowed action is worth more than `bound`.

    do        what to set, and to what, by name;  set: the names alone
    value     E[Y] under it
    bound     what no allowed action exceeds
    status    "optimal": proved; "approximate": the best that was found, worth at least `factor` of the best where a
              factor is known
    oracle    which one found it, in how many `seconds`
    explored  actions looked at;  top: the best actions with their values, best first, as many as were asked for

    >>> import dobandit as dob
    >>> found = dob.solve(dob.paper.G4, budget=1)
    >>> found.set, found.status, found.bound == found.value
    (('X2',), 'optimal', True)
    """

    do: dict[str, float]
    value: float
    bound: float
    status: str
    oracle: str
    seconds: float
    factor: float | None = None
    explored: int = 0
    top: tuple[tuple[dict[str, float], float], ...] = ()

    @property
    def set(self) -> tuple[str, ...]:
        """The variables that are set, in the graph's order."""
        return tuple(self.do)
