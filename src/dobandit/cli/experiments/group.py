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
