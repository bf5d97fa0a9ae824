"""The paper's five models, typed from the paper."""

from itertools import combinations

import pytest

from dobandit import expect, paper

# -- the paper's models (Appendix H.2, typed from the paper) --------------------------------------------------

TYPED = {
    "G1": (
        {"X2": 0.3, "X3": 0.4, "X4": 0.2, "X5": 0.1, "X6": 0.6, "X7": 0.5},
        {"X2": 0.1, "X3": 0.3, "X4": 0.2, "X5": 0.2, "X6": 0.1, "X7": 0.1},
    ),
    "G2": (
        {"X2": 0.2, "X3": 0.2, "X4": 0.6, "X5": 0.6, "X6": 0.6, "X7": 0.6, "X8": 0.6, "X9": 0.6},
        {"X2": 0.2, "X3": 0.2, "X4": 0.1, "X5": 0.1, "X6": 0.1, "X7": 0.1, "X8": 0.1, "X9": 0.1},
    ),
    "G3": (
        {"X2": 0.2, "X3": 0.2, "X4": 0.6, "X5": 0.6, "X6": 0.6, "X7": 0.6},
        {"X2": 0.2, "X3": 0.2, "X4": 0.1, "X5": 0.1, "X6": 0.1, "X7": 0.1},
    ),
    "G4": ({"X2": 0.2, "X3": 0.2, "X4": 0.6, "X5": 0.6}, {"X2": 0.2, "X3": 0.2, "X4": 0.1, "X5": 0.1}),
}
G5 = {
    "X2": 0.1,
    "X3": 0.1,
    "X4": 0.1,
    "X5": 0.1,
    "X6": 0.1,
    ("X2", "X4"): 0.1,
    ("X2", "X5"): 0.7,
    ("X2", "X6"): 0.7,
    ("X3", "X4"): 0.2,
    ("X3", "X5"): 0.1,
    ("X3", "X6"): 0.1,
    ("X4", "Y"): 0.6,
    ("X5", "Y"): 0.1,
    ("X6", "Y"): 0.1,
}
ARMS = {"G1": 20, "G2": 28, "G3": 15, "G4": 6, "G5": 10}  # the text has G2 and G4 the wrong way round
BEST = {"G1": {"X3", "X4", "X5"}, "G2": {"X2", "X3"}, "G3": {"X2", "X3"}, "G4": {"X2", "X3"}, "G5": {"X2", "X4"}}
# G1: 0.3 + 0.2 + 0.2 + 0.1 (0.3 + 0.6 + 0.5).  G2..G4: 0.4 + 0.06 a further node.
# G5: 0.6 + 0.1 (x5 + x6), x5 = x6 = 0.1 + 0.7 + 0.1 * 0.1.
VALUE = {"G1": 0.84, "G2": 0.76, "G3": 0.64, "G4": 0.52, "G5": 0.762}


@pytest.mark.parametrize("name", TYPED)
def test_parallel_models_have_the_printed_weights(name):
    biases, weights = TYPED[name]
    model = paper.MODELS[name]
    assert model.weights == biases | {(x, "Y"): w for x, w in weights.items()}
    assert len(model.graph) + 1 == {"G1": 8, "G2": 10, "G3": 8, "G4": 6}[name]


def test_the_two_layer_model_has_the_printed_weights():
    assert paper.G5.weights == G5
    assert len(paper.G5.graph) + 1 == 7


@pytest.mark.parametrize("name", BEST)
def test_arms_best_set_and_its_value(name):
    model, budget = paper.MODELS[name], paper.BUDGETS[name]
    arms = list(combinations(model.graph.controllable, budget))
    assert len(arms) == ARMS[name]
    values = {arm: expect(model, arm).value for arm in arms}
    best = max(values, key=values.get)
    assert set(best) == BEST[name]
    assert sum(value > values[best] - 1e-9 for value in values.values()) == 1, "a tie"
    assert values[best] == pytest.approx(VALUE[name], abs=1e-12)


@pytest.mark.parametrize("name", TYPED)
def test_values_of_parallel_models_by_hand(name):
    biases, weights = TYPED[name]
    for arm in combinations(biases, paper.BUDGETS[name]):
        by_hand = sum(w * (1.0 if x in arm else biases[x]) for x, w in weights.items())
        assert expect(paper.MODELS[name], arm).value == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("arm", list(combinations(["X2", "X3", "X4", "X5", "X6"], 2)), ids="-".join)
def test_values_of_the_two_layer_model_by_hand(arm):
    x2, x3 = (1.0 if x in arm else 0.1 for x in ("X2", "X3"))
    x4 = 1.0 if "X4" in arm else 0.1 + 0.1 * x2 + 0.2 * x3
    x5 = 1.0 if "X5" in arm else 0.1 + 0.7 * x2 + 0.1 * x3
    x6 = 1.0 if "X6" in arm else 0.1 + 0.7 * x2 + 0.1 * x3
    assert expect(paper.G5, arm).value == pytest.approx(0.6 * x4 + 0.1 * x5 + 0.1 * x6, abs=1e-12)


def test_protocol_of_the_simulations():
    assert paper.BUDGETS == {"G1": 3, "G2": 2, "G3": 2, "G4": 2, "G5": 2}
    assert paper.ROUNDS == {"G1": 10_000, "G2": 2_000, "G3": 2_000, "G4": 2_000, "G5": 10_000}
    for model in paper.MODELS.values():
        assert model.target == "Y"
        assert not model.graph.has_bias("Y")
        assert not model.noise.any()
