"""Tables of a report, as text, Markdown and HTML; rows of numbers as a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any, NamedTuple

from dobandit.rows.export import optional_package
from dobandit.texts import aligned, columns, markdown, printable


class Table(NamedTuple):
    """Cells as text; the first column holds names, the others numbers."""

    columns: list[str]
    rows: list[list[str]]
    notes: Sequence[str] = ()

    def text(self, most: int | None = None) -> str:
        """For a terminal, notes below.

        most  characters that fit on its screen; default: any number
        """
        lines = aligned(self.columns, self.rows, range(1, len(self.columns)), most)
        width = max(60, *map(columns, lines)) if most is None else min(most, max(60, *map(columns, lines)))
        return "\n".join([*lines, "", *(line for note in self.notes for line in wrap(printable(note), width))])

    def markdown(self) -> str:
        """With its notes, names escaped."""
        lines = [
            "| " + " | ".join(map(markdown, self.columns)) + " |",
            "|---" + "|---:" * (len(self.columns) - 1) + "|",
            *("| " + " | ".join(map(markdown, row)) + " |" for row in self.rows),
        ]
        return "\n".join(lines) + "\n" + "".join(f"\n{markdown(note)}\n" for note in self.notes)

    def html(self) -> str:
        """With its notes. Where the screen is narrow, a row is a block whose cells name their columns."""
        head = "".join(f'<th scope="col">{escaped(column)}</th>' for column in self.columns)
        rows = "".join(
            f'<tr><th scope="row">{escaped(row[0])}</th>'
            + "".join(
                f'<td data-label="{escaped(column)}">{escaped(cell)}</td>'
                for column, cell in zip(self.columns[1:], row[1:], strict=True)
            )
            + "</tr>\n"
            for row in self.rows
        )
        notes = "".join(f'<p class="note">{escaped(note)}</p>' for note in self.notes)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>"
        return f'<div class="table">{table}</div>\n{notes}'


def escaped(text: str) -> str:
    return escape(printable(text))


def frame_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as a pandas DataFrame; what is inside of a field has a column of its own, such as "observed.mean"."""
    return optional_package("pandas", "pandas").json_normalize(list(rows))
