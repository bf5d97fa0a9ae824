"""The command reference: what `--help` says of every command, as one page."""

from __future__ import annotations

from collections.abc import Iterator

import click

from dobandit.cli.main import cli

WIDTH = 88
BEFORE = """# Commands

What `--help` says, command by command. Where a command prints a table for people, `--json` is for machines. Bad input
ends in one line on the error stream and exit code 2; [errors](errors.md) has the common ones.
"""


Help = tuple[tuple[str, ...], str]  # the words that call a command, and its help text


def reference() -> str:
    """The page, in Markdown."""
    parts = [BEFORE]
    for words, text in helps(cli, ("dobandit",)):
        parts.append(f"{'#' * min(len(words) + 1, 4)} {' '.join(words)}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def helps(command: click.Command, words: tuple[str, ...], parent: click.Context | None = None) -> Iterator[Help]:
    """The words that call each command, and its help text; a group stands before its commands."""
    settings = {**command.context_settings, "max_content_width": WIDTH, "terminal_width": WIDTH}
    context = click.Context(command, info_name=words[-1], parent=parent, **settings)
    yield words, command.get_help(context).rstrip()
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from helps(inner, (*words, name), context)
