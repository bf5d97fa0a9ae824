"""Explanations of trials: what was predicted, the runner-up, paths and shares, against plain definitions."""

import json
import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

import dobandit as dob
from dobandit.errors import ExperimentError
from dobandit.experiment.replayed_learner import ReplayedLearner
from dobandit.oracle.actions import Action
from helpers.experiments import ARMS, CASES, again, case, drawn, make, refused, whole_log
from helpers.indices import index_of, listed
from helpers.storages import id_of
from helpers.worlds import THOROUGH

pytestmark = pytest.mark.usefixtures("one_of_many")


def kl_index(mean, count, level):
    """The largest q with count KL(mean, q) <= level, by a root finder."""
    if mean >= 1.0:
        return 1.0

    def over(q):
        return count * (rel_entr(mean, q) + rel_entr(1.0 - mean, 1.0 - q)) - level

    return brentq(over, mean, 1.0 - 1e-15, xtol=1e-13) if over(1.0 - 1e-15) > 0.0 else 1.0


def check_arms(shown, engine, under_way, usable, scale, kl=False):
    """The two best of the arms that could be played, by the formula."""
    index, graph = {}, engine.problem.graph
    for row, plays, total in zip(listed(engine.actions()), engine.state.plays[0], engine.state.total[0], strict=True):
        if not usable.issuperset(row.ids):
            continue
        mean, more = total / plays if plays else 0.5, under_way.count(row)
        count = plays + more
        time = engine.rounds + len(under_way) + 1
        untried = math.inf if scale else 1.0
        index[row] = (total + more * mean) / count + scale * math.sqrt(math.log(time) / count) if count else untried
        if kl and count:
            index[row] = kl_index((total + more * mean) / count, count, math.log(time))
    if len(index) == 1:
        assert shown.runner_up is None
        return
    chosen, second = (action_of(graph, do) for do in (shown.do, shown.runner_up.do))
    best = max(index.values())
    assert chosen != second
    assert index[chosen] == pytest.approx(best, abs=1e-9) == pytest.approx(shown.optimistic, abs=1e-9)
    assert index[second] == pytest.approx(max(v for arm, v in index.items() if arm != chosen), abs=1e-9)
    assert shown.margin >= -1e-9


def action_of(graph, do):
    ids = sorted(map(graph.index, do))
    return Action(tuple(ids), tuple(float(do[graph.nodes[i - 1]]) for i in ids))


def is_pending(other, row):
    return other.position is None or other.position >= row.asked_after


def plain_actions(name, available):
    """Every action that a case compares, by its rules: of all sizes where effects may do harm."""
    model, budget, policy, settings = CASES[name]
    graph = model.graph
    names = graph.controllable if available is None else available
    any_size = settings.get("effects", policy.effects) == "any"
    sets = [set(some) for size in range(len(names) + 1) for some in combinations(names, size)]
    sets = [some for some in sets if budget is None or len(some) <= budget]
    if "total_cost" in settings:
        sets = [some for some in sets if sum(settings["costs"].get(x, 1.0) for x in some) <= settings["total_cost"]]
    sets = [some for some in sets if some >= set(settings.get("require", ()))]
    sets = [some for some in sets if all(len(some & set(group)) <= 1 for group in settings.get("exclusive", ()))]
    if not any_size:
        sets = [some for some in sets if not any(some < other for other in sets)]
    levers = settings.get("levers", {})
    return [
        action_of(graph, dict(zip(some, values, strict=True)))
        for some in map(sorted, sets)
        for values in product(*(levers.get(x, (1,)) for x in some))
    ]


@pytest.mark.parametrize("name", CASES)
def test_explanations(name):
    model = CASES[name][0]
    trials = (24 if name == "logistic-ofu" else 14) * THOROUGH  # which looks around in its first 15 rounds
    experiment = case(name)
    rng = np.random.default_rng(4)
    pending = []
    for step in range(trials):
        names = None
        if step % 9 == 4 and name not in ("rules", "fixed"):
            names = [x for x in model.graph.controllable if x != model.graph.controllable[step % 4]]
        pending.append(experiment.ask(available=names))
        if step % 3:
            trial = pending.pop(0)
            experiment.tell(trial.number, drawn(model, trial.do, rng.random(len(model.graph))))
    rows = whole_log(experiment)
    then = [experiment.explain(number) for number in range(trials)]
    for row, shown, said_ in zip(rows, then, experiment.trials(), strict=True):
        replica = ReplayedLearner(experiment.definition, experiment.columns)
        replica.add(experiment.storage.closed_since(id_of(experiment), 0)[: row.asked_after])
        engine, learner = replica.learner.engine, replica.learner
        assert shown.do == said_["do"]
        assert shown.rounds == row.asked_after == learner.rounds
        assert shown.predicted == row.predicted == learner.expected(shown.do)
        assert shown.interval == (row.low, row.high) == learner.interval(shown.do)
        assert shown.why == row.why
        under_way = [
            action_of(learner.graph, experiment.columns.decode(other.do))
            for other in rows[: row.number]
            if is_pending(other, row)
        ]
        assert shown.pending == len(under_way)
        if row.optimistic is None:
            assert (shown.bonus, shown.runner_up, shown.margin) == (None, None, None)
        else:
            assert shown.bonus == row.optimistic - row.predicted
        if not learner.keeps_model:
            assert name in ARMS
            assert (shown.paths, shown.other_paths, shown.shares) == ((), None, {})
            if row.optimistic is not None:
                usable = json.loads(row.available) if row.available else learner.graph.controllable
                scale, kl = 0.5 * (name != "epsilon"), name == "kl-ucb"
                check_arms(shown, engine, under_way, set(map(learner.graph.index, usable)), scale, kl)
            continue
        for x in shown.do:
            rest = {other: value for other, value in shown.do.items() if other != x}
            assert shown.shares[x] == pytest.approx(shown.predicted - learner.expected(rest), abs=1e-12)
        assert set(shown.shares) == set(shown.do)
        if learner.problem.is_linear:
            whole = sum(path.contribution for path in shown.paths) + shown.other_paths
            assert whole == pytest.approx(shown.predicted, abs=1e-12)
            assert all(path.names[-1] == "Y" for path in shown.paths)
        else:
            assert (shown.paths, shown.other_paths) == ((), None)
        if row.optimistic is None:
            assert shown.runner_up is None
            continue
        names = json.loads(row.available) if row.available else None
        others = [replica.pending(other) for other in rows[: row.number] if is_pending(other, row)]
        now = replica.situation(row.number, names, others, replica.known(None))
        values = {action: index_of(engine, action, now) for action in plain_actions(name, names)}
        mine = action_of(learner.graph, shown.do)
        assert values.pop(mine) == pytest.approx(row.optimistic, abs=1e-12), row.number
        second = max(values.values())
        assert shown.runner_up.optimistic == pytest.approx(second, abs=1e-9)
        assert values[action_of(learner.graph, shown.runner_up.do)] == pytest.approx(second, abs=1e-9)
        ahead = row.optimistic - shown.runner_up.optimistic
        assert shown.margin == (0.0 if abs(ahead) < 1e-9 else ahead)  # rounding makes no difference between two sets
        assert shown.margin >= -1e-8
    # Later rounds change nothing about what was known then.
    for _ in range(20):
        experiment.record({}, drawn(model, {}, rng.random(len(model.graph))))
    reopened = again(experiment)
    assert [reopened.explain(number) for number in range(trials)] == then
    for number in (3, trials - 1):
        assert again(experiment).explain(number) == then[number]  # without the way there
    refused(ExperimentError, lambda: experiment.explain(trials + 16), "recorded")


@pytest.mark.parametrize(
    "rules",
    [
        {"budget": 2},
        {"budget": None, "costs": {"A": 1, "B": 2}, "total_cost": 2.5},
        {"budget": 2, "exclusive": [["A", "B"]]},
        {"budget": 1, "require": ["A"]},
        {"budget": 0},
    ],
)
@pytest.mark.parametrize("region", ["closed-form", "boxed"])
def test_a_runner_up_was_compared(rules, region):
    """Few sets: one that is not compared, such as a part of the best, must not be said to have come second."""
    graph = dob.CausalGraph([("A", "Y"), ("B", "Y"), ("A", "B")], target="Y")
    for seed in range(6):
        experiment = make(graph=graph, policy=dob.BLMLR(radius_scale=0.01, region=region), seed=seed, **rules)
        rng = np.random.default_rng(seed)
        for t in range(10):
            trial = experiment.ask()
            experiment.tell(t, {x: int(rng.integers(2)) for x in graph.nodes if x not in trial.do})
            shown = experiment.explain(t)
            sets = [set(action.named(graph)) for action in listed(experiment.learner.engine.actions())]
            assert set(shown.do) in sets
            if len(sets) == 1:
                assert (shown.runner_up, shown.margin) == (None, None)
            else:
                assert set(shown.runner_up.do) in sets
                assert shown.runner_up.do != shown.do
                assert shown.margin >= -1e-8


def test_paths_add_up_where_estimates_are_negative():
    graph = dob.CausalGraph([("A", "Y"), ("B", "Y")], target="Y")
    experiment = make(graph=graph, budget=1)
    experiment.import_history([({}, {"A": a, "B": 1 - a, "Y": int(a and t % 2)}) for t in range(40) for a in (0, 1)])
    experiment.import_history([({}, {"A": 1, "B": 1, "Y": 0})] * 20)
    shown = experiment.explain(experiment.ask().number)
    assert min(path.contribution for path in shown.paths) < 0
    assert shown.other_paths == 0.0
    assert sum(path.contribution for path in shown.paths) == pytest.approx(shown.predicted, abs=1e-9)
