"""A live experiment on a shop's funnel, with a simulated shop behind `ask` and `tell`.

    python examples/funnel.py --rounds 300          # run it, stop it, run it again: it goes on where it was

E-mail, ad and coupon can be switched on, at most two a day. Visits, wish lists and purchases follow. The season moves
visits and wish lists alike, and nobody measures it: it is a hidden cause, and said to be one.
"""

from __future__ import annotations

import argparse

import dobandit as dob

GRAPH = dob.CausalGraph(
    edges=[
        ("email", "visit"),
        ("ad", "visit"),
        ("email", "wishlist"),
        ("season", "visit"),
        ("season", "wishlist"),
        ("visit", "purchase"),
        ("wishlist", "purchase"),
        ("coupon", "purchase"),
    ],
    target="purchase",
    latent=["season"],
    controllable=["email", "ad", "coupon"],
    bias=["email", "ad", "coupon", "season", "visit", "wishlist", "purchase"],  # what also happens by itself
)

# What the experimenter does not know.
SHOP = dob.BinaryGLM(
    GRAPH,
    weights={
        "email": 0.2,
        "ad": 0.2,
        "coupon": 0.2,
        "season": 0.4,
        "visit": 0.05,
        "wishlist": 0.05,
        "purchase": 0.02,
        ("email", "visit"): 0.3,
        ("ad", "visit"): 0.25,
        ("season", "visit"): 0.3,
        ("email", "wishlist"): 0.25,
        ("season", "wishlist"): 0.2,
        ("visit", "purchase"): 0.4,
        ("wishlist", "purchase"): 0.3,
        ("coupon", "purchase"): 0.15,
    },
)


def day_in_the_shop(do: dict[str, float], number: int) -> dict[str, int]:
    """What happens on a day with these settings; the season stays unseen."""
    drawn = SHOP.sample(do, size=1, rng=number)
    return {name: int(values[0]) for name, values in drawn.items() if name not in GRAPH.latent}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300, help="days to run now")
    parser.add_argument("--quick", action="store_const", const=40, dest="rounds", help="40 days")
    parser.add_argument("--storage", default="sqlite:///funnel.db", help="where the log is kept")
    arguments = parser.parse_args()

    experiment = dob.create_experiment(
        "funnel",
        GRAPH,
        budget=2,
        policy=dob.BLMLR(radius_scale=0.05),
        storage=arguments.storage,
        seed=7,
        if_exists="open",
    )
    for _ in range(arguments.rounds):
        trial = experiment.ask()
        experiment.tell(trial.number, day_in_the_shop(trial.do, trial.number))

    status = experiment.status()
    print(f"{status.told} days so far, a purchase on {status.mean_target:.1%} of them")
    advice = experiment.recommend()
    print(f"the model recommends {sorted(advice.do)}: {advice.value:.3f} in {advice.interval}")
    seen = experiment.best_observed()
    if seen:
        print(f"the data alone: {sorted(seen.do)} had {seen.mean:.3f} in {seen.rounds} days, {seen.interval}")
    print(f"the truth, which only a simulation knows: {dob.solve(SHOP, budget=2).set}")


if __name__ == "__main__":
    main()
