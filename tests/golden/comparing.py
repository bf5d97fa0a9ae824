"""Answers as JSON without sentences, and where two of them differ."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = 1e-9
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
RECORDED = Path(__file__).parent / "recorded"
# Sentences, times and how far a search went are no goldens.
_LEFT_OUT = {
    "why", "warnings", "notes", "doubts", "interval_words", "form", "sentence", "advice", "in_words", "ways_on",
    "hide_note", "lines_only", "refused_by", "storage", "created_at", "last_told_at", "seconds", "explored", "level",
    "lease_expires",
}  # fmt: skip


def plain(value: Any) -> Any:
    """An answer as JSON: named tuples and dataclasses become objects, intervals pairs, NaN and infinity texts."""
    if isinstance(value, (str, bool, int, type(None))):
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if not math.isfinite(number):
            return str(number)
        return int(number) if number == int(number) and abs(number) < 1e15 else number
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items() if key not in _LEFT_OUT}
    if hasattr(value, "_asdict"):
        named = value._asdict()
        return [plain(end) for end in value] if tuple(named) == ("low", "high") else plain(named)
    if is_dataclass(value):
        return plain({field.name: getattr(value, field.name) for field in fields(value)})
    return [plain(inner) for inner in value]


def action_text(do: Mapping[str, float]) -> str:
    """An action in a word: "ad mail price=0", whatever the order of the names."""
    return " ".join(sorted(name if value == 1 else f"{name}={value:g}" for name, value in do.items()))


def choices(actions: Iterable[Mapping[str, float]]) -> dict[str, Any]:
    """The actions of many rounds: a letter each, and what the letters stand for."""
    texts = [action_text(do) for do in actions]
    names = list(dict.fromkeys(texts))
    return {
        "letters": dict(zip(_LETTERS, names, strict=False)),
        "rounds": "".join(_LETTERS[names.index(t)] for t in texts),
    }


def _spelt(chosen: Mapping[str, Any]) -> list[str]:
    return [chosen["letters"][letter] for letter in chosen["rounds"]]


def differences(expected: Any, got: Any, path: str = "") -> Iterator[str]:
    """Where `got` lacks something of `expected` or has something else there. It may have more keys."""
    if isinstance(expected, dict) and isinstance(got, dict) and {"letters", "rounds"} <= expected.keys() & got.keys():
        one, other = _spelt(expected), _spelt(got)
        if one != other:
            t = next((t for t, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
            yield f"{path}: the choices differ from round {t} on: expected {one[t : t + 3]}, got {other[t : t + 3]}"
    elif isinstance(expected, dict) and isinstance(got, dict):
        for key, inner in expected.items():
            if key not in got:
                yield f"{path}/{key}: expected {_short(inner)}, but it is missing"
            else:
                yield from differences(inner, got[key], f"{path}/{key}")
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            yield f"{path}: expected {len(expected)} entries, got {len(got)}"
        for number, (one, other) in enumerate(zip(expected, got, strict=False)):
            yield from differences(one, other, f"{path}/{number}")
    elif not _same(expected, got):
        yield f"{path}: expected {_short(expected)}, got {_short(got)}"


def _same(expected: Any, got: Any) -> bool:
    numbers = [type(one) in (int, float) for one in (expected, got)]
    if all(numbers):
        return abs(expected - got) <= TOLERANCE * max(1.0, abs(expected))
    return type(expected) is type(got) and expected == got


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else text[:117] + "..."


def report(expected: Any, got: Any, most: int = 12) -> str:
    """The first differences, one a line; "" where there are none."""
    found = list(differences(expected, got))
    more = [f"... and {len(found) - most} more"] if len(found) > most else []
    return "\n".join([*found[:most], *more])


@cache
def read(group: str) -> dict[str, Any]:
    """The recorded answers of a group, by case."""
    return json.loads((RECORDED / f"{group}.json").read_text(encoding="utf-8"))


def write(group: str, cases: Mapping[str, Mapping[str, Any]]) -> Path:
    """Record a group: a line for each answer of each case."""
    parts = []
    for name, answers in cases.items():
        lines = [f"    {json.dumps(key)}: {json.dumps(answer)}" for key, answer in answers.items()]
        parts.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    path = RECORDED / f"{group}.json"
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    return path
