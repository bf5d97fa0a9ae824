"""JSON text to Python values, more strictly than the standard library, and JSON paths for messages.

Refused: a key that stands twice in an object, NaN and Infinity (also as 1e999), nesting beyond the limit.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from dobandit import limits
from dobandit.errors import ParseError, located

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_PARTS = re.compile(
    r'(?P<text>"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+")(?P<colon>\s*+:)?+|(?P<bracket>[\[{\]}])|(?P<word>[-+\w.]++)'
)


def load_json(text: str) -> object:
    """The value of a JSON text; ParseError with line and column where it is malformed."""
    if len(text) > limits.MAX_BYTES:
        raise ParseError(f"a file has at most {limits.MAX_BYTES} bytes, but this text has {len(text)} characters.")
    if text.count("[") + text.count("{") > limits.MAX_EDGES + limits.MAX_NODES:  # each costs memory
        raise ParseError("the text has more brackets than any graph within the limits. Split the graph.")
    try:
        value = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        found = "the text ends here" if error.pos >= len(text) else f"found {text[error.pos]!r}"
        why = error.msg[:1].lower() + error.msg[1:]
        raise located(text, error.pos, f"this is no JSON: {why}, but {found}.") from None
    except (RecursionError, ValueError):  # of `_unique` too, which knows no place: `_fault` finds it
        raise _fault(text) from None
    if not _is_sound(value):
        raise _fault(text)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _is_sound(value: object) -> bool:
    """Whether numbers are finite and brackets do not nest too deep. Breadth first: a deep value needs no deep stack."""
    level = [value]
    for _ in range(limits.MAX_DEPTH + 1):
        if any(type(inner) is float and not math.isfinite(inner) for inner in level):
            return False
        outer = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))]
        level = [inner for values in outer for inner in values]
        if not level:
            return True
    return False


def _fault(text: str) -> ParseError:
    """Go through a refused text again, slowly, for the place of its fault."""
    open_keys: list[set[str]] = []
    for part in _PARTS.finditer(text):
        at = part.start()
        if part["bracket"] in ("{", "["):
            open_keys.append(set())
            if len(open_keys) > limits.MAX_DEPTH:
                return located(text, at, f"brackets nest at most {limits.MAX_DEPTH} deep. Write a flatter file.")
        elif part["bracket"]:
            open_keys[-1:] = []
        elif part["colon"] and open_keys:
            key = json.loads(part["text"])
            if key in open_keys[-1]:
                return located(text, at, f"a key stands once in its object, but {key!r} stands twice. Keep one.")
            open_keys[-1].add(key)
        elif part["word"] and not _is_plain(part["word"]):
            return located(text, at, f"numbers are finite, but found {part['word'][:40]}. Write a finite number.")
    return ParseError("this is no JSON that can be read.")


def _is_plain(word: str) -> bool:
    """Whether a word of JSON is a literal or a finite number of a length that Python converts."""
    try:
        return word in ("true", "false", "null") or (len(word) < 4000 and math.isfinite(float(word)))
    except ValueError:
        return False


def fault_at(message: str, *steps: str | int) -> ParseError:
    """An error that tells the place of a value."""
    return ParseError(message, where=json_path(*steps))


def json_path(*steps: str | int) -> str:
    """The place of a value: `$.edges[3][1]`, `$.nodes["a b"].bias`."""
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if _IDENTIFIER.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"
    return path
