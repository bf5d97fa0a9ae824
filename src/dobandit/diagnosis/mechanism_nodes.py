"""The nodes of a learner's belief where variables share hidden causes: one for each mechanism (`policy.regimes`).

A variable's own node is its mechanism where hidden causes are cut off; "Y | Z, X" is another one, with the causes that
it answers to. Where each variable has one mechanism, nodes are variables.
"""

from __future__ import annotations

from collections.abc import Iterator

from dobandit.graph.mechanisms import Way, in_ways
from dobandit.oracle.actions import Action, actions_of
from dobandit.policy.engine import Rounds
from dobandit.policy.learner import Learner
from dobandit.policy.problem import Problem
from dobandit.policy.questions import Believes


def believed(learner: Learner) -> Problem:
    """The problem whose graph has a node for each mechanism, where a model is kept."""
    return learner.problem.of_mechanisms if learner.keeps_model else learner.problem


def nodes_of(learner: Learner) -> list[str]:
    """The nodes that it has weights for: of a variable with several mechanisms those that an allowed action, or doing
    nothing, puts to work."""
    problem, regimes = believed(learner), believed(learner).regimes
    if regimes is None:
        return list(learner.modelled)
    graph = problem.graph
    at_work = {node for answers in regimes.answers for node, _ in answers.values()}
    found = []
    for v in map(graph.index, learner.modelled):
        further = [node for node in range(len(learner.graph) + 1, len(graph) + 1) if regimes.variable[node] == v]
        found += [node for node in (v, *further) if node in at_work or not further]
    return [graph.nodes[node - 1] for node in found]


def by_mechanism(problem: Problem, rounds: Rounds) -> Rounds:
    """Rounds with a column for each node; what a round does not teach counts as set there."""
    return rounds if problem.regimes is None else problem.regimes.rounds(rounds)


def ways_of(learner: Learner) -> dict[str, list[Way]]:
    """How variables that share hidden causes answer; empty where none does, or no model is kept."""
    regimes, mechanisms = believed(learner).regimes, learner.problem.mechanisms
    return {} if regimes is None or mechanisms is None else mechanisms.ways(regimes.masks)


def on_mechanisms(learner: Learner) -> Iterator[str]:
    """The same in sentences."""
    return (f"{name!r} {ways}." for name, ways in in_ways(ways_of(learner)))


def is_covered(learner: Learner, action: Action) -> bool:
    """Whether the belief has the mechanisms that an action puts to work: those that allowed actions need."""
    regimes = believed(learner).regimes
    return regimes is None or bool(regimes.of(actions_of([action]))[0] >= 0)


def unshown(learner: Learner, action: Action) -> list[str]:
    """The mechanisms that an action puts to work and no round has shown: nothing is known of what it brings."""
    problem, engine = believed(learner), learner.engine
    if problem.regimes is None or not isinstance(engine, Believes) or not is_covered(learner, action):
        return []
    beliefs, graph = engine.beliefs(), problem.graph
    nodes = problem.regimes.nodes_of(action, learner.problem.order)
    free = [v for v in nodes if v not in action.ids and graph.nodes[v - 1] not in learner.graph.context]
    return [graph.nodes[v - 1] for v in free if not beliefs.node(v).rows]


def never_shown(learner: Learner, nodes: list[str]) -> Iterator[str]:
    """What it means that no round has shown these mechanisms, in sentences."""
    problem, ways = believed(learner), ways_of(learner)
    assert problem.regimes is not None
    for v in map(problem.graph.index, nodes):
        name = problem.graph.nodes[int(problem.regimes.variable[v]) - 1]
        causes = set(problem.graph.parents(problem.graph.nodes[v - 1]))
        way = next((f" {way}" for way in ways.get(name, ()) if set(way.causes) == causes), "").removesuffix(
            " otherwise"
        )
        yield (
            f"No round shows how {name!r} answers{way}: hidden causes make it answer differently in the others. What "
            "that brings is not known until some rounds show it."
        )
