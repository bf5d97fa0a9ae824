"""What is said of live experiments: trials, answers, how far each is, who changed what, and who may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dobandit.rows.export import document, iso_time
from dobandit.storage.access import AuditLine, StoredToken
from dobandit.storage.contract import StoredExperiment

if TYPE_CHECKING:
    from dobandit.experiment.answers import BestObserved
    from dobandit.experiment.experiment import Experiment
    from dobandit.experiment.explanation import Explanation
    from dobandit.experiment.status import Status
    from dobandit.policy.answers import Recommendation
    from dobandit.rows.trial import Told, Trial

# -- trials ------------------------------------------------------------------------------------------------------


def trial_document(trial: Trial, interval_words: str) -> dict[str, Any]:
    """A trial that was handed out, and what its interval promises."""
    said = {"lease_expires": iso_time(trial.lease_expires), "interval_words": interval_words}
    return {**numbered_document(trial), **said}


def numbered_document(value: Trial | Told | Explanation) -> dict[str, Any]:
    """What has the number of a trial: that comes first, as `trial`."""
    said = document(value)
    return {"trial": said.pop("number"), **said}


def imported_document(numbers: range, rounds: int, warnings: Sequence[str]) -> dict[str, Any]:
    return {"rounds": rounds, "first": numbers[0], "last": numbers[-1], "warnings": list(warnings)}


def explanation_document(told: Explanation, interval_words: str) -> dict[str, Any]:
    """Why a trial set what it set, and what its interval promises."""
    return {**numbered_document(told), "interval_words": interval_words}


# -- answers -----------------------------------------------------------------------------------------------------


def recommendation_document(recommended: Recommendation, observed: BestObserved | None) -> dict[str, Any]:
    """The model's answer, and apart from it the data's."""
    return {**document(recommended), "best_observed": document(observed)}


# -- experiments as a whole --------------------------------------------------------------------------------------


def listed_document(stored: StoredExperiment) -> dict[str, Any]:
    """One of a list."""
    return {
        "name": stored.name,
        "created_at": iso_time(stored.created_at),
        "trials": stored.trials,
        "closed": stored.closed,
        "pending": stored.trials - stored.closed,
    }


def status_document(status: Status) -> dict[str, Any]:
    times = {"created_at": iso_time(status.created_at), "last_told_at": iso_time(status.last_told_at)}
    return {**document(status), **times}


def shown_document(experiment: Experiment, status: Status) -> dict[str, Any]:
    """An experiment's settings and progress."""
    return {**status_document(status), "definition": experiment.definition.document}


# -- changes and tokens ------------------------------------------------------------------------------------------


def audit_document(line: AuditLine) -> dict[str, Any]:
    """A line of the audit."""
    return {**line._asdict(), "at": iso_time(line.at)}


def token_document(token: StoredToken, now: float) -> dict[str, Any]:
    """A token, without its hash."""
    state = "revoked" if token.revoked_at is not None else "valid" if token.valid(now) else "expired"
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "experiment": token.experiment,
        "state": state,
        "created_at": iso_time(token.created_at),
        "expires_at": iso_time(token.expires_at),
        "revoked_at": iso_time(token.revoked_at),
    }
