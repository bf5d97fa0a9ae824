"""What an experiment answers: recommendations, explanations, estimates, diagnosis."""

import json
import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betaln, rel_entr, xlog1py, xlogy

import dobandit as dob
from dobandit.errors import (
    DobanditWarning,
    ExperimentError,
    InterventionError,
    PolicyError,
)
from dobandit.experiment.replayed_learner import ReplayedLearner
from dobandit.experiment.storage import MemoryStorage
from dobandit.oracle.actions import Action
from helpers.experiments import (
    ARMS,
    CASES,
    again,
    case,
    drawn,
    knowledge,
    make,
    played,
    refused,
    settings_of,
    whole_log,
)
from helpers.indices import index_of
from helpers.storages import id_of
from helpers.worlds import THOROUGH

pytestmark = pytest.mark.usefixtures("one_of_many")

# -- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_recommend(name):
    experiment = played(name)
    learner = experiment.definition.policy.start(experiment.graph, CASES[name][1], seed=7, **settings_of(name))
    learner.update_many([(row["do"], row["observation"]) for row in experiment.trials()])
    best = learner.best()
    assert experiment.recommend()[:3] == best[:3]
    assert again(experiment).recommend() == experiment.recommend()
    # By hand: no set of those that the policy compares has a larger estimate.
    if name != "search":
        values = [learner.expected(action.named(learner.graph)) for action in listed(learner.engine.actions())]
        tried = values if name not in ARMS else [v for v, n in zip(values, learner.engine.state.plays[0]) if n]  # noqa: B905
        assert best.value == pytest.approx(max(tried), abs=1e-12)
    for names in combinations(experiment.graph.controllable, 3):
        if not {"X6"} <= set(names) and name == "rules":
            continue
        try:
            limited = experiment.recommend(available=names)
        except InterventionError:
            assert name == "fixed"
            continue
        assert set(limited.do) <= set(names)
        assert limited[:3] == learner.best(names)[:3]
    experiment.ask(n=3)  # pending trials are no news
    assert experiment.recommend()[:3] == best[:3]
    refused(InterventionError, lambda: experiment.recommend(available=["X99"]), "X99")


def plain_best_observed(rows):
    """By set: the lower end of the Beta-binomial confidence sequence, 5% shared among the sets that were tried."""
    groups, told = {}, [row for row in rows if row["state"] == "told"]
    sets = {json.dumps(row["do"], sort_keys=True) for row in told}
    for row in told:
        if "Y" in row["observation"]:
            groups.setdefault(json.dumps(row["do"], sort_keys=True), []).append(row["observation"]["Y"])
    answers = []
    for do, values in groups.items():
        n, s = len(values), sum(values)
        level = math.log(len(sets) / 0.05) - betaln(s + 0.5, n - s + 0.5) + betaln(0.5, 0.5)
        low = (
            brentq(lambda p, s=s, n=n, level=level: -xlogy(s, p) - xlog1py(n - s, -p) - level, 1e-300, s / n)
            if s
            else 0.0
        )
        answers.append((low, s / n, n, json.loads(do)))
    return answers


@pytest.mark.parametrize("name", ["closed-form", "ucb", "continuous", "logistic-ofu"])
def test_best_observed(name, tmp_path):
    experiment = played(name, 60)
    assert case(name).best_observed() is None
    experiment.record({}, {experiment.graph.nodes[0]: 1})  # without the target
    experiment.tell_failed(experiment.ask().number)
    answers = plain_best_observed(experiment.trials())
    low, mean, rounds, do = max(answers, key=lambda answer: answer[:2])
    best = experiment.best_observed()
    assert best.do == do
    assert best.rounds == rounds
    assert best.mean == pytest.approx(mean)
    assert best.interval.low == pytest.approx(low, abs=1e-9)
    assert 0.0 <= best.interval.low <= best.mean <= best.interval.high <= 1.0 + 1e-12


SETS = {  # what is set: how likely the target is then
    "nothing": ({}, 0.3),
    "e": ({"e": 1}, 0.4),
    "c": ({"c": 1}, 0.6),
    "no e": ({"e": 0}, 0.7),
    "d": ({"d": 1}, 0.2),
    "e, c": ({"e": 1, "c": 1}, 0.8),
    "v": ({"v": 1}, 0.9),
}


@pytest.mark.parametrize(
    ("rules", "available", "best"),
    [
        ({"budget": 1}, None, "c"),
        ({"budget": 2}, None, "e, c"),
        ({"budget": 2, "exclusive": [["e", "c"]]}, None, "c"),
        ({"budget": 2, "costs": {"c": 3}, "total_cost": 3}, None, "c"),
        ({"budget": 2, "levers": {"e": (0, 1)}}, None, "e, c"),
        ({"budget": 1, "levers": {"e": (0, 1)}}, None, "no e"),
        ({"budget": 2, "forbid": ["c"]}, None, "e"),
        ({"budget": 2, "forbid": ["c", "e"]}, None, "nothing"),
        ({"budget": 2, "require": ["e"]}, ["e", "d"], "e"),
        ({"budget": 1, "require": ["d"]}, None, "d"),
        ({"budget": 2, "available": ["e", "d"]}, None, "e"),
        ({"budget": 1}, ["e", "d"], "e"),
        ({"budget": 1}, [], "nothing"),
        ({"budget": 2, "effects": "nonnegative"}, None, "e, c"),
        ({"budget": 2, "effects": "nonnegative"}, ["e", "d"], None),  # one more never hurts: sets of exactly two
        ({"budget": 1, "effects": "nonnegative"}, ["e"], "e"),
        ({"budget": 1, "effects": "nonnegative"}, [], "nothing"),
        ({"budget": 1, "smaller": False}, ["d"], "d"),
        ({"budget": 2, "smaller": False}, ["c", "x"], "c"),  # x is no cause of b: nothing that matters can be added
        ({"budget": 2, "smaller": True, "effects": "nonnegative"}, ["d"], "nothing"),
    ],
)
def test_the_best_observed_set_is_one_that_the_rules_allow(rules, available, best):
    edges = [("e", "v"), ("c", "v"), ("d", "v"), ("v", "b"), ("v", "x")]
    with pytest.warns(DobanditWarning, match="setting .x. cannot change"):
        graph = dob.CausalGraph(edges, target="b", controllable=["e", "c", "d", "x"])
    rules = {"effects": "any"} | rules
    experiment = dob.create_experiment("allowed", graph, storage="memory", policy="ucb", **rules)
    for do, mean in SETS.values():
        ones = round(1000 * mean)
        experiment.record(do, [{"b": 1, "count": ones}, {"b": 0, "count": 1000 - ones}])
    found = experiment.best_observed(available)
    assert (found and found.do) == (SETS[best][0] if best else None)


def test_one_lucky_round_is_not_the_best():
    experiment = make(budget=1)
    experiment.record(["X4"], {"Y": 1})
    for i in range(20):
        experiment.record(["X2"], {"Y": int(i > 2)})
    assert experiment.best_observed().do == {"X2": 1}
    assert experiment.best_observed().rounds == 20


def test_model_and_data_are_not_mixed():
    """The model may speak for a set that was never tried, the data never do."""
    experiment = make(budget=1)
    for _ in range(200):
        experiment.record({"X2": 0, "X3": 0, "X4": 0}, {"X5": 1, "Y": 1})  # which the rules do not allow
        experiment.record({"X2": 1}, {"X3": 0, "X4": 0, "X5": 0, "Y": 0})
    assert experiment.recommend().do == {"X5": 1}
    assert experiment.best_observed().do == {"X2": 1}


def test_how_often_something_happens_is_from_0_to_1():
    """Of a node without causes: in `estimates`, and what they are drawn from; not of an effect, which may do harm."""
    for links in ("auto", "identity"):
        graph = dob.CausalGraph([("a", "b"), ("c", "b")], target="b", bias=["a", "c", "b"])
        experiment = dob.create_experiment("rates", graph, 1, storage=MemoryStorage(), links=links, effects="any")
        for _ in range(2):  # nothing was seen, then never a, and always c
            rows = {(row.cause, row.effect): row for row in experiment.estimates()}
            for name in ("a", "c"):
                rate = rows[None, name]
                assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
            assert rows["a", "b"].low < 0.0
            experiment.record({}, {"a": 0, "c": 1, "b": 0, "count": 30})
        assert rows[None, "a"].low == 0.0
        assert rows[None, "c"].high == 1.0


def listed(actions):
    return [actions.row(i) for i in range(len(actions.ids))]


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


@pytest.mark.parametrize("name", CASES)
def test_estimates(name):
    experiment = played(name, 40)
    if name in ARMS:
        refused(PolicyError, experiment.estimates, "no model")
        return
    learner = experiment.learner
    rows = experiment.estimates()
    slots = [(row.cause, row.effect) for row in rows]
    graph = experiment.graph
    wanted = [(p, v) for v in graph.nodes for p in ([None] if v in graph.bias else []) + list(graph.parents(v))]
    assert slots == wanted
    for row in rows:
        node = learner.estimate(row.effect)
        weight = node.bias if row.cause is None else node.parents[row.cause]
        assert (row.value, row.low, row.high, row.outside) == weight
        assert row.low <= row.value <= row.high
        assert (row.rows, row.status) == (node.rows, node.status)
        assert row.rows == sum(row.effect not in t["do"] for t in experiment.trials())


@pytest.mark.parametrize("name", CASES)
def test_diagnose(name):
    assert case(name).diagnose() is not None
    experiment = played(name, 40)
    experiment.ask()
    experiment.tell_failed(experiment.ask().number)
    first = experiment.diagnose()
    assert repr(again(experiment).diagnose()) == repr(first)


def test_hidden_variables_end_to_end():
    graph = dob.CausalGraph(
        [("U", "A"), ("U", "C"), ("A", "B"), ("B", "Y"), ("C", "Y")], target="Y", latent=["U"], bias=["U", "A", "C"]
    )
    weights = {"U": 0.5, "A": 0.1, "C": 0.3, ("U", "A"): 0.5, ("U", "C"): 0.2, ("A", "B"): 0.6, ("B", "Y"): 0.5}
    model = dob.BinaryGLM(graph, weights | {("C", "Y"): 0.2})
    experiment = make(None, model, 1)
    assert sorted(experiment.columns.names) == ["A", "B", "C", "Y"]
    rng = np.random.default_rng(0)
    for t in range(40):
        trial = experiment.ask()
        experiment.tell(t, drawn(model, trial.do, rng.random(5)))
    assert knowledge(again(experiment)) == knowledge(experiment)
    assert "U" not in json.dumps(experiment.trials()[0]["observation"])
    experiment.explain(30)
    experiment.estimates()
    experiment.diagnose()


def test_paths_add_up_where_estimates_are_negative():
    graph = dob.CausalGraph([("A", "Y"), ("B", "Y")], target="Y")
    experiment = make(graph=graph, budget=1)
    experiment.import_history([({}, {"A": a, "B": 1 - a, "Y": int(a and t % 2)}) for t in range(40) for a in (0, 1)])
    experiment.import_history([({}, {"A": 1, "B": 1, "Y": 0})] * 20)
    shown = experiment.explain(experiment.ask().number)
    assert min(path.contribution for path in shown.paths) < 0
    assert shown.other_paths == 0.0
    assert sum(path.contribution for path in shown.paths) == pytest.approx(shown.predicted, abs=1e-9)
