"""What is said of trials that are asked for, told, closed otherwise, recorded and imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dobandit.documents.plain import document
from dobandit.experiment.export import iso_time
from dobandit.experiment.storage.base import ABANDONED, FAILED

if TYPE_CHECKING:
    from dobandit.experiment.trial import Told, Trial


def trial_document(trial: Trial) -> dict[str, Any]:
    """A trial that was handed out."""
    return _numbered({**trial._asdict(), "lease_expires": iso_time(trial.lease_expires)})


def told_document(told: Told) -> dict[str, Any]:
    return _numbered(told._asdict())


def failed_document(trial: int, reason: str) -> dict[str, Any]:
    return {"trial": trial, "state": FAILED, "reason": reason}


def abandoned_document(trial: int) -> dict[str, Any]:
    return {"trial": trial, "state": ABANDONED}


def recorded_document(trial: int) -> dict[str, Any]:
    return {"trial": trial}


def imported_document(numbers: range, rounds: int) -> dict[str, Any]:
    return {"rounds": rounds, "first": numbers[0], "last": numbers[-1]}


def _numbered(fields: dict[str, Any]) -> dict[str, Any]:
    """With the number first, as `trial`."""
    said: dict[str, Any] = document({"trial": fields["number"], **fields})
    del said["number"]
    return said
