"""What the pages of an experiment show, computed once for each state of the log."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import NamedTuple

from dobandit import limits
from dobandit.diagnosis.calibration import DiagnosisTimeoutError
from dobandit.diagnosis.diagnose import node_lines
from dobandit.diagnosis.node_diagnosis import CONTRADICTS
from dobandit.errors import DobanditError
from dobandit.experiment.answers import BestObserved, EdgeEstimate, edge_estimates
from dobandit.experiment.experiment import Experiment
from dobandit.experiment.stretches import CONTEXTS, Contexts, Stretches
from dobandit.policy.answers import Recommendation
from dobandit.policy.learner import Learner
from dobandit.service.error_responses import told_to_visitors
from dobandit.service.service_settings import Settings
from dobandit.storage.contract import StoredExperiment

_KEPT = 4 * CONTEXTS  # answers
_LOG = "log"  # the task of reading it
_USUAL = Settings()


class Known(NamedTuple):
    """What was known after `position` closed trials; best: what was recommended then, where that is asked for."""

    position: int
    rounds: int = 0
    estimates: Sequence[EdgeEstimate] = ()
    best: Recommendation | None = None


class Answers(NamedTuple):
    """What the model says, and what the data alone say; `trouble` where the policy cannot answer."""

    recommendation: Recommendation | None
    observed: BestObserved | None
    findings: tuple[str, ...] = ()  # what speaks against the model, from the diagnosis
    trouble: str = ""
    closed: int = 0  # how many trials were closed then


class Segment(NamedTuple):
    """A context, the told rounds that were in it, and what is said of it; None where that is still worked out."""

    context: Mapping[str, float]
    rounds: int
    answers: Answers | None


class PageCache:
    """Of one experiment. Safe to use from several threads."""

    def __init__(self, experiment: Experiment, settings: Settings = _USUAL) -> None:
        self.experiment, self.settings = experiment, settings
        self.state, self.number = experiment.log.state, experiment.log.experiment
        self.stretches, self.contexts = Stretches(experiment.columns), Contexts()
        self.history: Sequence[Known] = [Known(0)]  # what was known at the checkpoints, and now
        self._log_lock = threading.Lock()  # of who reads the log
        self._lock = threading.Lock()  # of all that is below
        self._answers: dict[object, Answers] = {}
        self._seconds = 0.0  # that the last answers took
        self._tasks: dict[object, Callable[[], object]] = {}  # of the thread; the one at work is first

    # -- the log ---------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """How many closed trials the pages know of."""
        return self.history[-1].position

    @property
    def rounds(self) -> int:
        """How many rounds these had."""
        return self.history[-1].rounds

    @property
    def keeps_model(self) -> bool:
        """Whether the policy learns what causes do."""
        return self.experiment.definition.learner.keeps_model

    @property
    def read(self) -> int:
        """How many closed trials were read, while they are: by the learner, and then for the sums."""
        return (self.state.position + self.stretches.position) // 2

    def follow(self) -> None:
        """Read on to the end of the log; waits for a thread that is at it."""
        with self._log_lock:
            with self.state.asking:
                self.state.follow()
                now = self.state.learner.copy()
            self.stretches.follow(self.state.storage, self.number, now.position)
            before = {known.position: known for known in self.history}
            way = [one for one in self.state.checkpoints.kept if one.position < now.position]
            known = [before.get(one.position) or _known(one.position, one.learner) for one in (*way, now)]
            self.contexts = self.stretches.contexts()
            self.history = [self._begin, *known] if now.position else [self._begin]

    def at(self, position: int, context: Mapping[str, float] | None = None) -> Known:
        """What was known after so many closed trials; with what was recommended then, where a context is given, which
        is empty if the graph has none."""
        with self.state.answering:
            then = self.state.then(min(position, self.position))
            found = _known(then.position, then.learner)
            if context is None or not found.rounds:
                return found
            return found._replace(best=then.learner.best(context=dict(context) or None))

    @cached_property
    def _begin(self) -> Known:
        return _known(0, self.experiment.definition.learner.copy())

    # -- work that nobody waits for --------------------------------------------------------------------------------

    def _do_later(self, key: object, task: Callable[[], object]) -> None:
        """Let the thread do it, after what it has to do already."""
        with self._lock:
            idle = not self._tasks
            self._tasks.setdefault(key, task)
        if idle:
            threading.Thread(target=self._work, name=f"pages {self.number}", daemon=True).start()

    def _work(self) -> None:
        while True:
            key, task = next(iter(self._tasks.items()))
            with suppress(DobanditError):  # the next page meets the same, and says it
                task()
            time.sleep(self._seconds)  # in which others ask and tell
            with self._lock:
                del self._tasks[key]
                if not self._tasks:
                    return

    def ready(self, stored: StoredExperiment) -> bool:
        """Whether the log is read, or an earlier state of it can be shown. A short rest is read at once; a long one by
        the thread, while pages say so."""
        if stored.closed - self.position > self.settings.read_at_once:
            self._do_later(_LOG, self._read)
        if _LOG in self._tasks:
            return bool(self._answers)
        self.follow()
        return True

    def _read(self) -> None:
        """The log, and the answers that pages begin with."""
        self.follow()
        self._work_out(self.usual)

    # -- answers ---------------------------------------------------------------------------------------------------

    @property
    def usual(self) -> dict[str, float]:
        """The context that pages begin with: the one seen most often, and zeros where none was seen."""
        return self._contexts(1)[0][0]

    def _contexts(self, most: int) -> Sequence[tuple[dict[str, float], int]]:
        return self.contexts.most[:most] or [(dict.fromkeys(self.experiment.graph.context, 0.0), 0)]

    def segments(self, most: int = CONTEXTS, seconds: float = math.inf) -> list[Segment]:
        """What is said of the contexts seen most often; none where the graph has no context.

        seconds  for which a visitor waits; the rest is worked out by a thread
        """
        if not self.experiment.graph.context:
            return []
        shown = self._contexts(most)
        answers = self._several([context for context, _ in shown], time.monotonic() + seconds)
        return [Segment(*one, found) for one, found in zip(shown, answers, strict=True)]

    def answers(self, context: Mapping[str, float]) -> Answers:
        """Worked out when a trial was closed since. Where that takes long, a thread does it, and the answers before are
        given meanwhile; they say how many trials they know of."""
        return self._several([context], math.inf)[0] or self._work_out(context)

    def _several(self, contexts: Sequence[Mapping[str, float]], until: float) -> list[Answers | None]:
        found = []
        for context in contexts:
            answers = self._answers.get(_key(context))
            if answers is None or answers.closed < self.position:
                slow = answers is not None and self._seconds > self.settings.newer_seconds
                if slow or time.monotonic() > until:
                    self._do_later(_key(context), partial(self._work_out, context))
                else:
                    answers = self._work_out(context)
            found.append(answers)
        return found

    def _work_out(self, context: Mapping[str, float]) -> Answers:
        closed, began = self.position, time.perf_counter()
        given = dict(context) if self.experiment.graph.context else None
        observed = self.experiment.best_observed(context=given)
        try:
            found = Answers(self.experiment.recommend(context=given), observed, self._findings(), closed=closed)
        except DobanditError as error:
            found = Answers(None, observed, trouble=told_to_visitors(error, self.experiment.storage), closed=closed)
        with self._lock:
            if len(self._answers) >= _KEPT:
                self._answers.clear()
            self._answers[_key(context)] = found
            self._seconds = time.perf_counter() - began
        return found

    def _findings(self) -> tuple[str, ...]:
        """Failing diagnoses only. Where they take long, `diagnose` says them when it is asked to."""
        try:
            with self.state.answering:
                told = self.state.diagnosis(self.state.now(), limits.DIAGNOSIS_SECONDS)
        except DiagnosisTimeoutError:
            return ()
        nodes = [line for node in told.nodes if node.verdict == CONTRADICTS for line in node_lines(node)]
        return (*nodes, *(finding.advice for finding in told.graph), *told.warnings)


def _key(context: Mapping[str, float]) -> object:
    return tuple(sorted(context.items()))


def _known(position: int, learner: Learner) -> Known:
    return Known(position, learner.rounds, edge_estimates(learner) if learner.keeps_model else ())
