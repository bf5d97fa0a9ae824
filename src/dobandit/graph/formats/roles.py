"""What a printed graph must say about its nodes, beyond what follows from the defaults of CausalGraph."""

from __future__ import annotations

from collections.abc import Iterator

from dobandit.graph.causal_graph import CausalGraph


def usual_controllable(graph: CausalGraph) -> bool:
    """Whether the controllable variables are the default: every observed one but the target and the context."""
    return len(graph.controllable) == len(graph.observed) - 1 - len(graph.context)


def usual_bias(graph: CausalGraph) -> bool:
    """Whether the nodes with a bias are the default: every observed one."""
    return graph.bias == graph.observed


def listed_roles(graph: CausalGraph) -> dict[str, tuple[str, ...]]:
    """By role: who has it, where that has to be said."""
    said = {"latent": graph.latent, "context": graph.context}
    found = {role: names for role, names in said.items() if names}
    if not usual_controllable(graph):
        found["controllable"] = graph.controllable
    if not usual_bias(graph):
        found["bias"] = graph.bias
    return found


def marks(graph: CausalGraph) -> dict[str, dict[str, bool]]:
    """For each node that needs it: the marks that GraphDraft reads back into the same roles."""
    latent, settable, started = set(graph.latent), set(graph.controllable), set(graph.bias)
    context = set(graph.context)
    explicit = not usual_controllable(graph)
    found: dict[str, dict[str, bool]] = {}
    for name in graph.nodes:
        said: dict[str, bool] = {}
        if name in latent:
            said["latent"] = True
        elif name in context:
            said["context"] = True
        elif explicit and name != graph.target:
            said["controllable"] = name in settable
        if (name in started) == (name in latent):
            said["bias"] = name in started
        if said:
            found[name] = said
    return found


def isolated(graph: CausalGraph) -> Iterator[str]:
    """Nodes that no edge names."""
    linked = {name for edge in graph.edges for name in edge}
    return (name for name in graph.nodes if name not in linked)
