"""The sets that can be best at all: against the definitions, and against every value of random models."""

from itertools import chain, combinations, product

import numpy as np
import pytest

import dobandit as dob
from dobandit import CausalGraph, Rules, possibly_optimal
from dobandit.errors import GraphError, InferenceError, PolicyError
from dobandit.graph.interventional_borders import Borders
from dobandit.oracle.actions import Allowed
from helpers.enumeration import confounded_graph, mean, random_tables
from helpers.plain_paths import hidden_paths, plain_descendants

IV = CausalGraph([("Z", "X"), ("X", "Y"), ("U", "X"), ("U", "Y")], target="Y", latent=["U"])
ARROWS = ["ZX", "XY", "WY", "SW", "TX", "TY"]
XYZWST = CausalGraph(
    [*map(tuple, ARROWS), ("U0", "X"), ("U0", "W"), ("U1", "Z"), ("U1", "Y")], target="Y", latent=["U0", "U1"]
)


def subsets(names):
    names = sorted(names)
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))


def as_sets(found):
    assert len({frozenset(one) for one in found}) == len(found)
    return {frozenset(one) for one in found}


# -- the definitions, step by step ----------------------------------------------------------------------------------


def latent_projection(graph):
    """(arrows, double arrows) over what can be set and the target."""
    kept = {*graph.controllable, graph.target}
    out = [name for name in graph.nodes if name not in kept]
    arrows = {(a, path[-1]) for a in kept for path in hidden_paths(graph.edges, out, a)}
    double = set()
    for u in out:
        ends = {path[-1] for path in hidden_paths(graph.edges, out, u)}
        double |= {frozenset(pair) for pair in combinations(sorted(ends), 2)}
    return arrows, double


def border_by_definition(arrows, double, target, chosen):
    """IB of the graph in which the arrows into `chosen` are cut, from MUCT."""
    arrows = {(a, b) for a, b in arrows if b not in chosen}
    double = {pair for pair in double if not pair & set(chosen)}
    ancestors = {target} | {a for a, _ in arrows if target in plain_descendants(arrows, a)}
    arrows = {(a, b) for a, b in arrows if {a, b} <= ancestors}
    double = {pair for pair in double if pair <= ancestors}
    territory = {target}
    while True:
        grown = set(territory)
        for node in territory:
            grown |= plain_descendants(arrows, node)
            grown |= {other for pair in double if node in pair for other in pair}
        if grown == territory:
            return frozenset(a for a, b in arrows if b in territory and a not in territory)
        territory = grown


def by_definition(graph):
    arrows, double = latent_projection(graph)
    return {border_by_definition(arrows, double, graph.target, chosen) for chosen in subsets(graph.controllable)}


def test_the_sets_of_the_papers():
    assert as_sets(possibly_optimal(IV)) == {frozenset("X"), frozenset("Z")}
    assert as_sets(possibly_optimal(XYZWST)) == {frozenset("ST"), frozenset("TW"), frozenset("TWX")}
    arrows = {edge for edge in XYZWST.edges if edge[0] not in XYZWST.latent}
    minimal = 0
    for chosen in subsets(XYZWST.controllable):
        cut = {(a, b) for a, b in arrows if b not in chosen}
        minimal += all("Y" in plain_descendants(cut, name) for name in chosen)
    assert minimal == 18


def test_without_hidden_causes_the_parents_of_the_target_are_best():
    graph = CausalGraph([("A", "B"), ("B", "Y"), ("C", "Y"), ("A", "C")], target="Y")
    assert as_sets(possibly_optimal(graph)) == {frozenset("BC")}


def test_it_is_what_the_definitions_say():
    rng, sizes = np.random.default_rng(0), set()
    for i in range(150):
        graph = confounded_graph(rng, size=8, hidden=1 + i % 3, settable=0.8)
        found = as_sets(possibly_optimal(graph))
        sizes.add(len(found))
        assert found == by_definition(graph)
        assert as_sets(
            possibly_optimal(graph, Rules(len(graph.controllable), dict.fromkeys(graph.controllable, (0, 1))))
        )
    assert max(sizes) >= 3


def test_sets_held_against_each_other_one_by_one_are_the_same_where_all_is_allowed():
    rng = np.random.default_rng(1)
    for _ in range(60):
        graph = confounded_graph(rng, size=8, hidden=2, settable=0.8)
        borders = Borders(graph)
        every = [borders.mask(chosen) for chosen in subsets(graph.controllable)]
        best = [
            mask
            for mask in every
            if not any(
                other != mask
                and borders.dominates(other, mask)
                and (borders.natural(other).bit_count(), other.bit_count())
                < (borders.natural(mask).bit_count(), mask.bit_count())
                for other in every
            )
        ]
        assert {frozenset(borders.names(mask)) for mask in best} == by_definition(graph)


# -- every value of random models -----------------------------------------------------------------------------------


def random_rules(rng, graph):
    names = graph.controllable
    words = {"levers": {name: [(0, 1), (1,), (0,)][rng.choice(3, p=[0.6, 0.3, 0.1])] for name in names}}
    if rng.random() < 0.3:
        words |= {"costs": {name: int(rng.integers(1, 3)) for name in names}, "total_cost": int(rng.integers(2, 5))}
    if rng.random() < 0.3 and len(names) > 1:
        words["exclusive"] = [names[:2]]
    if rng.random() < 0.2:
        words["forbid"] = names[:1]
    return Rules(int(rng.integers(1, len(names) + 1)), **words)


def test_a_best_allowed_action_is_always_among_them():
    rng, dropped, budgets = np.random.default_rng(2), 0, 0
    for i in range(160):
        graph = confounded_graph(rng, size=7, hidden=2, settable=0.8)
        rules = random_rules(rng, graph)
        kept = as_sets(possibly_optimal(graph, rules))
        model = random_tables(rng, graph, sharp=bool(i % 2))
        values = {}
        for action in Allowed(graph, rules, monotone=False).every():
            do = action.named(graph)
            values.setdefault(frozenset(do), []).append(mean(model, do))
        assert kept <= values.keys()
        dropped += len(values) - len(kept)
        budgets += rules.budget < len(graph.controllable)
        best = max(max(some) for some in values.values())
        assert max(max(values[one]) for one in kept) == pytest.approx(best, abs=1e-12)
    assert dropped > 300
    assert budgets > 50


def test_each_of_the_iv_sets_is_the_only_best_one_in_some_model():
    """Doing nothing and setting Z differ from setting X where the hidden cause decides what X should be."""
    found = set()
    rng = np.random.default_rng(3)
    for _ in range(60):
        model = random_tables(rng, IV, sharp=True)
        values = {}
        for chosen in subsets(IV.controllable):
            for to in product((0, 1), repeat=len(chosen)):
                values.setdefault(chosen, []).append(mean(model, dict(zip(chosen, to, strict=True))))
        best = {chosen: max(some) for chosen, some in values.items()}
        assert max(best.values()) == pytest.approx(max(best[("X",)], best[("Z",)]), abs=1e-12)
        if abs(best[("X",)] - best[("Z",)]) > 1e-6:
            found.add("X" if best[("X",)] > best[("Z",)] else "Z")
    assert found == {"X", "Z"}


def test_rules_are_taken_as_they_are():
    assert as_sets(possibly_optimal(IV, 1)) == {frozenset("X"), frozenset("Z")}
    assert as_sets(possibly_optimal(IV, Rules(2))) == {frozenset(), frozenset("X"), frozenset("Z")}
    assert as_sets(possibly_optimal(IV, require=["X"])) == {frozenset("X")}
    assert as_sets(possibly_optimal(IV, forbid=["X"])) == {frozenset("Z")}
    assert as_sets(possibly_optimal(XYZWST, 0)) == {frozenset()}


def test_what_is_known_before_acting_is_no_reason_to_set_its_causes():
    graph = CausalGraph(
        [("C", "X"), ("X", "Y"), ("C", "Y"), ("U", "X"), ("U", "Y")], target="Y", latent=["U"], context=["C"]
    )
    assert as_sets(possibly_optimal(graph)) == {frozenset(), frozenset("X")}


def test_wrong_arguments_are_refused():
    with pytest.raises(GraphError, match=r"Pass model\.graph"):
        possibly_optimal(dob.paper.G1)
    many = CausalGraph([(f"X{i}", "Y") for i in range(20)] + [("U", "X1"), ("U", "Y")], target="Y", latent=["U"])
    with pytest.raises(InferenceError, match="Lower the budget"):
        possibly_optimal(many, 8)


# -- as arms --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [dob.UCB, dob.KLUCB, dob.LUCB, dob.EpsilonGreedy])
def test_pruned_arms_are_the_sets_that_can_be_best(kind):
    policy = kind(prune=True)
    levers = dict.fromkeys(XYZWST.controllable, (0, 1))
    learner = policy.start(XYZWST, 5, levers=levers)
    rows = learner.engine.actions()
    sets = {frozenset(rows.row(i).named(learner.graph)) for i in range(len(rows.ids))}
    assert sets == as_sets(possibly_optimal(XYZWST))
    assert len(rows.ids) == 4 + 4 + 8
    assert type(policy)(**policy.settings()) == policy
    assert "pruned" in policy.label
    # What was dropped is played again where something cannot be set.
    assert learner.propose(available=["Z"]).keys() <= {"Z"}
    learner.update({"T": 1, "W": 0}, {"Y": 1})
    assert learner.predict({"T": 1, "W": 0}).value == 1.0


def test_nothing_is_dropped_where_the_values_do_not_allow_it():
    plain, pruned = (dob.UCB(prune=prune).start(IV, 2) for prune in (False, True))
    arms = [learner.engine.actions() for learner in (plain, pruned)]
    assert [len(rows.ids) for rows in arms] == [4, 3]  # {X, Z} is {X}; nothing else, since Z cannot be set to 0
    with pytest.raises(PolicyError, match="prune is True or False"):
        dob.UCB(prune=1)


def test_a_study_on_a_world_with_hidden_causes_that_cannot_be_removed():
    rng = np.random.default_rng(7)
    world = random_tables(rng, XYZWST, sharp=True)
    rules = Rules(5, dict.fromkeys(XYZWST.controllable, (0, 1)))
    result = dob.simulate(world, ["ucb", "ucb:prune=true", "kl-ucb", "lucb", "random"], 300, 4, rules, workers=1)
    regret = {label: result.summary_of(label).mean for label in result.labels}
    assert regret["UCB (pruned)"] < regret["UCB"]
    with pytest.raises(GraphError, match="policy='ucb'"):
        dob.simulate(world, ["blm-lr"], 10, 1, rules)
    assert dob.simulate(world, ["causal-ucb"], 10, 1, rules, workers=1).labels
