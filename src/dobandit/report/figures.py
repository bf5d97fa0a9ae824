"""Charts to files: PNG, SVG, PDF, HTML or JSON, without a browser or a network.

Altair and vl-convert (the extra `plots`) load when first used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from dobandit.errors import ReportError
from dobandit.text_files import path_of, write_atomically
from dobandit.texts import printable_lines

_SCALE = 2.0  # PNG pixels per unit


def altair() -> Any:
    """The package that builds charts."""
    return _package("altair")


def converter() -> Any:
    """The package that turns charts into pictures."""
    return _package("vl_convert")


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ReportError(f"figures need the 'plots' extra, but {name} is missing. Install dobandit[plots].") from None


class Figure:
    """A chart that saves itself, and shows itself in a notebook. Made by `chart` of a result.

    chart  the Altair chart, for further work on it
    """

    def __init__(self, chart: Any) -> None:
        self.chart = chart

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture, in the format of the path's suffix; the file appears whole or not at all.

        path  ends in .png, .svg, .pdf, .html or .json

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Figure(altair().Chart().mark_point()).save(f"{folder}/point.json")
        ...     [path.name for path in Path(folder).iterdir()]
        ['point.json']
        """
        save_chart(self.chart, path)

    def svg(self) -> str:
        """The picture as SVG text."""
        return svg_of(self.chart)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return "Figure(.save('figure.png') writes PNG, SVG, PDF, HTML or JSON; .chart is the Altair chart)"


def save_chart(chart: Any, path: str | os.PathLike[str]) -> None:
    """Write a chart in the format of the path's suffix; the file appears whole or not at all."""
    suffix = Path(path_of(path)).suffix.lower()
    if suffix not in _WRITERS:
        raise ReportError(f"a figure's file ends in {', '.join(_WRITERS)}, but got {path_of(path)!r}.")
    write_atomically(path, _WRITERS[suffix](getattr(chart, "chart", chart)))


def specification(chart: Any) -> Any:
    """The chart as Vega-Lite reads it: the one place where every text that reaches a picture is made printable. SVG
    has no control characters, U+FFFE, U+FFFF or halves of surrogate pairs, and a converter that meets one aborts."""
    rows = getattr(chart, "datasets", None)
    if not isinstance(rows, dict):
        return _printable(chart.to_dict(validate=False))
    spec = chart.to_dict(validate=False, ignore=["datasets"])  # Altair would copy the rows three times
    return _printable({**spec, "datasets": rows | spec.get("datasets", {})})


def _printable(part: Any) -> Any:
    if isinstance(part, str):
        # A note may have several lines.
        return part if part.isprintable() else printable_lines(part)
    if isinstance(part, dict):
        return {_printable(key): _printable(value) for key, value in part.items()}
    return list(map(_printable, part)) if isinstance(part, (list, tuple)) else part


def svg_of(chart: Any) -> str:
    """The picture as SVG text."""
    return str(converter().vegalite_to_svg(specification(chart), vl_version=_version(), allowed_base_urls=[]))


def png_of_svg(svg: str) -> bytes:
    return bytes(converter().svg_to_png(svg, scale=_SCALE))


def _version() -> str | None:
    """The version of Vega-Lite that Altair writes, if the converter has it; else the converter's newest."""
    version: str = ".".join(altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return version if version in converter().get_vegalite_versions() else None


@cache
def _libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    return str(converter().javascript_bundle(vl_version=_version()))


def _html(chart: Any) -> str:
    """A page that draws the chart by itself: the libraries are inside."""
    spec = specification(chart)
    title = spec.get("title", "")
    heading = title.get("text", "") if isinstance(title, dict) else title
    text = " ".join(heading) if isinstance(heading, list) else str(heading)
    # No "<" in the data, so that no name can end the script.
    data = json.dumps(spec).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(text)}</title>\n'
        f"<script>{_libraries()}</script>\n</head>\n<body>\n"
        f'<div id="chart"></div>\n<script>\nconst spec = {data};\n'
        'vegaEmbed("#chart", spec, {renderer: "svg", actions: false});\n</script>\n</body>\n</html>\n'
    )


_WRITERS: dict[str, Callable[[Any], str | bytes]] = {
    ".png": lambda chart: png_of_svg(svg_of(chart)),
    ".svg": svg_of,
    ".pdf": lambda chart: bytes(converter().svg_to_pdf(svg_of(chart))),
    ".html": _html,
    ".json": lambda chart: json.dumps(specification(chart), indent=2),
}
