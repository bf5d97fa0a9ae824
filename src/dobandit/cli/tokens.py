"""The commands token create, list and revoke."""

from __future__ import annotations

import getpass
import time

import click

from dobandit.cli.options import seconds_of
from dobandit.cli.output import answer, json_option, print_json, print_table
from dobandit.cli.storage import group_storage_option, kept, storage_option
from dobandit.documents.live import token_document
from dobandit.rows.export import iso_time
from dobandit.storage.access import SCOPES, create_token, revoke_token


@click.group("token")
@group_storage_option
def token_group(storage: str) -> None:
    """\b
    Examples:
      dobandit token create --scope work --experiment spring --expires 30d
      dobandit token list
      dobandit token revoke 2
    """


@token_group.command("create")
@click.option("--scope", type=click.Choice(SCOPES), required=True, help="read; work: also ask and tell; manage: all.")
@click.option("--experiment", metavar="NAME", help="The only experiment that it opens. Default: all.")
@click.option("--expires", metavar="TIME", help="How long it is valid: 30d, 12h. Default: until it is revoked.")
@click.option("--name", help="Whose it is, for the audit. Default: its scope.")
@storage_option
@json_option
def create_command(
    scope: str, experiment: str | None, expires: str | None, name: str | None, storage: str, as_json: bool
) -> None:
    """Make a token. It is printed once, and kept nowhere.

    Programs send it as Authorization: Bearer TOKEN; with a browser it is typed in at /login.

    \b
    Examples:
      dobandit token create --scope read
      dobandit token create --scope work --experiment spring --expires 30d --name "the shop" --json
    """
    now, seconds = time.time(), seconds_of(expires, "the time that a token is valid")
    until = None if seconds is None else now + seconds
    with kept(storage) as place:
        text, token = create_token(place, name or scope, scope, now, _me(), experiment, until)
    if as_json:
        print_json({"token": text, **token_document(token, now)})
    else:
        click.echo(text)
        click.echo(f"token {token.id} for {place.url}: keep it, it is not shown again", err=True)


@token_group.command("list")
@storage_option
@json_option
def list_command(storage: str, as_json: bool) -> None:
    """List the tokens, without their secrets.

    \b
    Example:
      dobandit token list --json
    """
    now = time.time()
    with kept(storage) as place:
        tokens = place.tokens()
        names = {one.id: one.name for one in place.experiments()}
    if as_json:
        print_json([token_document(token, now) for token in tokens])
    elif not tokens:
        click.echo(f"no tokens in {place.url}; dobandit token create makes one")
    else:
        cells = [
            (
                str(token.id),
                token.name,
                token.scope,
                "all" if token.experiment is None else names.get(token.experiment, "deleted"),
                token_document(token, now)["state"],
                iso_time(token.expires_at) or "never",
            )
            for token in tokens
        ]
        print_table(["token", "name", "scope", "experiment", "state", "expires"], cells, right=[0])


@token_group.command("revoke")
@click.argument("token", type=click.IntRange(1, 2**63 - 1))
@storage_option
@json_option
def revoke_command(token: int, storage: str, as_json: bool) -> None:
    """Revoke a TOKEN, by its number.

    \b
    Example:
      dobandit token revoke 2
    """
    now = time.time()
    with kept(storage) as place:
        revoked = revoke_token(place, token, now, _me())
    answer(as_json, token_document(revoked, now), f"token {token} is revoked")


def _me() -> str:
    """Who sits at the terminal."""
    try:
        return f"{getpass.getuser()} at the terminal"
    except (KeyError, OSError):
        return "somebody at the terminal"
