"""What is said of a graph or model before anything is done with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from dobandit.errors import InferenceError, InterventionError, closest
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.hiding import (
    AUTO,
    names_to_hide,
    reduced,
    unshared,
    ways_out,
    why_none,
    with_hidden,
    without_causes,
)
from dobandit.graph.latent import admissible
from dobandit.graph.mechanisms import Way, mechanisms_of
from dobandit.model.bglm import WeightedModel
from dobandit.model.causal_model import CausalModel
from dobandit.model.table_model import TableModel
from dobandit.oracle.possibly_optimal import possibly_optimal
from dobandit.policy.hidden_causes import Hide
from dobandit.texts import keyword

_LARGEST_BUDGET = 1000  # up to which smaller sets are counted too
_MOST_SETTABLE = 12  # the sets that can be best are worked out up to this many variables


def check_document(
    what: CausalGraph | CausalModel, budget: int | None, hide: Hide = (), always_set: Sequence[str] = ()
) -> dict[str, Any]:
    """What is right and wrong with a graph or model: hidden causes, sizes, and of a model its links and harms. Keywords
    in `hide_note` and `ways_on` are marked (`texts.keyword`)."""
    graph = what if isinstance(what, CausalGraph) else what.structure
    settable = len(graph.controllable)
    if budget is not None and budget > settable:
        raise InterventionError(
            f"the budget must be between 0 and {settable} (the controllable variables), but got {budget}. "
            f"Lower {keyword('budget')} or make more variables controllable."
        )
    report: dict[str, Any] = {
        "valid": True,
        "kind": "graph" if isinstance(what, CausalGraph) else "model",
        "target": graph.target,
        "nodes": len(graph),
        "edges": graph.edge_count,
        "latent": list(graph.latent),
        "controllable": list(graph.controllable),
        "context": list(graph.context),
        "cannot_matter": list(graph.irrelevant),
        "effects_of_target": list(graph.effects),
        "settable_mediators": list(graph.settable_mediators),
        "bias": list(graph.bias),
        **_hidden(graph, hide, always_set, budget),
        "budget": budget,
        "arms": None if budget is None else _readable(math.comb(settable, budget)),
        "sets_up_to_budget": None if budget is None else _count_up_to(settable, budget),
        "parents": {name: len(graph.parents(name)) for name in graph.nodes},
    }
    if isinstance(what, TableModel):
        report["nonnegative"] = what.nonnegative
        report["tables"] = {name: table.ndim for name, table in what.tables.items() if name not in what.parts}
        report["hidden_states"] = dict(what.parts)
        report["ones"] = {name: list(states) for name, states in what.ones.items()}
    if isinstance(what, WeightedModel):
        report["continuous"] = what.continuous
        report["linear"] = what.is_linear
        report["nonnegative"] = what.nonnegative
        report["harmful"] = [
            {"cause": cause, "effect": effect, "weight": what.weights[cause, effect]} for cause, effect in what.harmful
        ]
        report["links"] = {name: what.link(name).to_document() for name in graph.nodes}
    return report


def _count_up_to(settable: int, budget: int) -> int | float | None:
    if budget > _LARGEST_BUDGET:
        return None
    return _readable(sum(math.comb(settable, size) for size in range(budget + 1)))


def _readable(count: int) -> int | float | None:
    """A number of sets: exactly while it can be read, then as a float, None beyond that."""
    if count < 10**18:
        return count
    return float(count) if count < 10**300 else None


def _hidden(graph: CausalGraph, hide: Hide, always_set: Sequence[str], budget: int | None) -> dict[str, Any]:
    """The facts on hidden causes, once `hide` and `always_set` are seen to."""
    for name in always_set:
        if name not in graph.controllable:
            raise InterventionError(
                f"{keyword('always_set')} is about controllable variables, but {name!r} is none."
                + closest(name, graph.controllable)
            )
    free = without_causes(graph, always_set)
    chosen = names_to_hide(free, hide)
    whole = with_hidden(free, chosen)
    answer = admissible(whole)
    seen = reduced(whole)
    changed = [n for n in seen.nodes if chosen and seen.parents(n) != tuple(p for p in free.parents(n) if p in seen)]
    report: dict[str, Any] = {
        "admissible": bool(answer),
        "witness": None,
        "hide": chosen,
        "hide_note": None,
        "always_set": list(always_set),
        "learned_directly": {name: list(seen.parents(name)) for name in changed},
        "mechanisms": {name: [way._asdict() for way in ways] for name, ways in ways_of(free, whole, budget).items()},
        "refused_by": [] if answer else ["project", *(f"--policy {name}" for name in papers())],
        "ways_on": None,
        "possibly_optimal": _possible(whole, budget) if whole.latent else None,
    }
    if hide == AUTO and not chosen:
        nothing = f"{keyword('hide', AUTO)} hides nothing: nothing has to be hidden."
        report["hide_note"] = nothing if answer else why_none(free)
    if answer.witness is not None:
        report["witness"] = {"hidden": answer.witness.hidden, "paths": [list(path) for path in answer.witness.paths]}
        report["ways_on"] = ways_out(whole, answer.witness)
    return report


def ways_of(free: CausalGraph, whole: CausalGraph, budget: int | None) -> dict[str, list[Way]]:
    """How variables that share hidden causes answer, by what a set of this size can put to work; none where there are
    too many sets to look at.

    free, whole  the graph, and the graph in which more counts as hidden
    """
    if unshared(whole):
        return {}
    seen = reduced(whole, [name for name in whole.latent if name not in free.latent])
    mechanisms = mechanisms_of(whole, seen)
    ids = [v for v in map(seen.index, whole.controllable) if mechanisms.shared.get(v)]
    most = len(ids) if budget is None else min(budget, len(ids))
    if len(ids) > _MOST_SETTABLE:
        return {}
    sets = (some for size in range(most + 1) for some in combinations(ids, size))
    return mechanisms.ways(sum(1 << v for v in some) for some in sets)


def papers() -> list[str]:
    """The paper's policies, which learn where hidden causes can be removed only; one that knows the model is none."""
    from dobandit.policy.registry import NAMES, policy_class  # needs Numba, which few checks do

    kinds = {name: policy_class(name) for name in NAMES if name != "oracle"}
    return [name for name, kind in kinds.items() if not (kind.any_graph or kind.learns_mechanisms)]


def _possible(graph: CausalGraph, budget: int | None) -> list[list[str]] | None:
    """The sets that can be best; None where there are too many to work them out."""
    if len(graph.controllable) > _MOST_SETTABLE:
        return None
    most = None if budget is None else min(budget, len(graph.controllable))
    try:
        return [list(chosen) for chosen in possibly_optimal(graph, most)]
    except InferenceError:
        return None
