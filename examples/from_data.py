"""From a table to the first live round: what do last year's customers say, and what should be tried next?

    python examples/from_data.py            # writes visits.csv, funnel.json and ranking.png into the current folder

The table is drawn by a seed from a shop that the analysis does not know. In most rows nobody intervened; in some an
e-mail was sent or a coupon handed out, which the column `intervention_targets` says. Some visits were not recorded.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import dobandit as dob

GRAPH = dob.CausalGraph(
    edges=[
        ("mobile", "visit"),
        ("email", "visit"),
        ("coupon", "visit"),
        ("visit", "buy"),
        ("coupon", "buy"),
        ("price", "buy"),
        ("mobile", "buy"),
    ],
    target="buy",
    controllable=["email", "coupon", "price"],
)

# What the analyst does not know.
SHOP = dob.BinaryGLM(
    GRAPH,
    weights={
        "mobile": 0.5,
        "email": 0.3,
        "coupon": 0.3,
        "price": 0.5,
        "visit": -1.5,
        "buy": -2.0,
        ("mobile", "visit"): 0.5,
        ("email", "visit"): 2.0,
        ("coupon", "visit"): 0.5,
        ("visit", "buy"): 2.0,
        ("coupon", "buy"): 0.8,
        ("price", "buy"): -1.5,
        ("mobile", "buy"): -0.3,
    },
    links={"visit": "logistic", "buy": "logistic"},
)


def last_year(rows: int, seed: int = 0) -> list[dict[str, object]]:
    """Customers: two thirds left alone, the others sent an e-mail, or handed a coupon."""
    rng = np.random.default_rng(seed)
    found: list[dict[str, object]] = []
    for do, share in (({}, 4), ({"email": 1}, 1), ({"coupon": 1}, 1)):
        drawn = SHOP.sample(do, size=rows * share // 6, rng=rng)
        for i in range(rows * share // 6):
            row: dict[str, object] = {name: int(drawn[name][i]) for name in GRAPH.nodes}
            if rng.random() < 0.03:
                row["visit"] = ""  # not recorded
            found.append({**row, "intervention_targets": " ".join(do)})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="customers of last year")
    parser.add_argument("--quick", action="store_const", const=3_000, dest="rows", help="3,000 of them")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go")
    arguments = parser.parse_args()

    rows, table = last_year(arguments.rows), arguments.folder / "visits.csv"
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    dob.write_graph(GRAPH, arguments.folder / "funnel.json")

    rules = {"budget": 2, "levers": {"price": (0, 1)}}
    ranking = dob.rank(GRAPH, table, **rules)
    print(ranking.sentence)
    for name, node in ranking.fit.nodes.items():
        if node.margin is not None:
            margin = f"{node.margin:+.1f} nats (standard error {node.margin_error:.1f}) over {node.runner_up}"
            print(f"{name}: {node.link}, {margin}; {node.verdict}")
    ranking.chart().save(arguments.folder / "ranking.png")

    experiment = dob.create_experiment("spring", GRAPH, storage="memory", seed=1, history=table, **rules)
    same = all(experiment.evaluate(one.do).value == one.value for one in ranking.actions)
    print(f"an experiment that begins with this table knows the same: {same}")
    print(f"its first trial sets {experiment.ask().do}")
    print(f"the truth, which only a simulation knows: {dob.solve(SHOP, **rules).do}")


if __name__ == "__main__":
    main()
