"""Any value of dobandit's as JSON can say it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_PLAIN = (str, int, bool, type(None))


def document(value: Any) -> Any:
    """As JSON can say it: tuples with names become objects, intervals pairs, and NaN and infinity null."""
    if type(value) in _PLAIN:
        return value
    if hasattr(value, "_asdict"):
        fields = value._asdict()
        return [document(end) for end in value] if tuple(fields) == ("low", "high") else document(fields)
    if isinstance(value, Mapping):
        return {str(key): document(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [document(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
