"""The commands on experiments: the group `experiment`, and what its commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dobandit.cli.output import LazyGroup, json_option
from dobandit.cli.storage import group_storage_option, kept, opened, storage_option, usual_storage
from dobandit.errors import DobanditError

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment

F = TypeVar("F", bound=Callable[..., Any])
_HOMES = {
    "experiments.manage": {
        "create": "Begin an experiment on a graph or model file.",
        "list": "List the experiments of a storage.",
        "show": "Show an experiment's settings and progress.",
        "rename": "Give an experiment another name.",
        "delete": "Delete an experiment with its whole log.",
    },
    "experiments.ask_tell": {
        "ask": "Ask what to set in the next round.",
        "tell": "Tell what was seen in a TRIAL.",
        "fail": "Mark a TRIAL as failed: it was tried, but gave no result.",
        "abandon": "Abandon a TRIAL: nobody will carry it out.",
        "record": "Add a round that nobody asked for, or many with the same --do.",
        "import": "Add rounds that happened elsewhere from FILE (.csv, .csv.gz, .parquet).",
    },
    "experiments.answers": {
        "recommend": "Recommend the set that looks best.",
        "evaluate": "Evaluate a set of your choice.",
        "best-observed": "Show the best set by the data alone, without the model.",
        "explain": "Explain why a TRIAL sets what it sets.",
        "estimates": "List every edge's weight, with its interval.",
        "diagnose": "Check whether the data agree with the model.",
        "trials": "List the trials.",
        "export": "Write the whole log to a FILE.",
        "snapshot": "Write an experiment's page as one HTML file, to send by mail.",
    },
}


def common(command: F) -> F:
    return storage_option(json_option(command))


def experiment_names(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """For completion in a shell: the experiments of the storage that the command would use; none where it fails."""
    with suppress(DobanditError), kept(context.params.get("storage") or usual_storage()) as storage:
        return [stored.name for stored in storage.experiments() if stored.name.startswith(begun)]
    return []


name_argument = click.argument("name", shell_complete=experiment_names)


def of_experiment(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument NAME, for which the command is given the experiment, as long as it runs."""

    @functools.wraps(command)
    def with_experiment(name: str, storage: str, **words: Any) -> Any:
        with opened(name, storage) as experiment:
            return command(experiment, **words)

    return name_argument(with_experiment)


@click.group("experiment", cls=LazyGroup, homes=_HOMES)
@group_storage_option
def experiment_group(storage: str) -> None:
    """\b
    Examples:
      dobandit experiment create spring funnel.txt -k 2
      dobandit experiment ask spring
      dobandit experiment tell spring 0 visit=1 buy=0
      dobandit experiment recommend spring
    """


def count_of(experiment: Experiment) -> int:
    stored = experiment.storage.find(experiment.name)
    return stored.trials if stored else 0
