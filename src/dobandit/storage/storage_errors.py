"""The errors of every storage, and names and texts that every storage takes."""

from __future__ import annotations

from dobandit.errors import ConflictError, ExperimentError, MissingError, StorageError, TakenError, closest
from dobandit.rows.stored_trial import StoredTrial

NOTHING_STORED = "Nothing of this was stored."
_LONGEST = 200


def storable(text: str) -> bool:
    """Whether both databases take this text: PostgreSQL has no NUL, and UTF-8 has no lone surrogates."""
    return "\0" not in text and text.encode("utf-8", "ignore").decode() == text


def checked_name(name: str) -> str:
    """The name itself, or ExperimentError."""
    rule = f"An experiment's name must have 1 to {_LONGEST} characters, not all of them blank"
    if not isinstance(name, str) or not name.strip():
        raise ExperimentError(f"{rule}, but got {name!r}. Give it a name such as 'spring'.")
    if len(name) > _LONGEST:
        raise ExperimentError(f"{rule}, but got {len(name)} that begin with {name[:20]!r}. Shorten it.")
    if not storable(name):
        raise ExperimentError(
            f"{rule}, and none that a database cannot keep, but got {name!r}. Leave out the NUL or lone surrogate."
        )
    return name


def missing(name: str, known: list[str], url: str) -> ExperimentError:
    return MissingError(
        f"There must be an experiment of that name, but {url} has none named {name!r}."
        f"{closest(name, known) or ' List the experiments to see their names.'}"
    )


def taken(name: str, url: str) -> ExperimentError:
    return TakenError(
        f"A name belongs to one experiment, but {url} already has one named {name!r}. Choose another name, or open "
        "that one."
    )


def deleted(experiment: int, url: str) -> ExperimentError:
    return MissingError(
        f"The experiment must still exist, but {url} has none with id {experiment} any more; it was deleted. "
        "Open another one by name."
    )


def damaged(experiment: int, url: str) -> StorageError:
    return StorageError(
        f"{url}: the log of experiment {experiment} is damaged: some trials are missing. Restore it from a backup."
    )


def unreadable(url: str, what: str) -> StorageError:
    return StorageError(f"{url} is damaged: {what}. {NOTHING_STORED} Restore it from a backup.")


def not_pending(number: int, trial: StoredTrial | None) -> ExperimentError:
    if trial is None:
        return MissingError(f"The trial must exist, but there is no trial {number}. Look up the trials' numbers.")
    return ConflictError(
        f"Only a pending trial can be closed or handed out again, but trial {number} is {trial.state}; nothing was "
        "changed."
    )
