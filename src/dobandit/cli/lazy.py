"""Groups of commands that are imported when they are used, so that a help text or a `tell` waits for nothing else."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import click


class Home(NamedTuple):
    """Where a command is, and what the group's help says of it."""

    module: str
    function: str
    says: str


class LazyGroup(click.Group):
    """Its commands are known by name, home and one line of help; a test holds the lines against the commands' own."""

    def __init__(self, *arguments: Any, homes: dict[str, Home], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.homes:
            return None
        home = self.homes[cmd_name]
        command: click.Command = getattr(import_module(home.module), home.function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.homes[name].says) for name in self.list_commands(ctx)])
