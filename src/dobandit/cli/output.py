"""What commands share: groups that import a command when it is used, JSON for machines, and tables for people."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import cleandoc
from typing import Any

import click

from dobandit.errors import closest
from dobandit.texts import aligned, printable, printable_lines

several = partial(click.option, multiple=True, metavar="NAME")  # an option that may be repeated

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, so that a help text or a `tell` waits for nothing else.
    They are known by module, name and one line of help, which also begins the help of each command.

    homes  by module, by name: that line; the docstring of the command is the rest of its help
    """

    def __init__(self, *arguments: Any, homes: Mapping[str, Mapping[str, str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._module = {name: module for module, commands in homes.items() for name in commands}
        self.says = {name: says for commands in homes.values() for name, says in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.says)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._module:
            return None
        known = vars(import_module(f"dobandit.cli.{self._module[cmd_name]}")).values()
        command = next(one for one in known if isinstance(one, click.Command) and one.name == cmd_name)
        rest = cleandoc(command.help or "")
        if not rest.startswith(self.says[cmd_name]):
            command.help = f"{self.says[cmd_name]}\n\n{rest}"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:  # click knows only commands that are imported
            raise click.UsageError(error.message + closest(args[0], self.says), ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.says[name]) for name in self.list_commands(ctx)])


def say(text: str) -> None:
    """A line of text; control characters in names, paths and addresses are shown, not obeyed."""
    click.echo(printable(text))


def print_json(document: object) -> None:
    """JSON in which letters stand as they are, and what a terminal would obey (U+202E, U+009B, DEL) is escaped."""
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    text = "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeError:  # a terminal without these letters, or half of a surrogate pair
        text = json.dumps(document, indent=2, allow_nan=False)
    click.echo(text)


def _escaped(character: str) -> str:
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]  # DEL is ASCII, which JSON leaves alone


def answer(as_json: bool, document: object, text: str | Callable[[], None]) -> None:
    """What a command has to say: JSON for machines; for people a line, or what a function prints."""
    if as_json:
        print_json(document)
    elif callable(text):
        text()
    else:
        say(text)


def print_text(text: str) -> None:
    """A file's text: as it stands into a pipe or file, and harmless at a terminal."""
    if sys.stdout.isatty():
        text = printable_lines(text)
    click.echo(text, nl=not text.endswith("\n"))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, right: Sequence[int] = ()
) -> None:
    """A plain table; columns whose position is in `right` are aligned to the right."""
    above = [] if title is None else [printable(title)]
    click.echo("\n".join([*above, *aligned(columns, rows, right, screen_width()), ""]))


def screen_width() -> int | None:
    """How many characters fit on a line of the terminal; None where there is none."""
    return shutil.get_terminal_size((0, 0)).columns or None


def names(items: Sequence[str], most: int = 10) -> str:
    """Names for a table cell, cut where there are too many to read."""
    if not items:
        return "none"
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")


def quiet(as_json: bool) -> bool:
    """No progress bar where nobody looks: in JSON mode, or when standard error is not a terminal."""
    return as_json or not sys.stderr.isatty()
