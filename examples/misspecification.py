"""What does a wrong model cost? Learners that believe in sums and in their graph, in worlds that are otherwise.

    python examples/misspecification.py [--quick] [--runs 40] [--rounds 2000] [--out misspecification]

One shop, five worlds. In the first, effects add up, and everybody is right. In the others something is not as believed:
effects add up on a logistic scale; two causes do good only together, and harm alone; an arrow of the graph is missing;
a hidden cause moves both a mediator and the target. The worlds are made by hand, to show what can happen; how often it
does is another question (benchmarks/bench_worlds.py draws worlds by seed).

Learners: CausalUCB told that effects add up ("sums"), CausalUCB that learns how they do ("learned", the default), the
paper's BLM-LR, and UCB, epsilon-greedy and Random, which do not look at the graph. Writes a table to the screen, and
the table and a figure to the folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import dobandit as dob
from dobandit.simulation.reproduce import Linear

LEVERS = ["ad", "mail", "coupon"]
EDGES = [("ad", "visit"), ("mail", "visit"), ("coupon", "buy"), ("visit", "buy")]
ROOTS = {"ad": 0.3, "mail": 0.3, "coupon": 0.2}
GRAPH = dob.CausalGraph(EDGES, target="buy", controllable=LEVERS)


def fits() -> dob.BinaryGLM:
    """Effects add up."""
    effects = {("ad", "visit"): 0.4, ("mail", "visit"): 0.3, ("coupon", "buy"): 0.15, ("visit", "buy"): 0.5}
    return dob.BinaryGLM(GRAPH, {**ROOTS, "visit": 0.1, "buy": 0.1, **effects})


def logistic() -> dob.BinaryGLM:
    """Effects add up on a logistic scale: advertising and mail are nothing alone, and much together."""
    effects = {("ad", "visit"): 2.8, ("mail", "visit"): 2.8, ("coupon", "buy"): 1.2, ("visit", "buy"): 3.0}
    roots = dict.fromkeys(LEVERS, -2.0)
    return dob.BinaryGLM(GRAPH, {**roots, "visit": -4.5, "buy": -2.5, **effects}, links="logistic")


def interaction() -> dob.TableModel:
    """A mail annoys, a coupon too, unless they come together."""
    graph = dob.CausalGraph([("ad", "visit"), ("mail", "buy"), ("coupon", "buy"), ("visit", "buy")], "buy", (), LEVERS)
    chance = {(0, 0): 0.35, (0, 1): 0.2, (1, 0): 0.2, (1, 1): 0.75}  # mail, coupon
    order = [("mail", "coupon", "visit").index(name) for name in graph.parents("buy")]
    buy = {}
    for (mail, coupon), p in chance.items():
        for visit in (0, 1):
            key = (mail, coupon, visit)
            buy[tuple(key[i] for i in order)] = p + 0.2 * visit
    return dob.TableModel(graph, {**ROOTS, "visit": [0.2, 0.7], "buy": buy})


def missing_edge() -> dob.BinaryGLM:
    """The mail also works by itself, and not only by visits."""
    graph = dob.CausalGraph([*EDGES, ("mail", "buy")], target="buy", controllable=LEVERS)
    effects = {("ad", "visit"): 0.5, ("mail", "visit"): 0.1, ("coupon", "buy"): 0.1, ("visit", "buy"): 0.3}
    return dob.BinaryGLM(graph, {**ROOTS, "visit": 0.1, "buy": 0.1, **effects, ("mail", "buy"): 0.4})


def hidden_cause() -> dob.BinaryGLM:
    """Those in the mood visit and buy: visits seem to matter much more than they do."""
    edges = [*EDGES, ("mood", "visit"), ("mood", "buy")]
    graph = dob.CausalGraph(edges, "buy", ["mood"], LEVERS, bias=[*LEVERS, "visit", "buy", "mood"])
    effects = {("ad", "visit"): 0.5, ("mail", "visit"): 0.03, ("coupon", "buy"): 0.1, ("visit", "buy"): 0.05}
    mood = {"mood": 0.5, ("mood", "visit"): 0.45, ("mood", "buy"): 0.6}
    return dob.BinaryGLM(graph, {**ROOTS, "visit": 0.02, "buy": 0.1, **effects, **mood})


# name: (world, the learners' graph, how many variables may be set)
WORLDS = {
    "The model is right": (fits(), GRAPH, 1),
    "Effects add up on a logistic scale": (logistic(), GRAPH, 2),
    "Two causes work only together": (interaction(), interaction().graph, 2),
    "An arrow is missing from the graph": (missing_edge(), GRAPH, 1),
    "A hidden cause of visits and buying": (hidden_cause(), GRAPH, 1),
}


LEARNERS = {
    "CausalUCB, links learned": dob.CausalUCB(),
    "CausalUCB, told sums": Linear(dob.CausalUCB()),
    "BLM-LR (0.1)": Linear(dob.BLMLR(radius_scale=0.1, clipped=True)),
    "UCB": dob.UCB(),
    "eps-greedy (0.1)": dob.EpsilonGreedy(0.1),
    "Random": dob.Random(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="What does a wrong model cost?")
    parser.add_argument("--runs", type=int, default=40, help="runs of each policy in each world")
    parser.add_argument("--rounds", type=int, default=2_000, help="rounds of each run")
    parser.add_argument(
        "--out", type=Path, default=Path("misspecification"), help="folder for the table and the figure"
    )
    parser.add_argument("--quick", action="store_true", help="2 runs of 40 rounds, to see that it works")
    asked = parser.parse_args()
    if asked.quick:
        asked.runs, asked.rounds = 2, 40
    results, lines = {}, []
    for name, (world, graph, budget) in WORLDS.items():
        told = {"graph": graph, "links": "auto", "effects": "any"}
        result = dob.simulate(world, LEARNERS, asked.rounds, asked.runs, budget, record=[asked.rounds], **told)
        results[name] = result
        lines.append(f"\n{name} (best: {', '.join(result.best_set)})")
        for label in result.labels:
            summary = result.summary_of(label)
            worst = summary.quantiles[0.95]
            lines.append(f"  {label:26} loses {summary.mean:6.1f} on average, {worst:6.1f} in a bad run (95%)")
    text = "\n".join(lines).strip()
    print(text)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "losses.txt").write_text(text + "\n")
    lost = {name: result.summary_of("CausalUCB, links learned").mean for name, result in results.items()}
    worst = max(lost, key=lost.__getitem__)
    others = max(value for name, value in lost.items() if name != worst)
    title = (
        f"CausalUCB loses {lost[worst]:.0f} rewards at worst ({worst.lower()}), and at most {others:.0f} in the others"
    )
    dob.losses_figure(results, title=title).save(asked.out / "losses.png")
    print(f"\nwrote losses.txt and losses.png to {asked.out}")


if __name__ == "__main__":
    main()
