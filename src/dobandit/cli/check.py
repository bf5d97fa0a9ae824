"""Commands on graphs and models: check, project."""

from __future__ import annotations

import math
from typing import Any

import click

from dobandit.cli import options
from dobandit.cli.output import json_option, names, print_json, print_table, print_text, say, several
from dobandit.documents.graphs import check_document
from dobandit.errors import DobanditError, ModelError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import format_of_path, print_graph, write_graph
from dobandit.graph.mechanisms import Way, in_ways
from dobandit.model.bglm import WeightedModel
from dobandit.model.model_files import print_model, write_model
from dobandit.model.projection import project
from dobandit.policy.hidden_causes import Hide
from dobandit.texts import counted, for_commands

_MOST_PARENTS = 200  # the lambda_min rule is simulated up to this many

LEVELS = "the effect of a lever with more than two values is learned as a straight line"
MEDIATORS = "if nobody can set it, say what can be set: --controllable, or controllable in the file"


@click.command("check")
@click.argument("file", type=click.Path())
@options.graph_options
@click.option("-k", "--budget", type=click.IntRange(min=0), help="How many variables may be set at once.")
@several("--always-set", help="A variable that every round sets; may be repeated.")
@click.option("--horizon", type=click.IntRange(min=1), default=10_000, show_default=True, help="Rounds to learn in.")
@json_option
def check(
    file: str, hide: Hide, budget: int | None, always_set: tuple[str, ...], horizon: int, as_json: bool, **given: Any
) -> None:
    """For a model also: which effects are harmful (have a negative weight), which of the paper's assumptions hold, what
    the algorithms are then guaranteed over the horizon, and how many rounds of pure observation BGLM-OFU begins with.

    Where hidden causes are shared: in how many ways each variable answers, by what is set, and what refuses the graph.

    \b
    Examples:
      dobandit check funnel.txt --target buy --latent mood --context mobile -k 2
      dobandit check funnel.txt --hide auto
      dobandit check model.json --json
      dobandit check network.bif.gz --target dysp --binarise age=adult,old
    """
    try:
        what = options.read_structure(file, given, tables=True)
        report = check_document(what, budget, hide, always_set)
        for said in ("ways_on", "hide_note"):
            report[said] = report[said] and for_commands(report[said])
        if isinstance(what, WeightedModel):
            removable = report["hide"] and report["admissible"] and what.is_linear
            report["theory"] = theory(project(what, report["hide"]) if removable else what, horizon)
    except DobanditError as error:
        if as_json:
            print_json({"valid": False, "error": for_commands(error.marked)})
        raise
    if as_json:
        print_json(report)
    else:
        print_report(file, report)


def said(count: int | float | None) -> str:
    if count is None:
        return "more than 10^300 sets"
    if isinstance(count, int):
        return counted(count, "set")
    return f"about {count:.1e} sets"


def theory(model: Any, horizon: int) -> dict[str, Any]:
    """The paper's constants for a model, and what they mean."""
    import numpy as np

    from dobandit.estimation.assumptions import diagnose_assumptions, lambda_min_rounds

    known = diagnose_assumptions(model, horizon)
    needed = None
    if not known.obstacle and known.D <= _MOST_PARENTS:
        needed = lambda_min_rounds(model, known.thresholds(), min(horizon, 1_000_000), np.random.default_rng(0))
    sentences = [for_commands(sentence) for sentence in known.sentences()]
    if needed is not None:
        sentences.append(f"In a simulation the lambda_min rule ended the initialisation after {needed:,} rounds.")
    return {
        "horizon": horizon,
        "n": known.n,
        "D": known.D,
        "D_out": known.D_out,
        "delta": known.delta,
        "L1": finite(known.l1),
        "L2": finite(known.l2),
        "kappa": finite(known.kappa),
        "upsilon": known.upsilon,
        "zeta": known.zeta,
        "R": known.R,
        "T0": known.initial_rounds,
        "rho": known.rho,
        "lambda_min": {node.name: finite(node.lambda_min) for node in known.nodes},
        "lambda_min_rounds": needed,
        "assumptions": [known.assumption1, known.assumption2, known.assumption3],
        "in_words": sentences,
    }


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def print_report(file: str, report: dict[str, Any]) -> None:
    found = report.get
    numbers = found("continuous") and f"numbers from 0 to 1 ({LEVELS})"
    ones = [f"{name}={'|'.join(states)}" for name, states in found("ones", {}).items()]
    states = sorted(set(found("hidden_states", {}).values()))
    harmful = [f"{edge['cause']} -> {edge['effect']} ({edge['weight']:g})" for edge in found("harmful", ())]
    exactly, up_to = (said(report[key]) for key in ("arms", "sets_up_to_budget"))
    sizes = f"{exactly} of exactly {report['budget']}; {up_to} of at most as many"
    linear = "linear (every link is the identity)" if found("linear") else "not linear"
    rows = [
        (report["kind"], f"valid: {report['nodes']} nodes, {report['edges']} edges"),
        ("target", report["target"]),
        ("controllable", names(report["controllable"])),
        ("context", report["context"] and f"{names(report['context'])} (observed before acting)"),
        ("latent", names(report["latent"])),
        *hidden_rows(report),
        (
            "cannot matter",
            report["cannot_matter"] and f"{names(report['cannot_matter'])} (no path to {report['target']})",
        ),
        (
            "left aside",
            report["effects_of_target"]
            and f"{names(report['effects_of_target'])} (caused by {report['target']}: nothing is learned from them)",
        ),
        (
            "can be set, though caused",
            report["settable_mediators"] and f"{names(report['settable_mediators'])} ({MEDIATORS})",
        ),
        ("links", "linear" in report and linear),
        ("values", numbers),
        ("probabilities", "tables" in report and "tables, one entry per pattern of the parents"),
        ("several states", states and f"{names(states)} (kept as hidden states)"),
        ("1 means", ones and names(ones)),
        ("harmful effects", harmful and names(harmful)),
        ("sets to choose from", report["budget"] is not None and sizes),
    ]
    print_table(["", file], [row for row in rows if row[1]])
    if report["ways_on"]:
        say(report["ways_on"])
    for sentence in found("theory", {}).get("in_words", ()):
        say(f" - {sentence}")
    click.echo()
    busiest = sorted(report["parents"].items(), key=lambda item: -item[1])
    shown = [(name, str(count), "yes" if name in report["bias"] else "no") for name, count in busiest[:20]]
    title = "parents per node" + (f" (the 20 with the most, of {len(busiest)})" if len(busiest) > 20 else "")
    print_table(["node", "parents", "bias"], shown, title=title, right=[1])


def hidden_rows(report: dict[str, Any]) -> list[tuple[str, Any]]:
    """Of hidden causes: how variables answer, what it takes to remove them, and which sets can be best at all."""
    witness, hide, best = report["witness"], report["hide"], report["possibly_optimal"]
    structure = "no hidden variables"
    if witness:
        first, second = (" -> ".join(path) for path in witness["paths"])
        structure = (
            f"not admissible: hidden {witness['hidden']} reaches {witness['paths'][0][-1]} ({first}) and its "
            f"descendant {witness['paths'][1][-1]} ({second})"
        )
    elif report["latent"] or hide:
        structure = "admissible: a linear model's hidden variables can be removed (dobandit project)"
    ways = {name: [Way(**way) for way in found] for name, found in report["mechanisms"].items()}
    sets = ["{" + ", ".join(chosen) + "}" for chosen in best or ()]
    return [
        ("hidden structure", structure),
        ("counts as hidden", report["hide_note"]),
        ("counts as hidden", hide and f"{names(hide)}: kept in a log, but not learned from, and not set"),
        *((f"{n} is learned", f"from {names(p)} directly") for n, p in report["learned_directly"].items()),
        ("always set", report["always_set"] and f"{names(report['always_set'])}: rounds without it teach nothing"),
        *in_ways(ways),
        ("refused by", ", ".join(report["refused_by"])),
        ("sets that can be best", best is not None and f"{names(sets)}, with each variable set to 0 or 1"),
    ]


@click.command("project")
@click.argument("file", type=click.Path())
@options.graph_options
@click.option("-o", "--output", type=click.Path(), help="Where to write; default: standard output.")
@json_option
def project_command(file: str, hide: Hide, output: str | None, as_json: bool, **given: Any) -> None:
    """The result is the Markovian graph (or model) over the observed variables, in the format of FILE, or in the
    one that the ending of OUTPUT names.

    \b
    Examples:
      dobandit project model.json -o observed.json
      dobandit project funnel.dagitty --target buy -o observed.dot
    """
    file_format = given["format"]
    what = options.read_structure(file, given)
    if isinstance(what, CausalGraph):
        graph = project(what, hide)
        text = print_graph(graph, file_format or format_of_path(file) or "edgelist")
        if output:
            write_graph(graph, output, format=None if format_of_path(output) else file_format)
    else:
        if output and format_of_path(output) not in (None, "json"):
            raise ModelError(f"a model file is JSON, but {output} names another format. Use an ending such as .json.")
        if not isinstance(what, WeightedModel):
            raise ModelError(
                "hidden variables are removed from linear models, but this one has tables. Project its graph."
            )
        model = project(what, hide)
        graph, text = model.graph, print_model(model)
        if output:
            write_model(model, output)
    before = what if isinstance(what, CausalGraph) else what.graph
    removed = [name for name in before.nodes if name not in graph]
    if as_json:
        print_json(
            {
                "kind": "graph" if isinstance(what, CausalGraph) else "model",
                "removed": removed,
                "nodes": len(graph),
                "edges": graph.edge_count,
                "output": output,
                **({} if output else {"text": text}),
            }
        )
    elif output:
        say(f"removed {names(removed)}; wrote {len(graph)} nodes, {graph.edge_count} edges to {output}")
    else:
        print_text(text)
