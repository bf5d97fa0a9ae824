"""Commands that say what to set: expect, paper and solve on models, and rank, which learns from data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dobandit.cli import options
from dobandit.cli.output import json_option, print_json, print_table, quiet, say
from dobandit.model.inference import METHODS, expect
from dobandit.oracle.rules import rules_of
from dobandit.oracle.search_space import Progress
from dobandit.oracle.solve import MOST_LISTED, ORACLES, TIME_LIMIT, sizes_in_words, solve
from dobandit.policy.hidden_causes import Hide
from dobandit.texts import action_words, counted, decimals, fixed, printable, setting_words

if TYPE_CHECKING:
    from dobandit.inspect.node_fits import NodeFit
    from dobandit.inspect.ranking import Ranked
    from dobandit.policy.engine import Interval
    from dobandit.report.ranking_result import RankingResult


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
    type=click.FloatRange(min=0),
    default=TIME_LIMIT,
    show_default=True,
    metavar="SECONDS",
    help="Stop with the best set found and a bound on what a better one can be worth; 0: no limit.",
)
@json_option
def solve_command(file: str, oracle: str, top: int, time_limit: float, as_json: bool, **given: Any) -> None:
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
    with _shown_progress(not quiet(as_json), time_limit) as progress:
        result = solve(model, rules, oracle=oracle, top=top, time_limit=time_limit or None, progress=progress)
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
    if result.stopped:
        click.echo(
            f"Stopped at the time limit of {time_limit:g} s, so a better set may exist. To search on, give a longer "
            f"limit (--time-limit {10 * time_limit:g}), or none (--time-limit 0)."
        )


@contextmanager
def _shown_progress(wanted: bool, time_limit: float) -> Iterator[Progress | None]:
    """A line on standard error that says how far the search is."""
    if not wanted:
        yield None
        return
    from rich.console import Console

    most = f" of {time_limit:g}" if time_limit else ""
    with Console(stderr=True).status("solving") as line:
        yield lambda looked, seconds: line.update(f"solving: {looked:,} sets looked at, {seconds:.0f}{most} s")


@click.command("rank")
@click.argument("data", metavar="DATA", type=click.Path())
@click.argument("file", metavar="GRAPH_OR_MODEL_FILE", type=click.Path())
@options.rule_options
@options.graph_options_but_context
@options.context_values_option("A variable that is observed before acting, and its value for this ranking")
@options.link_option("Assume a link. Default: chosen by held-out rows.")
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="How many of the best to show.")
@click.option("--chart", type=click.Path(), metavar="FILE", help="Draw them into a .png, .svg, .pdf or .html file.")
@click.option(
    "--looks",
    type=click.Choice(["once", "every"]),
    help="Whether intervals hold at one look at DATA, or at every look. Default: once, but for rows of trials.",
)
@json_option
def rank_command(
    data: str,
    file: str,
    hide: Hide,
    context: dict[str, float] | None,
    links: tuple[str, ...],
    top: int,
    chart: str | None,
    looks: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """DATA has a column per variable, 0 or 1, empty where it was not seen. Variables that were set in a row are named
    in its column intervention_targets or do, or have their value in a column do:NAME. A column count says how often a
    row was seen.

    \b
    Examples:
      dobandit rank visits.csv funnel.txt --target buy -k 2
      dobandit rank visits.csv.gz funnel.txt -k 2 --lever price=0,1 --top 5 --chart ranking.png
      dobandit rank visits.parquet funnel.txt -k 1 --context mobile=1 --json
      dobandit rank visits.csv funnel.txt -k 1 --hide auto
    """
    from dobandit.report.ranking_result import rank  # needs Numba, which help does not

    what = options.read_structure(file, given | {"context": tuple(context or ())})
    words = options.rule_words(given)
    rules = rules_of(words.pop("budget"), words)
    promised = options.links_of(links, what) or "auto"
    ranking = rank(what, data, rules, promised, context=context, hide=hide, looks=looks)
    if chart is not None:
        ranking.chart(top).save(chart)
    if as_json:
        print_json(ranking.to_document(top))
        return
    _print_ranking(ranking, top, chart)


def _print_ranking(ranking: RankingResult, top: int, chart: str | None) -> None:
    shown = ranking.actions[:top]
    places = (
        decimals(*(action.interval for action in shown)),
        decimals(*(action.uplift.interval for action in shown if action.uplift is not None and action.do)),
        decimals(*(action.observed.interval for action in shown if action.observed is not None)),
    )
    print_table(
        ["", "set", f"E[{ranking.target}]", "against nothing", "seen"],
        [(str(i), *_cells(action, *places)) for i, action in enumerate(shown, 1)],
        title=f"The best {len(shown):,} of {len(ranking.actions):,} sets, from {ranking.rounds:,} rounds",
        right=[0, 2, 3, 4],
    )
    print_table(
        ["variable", "rows", "link", "held-out margin, in nats", "fits"],
        [(name, f"{node.rows:,}", _link_words(node), _margin_words(node), _fit_words(node))
         for name, node in ranking.fit.nodes.items()],
        title="What the rows say of each variable",
        right=[1],
    )  # fmt: skip
    say(ranking.sentence)
    say(f"Each interval: {ranking.interval_words}.")
    for warning in ranking.warnings:
        click.echo(printable(f"warning: {warning}"), err=True)
    if chart is not None:
        say(f"drawn into {chart}")


def _cells(action: Ranked, of_values: int, of_uplifts: int, of_means: int) -> tuple[str, ...]:
    """A row, with as many decimals in each column."""
    seen, uplift = action.observed, action.uplift
    return (
        action_words(action.do),
        _worth_words(action.value, action.interval, of_values),
        "" if uplift is None or not action.do else _worth_words(uplift.value, uplift.interval, of_uplifts, "+"),
        "-" if seen is None else f"{fixed(seen.mean, of_means)} ({seen.rounds:,})",
    )


def _worth_words(value: float, interval: Interval, places: int, sign: str = "") -> str:
    ends = "..".join(fixed(end, places, sign) for end in interval)
    return f"{fixed(value, places, sign)}, {ends}"


def _link_words(node: NodeFit) -> str:
    if not node.link:
        return "too few rows to choose"
    return f"{node.link} (promised)" if node.promised else node.link


def _margin_words(node: NodeFit) -> str:
    """How clearly the link was chosen."""
    if node.margin is None or node.runner_up is None:
        return "-"
    clear = "" if node.clear else " (not told apart)"
    return f"{node.margin:+.1f} ± {node.margin_error:.1f} over {node.runner_up}{clear}"


def _fit_words(node: NodeFit) -> str:
    if node.link in ("rate", "table"):
        return "nothing to test"
    return node.verdict if node.p is None else f"{node.verdict} (p = {node.p:.2g})"
