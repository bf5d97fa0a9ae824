"""The command `solve`: the best action of a known model."""

from __future__ import annotations

from typing import Any

import click

from dobandit.cli.networks import network_options, read_world
from dobandit.cli.output import json_option, print_json, print_table
from dobandit.cli.rules import rule_options, rule_words, shown_action
from dobandit.oracle.rules import rules_of
from dobandit.oracle.solve import MOST_LISTED, ORACLES, sizes_in_words, solve
from dobandit.report.readable import counted


@click.command("solve")
@click.argument("file", type=click.Path())
@network_options
@rule_options
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
    """The best action on a model FILE (JSON, or BIF with tables): what to set, and to what, so that the target becomes
    most likely.

    Variables are set to 1 unless --lever says otherwise. A budget or a total cost is needed.

    \b
    Examples:
      dobandit solve model.json -k 3
      dobandit solve model.json -k 2 --lever price=0,1
      dobandit solve model.json --total-cost 5 --cost coupon=2 --forbid email --top 5 --json
      dobandit solve survey.bif.gz --target T -k 1 --binarise A=adult,old --binarise T=car
    """
    words = rule_words(given)
    rules = rules_of(words.pop("budget"), words)
    model = read_world(file, given)
    result = solve(model, rules, oracle=oracle, top=top, time_limit=time_limit)
    if as_json:
        best = [{"set": list(do), "do": do, "value": value} for do, value in result.top]
        certificate = {key: value for key, value in vars(result).items() if key != "top"}
        print_json({"set": list(result.set), **certificate, **({"top": best} if top > 1 else {})})
        return
    rows = [(str(i), shown_action(do), f"{value:.6f}") for i, (do, value) in enumerate(result.top, 1)]
    print_table(["", "set", f"E[{model.graph.target}]"], rows, right=[0, 2])
    proof = "proved optimal" if result.status == "optimal" else f"no set is worth more than {result.bound:.6f}"
    click.echo(f"{proof}; {result.oracle}, {counted(result.explored, 'set')} looked at, {result.seconds:.3f} s")
    click.echo(sizes_in_words(model, rules))
