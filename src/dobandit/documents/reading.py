"""From JSON back to what Python gives: trials, answers, diagnoses. What was null for want of a number is NaN or None
again; which of the infinities it was is not known any more, but for the ends of intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dobandit.experiment.answers import BestObserved, EdgeEstimate
from dobandit.experiment.diagnosis.parts import Bin, Calibration, NodeDiagnosis, VariableDiagnosis, Worst
from dobandit.experiment.explanation import Explanation, RunnerUp
from dobandit.experiment.paths import Path
from dobandit.experiment.rounds import Columns
from dobandit.experiment.row_texts import batch_text
from dobandit.experiment.status import Mean, Status
from dobandit.experiment.storage.base import StoredExperiment, StoredTrial
from dobandit.experiment.trial import Told, Trial
from dobandit.policy.answers import Observed, Recommendation, Worth
from dobandit.policy.engine import Interval
from dobandit.policy.graph_evidence import Finding

Document = Mapping[str, Any]


def seconds_of(text: str | None) -> float | None:
    """ISO 8601 as seconds since 1970."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def trial_of(said: Document) -> Trial:
    fields = {**said, "number": said["trial"], "lease_expires": seconds_of(said["lease_expires"])}
    del fields["trial"]
    return Trial(**{**fields, "predicted": _number(said["predicted"]), "interval": _interval(said["interval"])})


def told_of(said: Document) -> Told:
    fields = {key: value for key, value in said.items() if key != "trial"}
    lists = {key: tuple(said[key]) for key in ("missing", "untaught")}
    return Told(**{**fields, "number": said["trial"], **lists})


def stored_trial_of(row: Document, columns: Columns) -> StoredTrial:
    """A row of the log as it is stored, but for times, which JSON has to the millisecond."""

    def encoded(values: Document) -> str:
        return columns.encode([values.get(name) for name in columns.names])

    seen, counts = row["observation"], None
    if isinstance(seen, Mapping):
        seen = encoded(seen)
    elif seen is not None:
        seen, counts = batch_text({encoded(one): one[columns.count_key] for one in seen})
    low, high = row["interval"] or (None, None)
    times = {key: seconds_of(row[key]) for key in ("asked_at", "lease_expires", "closed_at")}
    kept = {key: value for key, value in row.items() if key in StoredTrial._fields}
    return StoredTrial(
        **{
            **kept,
            **times,
            "number": row["trial"],
            "do": encoded(row["do"]),
            "observation": seen,
            "counts": counts,
            "low": low,
            "high": high,
            "available": None if row["available"] is None else json.dumps(row["available"], ensure_ascii=False),
            "context": None if row["context"] is None else encoded(row["context"]),
            "rounds": 1 if row["rounds"] is None else row["rounds"],
        }
    )


def recommendation_of(said: Document) -> Recommendation:
    fields = {key: value for key, value in said.items() if key != "best_observed"}
    return Recommendation(
        **{
            **fields,
            "value": _number(said["value"]),
            "interval": _interval(said["interval"]),
            "nothing": _spread(Worth, said["nothing"]),
            "uplift": _spread(Worth, said["uplift"]),
            "observed": _spread(Observed, said["observed"]),
            "warnings": tuple(said["warnings"]),
        }
    )


def best_observed_of(said: Document | None) -> BestObserved | None:
    found: BestObserved | None = _spread(BestObserved, said)
    return found


def explanation_of(said: Document) -> Explanation:
    fields = {key: value for key, value in said.items() if key != "trial"}
    paths = [Path(tuple(path["names"]), path["from_bias"], path["contribution"]) for path in said["paths"]]
    second = said["runner_up"]
    return Explanation(
        **{
            **fields,
            "number": said["trial"],
            "interval": _interval(said["interval"]),
            "paths": tuple(paths),
            "runner_up": None if second is None else RunnerUp(second["do"], _number(second["optimistic"])),
        }
    )


def estimates_of(said: Sequence[Document]) -> list[EdgeEstimate]:
    ends = {"value": math.nan, "low": -math.inf, "high": math.inf}
    return [
        EdgeEstimate(**{**row, **{key: other if row[key] is None else row[key] for key, other in ends.items()}})
        for row in said
    ]


def status_of(said: Document, storage: str) -> Status:
    """storage: where it is, for this reader."""
    fields = {key: value for key, value in said.items() if key in Status._fields}
    return Status(
        **{
            **fields,
            "storage": storage,
            "created_at": seconds_of(said["created_at"]),
            "last_told_at": seconds_of(said["last_told_at"]),
            "control": _spread(Mean, said["control"]),
            "treated": _spread(Mean, said["treated"]),
        }
    )


def listed_of(said: Document) -> StoredExperiment:
    """One of a list; what it is made of is not part of that."""
    created = seconds_of(said["created_at"]) or 0.0
    return StoredExperiment(said["id"], said["name"], "", created, said["trials"], said["closed"])


def diagnosis_of(said: Document) -> Any:
    from dobandit.experiment.diagnosis import Diagnosis

    return Diagnosis(
        **{
            **said,
            "calibration": _calibration(said["calibration"]),
            "recent": _calibration(said["recent"]),
            "nodes": tuple(NodeDiagnosis(**{**node, "worst": _worst(node["worst"])}) for node in said["nodes"]),
            "variables": tuple(VariableDiagnosis(**variable) for variable in said["variables"]),
            "warnings": tuple(said["warnings"]),
            "notes": tuple(said["notes"]),
            "graph": tuple(_finding(finding) for finding in said["graph"]),
        }
    )


def _finding(said: Any) -> Finding:
    return Finding(**said) if isinstance(said, Mapping) else Finding(*said)


def _calibration(said: Document | None) -> Calibration | None:
    if said is None:
        return None
    bins = tuple(Bin(**one) if isinstance(one, Mapping) else Bin(*one) for one in said["bins"])
    return Calibration(**{**said, "z": _number(said["z"]), "bins": bins})


def _worst(said: Document | None) -> Worst | None:
    if said is None:
        return None
    return Worst(**{**said, "ones": None if said["ones"] is None else tuple(said["ones"])})


def _spread(kind: Any, said: Document | None) -> Any:
    """A tuple with names, one of which is an interval."""
    return None if said is None else kind(**{**said, "interval": _interval(said["interval"])})


def _interval(said: Sequence[float | None]) -> Interval:
    low, high = said
    return Interval(-math.inf if low is None else low, math.inf if high is None else high)


def _number(value: float | None) -> float:
    return math.nan if value is None else value
