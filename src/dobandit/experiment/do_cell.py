"""A cell that says which variables were set in its row: `intervention_targets`, or `do`.

Names are separated by commas, semicolons or spaces, or come as a list; what a variable was set to stands in its own
column then. A mapping (in a file: a JSON object, or price=0) says the values itself: {"price": 0}. Lists and mappings
may be spelled as Python prints them, which is how frames write them. An empty cell: nothing was set.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from dobandit.checks import absent, shown
from dobandit.errors import ParseError

DO_COLUMNS = ("intervention_targets", "do")
_SEPARATORS = r"[,;\s]+"
_NOTHING = ("none", "nothing", "na", "nan", "observational")


def read_do_cell(cell: Any, column: str, known: Collection[str], value_of: Callable[[str], Any]) -> dict[str, Any]:
    """What was set, by name, from a cell of `column`.

    known     the variables, one of which may be called like the words for nothing, or hold a space
    value_of  the value that the row has for a variable; None where it has none
    """
    said = _read(cell, column, known)
    if isinstance(said, Mapping):
        return {str(name): value for name, value in said.items()}
    found = {}
    for name in said:
        value = value_of(name) if name in known else 1  # an unknown name is for the columns to refuse
        if value is None:
            raise ParseError(
                f"{column!r} says that {name!r} was set, but the row does not say to what. Fill in its column, or "
                f'write {{"{name}": 1}} into {column!r}.'
            )
        found[name] = value
    return found


def _read(cell: Any, column: str, known: Collection[str]) -> Mapping[Any, Any] | list[str]:
    if isinstance(cell, Mapping):
        return cell
    if isinstance(cell, str):
        return _read_text(cell.strip(), column, tuple(known))
    if absent(cell):
        return []
    tolist = getattr(cell, "tolist", None)  # an array, as Parquet gives lists
    listed = tolist() if tolist is not None else cell
    names: list[Any] = list(listed) if isinstance(listed, Iterable) else [None]
    if all(isinstance(name, str) for name in names):
        return names
    raise _wrong(cell, column)


@lru_cache(maxsize=4096)  # few of thousands of rows differ in what was set
def _read_text(text: str, column: str, known: tuple[str, ...]) -> Mapping[Any, Any] | list[str]:
    if text in known:
        return [text]
    if not text or text.lower() in _NOTHING:
        return []
    if text[0] in "{[(":
        said = _literal(text)
        if isinstance(said, Mapping):
            return said
        if isinstance(said, list) and all(isinstance(name, str) for name in said):
            return said
        raise _wrong(text, column)
    parts = [part for part in re.split(_SEPARATORS, text) if part]
    pairs = [part.rpartition("=") for part in parts]
    if all(name in known and value in ("0", "1") for name, _, value in pairs):
        return {name: int(value) for name, _, value in pairs}
    return parts


def _literal(text: str) -> Any:
    """What a text in brackets says, as JSON or as Python prints it: a mapping or a list; None where it says nothing."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        said = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return sorted(said, key=str) if isinstance(said, set) else list(said) if isinstance(said, tuple) else said


def _wrong(cell: object, column: str) -> ParseError:
    return ParseError(
        f'{column!r} names the variables that were set, such as "email, price", or has a JSON object with their '
        f'values, such as {{"price": 0}}, but got {shown(cell)}.'
    )
