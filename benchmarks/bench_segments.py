"""One experiment for all segments, against pooling them and against one experiment per segment.

Two funnels in which the best action depends on the segment. In the first, segments share how strongly things act (a
logistic funnel: whoever visits anyway is better given a coupon); in the second nothing is shared (push works on phones
only, e-mail elsewhere only). Loss per round is against the best action for each round's own segment.
Usage: bench_segments.py [rounds] [runs]
"""

import sys
from itertools import product

import numpy as np

import dobandit as dob
from dobandit.model.conditioning import given

ROUNDS, RUNS = (int(a) for a in (sys.argv[1:] + ["1000", "100"][len(sys.argv) - 1 :])[:2])
EDGES = [(a, "visit") for a in ("mobile", "email", "push")] + [(a, "buy") for a in ("mobile", "visit", "coupon")]


def graph_of(context):
    return dob.CausalGraph(
        EDGES, "buy", controllable=["email", "push", "coupon"], context=["mobile"] if context else []
    )


def shared(context):
    """Phones visit anyway, so a coupon is better there; elsewhere an e-mail brings people in."""
    weights = {"mobile": 0.0, "email": -2.0, "push": -2.0, "coupon": -2.0, "visit": -2.0, "buy": -2.5}
    weights |= {("mobile", "visit"): 3.0, ("email", "visit"): 2.2, ("push", "visit"): 0.8}
    weights |= {("mobile", "buy"): -0.3, ("visit", "buy"): 2.2, ("coupon", "buy"): 0.9}
    return dob.BinaryGLM(graph_of(context), weights, links="logistic")


def apart(context):
    """On phones push works and e-mail does nothing; elsewhere it is the other way round."""
    graph = graph_of(context)

    def table(names, chance):
        order = [names.index(name) for name in graph.parents("visit" if "email" in names else "buy")]
        return {tuple(key[i] for i in order): chance(*key) for key in product((0, 1), repeat=3)}

    visit = table(["mobile", "email", "push"], lambda m, e, p: 0.15 + 0.4 * (p if m else e))
    buy = table(["mobile", "visit", "coupon"], lambda m, v, c: 0.05 + 0.05 * m + 0.4 * v + 0.08 * c)
    return dob.TableModel(graph, {"mobile": 0.5, "email": 0.1, "push": 0.1, "coupon": 0.1, "visit": visit, "buy": buy})


def regret_of(world, rounds, runs=RUNS):
    result = dob.simulate(world, [dob.CausalUCB()], rounds, runs, budget=1, seed=3, links="auto", effects="any")
    return result.regret(result.labels[0])[:, -1], result.best


def main():
    print(
        f"CausalUCB, links learned, {ROUNDS:,} rounds, {RUNS} runs: loss per round, and what 95% of the runs stay below"
    )
    for title, funnel in (("segments that share effects", shared), ("segments that share nothing", apart)):
        one, best = regret_of(funnel(True), ROUNDS)
        pooled, pooled_best = regret_of(funnel(False), ROUNDS)
        pooled = pooled + ROUNDS * (best - pooled_best)
        each = sum(regret_of(given(funnel(True), {"mobile": m}), ROUNDS // 2)[0] for m in (0, 1))
        print(f"\n{title}; the best action for each: E[buy] = {best:.3f}")
        for name, regret in (("one contextual experiment", one), ("one per segment", each), ("pooled", pooled)):
            print(f"  {name:28}{regret.mean() / ROUNDS:>9.4f}{np.quantile(regret, 0.95) / ROUNDS:>9.4f}")


if __name__ == "__main__":
    main()
