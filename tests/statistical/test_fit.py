"""Links from held-out rows, weights of maximum likelihood, and the test of a link, against independent truths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import dobandit as dob
from dobandit.diagnosis.cells import Cells
from dobandit.inspect.link_choice import CURVES, choose_link, fit_weights
from dobandit.inspect.node_fits import fit_nodes
from dobandit.policy.engine import Rounds
from dobandit.policy.problem import problem_of

PATTERNS = np.array([[1.0, a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
TRUTHS = {
    "identity": PATTERNS @ [0.1, 0.2, 0.3, 0.25],
    "logistic": 1.0 / (1.0 + np.exp(-(PATTERNS @ [-2.0, 3.0, -2.5, 1.5]))),
    "exponential": 1.0 - np.exp(-(PATTERNS @ [0.05, 0.4, 1.0, 2.5])),
    "table": np.array([0.1, 0.9, 0.9, 0.1, 0.8, 0.2, 0.2, 0.7]),  # a parity, nearly
}


def drawn(p, rows, seed):
    rng = np.random.default_rng(seed)
    n = rng.multinomial(rows, np.full(len(p), 1 / len(p)))
    return Cells(PATTERNS, n.astype(float), rng.binomial(n, p).astype(float))


def per_row(q, p):
    """The expected log-likelihood of a row under q, where p is the truth."""
    return float(np.mean(p * np.log(q) + (1 - p) * np.log1p(-q)))


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("rows", [300, 5_000])
def test_the_chosen_link_is_within_noise_of_the_best(truth, rows):
    """By the expected log-likelihood under the truth itself of what each link makes of all rows."""
    p = TRUTHS[truth]
    for seed in range(10):
        cells = drawn(p, rows, [seed, rows])
        found = choose_link(cells)
        floor = 1.0 / (rows + 2)
        fits = {
            name: np.clip(link.probability(PATTERNS @ fit_weights(cells, link)), floor, 1 - floor)
            for name, link in CURVES.items()
        }
        fits["table"] = (cells.total + 0.5) / (cells.n + 1.0)
        scores = {name: per_row(q, p) for name, q in fits.items()}
        best = max(scores, key=scores.__getitem__)
        # The difference of two links over `rows` held-out rows has this standard error; four of them allow for the
        # best of several, over all seeds.
        up = np.log(fits[best] / fits[found.link])
        down = np.log((1 - fits[best]) / (1 - fits[found.link]))
        lost = scores[best] - scores[found.link]
        spread = float(np.mean(p * up**2 + (1 - p) * down**2)) - lost**2
        assert rows * lost <= 4.0 * np.sqrt(rows * max(spread, 0.0)) + 1.0
        assert found.margin == pytest.approx(rows * (found.scores[found.link] - found.scores[found.runner_up]))


@pytest.mark.parametrize("truth", TRUTHS)
def test_with_many_rows_the_right_link_is_found(truth):
    found = choose_link(drawn(TRUTHS[truth], 200_000, 1))
    assert found.link == truth
    assert found.margin > -2.0 * found.error


@pytest.mark.parametrize("name", CURVES)
def test_weights_are_of_maximum_likelihood(name):
    link, ridge = CURVES[name], 0.1 if name == "logistic" else 0.0
    cells = drawn(TRUTHS[name], 4_000, 3)

    def loss(theta):
        q = np.clip(link.probability(PATTERNS @ theta), 1e-12, 1 - 1e-12)
        likelihood = cells.total @ np.log(q) + (cells.n - cells.total) @ np.log1p(-q)
        return -float(likelihood) + 0.5 * ridge * float(theta @ theta)

    theta = fit_weights(cells, link)
    bounds = [(0.0, None)] * 4 if name == "exponential" else None
    best = minimize(loss, theta + 0.01, method="L-BFGS-B" if bounds else "BFGS", bounds=bounds)
    assert loss(theta) <= best.fun + 1e-4
    assert theta == pytest.approx(best.x, abs=2e-3)


def test_too_few_rows_choose_nothing():
    assert choose_link(drawn(TRUTHS["identity"], 12, 0)) is None


GRAPH = dob.CausalGraph([("a", "y"), ("b", "y"), ("c", "y")], target="y")


def rounds_of(cells):
    """The same rows as rounds: ids are in the graph's order."""
    rows, counts = [], []
    for pattern, n, ones in zip(PATTERNS, cells.n, cells.total, strict=True):
        for y, count in ((1.0, ones), (0.0, n - ones)):
            rows.append([*pattern, y])
            counts.append(int(count))
    assert GRAPH.nodes == ("a", "b", "c", "y")
    return Rounds(np.array(rows), np.zeros((len(rows), 5), dtype=bool), np.array(counts))


def test_a_wrong_promise_is_contradicted_and_a_right_one_is_not():
    """At 1% a right link is contradicted in 50 seeds more than four times with a chance below 1e-3 (binomial)."""
    verdicts = {}
    for truth, promised in (("table", "logistic"), ("logistic", "logistic"), ("identity", "identity")):
        problem = problem_of(GRAPH, 1, links=promised, effects="any")
        verdicts[truth] = [
            fit_nodes(problem, rounds_of(drawn(TRUTHS[truth], 2_000, [seed, 7])), {"y": ""})["y"].verdict
            for seed in range(50 if truth == promised else 5)
        ]
    assert verdicts["table"] == ["contradicts"] * 5
    assert sum(verdict == "contradicts" for verdict in verdicts["logistic"]) <= 4
    assert sum(verdict == "contradicts" for verdict in verdicts["identity"]) <= 4


def test_intervals_of_weights_hold_the_truth_nearly_always():
    """95% each: of 50 seeds at least 40 hold it, but with a chance below 1e-3 (binomial)."""
    problem = problem_of(GRAPH, 1, links="logistic", effects="any")
    held = 0
    for seed in range(50):
        node = fit_nodes(problem, rounds_of(drawn(TRUTHS["logistic"], 2_000, [seed, 11])), {"y": ""})["y"]
        low, high = node.parents["a"].interval
        held += low <= 3.0 <= high
    assert held >= 40
