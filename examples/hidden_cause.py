"""A hidden cause that two variables share: what ignoring it costs, and what declaring it gains.

    python examples/hidden_cause.py

The season brings visits and purchases alike, and nobody measures it. E-mail brings visits that buy nothing; a coupon
sells. Whoever takes the season for harmless sees visits and purchases go together, and recommends the e-mail.
"""

from __future__ import annotations

import argparse
from itertools import product

import dobandit as dob

EDGES = [("email", "visit"), ("visit", "purchase"), ("coupon", "purchase")]
SEASON = [("season", "visit"), ("season", "purchase")]
SETTABLE = ["email", "coupon"]
SETS = ({"email": 1}, {"coupon": 1})

GRAPH = dob.CausalGraph([*EDGES, *SEASON], target="purchase", latent=["season"], controllable=SETTABLE)
CARELESS = dob.CausalGraph(EDGES, target="purchase", controllable=SETTABLE)


def table(effect: str, base: float, weights: dict[str, float]) -> dict[tuple[int, ...], float]:
    """P(effect = 1) by pattern of its causes: `base`, and more for each cause that is there."""
    causes = GRAPH.parents(effect)
    patterns = product((0, 1), repeat=len(causes))
    return {k: base + sum(weights.get(c, 0.0) * x for c, x in zip(causes, k, strict=True)) for k in patterns}


# What the shop does not know.
SHOP = dob.TableModel(
    GRAPH,
    {
        "season": 0.5,
        "email": 0.2,
        "coupon": 0.2,
        "visit": table("visit", 0.05, {"email": 0.4, "season": 0.5}),
        "purchase": table("purchase", 0.05, {"coupon": 0.1, "season": 0.8}),
    },
)


def learned(
    policy: dob.BLMLR | dob.CausalUCB | dob.UCB, graph: dob.CausalGraph, rounds: int, **words: str
) -> dob.Learner:
    """A learner that has seen `rounds` rounds of each of: nothing set, e-mail, coupon."""
    learner = policy.start(graph, budget=1, **words)
    for seed, do in enumerate(({}, *SETS)):
        seen = SHOP.sample(do, rounds, rng=seed)
        names = [name for name in seen if name not in do]
        learner.update_many([(do, {name: int(seen[name][i]) for name in names}) for i in range(rounds)])
    return learner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000, help="rounds of each action; default: 2000")
    parser.add_argument("--quick", action="store_true", help="500 rounds of each")
    options = parser.parse_args()
    rounds = 500 if options.quick else options.rounds

    try:
        dob.BLMLR().start(GRAPH, budget=1)
    except dob.errors.GraphError as error:
        print(f"refused by the paper's BLM-LR: {error}\n")

    learners = {
        "the season ignored": learned(dob.BLMLR(clipped=True), CARELESS, rounds),
        "ignored, by CausalUCB": learned(dob.CausalUCB(), CARELESS, rounds),  # which adds causes that rounds prove
        "declared": learned(dob.CausalUCB(), GRAPH, rounds),
        "hide='auto'": learned(dob.CausalUCB(), GRAPH, rounds, hide="auto"),
        "UCB, which keeps no model": learned(dob.UCB(), GRAPH, rounds),
    }
    rows = {"the truth": [dob.expect(SHOP, do).value for do in SETS]}
    rows |= {label: [learner.expected(do) for do in SETS] for label, learner in learners.items()}
    print(f"{'E[purchase] when':<28}{'email':>8}{'coupon':>8}  picks")
    for label, values in rows.items():
        best = "email" if values[0] > values[1] else "coupon"
        print(f"{label:<28}{values[0]:>8.3f}{values[1]:>8.3f}  {best}")
    print(f"\nsets of one that can be best, set to 0 or 1: {dob.possibly_optimal(GRAPH, budget=1)}")


if __name__ == "__main__":
    main()
