"""Hidden causes that cannot be removed: what a user can give up so that they can.

Hiding     A hidden cause of a mediator and of what comes after it does no harm once the mediator counts as hidden too:
           its own causes then act on its effects directly.
Cutting    A variable that is set in every round has no causes, hidden ones neither.
Two rules say what is harmless. `admissible` is the paper's, for linear models; `unshared` holds for any model: a hidden
node that reaches one observed node only is a part of that node's randomness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dobandit.checks import listable, shown
from dobandit.errors import GraphError, closest, listed
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.latent import Admissibility, Witness, admissible, hidden_path_sums, observed_ends, path_between
from dobandit.texts import keyword

AUTO = "auto"
_MOST_LOOKS = 1_000  # graphs that the search for a smallest set looks at
_MOST_FOR_ADVICE = 2_000  # nodes of a graph for which an error message searches
Rule = Callable[[CausalGraph], Admissibility]


class Shared(Witness):
    """A hidden node with hidden-only paths to two observed nodes that matter to the target."""

    def __str__(self) -> str:
        (first, one), (second, other) = ((" -> ".join(path), path[-1]) for path in self.paths)
        return f"hidden {self.hidden!r} reaches both {one!r} ({first}) and {other!r} ({second})"


def unshared(graph: CausalGraph) -> Admissibility:
    """Does every hidden node reach one observed node at most, among those that matter to the target?

    Then the observed variables have a causal model without hidden ones, whatever the links, in which a node's
    probabilities are a table over its parents in the reduced graph.
    """
    matter = {graph.index(name) for name in (*graph.ancestors(graph.target), graph.target)}
    for u, ends in observed_ends(graph):
        if len(ends & matter) > 1:
            first, second = sorted(ends & matter)[:2]
            paths = (path_between(graph, u, first), path_between(graph, u, second))
            return Admissibility(False, Shared(graph.nodes[u - 1], paths))
    return Admissibility(True)


def smallest_to_hide(graph: CausalGraph, rule: Rule = admissible) -> tuple[str, ...] | None:
    """The smallest set of observed variables that cannot be set which, once hidden, makes `rule` hold; None: there is
    none.

    A witness stays one until an end of its paths is hidden, whatever else is: a search that hides one end or the other,
    breadth first, finds a smallest set.

    >>> graph = CausalGraph(
    ...     [("email", "visit"), ("visit", "buy"), ("season", "visit"), ("season", "buy")],
    ...     target="buy", latent=["season"], controllable=["email"],
    ... )
    >>> smallest_to_hide(graph)
    ('visit',)
    """
    waiting = [frozenset[str]()]
    for looks, hidden in enumerate(waiting):
        if looks == _MOST_LOOKS:
            raise GraphError(
                f"the smallest set of variables to hide was not found after {_MOST_LOOKS:,} steps: too many hidden "
                f"causes have to be dealt with. Name what is to be hidden: {keyword('hide')}."
            )
        witness = rule(with_hidden(graph, hidden)).witness
        if witness is None:
            return tuple(name for name in graph.nodes if name in hidden)
        waiting += [more for end in _hideable_ends(graph, witness) if (more := hidden | {end}) not in waiting]
    return None


def _hideable_ends(graph: CausalGraph, witness: Witness) -> list[str]:
    """The ends of a witness that may be hidden, of which one has to be."""
    kept = {graph.target, *graph.controllable, *graph.context}
    return [path[-1] for path in witness.paths if path[-1] not in kept]


def why_none(graph: CausalGraph, rule: Rule = admissible) -> str:
    """Why no set of variables that could be hidden makes `rule` hold: what is left to hide in the end must stay."""
    hidden = set[str]()
    while (witness := rule(with_hidden(graph, hidden)).witness) and (ends := _hideable_ends(graph, witness)):
        hidden.add(ends[0])
    if witness is None:
        return ""
    roles = {graph.target: "is the target"} | dict.fromkeys(graph.context, "is context, known before acting")
    kept = [f"{end!r} {roles.get(end, 'can be set')}" for end in dict.fromkeys(path[-1] for path in witness.paths)]
    return (
        f"{keyword('hide', 'auto')} finds nothing that would help: it hides variables that are neither set, nor "
        f"context, nor the target, but of what hidden {witness.hidden!r} reaches, {' and '.join(kept)}."
    )


def names_to_hide(graph: CausalGraph, hide: str | Iterable[str], rule: Rule = admissible) -> list[str]:
    """What `hide` says, checked; "auto": the smallest set by which `rule` holds, nothing where none does. A variable
    that is hidden is not set either."""
    if isinstance(hide, str):
        if hide != AUTO:
            raise GraphError(f"hide is a list of names or 'auto', but got the string {hide!r}. Write [{hide!r}].")
        return list(smallest_to_hide(graph, rule) or ())
    chosen = listable(hide)
    if chosen is None:
        raise GraphError(f"hide is a list of names or 'auto', but got {shown(hide)}.")
    for name in chosen:
        if not isinstance(name, str) or name not in graph.all_nodes:
            raise GraphError(f"hide is about variables of the graph, but {name!r} is none.{closest(name, graph.nodes)}")
        if name == graph.target or name in graph.context:
            role = "the target" if name == graph.target else "context, which is known before acting"
            raise GraphError(f"hide is about variables between what is set and the target, but {name!r} is {role}.")
    return [name for name in graph.nodes if name in chosen and name not in graph.latent]


def with_hidden(graph: CausalGraph, names: Iterable[str]) -> CausalGraph:
    """The graph in which `names` are hidden too, and not set."""
    more = set(names)
    if not more:
        return graph
    settable = [name for name in graph.controllable if name not in more]
    return graph.changed(latent=[*graph.latent, *more], controllable=settable)


def without_causes(graph: CausalGraph, names: Iterable[str]) -> CausalGraph:
    """The graph in which nothing causes `names`: they are set in every round."""
    always = set(names)
    if not always:
        return graph
    edges = [edge for edge in graph.edges if edge[1] not in always]
    return graph.changed(edges=edges, bias=[name for name in graph.nodes if name in {*graph.bias, *always}])


def reduced(graph: CausalGraph, beside: Sequence[str] = ()) -> CausalGraph:
    """The graph over the observed nodes, with an edge wherever there is a hidden path; nothing is checked. A node has
    the constant as a parent if it had it before, or if a hidden node can turn it on.

    beside  hidden nodes that stay, without causes and effects: they are seen and kept, and nothing is learned from them
    """
    if not graph.latent:
        return graph
    names, arrays = ("", *graph.nodes), graph.arrays
    paths = hidden_path_sums(graph, [1.0] * len(arrays.parent))
    # A hidden node may be 1 by itself even where no bias is listed for it: the learner must allow for that.
    started = {sink for source, sink in paths if source == 0}
    started.update(graph.slot_child[arrays.latent[arrays.parent]].tolist())
    return graph.changed(
        nodes=[*graph.observed, *beside],
        edges=[(names[source], names[sink]) for source, sink in paths if source],
        latent=(),
        bias=[*(name for name in graph.observed if graph.index(name) in started), *beside],
    )


def ways_out(graph: CausalGraph, witness: Witness, rule: Rule = admissible, learner: bool = True) -> str:
    """What a user can do about a witness, in sentences with the words to type.

    learner  whether a policy is at work, which could learn mechanisms, set a variable always, or do without the graph
    """
    ways = []
    if learner:
        typed = keyword("policy", "causal-ucb")
        ways.append(f"learn how variables answer to each set, with links that are learned: {typed}")
    try:
        found = smallest_to_hide(graph, rule) if len(graph) <= _MOST_FOR_ADVICE else None
    except GraphError:  # too many to say which
        found = None
    settable = [end for path in witness.paths if (end := path[-1]) in graph.controllable]
    if found:
        typed = f"{keyword('hide', found)} or {keyword('hide', 'auto')}"
        ways.append(f"count {listed(found)} as hidden too, so that its causes act on its effects directly: {typed}")
    elif settable:
        typed = keyword("hide", settable[:1])
        ways.append(f"count {settable[0]!r} as hidden too, if it need not be set: {typed}")
    if learner and settable:
        typed = keyword("always_set", settable[:1])
        ways.append(f"set {settable[0]!r} in every round: {typed}")
    if learner:
        ways.append(f"run an experiment with a policy that keeps no model: {keyword('policy', 'ucb')}")
    ways.append(f"observe {witness.hidden!r}")
    numbered = [f"({i}) {way}" for i, way in enumerate(ways, start=1)]
    return "Ways on: " + "; ".join(numbered) + "."
