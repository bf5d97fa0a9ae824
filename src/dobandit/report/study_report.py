"""The report of one study: figures, tables and a page."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from dobandit.model.bglm import WeightedModel
from dobandit.policy.registry import document_to_spec, policy_to_document
from dobandit.report.curves import message, paper_name, regret_figure, sizes
from dobandit.report.drawn.graph import graph_figure
from dobandit.report.drawn.regret import regret_drawing
from dobandit.report.figures import Figure
from dobandit.report.html import Section, report_html, write_report
from dobandit.report.picture import drawable
from dobandit.report.tables import summary_cells, summary_document, summary_markdown
from dobandit.simulation.result import StudyResult
from dobandit.texts import counted


def study_figures(result: StudyResult) -> dict[str, Figure]:
    """By name: "regret", and "graph" unless it is too large for a picture."""
    model = result.study.model
    figures = {"regret": regret_drawing(regret_figure(result))}
    if drawable(model.graph):
        name = paper_name(model)
        title = f"{name}: what causes {model.target}" if name else None
        weighted = model if isinstance(model, WeightedModel) else model.graph  # tables have no numbers for arrows
        figures["graph"] = graph_figure(weighted, result.best_do, title=title)
    return figures


def figure_files(figures: Mapping[str, Figure]) -> dict[str, str | bytes]:
    """Each figure as SVG and PNG, by file name."""
    files: dict[str, str | bytes] = {}
    for name, figure in figures.items():
        files |= {f"{name}.svg": figure.svg(), f"{name}.png": figure.png()}
    return files


def study_section(result: StudyResult, *, heading: str | None = None, remarks: Sequence[str] = ()) -> Section:
    """A study on a page: regret curves, the graph, and the summary. The heading is the graph's name by default; with
    heading="" the section has neither heading nor message, for a page whose title says both."""
    graph, said = result.study.model.graph, list(remarks)
    if not drawable(graph):
        said.append(f"The graph has {len(graph):,} nodes and {graph.edge_count:,} edges, too many for a picture.")
    title = (paper_name(result.study.model) or "Study") if heading is None else heading
    said_above = message(result, named=False) if title else ""
    return Section(title, said_above, list(study_figures(result).values()), summary_cells(result), said)


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
    document = json.dumps(summary_document(result), indent=2, ensure_ascii=False, allow_nan=False)
    tables = {"summary.md": summary_markdown(result), "summary.json": document + "\n"}
    return write_report(folder, {**figure_files(study_figures(result)), **tables, "report.html": study_page(result)})
