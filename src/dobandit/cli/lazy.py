"""Groups of commands that are imported when they are used, so that a help text or a `tell` waits for nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import cleandoc
from typing import Any

import click


class LazyGroup(click.Group):
    """Its commands are known by module, name and one line of help, which also begins the help of each command.

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.says[name]) for name in self.list_commands(ctx)])
