"""The command `solve`: the best set of a known model."""

from __future__ import annotations

import click

from dobandit.cli.output import json_option, print_json, print_table
from dobandit.errors import InterventionError
from dobandit.model.files import read_model
from dobandit.oracle.solve import MOST_LISTED, ORACLES, solve


@click.command("solve")
@click.argument("file", type=click.Path())
@click.option("-k", "--budget", type=click.IntRange(min=0), help="How many variables may be set at most.")
@click.option("--cost", "costs", multiple=True, metavar="NAME=COST", help="Cost of a variable; 1 where not given.")
@click.option("--total-cost", type=float, help="How much a set may cost at most.")
@click.option("--require", multiple=True, metavar="NAME", help="A variable that every set holds.")
@click.option("--forbid", multiple=True, metavar="NAME", help="A variable that no set holds.")
@click.option("--exclusive", multiple=True, metavar="A,B,...", help="Variables of which a set holds at most one.")
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
def solve_command(
    file: str,
    budget: int | None,
    costs: tuple[str, ...],
    total_cost: float | None,
    require: tuple[str, ...],
    forbid: tuple[str, ...],
    exclusive: tuple[str, ...],
    oracle: str,
    top: int,
    time_limit: float | None,
    as_json: bool,
) -> None:
    """The best set of a model FILE: which variables to set to 1 so that the target becomes most likely.

    \b
    Examples:
      dobandit solve model.json -k 3
      dobandit solve model.json --total-cost 5 --cost coupon=2 --forbid email --top 5 --json
    """
    result = solve(
        read_model(file),
        budget,
        costs=parse_costs(costs),
        total_cost=total_cost,
        require=require,
        forbid=forbid,
        exclusive=[[name.strip() for name in group.split(",") if name.strip()] for group in exclusive],
        oracle=oracle,
        top=top,
        time_limit=time_limit,
    )
    if as_json:
        document = {
            "set": list(result.set),
            "value": result.value,
            "bound": result.bound,
            "status": result.status,
            "oracle": result.oracle,
            "seconds": result.seconds,
            "factor": result.factor,
            "explored": result.explored,
        }
        if top > 1:
            document["top"] = [{"set": list(chosen), "value": value} for chosen, value in result.top]
        print_json(document)
        return
    rows = [(str(i), "{" + ", ".join(chosen) + "}", f"{value:.6f}") for i, (chosen, value) in enumerate(result.top, 1)]
    print_table(["", "set", "E[target]"], rows, right=[0, 2])
    proof = "proved optimal" if result.status == "optimal" else f"no set is worth more than {result.bound:.6f}"
    click.echo(f"{proof}; {result.oracle}, {result.explored:,} sets looked at, {result.seconds:.3f} s")


def parse_costs(costs: tuple[str, ...]) -> dict[str, float]:
    """NAME=COST pairs; the last = separates, since names may hold one."""
    parsed: dict[str, float] = {}
    for pair in costs:
        name, separator, value = pair.rpartition("=")
        try:
            number = float(value) if separator and name else None
        except ValueError:
            number = None
        if number is None:
            raise InterventionError(f"--cost takes NAME=COST, such as --cost X3=2, but got {pair!r}.")
        if name in parsed:
            raise InterventionError(f"each cost is given once, but --cost {name} is given twice.")
        parsed[name] = number
    return parsed
