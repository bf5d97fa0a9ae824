"""Options of commands that read a model: what a BIF file does not say, and a model file says itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from dobandit.errors import GraphError
from dobandit.model.files import Model, read_model

BINARISE_OPTION = click.option(
    "--binarise",
    multiple=True,
    metavar="NAME=STATE[,STATE...]",
    help="BIF: the states of a variable that count as 1; may be repeated.",
)
_OPTIONS = [
    click.option("--target", help="BIF: the variable to make likely."),
    click.option("--latent", multiple=True, metavar="NAME", help="BIF: a hidden variable; may be repeated."),
    click.option(
        "--controllable", multiple=True, metavar="NAME", help="BIF: a variable that can be set; default: all. Repeat."
    ),
    BINARISE_OPTION,
]
_WORDS = ("target", "latent", "controllable", "binarise")


def network_options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def network_words(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `network_options` out of a command's others."""
    return {word: given.pop(word) for word in _WORDS}


def read_world(file: str, words: dict[str, Any]) -> Model:
    """The model in a file: JSON, or BIF with these options."""
    return read_model(
        file,
        target=words["target"],
        latent=words["latent"],
        controllable=words["controllable"] or None,
        binarise=states_given(words["binarise"]),
    )


def states_given(pairs: Sequence[str]) -> dict[str, list[str]] | None:
    """What --binarise says: NAME=STATE,STATE; the first = separates, since states may hold one."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        name, separator, states = pair.partition("=")
        if not separator or not name or not states:
            raise GraphError(f"--binarise takes NAME=STATE, such as --binarise age=adult,old, but got {pair!r}.")
        if name in found:
            raise GraphError(f"--binarise says once which states of {name!r} count as 1, but it is given twice.")
        found[name] = states.split(",")
    return found or None
