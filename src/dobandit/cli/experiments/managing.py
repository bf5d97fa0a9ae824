"""The commands create, list, show, rename and delete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from dobandit.cli.experiments import printing as out
from dobandit.cli.experiments.group import common, count_of
from dobandit.cli.experiments.printing import MOST_ON_A_LINE, digits, duration, moment, print_facts, values
from dobandit.cli.models import MEDIATORS
from dobandit.cli.options import (
    LEASE_HELP,
    effects_option,
    graph_options,
    hide_of,
    lease_of,
    link_option,
    links_of,
    read_structure,
    rule_options,
    rule_words,
)
from dobandit.cli.output import answer, names, print_json, print_table, say
from dobandit.cli.storage import kept, opened
from dobandit.documents import live as documents
from dobandit.errors import ExperimentError
from dobandit.experiment.catalogue import create_experiment, delete_experiment, list_experiments, rename_experiment
from dobandit.experiment.reasons import gap_words
from dobandit.texts import counted, printable

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment
    from dobandit.experiment.status import Mean, Status


@click.command("create")
@click.argument("name")
@click.argument("file", metavar="GRAPH_OR_MODEL_FILE", type=click.Path())
@click.option("--policy", metavar="NAME[:KEY=VALUE,...]", help="Default: causal-ucb.")
@click.option("--horizon", type=click.IntRange(min=1), help="How many rounds there will be, if that is known.")
@click.option("--seed", type=click.IntRange(min=0), help="Default: drawn at random, and kept.")
@click.option("--lease", metavar="TIME", help=LEASE_HELP + " Default: never.")
@graph_options
@link_option("How causes add up: auto, identity, logistic, ... Default, for other nodes too: auto with causal-ucb.")
@effects_option("as the policy takes it")
@click.option("--continuous", is_flag=True, help="Values are numbers from 0 to 1, not only 0 and 1.")
@click.option(
    "--control", type=float, default=0.0, metavar="SHARE", help="Share of rounds in which nothing is set, such as 0.1."
)
@click.option(
    "--stop-within",
    type=float,
    metavar="GAP",
    help="Say when no allowed set can be better than the recommended one by more, such as 0.02.",
)
@click.option(
    "--history",
    metavar="DATA",
    type=click.Path(),
    help="Begin with what is known from before: a .csv, .csv.gz or .parquet file, as `dobandit rank` takes it.",
)
@rule_options
@click.option("--if-exists", type=click.Choice(["error", "open"]), default="error", show_default=True)
@common
def create_command(
    name: str,
    file: str,
    hide: tuple[str, ...],
    links: tuple[str, ...],
    lease: str | None,
    storage: str,
    as_json: bool,
    history: str | None,
    if_exists: str,
    **given: Any,
) -> None:
    """Begin an experiment on a graph or model file.

    Of a model file the structure and the links are used, never the weights: these are what the experiment learns.

    \b
    Examples:
      dobandit experiment create spring funnel.txt --target buy -k 2
      dobandit experiment create spring funnel.txt --total-cost 5 --cost coupon=2 --exclusive email,letter \\
          --policy blm-lr:radius_scale=0.1 --horizon 2000 --lease 30m
      dobandit experiment create spring funnel.txt -k 2 --control 0.1
      dobandit experiment create spring funnel.txt -k 2 --hide auto
      dobandit experiment create spring funnel.txt -k 2 --history visits.csv
    """
    settable_said = bool(given["controllable"])
    what = read_structure(file, given)
    with kept(storage) as place:
        found = if_exists == "open" and place.find(name) is not None
        rules = rule_words(given)  # what is left of what was given, `create_experiment` takes as it is
        experiment = create_experiment(
            name,
            what,
            storage=place,
            lease=lease_of(lease),
            links=links_of(links, what),
            hide=hide_of(hide),
            history=history,
            if_exists=if_exists,
            **rules,
            **given,
        )
        begun = experiment.told_rounds if history is not None else 0
    if as_json:
        print_json(documents.created_document(experiment, not found))
        return
    say(f"experiment {name} {'opened' if found else 'created'} in {place.url}")
    out.print_facts(definition_rows(experiment))
    if begun:
        say(f"it begins with {counted(begun, 'round')} from {history}")
    mediators = experiment.graph.settable_mediators
    if mediators and not settable_said:
        say(f"note: {names(mediators)} can be set, though other variables cause it; {MEDIATORS}")
    click.echo()
    known = [f"--context {one}=_" for one in experiment.graph.context]
    say(" ".join([f"next: {out.command_line(experiment, 'ask', [name])}", *known]))
    out.password_note(experiment)


@click.command("list")
@common
def list_command(storage: str, as_json: bool) -> None:
    """List the experiments of a storage.

    \b
    Examples:
      dobandit experiment list
      dobandit experiment list --storage sqlite:///spring.db --json
    """
    with kept(storage) as place:
        found = list_experiments(place)
    if as_json:
        print_json([documents.listed_document(stored) for stored in found])
    elif not found:
        say(f"no experiments in {place.url}; dobandit experiment create begins one")
    else:
        cells = [(e.name, f"{e.trials:,}", f"{e.trials - e.closed:,}", out.moment(e.created_at)) for e in found]
        print_table(["experiment", "trials", "pending", "created"], cells, right=[1, 2])


@click.command("show")
@click.argument("name")
@common
def show_command(name: str, storage: str, as_json: bool) -> None:
    """Show an experiment's settings and progress.

    \b
    Examples:
      dobandit experiment show spring
      dobandit experiment show spring --json
    """
    with opened(name, storage) as experiment:
        status = experiment.status()
    answer(as_json, documents.shown_document(experiment, status), lambda: print_status(experiment, status))


@click.command("rename")
@click.argument("name")
@click.argument("new")
@common
def rename_command(name: str, new: str, storage: str, as_json: bool) -> None:
    """Give an experiment another name.

    \b
    Example:
      dobandit experiment rename spring spring-2025
    """
    with kept(storage) as place:
        rename_experiment(name, new, place)
    answer(as_json, documents.renamed_document(new, name), f"experiment {name} is now {new}")


@click.command("delete")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@common
@click.pass_context
def delete_command(context: click.Context, name: str, yes: bool, storage: str, as_json: bool) -> None:
    """Delete an experiment with its whole log.

    For good; asks first.

    \b
    Examples:
      dobandit experiment delete spring
      dobandit experiment delete spring --yes
    """
    with opened(name, storage) as experiment:
        if not yes and not at_a_terminal():
            raise ExperimentError(
                "deleting asks first, but standard input is not a terminal. Nothing was deleted; add --yes to delete."
            )
        trials = counted(count_of(experiment), "trial")
        question = printable(f"Delete experiment {name} with its {trials} from {experiment.storage.url}?")
        agreed = yes or click.confirm(question, err=True)
        if agreed:
            delete_experiment(name, experiment.storage)
    said = f"experiment {name} deleted, with {trials}" if agreed else "nothing was deleted"
    answer(as_json, documents.deleted_document(name, agreed), said)
    context.exit(0 if agreed else 1)


def at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


# -- what `create` and `show` print ----------------------------------------------------------------------------------


def print_status(experiment: Experiment, status: Status) -> None:
    flags = ", ".join(f"{getattr(status, flag):,} {flag}" for flag in ("late", "partial") if getattr(status, flag))
    states = [state for state in ("told", "pending", "failed", "abandoned") if getattr(status, state)]
    words = [f"{getattr(status, s):,} {s}" + (f" ({flags})" if s == "told" and flags else "") for s in states]
    mean = "none seen yet" if status.mean_target is None else f"{digits(status.mean_target)} on average"
    say(f"experiment {status.name} in {status.storage}")
    rows = [
        *definition_rows(experiment),
        ("created", moment(status.created_at)),
        ("trials", ", ".join(words) or "none yet"),
    ]
    if status.expired:
        rows.append(("to hand out again", f"{status.expired} whose lease ran out"))
    if status.rounds != status.told:
        rows.append(("rounds", f"{status.rounds:,} in the trials that were told"))
    rows.append((f"{status.target} so far", mean))
    if status.control is not None:
        rows.append((f"{status.target} in control rounds", _mean(status.control)))
        rows.append((f"{status.target} in the others", _mean(status.treated)))
    if status.stop_within is not None:
        rows.append(("may stop", _stopping(status, experiment.delta)))
    rows += [
        (
            f"nothing about {name}",
            f"was learned from {counted(rounds, 'told round')}, because its value or a cause's value was missing",
        )
        for name, rounds in status.untaught.items()
    ]
    print_facts([*rows, ("last told", moment(status.last_told_at))])


def _mean(mean: Mean | None) -> str:
    if mean is None:
        return "none seen yet"
    return out.estimated(
        mean.value, mean.interval, f", 95% confidence, valid at every look; {counted(mean.rounds, 'round')}"
    )


def _stopping(status: Status, delta: float) -> str:
    if status.gap is None:
        return "depends on the context: `ask` and `recommend` say it for one"
    if status.may_stop:
        return f"yes: {gap_words(status.gap, delta)}"
    if status.doubts:
        return f"no: {' '.join(status.doubts)} If the model were right, {gap_words(status.gap, delta)}"
    return f"not yet: so far {gap_words(status.gap, delta)}; wanted {status.stop_within:g}"


def definition_rows(experiment: Experiment) -> list[tuple[str, str]]:
    graph, kept = experiment.graph, experiment.definition.document
    rules, links, problem = kept["rules"], kept["links"], experiment.definition.problem
    levers = problem.rules.levers
    settable = [
        name if levers.get(name, (1.0,)) == (1.0,) else f"{name} ({' or '.join(f'{to:g}' for to in levers[name])})"
        for name in graph.controllable
        if name not in (*rules["forbid"], *problem.hidden) and name in rules.get("available", graph.controllable)
    ]
    most = [] if rules["budget"] is None else [f"at most {rules['budget']}"]
    most += [] if rules["total_cost"] is None else [f"what costs at most {rules['total_cost']:g}"]
    rows = [
        ("target", graph.target + (", a number from 0 to 1" if kept["continuous"] else "")),
        ("variables", f"{len(graph)}, with {graph.edge_count} edges"),
        ("to set", f"{', '.join(most)} of {names(settable, MOST_ON_A_LINE)}"),
        ("sizes", problem.sets_in_words()),
    ]
    rows += [(key, names(rules[key], MOST_ON_A_LINE)) for key in ("require", "forbid") if rules[key]]
    rows += [("exclusive", names(group, MOST_ON_A_LINE)) for group in rules["exclusive"]]
    rows += [("costs", values(rules["costs"]) + ", others 1")] if rules["costs"] else []
    rows += [("context", f"{names(graph.context, MOST_ON_A_LINE)}, known before acting")] if graph.context else []
    rows += [("hidden", names(graph.latent, MOST_ON_A_LINE))] if graph.latent else []
    if problem.hidden:
        rows.append(("counts as hidden", f"{names(problem.hidden, MOST_ON_A_LINE)}: kept in the log, not learned from"))
    if problem.rules.always_set:
        rows.append(
            ("always set", f"{names(problem.rules.always_set, MOST_ON_A_LINE)}: rounds without it teach nothing")
        )
    if problem.obstacle is not None:
        rows.append(("hidden causes", "cannot be removed: sets are compared by their own rounds alone"))
    by_link: dict[str, list[str]] = {}
    for name, link in links.items():
        if name not in problem.hidden:
            by_link.setdefault(_link(link), []).append(name)
    rows += [("link", f"{link} for {names(nodes, MOST_ON_A_LINE)}") for link, nodes in by_link.items()]
    within = experiment.definition.stop_within
    return [
        *rows,
        ("effects", "no cause does harm" if problem.effects == "nonnegative" else "some cause may do harm"),
        ("policy", experiment.definition.policy_text),
        ("horizon", "not known" if kept["horizon"] is None else f"{kept['horizon']:,} rounds"),
        ("seed", str(kept["seed"])),
        ("lease", "none" if kept["lease"] is None else duration(kept["lease"])),
        *([("control", f"nothing is set in {kept['control']:.3g} of the rounds")] if kept["control"] else []),
        *([("to stop", f"when {gap_words(within, experiment.delta)}")] if within is not None else []),
    ]


def _link(link: Any) -> str:
    if isinstance(link, str):
        return link
    rest = ", ".join(f"{key} {value:g}" for key, value in link.items() if key != "name" and value)
    return str(link["name"]) + (f" ({rest})" if rest else "")
