"""The arrays that an engine can reach: two engines in two threads must not write to the same one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.policy.engine import Engine
from dobandit.policy.problem import Problem

_NEVER_CHANGE = (Problem, CausalGraph, str, bytes, type)


def contents(engine: Engine) -> list[tuple[NDArray[Any], bytes]]:
    """Every array, with what is in it now."""
    return [(array, array.tobytes()) for array in _arrays(engine, set())]


def _arrays(value: Any, seen: set[int]) -> Iterator[NDArray[Any]]:
    if id(value) in seen or isinstance(value, _NEVER_CHANGE):
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield value
        return
    if isinstance(value, Mapping):
        parts: Any = value.values()
    else:
        parts = (
            value if isinstance(value, (tuple, list)) else vars(value).values() if hasattr(value, "__dict__") else ()
        )
    for part in list(parts):
        yield from _arrays(part, seen)
