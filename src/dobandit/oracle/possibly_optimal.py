"""`possibly_optimal`: the sets that can be best at all, whatever the model, where hidden causes are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from dobandit.errors import GraphError, InferenceError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.interventional_borders import Borders
from dobandit.oracle.actions import Actions, Allowed
from dobandit.oracle.rules import Rules, RuleWords, rules_of
from dobandit.texts import setting

_MOST_SETS = 3_000  # each is held against the others
_EITHER = (0.0, 1.0)


def possibly_optimal(
    graph: CausalGraph, budget: int | Rules | None = None, **rules: Unpack[RuleWords]
) -> list[tuple[str, ...]]:
    """The sets of variables of which one is best in every model of 0 and 1 with this graph, hidden causes included: for
    every other allowed set, setting one of these is no worse.

    graph          what causes what, hidden variables included
    budget, rules  as in `solve`; default: every set of controllable variables. Each variable can be set to 0 and to 1
                   unless `levers` (or Rules, which are taken as they are) say otherwise

    Returns the sets, the smallest first; () is doing nothing.

    Where every set is allowed, these are the POMIS of Lee and Bareinboim (2018; 2019 for variables that cannot be set):
    each of them is better than all others in some model. With a budget, costs, groups or levers of fewer values the
    theorem says nothing; sets are then dropped only where another allowed one is no worse in every model.

    >>> edges = [("Z", "X"), ("X", "Y"), ("U", "X"), ("U", "Y")]
    >>> graph = CausalGraph(edges, target="Y", latent=["U"])
    >>> possibly_optimal(graph)
    [('Z',), ('X',)]
    >>> possibly_optimal(graph, levers={"Z": [1]})
    [(), ('Z',), ('X',)]
    """
    if not isinstance(graph, CausalGraph):
        raise GraphError(f"the graph must be a CausalGraph, but got {type(graph).__name__}. Pass model.graph.")
    given = _with_levers(graph, rules_of(budget, rules), isinstance(budget, Rules))
    allowed = Allowed(graph, replace(given, levers={}, always_set=()), monotone=False)  # every set once
    whole = [name for name in (*allowed.names, *given.require) if given.values_of(name) == _EITHER]
    borders = Borders(graph, allowed.names)
    free = allowed.most == len(allowed.names) and allowed.budget_alone and not (allowed.required or allowed.full_only)
    if free and not graph.context and set(whole) >= set(borders.names(borders.matter)):
        return borders.possibly_optimal()
    _require_few(allowed.count())
    sets = dict.fromkeys(sum(1 << v for v in row if v) for row in allowed.rows().ids.tolist())
    known = borders.mask(graph.context)
    kept = borders.undominated([mask | known for mask in sets], borders.mask(whole))
    return [borders.names(mask & ~known) for mask in kept]


def worth_playing(graph: CausalGraph, names: CausalGraph, actions: Actions, whole: Sequence[str]) -> list[int]:
    """Which rows of `actions` are left when sets are dropped to which another of the list is no worse.

    graph  what causes what, hidden variables included;  names: the graph whose ids the actions have
    whole  the variables that the list sets to each of their values
    """
    borders = Borders(graph)
    masks = [borders.mask(actions.row(i).named(names)) for i in range(len(actions.ids))]
    sets = list(dict.fromkeys(masks))
    _require_few(len(sets))
    kept = set(borders.undominated(sets, borders.mask(whole)))
    return [i for i, mask in enumerate(masks) if mask in kept]


def _with_levers(graph: CausalGraph, rules: Rules, as_they_are: bool) -> Rules:
    if rules.budget is None and rules.total_cost is None:
        rules = replace(rules, budget=len(graph.controllable))
    if as_they_are:
        return rules
    return replace(rules, levers=dict.fromkeys(graph.controllable, _EITHER) | dict(rules.levers))


def _require_few(sets: int) -> None:
    if sets > _MOST_SETS:
        raise InferenceError(
            f"sets are held against each other only up to {_MOST_SETS:,}, but {sets:,} are allowed. Lower the budget, "
            f"make fewer variables controllable, or do without ({setting('prune=False')})."
        )
