"""The probability of being best is calibrated: among recommendations said to be best with probability p, a share of
about p is best. 300 small worlds drawn at random, 80 rounds each, fixed seeds."""

from __future__ import annotations

import numpy as np

import dobandit as dob
from helpers.simulations import CompiledRounds

GRAPH = dob.CausalGraph([("A", "M"), ("B", "M"), ("M", "Y"), ("B", "Y")], target="Y", controllable=["A", "B"])
RUNS, ROUNDS = 300, 80


def test_probabilities_and_losses_are_what_they_say():
    said, right, loss, lost = np.zeros((4, RUNS))
    for run in range(RUNS):
        rng = np.random.default_rng(run)
        weights = {"A": 0.5, "B": 0.5, "M": 0.3, "Y": 0.3}
        pairs = (("A", "M"), ("B", "M"), ("M", "Y"), ("B", "Y"))
        weights |= {pair: float(rng.uniform(-0.15, 0.35)) for pair in pairs}
        model = dob.BinaryGLM(GRAPH, weights)
        learner = dob.CausalUCB().start(GRAPH, budget=1, effects="any", seed=run)
        worth = {name: dob.expect(model, {name: 1} if name else {}).value for name in ("", "A", "B")}
        CompiledRounds(model, learner, [17, run]).play(ROUNDS)
        told = learner.assess()
        mine = worth[next(iter(told.do), "")]
        said[run], loss[run] = told.probability_best, told.expected_loss
        right[run], lost[run] = mine >= max(worth.values()) - 1e-9, max(worth.values()) - mine
    for low, high in ((0.0, 0.6), (0.6, 0.85), (0.85, 1.01)):
        part = (said >= low) & (said < high)
        assert part.sum() >= 20
        error = np.sqrt(np.mean(said[part] * (1.0 - said[part])) / part.sum())
        assert abs(right[part].mean() - said[part].mean()) <= 3.0 * error + 0.05, (low, part.sum())
    assert abs(loss.mean() - lost.mean()) <= 3.0 * lost.std() / np.sqrt(RUNS) + 0.005
