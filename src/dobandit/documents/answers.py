"""What is said where somebody asks what an experiment has learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dobandit.documents.plain import document

if TYPE_CHECKING:
    from dobandit.experiment.answers import BestObserved, EdgeEstimate
    from dobandit.experiment.diagnosis import Diagnosis
    from dobandit.experiment.experiment import Experiment
    from dobandit.experiment.explanation import Explanation
    from dobandit.policy.answers import Recommendation


def recommendation_document(recommended: Recommendation, observed: BestObserved | None) -> dict[str, Any]:
    """The model's answer, and apart from it the data's."""
    said: dict[str, Any] = document({**recommended._asdict(), "best_observed": observed})
    return said


def evaluation_document(evaluated: Recommendation) -> dict[str, Any]:
    said: dict[str, Any] = document(evaluated)
    return said


def observed_document(observed: BestObserved | None) -> dict[str, Any] | None:
    said: dict[str, Any] | None = document(observed)
    return said


def explanation_document(told: Explanation) -> dict[str, Any]:
    said: dict[str, Any] = document(told)
    return {"trial": said.pop("number"), **said}


def estimates_document(rows: Sequence[EdgeEstimate]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = document(rows)
    return said


def promises_document(experiment: Experiment) -> dict[str, Any]:
    """What intervals and guaranteed gaps promise."""
    return {"interval_words": experiment.interval_words, "delta": experiment.delta}


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    said: dict[str, Any] = document(diagnosis.to_document())
    return said
