"""The group `experiment`, and what its commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from dobandit.cli.output import json_option
from dobandit.cli.storage import group_storage_option, storage_option
from dobandit.experiment.experiment import Experiment

F = TypeVar("F", bound=Callable[..., Any])


def common(command: F) -> F:
    return storage_option(json_option(command))


def seen_options(command: F) -> F:
    """--json-file and --rows: other ways to say what was seen."""
    command = click.option(
        "--rows", metavar="FILE.csv", help="A line per round, or per distinct row with a column count; - as above."
    )(command)
    return click.option(
        "--json-file", metavar="FILE", help="What was seen as JSON, a row or a list of rows; - is standard input."
    )(command)


def context_option(command: F) -> F:
    return click.option(
        "--context", multiple=True, metavar="NAME=VALUE", help="What is known before the round; may be repeated."
    )(command)


@click.group("experiment")
@group_storage_option
def experiment_group(storage: str) -> None:
    """Run an experiment: ask what to set, carry it out, tell what was seen.

    \b
    Examples:
      dobandit experiment create spring funnel.txt -k 2
      dobandit experiment ask spring
      dobandit experiment tell spring 0 visit=1 buy=0
      dobandit experiment recommend spring
    """


def count_of(experiment: Experiment) -> int:
    stored = experiment.storage.find(experiment.name)
    return stored.trials if stored else 0
