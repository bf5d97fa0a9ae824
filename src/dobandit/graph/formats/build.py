"""From a draft to a CausalGraph: hidden common causes get names, roles are settled, faults get their places."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.errors import DobanditWarning, GraphError, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats.draft import GraphDraft
from dobandit.graph.ordering import natural_key


def build(
    draft: GraphDraft,
    target: str | None = None,
    latent: Iterable[str] = (),
    controllable: Iterable[str] | None = None,
    bias: Iterable[str] | None = None,
    context: Iterable[str] = (),
) -> CausalGraph:
    """The graph of a draft; `latent` and `context` are added to what the file says, the other arguments replace it."""
    for role, names in (("latent", latent), ("context", context)):
        if isinstance(names, str):
            raise GraphError(f"{role} is a list of names, but got the string {names!r}. Write [{names!r}].")
    _name_confounders(draft)
    _refuse_bad_names(draft)
    tails, heads = _checked_edges(draft)
    listed_latent, listed_context = (
        _added(draft, role, more) for role, more in (("latent", latent), ("context", context))
    )
    # CausalGraph refuses what is no string
    hidden, given = ({name for name in names if isinstance(name, str)} for names in (listed_latent, listed_context))
    chosen = _chosen_target(draft, hidden) if target is None else target
    settable = _said_controllable(draft, {chosen, *hidden, *given}) if controllable is None else controllable
    started = _said_bias(draft, hidden) if bias is None else bias
    roles = (chosen, listed_latent, settable, started, listed_context)
    graph = CausalGraph.from_arrays(list(draft.ids), tails, heads, *roles)
    _warn_about_irrelevant(graph)
    return graph


def _added(draft: GraphDraft, role: str, more: Iterable[str]) -> list[str]:
    """Who has this role in the file, by list or mark, and who the caller adds."""
    marked = (name for name, yes in draft.marks[role].items() if yes)
    return [*draft.said.get(role, ()), *marked, *more]


def _name_confounders(draft: GraphDraft) -> None:
    for one, other in sorted(draft.confounded, key=lambda pair: [natural_key(name) for name in pair]):
        name, copies = f"U_{one}_{other}", 1
        while name in draft.ids:
            copies += 1
            name = f"U_{one}_{other}_{copies}"
        draft.ids[name] = len(draft.ids)
        draft.assign("latent", [(name, draft.confounded[one, other])])
        for end in (one, other):
            draft.edge(name, end, draft.confounded[one, other])
    draft.confounded.clear()


def _refuse_bad_names(draft: GraphDraft) -> None:
    if not draft.ids:
        raise draft.refuse(0, "a causal graph needs nodes, but the file names none. List some edges.")
    if sum(map(len, draft.ids)) > limits.MAX_NAMES:
        raise draft.refuse(0, f"the names have at most {limits.MAX_NAMES} characters together. Use shorter names.")


def _chosen_target(draft: GraphDraft, hidden: Collection[str]) -> str:
    if len(draft.targets) > 1:
        first, second = list(draft.targets)[:2]
        message = f"a graph has one target, but {first!r} and {second!r} are named. Choose one with target=..."
        raise draft.refuse(draft.targets[second], f"{message} (or --target).")
    if draft.targets:
        return next(iter(draft.targets))
    parents, children = set(draft.heads), set(draft.tails)
    ends = [n for n, i in draft.ids.items() if i in parents and i not in children and n not in hidden]
    hint = f" The only observed effect without effects of its own is {ends[0]!r}." if len(ends) == 1 else ""
    how = "Give target=... (or --target on the command line), or name it in the file."
    raise GraphError(f"no target is named. {how}{hint}")


def _checked_edges(draft: GraphDraft) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges as arrays, a loop or a repetition refused at its place."""
    tails, heads = (np.frombuffer(side, dtype=np.int64) for side in (draft.tails, draft.heads))
    names = list(draft.ids) if len(tails) else []
    loops = np.flatnonzero(tails == heads)
    if len(loops):
        name = names[tails[loops[0]]]
        message = f"a node does not cause itself, but {name!r} -> {name!r} is an edge. Remove it."
        raise draft.refuse(draft.places[int(loops[0])], message)
    _, first = np.unique(tails * len(names) + heads, return_index=True)
    if len(first) == len(tails):
        return tails, heads
    if draft.merge:
        return tails[first], heads[first]
    again = int(np.setdiff1d(np.arange(len(tails)), first)[0])
    edge = f"{names[tails[again]]!r} -> {names[heads[again]]!r}"
    raise draft.refuse(draft.places[again], f"each edge is listed once, but {edge} is listed before. Keep one.")


def _said_controllable(draft: GraphDraft, others: Collection[str]) -> Iterable[str] | None:
    """What the file says; where it only says who is not, all but these and `others`, which cannot be."""
    marks = draft.marks["controllable"]
    if "controllable" in draft.said or not marks:
        return draft.said.get("controllable")
    if any(marks.values()):
        return [name for name, yes in marks.items() if yes]
    return [name for name in draft.ids if name not in others and name not in marks]


def _said_bias(draft: GraphDraft, hidden: Collection[str]) -> Iterable[str] | None:
    marks = draft.marks["bias"]
    if "bias" in draft.said or not marks:
        return draft.said.get("bias")
    return [name for name in draft.ids if marks.get(name, name not in hidden)]


def _warn_about_irrelevant(graph: CausalGraph) -> None:
    """The constructor's warning, which building from arrays leaves to the caller."""
    if graph.irrelevant:
        what = f"setting {listed(graph.irrelevant)} cannot change {graph.target!r}: there is no path to it."
        how = "List the controllable variables, or add the missing edges."
        warnings.warn(f"{what} {how}", DobanditWarning, stacklevel=4)
