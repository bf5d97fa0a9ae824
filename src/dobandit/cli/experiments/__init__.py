"""The commands on live experiments."""

from dobandit.cli.experiments import answers, managing, rounds
from dobandit.cli.experiments.group import experiment_group

__all__ = ["answers", "experiment_group", "managing", "rounds"]
