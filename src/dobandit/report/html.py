"""A report as one page that opens offline: text, tables and figures (SVG) are all inside, and no script.

A page is made of sections: a heading, the message in a sentence, figures, a table and remarks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dobandit.errors import ReportError
from dobandit.report.style import CSS
from dobandit.report.tables import Table, escaped
from dobandit.text_files import write_atomically

if TYPE_CHECKING:
    from dobandit.report.figures import Figure


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    heading: str
    message: str = ""
    figures: Sequence[Figure] = ()
    table: Table | None = None
    remarks: Sequence[str] = ()


def report_html(sections: Iterable[Section], title: str, lead: str = "") -> str:
    """The whole page. Every text is escaped; figures are put in as they are drawn."""
    parts = list(sections)
    contents = ""
    if len(parts) > 1:
        links = "".join(
            f'<li><a href="#section{i}">{escaped(p.heading)}</a></li>' for i, p in enumerate(parts, start=1)
        )
        contents = f'<nav aria-label="Contents"><ul>{links}</ul></nav>'
    body = "\n".join(_section_html(part, i) for i, part in enumerate(parts, start=1))
    opening = f'<p class="lead">{escaped(lead)}</p>' if lead else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="dobandit">\n'
        f"<title>{escaped(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{escaped(title)}</h1>{opening}{contents}</header>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _section_html(section: Section, number: int) -> str:
    pictures = ""
    for figure in section.figures:
        caption = f"<figcaption>{escaped(figure.caption)}</figcaption>" if figure.caption else ""
        pictures += f'<figure aria-label="{escaped(figure.description)}">{caption}{figure.markup()}</figure>\n'
    remarks = "".join(f"<li>{escaped(remark)}</li>" for remark in section.remarks)
    return "\n".join(
        part
        for part in (
            f'<section id="section{number}">',
            f"<h2>{escaped(section.heading)}</h2>" if section.heading else "",
            f'<p class="message">{escaped(section.message)}</p>' if section.message else "",
            pictures,
            section.table.html() if section.table else "",
            f'<ul class="remarks">{remarks}</ul>' if remarks else "",
            "</section>",
        )
        if part
    )


def write_report(folder: str | os.PathLike[str], files: Mapping[str, str | bytes]) -> dict[str, Path]:
    """Write files into a folder, which is made where it does not exist; their paths by name."""
    home = report_folder(folder)
    for name, content in files.items():
        write_atomically(home / name, content)
    return {name: home / name for name in files}


def report_folder(folder: str | os.PathLike[str]) -> Path:
    """Where a report is written to; the folder is made where it does not exist."""
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"{home}: the folder cannot be made ({error.strerror}). Choose another one.") from None
    return home
