"""The commands ask, tell, fail, abandon, record and import."""

from __future__ import annotations

import io

import click

from dobandit.cli.experiments import printing as out
from dobandit.cli.experiments.group import common, experiment_group
from dobandit.cli.experiments.inputs import LEASE_HELP, lease_of, observation_of, standard_input
from dobandit.cli.models import parse_settings
from dobandit.cli.output import print_json
from dobandit.cli.storage import opened
from dobandit.experiment.storage.base import ABANDONED, FAILED


@experiment_group.command("ask")
@click.argument("name")
@click.option("-n", "count", type=click.IntRange(min=1), default=1, show_default=True, help="How many rounds.")
@click.option("--available", multiple=True, metavar="NAME", help="What can be set now; may be repeated. Default: all.")
@click.option("--lease", metavar="TIME", help=LEASE_HELP + " Default: the experiment's.")
@common
def ask_command(
    name: str, count: int, available: tuple[str, ...], lease: str | None, storage: str, as_json: bool
) -> None:
    """Ask what to set in the next round.

    With --json an object, or a list of them where -n is above 1.

    \b
    Examples:
      dobandit experiment ask spring
      dobandit experiment ask spring -n 3 --available coupon --available email --lease 30m --json
    """
    with opened(name, storage) as experiment:
        asked = experiment.ask(available or None, n=count, lease=lease_of(lease))
        trials = asked if isinstance(asked, list) else [asked]
    if as_json:
        documents = [out.trial_document(trial) for trial in trials]
        print_json(documents if count > 1 else documents[0])
        return
    for i, trial in enumerate(trials):
        click.echo("\n" * (i > 0), nl=False)
        out.print_trial(experiment, trial)


@experiment_group.command("tell")
@click.argument("name")
@click.argument("trial", type=int)
@click.argument("seen", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--json-file", metavar="FILE", help="What was seen as a JSON object; - is standard input.")
@click.option("--issued", type=click.IntRange(min=1), help="Which of several hand-outs is told (see ask).")
@common
def tell_command(
    name: str,
    trial: int,
    seen: tuple[str, ...],
    json_file: str | None,
    issued: int | None,
    storage: str,
    as_json: bool,
) -> None:
    """Tell what was seen in a TRIAL.

    Variables left out, or given as NAME=?, were not seen. The same told twice changes nothing.

    \b
    Examples:
      dobandit experiment tell spring 3 visit=1 buy=0
      echo '{"visit": 1, "buy": null}' | dobandit experiment tell spring 3 --json-file -
    """
    observation = observation_of(seen, json_file)
    with opened(name, storage) as experiment:
        told = experiment.tell(trial, observation, issued)
    if as_json:
        print_json({"trial": told.number, "late": told.late, "partial": told.partial, "repeated": told.repeated})
        return
    flags = {"late": told.late, "partial": told.partial, "same as before": told.repeated}
    notes = ", ".join(word for word, holds in flags.items() if holds)
    click.echo(f"trial {told.number} told" + (f" ({notes})" if notes else ""))


@experiment_group.command("fail")
@click.argument("name")
@click.argument("trial", type=int)
@click.argument("reason", default="")
@common
def fail_command(name: str, trial: int, reason: str, storage: str, as_json: bool) -> None:
    """Say that a TRIAL was tried, but gave nothing.

    \b
    Example:
      dobandit experiment fail spring 4 "the shop was closed"
    """
    with opened(name, storage) as experiment:
        experiment.tell_failed(trial, reason)
    if as_json:
        print_json({"trial": trial, "state": FAILED, "reason": reason})
    else:
        out.say(f"trial {trial} failed" + (f": {reason}" if reason else ""))


@experiment_group.command("abandon")
@click.argument("name")
@click.argument("trial", type=int)
@common
def abandon_command(name: str, trial: int, storage: str, as_json: bool) -> None:
    """Say that nobody will carry a TRIAL out.

    \b
    Example:
      dobandit experiment abandon spring 5
    """
    with opened(name, storage) as experiment:
        experiment.abandon(trial)
    if as_json:
        print_json({"trial": trial, "state": ABANDONED})
    else:
        click.echo(f"trial {trial} abandoned")


@experiment_group.command("record")
@click.argument("name")
@click.argument("seen", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--do", "settings", multiple=True, metavar="NAME=VALUE", help="What was set; may be repeated.")
@click.option("--json-file", metavar="FILE", help="What was seen as a JSON object; - is standard input.")
@common
def record_command(
    name: str, seen: tuple[str, ...], settings: tuple[str, ...], json_file: str | None, storage: str, as_json: bool
) -> None:
    """Add a round that nobody asked for.

    \b
    Example:
      dobandit experiment record spring --do coupon=1 visit=1 buy=0
    """
    do, observation = parse_settings(settings), observation_of(seen, json_file)
    with opened(name, storage) as experiment:
        number = experiment.record(do, observation)
    if as_json:
        print_json({"trial": number})
    else:
        click.echo(f"recorded as trial {number}")


@experiment_group.command("import")
@click.argument("name")
@click.argument("file", type=click.Path())
@common
def import_command(name: str, file: str, storage: str, as_json: bool) -> None:
    """Add rounds that happened elsewhere from a CSV FILE.

    All of them, or none if one is wrong; - is standard input. A column a variable, empty where it was not seen; a
    column do:NAME is what NAME was set to, empty where it was not set. What `export` writes can be read.

    \b
    Examples:
      dobandit experiment import spring history.csv
      dobandit experiment export old - | dobandit experiment import new -
    """
    source = io.StringIO(standard_input()) if file == "-" else file
    with opened(name, storage) as experiment:
        numbers = experiment.import_history(source)
    if as_json:
        print_json({"rounds": len(numbers), "first": numbers[0], "last": numbers[-1]})
    elif len(numbers) == 1:
        click.echo(f"imported 1 round as trial {numbers[0]}")
    else:
        click.echo(f"imported {len(numbers):,} rounds as trials {numbers[0]} to {numbers[-1]}")
