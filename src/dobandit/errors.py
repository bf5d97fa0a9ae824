"""The package's errors. Every message says the rule, what was given, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from dobandit import texts


class DobanditError(Exception):
    """Base of every error that dobandit raises on purpose.

    message  the rule, what was given, and what to do; it is made harmless (`texts.message`), since it repeats what
             users and files gave
    marked   the same, before keywords that it names are spelled (`texts.keyword`): for a message that holds this one
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(texts.message(texts.for_python(message)))
        self.marked = message


class GraphError(DobanditError, ValueError):
    """A causal graph breaks a rule."""


class ModelError(DobanditError, ValueError):
    """A model's weights, links or noise break a rule.

    message       what is wrong
    node, parent  where, so that files can say so too
    """

    def __init__(self, message: str, *, node: str | None = None, parent: str | None = None) -> None:
        super().__init__(message)
        self.node, self.parent = node, parent


class InterventionError(DobanditError, ValueError):
    """A do(...) names a variable or a value that cannot be set."""


class InferenceError(DobanditError, ValueError):
    """An expectation cannot be computed in the way that was asked for."""


class ObservationError(DobanditError, ValueError):
    """An observation names a variable or a value that cannot be."""


class SimulationError(DobanditError, ValueError):
    """A study's parts break a rule, or a saved study cannot be used."""


class ReportError(DobanditError, ValueError):
    """A figure or a page cannot be drawn or written as asked."""


class PolicyError(DobanditError, ValueError):
    """A policy's settings break a rule, or do not fit the problem."""


class ExperimentError(DobanditError, ValueError):
    """An experiment, or one of its trials, does not exist, exists already, or cannot do what is asked."""


class ConflictError(ExperimentError):
    """A trial is already closed in another way; nothing was changed."""


class MissingError(ExperimentError):
    """There is no such experiment, or no such trial."""


class TakenError(ExperimentError):
    """The name belongs to another experiment."""


class StorageError(DobanditError, RuntimeError):
    """A storage cannot be reached, read or written; what was acknowledged before is safe."""


class ServiceError(DobanditError, RuntimeError):
    """A service does not let this client in, or answers in a way that it does not know."""


class ParseError(DobanditError, ValueError):
    """A file is malformed.

    message       what is wrong
    line, column  the place, from 1;  where: a JSON path instead
    source        the file
    """

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        where: str | None = None,
        source: str | None = None,
    ) -> None:
        place = where or (f"line {line}, column {column}" if line is not None else None)
        prefix = ": ".join(part for part in (source, place) if part)
        super().__init__(f"{prefix}: {message}" if prefix else message)
        self.message, self._unplaced = texts.for_python(message), message
        self.line, self.column, self.where, self.source = line, column, where, source

    def in_source(self, source: str) -> ParseError:
        """A copy of this error that names the file it came from.

        source  the file

        >>> str(ParseError("a row is missing.", line=2, column=1).in_source("data.csv"))
        'data.csv: line 2, column 1: a row is missing.'
        """
        return ParseError(self._unplaced, line=self.line, column=self.column, where=self.where, source=source)


def located(text: str, at: int, message: str) -> ParseError:
    """The error of offset `at`, with its line and column."""
    line = 1 + text.count("\n", 0, at) + text.count("\r", 0, at) - text.count("\r\n", 0, at)
    column = at - max(text.rfind("\n", 0, at), text.rfind("\r", 0, at))
    return ParseError(message, line=line, column=column)


class DobanditWarning(UserWarning):
    """Something legal that is probably not what was meant."""

    def __init__(self, message: str = "") -> None:
        super().__init__(texts.for_python(message))
        self.marked = message


def closest(name: object, known: Iterable[str]) -> str:
    """A hint for a misspelt name: " Did you mean 'X3'?", or nothing when no name is near."""
    if not isinstance(name, str):
        return ""
    candidates = [other for other in list(known)[:10_000] if len(other) <= 200]
    matches = [other for other in candidates if other.casefold() == name.casefold()]
    matches = matches or difflib.get_close_matches(name[:200], candidates, n=1, cutoff=0.6)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names for a message: quoted, and cut where there are too many to read."""
    items = list(names)
    shown = ", ".join(repr(name) for name in items[:most])
    return shown + (f" and {len(items) - most} more" if len(items) > most else "")
