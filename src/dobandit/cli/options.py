"""Options that several commands take: rules, graphs, values, links. Commands get values as functions take them."""

from __future__ import annotations

import functools
import io
import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from dobandit import errors
from dobandit.checks import names_in, number, value_in
from dobandit.cli.output import several
from dobandit.experiment.definition import LONGEST_LEASE
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import FORMATS
from dobandit.graph.formats.binarise import REST
from dobandit.graph.hiding import AUTO
from dobandit.model.causal_model import CausalModel
from dobandit.model.model_files import Model, read_graph_or_model, read_model
from dobandit.oracle.rules import RULE_WORDS
from dobandit.strict_json import load_json
from dobandit.text_files import in_file, read_text

F = TypeVar("F", bound=Callable[..., Any])


def read_by(read: Callable[[Any], Any]) -> Callable[..., Any]:
    """An option's callback: the command gets what `read` makes of the text."""
    return lambda _context, _parameter, given: read(given)


def options_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in this order."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


# -- values by name --------------------------------------------------------------------------------------------------


def _value(text: str) -> float:
    """A value as a table has it, but never a word for "not seen": that could be a slip."""
    value = value_in(text)
    if value is None or not math.isfinite(value):
        raise ValueError(text)
    return value


def values_by_name(
    pairs: Sequence[str],
    where: str,
    example: str,
    *,
    shape: str = "NAME=VALUE",
    most: int | None = 1,
    read: Callable[[str], float | None] = _value,
    error: type[errors.DobanditError] = errors.InterventionError,
) -> dict[str, Any]:
    """Values by name, each name written once; the last = separates, since names may hold one.

    where, example, shape  for a refusal: the option, a pair, and how pairs are written
    most, read, error      how many values a name may have (None: any, as a tuple), what reads one, what is raised
    """
    parsed: dict[str, tuple[float | None, ...]] = {}
    for pair in pairs:
        name, _, text = pair.rpartition("=")
        try:
            values = tuple(map(read, text.split(",")))
        except ValueError:
            values = ()
        if not name or not values or (most is not None and len(values) > most):
            raise error(f"{where} takes {shape}, such as {example}, but got {pair!r}. Write a number after the =.")
        if len(set(values)) < len(values):
            raise error(f"{where} takes each value once, but {pair!r} repeats one. Keep one of them.")
        if name in parsed:
            raise error(f"each variable is given once, but {name!r} is given twice ({where}). Keep one.")
        parsed[name] = values
    return {name: values[0] for name, values in parsed.items()} if most == 1 else dict(parsed)


def do_option(says: str) -> Callable[[F], F]:
    """What is set; {} where the option was not used."""
    read = read_by(lambda given: values_by_name(given, "--do", "--do X3=1"))
    return several("--do", metavar="NAME=VALUE", callback=read, help=f"{says}; may be repeated.")


def context_values_option(says: str) -> Callable[[F], F]:
    """What is known before a round; None where the option was not used."""
    read = read_by(lambda given: values_by_name(given, "--context", "mobile=1", error=errors.ObservationError) or None)
    return several("--context", metavar="NAME=VALUE", callback=read, help=f"{says}; may be repeated.")


available_option = several(
    "--available",
    callback=read_by(lambda given: given or None),
    help="What can be set now; may be repeated. Default: all.",
)
context_option = context_values_option("What is known before the round")


# -- rules -----------------------------------------------------------------------------------------------------------


def _exclusive(groups: Sequence[str]) -> list[list[str]]:
    """The names of each --exclusive: fewer than two different ones would exclude nothing."""
    found = [names_in(group) for group in groups]
    for names, text in zip(found, groups, strict=True):
        if len(set(names)) < 2:
            raise errors.InterventionError(
                f"--exclusive names two or more variables of which a set holds at most one, such as email,letter, but "
                f"got {text!r}."
            )
    return found


rule_options = options_of(
    click.option("-k", "--budget", type=click.IntRange(min=0), help="How many variables may be set at most."),
    several(
        "--lever",
        "levers",
        metavar="NAME=VALUE,...",
        callback=read_by(
            lambda given: values_by_name(given, "--lever", "--lever X3=0,1", shape="NAME=VALUE,...", most=None)
        ),
        help="What a variable may be set to, such as price=0,1; 1 where not given.",
    ),
    several(
        "--cost",
        "costs",
        metavar="NAME=COST",
        callback=read_by(lambda given: values_by_name(given, "--cost", "--cost X3=2", shape="NAME=COST", read=number)),
        help="Cost of a variable; 1 where not given.",
    ),
    click.option("--total-cost", type=float, help="How much a set may cost at most."),
    several("--require", help="A variable that every set holds."),
    several("--always-set", help="A variable that every round sets, to 0 or 1: hidden causes of it do no harm then."),
    several("--forbid", help="A variable that no set holds."),
    several("--available", help="A variable that can be set; default: all controllable ones."),
    several(
        "--exclusive",
        metavar="A,B,...",
        callback=read_by(_exclusive),
        help="Variables of which a set holds at most one.",
    ),
    click.option(
        "--smaller/--full-size",
        default=None,
        help="Whether sets count that could be larger. Default: where they can be best.",
    ),
)


def rule_words(given: dict[str, Any]) -> dict[str, Any]:
    """The rules, which are taken out of a command's keywords, as `rules_of`, `solve` and `create_experiment` take them:
    the budget, and of the others those that were said."""
    words = {word: given.pop(word) for word in RULE_WORDS}
    said = {word: value for word, value in words.items() if value is not None and value not in ({}, [], ())}
    return {"budget": given.pop("budget"), **said}


# -- links and effects -----------------------------------------------------------------------------------------------


def link_option(says: str) -> Callable[[F], F]:
    """How causes add up; `links_of` reads it."""
    return several("--link", "links", metavar="[NODE=]LINK", help=says)


def links_of(links: Sequence[str], what: CausalGraph | CausalModel) -> dict[str, str] | None:
    """LINK for every variable, NODE=LINK for one."""
    if not links:
        return None
    everywhere = [link for link in links if "=" not in link]
    if len(everywhere) > 1:
        raise errors.ModelError(
            f"one link serves every variable, but --link gives {' and '.join(everywhere)}. Use NODE=LINK."
        )
    graph = what if isinstance(what, CausalGraph) else what.graph
    chosen = dict.fromkeys(graph.nodes, everywhere[0]) if everywhere else {}
    pairs = [link.rpartition("=") for link in links if "=" in link]
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise errors.ModelError("each variable has one link, but --link gives two for one of them. Keep one.")
    return chosen | {name: link for name, _, link in pairs}


def effects_option(default: str) -> Callable[[F], F]:
    """What a learner assumes of all effects. default: what it assumes without the option."""
    said = f"Whether some cause may do harm. Default: {default}."
    return click.option("--effects", type=click.Choice(["nonnegative", "any"]), help=said)


# -- graphs and models -----------------------------------------------------------------------------------------------


def _states(pairs: Sequence[str]) -> dict[str, list[str]] | None:
    """What --binarise says: NAME=STATE,STATE; the first = separates, since states may hold one."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        name, _, states = pair.partition("=")
        if not name or not states:
            raise errors.GraphError(f"--binarise takes NAME=STATE, such as --binarise age=adult,old, but got {pair!r}.")
        if name in found:
            raise errors.GraphError(f"--binarise says once which states of {name!r} count as 1, but it is given twice.")
        found[name] = names_in(states)
    return found or None


_BINARISE = several(
    "--binarise",
    metavar="NAME=STATE[,STATE...]",
    callback=read_by(_states),
    help="BIF: the states of a variable that count as 1; may be repeated.",
)
_BINARISE_REST = click.option(
    "--binarise-rest",
    type=click.Choice(REST),
    help="BIF: the state that counts as 1 in all other variables of several.",
)
hide_option = several(
    "--hide",
    metavar="NAME|auto",
    callback=read_by(lambda given: AUTO if tuple(given) == (AUTO,) else tuple(given)),
    help="A variable that counts as hidden, so that hidden causes of it do no harm; auto: the fewest that help.",
)
_NETWORK_WORDS = ("target", "latent", "controllable", "binarise", "binarise_rest")
_GRAPH_WORDS = (*_NETWORK_WORDS, "context", "format", "structure_only")
# The options of a model; the command gets them as keywords, for `read_world`.
network_options = options_of(
    click.option("--target", help="BIF: the variable to make likely."),
    several("--latent", help="BIF: a hidden variable; may be repeated."),
    several("--controllable", help="BIF: a variable that can be set; default: all. Repeat."),
    _BINARISE,
    _BINARISE_REST,
)
# --hide, and the options of a graph but for --context, which some commands take with values.
graph_options_but_context = options_of(
    click.option("--target", help="The variable to make likely (overrides the file)."),
    several("--latent", help="A hidden variable; may be repeated."),
    several(
        "--controllable",
        help="A variable that can be set; may be repeated. Default: as the file says, or all but the target.",
    ),
    hide_option,
    click.option("--format", type=click.Choice(FORMATS), help="Format of a graph file."),
    _BINARISE,
    _BINARISE_REST,
    click.option("--structure-only", is_flag=True, help="BIF: take the graph alone, however many states there are."),
)
# --hide, and the options of a graph; the command gets these as keywords, for `read_structure`.
graph_options = options_of(
    several("--context", help="A variable that is observed before acting; may be repeated."), graph_options_but_context
)


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
    return said | {"controllable": said["controllable"] or None}


# -- times, and what was seen ----------------------------------------------------------------------------------------

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LEASE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")


def seconds_of(text: str | None, what: str = "a lease") -> float | None:
    """Seconds of 90, 90s, 30m, 2h or 1d. what: how a refusal calls it."""
    if text is None:
        return None
    found = _LEASE.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 0.0 < seconds <= LONGEST_LEASE:
        raise errors.ExperimentError(
            f"{what} reads 90, 90s, 30m, 2h or 1d, and is above 0 and at most {LONGEST_LEASE / 86400:,.0f}d, but got "
            f"{text!r}."
        )
    return seconds


randomised_option = click.option(
    "--randomised", is_flag=True, help="What was set in the rows was chosen at random, or by an ask: own outcomes."
)


def lease_option(default: str) -> Callable[[F], F]:
    said = f"Hand an untold trial out again after this time: 90, 90s, 30m, 2h, 1d. Default: {default}."
    return click.option("--lease", metavar="TIME", callback=read_by(seconds_of), help=said)


def observation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What was seen: NAME=VALUE arguments, --json-file or --rows. The command gets it as `observation`."""

    @functools.wraps(command)
    def with_observation(
        *known: Any, seen: Sequence[str], json_file: str | None, rows: str | None, **words: Any
    ) -> Any:
        return command(*known, observation=_observation(seen, json_file, rows), **words)

    return options_of(
        click.argument("seen", nargs=-1, metavar="[NAME=VALUE]..."),
        click.option(
            "--json-file", metavar="FILE", help="What was seen as JSON, a row or a list of rows; - is standard input."
        ),
        click.option(
            "--rows", metavar="FILE.csv", help="A line per round, or per distinct row with a column count; - as above."
        ),
    )(with_observation)


def _observation(pairs: Sequence[str], json_file: str | None, rows: str | None) -> Any:
    given = [bool(pairs), json_file is not None, rows is not None]
    if sum(given) != 1:
        came = "nothing" if not any(given) else "more than one of these"
        raise errors.ObservationError(
            f"what was seen is given as X2=1 Y=0, with --json-file or with --rows, but got {came}. "
            "If nothing was seen, see `dobandit experiment fail`."
        )
    if rows is not None:
        return io.StringIO(standard_input()) if rows == "-" else rows
    if json_file is None:
        shape, error = "NAME=VALUE, or NAME=? for not seen", errors.ObservationError
        return values_by_name(pairs, "an observation", "X2=1", shape=shape, read=_seen_value, error=error)
    with in_file(json_file):
        told = load_json(standard_input() if json_file == "-" else read_text(json_file))
    if not isinstance(told, (dict, list)):
        raise errors.ParseError(
            f'what was seen is an object such as {{"Y": 1}}, or a list of such rows, but got {told!r:.60}.',
            source=json_file,
        )
    return told


def _seen_value(text: str) -> float | None:
    return None if text.strip() == "?" else _value(text)


def standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise errors.ParseError(
            f"the input is UTF-8 text, but byte 0x{error.object[error.start]:02x} is none."
        ) from None
