"""The command demo."""

from __future__ import annotations

import shutil
import signal
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import click

from dobandit.cli.serving import require_free, serve, serving_packages
from dobandit.experiment.storage import open_storage

HOST = "127.0.0.1"


@click.command("demo")
@click.option("--port", type=click.IntRange(1, 65535), default=8765, show_default=True)
@click.option(
    "--rounds-per-second",
    "pace",
    type=click.FloatRange(0.0, 100.0),
    default=2.0,
    show_default=True,
    help="How quickly the simulated shop plays; 0: not at all.",
)
@click.option(
    "--begin-with",
    "rounds",
    type=click.IntRange(0, 100_000),
    default=60,
    show_default=True,
    help="Rounds played first.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
def demo_command(port: int, pace: float, rounds: int, seed: int) -> None:
    """Show the pages with an experiment that runs while you look.

    A simulated shop carries out each round and tells what was seen. The database is thrown away at the end.

    \b
    Examples:
      dobandit demo
      dobandit demo --port 9000 --rounds-per-second 10
    """
    with serving_packages("serving"):
        from dobandit.service.app import create_app
        from dobandit.service.pages.demo import Shop, begin
        from dobandit.service.server import run
        from dobandit.service.settings import Settings

    require_free(HOST, port)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a demo that is ended throws its database away too
    folder = Path(tempfile.mkdtemp(prefix="dobandit-demo-"))
    try:
        storage = open_storage(f"sqlite:///{folder / 'demo.db'}")
        click.echo(f"a shop opens; its first {rounds:,} rounds are played ...")
        app = create_app(storage, Settings(port=port))
        shop = Shop(begin(storage, seed), pace)
        shop.play(rounds)
        with closing(storage), suppress(KeyboardInterrupt), shop.open():
            serve(run, app, HOST, "it", end=", and throws everything away")
        click.echo("the shop is closed.")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
