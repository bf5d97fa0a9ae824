"""The commands create, list, show, rename and delete."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from dobandit.cli import options
from dobandit.cli.check import MEDIATORS
from dobandit.cli.experiments import common, count_of, name_argument
from dobandit.cli.experiments import printing as out
from dobandit.cli.experiments.printing import Fact, digits, duration, estimated, moment, print_facts, values
from dobandit.cli.output import answer, names, print_json, print_table, say
from dobandit.cli.storage import kept, opened
from dobandit.diagnosis.mechanism_nodes import ways_of
from dobandit.documents import live as documents
from dobandit.errors import ExperimentError
from dobandit.experiment.catalogue import create_experiment, delete_experiment, list_experiments, rename_experiment
from dobandit.experiment.reasons import gap_words, stop_words
from dobandit.graph.mechanisms import in_ways
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
@options.lease_option("never")
@options.graph_options
@options.link_option(
    "How causes add up: auto, identity, logistic, ... Default, for other nodes too: auto with causal-ucb."
)
@options.effects_option("as the policy takes it")
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
@options.randomised_option
@options.rule_options
@click.option("--if-exists", type=click.Choice(["error", "open"]), default="error", show_default=True)
@common
def create_command(
    name: str,
    file: str,
    links: tuple[str, ...],
    storage: str,
    as_json: bool,
    history: str | None,
    if_exists: str,
    **given: Any,
) -> None:
    """Of a model file the structure and the links are used, never the weights: these are what the experiment learns.

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
    what = options.read_structure(file, given)
    with kept(storage) as place:
        found = if_exists == "open" and place.find(name) is not None
        rules = options.rule_words(given)  # what is left of what was given, `create_experiment` takes as it is
        experiment = create_experiment(
            name,
            what,
            storage=place,
            links=options.links_of(links, what),
            history=history,
            if_exists=if_exists,
            **rules,
            **given,
        )
        begun = experiment.told_rounds if history is not None else 0
    if as_json:
        said = {"experiment": experiment.name, "storage": experiment.storage.url, "created": not found}
        print_json({**said, "definition": experiment.definition.document})
        return
    say(f"experiment {name} {'opened' if found else 'created'} in {place.url}")
    print_facts(definition_rows(experiment))
    if begun:
        say(f"it begins with {counted(begun, 'round')} from {history}")
    mediators = experiment.graph.settable_mediators
    if mediators and not settable_said:
        say(f"note: {names(mediators)} can be set, though other variables cause it; {MEDIATORS}")
    click.echo()
    known = [word for variable in experiment.graph.context for word in ("--context", f"{variable}=_")]
    say(f"next: {out.command_line(experiment, 'ask', [name], known)}")
    out.password_note(experiment)


@click.command("list")
@common
def list_command(storage: str, as_json: bool) -> None:
    """\b
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
        cells = [(e.name, f"{e.trials:,}", f"{e.trials - e.closed:,}", moment(e.created_at)) for e in found]
        print_table(["experiment", "trials", "pending", "created"], cells, right=[1, 2])


@click.command("show")
@name_argument
@common
def show_command(name: str, storage: str, as_json: bool) -> None:
    """\b
    Examples:
      dobandit experiment show spring
      dobandit experiment show spring --json
    """
    with opened(name, storage) as experiment:
        status = experiment.status()
    answer(as_json, documents.shown_document(experiment, status), lambda: print_status(experiment, status))


@click.command("rename")
@name_argument
@click.argument("new")
@common
def rename_command(name: str, new: str, storage: str, as_json: bool) -> None:
    """\b
    Example:
      dobandit experiment rename spring spring-2025
    """
    with kept(storage) as place:
        rename_experiment(name, new, place)
    answer(as_json, {"experiment": new, "was": name}, f"experiment {name} is now {new}")


@click.command("delete")
@name_argument
@click.option("--yes", is_flag=True, help="Do not ask first.")
@common
@click.pass_context
def delete_command(context: click.Context, name: str, yes: bool, storage: str, as_json: bool) -> None:
    """For good; asks first.

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
    answer(as_json, {"experiment": name, "deleted": agreed}, said)
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
        ("to hand out again", status.expired and f"{status.expired} whose lease ran out"),
        ("rounds", status.rounds != status.told and f"{status.rounds:,} in the trials that were told"),
        (f"{status.target} so far", mean),
        (f"{status.target} in control rounds", status.control and _mean(status.control)),
        (f"{status.target} in the others", status.control and _mean(status.treated)),
        ("may stop", status.stop_within is not None and _stopping(status, experiment.delta)),
        ("guaranteed", status.guaranteed_gap is not None and gap_words(status.guaranteed_gap, experiment.delta)),
    ]
    for name, rounds in status.untaught.items():
        because = "because its value or a cause's value was missing"
        rows.append((f"nothing about {name}", f"was learned from {counted(rounds, 'told round')}, {because}"))
    print_facts([*rows, ("last told", moment(status.last_told_at))])


def _mean(mean: Mean | None) -> str:
    if mean is None:
        return "none seen yet"
    how = f", 95% confidence, valid at every look; {counted(mean.rounds, 'round')}"
    return estimated(mean.value, mean.interval, how)


def _stopping(status: Status, delta: float) -> str:
    if status.gap is None or status.stop_within is None:
        return "depends on the context: `ask` and `recommend` say it for one"
    may = bool(status.may_stop)
    return stop_words(may, status.gap, status.more_rounds, status.doubts, status.stop_within, delta)


def definition_rows(experiment: Experiment) -> list[Fact]:
    graph, kept = experiment.graph, experiment.definition.document
    rules, problem = kept["rules"], experiment.definition.problem
    levers, hidden, always_set = problem.rules.levers, problem.hidden, problem.rules.always_set
    settable = [
        name if levers.get(name, (1.0,)) == (1.0,) else f"{name} ({' or '.join(f'{to:g}' for to in levers[name])})"
        for name in graph.controllable
        if name not in (*rules["forbid"], *hidden) and name in rules.get("available", graph.controllable)
    ]
    ways = {} if problem.mechanisms is None else ways_of(experiment.definition.learner)
    most = [] if rules["budget"] is None else [f"at most {rules['budget']}"]
    most += [] if rules["total_cost"] is None else [f"what costs at most {rules['total_cost']:g}"]
    by_link: dict[str, list[str]] = {}
    for name, link in kept["links"].items():
        if name not in hidden:
            by_link.setdefault(_link(link), []).append(name)
    control, stop = experiment.definition.control, experiment.definition.stop_within
    return [
        ("target", graph.target + (", a number from 0 to 1" if kept["continuous"] else "")),
        ("variables", f"{len(graph)}, with {graph.edge_count} edges"),
        ("to set", f"{', '.join(most)} of {names(settable)}"),
        ("sizes", problem.sets_in_words()),
        ("require", rules["require"] and names(rules["require"])),
        ("forbid", rules["forbid"] and names(rules["forbid"])),
        *(("exclusive", names(group)) for group in rules["exclusive"]),
        ("costs", rules["costs"] and f"{values(rules['costs'])}, others 1"),
        ("context", graph.context and f"{names(graph.context)}, known before acting"),
        ("hidden", graph.latent and names(graph.latent)),
        ("counts as hidden", hidden and f"{names(hidden)}: kept in the log, not learned from"),
        ("always set", always_set and f"{names(always_set)}: rounds without it teach nothing"),
        ("hidden causes", problem.obstacle and not ways and "are shared: sets are compared by their own rounds alone"),
        *in_ways(ways),
        *(("link", f"{link} for {names(nodes)}") for link, nodes in by_link.items()),
        ("effects", "no cause does harm" if problem.effects == "nonnegative" else "some cause may do harm"),
        ("policy", experiment.definition.policy_text),
        ("horizon", "not known" if kept["horizon"] is None else f"{kept['horizon']:,} rounds"),
        ("seed", str(kept["seed"])),
        ("lease", "none" if kept["lease"] is None else duration(kept["lease"])),
        ("control", control and f"nothing is set in {control:.3g} of the rounds"),
        ("to stop", stop is not None and f"when {gap_words(stop, experiment.delta)}"),
    ]


def _link(link: Any) -> str:
    if isinstance(link, str):
        return link
    rest = ", ".join(f"{key} {value:g}" for key, value in link.items() if key != "name" and value)
    return str(link["name"]) + (f" ({rest})" if rest else "")
