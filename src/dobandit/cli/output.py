"""What commands print: JSON for machines, tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from dobandit.report.readable import printable

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


def print_json(document: object) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeError:  # a terminal without these letters, or half of a surrogate pair
        text = json.dumps(document, indent=2, allow_nan=False)
    click.echo(text)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, right: Iterable[int] = ()
) -> None:
    """A plain table; columns whose position is in `right` are aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def plain(text: str) -> Text:
        """Names may hold anything: nothing in them is markup, and control characters are shown, not obeyed."""
        return Text(printable(text))

    heading = None if title is None else Text(printable(title), style="bold")
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    aligned = set(right)
    for i, column in enumerate(columns):
        table.add_column(plain(column), justify="right" if i in aligned else "left", overflow="fold")
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    Console(highlight=False, soft_wrap=False).print(table)


def names(items: Sequence[str], most: int = 12) -> str:
    """Names for a table cell, cut where there are too many to read."""
    if not items:
        return "none"
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")
