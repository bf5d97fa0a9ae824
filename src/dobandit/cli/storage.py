"""The option --storage of the commands on experiments, and the commands `storage backup` and `storage audit`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dobandit.cli.output import answer, json_option, print_json, print_table
from dobandit.errors import ExperimentError, MissingError, StorageError
from dobandit.storage import DEFAULT_STORAGE, Storage, open_storage
from dobandit.storage.access import AuditLine

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment

VARIABLE = "DOBANDIT_STORAGE"
_HELP = "Where experiments are kept: sqlite:///file.db or postgresql://user@host/database."


def _inherited(context: click.Context, _: click.Parameter, url: str | None) -> str:
    if url is not None or context.parent is None:
        return url or ""
    inherited: str = context.parent.params["storage"]
    return inherited


# Before the command's name, and in the environment.
group_storage_option = click.option(
    "--storage",
    metavar="URL",
    envvar=VARIABLE,
    default=DEFAULT_STORAGE,
    show_default=True,
    show_envvar=True,
    help=_HELP,
)
# After the command's name; without it, what stands before the name, or in the environment.
storage_option = click.option("--storage", metavar="URL", callback=_inherited, help=_HELP)


def usual_storage() -> str:
    """The storage of a command without --storage."""
    return os.environ.get(VARIABLE) or DEFAULT_STORAGE


@contextmanager
def kept(url: str) -> Iterator[Storage]:
    """A storage for the time of a command."""
    storage = open_storage(url)
    if storage.url == "memory":
        raise StorageError(
            f"A command's storage must outlive the command, but {url!r} does not. "
            f"Use a file, such as --storage {DEFAULT_STORAGE}."
        )
    with closing(storage):
        yield storage


@contextmanager
def opened(name: str, url: str) -> Iterator[Experiment]:
    """An experiment for the time of a command."""
    from dobandit.experiment.catalogue import open_experiment

    with kept(url) as storage:
        try:
            experiment = open_experiment(name, storage)
        except ExperimentError as error:
            raise ExperimentError(f"{error} See `dobandit experiment list`, or say where with --storage.") from None
        yield experiment


def _id_of(name: str, storage: Storage) -> int:
    found = storage.find(name)
    if found is None:
        raise MissingError(f"there is no experiment {name!r} in {storage.url}. See `dobandit experiment list`.")
    return found.id


@click.group("storage")
@group_storage_option
def storage_group(storage: str) -> None:
    """\b
    Examples:
      dobandit storage backup copy.db
      dobandit storage audit --json
    """


@storage_group.command("backup")
@click.argument("file", type=click.Path())
@storage_option
@json_option
def backup_command(file: str, storage: str, as_json: bool) -> None:
    """Copy an SQLite storage to a new FILE while others go on writing to it.

    The copy is a storage like any other: --storage sqlite:///FILE. For PostgreSQL use pg_dump.

    \b
    Examples:
      dobandit storage backup copy.db
      dobandit storage backup --storage sqlite:///spring.db backups/spring-monday.db
    """
    with kept(storage) as place:
        place.backup(Path(file))
        size = Path(file).stat().st_size
    said = f"{place.url} copied to {file} ({max(size // 1024, 1):,} kB)"
    answer(as_json, {"storage": place.url, "file": file, "bytes": size}, said)


@storage_group.command("audit")
@click.option("--after", type=click.IntRange(0, 2**63 - 1), default=0, help="Only lines with larger numbers.")
@click.option("--experiment", metavar="NAME", help="Only of this experiment.")
@storage_option
@json_option
def audit_command(after: int, experiment: str | None, storage: str, as_json: bool) -> None:
    """List who changed what over HTTP, and when, and who made and revoked tokens.

    \b
    Examples:
      dobandit storage audit
      dobandit storage audit --experiment spring --json
    """
    from dobandit.documents.live import audit_document
    from dobandit.rows.export import iso_time

    with kept(storage) as place:
        of = None if experiment is None else _id_of(experiment, place)
        lines: list[AuditLine] = []
        while page := place.audit(lines[-1].number if lines else after, 1000, of):
            lines += page
    if as_json:
        print_json([audit_document(line) for line in lines])
    elif not lines:
        click.echo("no changes")
    else:
        cells = [
            (
                str(one.number),
                (iso_time(one.at) or "")[:19].replace("T", " "),
                one.who,
                one.what,
                one.name or "",
                one.detail,
            )
            for one in lines
        ]
        print_table(["number", "at", "who", "what", "experiment", "detail"], cells, right=[0])
