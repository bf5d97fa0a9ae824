"""The five models of the paper's simulations (Appendix H.2). Names follow the paper; X1 is the implicit constant.

G1..G4 are parallel graphs: every X points to Y. G5 has two layers. Y has no bias in any of them.
"""

from __future__ import annotations

from dobandit.model.bglm import BinaryGLM


def _parallel(biases: list[float], weights: list[float]) -> BinaryGLM:
    """X2, X3, ... with the given biases, each pointing to Y with the given weight."""
    names = [f"X{i}" for i in range(2, 2 + len(biases))]
    theta: dict[str | tuple[str, str], float] = {}
    for name, bias, weight in zip(names, biases, weights, strict=True):
        theta[name] = bias
        theta[name, "Y"] = weight
    return BinaryGLM.blm(theta, target="Y")


G1 = _parallel([0.3, 0.4, 0.2, 0.1, 0.6, 0.5], [0.1, 0.3, 0.2, 0.2, 0.1, 0.1])
G2 = _parallel([0.2, 0.2] + [0.6] * 6, [0.2, 0.2] + [0.1] * 6)
G3 = _parallel([0.2, 0.2] + [0.6] * 4, [0.2, 0.2] + [0.1] * 4)
G4 = _parallel([0.2, 0.2] + [0.6] * 2, [0.2, 0.2] + [0.1] * 2)
G5 = BinaryGLM.blm(
    {
        **dict.fromkeys(["X2", "X3", "X4", "X5", "X6"], 0.1),
        ("X2", "X4"): 0.1,
        ("X2", "X5"): 0.7,
        ("X2", "X6"): 0.7,
        ("X3", "X4"): 0.2,
        ("X3", "X5"): 0.1,
        ("X3", "X6"): 0.1,
        ("X4", "Y"): 0.6,
        ("X5", "Y"): 0.1,
        ("X6", "Y"): 0.1,
    },
    target="Y",
)

MODELS = {"G1": G1, "G2": G2, "G3": G3, "G4": G4, "G5": G5}
BUDGETS = {"G1": 3, "G2": 2, "G3": 2, "G4": 2, "G5": 2}
ROUNDS = {"G1": 10_000, "G2": 2_000, "G3": 2_000, "G4": 2_000, "G5": 10_000}
