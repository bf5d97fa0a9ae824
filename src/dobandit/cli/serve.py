"""The commands serve and demo."""

from __future__ import annotations

import ipaddress
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dobandit.cli.output import json_option, print_json, several
from dobandit.cli.storage import group_storage_option, kept
from dobandit.errors import DobanditError, ExperimentError
from dobandit.storage import Storage, open_storage

if TYPE_CHECKING:
    from fastapi import FastAPI

_DEMO_HOST = "127.0.0.1"
_NAME = re.compile(r"[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]")


@click.command("serve")
@group_storage_option
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(1, 65535), default=8765, show_default=True)
@several(
    "--allowed-host",
    "allowed_hosts",
    help="A name under which the service is reached, such as experiments.example.org; may be repeated.",
)
@click.option("--https", is_flag=True, help="A reverse proxy in front of it speaks HTTPS: cookies need that then.")
@json_option
def serve_command(
    storage: str, host: str, port: int, allowed_hosts: tuple[str, ...], https: bool, as_json: bool
) -> None:
    """On this machine alone it needs no set-up: open the login link that it prints. To be reached from others it needs
    a token (see `dobandit token create`) and its name.

    \b
    Examples:
      dobandit serve
      dobandit serve --storage sqlite:///spring.db --port 8000
      dobandit serve --host 0.0.0.0 --allowed-host experiments.example.org --https
    """
    with serving_packages("serving"):
        from dobandit.service.app import bound, create_app
        from dobandit.service.service_settings import LOOPBACK, Settings

    local = _is_loopback(host)
    for name in allowed_hosts:
        _require_name(name)
    with kept(storage) as place:
        if not local:
            _require_guarded(host, place, allowed_hosts)
        settings = Settings(
            allowed_hosts=tuple(name.lower() for name in (*(LOOPBACK if local else ()), *allowed_hosts)),
            port=port,
            https=https,
            # A login link opens everything: where other names lead here, no log may hold one.
            login=local and all(name.lower() in LOOPBACK for name in allowed_hosts),
        )
        with bound(host, port) as listener:
            serve(create_app(place, settings), listener, host, place.url, as_json=as_json)


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
    """A simulated shop carries out each round and tells what was seen. The database is thrown away at the end.

    \b
    Examples:
      dobandit demo
      dobandit demo --port 9000 --rounds-per-second 10
    """
    with serving_packages("serving"):
        from dobandit.service.app import bound, create_app
        from dobandit.service.pages.demo import Shop, begin
        from dobandit.service.service_settings import Settings

    listener = bound(_DEMO_HOST, port)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a demo that is ended throws its database away too
    folder = Path(tempfile.mkdtemp(prefix="dobandit-demo-"))
    try:
        storage = open_storage(f"sqlite:///{folder / 'demo.db'}")
        click.echo(f"a shop opens; its first {rounds:,} rounds are played ...")
        app = create_app(storage, Settings(port=port))
        shop = Shop(begin(storage, seed), pace)
        shop.play(rounds)
        with closing(storage), suppress(KeyboardInterrupt), shop.open():
            serve(app, listener, _DEMO_HOST, "it", end=", and throws everything away")
        click.echo("the shop is closed.")
    finally:
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def serving_packages(what: str) -> Iterator[None]:
    """While the packages of a service are imported. what: needs them"""
    try:
        yield
    except ImportError as error:
        raise DobanditError(
            f"{what} needs the package {error.name}, which is not installed. Install it with: "
            "pip install 'dobandit[server]'"
        ) from None


def serve(app: FastAPI, listener: socket.socket, host: str, what: str, end: str = "", as_json: bool = False) -> None:
    """Run an app until it is stopped; say where it is, and how to log in.

    listener   the socket that it answers at; those who come before it runs wait for it
    what, end  what it serves, and what else stopping it does
    """
    from dobandit.service.app import server_of

    link = f"http://{f'[{host}]' if ':' in host else host}:{app.state.settings.port}"

    def login() -> str | None:
        return None if app.state.login is None else f"{link}/login?code={app.state.login.code}"

    def print_login() -> None:
        found = login()
        click.echo(
            f"log in once with: {found}" if found else "log in with a token: dobandit token create makes one",
            err=as_json,
        )

    def print_address() -> None:
        if as_json:
            print_json({"url": link, "storage": what, "login": login()})
        else:
            click.echo(f"serving {what} at {link}; Ctrl+C stops it{end}")
            print_login()
        sys.stdout.flush()  # a program that started this one waits for the link

    app.state.started, app.state.used_login = print_address, print_login
    server_of(app).run([listener])


def _require_name(name: str) -> None:
    """What is no name would fit no request, and nobody would be let in."""
    if not _NAME.fullmatch(name):
        raise ExperimentError(
            f"an allowed host is a name such as experiments.example.org, or an address, without http:// and without a "
            f"port, but got {name!r}."
        )


def _require_guarded(host: str, place: Storage, allowed_hosts: tuple[str, ...]) -> None:
    """Whoever can reach other addresses must show a token, and the service must know its name."""
    if not any(token.valid(time.time()) for token in place.tokens()):
        raise ExperimentError(
            f"a service that others can reach ({host}) needs at least one valid token, but {place.url} has none. Make "
            "one with `dobandit token create`, or listen at 127.0.0.1."
        )
    if not allowed_hosts:
        raise ExperimentError(
            f"a service that others can reach ({host}) needs to know its name, so that no other name leads to it. Add "
            "--allowed-host experiments.example.org."
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
