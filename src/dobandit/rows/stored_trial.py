"""A trial as the log keeps it."""

from __future__ import annotations

from typing import NamedTuple, get_args, get_type_hints

PENDING, TOLD, FAILED, ABANDONED = "pending", "told", "failed", "abandoned"
STATES = (PENDING, TOLD, FAILED, ABANDONED)
ASKED, RECORDED, IMPORTED, RANDOMISED = SOURCES = ("asked", "recorded", "imported", "randomised")
OWN = (ASKED, RANDOMISED)  # what came of these trials is what their actions bring by themselves


class StoredTrial(NamedTuple):
    """A row of the log."""

    number: int
    source: str  # ASKED; RECORDED or IMPORTED; RANDOMISED: one of these two, in which the action was chosen at random
    do: str
    asked_after: int = 0  # how many trials were closed when it was asked
    available: str | None = None  # JSON list of names, where the asker limited the choice
    predicted: float | None = None  # E[target] under the estimate, when it was asked
    low: float | None = None
    high: float | None = None
    optimistic: float | None = None  # the value that made the policy choose it
    why: str = ""
    asked_at: float | None = None
    lease_expires: float | None = None  # None: never
    issued: int = 1  # times it was handed out
    state: str = PENDING
    position: int | None = None
    observation: str | None = None
    closed_at: float | None = None
    late: bool = False  # told after its lease ran out
    partial: bool = False  # some variable was not seen
    reason: str | None = None  # of a failure
    context: str | None = None  # what was known before it was asked, where the graph has a context
    size: int = 1  # how many rounds it was planned for
    control: bool = False  # nothing was set, for a comparison
    counts: str | None = None  # None: the observation is one row; otherwise a list of rows, and this how often each
    rounds: int = 1  # how many rounds were seen, where it was told


# What closing a trial changes, besides its position.
CLOSING = ("state", "observation", "counts", "rounds", "closed_at", "late", "partial", "reason")


class ClosedTrial(NamedTuple):
    """What a learner needs of a closed trial."""

    position: int
    number: int
    state: str
    do: str
    observation: str | None
    counts: str | None = None
    rounds: int = 1
    source: str = ASKED


def closed_trial(trial: StoredTrial, number: int, position: int) -> ClosedTrial:
    """A trial that is closed at this place of the log."""
    return ClosedTrial(
        position, number, trial.state, trial.do, trial.observation, trial.counts, trial.rounds, trial.source
    )


def types_of(row: type) -> dict[str, tuple[type, ...]]:
    """The types that a named tuple's annotations allow, by field."""
    return {name: get_args(hint) or (hint,) for name, hint in get_type_hints(row).items()}
