"""A report as one page that opens offline: text, tables and figures (static SVG) are all inside, and no script.

A page is made of sections: a heading, the message in a sentence, figures, a table and remarks.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import count
from pathlib import Path

from dobandit.errors import ReportError
from dobandit.model.bglm import WeightedModel
from dobandit.policy.registry import document_to_spec, policy_to_document
from dobandit.report.charts import graph_chart, regret_chart
from dobandit.report.curves import message, paper_name, sizes
from dobandit.report.figures import png_of_svg, svg_of
from dobandit.report.picture import drawable
from dobandit.report.readable import counted
from dobandit.report.style import CSS
from dobandit.report.tables import Table, summary_cells, summary_document, summary_markdown
from dobandit.simulation.result import StudyResult
from dobandit.text_files import write_atomically
from dobandit.texts import printable


@dataclass(frozen=True)
class Section:
    """A part of a page. Figures are (SVG text, description for those who cannot see it)."""

    heading: str
    message: str = ""
    figures: Sequence[tuple[str, str]] = ()
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
    pictures = "".join(
        f'<figure role="img" aria-label="{_text(description)}">{_inline_svg(svg, f"figure{k}-")}</figure>\n'
        for (svg, description), k in zip(section.figures, figures, strict=False)
    )
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


def table_html(table: Table) -> str:
    """A table with its notes; it scrolls sideways where the screen is narrow."""
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{_text(row[0])}</th>' + "".join(f"<td>{_text(cell)}</td>" for cell in row[1:]) + "</tr>\n"
        for row in table.rows
    )
    notes = "".join(f'<p class="note">{_text(note)}</p>' for note in table.notes)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n{notes}'


def _text(text: str) -> str:
    return escape(printable(text))


def _inline_svg(svg: str, prefix: str) -> str:
    """An SVG to stand among others on a page: its ids are its own, its numbers short, and it shrinks with the screen
    as long as it can be read. Only tags change."""

    def tag(match: re.Match[str]) -> str:
        text = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{prefix}", match[0])
        return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)

    drawing = re.sub(r"<[^>]*>", tag, svg[svg.index("<svg") :])
    width = re.match(r'<svg[^>]*? width="([\d.]+)"', drawing)
    if width is None:
        return drawing
    style = f"width:{width[1]}px;max-width:100%;min-width:min({width[1]}px,40rem)"
    return f'<svg style="{style}"{drawing[4:]}'


# -- one study -----------------------------------------------------------------------------------------------------


def study_figures(result: StudyResult, *, titles: bool = True) -> dict[str, str]:
    """SVG by name: "regret", and "graph" unless it is too large for a picture.

    titles: False where the page around the figures says it.
    """
    model = result.study.model
    name = paper_name(model)
    figures = {"regret": svg_of(regret_chart(result, title=None if titles else ""))}
    if drawable(model.graph):
        title = f"{name}: what causes {model.target}" if name else f"What causes {model.target}"
        drawn = model if isinstance(model, WeightedModel) else model.graph  # tables have no numbers for arrows
        figures["graph"] = svg_of(graph_chart(drawn, chosen=result.best_do, title=title if titles else ""))
    return figures


def study_section(
    result: StudyResult,
    *,
    heading: str | None = None,
    remarks: Sequence[str] = (),
    figures: Mapping[str, str] | None = None,
) -> Section:
    """A study on a page: regret curves, the graph, and the summary. The heading is the graph's name by default; with
    heading="" the section has neither heading nor message, for a page whose title says both."""
    graph = result.study.model.graph
    about = {
        "regret": f"Curves of cumulative regret by round. {message(result)}.",
        "graph": f"The causal graph: what causes {graph.target}, with weights.",
    }
    drawn = study_figures(result, titles=False) if figures is None else figures
    shown = [(svg, about[kind]) for kind, svg in drawn.items()]
    said = list(remarks)
    if not drawable(graph):
        said.append(f"The graph has {len(graph):,} nodes and {graph.edge_count:,} edges, too many for a picture.")
    title = (paper_name(result.study.model) or "Study") if heading is None else heading
    said_above = message(result, named=False) if title and figures is None else ""  # figures given say it themselves
    return Section(title, said_above, shown, summary_cells(result), said)


def study_lead(result: StudyResult) -> str:
    """What was run, and when: the study's name, its date and its sizes."""
    study, rules = result.study, result.study.rules
    when = (
        ""
        if result.finished is None
        else f", {datetime.fromtimestamp(result.finished, UTC):%d %B %Y}".replace(" 0", " ")
    )
    said = {key: value for key, value in rules.to_document().items() if value not in (None, [], {}, ())}
    rest = "".join(f", {key.replace('_', ' ')} {value}" for key, value in said.items() if key != "budget")
    return (
        f"Study {result.name or 'without a name'}{when}: {counted(study.rounds, 'round')}, "
        f"{counted(study.replications, 'run')} of each policy, {sizes(study)}{rest}, seed {study.seed}."
    )


def policy_settings(result: StudyResult) -> list[str]:
    """Every policy with the settings that differ from its defaults, as a command writes them."""
    policies = result.study.policies.items()
    return [f"{label}: {document_to_spec(policy_to_document(policy))}" for label, policy in policies]


def study_report(result: StudyResult, folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Write regret.png and .svg, graph.png and .svg, summary.md and .json, and report.html; the paths by file name."""
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(f"{home}: the folder cannot be made ({error.strerror}). Choose another one.") from None
    files: dict[str, str | bytes] = {}
    for name, svg in study_figures(result).items():
        files |= {f"{name}.svg": svg, f"{name}.png": png_of_svg(svg)}
    files["summary.md"] = summary_markdown(result)
    files["summary.json"] = json.dumps(summary_document(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    section = study_section(result, heading="", remarks=policy_settings(result))
    files["report.html"] = report_html([section], message(result), study_lead(result))
    for file, content in files.items():
        write_atomically(home / file, content)
    return {file: home / file for file in files}
