"""A report as one page that opens offline: text, tables and figures (SVG) are all inside, and no script.

A page is made of sections: a heading, the message in a sentence, figures, a table and remarks.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import count
from pathlib import Path
from typing import NamedTuple

from dobandit.errors import ReportError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.policy.registry import document_to_spec, policy_to_document
from dobandit.report.charts import GRID, INK, SOFT, graph_chart, graph_legend, regret_chart
from dobandit.report.curves import COLOURS, message, paper_name, regret_figure, sizes
from dobandit.report.drawn.graph import graph_svgs
from dobandit.report.drawn.regret import regret_svgs
from dobandit.report.drawn.svg import FLOOR_STEP
from dobandit.report.figures import png_of_svg, svg_of
from dobandit.report.picture import drawable, picture_of
from dobandit.report.style import CSS
from dobandit.report.tables import Table, summary_cells, summary_document, summary_markdown
from dobandit.simulation.result import StudyResult
from dobandit.text_files import write_atomically
from dobandit.texts import counted, printable

# A chart's colours as the page's own, which follow light and dark.
_PAGE_COLOURS = {INK: "var(--ink)", SOFT: "var(--soft)", GRID: "var(--grid)", "white": "var(--paper)"}
_PAGE_COLOURS |= {colour: f"var(--c{i})" for i, colour in enumerate(COLOURS)}


class PageFigure(NamedTuple):
    """A picture on a page.

    markup       what `report.drawn` draws, or the SVG text of a chart, put in as it is
    description  for those who cannot see it
    caption      what to know to read it
    """

    markup: str
    description: str
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    heading: str
    message: str = ""
    figures: Sequence[PageFigure] = ()
    table: Table | None = None
    remarks: Sequence[str] = ()


def report_html(sections: Iterable[Section], title: str, lead: str = "") -> str:
    """The whole page. Every text is escaped; SVG must come from a chart, it is put in as it is."""
    parts = list(sections)
    numbers = count(1)
    contents = ""
    if len(parts) > 1:
        links = "".join(f'<li><a href="#section{i}">{_text(p.heading)}</a></li>' for i, p in enumerate(parts, start=1))
        contents = f'<nav aria-label="Contents"><ul>{links}</ul></nav>'
    body = "\n".join(_section_html(part, i, numbers) for i, part in enumerate(parts, start=1))
    opening = f'<p class="lead">{_text(lead)}</p>' if lead else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="dobandit">\n'
        f"<title>{_text(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n"
        f"<header><h1>{_text(title)}</h1>{opening}{contents}</header>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _section_html(section: Section, number: int, figures: Iterable[int]) -> str:
    pictures = "".join(_figure_html(figure, k) for figure, k in zip(section.figures, figures, strict=False))
    remarks = "".join(f"<li>{_text(remark)}</li>" for remark in section.remarks)
    return "\n".join(
        part
        for part in (
            f'<section id="section{number}">',
            f"<h2>{_text(section.heading)}</h2>" if section.heading else "",
            f'<p class="message">{_text(section.message)}</p>' if section.message else "",
            pictures,
            table_html(section.table) if section.table else "",
            f'<ul class="remarks">{remarks}</ul>' if remarks else "",
            "</section>",
        )
        if part
    )


def _figure_html(figure: PageFigure, number: int) -> str:
    markup = figure.markup
    if markup.lstrip().startswith("<svg"):
        markup = f'<div class="scrolls">{_inline_svg(markup, f"figure{number}-")}</div>'
    caption = f"<figcaption>{_text(figure.caption)}</figcaption>" if figure.caption else ""
    return f'<figure aria-label="{_text(figure.description)}">{caption}{markup}</figure>\n'


def table_html(table: Table) -> str:
    """A table with its notes. Where the screen is narrow, a row is a block whose cells name their columns."""
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{_text(row[0])}</th>'
        + "".join(
            f'<td data-label="{_text(column)}">{_text(cell)}</td>'
            for column, cell in zip(table.columns[1:], row[1:], strict=True)
        )
        + "</tr>\n"
        for row in table.rows
    )
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in table.notes)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n{notes}'


def _text(text: str) -> str:
    return escape(printable(text))


def _inline_svg(svg: str, prefix: str) -> str:
    """A chart's SVG to stand among others on a page: its ids are its own, its numbers short, its colours the page's,
    and it shrinks with the screen as long as it can be read. Only tags change."""

    def tag(match: re.Match[str]) -> str:
        text = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{prefix}", match[0])
        text = re.sub(r'="(#[0-9a-f]{6}|white)"', lambda c: f'="{_PAGE_COLOURS.get(c[1], c[1])}"', text)
        return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)

    drawing = re.sub(r"<[^>]*>", tag, svg[svg.index("<svg") :])
    width = re.match(r'<svg[^>]*? width="([\d.]+)"', drawing)
    least = "" if width is None else f" least{int(0.62 * float(width[1])) // FLOOR_STEP * FLOOR_STEP}"
    rest = (
        drawing.removeprefix("<svg").replace(' class="marks"', "", 1).replace('fill="var(--paper)"', 'fill="none"', 1)
    )
    return f'<svg class="from-chart{least}"{rest}'


def report_folder(folder: str | os.PathLike[str]) -> Path:
    """Where a report is written to; the folder is made where it does not exist."""
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"{home}: the folder cannot be made ({error.strerror}). Choose another one.") from None
    return home


# -- one study -----------------------------------------------------------------------------------------------------


def study_figures(result: StudyResult) -> dict[str, str]:
    """SVG for files by name: "regret", and "graph" unless it is too large for a picture."""
    model = result.study.model
    name = paper_name(model)
    figures = {"regret": svg_of(regret_chart(result))}
    if drawable(model.graph):
        title = f"{name}: what causes {model.target}" if name else f"What causes {model.target}"
        figures["graph"] = svg_of(graph_chart(_drawn(model), chosen=result.best_do, title=title))
    return figures


def _drawn(model: CausalModel) -> WeightedModel | CausalGraph:
    """Tables have no numbers for arrows."""
    return model if isinstance(model, WeightedModel) else model.graph


def page_figures(result: StudyResult) -> list[PageFigure]:
    """Curves and graph for a page: drawn in its colours, and for narrow screens too."""
    model, figure = result.study.model, regret_figure(result)
    panels = "".join(f"<div>{svg}</div>" for svg in regret_svgs(figure))
    said = f"Curves of cumulative regret by round. {message(result)}."
    figures = [PageFigure(f'<div class="panels">{panels}</div>', said, figure.subtitle)]
    if drawable(model.graph):
        said = f"The causal graph: what causes {model.target}, with weights."
        legend = graph_legend(_drawn(model), picture_of(_drawn(model), result.best_do))
        figures.append(PageFigure(graph_svgs(_drawn(model), result.best_do, label=said).markup, said, legend))
    return figures


def study_section(result: StudyResult, *, heading: str | None = None, remarks: Sequence[str] = ()) -> Section:
    """A study on a page: regret curves, the graph, and the summary. The heading is the graph's name by default; with
    heading="" the section has neither heading nor message, for a page whose title says both."""
    graph, said = result.study.model.graph, list(remarks)
    if not drawable(graph):
        said.append(f"The graph has {len(graph):,} nodes and {graph.edge_count:,} edges, too many for a picture.")
    title = (paper_name(result.study.model) or "Study") if heading is None else heading
    said_above = message(result, named=False) if title else ""
    return Section(title, said_above, page_figures(result), summary_cells(result), said)


def study_lead(result: StudyResult) -> str:
    """What was run, and when: the study's name, its date and its sizes."""
    study, rules = result.study, result.study.rules
    when = ""
    if result.finished is not None:
        when = f", {datetime.fromtimestamp(result.finished, UTC):%d %B %Y}".replace(" 0", " ")
    said = {key: value for key, value in rules.to_document().items() if value not in (None, [], {}, ())}
    rest = "".join(f", {key.replace('_', ' ')} {value}" for key, value in said.items() if key != "budget")
    return (
        f"Study {result.name or 'without a name'}{when}: {counted(study.rounds, 'round')}, "
        f"{counted(study.replications, 'run')} of each policy, {sizes(study)}{rest}, seed {study.seed}."
    )


def study_page(result: StudyResult) -> str:
    """The page of one study; its remarks are the policies' settings, as a command writes them."""
    policies = result.study.policies.items()
    settings = [f"{label}: {document_to_spec(policy_to_document(policy))}" for label, policy in policies]
    section = study_section(result, heading="", remarks=settings)
    return report_html([section], message(result), study_lead(result))


def study_report(result: StudyResult, folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Write regret.png and .svg, graph.png and .svg, summary.md and .json, and report.html; the paths by file name."""
    home = report_folder(folder)
    files: dict[str, str | bytes] = {}
    for name, svg in study_figures(result).items():
        files |= {f"{name}.svg": svg, f"{name}.png": png_of_svg(svg)}
    files["summary.md"] = summary_markdown(result)
    files["summary.json"] = json.dumps(summary_document(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    files["report.html"] = study_page(result)
    for file, content in files.items():
        write_atomically(home / file, content)
    return {file: home / file for file in files}
