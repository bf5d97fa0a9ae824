"""The command snapshot."""

from __future__ import annotations

import os
import time

import click

from dobandit.cli.experiments.group import common
from dobandit.cli.output import answer
from dobandit.cli.serving import serving_packages
from dobandit.cli.storage import opened
from dobandit.errors import ExperimentError
from dobandit.text_files import write_atomically


@click.command("snapshot")
@click.argument("name")
@click.option("-o", "--out", "file", type=click.Path(), help="The file to write. Default: NAME.html.")
@click.option("--force", is_flag=True, help="Replace a file of that name.")
@common
def snapshot_command(name: str, file: str | None, force: bool, storage: str, as_json: bool) -> None:
    """Write one HTML file that says everything about an experiment, to send by mail.

    It opens in any browser, without a network.

    \b
    Examples:
      dobandit experiment snapshot spring
      dobandit experiment snapshot spring -o monday.html --force
    """
    with serving_packages("a snapshot"):
        from dobandit.service.pages.snapshot import file_name, snapshot_of
    with opened(name, storage) as experiment:
        path = f"{file_name(name)}.html" if file is None else file
        if os.path.lexists(path) and not force:
            raise ExperimentError(f"{path} exists. Choose another name, or add --force.")
        stored = experiment.storage.find(experiment.name)
        if stored is None:
            raise ExperimentError(f"experiment {name!r} was deleted.")
        text = snapshot_of(experiment, stored, time.time())
    write_atomically(path, text)
    size = len(text.encode())
    answer(as_json, {"file": path, "bytes": size}, f"wrote {path} ({max(size // 1024, 1):,} kB)")
