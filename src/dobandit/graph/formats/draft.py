"""GraphDraft: what a file says, collected by every format in the same way, until it can become a CausalGraph.

A place is a number that the format understands (an offset in the text, the number of an edge in JSON) and
`refuse` turns it into an error that tells where.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from dobandit import limits
from dobandit.errors import DobanditError, GraphError
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.ordering import bad_edge, natural_key, reached_from
from dobandit.graph.roles import ROLES, Roles, usual_bias, usual_controllable, warn_about_useless

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_SURROGATE = re.compile("[\ud800-\udfff]")


class GraphDraft:
    """Nodes, edges and roles in the order of the file.

    Roles come as lists (`said`; an absent one means the default) or as marks on single nodes. A node marked
    controllable means that the unmarked ones are not; marked not controllable, that the others stay as they
    are. A bias or context mark concerns its node alone.
    """

    def __init__(self, refuse: Callable[[int, str], DobanditError], *, merge: bool = False) -> None:
        self.refuse = refuse
        self.merge = merge  # take an edge that is listed twice for one edge
        self.ids: dict[str, int] = {}
        self.tails, self.heads, self.places = array("q"), array("q"), array("q")
        self.confounded: dict[tuple[str, str], int] = {}
        self.targets: dict[str, int] = {}
        self.said: dict[str, dict[str, None]] = {}
        self.marks: dict[str, dict[str, bool]] = {role: {} for role in ROLES}
        # Named states and their place, where the format has any.
        self.states: dict[str, tuple[tuple[str, ...], int]] = {}

    # -- collecting --------------------------------------------------------------------------------------

    def node(self, name: str, place: int) -> int:
        """The node's number; a new name becomes a node."""
        number = self.ids.get(name)
        return self._new_node(name, place) if number is None else number

    def _new_node(self, name: str, place: int) -> int:
        if not name.strip():
            raise self.refuse(place, f"names are not empty, but found {name[:40]!r}. Give it a name.")
        if len(name) > limits.MAX_NAME:
            message = f"names have at most {limits.MAX_NAME} characters, but {name[:20]!r}... has {len(name)}."
            raise self.refuse(place, f"{message} Shorten it.")
        if not name.isascii() and _SURROGATE.search(name):
            message = f"names are Unicode text, but {name[:40]!r} has half of a surrogate pair. Correct its escape."
            raise self.refuse(place, message)
        number = len(self.ids)
        if number >= limits.MAX_NODES:
            raise self.refuse(place, f"a graph file has at most {limits.MAX_NODES} nodes. Split the graph.")
        self.ids[name] = number
        return number

    def edge(self, cause: str, effect: str, place: int) -> None:
        tail, head = self.ids.get(cause), self.ids.get(effect)  # not self.node: this runs once per edge
        if tail is None or head is None:
            tail, head = self.node(cause, place), self.node(effect, place)
        if len(self.tails) >= limits.MAX_EDGES:
            self.refuse_more(1, place)
        self.tails.append(tail)
        self.heads.append(head)
        self.places.append(place)

    def refuse_more(self, edges: int, place: int) -> None:
        """Refuse so many more edges where they are too many, before they are made."""
        if len(self.tails) + edges > limits.MAX_EDGES:
            raise self.refuse(place, f"a graph file has at most {limits.MAX_EDGES} edges. Split the graph.")

    def confound(self, one: str, other: str, place: int) -> None:
        """`one <-> other`: a hidden common cause, named when all names are known."""
        self.node(one, place), self.node(other, place)
        if one == other:
            raise self.refuse(place, f"<-> joins two nodes, but both ends are {one!r}. Remove it.")
        pair = (one, other) if natural_key(one) < natural_key(other) else (other, one)
        if pair in self.confounded and not self.merge:
            raise self.refuse(place, f"{pair[0]!r} <-> {pair[1]!r} is listed twice. Keep one.")
        if len(self.confounded) >= limits.MAX_NODES:
            raise self.refuse(place, f"a graph file has at most {limits.MAX_NODES} <->. Split the graph.")
        self.confounded[pair] = place

    def connect(self, left: str, arrow: str, right: str, place: int) -> None:
        """What an arrow says: -> and <- are edges, <-> is a hidden common cause."""
        if arrow == "<->":
            self.confound(left, right, place)
        else:
            self.edge(*((left, right) if arrow == "->" else (right, left)), place)

    def aim(self, target: str, place: int) -> None:
        """The file names a target; a second one is kept to be refused, unless the caller chooses."""
        if len(self.targets) < 2:
            self.targets.setdefault(target, place)

    def mark(self, role: str, name: str, word: str, place: int) -> None:
        """The file says of one node whether it has this role."""
        if word.lower() not in _TRUTH:
            raise self.refuse(place, f"{role} is true or false, but node {name!r} has {word[:40]!r}.")
        self.marks[role][name] = _TRUTH[word.lower()]

    def assign(self, role: str, names: Iterable[tuple[str, int]]) -> None:
        """The file lists (name, place) of this role; an empty list says that nobody has it."""
        members = self.said.setdefault(role, {})
        for name, place in names:
            if len(members) >= limits.MAX_NODES:
                raise self.refuse(place, f"a list has at most {limits.MAX_NODES} names. Split the graph.")
            members[name] = None

    def members(self, role: str) -> list[str]:
        """Everybody to whom the file gives this role."""
        return [*self.said.get(role, ()), *(name for name, yes in self.marks[role].items() if yes)]

    def said_members(self, role: str, usual: Collection[str]) -> Iterable[str] | None:
        """Who has the role, `usual` being those who have it where nothing is said; None where the file says nothing."""
        marks = self.marks[role]
        if role in self.said or not marks:
            return self.said.get(role)
        if role == "controllable" and any(marks.values()):
            usual = ()
        return [name for name in self.ids if marks.get(name, name in usual)]


# -- from a draft to a CausalGraph -----------------------------------------------------------------------------------


def build(draft: GraphDraft, target: str | None = None, **roles: Unpack[Roles]) -> CausalGraph:
    """The graph of a draft; `latent` and `context` are added to what the file says, the other arguments replace it."""
    for role in ("latent", "context"):
        if isinstance(names := roles.get(role), str):
            raise GraphError(f"{role} is a list of names, but got the string {names!r}. Write [{names!r}].")
    _name_confounders(draft)
    if not draft.ids:
        raise draft.refuse(0, "a causal graph needs nodes, but the file names none. List some edges.")
    if sum(map(len, draft.ids)) > limits.MAX_NAMES:
        raise draft.refuse(0, f"the names have at most {limits.MAX_NAMES} characters together. Use shorter names.")
    tails, heads = _checked_edges(draft)
    latent = [*draft.members("latent"), *roles.get("latent", ())]
    context = [*draft.members("context"), *roles.get("context", ())]
    hidden, known = ({name for name in names if isinstance(name, str)} for names in (latent, context))
    observed = [name for name in draft.ids if name not in hidden]
    chosen = _chosen_target(draft, observed) if target is None else target
    controllable, bias = roles.get("controllable"), roles.get("bias")
    if controllable is None:
        names = list(draft.ids)
        effects = {names[i] for i in np.flatnonzero(reached_from(chosen, names, tails, heads)).tolist()}
        controllable = draft.said_members("controllable", {*observed} - {chosen} - known - effects)
    if bias is None:
        bias = draft.said_members("bias", {*observed})
    graph = CausalGraph.from_arrays(list(draft.ids), tails, heads, chosen, latent, controllable, bias, context)
    warn_about_useless(graph, stacklevel=4)
    return graph


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


def _chosen_target(draft: GraphDraft, observed: Iterable[str]) -> str:
    if len(draft.targets) > 1:
        first, second = list(draft.targets)[:2]
        message = f"a graph has one target, but {first!r} and {second!r} are named. Choose one with target=..."
        raise draft.refuse(draft.targets[second], f"{message} (or --target).")
    if draft.targets:
        return next(iter(draft.targets))
    effects, causes = set(draft.heads), set(draft.tails)
    ends = [name for name in observed if draft.ids[name] in effects and draft.ids[name] not in causes]
    hint = f" The only observed effect without effects of its own is {ends[0]!r}." if len(ends) == 1 else ""
    how = "Give target=... (or --target on the command line), or name it in the file."
    raise GraphError(f"no target is named. {how}{hint}")


def _checked_edges(draft: GraphDraft) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges as arrays, a loop or a repetition refused at its place."""
    tails, heads, places = (np.frombuffer(one, dtype=np.int64) for one in (draft.tails, draft.heads, draft.places))
    if draft.merge:
        first = np.unique(tails * len(draft.ids) + heads, return_index=True)[1]
        tails, heads, places = tails[first], heads[first], places[first]
    bad = bad_edge(list(draft.ids), tails, heads)
    if bad is not None:
        raise draft.refuse(int(places[bad[0]]), bad[1])
    return tails, heads


# -- what a printed graph must say beyond the defaults of CausalGraph ------------------------------------------------


def listed_roles(graph: CausalGraph) -> dict[str, tuple[str, ...]]:
    """By role: who has it, where that has to be said."""
    usual = {"latent": not graph.latent, "context": not graph.context}
    usual |= {"controllable": usual_controllable(graph), "bias": usual_bias(graph)}
    return {role: getattr(graph, role) for role, unsaid in usual.items() if not unsaid}


def marks(graph: CausalGraph) -> dict[str, dict[str, bool]]:
    """For each node that needs it: the marks that GraphDraft reads back into the same roles."""
    latent, context, settable, started = (
        {*names} for names in (graph.latent, graph.context, graph.controllable, graph.bias)
    )
    marked: dict[str, dict[str, bool]] = {}
    for name in graph.nodes:
        said = {}
        if name in latent or name in context:
            said["latent" if name in latent else "context"] = True
        elif name != graph.target and not usual_controllable(graph):
            said["controllable"] = name in settable
        if (name in started) == (name in latent):
            said["bias"] = name in started
        if said:
            marked[name] = said
    return marked


def isolated(graph: CausalGraph) -> Iterator[str]:
    """Nodes that no edge names."""
    linked = {name for edge in graph.all_edges for name in edge}
    return (name for name in graph.nodes if name not in linked)
