"""Commands on models: expect, and paper, which lists those of the paper."""

from __future__ import annotations

import math
from typing import Any

import click

from dobandit.cli import options
from dobandit.cli.output import json_option, print_json, print_table
from dobandit.model.inference import METHODS, expect
from dobandit.oracle.rules import rules_of
from dobandit.oracle.solve import MOST_LISTED, ORACLES, sizes_in_words, solve
from dobandit.texts import action_words, counted, setting_words


@click.command("expect")
@click.argument("file", type=click.Path())
@options.network_options
@options.do_option("Set a variable")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True)
@click.option("--samples", type=click.IntRange(min=2), default=100_000, show_default=True, help="For Monte Carlo.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For Monte Carlo.")
@json_option
def expect_command(
    file: str, do: dict[str, float], method: str, samples: int, seed: int, as_json: bool, **network: Any
) -> None:
    """\b
    Examples:
      dobandit expect model.json
      dobandit expect model.json --do coupon=1 --do email=0 --json
      dobandit expect asia.bif.gz --target dysp --do smoke=1
    """
    model = options.read_world(file, network)
    answer = expect(model, do, method, samples=samples, seed=seed)
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
    how = f"Monte Carlo, {answer.samples:,} samples" if answer.samples else f"exact, {answer.method}"
    columns = ["variable", "mean", "standard error"] if errors else ["variable", "mean"]
    print_table(columns, rows, title=f"do({setting_words(do)}): {how}", right=[1, 2])


@click.command("paper")
@json_option
def paper_command(as_json: bool) -> None:
    """\b
    Example:
      dobandit paper --json
    """
    from dobandit import paper

    rows, document = [], {}
    for name, model in paper.MODELS.items():
        graph, budget = model.graph, paper.BUDGETS[name]
        best, arms = solve(model, budget), math.comb(len(graph.controllable), budget)
        sizes = map(str, (len(graph) + 1, len(graph.arrays.parent), budget, arms))
        rows.append((name, *sizes, action_words(best.do), f"{best.value:.4f}", f"{expect(model).value:.4f}"))
        document[name] = {"budget": budget, "arms": arms, "set": list(best.set), "value": best.value}
    if as_json:
        print_json({"graphs": document})
    else:
        columns = ["model", "nodes", "edges", "K", "sets", "best set", "E[Y | do(best)]", "E[Y]"]
        print_table(columns, rows, title="The models of the paper (X1 = 1 counts as a node)", right=[1, 2, 3, 4, 6, 7])


@click.command("solve")
@click.argument("file", type=click.Path())
@options.network_options
@options.rule_options
@click.option("--oracle", type=click.Choice(ORACLES), default="auto", show_default=True)
@click.option(
    "--top", type=click.IntRange(1, MOST_LISTED), default=1, show_default=True, help="How many of the best to list."
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop with the best set found and the gap left.",
)
@json_option
def solve_command(file: str, oracle: str, top: int, time_limit: float | None, as_json: bool, **given: Any) -> None:
    """Variables are set to 1 unless --lever says otherwise. A budget or a total cost is needed.

    \b
    Examples:
      dobandit solve model.json -k 3
      dobandit solve model.json -k 2 --lever price=0,1
      dobandit solve model.json --total-cost 5 --cost coupon=2 --forbid email --top 5 --json
      dobandit solve survey.bif.gz --target T -k 1 --binarise A=adult,old --binarise T=car
    """
    words = options.rule_words(given)
    rules = rules_of(words.pop("budget"), words)
    model = options.read_world(file, given)
    result = solve(model, rules, oracle=oracle, top=top, time_limit=time_limit)
    if as_json:
        best = [{"set": list(do), "do": do, "value": value} for do, value in result.top]
        certificate = {key: value for key, value in vars(result).items() if key != "top"}
        print_json({"set": list(result.set), **certificate, **({"top": best} if top > 1 else {})})
        return
    rows = [(str(i), action_words(do), f"{value:.6f}") for i, (do, value) in enumerate(result.top, 1)]
    print_table(["", "set", f"E[{model.graph.target}]"], rows, right=[0, 2])
    proof = "proved optimal" if result.status == "optimal" else f"no set is worth more than {result.bound:.6f}"
    click.echo(f"{proof}; {result.oracle}, {counted(result.explored, 'set')} looked at, {result.seconds:.3f} s")
    click.echo(sizes_in_words(model, rules))
