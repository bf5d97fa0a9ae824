"""What `check` says of hidden causes: whether they can be removed, what it takes, and which sets can be best at all."""

from __future__ import annotations

from typing import Any

from dobandit.cli.output import names
from dobandit.documents.graphs import policies


def hidden_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The rows of its table, from what `check --json` says."""
    witness = report["witness"]
    if witness:
        first, second = (" -> ".join(path) for path in witness["paths"])
        said = (
            f"not admissible: hidden {witness['hidden']} reaches {witness['paths'][0][-1]} ({first}) and its "
            f"descendant {witness['paths'][1][-1]} ({second})"
        )
    elif report["latent"] or report["hide"]:
        said = "admissible: a linear model's hidden variables can be removed (dobandit project)"
    else:
        said = "no hidden variables"
    rows = [("hidden structure", said)]
    if report["hide_note"]:
        rows.append(("counts as hidden", report["hide_note"]))
    if report["hide"]:
        rows.append(("counts as hidden", f"{names(report['hide'])}: kept in a log, but not learned from, and not set"))
        rows += [
            (f"{n} is learned", f"from {names(p) or 'nothing'} directly") for n, p in report["learned_directly"].items()
        ]
    if report["always_set"]:
        rows.append(("always set", f"{names(report['always_set'])}: rounds in which it is not teach nothing"))
    if witness:
        refuse, take = (", ".join(policies(any_graph)) for any_graph in (False, True))
        rows.append(("refused by", f"project and rank, and simulate and experiment create with {refuse}"))
        rows.append(("taken by", f"simulate and experiment create with {take}"))
    if report["possibly_optimal"] is not None:
        sets = ["{" + ", ".join(chosen) + "}" for chosen in report["possibly_optimal"]]
        rows.append(("sets that can be best", f"{names(sets)}, with each variable set to 0 or 1"))
    return rows
