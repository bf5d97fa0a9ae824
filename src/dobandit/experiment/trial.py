"""What `ask` hands out and what `tell` gives back."""

from __future__ import annotations

from typing import NamedTuple

from dobandit.policy.base import Interval


class Trial(NamedTuple):
    """A round to carry out: set the variables of `do`, observe the rest, and tell the number what was seen.

    predicted      E[target] under today's estimate, with its confidence interval
    lease_expires  seconds since 1970 after which the trial may be handed to somebody else; None: never
    issued         how often it was handed out; above 1 its first lease ran out
    """

    number: int
    do: dict[str, float]
    predicted: float
    interval: Interval
    why: str
    lease_expires: float | None = None
    issued: int = 1


class Told(NamedTuple):
    """What became of a tell. `repeated`: the same was told before, and nothing was changed."""

    number: int
    late: bool
    partial: bool
    repeated: bool
