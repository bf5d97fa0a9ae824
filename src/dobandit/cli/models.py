"""Commands on graphs and models: check, project, expect, paper."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from dobandit.cli.output import json_option, names, print_json, print_table
from dobandit.errors import DobanditError, InterventionError, ModelError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import FORMATS, print_graph, write_graph
from dobandit.graph.latent import admissible
from dobandit.model.base import CausalModel
from dobandit.model.bglm import WeightedModel
from dobandit.model.files import print_model, read_graph_or_model, read_model, write_model
from dobandit.model.inference import METHODS, expect
from dobandit.model.projection import project

_MOST_PARENTS = 200  # the lambda_min rule is simulated up to this many

GRAPH_OPTIONS = [
    click.option("--target", help="The variable to make likely (overrides the file)."),
    click.option("--latent", multiple=True, metavar="NAME", help="A hidden variable; may be repeated."),
    click.option(
        "--context", multiple=True, metavar="NAME", help="A variable that is observed before acting; may be repeated."
    ),
    click.option("--format", "file_format", type=click.Choice(FORMATS), help="Format of a graph file."),
]


def graph_options(command: Any) -> Any:
    for option in reversed(GRAPH_OPTIONS):
        command = option(command)
    return command


@click.command("check")
@click.argument("file", type=click.Path())
@graph_options
@click.option("-k", "--budget", type=click.IntRange(min=0), help="How many variables may be set at once.")
@click.option("--horizon", type=click.IntRange(min=1), default=10_000, show_default=True, help="Rounds to learn in.")
@json_option
def check(
    file: str,
    target: str | None,
    latent: tuple[str, ...],
    context: tuple[str, ...],
    file_format: str | None,
    budget: int | None,
    horizon: int,
    as_json: bool,
) -> None:
    """Say what is right and wrong with a graph or model FILE.

    For a model also: which effects are harmful (have a negative weight), which of the paper's assumptions hold, what
    the algorithms are then guaranteed over the horizon, and how many rounds of pure observation BGLM-OFU begins with.

    \b
    Examples:
      dobandit check funnel.txt --target buy --latent mood --context mobile -k 2
      dobandit check model.json --json
    """
    try:
        what = read_graph_or_model(file, format=file_format, target=target, latent=latent, context=context)
        report = describe(what, budget)
        if isinstance(what, WeightedModel):
            report["theory"] = theory(what, horizon)
    except DobanditError as error:
        if as_json:
            print_json({"valid": False, "error": str(error)})
        raise
    if as_json:
        print_json(report)
    else:
        print_report(file, report)


def describe(what: CausalGraph | CausalModel, budget: int | None) -> dict[str, Any]:
    """The facts that `check` reports."""
    graph = what if isinstance(what, CausalGraph) else what.graph
    answer = admissible(graph)
    settable = len(graph.controllable)
    if budget is not None and budget > settable:
        raise InterventionError(
            f"the budget must be between 0 and {settable} (the controllable variables), but got {budget}. "
            "Lower -k or make more variables controllable."
        )
    report: dict[str, Any] = {
        "valid": True,
        "kind": "graph" if isinstance(what, CausalGraph) else "model",
        "target": graph.target,
        "nodes": len(graph),
        "edges": graph.edge_count,
        "latent": list(graph.latent),
        "controllable": list(graph.controllable),
        "context": list(graph.context),
        "cannot_matter": list(graph.irrelevant),
        "bias": list(graph.bias),
        "admissible": bool(answer),
        "witness": None,
        "budget": budget,
        "arms": None if budget is None else count_of(settable, budget),
        "sets_up_to_budget": None if budget is None else count_up_to(settable, budget),
        "parents": {name: len(graph.parents(name)) for name in graph.nodes},
    }
    if answer.witness is not None:
        report["witness"] = {"hidden": answer.witness.hidden, "paths": [list(path) for path in answer.witness.paths]}
    if isinstance(what, WeightedModel):
        report["linear"] = what.is_linear
        report["nonnegative"] = what.nonnegative
        report["harmful"] = [
            {"cause": cause, "effect": effect, "weight": what.weights[cause, effect]} for cause, effect in what.harmful
        ]
        report["links"] = {name: what.link(name).to_document() for name in graph.nodes}
    return report


def count_of(settable: int, size: int) -> int | float | None:
    """How many sets there are: exactly while it is readable, then as a float, None beyond that."""
    digits = (math.lgamma(settable + 1) - math.lgamma(size + 1) - math.lgamma(settable - size + 1)) / math.log(10)
    if digits < 18:
        return math.comb(settable, size)
    return 10.0**digits if digits < 300 else None


def count_up_to(settable: int, most: int) -> int | float | None:
    counts = [count_of(settable, size) for size in range(most + 1)] if most <= 1000 else [None]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def said(count: int | float | None) -> str:
    if count is None:
        return "more than 10^300 sets"
    if isinstance(count, int):
        return f"{count:,} set" + ("" if count == 1 else "s")
    return f"about {count:.1e} sets"


def theory(model: Any, horizon: int) -> dict[str, Any]:
    """The paper's constants for a model, and what they mean."""
    import numpy as np

    from dobandit.estimation.assumptions import diagnose_assumptions
    from dobandit.estimation.initialisation import lambda_min_rounds

    known = diagnose_assumptions(model, horizon)
    needed = None
    if not known.obstacle and known.D <= _MOST_PARENTS:
        needed = lambda_min_rounds(model, known.thresholds(), min(horizon, 1_000_000), np.random.default_rng(0))
    sentences = known.in_words()
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
    witness = report["witness"]
    if witness:
        first, second = (" -> ".join(path) for path in witness["paths"])
        hidden = (
            f"not admissible: hidden {witness['hidden']} reaches {witness['paths'][0][-1]} ({first}) and its "
            f"descendant {witness['paths'][1][-1]} ({second})"
        )
    elif report["latent"]:
        hidden = "admissible: a linear model's hidden variables can be removed (dobandit project)"
    else:
        hidden = "no hidden variables"
    rows = [
        (report["kind"], f"valid: {report['nodes']} nodes, {report['edges']} edges"),
        ("target", report["target"]),
        ("controllable", names(report["controllable"])),
        ("latent", names(report["latent"])),
        ("hidden structure", hidden),
    ]
    if report["context"]:
        rows.insert(3, ("context", f"{names(report['context'])} (observed before acting)"))
    if report["cannot_matter"]:
        rows.append(("cannot matter", f"{names(report['cannot_matter'])} (no path to {report['target']})"))
    if "linear" in report:
        rows.append(("links", "linear (every link is the identity)" if report["linear"] else "not linear"))
    if report.get("harmful"):
        edges = [f"{edge['cause']} -> {edge['effect']} ({edge['weight']:g})" for edge in report["harmful"]]
        rows.append(("harmful effects", names(edges)))
    if report["budget"] is not None:
        exactly, up_to = (said(report[key]) for key in ("arms", "sets_up_to_budget"))
        rows.append(("sets to choose from", f"{exactly} of exactly {report['budget']}; {up_to} of at most as many"))
    print_table(["", file], rows)
    for sentence in report.get("theory", {}).get("in_words", ()):
        click.echo(f" - {sentence}")
    biased = set(report["bias"])
    busiest = sorted(report["parents"].items(), key=lambda item: -item[1])
    shown = [(name, str(count), "yes" if name in biased else "no") for name, count in busiest[:20]]
    title = "parents per node" + (f" (the 20 with the most, of {len(busiest)})" if len(busiest) > 20 else "")
    print_table(["node", "parents", "bias"], shown, title=title, right=[1])


@click.command("project")
@click.argument("file", type=click.Path())
@graph_options
@click.option("-o", "--output", type=click.Path(), help="Where to write; default: standard output.")
@json_option
def project_command(
    file: str,
    target: str | None,
    latent: tuple[str, ...],
    context: tuple[str, ...],
    file_format: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Remove the hidden variables of a graph or linear model FILE.

    The result is the Markovian graph (or model) over the observed variables, in the format of FILE, or in the
    one that the ending of OUTPUT names.

    \b
    Examples:
      dobandit project model.json -o observed.json
      dobandit project funnel.dagitty --target buy -o observed.dot
    """
    what = read_graph_or_model(file, format=file_format, target=target, latent=latent, context=context)
    if isinstance(what, CausalGraph):
        graph = project(what)
        text = print_graph(graph, file_format or format_of_suffix(file) or "edgelist")
        if output:
            write_graph(graph, output, format=None if format_of_suffix(output) else file_format)
    else:
        if output and format_of_suffix(output) not in (None, "json"):
            raise ModelError(f"a model file is JSON, but {output} names another format. Use an ending such as .json.")
        if not isinstance(what, WeightedModel):
            raise ModelError(
                "hidden variables are removed from linear models, but this one has tables. Project its graph."
            )
        model = project(what)
        graph, text = model.graph, print_model(model)
        if output:
            write_model(model, output)
    before = what if isinstance(what, CausalGraph) else what.graph
    if as_json:
        print_json(
            {
                "kind": "graph" if isinstance(what, CausalGraph) else "model",
                "removed": list(before.latent),
                "nodes": len(graph),
                "edges": graph.edge_count,
                "output": output,
                **({} if output else {"text": text}),
            }
        )
    elif output:
        click.echo(f"removed {names(before.latent)}; wrote {len(graph)} nodes, {graph.edge_count} edges to {output}")
    else:
        click.echo(text, nl=not text.endswith("\n"))


def format_of_suffix(path: str) -> str | None:
    from dobandit.graph.formats import format_of_path

    return format_of_path(Path(path))


@click.command("expect")
@click.argument("file", type=click.Path())
@click.option("--do", "settings", multiple=True, metavar="NAME=VALUE", help="Set a variable; may be repeated.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True)
@click.option("--samples", type=click.IntRange(min=2), default=100_000, show_default=True, help="For Monte Carlo.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For Monte Carlo.")
@json_option
def expect_command(file: str, settings: tuple[str, ...], method: str, samples: int, seed: int, as_json: bool) -> None:
    """Means of every variable of a model FILE under an intervention.

    \b
    Examples:
      dobandit expect model.json
      dobandit expect model.json --do coupon=1 --do email=0 --json
    """
    model = read_model(file)
    answer = expect(model, parse_settings(settings), method, samples=samples, seed=seed)
    if as_json:
        document = {"means": answer.means, "method": answer.method, "standard_error": answer.standard_error}
        if answer.samples:
            document |= {"standard_errors": answer.standard_errors, "samples": answer.samples}
        print_json(document)
        return
    errors = answer.standard_errors
    rows = [
        (name + (" (target)" if name == answer.target else ""), f"{mean:.6f}")
        + ((f"{errors[name]:.6f}",) if errors else ())
        for name, mean in answer.means.items()
    ]
    done = ", ".join(settings) or "nothing set"
    how = f"Monte Carlo, {answer.samples:,} samples" if answer.samples else f"exact, {answer.method}"
    columns = ["variable", "mean", "standard error"] if errors else ["variable", "mean"]
    print_table(columns, rows, title=f"do({done}): {how}", right=[1, 2])


def parse_settings(settings: tuple[str, ...]) -> dict[str, float]:
    """NAME=VALUE pairs; the last = separates, since names may hold one."""
    do: dict[str, float] = {}
    for setting in settings:
        name, separator, value = setting.rpartition("=")
        if not separator or not name:
            raise InterventionError(f"--do takes NAME=VALUE, such as --do X3=1, but got {setting!r}.")
        if name in do:
            raise InterventionError(f"each variable is set once, but --do {name} is given twice.")
        try:
            do[name] = float(value)
        except ValueError:
            raise InterventionError(f"--do {name} needs a number after the =, but got {value!r}.") from None
    return do


@click.command("paper")
@json_option
def paper_command(as_json: bool) -> None:
    """List the paper's models G1..G5 with the best set of each.

    \b
    Example:
      dobandit paper --json
    """
    from dobandit import paper
    from dobandit.oracle.solve import solve

    rows, document = [], {}
    for name, model in paper.MODELS.items():
        best = solve(model, paper.BUDGETS[name])
        graph, budget = model.graph, paper.BUDGETS[name]
        arms = math.comb(len(graph.controllable), budget)
        nothing = expect(model).value
        rows.append(
            (
                name,
                str(len(graph) + 1),
                str(len(graph.arrays.parent)),
                str(budget),
                str(arms),
                "{" + ", ".join(best.set) + "}",
                f"{best.value:.4f}",
                f"{nothing:.4f}",
            )
        )
        document[name] = {"budget": budget, "arms": arms, "set": list(best.set), "value": best.value}
    if as_json:
        print_json({"graphs": document})
    else:
        columns = ["model", "nodes", "edges", "K", "sets", "best set", "E[Y | do(best)]", "E[Y]"]
        print_table(columns, rows, title="The models of the paper (X1 = 1 counts as a node)", right=[1, 2, 3, 4, 6, 7])
