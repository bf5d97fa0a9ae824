"""What a missing arrow costs, and what arrows without an effect cost: lost rewards of CausalUCB on a small funnel."""

import dobandit as dob

LEVERS = ["ad", "mail", "coupon"]
FUNNEL = [("ad", "visit"), ("mail", "visit"), ("coupon", "visit"), ("visit", "buy")]
WEIGHTS = dict.fromkeys([*LEVERS, "visit", "buy"], 0.1) | dict(zip(FUNNEL, (0.5, 0.2, 0.1, 0.4), strict=True))
DIRECT = ("coupon", "buy")
ROUNDS, RUNS = 1200, 200


def graph_with(*arrows):
    return dob.CausalGraph([*FUNNEL, *arrows], target="buy", controllable=LEVERS)


def main():
    all_direct = graph_with(*((lever, "buy") for lever in LEVERS))
    with_effect = dob.BinaryGLM(graph_with(DIRECT), WEIGHTS | {DIRECT: 0.35})
    without = dob.BinaryGLM(graph_with(), WEIGHTS)
    cases = [
        ("coupon acts on buy", "that arrow left out", with_effect, graph_with()),
        ("coupon acts on buy", "right", with_effect, graph_with(DIRECT)),
        ("coupon acts on buy", "an arrow to buy from every lever", with_effect, all_direct),
        ("no lever acts on buy", "right", without, graph_with()),
        ("no lever acts on buy", "an arrow to buy from every lever", without, all_direct),
    ]
    print(f"lost rewards of CausalUCB in {ROUNDS:,} rounds, mean of {RUNS} runs with its 95% interval")
    for world, drawn, model, graph in cases:
        policy = dob.CausalUCB()
        result = dob.simulate(model, policy, ROUNDS, RUNS, seed=0, budget=1, graph=graph, links="auto", effects="any")
        summary = result.summary_of(policy.label)
        print(f"{world:22} {drawn:34} {summary.mean:6.1f} ({summary.low:.1f} to {summary.high:.1f})")


if __name__ == "__main__":
    main()
