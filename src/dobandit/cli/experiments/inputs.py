"""What people write on the command line: leases, values, observations, links."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from typing import Any

from dobandit.errors import ExperimentError, ModelError, ObservationError, ParseError
from dobandit.experiment.definition import LONGEST_LEASE
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.json_text import load_json
from dobandit.model.base import CausalModel
from dobandit.text_files import in_file, read_text

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
