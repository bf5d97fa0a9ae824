"""What `ask` hands out and what `tell` gives back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple, TypedDict

from dobandit.policy.engine import Interval
from dobandit.rows.columns import Columns
from dobandit.rows.stored_trial import StoredTrial
from dobandit.texts import as_html, counted, in_a_sentence, setting_words, with_interval

Names = Iterable[str] | None  # of variables; None: all that the rules allow
Lease = float | timedelta | None  # seconds, or a timedelta; None: the experiment's


class AskWords(TypedDict, total=False):
    """What an ask may say by name: see `Experiment.ask`."""

    size: int
    control: bool | None
    context: Mapping[str, object] | None


class Trial(NamedTuple):
    """A round to carry out: set the variables of `do`, observe the rest, and tell the number what was seen.

    predicted      E[target] under today's estimate, with its confidence interval
    why            in a sentence, why this set
    lease_expires  seconds since 1970 after which the trial may be handed to somebody else; None: never
    issued         how often it was handed out; above 1 its first lease ran out
    context        what was known before it was asked
    size           how many rounds it is planned for: people, machines or days that all get the same
    control        nothing is set, so that the other rounds can be compared with doing nothing
    """

    number: int
    do: dict[str, float]
    predicted: float
    interval: Interval
    why: str
    lease_expires: float | None = None
    issued: int = 1
    context: dict[str, float] = {}  # noqa: RUF012 (a default that nobody writes to)
    size: int = 1
    control: bool = False

    def __str__(self) -> str:
        known = f" with {setting_words(self.context)}" if self.context else ""
        lines = [f"trial {self.number}: set {setting_words(self.do)}{known}"]
        lines += [f"  planned for {counted(self.size, 'round')}"] if self.size > 1 else []
        if not math.isnan(self.predicted):
            lines.append(f"  predicted {with_interval(self.predicted, *self.interval)}")
        return "\n".join([*lines, f"  {self.why}"])

    def _repr_html_(self) -> str:
        return as_html(self)


class Told(NamedTuple):
    """What became of a tell.

    number    the trial's
    late      it was told after its lease ran out
    partial   some variable was not seen
    repeated  the same was told before, and nothing was changed
    rounds    how many rounds were told, counts included
    missing   variables whose values were not told in some round, and would have taught more
    untaught  variables that these rounds say nothing about for that reason
    """

    number: int
    late: bool
    partial: bool
    repeated: bool
    rounds: int = 1
    missing: tuple[str, ...] = ()
    untaught: tuple[str, ...] = ()

    def __str__(self) -> str:
        partial = "partial"
        if self.missing:
            were = "was" if len(self.missing) == 1 else "were"
            partial += f": {in_a_sentence(self.missing)} {were} not told"
            nothing = f", so nothing was learned about {in_a_sentence(self.untaught)}"
            partial += nothing if self.rounds == 1 else " in some rounds"
        flags = {"late": self.late, "same as before": self.repeated, partial: self.partial}
        notes = ", ".join(word for word, holds in flags.items() if holds)
        rounds = "" if self.rounds == 1 else f" with {self.rounds:,} rounds"
        return f"trial {self.number} told{rounds}" + (f" ({notes})" if notes else "")

    def _repr_html_(self) -> str:
        return as_html(self)


def trial_of(stored: StoredTrial, columns: Columns) -> Trial:
    """A trial of the log, as `ask` gives it to somebody."""
    low, high = (0.0, 1.0) if stored.low is None or stored.high is None else (stored.low, stored.high)
    return Trial(
        number=stored.number,
        do=columns.decode(stored.do),
        predicted=math.nan if stored.predicted is None else stored.predicted,
        interval=Interval(low, high),
        why=stored.why if stored.issued == 1 else f"handed out again, because its lease ran out; {stored.why}",
        lease_expires=stored.lease_expires,
        issued=stored.issued,
        context={} if stored.context is None else columns.decode(stored.context),
        size=stored.size,
        control=stored.control,
    )
