"""Options of commands that read a graph or a model, and the reading. Of a model, what a BIF file does not say, and a
model file says itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from dobandit.cli.output import several
from dobandit.cli.rules import with_options
from dobandit.errors import GraphError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import FORMATS
from dobandit.graph.hiding import AUTO
from dobandit.model.files import Model, read_graph_or_model, read_model

_BINARISE = several(
    "--binarise",
    metavar="NAME=STATE[,STATE...]",
    help="BIF: the states of a variable that count as 1; may be repeated.",
)
hide_option = several(
    "--hide",
    metavar="NAME|auto",
    help="A variable that counts as hidden, so that hidden causes of it do no harm; auto: the fewest that help.",
)
_NETWORK_OPTIONS = [
    click.option("--target", help="BIF: the variable to make likely."),
    several("--latent", help="BIF: a hidden variable; may be repeated."),
    several("--controllable", help="BIF: a variable that can be set; default: all. Repeat."),
    _BINARISE,
]
_CONTEXT = several("--context", help="A variable that is observed before acting; may be repeated.")
_GRAPH_OPTIONS = [
    click.option("--target", help="The variable to make likely (overrides the file)."),
    several("--latent", help="A hidden variable; may be repeated."),
    _CONTEXT,
    several(
        "--controllable",
        help="A variable that can be set; may be repeated. Default: as the file says, or all but the target.",
    ),
    hide_option,
    click.option("--format", "format", type=click.Choice(FORMATS), help="Format of a graph file."),
    _BINARISE,
    click.option("--structure-only", is_flag=True, help="BIF: take the graph alone, however many states there are."),
]
_NETWORK_WORDS = ("target", "latent", "controllable", "binarise")
_GRAPH_WORDS = (*_NETWORK_WORDS, "context", "format", "structure_only")


def network_options(command: Any) -> Any:
    """Add the options of a model; the command gets them as keywords, for `read_world`."""
    return with_options(command, _NETWORK_OPTIONS)


def graph_options(command: Any) -> Any:
    """Add --hide and the options of a graph; the command gets these as keywords, for `read_structure`."""
    return with_options(command, _GRAPH_OPTIONS)


def graph_options_but_context(command: Any) -> Any:
    """For a command whose --context has values."""
    return with_options(command, [option for option in _GRAPH_OPTIONS if option is not _CONTEXT])


def hide_of(given: Sequence[str]) -> str | tuple[str, ...]:
    """The values of --hide, as `hide=` takes them."""
    return AUTO if tuple(given) == (AUTO,) else tuple(given)


def read_world(file: str, given: dict[str, Any]) -> Model:
    """The model in a file: JSON, or BIF with its options, which are taken out of a command's others."""
    return read_model(file, **_taken(given, _NETWORK_WORDS))


def read_structure(file: str, given: dict[str, Any], *, tables: bool = False) -> CausalGraph | Model:
    """What a file holds, read with the options of a graph, which are taken out of a command's others.

    tables  whether a BIF file that has tables is a model
    """
    return read_graph_or_model(file, tables=tables, **_taken(given, _GRAPH_WORDS))


def _taken(given: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    said = {word: given.pop(word) for word in words}
    return said | {"controllable": said["controllable"] or None, "binarise": _states(said["binarise"])}


def _states(pairs: Sequence[str]) -> dict[str, list[str]] | None:
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
