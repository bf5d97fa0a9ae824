"""Docstrings as Markdown: a list of names with what they mean becomes a table, an example becomes code.

In the sources a docstring lists arguments in two columns, and examples begin with >>>:

    budget         how many variables may be set
    rules, levers  what else is allowed, in as many lines as it takes; these begin
                   further right than the names
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

ENTRY = re.compile(r"^(?P<names>[A-Za-z_][\w.*]*(?:, [A-Za-z_][\w.*]*)*) {2,}(?P<says>\S.*)$")


class MarkdownDocstrings(griffe.Extension):
    """Rewrites every docstring when it is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and not obj.is_alias:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """The docstring with its columns as tables and its examples as code."""
    return "\n\n".join(_block(block) for block in re.split(r"\n[ \t]*\n", docstring.strip("\n")))


def _block(block: str) -> str:
    lines = block.split("\n")
    if lines[0].lstrip().startswith(">>>"):
        return "```pycon\n" + "\n".join(lines) + "\n```"
    parts = [_table(part) if is_list else "\n".join(part) for is_list, part in _parts(lines)]
    return "\n\n".join(parts)


def _parts(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines: those of a list (its entries, and what goes on further right), and those of a text."""
    part: list[str] = []
    within = False
    for line in lines:
        entry = _entry(line)
        is_list = entry is not None or (within and line.startswith("  "))
        if is_list != within and part:
            yield within, part
            part = []
        within = is_list
        part.append(line)
    if part:
        yield within, part


def _entry(line: str) -> re.Match[str] | None:
    return ENTRY.match(line)


def _table(lines: list[str]) -> str:
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        found = _entry(line)
        if found:
            entries.append((found["names"], [found["says"]]))
        else:
            entries[-1][1].append(line.strip())
    rows = [f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {_cell(says)} |" for names, says in entries]
    return "\n".join(["| | |", "|---|---|", *rows])


def _cell(says: list[str]) -> str:
    return " ".join(says).replace("|", "\\|")
