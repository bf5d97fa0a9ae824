"""Options that several commands take, and how their values are read: rules, graphs and models, values, links."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from dobandit.checks import names_in, number
from dobandit.cli.output import several
from dobandit.errors import ExperimentError, GraphError, InterventionError, ModelError, ObservationError, ParseError
from dobandit.experiment.definition import LONGEST_LEASE
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import FORMATS
from dobandit.graph.formats.json_text import load_json
from dobandit.graph.hiding import AUTO
from dobandit.model.base import CausalModel
from dobandit.model.files import Model, read_graph_or_model, read_model
from dobandit.oracle.rules import RULE_WORDS
from dobandit.text_files import in_file, read_text

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("-k", "--budget", type=click.IntRange(min=0), help="How many variables may be set at most."),
    several(
        "--lever",
        "levers",
        metavar="NAME=VALUE,...",
        help="What a variable may be set to, such as price=0,1; 1 where not given.",
    ),
    several("--cost", "costs", metavar="NAME=COST", help="Cost of a variable; 1 where not given."),
    click.option("--total-cost", type=float, help="How much a set may cost at most."),
    several("--require", help="A variable that every set holds."),
    several("--always-set", help="A variable that every round sets, to 0 or 1: hidden causes of it do no harm then."),
    several("--forbid", help="A variable that no set holds."),
    several("--available", help="A variable that can be set; default: all controllable ones."),
    several("--exclusive", metavar="A,B,...", help="Variables of which a set holds at most one."),
    click.option(
        "--smaller/--full-size",
        default=None,
        help="Whether sets count that could be larger. Default: where they can be best.",
    ),
)


def with_options(command: F, options: Sequence[Callable[[F], F]]) -> F:
    """Add options, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def rule_options(command: F) -> F:
    """Add the options of `Rules`; the command gets them as keywords, for `rule_words`."""
    return with_options(command, _OPTIONS)


def link_option(says: str) -> Callable[[F], F]:
    """How causes add up; `links_of` reads it."""
    return several("--link", "links", metavar="[NODE=]LINK", help=says)


def effects_option(default: str) -> Callable[[F], F]:
    """What a learner is promised of all effects. default: what it is where nothing is said."""
    said = f"Whether some cause may do harm. Default: {default}."
    return click.option("--effects", type=click.Choice(["nonnegative", "any"]), help=said)


def rule_words(given: dict[str, Any]) -> dict[str, Any]:
    """The rules, which are taken out of a command's keywords, as `rules_of`, `solve` and `create_experiment` take them:
    the budget, and of the others those that were said."""
    words = {word: given.pop(word) for word in RULE_WORDS}
    words |= {"levers": parse_levers(words["levers"]), "costs": parse_costs(words["costs"])}
    words["exclusive"] = [_group(group) for group in words["exclusive"]]
    said = {word: value for word, value in words.items() if value is not None and value not in ({}, [], ())}
    return {"budget": given.pop("budget"), **said}


def parse_costs(costs: Iterable[str]) -> dict[str, float]:
    """NAME=COST pairs."""
    return {name: cost for name, (cost,) in _pairs("--cost", "COST", "X3=2", costs, most=1).items()}


def parse_settings(settings: Iterable[str]) -> dict[str, float]:
    """NAME=VALUE pairs of --do: what each variable is set to."""
    return {name: value for name, (value,) in _pairs("--do", "VALUE", "X3=1", settings, most=1).items()}


def parse_levers(levers: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """NAME=VALUE,... pairs: what each variable may be set to."""
    return _pairs("--lever", "VALUE,...", "X3=0,1", levers)


def shown_action(do: Mapping[str, float]) -> str:
    """An action for a table: names, and values other than 1."""
    return "{" + ", ".join(name if value == 1 else f"{name}={value:g}" for name, value in do.items()) + "}"


def _pairs(
    option: str, what: str, example: str, pairs: Iterable[str], most: int | None = None
) -> dict[str, tuple[float, ...]]:
    """Numbers by name, each written once; the last = separates, since names may hold one."""
    parsed: dict[str, tuple[float, ...]] = {}
    for pair in pairs:
        name, separator, values = pair.rpartition("=")
        try:
            numbers = tuple(map(number, values.split(","))) if separator and name else ()
        except ValueError:
            numbers = ()
        if not numbers or (most is not None and len(numbers) > most):
            raise InterventionError(f"{option} takes NAME={what}, such as {option} {example}, but got {pair!r}.")
        if len(set(numbers)) < len(numbers):
            raise InterventionError(f"{option} takes each value once, but {pair!r} repeats one. Keep one of them.")
        if name in parsed:
            raise InterventionError(f"each variable is given once, but {option} {name} is given twice. Keep one.")
        parsed[name] = numbers
    return parsed


def _group(text: str) -> list[str]:
    """The names of --exclusive: fewer than two different ones would exclude nothing."""
    names = names_in(text)
    if len(set(names)) < 2:
        raise InterventionError(
            f"--exclusive names two or more variables of which a set holds at most one, such as email,letter, but got "
            f"{text!r}."
        )
    return names


# -- graphs and models -----------------------------------------------------------------------------------------------

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


# -- what people write: leases, values, observations, links ----------------------------------------------------------

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
LEASE_HELP = "Hand an untold trial out again after this time: 90, 90s, 30m, 2h, 1d."
_LEASE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")


def lease_of(text: str | None, what: str = "a lease") -> float | None:
    """Seconds of 90, 90s, 30m, 2h or 1d. what: how a refusal calls it."""
    if text is None:
        return None
    found = _LEASE.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 0.0 < seconds <= LONGEST_LEASE:
        raise ExperimentError(
            f"{what} reads 90, 90s, 30m, 2h or 1d, and is above 0 and at most {LONGEST_LEASE / 86400:,.0f}d, but got "
            f"{text!r}."
        )
    return seconds


def values_of(pairs: Sequence[str], where: str = "an observation") -> dict[str, float | None]:
    """NAME=VALUE pairs; the last = separates, since names may hold one. NAME=? was not seen."""
    found: dict[str, float | None] = {}
    for pair in pairs:
        name, separator, value = pair.rpartition("=")
        if not separator or not name:
            raise ObservationError(f"{where} reads NAME=VALUE, such as X2=1, but got {pair!r}.")
        if name in found:
            raise ObservationError(f"each variable is given once, but {name!r} is given twice.")
        try:
            found[name] = None if value.strip() == "?" else float(value)
            if found[name] != found[name]:
                raise ValueError
        except ValueError:
            raise ObservationError(f"{where} has a number after the =, or ? for not seen, but got {pair!r}.") from None
    return found


def observation_of(pairs: Sequence[str], json_file: str | None, rows: str | None) -> Any:
    """What was seen: one row from the command line, or what a JSON or CSV file says."""
    given = [bool(pairs), json_file is not None, rows is not None]
    if sum(given) != 1:
        came = "nothing" if not any(given) else "more than one of these"
        raise ObservationError(
            f"what was seen is given as X2=1 Y=0, with --json-file or with --rows, but got {came}. "
            "If nothing was seen, see `dobandit experiment fail`."
        )
    if rows is not None:
        return io.StringIO(standard_input()) if rows == "-" else rows
    if json_file is None:
        return values_of(pairs)
    with in_file(json_file):
        told = load_json(standard_input() if json_file == "-" else read_text(json_file))
    if not isinstance(told, (dict, list)):
        raise ParseError(
            f'what was seen is an object such as {{"Y": 1}}, or a list of such rows, but got {told!r:.60}.',
            source=json_file,
        )
    return told


def context_given(pairs: Sequence[str]) -> dict[str, float | None] | None:
    """What --context says; None where it was not used."""
    return values_of(pairs, "a context") if pairs else None


def standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParseError(f"the input is UTF-8 text, but byte 0x{error.object[error.start]:02x} is none.") from None


def links_of(links: Sequence[str], what: CausalGraph | CausalModel) -> dict[str, str] | None:
    """LINK for every variable, NODE=LINK for one."""
    if not links:
        return None
    everywhere = [link for link in links if "=" not in link]
    if len(everywhere) > 1:
        raise ModelError(f"one link serves every variable, but --link gives {' and '.join(everywhere)}. Use NODE=LINK.")
    graph = what if isinstance(what, CausalGraph) else what.graph
    chosen = dict.fromkeys(graph.nodes, everywhere[0]) if everywhere else {}
    pairs = [link.rpartition("=") for link in links if "=" in link]
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise ModelError("each variable has one link, but --link gives two for one of them. Keep one.")
    return chosen | {name: link for name, _, link in pairs}
