"""What is said of experiments as a whole: that they were created, which there are, and how far each is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dobandit.documents.plain import document
from dobandit.experiment.export import iso_time

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment
    from dobandit.experiment.status import Status
    from dobandit.experiment.storage.base import StoredExperiment


def created_document(experiment: Experiment, created: bool) -> dict[str, Any]:
    """created: False where it was there before."""
    return {
        "experiment": experiment.name,
        "storage": experiment.storage.url,
        "created": created,
        "definition": experiment.definition.document,
    }


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
    said: dict[str, Any] = document(status._asdict())
    return {**said, "created_at": iso_time(status.created_at), "last_told_at": iso_time(status.last_told_at)}


def shown_document(experiment: Experiment, status: Status) -> dict[str, Any]:
    """What an experiment is, and how far."""
    return {**status_document(status), "definition": experiment.definition.document}


def renamed_document(name: str, was: str) -> dict[str, Any]:
    return {"experiment": name, "was": was}


def deleted_document(name: str, deleted: bool) -> dict[str, Any]:
    return {"experiment": name, "deleted": deleted}
