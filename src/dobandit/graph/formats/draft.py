"""GraphDraft: what a file says, collected by every format in the same way, until it can become a CausalGraph.

A place is a number that the format understands (an offset in the text, the number of an edge in JSON) and
`refuse` turns it into an error that tells where.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable

from dobandit import limits
from dobandit.errors import DobanditError
from dobandit.graph.ordering import natural_key

_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_SURROGATE = re.compile("[\ud800-\udfff]")
ROLES = ("latent", "controllable", "bias", "context")


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
