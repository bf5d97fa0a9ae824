"""The commands create, list, show, rename and delete."""

from __future__ import annotations

import sys
from typing import Any

import click

from dobandit.cli.experiments import printing as out
from dobandit.cli.experiments.group import common, count_of, experiment_group
from dobandit.cli.experiments.inputs import LEASE_HELP, lease_of, links_of
from dobandit.cli.models import graph_options
from dobandit.cli.output import print_json, print_table
from dobandit.cli.storage import kept, opened
from dobandit.errors import ExperimentError
from dobandit.experiment.catalogue import create_experiment, delete_experiment, list_experiments, rename_experiment
from dobandit.model.files import read_graph_or_model


@experiment_group.command("create")
@click.argument("name")
@click.argument("file", metavar="GRAPH_OR_MODEL_FILE", type=click.Path())
@click.option("-k", "--budget", type=click.IntRange(min=0), help="How many variables may be set in a round at most.")
@click.option("--policy", metavar="NAME[:KEY=VALUE,...]", help="Default: blm-lr on linear models, else bglm-ofu.")
@click.option("--horizon", type=click.IntRange(min=1), help="How many rounds there will be, if that is known.")
@click.option("--seed", type=click.IntRange(min=0), help="Default: drawn at random, and kept.")
@click.option("--lease", metavar="TIME", help=LEASE_HELP + " Default: never.")
@graph_options
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="[NODE=]LINK",
    help="How causes add up: logistic, probit, ... Default: identity.",
)
@click.option("--continuous", is_flag=True, help="Values are numbers from 0 to 1, not only 0 and 1.")
@click.option("--cost", "costs", multiple=True, metavar="NAME=COST", help="Cost of a variable; 1 where not given.")
@click.option("--total-cost", type=float, help="How much a set may cost at most.")
@click.option("--require", multiple=True, metavar="NAME", help="A variable that every set holds.")
@click.option("--forbid", multiple=True, metavar="NAME", help="A variable that no set holds.")
@click.option("--exclusive", multiple=True, metavar="A,B,...", help="Variables of which a set holds at most one.")
@click.option("--if-exists", type=click.Choice(["error", "open"]), default="error", show_default=True)
@common
def create_command(
    name: str,
    file: str,
    target: str | None,
    latent: tuple[str, ...],
    file_format: str | None,
    links: tuple[str, ...],
    lease: str | None,
    costs: tuple[str, ...],
    exclusive: tuple[str, ...],
    storage: str,
    as_json: bool,
    **rest: Any,
) -> None:
    """Begin an experiment on a graph or model file.

    Of a model file the structure and the links are used, never the weights: these are what the experiment learns.

    \b
    Examples:
      dobandit experiment create spring funnel.txt --target buy -k 2
      dobandit experiment create spring funnel.txt --total-cost 5 --cost coupon=2 --exclusive email,letter \\
          --policy blm-lr:radius_scale=0.1 --horizon 2000 --lease 30m
    """
    from dobandit.cli.solving import parse_costs

    what = read_graph_or_model(file, format=file_format, target=target, latent=latent)
    with kept(storage) as place:
        found = rest["if_exists"] == "open" and place.find(name) is not None
        experiment = create_experiment(
            name,
            what,
            storage=place,
            lease=lease_of(lease),
            links=links_of(links, what),
            costs=parse_costs(costs),
            exclusive=[[one.strip() for one in group.split(",") if one.strip()] for group in exclusive],
            **rest,
        )
    document = experiment.definition.document
    if as_json:
        print_json({"experiment": name, "storage": place.url, "created": not found, "definition": document})
        return
    out.say(f"experiment {name} {'opened' if found else 'created'} in {place.url}")
    out.print_facts(out.definition_rows(experiment))
    click.echo()
    out.say(f"next: {out.command_line(experiment, 'ask', [name])}")


@experiment_group.command("list")
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
        keys = ("name", "created_at", "trials", "closed", "pending")
        rows = [(e.name, out.iso(e.created_at), e.trials, e.closed, e.trials - e.closed) for e in found]
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
    elif not found:
        click.echo(f"no experiments in {place.url}; dobandit experiment create begins one")
    else:
        cells = [(e.name, f"{e.trials:,}", f"{e.trials - e.closed:,}", out.moment(e.created_at)) for e in found]
        print_table(["experiment", "trials", "pending", "created"], cells, right=[1, 2])


@experiment_group.command("show")
@click.argument("name")
@common
def show_command(name: str, storage: str, as_json: bool) -> None:
    """Say what an experiment is, and how far.

    \b
    Examples:
      dobandit experiment show spring
      dobandit experiment show spring --json
    """
    with opened(name, storage) as experiment:
        status = experiment.status()
    if as_json:
        print_json({**out.status_document(status), "definition": experiment.definition.document})
    else:
        out.print_status(experiment, status)


@experiment_group.command("rename")
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
    if as_json:
        print_json({"experiment": new, "was": name})
    else:
        out.say(f"experiment {name} is now {new}")


@experiment_group.command("delete")
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
        trials = out.many(count_of(experiment), "trial")
        question = out.shown(f"Delete experiment {name} with its {trials} from {experiment.storage.url}?")
        agreed = yes or click.confirm(question, err=True)
        if agreed:
            delete_experiment(name, experiment.storage)
    if as_json:
        print_json({"experiment": name, "deleted": agreed})
    else:
        out.say(f"experiment {name} deleted, with {trials}" if agreed else "nothing was deleted")
    context.exit(0 if agreed else 1)


def at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
