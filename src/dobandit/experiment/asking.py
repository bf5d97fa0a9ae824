"""Asking: which trial comes next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Literal, overload

from dobandit.checks import is_whole, shown
from dobandit.errors import ExperimentError
from dobandit.experiment.choosing import Asked, Wish
from dobandit.experiment.definition import lease_seconds
from dobandit.experiment.known import KnownLog
from dobandit.experiment.tables import MOST_ROUNDS
from dobandit.experiment.trial import Trial

_MOST_AT_ONCE = 10_000


class AskedLog(KnownLog):
    """An experiment that can be asked."""

    @overload
    def ask(
        self,
        available: Iterable[str] | None = None,
        n: Literal[1] = 1,
        lease: float | timedelta | None = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial: ...

    @overload
    def ask(
        self,
        available: Iterable[str] | None = None,
        n: int = 1,
        lease: float | timedelta | None = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial | list[Trial]: ...

    def ask(
        self,
        available: Iterable[str] | None = None,
        n: int = 1,
        lease: float | timedelta | None = None,
        *,
        size: int = 1,
        control: bool | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Trial | list[Trial]:
        """The next trial to carry out; a list of trials where n > 1.

        available  the variables that can be set in this round; default: all that the rules allow
        n          how many trials to hand out
        lease      seconds, or a timedelta, after which an untold trial is handed out again; default: the experiment's
        size       how many rounds will be carried out with what the trial says, such as the people who are shown it
        control    True: nothing is set, required variables neither; False: no control round; default: the
                   experiment's share of control rounds decides, by the trial's own random number
        context    the value of each context variable, where the graph has some: {"mobile": 1}

        A pending trial whose lease ran out comes first, under its old number, where it fits: the same size, context
        and wish for a control round. Otherwise the policy chooses, with the news that pending trials are expected to
        bring counted in, so that parallel workers try different things.

        >>> import dobandit as dob
        >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
        >>> experiment = dob.create_experiment("several", graph, budget=1, storage="memory", policy="random")
        >>> [trial.number for trial in experiment.ask(n=2)]
        [0, 1]
        """
        if not is_whole(n) or not 1 <= n <= _MOST_AT_ONCE:
            raise ExperimentError(f"n must be a whole number from 1 to {_MOST_AT_ONCE:,}, but got {shown(n)}.")
        if not is_whole(size) or not 1 <= size <= MOST_ROUNDS:
            raise ExperimentError(
                f"size is how many rounds a trial is planned for, a whole number from 1 to {MOST_ROUNDS:,}, but got "
                f"{shown(size)}."
            )
        if control is not None and not isinstance(control, bool):
            raise ExperimentError(f"control is True, False or None, but got {shown(control)}.")
        known = self.columns.context_row(context)
        with self._alone():
            wish = Wish(
                self._names(available), int(size), control, None if known is None else self.columns.encode(known)
            )
            seconds = self.definition.lease if lease is None else lease_seconds(lease)
            now = self._clock()
            expires = None if seconds is None else max(now + seconds, math.nextafter(now, math.inf))
            trials = self._asked(Asked(wish, int(n), now, expires))
            held = {trial.number: trial.issued for trial in trials}
            self.storage.once_stored(lambda: self._held.update(held))
        return trials[0] if n == 1 else trials
