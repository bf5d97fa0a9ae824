"""What `check` says of hidden causes: whether they can be removed, what it takes, and which sets can be best at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from dobandit.cli.output import names
from dobandit.cli.spelling import as_command
from dobandit.errors import InferenceError, InterventionError, closest
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.hiding import AUTO, names_to_hide, reduced, ways_out, why_none, with_hidden, without_causes
from dobandit.graph.latent import Admissibility, admissible
from dobandit.oracle.possibly_optimal import possibly_optimal

_MOST_SETTABLE = 12  # the sets that can be best are worked out up to this many variables

hide_option = click.option(
    "--hide",
    multiple=True,
    metavar="NAME|auto",
    help="A variable that counts as hidden, so that hidden causes of it do no harm; auto: the fewest that help.",
)


def hide_of(given: Sequence[str]) -> str | tuple[str, ...]:
    """The values of --hide, as `hide=` takes them."""
    return AUTO if tuple(given) == (AUTO,) else tuple(given)


def hidden_report(
    graph: CausalGraph, hide: Sequence[str], always_set: Sequence[str], budget: int | None
) -> dict[str, Any]:
    """The facts on hidden causes, once `hide` and `always_set` are seen to."""
    for name in always_set:
        if name not in graph.controllable:
            raise InterventionError(
                f"--always-set is about controllable variables, but {name!r} is none."
                + closest(name, graph.controllable)
            )
    free = without_causes(graph, always_set)
    chosen = names_to_hide(free, hide_of(hide))
    whole = with_hidden(free, chosen)
    answer = admissible(whole)
    seen = reduced(whole)
    changed = [n for n in seen.nodes if chosen and seen.parents(n) != tuple(p for p in free.parents(n) if p in seen)]
    report: dict[str, Any] = {
        "admissible": bool(answer),
        "witness": None,
        "hide": chosen,
        "hide_note": _found_nothing(free, answer) if hide_of(hide) == AUTO and not chosen else None,
        "always_set": list(always_set),
        "learned_directly": {name: list(seen.parents(name)) for name in changed},
        "refused_by": [] if answer else ["project", "rank", *(f"--policy {name}" for name in policies(False))],
        "ways_on": None,
        "possibly_optimal": possible(whole, budget) if whole.latent else None,
    }
    if answer.witness is not None:
        report["witness"] = {"hidden": answer.witness.hidden, "paths": [list(path) for path in answer.witness.paths]}
        report["ways_on"] = as_command(ways_out(whole, answer.witness))
    return report


def _found_nothing(graph: CausalGraph, answer: Admissibility) -> str:
    """Why --hide auto hides nothing."""
    return "--hide auto hides nothing: nothing has to be hidden." if answer else as_command(why_none(graph))


def policies(any_graph: bool) -> list[str]:
    """The policies that take any graph, or those that do not; one that knows the model is neither."""
    from dobandit.policy.registry import NAMES, policy_class  # needs Numba, which few checks do

    return [name for name in NAMES if name != "oracle" and policy_class(name).any_graph is any_graph]


def possible(graph: CausalGraph, budget: int | None) -> list[list[str]] | None:
    """The sets that can be best; None where there are too many to work them out."""
    if len(graph.controllable) > _MOST_SETTABLE:
        return None
    most = None if budget is None else min(budget, len(graph.controllable))
    try:
        return [list(chosen) for chosen in possibly_optimal(graph, most)]
    except InferenceError:
        return None


def hidden_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The same for people."""
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
