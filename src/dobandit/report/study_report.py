"""Reports as files: of one study, and of the paper's experiments, with tables beside the published values. Each has
figures, tables and a page that opens offline."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dobandit.model.bglm import WeightedModel
from dobandit.policy.registry import document_to_spec, policy_to_document
from dobandit.report.figures import Figure
from dobandit.report.graph_layout import drawable
from dobandit.report.html import Section, report_html, write_report
from dobandit.report.summary import StudySummary, message, paper_name, sizes
from dobandit.report.svg.graph_drawing import graph_figure
from dobandit.report.svg.regret_charts import losses_figure, regret_drawing, regret_figure
from dobandit.report.tables import Table
from dobandit.simulation.reproduce import PUBLISHED, PUBLISHED_RUNS, compare
from dobandit.simulation.result import StudyResult
from dobandit.texts import amount, counted, signed

TITLE = "Combinatorial causal bandits: the paper's five experiments"
PAPER_SECONDS = 4672  # 3714 + 603 + 355, on four performance cores of an i7-12700H

_NOTES = (
    f"Published values are read off plots (about 3%) that average {PUBLISHED_RUNS} runs, one of each group of 30; the "
    "difference counts in standard errors of both averages and of the reading.",
    "UCB (scaled) and epsilon-greedy are heavy-tailed: most runs find a good set, some never do, so averages of few "
    "runs differ widely, and on some graphs their median is below that of BLM-LR. BLM-LR and BLM-OFU are not.",
    "The paper gives G2, G3 and G4 6, 15 and 28 sets; it is 28, 15 and 6.",
)


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
    return Section(title, said_above, list(study_figures(result).values()), StudySummary(result).table(), said)


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
    summary = StudySummary(result)
    document = json.dumps(summary.to_document(), indent=2, ensure_ascii=False, allow_nan=False)
    tables = {"summary.md": summary.markdown(), "summary.json": document + "\n"}
    return write_report(folder, {**figure_files(study_figures(result)), **tables, "report.html": study_page(result)})


# -- the paper's experiments ------------------------------------------------------------------------------------------


def comparison_table(results: Mapping[str, StudyResult], guaranteed: Mapping[str, StudyResult]) -> Table:
    """Our regrets beside the published ones; policies that the paper does not have stand beside its best, learners with
    a guarantee beside the paper's with the radius of its theorem."""
    columns = ["experiment and policy", "ours", "published", "difference", "standard errors", "remark"]
    rows = [
        [
            f"{row.graph} {row.policy}",
            amount(row.ours),
            amount(row.published),
            f"{100 * row.relative:+.0f}%",
            signed(row.standard_errors),
            row.remark,
        ]
        for name, result in results.items()
        for row in compare(name, result)
    ]
    others = [
        (name, result, label, _beside_best(name, result, label))
        for name, result in results.items()
        for label in result.labels
        if label not in PUBLISHED[name]
    ]
    for name, result in guaranteed.items():
        others += [(name, result, label, _beside_guarantee(result, label)) for label in result.labels]
    for name, result, label, remark in others:
        rows.append([f"{name} {label}", amount(result.summary_of(label).mean), "-", "-", "-", remark])
    return Table(columns, rows, _NOTES)


def _beside_best(name: str, result: StudyResult, label: str) -> str:
    """A policy that the paper does not have, beside the best that it has, on the same random numbers."""
    best = min(PUBLISHED[name], key=lambda policy: result.summary_of(policy).mean)
    share = result.summary_of(label).mean / result.summary_of(best).mean - 1.0
    return f"not in the paper: {100 * share:+.0f}% of {best} on the same random numbers"


def _beside_guarantee(result: StudyResult, label: str) -> str:
    first, runs = result.labels[0], counted(result.study.replications, "run")
    if label == first:
        return f"guaranteed; the first {runs}"
    theirs, own = result.summary_of(first).mean, result.summary_of(label).mean
    how = f"{theirs / own:.1f} times below" if 0 < own <= theirs else f"{amount(own - theirs)} above"
    return f"guaranteed: {how} BLM-LR with its theorem's radius; the first {runs}"


def reproduction_document(
    results: Mapping[str, StudyResult], worlds: Mapping[str, StudyResult], guaranteed: Mapping[str, StudyResult]
) -> dict[str, Any]:
    """The machine-readable summary: each experiment's, with the published values beside ours, and what goes beyond."""
    graphs = {}
    for name, result in results.items():
        graphs[name] = StudySummary(result).to_document()
        for row in compare(name, result):
            graphs[name]["policies"][row.policy] |= {
                "published": row.published,
                "difference_in_standard_errors": row.standard_errors if math.isfinite(row.standard_errors) else None,
                "remark": row.remark,
            }
    document: dict[str, Any] = {"graphs": graphs}
    for key, more in (("worlds", worlds), ("guaranteed", guaranteed)):
        if more:
            document[key] = {name: StudySummary(result).to_document() for name, result in more.items()}
    return document


def lead(results: Mapping[str, StudyResult]) -> str:
    seconds = sum(result.elapsed for result in results.values())
    replications = max(result.study.replications for result in results.values())
    policies = max(len(result.labels) for result in results.values())
    number = "six" if policies == 6 else str(policies)
    faster = ""
    if policies == 6 and len(results) == 5 and replications == 600:
        faster = f" The paper reports {PAPER_SECONDS:,} s on four faster cores for the same runs."
    return (
        f"{replications:,} runs of {number} policies on {', '.join(results)}, on common random numbers, in "
        f"{seconds:.0f} s.{faster} Shaded: 95% intervals of the mean."
    )


def write_reproduction(
    results: Mapping[str, StudyResult],
    folder: str | Path,
    worlds: Mapping[str, StudyResult],
    guaranteed: Mapping[str, StudyResult],
) -> list[Path]:
    """Write per experiment regret and graph as PNG and SVG, and summary.md, summary.json and report.html for all.

    worlds      studies in worlds that are not the paper's, by name
    guaranteed  studies of learners with a guarantee, by the name of the experiment
    """
    everything = {**results, **worlds, **{f"{name}-guaranteed": one for name, one in guaranteed.items()}}
    files: dict[str, str | bytes] = {}
    for name, result in everything.items():
        files |= figure_files({f"{name}-{kind}": figure for kind, figure in study_figures(result).items()})
    beside = comparison_table(results, guaranteed)
    parts = [StudySummary(result).markdown() for result in everything.values()]
    files["summary.md"] = "\n".join(
        [f"# {TITLE}\n\n{lead(results)}\n", *parts, f"## Beside the published values\n\n{beside.markdown()}"]
    )
    document = reproduction_document(results, worlds, guaranteed)
    files["summary.json"] = json.dumps(document, indent=2, allow_nan=False) + "\n"
    sections = [study_section(result, heading=name) for name, result in everything.items()]
    if worlds:
        losses = losses_figure(worlds)
        files |= figure_files({"worlds": losses})
        sections.append(Section("Worlds that do not fit", losses.title, [losses]))
    rows = [row for name, result in results.items() for row in compare(name, result)]
    agree = all(row.agrees for row in rows if row.policy in ("BLM-LR", "BLM-OFU"))
    said = "BLM-LR and BLM-OFU agree with the paper."
    said = said if agree else "Some values of BLM-LR or BLM-OFU differ from the paper."
    sections.append(Section("Beside the published values", said, table=beside))
    files["report.html"] = report_html(sections, TITLE, lead(results))
    return list(write_report(folder, files).values())
