"""The commands ask, tell, fail, abandon, record and import."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import click

from dobandit.cli import options
from dobandit.cli.experiments import common, of_experiment
from dobandit.cli.experiments import printing as out
from dobandit.cli.output import answer, print_json
from dobandit.documents import live as documents
from dobandit.errors import DobanditWarning
from dobandit.rows.stored_trial import ABANDONED, FAILED
from dobandit.texts import counted

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment


@click.command("ask")
@of_experiment
@click.option("-n", "count", type=click.IntRange(min=1), default=1, show_default=True, help="How many rounds.")
@options.available_option
@options.lease_option("the experiment's")
@click.option(
    "--size", type=click.IntRange(min=1), default=1, show_default=True, help="Rounds that a trial is planned for."
)
@click.option(
    "--control/--no-control", default=None, help="Set nothing, or let the policy choose. Default: see create."
)
@options.context_option
@common
def ask_command(experiment: Experiment, count: int, as_json: bool, **words: Any) -> None:
    """An action that many people or machines get is one trial: --size says how many. With --json an object, or a list
    of them where -n is above 1.

    \b
    Examples:
      dobandit experiment ask spring
      dobandit experiment ask spring --size 1000
      dobandit experiment ask spring --control
      dobandit experiment ask spring --context mobile=1
      dobandit experiment ask spring -n 3 --available coupon --available email --lease 30m --json
    """
    trials = experiment.ask(n=count, **words)
    if as_json:
        said = [documents.trial_document(trial, experiment.interval_words) for trial in trials]
        print_json(said if count > 1 else said[0])
        return
    for i, trial in enumerate(trials):
        click.echo("\n" * (i > 0), nl=False)
        out.print_trial(experiment, trial)


@click.command("tell")
@of_experiment
@click.argument("trial", type=int)
@options.observation_options
@click.option("--issued", type=click.IntRange(min=1), help="Which of several hand-outs is told (see ask).")
@common
def tell_command(experiment: Experiment, trial: int, observation: Any, issued: int | None, as_json: bool) -> None:
    """Values are numbers, or yes and no. Variables left out, or given as NAME=?, were not seen; one without any cause
    that was not set was 0. A trial of many rounds is told at once with --rows, whose columns are the variables. The
    same told twice changes nothing.

    \b
    Examples:
      dobandit experiment tell spring 3 visit=yes buy=no
      dobandit experiment tell spring 4 --rows monday.csv
      cut -d, -f2-4 tuesday.csv | dobandit experiment tell spring 5 --rows -
      echo '{"visit": 1, "buy": null}' | dobandit experiment tell spring 3 --json-file -
    """
    told = experiment.tell(trial, observation, issued)
    answer(as_json, documents.numbered_document(told), str(told))


@click.command("fail")
@of_experiment
@click.argument("trial", type=int)
@click.argument("reason", default="")
@common
def fail_command(experiment: Experiment, trial: int, reason: str, as_json: bool) -> None:
    """\b
    Example:
      dobandit experiment fail spring 4 "the shop was closed"
    """
    experiment.tell_failed(trial, reason)
    said = f"trial {trial} failed" + (f": {reason}" if reason else "")
    answer(as_json, {"trial": trial, "state": FAILED, "reason": reason}, said)


@click.command("abandon")
@of_experiment
@click.argument("trial", type=int)
@common
def abandon_command(experiment: Experiment, trial: int, as_json: bool) -> None:
    """\b
    Example:
      dobandit experiment abandon spring 5
    """
    experiment.abandon(trial)
    answer(as_json, {"trial": trial, "state": ABANDONED}, f"trial {trial} abandoned")


@click.command("record")
@of_experiment
@options.do_option("What was set")
@options.observation_options
@options.randomised_option
@common
def record_command(
    experiment: Experiment, do: dict[str, float], observation: Any, randomised: bool, as_json: bool
) -> None:
    """\b
    Examples:
      dobandit experiment record spring --do coupon=1 visit=1 buy=0
      dobandit experiment record spring --do coupon=1 --rows monday.csv
    """
    number = experiment.record(do, observation, randomised=randomised)
    answer(as_json, {"trial": number}, f"recorded as trial {number}")


@click.command("import")
@of_experiment
@click.argument("file", type=click.Path())
@options.randomised_option
@common
def import_command(experiment: Experiment, file: str, randomised: bool, as_json: bool) -> None:
    """All of them, or none if one is wrong; - is CSV on standard input. A column per variable, empty where it was not
    seen; a column do:NAME is what NAME was set to, empty where it was not set; a column count, how often the line was
    seen. Lines are summed up, in no order. Lines with one trial.number are one trial, and such trials keep their order:
    what `export` writes can be read, and gives the same trials again.

    \b
    Examples:
      dobandit experiment import spring history.csv
      dobandit experiment export old - | dobandit experiment import new - --randomised
    """
    noted: list[str] = []
    source = io.StringIO(options.standard_input()) if file == "-" else file
    numbers = experiment.log.import_noted(source, noted.append, randomised)
    rounds = experiment.rounds_in(numbers)
    for doubt in noted:
        warnings.warn(doubt, DobanditWarning, stacklevel=1)
    trials = f"trial {numbers[0]}" if len(numbers) == 1 else f"trials {numbers[0]} to {numbers[-1]}"
    said = f"imported {counted(rounds, 'round')} as {trials}"
    answer(as_json, documents.imported_document(numbers, rounds, noted), said)
