"""How regret grows with the number of variables n, the budget K, the parents of a node D and the rounds T.

Each row averages over several random models, and on each model all policies meet the same random numbers. BLM-LR and
BLM-OFU learn what causes what, so what they learn from one set serves all the others; UCB learns every set by itself,
so it pays for each of them (the column "sets").

    python examples/scaling_study.py --quick
    python examples/scaling_study.py --shape scale-free --graphs 20 --vary nodes --vary budget
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import dobandit as dob

VALUES = {
    "nodes": (5, 7, 9, 13, 17),
    "budget": (1, 2, 3, 4, 5),
    "parents": (1, 2, 3, 4, 6),
    "rounds": (500, 1000, 2000, 4000, 8000),
}
SYMBOLS = {"nodes": "n", "budget": "K", "parents": "D", "rounds": "T"}
BASE = {"nodes": 9, "budget": 2, "parents": 3, "rounds": 2000}


def policies(rounds: int) -> dict[str, object]:
    """As in the paper's simulations: a tenth of the radius, and a hundredth of the rounds to observe first."""
    return {
        "BLM-LR": dob.BLMLR(radius_scale=0.1),
        "BLM-OFU": dob.BGLMOFU(radius_scale=0.1, initial=rounds // 100),
        "UCB": dob.UCB(),
    }


def mean_regrets(shape: str, graphs: int, replications: int, seed: int, **size: int) -> dict[str, float]:
    """Regret after the last round by policy, averaged over random models and replications."""
    found: dict[str, list[float]] = {}
    for graph in range(graphs):
        model = dob.random_model(shape, size["nodes"], parents=size["parents"], seed=seed + graph)
        result = dob.simulate(
            model,
            policies(size["rounds"]),
            rounds=size["rounds"],
            replications=replications,
            budget=size["budget"],
            seed=seed + graph,
            record=[size["rounds"]],
        )
        for label in result.labels:
            found.setdefault(label, []).append(result.summary_of(label).mean)
    return {label: float(np.mean(regrets)) for label, regrets in found.items()}


def exponent(values: list[int], regrets: list[float]) -> float:
    """b of the closest a * value^b."""
    if min(regrets) <= 0.0:
        return math.nan
    return float(np.polyfit(np.log(values), np.log(regrets), 1)[0])


def print_study(vary: str, values: tuple[int, ...], base: dict[str, int], options: dict[str, object]) -> None:
    fixed = ", ".join(f"{SYMBOLS[name]} = {base[name]}" for name in base if name != vary)
    print(f"\nRegret against {vary} ({SYMBOLS[vary]}); {fixed}")
    columns: dict[str, list[float]] = {}
    for value in values:
        size = {**base, vary: value}
        start = time.perf_counter()
        regrets = mean_regrets(**options, **size)  # type: ignore[arg-type]
        if not columns:
            print(f"{SYMBOLS[vary]:>8}{'sets':>10}" + "".join(f"{label:>12}" for label in regrets) + f"{'seconds':>10}")
        for label, regret in regrets.items():
            columns.setdefault(label, []).append(regret)
        sets = math.comb(size["nodes"] - 1, size["budget"])
        row = "".join(f"{regret:>12.1f}" for regret in regrets.values())
        print(f"{value:>8}{sets:>10,}{row}{time.perf_counter() - start:>10.1f}")
    powers = "".join(f"{f'{SYMBOLS[vary]}^{exponent(list(values), column):.2f}':>12}" for column in columns.values())
    print(f"{'grows as':>18}{powers}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer models, fewer and shorter runs")
    parser.add_argument("--shape", default="layered", help="layered, parallel, tree, out-tree, erdos-renyi, scale-free")
    parser.add_argument("--graphs", type=int, default=20, help="random models a row (default: 20)")
    parser.add_argument("--replications", type=int, default=10, help="runs a model (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="of models and runs (default: 0)")
    parser.add_argument("--vary", action="append", choices=VALUES, help="only this one; may be repeated")
    given = parser.parse_args()
    base, graphs, replications = dict(BASE), given.graphs, given.replications
    if given.quick:
        base["rounds"], graphs, replications = 1000, min(graphs, 4), min(replications, 8)
    options = {"shape": given.shape, "graphs": graphs, "replications": replications, "seed": given.seed}
    print(f"{given.shape} models: {graphs} a row, {replications} runs on each, common random numbers")
    for vary in given.vary or VALUES:
        try:
            print_study(vary, VALUES[vary][:3] if given.quick else VALUES[vary], base, options)
        except dob.errors.DobanditError as error:
            parser.error(str(error))


if __name__ == "__main__":
    main()
