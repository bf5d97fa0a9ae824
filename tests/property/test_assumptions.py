"""The diagnosis of a model against enumeration and search, and Lemmas 2 and 6 on random models."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dobandit import BinaryGLM, CausalGraph, LinearModel, paper
from dobandit.errors import ModelError
from dobandit.estimation.assumptions import block_sizes, diagnose_assumptions, lambda_min_rounds, zeta_from_upsilon
from dobandit.model.projection import project
from helpers.plain_paths import plain_descendants
from helpers.worlds import bglms, causes, graphs, hidden_blm, joint, quietly, relaxed, slots_of, some_links, tabulated


@st.composite
def dyadic_blms(draw) -> BinaryGLM:
    """Weights in sixteenths, so that sums of exactly 1, and what is then impossible, are exact."""
    graph = draw(graphs(most=6))
    weights = {}
    for name in graph:
        left = 16
        for slot in slots_of(graph, name):
            part = draw(st.integers(0, left))
            weights[slot], left = part / 16, left - part
    return BinaryGLM(graph, weights)


# -- Assumption 3 ---------------------------------------------------------------------------------------------


def plain_zeta(worlds, parents_of) -> tuple[float, dict[str, int]]:
    """min P(X' = x | other parents of X = v) over patterns v that happen; how many do not, by node."""
    least, holes = 1.0, dict.fromkeys(parents_of, 0)
    for node, parents in parents_of.items():
        for parent in parents:
            others = tuple(p for p in parents if p != parent)
            table = tabulated(worlds, (*others, parent))
            for v in product((0, 1), repeat=len(others)):
                zero, one = table.get((*v, 0), 0.0), table.get((*v, 1), 0.0)
                if zero + one == 0.0:
                    holes[node] += 1
                else:
                    least = min(least, zero / (zero + one), one / (zero + one))
    return least, holes


@relaxed(max_examples=60)
@given(st.one_of(dyadic_blms(), bglms(most=6)))
def test_zeta_is_exact_and_appendix_b_stays_below(model):
    found = diagnose_assumptions(model)
    parents = {name: model.graph.parents(name) for name in model.graph}
    least, holes = plain_zeta(joint(model), parents)
    assert found.zeta_exact == pytest.approx(least, abs=1e-11)
    assert found.zeta == found.zeta_exact
    assert {node.name: node.impossible for node in found.nodes} == holes
    assert found.zeta_lemma is None or 0 < found.zeta_lemma <= found.zeta_exact * (1 + 1e-9)
    assert (found.zeta_lemma is None) == (found.upsilon == 0)


@relaxed(max_examples=30)
@given(st.one_of(dyadic_blms(), bglms(most=5)))
def test_upsilon_is_the_least_chance_whatever_the_parents(model):
    least = 1.0
    for name in model.graph:
        bias, weights = model.parent_weights(name)
        for pattern in product((0, 1), repeat=len(weights)):
            p = float(model.link(name)(bias + sum(w for w, on in zip(weights.values(), pattern, strict=True) if on)))
            least = min(least, p, 1 - p)
    assert diagnose_assumptions(model).upsilon == pytest.approx(max(least, 0.0), abs=1e-11)


def test_appendix_b_by_hand():
    assert zeta_from_upsilon(0.5, 7) == 0.5
    assert zeta_from_upsilon(0.2, 1) == pytest.approx(1 / 17)  # 0.04 / (0.04 + 0.64)


def hidden_fork(rng: np.random.Generator) -> BinaryGLM:
    """A and B share a hidden cause and an effect: dependent in G, independent in G'."""
    keys = ["U", "A", "B", "Y", ("U", "A"), ("U", "B"), ("A", "Y"), ("B", "Y")]
    return BinaryGLM.blm(dict(zip(keys, rng.uniform(0.05, 0.3, len(keys)), strict=True)), target="Y", latent=["U"])


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("draw", [hidden_blm, hidden_fork])
def test_with_hidden_variables_zeta_is_that_of_the_data(draw, seed):
    model = draw(np.random.default_rng(seed))
    graph = project(model).graph
    least, _ = plain_zeta(joint(model), {name: graph.parents(name) for name in graph})
    found = diagnose_assumptions(model)
    assert found.zeta_exact == pytest.approx(least, abs=1e-9)
    assert found.zeta_lemma is None
    assert (found.n, found.D) == (len(graph) + 1, max(len(slots_of(graph, name)) for name in graph))


def test_a_hidden_common_cause_can_break_assumption_3():
    """U decides A and B, so no data tell their effects on Y apart; in G' they look independent."""
    weights = {"U": 0.5, ("U", "A"): 1.0, ("U", "B"): 1.0, ("A", "Y"): 0.5, ("B", "Y"): 0.4}
    model = BinaryGLM.blm(weights, target="Y", latent=["U"])
    assert diagnose_assumptions(model).assumption3 is False
    assert diagnose_assumptions(project(model)).zeta == pytest.approx(0.5)
    assert lambda_min_rounds(model, {"Y": 1.0}, 2_000, np.random.default_rng(0)) is None


# -- Assumptions 1 and 2 --------------------------------------------------------------------------------------


@relaxed(max_examples=25)
@given(bglms(most=5), st.integers(0, 2**32))
def test_slope_bounds_hold_and_are_nearly_attained(model, seed):
    rng = np.random.default_rng(seed)
    for node in diagnose_assumptions(model).nodes:
        bias, by_parent = model.parent_weights(node.name)
        theta = np.array([bias] * model.graph.has_bias(node.name) + list(by_parent.values()))
        link, d = model.link(node.name), len(theta)
        assert node.parents == d
        low, high = link.domain
        v, step = rng.random((2_000, d)), rng.normal(size=(2_000, d))
        step *= rng.random((2_000, 1)) / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-12)
        ball = [np.einsum("ij,ij->i", v, theta + step)]
        for corner in product((0.0, 1.0), repeat=d):
            norm = math.sqrt(sum(corner))
            ball.append(np.dot(corner, theta) + norm * np.linspace(-1, 1, 201))
        inside = np.concatenate(ball)
        inside = inside[(inside >= low) & (inside <= high)]
        box = np.concatenate([inside, np.linspace(0, min(d, high), 401)])
        slopes, bends, steepest = link.slope(inside), np.abs(link.bend(inside)), np.max(link.slope(box))
        assert node.kappa <= slopes.min() * (1 + 1e-9)
        assert node.l2 >= bends.max() * (1 - 1e-9)
        assert node.l1 >= steepest * (1 - 1e-9)
        if link.given_bounds is None:
            assert node.kappa >= slopes.min() * 0.97
            assert node.l2 <= bends.max() * 1.03
            assert node.l1 <= steepest * 1.03


@relaxed(max_examples=25)
@given(bglms(most=5))
def test_model_constants_are_the_worst_of_the_nodes(model):
    found = diagnose_assumptions(model, horizon=500, delta=0.01)
    learned = [node for node in found.nodes if node.parents]
    assert found.kappa == min(node.kappa for node in learned)
    assert (found.l1, found.l2) == (max(node.l1 for node in learned), max(node.l2 for node in learned))
    assert found.assumption1 is True
    assert found.assumption2 is (found.kappa > 0)
    assert found.D_out == max(len(model.graph.children(name)) for name in model.graph)
    for node in learned if found.assumption2 else []:
        eq3 = 512 * node.parents * (node.l2 / found.kappa**2) ** 2 * (node.parents**2 + math.log(100))
        assert node.lambda_min == pytest.approx(eq3)
        assert found.thresholds()[node.name] == pytest.approx(max(eq3, 1.0))


# -- Lemma 2: GOM bounded smoothness --------------------------------------------------------------------------


def smoothness(one, two, do, nodes, l1) -> tuple[float, float]:
    """Both sides of Eq. (4), V under the second model, summed over `nodes`."""
    sigma = [math.fsum(p for world, p in joint(m, do) if world[m.target]) for m in (one, two)]
    difference = {key: weight - two.weights[key] for key, weight in one.weights.items()}
    parents = causes(difference)
    right = math.fsum(
        p * l1[name] * abs(sum(change * (world[q] if q else 1) for q, change in parents.get(name, {}).items()))
        for world, p in joint(two, do)
        for name in nodes
    )
    return abs(sigma[0] - sigma[1]), right


def upstream(graph: CausalGraph, do) -> set[str]:
    """Y and every node with a path to Y that meets no set node: the right reading of X_{S,Y}."""
    edges = [(a, b) for a, b in graph.edges if b not in do]
    return {v for v in graph if v not in do and (v == graph.target or graph.target in plain_descendants(edges, v))}


@st.composite
def pairs(draw) -> tuple[BinaryGLM, BinaryGLM, dict[str, int]]:
    """Two models that differ in their weights, all in [0, 1], and a do(S = 1)."""
    graph = draw(graphs(most=6))
    links = {name: draw(some_links) for name in graph}
    models = []
    for _ in range(2):
        weights = {}
        for name in graph:
            slots = slots_of(graph, name)
            top = 16 // max(len(slots), 1) if links[name] == "identity" else 16
            weights |= {slot: draw(st.integers(0, top)) / 16 for slot in slots}
        models.append(BinaryGLM(graph, weights, links=links))
    chosen = draw(st.lists(st.sampled_from(graph.controllable), unique=True, max_size=3))
    return (*models, dict.fromkeys(chosen, 1))


@relaxed(max_examples=75)
@given(pairs())
def test_lemma_2_on_all_nodes_upstream_of_the_target(drawn):
    one, two, do = drawn
    l1 = {node.name: node.l1 for node in diagnose_assumptions(two).nodes}
    left, right = smoothness(one, two, do, upstream(two.graph, do), l1)
    assert left <= right + 1e-12


def test_lemma_2_fails_on_the_paths_from_s_alone():
    """X_{S,Y} "in paths from S to Y" misses Z, which the constant turns on: it must count as part of S."""
    one, two = (BinaryGLM.blm({"S": 0.5, "Z": z, ("S", "Y"): 0.5, ("Z", "Y"): 0.5}, target="Y") for z in (0.25, 0.75))
    l1 = dict.fromkeys(one.graph, 1.0)
    assert smoothness(one, two, {"S": 1}, {"Y"}, l1) == pytest.approx((0.25, 0.0))
    assert smoothness(one, two, {"S": 1}, upstream(one.graph, {"S": 1}), l1) == pytest.approx((0.25, 0.5))


def test_lemma_2_needs_the_slope_over_all_weights_and_not_only_near_the_true_ones():
    names = ["A", "B", "C", "D"]
    graph = CausalGraph([(name, "Y") for name in names], target="Y", bias=names)
    link = {"name": "logistic", "shift": 5.0}
    one, two = (
        BinaryGLM(graph, {**dict.fromkeys(names, 0.5), **{(n, "Y"): w for n in names}}, links={"Y": link})
        for w in (1.0, 0.0)
    )
    l1 = {node.name: node.l1 for node in diagnose_assumptions(two).nodes}
    do = dict.fromkeys(names, 1)
    left, right = smoothness(one, two, do, {"Y"}, l1)
    assert left <= right
    near = {**l1, "Y": two.link("Y").bounds(-2.0, 2.0).l1}  # ||theta|| <= 1, v in [0, 1]^4
    assert smoothness(one, two, do, {"Y"}, near)[1] < left


# -- how long to observe --------------------------------------------------------------------------------------


def naive_rounds(model, thresholds, most, rng) -> int | None:
    """Round by round, on the same draws."""
    graph = project(model).graph
    blocks = [model.sample(None, size, rng) for size in block_sizes(most)]
    sample = {name: np.concatenate([block[name] for block in blocks]).astype(float) for name in graph}
    columns = {
        name: np.column_stack([np.ones(most)] * graph.has_bias(name) + [sample[p] for p in graph.parents(name)])
        for name in thresholds
    }
    gram = {name: np.zeros((V.shape[1],) * 2) for name, V in columns.items()}
    for t in range(most):
        for name, V in columns.items():
            gram[name] += np.outer(V[t], V[t])
        if all(np.linalg.eigvalsh(gram[name])[0] >= least for name, least in thresholds.items()):
            return t + 1
    return None


@pytest.mark.parametrize("name", [*paper.MODELS, "hidden", "continuous", "logistic"])
@pytest.mark.parametrize("least", [0.37, 1.21, 8.43])
def test_lambda_min_rounds_agrees_with_a_loop(name, least):
    weights = {"A": 0.4, "B": 0.5, ("A", "Y"): 0.3, ("B", "Y"): 0.4, "Y": 0.2}
    model = {
        **paper.MODELS,
        "hidden": hidden_blm(np.random.default_rng(3)),
        "continuous": LinearModel.of_weights(weights, target="Y"),
        "logistic": BinaryGLM(paper.G5.graph, paper.G5.weights, links="logistic"),
    }[name]
    thresholds = diagnose_assumptions(model).thresholds(least) if name != "logistic" else {"X4": least, "Y": least}
    found = lambda_min_rounds(model, thresholds, 1_000, np.random.default_rng(7))
    assert found == naive_rounds(model, thresholds, 1_000, np.random.default_rng(7))
    assert found is not None or name == "hidden"


def test_the_first_round_gives_a_bias_its_eigenvalue_of_1():
    assert lambda_min_rounds(paper.G1, {"X2": 1.0}, 10, np.random.default_rng(0)) == 1
    assert lambda_min_rounds(paper.G1, {"X2": 10.0}, 10, np.random.default_rng(0)) == 10
    assert lambda_min_rounds(paper.G1, {"X2": 11.0}, 10, np.random.default_rng(0)) is None
    assert lambda_min_rounds(paper.G1, {"X2": math.inf}, 10**15, np.random.default_rng(0)) is None
    assert lambda_min_rounds(paper.G1, {"Y": 1e-3}, 1, np.random.default_rng(0)) is None


# -- the diagnosis as a whole ---------------------------------------------------------------------------------


def test_the_paper_s_first_graph():
    found = diagnose_assumptions(paper.G1, horizon=10_000)
    assert (found.n, found.D, found.D_out, found.R) == (8, 6, 1, 1)
    assert (found.l1, found.l2, found.kappa, found.upsilon) == (1.0, 0.0, 1.0, 0.0)
    assert found.zeta == pytest.approx(0.1)  # X5 is 1 with probability 0.1, whatever the others
    assert found.initial_rounds == 3_860  # (8 * 64 - 128 + 2) / 0.1 = 3860 > 100 ln 2400
    assert found.rho == pytest.approx(3 * math.sqrt(math.log(2400)))
    assert found.thresholds() == dict.fromkeys(paper.G1.graph.nodes, 1.0)
    words = " ".join(found.in_words())
    for part in ("linear", "zeta = 0.1", "Theorem 3", "needs no Assumption 3", "Theorem 2", "3,860 rounds"):
        assert part in words
    assert found.regret_bound_blm_lr(100) < found.regret_bound_blm_lr(200)
    assert found.regret_bound_bglm_ofu(100) == 100 < found.regret_bound_bglm_ofu(10_000)


def test_a_nonlinear_model_learns_what_the_theory_asks():
    weights = {"A": 0.3, ("A", "Y"): 0.5, "Y": 0.1}
    found = diagnose_assumptions(BinaryGLM.independent_cascade(weights, target="Y"))
    words = " ".join(found.in_words())
    assert (found.assumption1, found.assumption2, found.assumption3) == (True, True, True)
    assert "Theorem 1" in words
    assert "more than the horizon of 10,000" in words
    assert found.regret_bound_blm_lr(100) is None


def test_a_decided_parent_fails_assumption_3():
    weights = {"A": 0.5, ("A", "B"): 1.0, ("A", "Y"): 0.4, ("B", "Y"): 0.4}
    found = diagnose_assumptions(BinaryGLM.blm(weights, target="Y"))
    assert (found.zeta, found.assumption3, found.initial_rounds) == (0.0, False, None)
    assert found.regret_bound_bglm_ofu(10) is None
    words = " ".join(found.in_words())
    assert "Assumption 3 fails: a parent of 'Y' is decided by the other parents." in words
    assert "no guarantee is known without Assumption 3" in words
    impossible = BinaryGLM.blm({**weights, "C": 0.5, ("C", "Y"): 0.1}, target="Y")
    assert "never happen" in " ".join(diagnose_assumptions(impossible).in_words())


@pytest.mark.parametrize(("bias", "settled"), [(0.2, True), (0.0, None)])
def test_a_large_model_rests_on_appendix_b(bias, settled):
    names = [f"X{i}" for i in range(17)]
    weights = {**dict.fromkeys(names, 0.3), **{(name, "Y"): 0.04 for name in names}, "Y": bias}
    found = diagnose_assumptions(BinaryGLM.blm(weights, target="Y"))
    assert (found.zeta_exact, found.assumption3) == (None, settled)
    words = " ".join(found.in_words())
    assert ("upsilon" in words) == bool(settled)
    assert ("open" in words) != bool(settled)
    if settled:
        assert found.zeta == pytest.approx(zeta_from_upsilon(0.12, 1))


def test_continuous_models_have_theorem_4_alone():
    found = diagnose_assumptions(LinearModel.of_weights({"A": 0.4, ("A", "Y"): 0.3}, target="Y"))
    assert (found.zeta, found.assumption3, found.upsilon) == (None, None, None)
    words = " ".join(found.in_words())
    assert "Theorem 4" in words
    assert "no guarantee is known for continuous variables" in words


def test_a_flat_link_fails_assumption_2():
    graph = CausalGraph([("A", "Y")], target="Y")
    model = BinaryGLM(graph, {"A": 0.1, "Y": 0.1, ("A", "Y"): 0.2}, links={"Y": {"name": "probit", "shift": 60.0}})
    found = diagnose_assumptions(model)
    assert (found.assumption2, found.rho, found.R, found.initial_rounds) == (False, None, None, None)
    assert "Assumption 2 fails: f' can be 0 (at 'Y')." in found.in_words()
    nearly = BinaryGLM(graph, {"A": 0.1, "Y": 0.1, ("A", "Y"): 0.2}, links={"Y": {"name": "probit", "shift": 30.0}})
    found = diagnose_assumptions(nearly)
    assert (found.assumption2, found.initial_rounds) == (True, None)


def test_hidden_variables_outside_the_theory():
    nonlinear = BinaryGLM(
        CausalGraph([("U", "A"), ("A", "Y")], target="Y", latent=["U"]),
        {("U", "A"): 0.5, ("A", "Y"): 0.5, "A": 0.1, "Y": 0.1},
        links="logistic",
    )
    confounded = quietly(
        BinaryGLM.blm, {"U": 0.5, ("U", "A"): 0.5, ("U", "Y"): 0.5, ("A", "Y"): 0.4}, target="Y", latent=["U"]
    )
    for model, reason in ((nonlinear, "linear models only"), (confounded, "'U'")):
        found = diagnose_assumptions(model)
        assert (found.assumption1, found.assumption2, found.assumption3) == (None, None, None)
        (sentence,) = found.in_words()
        assert sentence.startswith("No guarantee is known")
        assert reason in sentence
        assert found.regret_bound_blm_lr(10) is None


def test_bad_arguments_are_refused():
    for arguments in ({"horizon": 0}, {"delta": 1.0}, {"c": 0.0}):
        with pytest.raises(ModelError):
            diagnose_assumptions(paper.G1, **arguments)
