"""The commands on live experiments."""

from dobandit.cli.experiments import managing, reading, rounds
from dobandit.cli.experiments.group import experiment_group

__all__ = ["experiment_group", "managing", "reading", "rounds"]
