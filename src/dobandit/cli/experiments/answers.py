"""The commands recommend, best-observed, explain, estimates, diagnose, trials, export and snapshot."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from dobandit.cli import options
from dobandit.cli.experiments import common, count_of, of_experiment
from dobandit.cli.experiments import printing as out
from dobandit.cli.output import answer, print_json, say
from dobandit.documents import live as documents
from dobandit.errors import ExperimentError
from dobandit.rows.export import document
from dobandit.rows.stored_trial import ABANDONED, FAILED, PENDING, TOLD
from dobandit.text_files import write_atomically
from dobandit.texts import counted, printable_lines

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment

_SHOWN = 50  # trials in a table that nobody asked to be longer


@click.command("recommend")
@of_experiment
@options.available_option
@options.context_option
@common
def recommend_command(experiment: Experiment, as_json: bool, **situation: Any) -> None:
    """First in one sentence; then what was measured, what the model says, and what is guaranteed; and, apart from
    that, what the data alone speak for.

    \b
    Examples:
      dobandit experiment recommend spring
      dobandit experiment recommend spring --context mobile=1
      dobandit experiment recommend spring --available coupon --json
    """
    recommended, observed = experiment.recommend(**situation), experiment.best_observed(**situation)
    if as_json:
        print_json(documents.recommendation_document(recommended, observed))
    else:
        out.print_recommendation(experiment, recommended, situation["context"], experiment.definition.stop_within)
        click.echo()
        out.print_observed(experiment.graph.target, observed)


@click.command("evaluate")
@of_experiment
@options.do_option("What is set")
@options.context_option
@common
def evaluate_command(
    experiment: Experiment, do: dict[str, float], context: dict[str, float] | None, as_json: bool
) -> None:
    """As for the recommended one: its value beside doing nothing, what was observed, how likely it is to be the best.
    Without --do, of doing nothing.

    \b
    Examples:
      dobandit experiment evaluate spring --do coupon=1
      dobandit experiment evaluate spring --do email=1 --context mobile=1 --json
    """
    told = experiment.evaluate(do, context=context)
    answer(as_json, document(told), lambda: out.print_recommendation(experiment, told, context, None))


@click.command("best-observed")
@of_experiment
@options.available_option
@options.context_option
@common
def best_observed_command(experiment: Experiment, as_json: bool, **situation: Any) -> None:
    """With --context, only rounds in which these variables had these values count.

    \b
    Examples:
      dobandit experiment best-observed spring
      dobandit experiment best-observed spring --context mobile=1 --json
    """
    observed = experiment.best_observed(**situation)
    answer(as_json, document(observed), lambda: out.print_observed(experiment.graph.target, observed))


@click.command("explain")
@of_experiment
@click.argument("trial", type=int)
@common
def explain_command(experiment: Experiment, trial: int, as_json: bool) -> None:
    """Everything is computed from what was known when it was asked.

    \b
    Example:
      dobandit experiment explain spring 3
    """
    told, words = experiment.explain(trial), experiment.interval_words
    answer(
        as_json,
        documents.explanation_document(told, words),
        lambda: out.print_explanation(experiment.graph.target, told, words),
    )


@click.command("estimates")
@of_experiment
@common
def estimates_command(experiment: Experiment, as_json: bool) -> None:
    """ "By itself" is how likely the effect is without its causes. Status: solved; singular, where some combination of
    causes was never seen; or separable, where the data alone would ask for infinite weights.

    \b
    Example:
      dobandit experiment estimates spring
    """
    rows = experiment.estimates()
    said = [{**document(row), "interval_words": out.reach_words(f"{row.radius:g}")} for row in rows]
    answer(as_json, said, lambda: out.print_estimates(rows))


@click.command("diagnose")
@of_experiment
@common
def diagnose_command(experiment: Experiment, as_json: bool) -> None:
    """\b
    Example:
      dobandit experiment diagnose spring
    """
    diagnosis = experiment.diagnose()
    if as_json:
        print_json(diagnosis.to_document())
    else:
        for line in diagnosis.lines():
            say(line)


@click.command("trials")
@of_experiment
@click.option("--state", type=click.Choice([PENDING, TOLD, FAILED, ABANDONED]), help="Only those.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N. Default: 50; with --json, all.")
@click.option("--all", "everything", is_flag=True, help="All of them.")
@common
def trials_command(
    experiment: Experiment, state: str | None, last: int | None, everything: bool, as_json: bool
) -> None:
    """With --json, predictions and their intervals are those of the moment of asking; `explain` says of each trial what
    its interval promises.

    \b
    Examples:
      dobandit experiment trials spring --state pending
      dobandit experiment trials spring --last 20 --json
    """
    if everything or (last is None and as_json):
        rows, more = experiment.trials(state=state), False
    else:
        rows = experiment.trials(state=state, last=last or _SHOWN + 1)
        more, rows = len(rows) > (last or _SHOWN), rows[-(last or _SHOWN) :]
    of_all = f" of {count_of(experiment):,}" if more and state is None else ""
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo(f"no {state or ''} trials".replace("  ", " "))
    else:
        out.print_trials(experiment, rows)
        if more and not last:
            click.echo(f"the last {len(rows)}{of_all}; --last N or --all shows more", err=True)


@click.command("export")
@of_experiment
@click.argument("file", type=click.Path())
@click.option("--format", "kind", type=click.Choice(["csv", "parquet"]), help="Default: by the ending of FILE.")
@click.option("--force", is_flag=True, help="Replace FILE where it exists.")
@common
def export_command(experiment: Experiment, file: str, kind: str | None, force: bool, as_json: bool) -> None:
    """FILE ends with .csv or .parquet; - is CSV on standard output. For JSON see `dobandit experiment trials --json`.

    \b
    Examples:
      dobandit experiment export spring spring.csv
      dobandit experiment export spring - | head
    """
    ending = "csv" if file == "-" else file.rpartition(".")[2].lower()
    kind = kind or ending
    if kind not in ("csv", "parquet"):
        raise ExperimentError(f"an export is .csv or .parquet, but got {file!r}. Change the ending, or add --format.")
    if file == "-" and (as_json or kind != "csv"):
        raise ExperimentError(
            "standard output takes CSV. Give a file; for JSON see `dobandit experiment trials --json`."
        )
    if file == "-":
        shown = sys.stdout.isatty()  # a terminal would obey what a file only holds
        for part in experiment.csv_parts():
            text = printable_lines(part) if shown else part
            sys.stdout.buffer.write(text.encode(errors="backslashreplace" if shown else "strict"))
        sys.stdout.buffer.flush()
        return
    _require_new(file, force)
    (experiment.to_csv if kind == "csv" else experiment.to_parquet)(file)
    trials = count_of(experiment)
    said = f"wrote {counted(trials, 'trial')} to {file}"
    answer(as_json, {"file": file, "format": kind, "trials": trials}, said)


@click.command("snapshot")
@of_experiment
@click.option("-o", "--out", "file", type=click.Path(), help="The file to write. Default: NAME.html.")
@click.option("--force", is_flag=True, help="Replace a file of that name.")
@common
def snapshot_command(experiment: Experiment, file: str | None, force: bool, as_json: bool) -> None:
    """It opens in any browser, without a network.

    \b
    Examples:
      dobandit experiment snapshot spring
      dobandit experiment snapshot spring -o monday.html --force
    """
    from dobandit.cli.serve import serving_packages  # for sockets, which no other command here needs

    with serving_packages("a snapshot"):
        from dobandit.service.pages.experiment_page import file_name, snapshot_of
    path = f"{file_name(experiment.name)}.html" if file is None else file
    _require_new(path, force)
    stored = experiment.storage.find(experiment.name)
    if stored is None:
        raise ExperimentError(f"experiment {experiment.name!r} was deleted.")
    text = snapshot_of(experiment, stored, time.time())
    write_atomically(path, text)
    size = len(text.encode())
    answer(as_json, {"file": path, "bytes": size}, f"wrote {path} ({max(size // 1024, 1):,} kB)")


def _require_new(file: str, force: bool) -> None:
    if os.path.lexists(file) and not force:
        raise ExperimentError(f"a new file is written, but {file} exists. Choose another name, or add --force.")
