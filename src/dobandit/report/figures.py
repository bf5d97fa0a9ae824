"""Figures: drawings with a title and a caption, shown on pages and in notebooks, and saved as PNG, SVG, PDF or HTML.

Everything is drawn as SVG by `report.svg`. vl-convert (the extra `plots`) makes PNG and PDF of it.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dobandit.errors import ReportError
from dobandit.report.html import Section, report_html
from dobandit.report.style import file_style
from dobandit.report.svg.elements import Panel, element, number, words
from dobandit.text_files import path_of, write_atomically
from dobandit.texts import breadth, printable

_SCALE = 2.0  # PNG pixels per unit
_MARGIN, _APART, _LEAST_WIDTH = 18.0, 24.0, 560.0  # pixels


@dataclass(frozen=True)
class Figure:
    """A picture that saves itself, and shows itself in a notebook. Made by `chart` of a result.

    title        what it says, in a sentence; may be empty
    caption      what to know to read it
    description  for those who cannot see it
    """

    title: str
    caption: str
    description: str
    panels: tuple[Panel, ...]

    def save(self, path: str | os.PathLike[str], *, dark: bool = False) -> None:
        """Write the picture, in the format of the path's suffix; the file appears whole or not at all.

        path  ends in .png, .svg, .pdf or .html
        dark  whether it is for a dark background; a page (.html) follows its reader

        >>> import dobandit as dob
        >>> import tempfile
        >>> study = dob.simulate(dob.paper.G4, [dob.UCB()], rounds=20, replications=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study.chart().save(f"{folder}/regret.svg")
        ...     [path.name for path in Path(folder).iterdir()]
        ['regret.svg']
        """
        suffix = Path(path_of(path)).suffix.lower()
        if suffix not in _WRITERS:
            raise ReportError(f"a figure's file ends in {', '.join(_WRITERS)}, but got {path_of(path)!r}.")
        write_atomically(path, _WRITERS[suffix](self, dark))

    def svg(self, dark: bool = False) -> str:
        """The picture as SVG text: title, caption, and the panels side by side.

        dark  whether it is for a dark background
        """
        drawings = [panel.wide for panel in self.panels]
        inner = max(_LEAST_WIDTH, sum(one.width for one in drawings) + _APART * (len(drawings) - 1))
        lines: list[str] = []
        y = _MARGIN
        for text, kind, size in ((printable(self.title), "title", 18), (printable(self.caption), "caption", 13)):
            y += 5.0 if lines else 0.0
            letters = inner / (0.6 * size) * len(text) / max(breadth(text), 1.0)  # in a line
            for line in textwrap.wrap(text, int(letters)) if text else []:
                y += 1.3 * size
                lines.append(words(_MARGIN, y - 7.0, line, class_=kind))
        y += 12.0 if lines else 0.0
        groups, x = [], _MARGIN
        for one in drawings:
            groups.append(element("g", one.content, transform=f"translate({number(x)} {number(y)})"))
            x += one.width + _APART
        width, height = math.ceil(inner + 2 * _MARGIN), math.ceil(y + max(one.height for one in drawings) + _MARGIN)
        return element(
            "svg",
            element("style", file_style(dark))
            + element("rect", class_="paper", width=width, height=height)
            + "".join(lines + groups),
            xmlns="http://www.w3.org/2000/svg",
            class_="drawn",
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
            role="img",
            aria_label=self.description,
        )

    def png(self, dark: bool = False) -> bytes:
        return bytes(_converter().svg_to_png(self.svg(dark), scale=_SCALE))

    def pdf(self, dark: bool = False) -> bytes:
        return bytes(_converter().svg_to_pdf(self.svg(dark)))

    def html(self) -> str:
        """A page of its own: it opens offline, and follows light and dark and the width of its screen."""
        return report_html([Section("", figures=[self])], self.title or self.description)

    def markup(self) -> str:
        """For a page with the style of `report.style`: the panels without title and caption."""
        panels = [panel.markup() for panel in self.panels]
        return panels[0] if len(panels) == 1 else f'<div class="panels"><div>{"</div><div>".join(panels)}</div></div>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return "Figure(.save('figure.png') writes PNG, SVG, PDF or HTML)"


_WRITERS: dict[str, Callable[[Figure, bool], str | bytes]] = {
    ".png": Figure.png,
    ".svg": Figure.svg,
    ".pdf": Figure.pdf,
    ".html": lambda figure, dark: figure.html(),
}


def _converter() -> Any:
    """The package that makes PNG and PDF of SVG."""
    try:
        return import_module("vl_convert")
    except ImportError:
        raise ReportError(
            "PNG and PDF need the 'plots' extra, but vl_convert is missing. Install dobandit[plots], or save .svg."
        ) from None
