"""What the tests of reports share: a made-up result, and nasty names."""

import numpy as np

from dobandit import paper
from dobandit.policy.yardsticks import Random
from dobandit.report.simulation_result import SimulationResult
from dobandit.simulation.study import study_of

NASTY = ["<script>alert(1)</script>", "a|b*c_d`e`", "[x](http://evil.example)", "</svg>&\"'", "red\x1b[31m\nline"]


def result_of(finals, rounds=1000, replications=40, model=paper.G4, seed=0):
    """A result made up from final regrets: gamma-distributed runs that grow with the square root of the round."""
    policies = {label: Random() for label in finals}
    study = study_of(model, policies, rounds, replications, 2)
    rng = np.random.default_rng(seed)
    ends = np.array([final * rng.gamma(8.0, 1 / 8.0, replications) for final in finals.values()])
    shape = np.sqrt(np.array(study.grid) / rounds)
    regret = ends[:, :, None] * shape
    return SimulationResult(
        study,
        0.7,
        {"X2": 1, "X3": 1},
        regret,
        0.7 * np.array(study.grid) - regret,
        rng.integers(0, rounds + 1, (len(finals), replications)),
        np.zeros((len(finals), replications, 0), dtype=np.int32),
        rng.uniform(0.001, 0.002, (len(finals), replications)),
        1.5,
    )
