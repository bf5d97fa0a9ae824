"""Live experiments: 30 rounds told one by one, then batches up to 300; answers after 0, 30 and 300 rounds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dobandit as dob
from golden import worlds
from golden.comparing import action_text, choices, plain
from golden.worlds import World

SEED, SINGLE, BATCH, ALL = 5, 30, 10, 300


@dataclass(frozen=True)
class Live:
    """An experiment.

    world     what answers;  settings: of `create_experiment`, besides the graph
    asked     settings of each ask
    unseen    variables that are not told in every third round
    pending   how many trials are handed out before the first of them is told
    lost      of every `lost` trials one fails and one is abandoned; 0: none
    single    how many rounds are told one by one before batches begin
    """

    world: World
    settings: Mapping[str, Any] = field(default_factory=lambda: {"budget": 1})
    asked: Mapping[str, Any] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    pending: int = 1
    lost: int = 0
    single: int = SINGLE


_FUNNEL_POLICIES = {
    "blm-lr": dob.BLMLR(radius_scale=0.1),
    "bglm-ofu": dob.BGLMOFU(radius_scale=0.1, initial=10),
    "ucb": dob.UCB(scale=0.5),
    "kl-ucb": dob.KLUCB(),
    "eps-greedy": dob.EpsilonGreedy(0.2),
    "causal-ucb guarantee": dob.CausalUCB(guarantee=True),
    "causal-ucb safe": dob.CausalUCB(safe=True),
    "causal-ts": dob.CausalTS(),
    "best-set": dob.BestSet(epsilon=0.2),
    "lucb": dob.LUCB(epsilon=0.2),
    "random": dob.Random(),
    "fixed": dob.Fixed(["mail"]),
}
_HARMFUL = {"budget": 2, "levers": {"price": (0, 1), "popup": (0, 1)}}

EXPERIMENTS = {
    "funnel": Live(worlds.FUNNEL, single=ALL),
    **{
        f"funnel with {name}": Live(worlds.FUNNEL, {"budget": 1, "policy": policy})
        for name, policy in _FUNNEL_POLICIES.items()
    },
    "funnel with lines and helpful effects": Live(
        worlds.FUNNEL, {"budget": 1, "links": "identity", "effects": "nonnegative"}
    ),
    "funnel, a horizon": Live(worlds.FUNNEL, {"budget": 1, "policy": dob.BLMLR(radius_scale=0.1), "horizon": 300}),
    "funnel, control rounds": Live(worlds.FUNNEL, {"budget": 1, "control": 0.2}),
    "funnel, values missing": Live(worlds.FUNNEL, unseen=("visit",)),
    "funnel, four pending": Live(worlds.FUNNEL, {"budget": 2, "smaller": True}, pending=4),
    "funnel, trials lost": Live(worlds.FUNNEL, pending=3, lost=7),
    "funnel, only ad available": Live(worlds.FUNNEL, asked={"available": ["ad"]}),
    "funnel, may stop": Live(
        worlds.FUNNEL, {"budget": 1, "policy": dob.CausalUCB(guarantee=True, leeway=0.0), "stop_within": 0.4}
    ),
    "noisy or": Live(worlds.NOISY_OR, {"budget": 2}, single=ALL),
    "noisy or, exponential links": Live(worlds.NOISY_OR, {"budget": 2, "links": "exponential"}),
    "noisy or, one link promised": Live(
        worlds.NOISY_OR, {"budget": 2, "links": {"buy": "exponential"}, "effects": "nonnegative"}
    ),
    "logistic": Live(worlds.LOGISTIC),
    "logistic promised": Live(worlds.LOGISTIC, {"budget": 1, "links": "logistic"}),
    "logistic with bglm-ofu": Live(
        worlds.LOGISTIC, {"budget": 1, "links": "logistic", "policy": dob.BGLMOFU(radius_scale=0.1, initial=10)}
    ),
    "harmful": Live(worlds.HARMFUL, _HARMFUL, single=ALL),
    "harmful, safe": Live(worlds.HARMFUL, {**_HARMFUL, "policy": dob.CausalUCB(safe=True)}),
    "harmful, guarantee": Live(worlds.HARMFUL, {**_HARMFUL, "policy": dob.CausalUCB(guarantee=True)}),
    "harmful, pruned": Live(worlds.HARMFUL, {**_HARMFUL, "policy": dob.UCB(scale=0.3, prune=True)}),
    "harmful, costs and groups": Live(
        worlds.HARMFUL,
        {
            "costs": {"ad": 2.0, "coupon": 1.5},
            "total_cost": 3.0,
            "exclusive": [("mail", "popup")],
            "levers": {"price": (0, 1)},
        },
    ),
    "harmful, required and forbidden": Live(
        worlds.HARMFUL, {"budget": 3, "require": ["ad"], "forbid": ["popup"], "levers": {"price": (0, 1)}}
    ),
    "context": Live(worlds.CONTEXT),
    "context, guarantee": Live(worlds.CONTEXT, {"budget": 1, "policy": dob.CausalUCB(guarantee=True)}),
    "context, ts": Live(worlds.CONTEXT, {"budget": 1, "policy": dob.CausalTS()}),
    "context, ucb": Live(worlds.CONTEXT, {"budget": 1, "policy": dob.UCB()}),
    "hidden, admissible": Live(worlds.ADMISSIBLE),
    "hidden, pruned": Live(worlds.CONFOUNDED, {"budget": 1, "policy": dob.KLUCB(prune=True)}),
    "hidden, hide": Live(worlds.CONFOUNDED, {"budget": 1, "hide": ["visit"]}),
    "hidden, hide auto": Live(worlds.CONFOUNDED, {"budget": 2, "hide": "auto", "policy": dob.CausalTS()}),
    "hidden, always set": Live(worlds.SETTABLE, {"budget": 2, "always_set": ["visit"]}),
    "continuous": Live(worlds.CONTINUOUS, {"budget": 1, "continuous": True}),
    "continuous, levers": Live(
        worlds.CONTINUOUS, {"budget": 2, "continuous": True, "levers": {"tv": (0, 1), "web": (0, 1)}}
    ),
    "continuous, ts": Live(worlds.CONTINUOUS, {"budget": 1, "continuous": True, "policy": dob.CausalTS()}),
}


def cases() -> dict[str, Callable[[], dict[str, Any]]]:
    return {name: lambda name=name: lived(EXPERIMENTS[name]) for name in EXPERIMENTS}


def lived(live: Live) -> dict[str, Any]:
    """An experiment from its beginning to 300 rounds."""
    name = "golden"
    with dob.create_experiment(name, live.world.graph, storage="memory", seed=SEED, **live.settings) as experiment:
        try:
            return _course(live, experiment)
        finally:
            dob.delete_experiment(name, "memory")


def _course(live: Live, experiment: dob.Experiment) -> dict[str, Any]:
    found = {"after 0": summary(live, experiment)}
    trials: list[dob.Trial] = []
    while (done := _rounds(trials)) < ALL:
        size = 1 if done < live.single else BATCH
        context = {"context": known} if (known := live.world.context(SEED, len(trials))) else {}
        asked = [experiment.ask(size=size, **context, **live.asked) for _ in range(live.pending)]
        for trial in reversed(asked):
            if live.lost and trial.number % live.lost == 1:
                experiment.tell_failed(trial, "no answer")
            elif live.lost and trial.number % live.lost == 2:
                experiment.abandon(trial)
            else:
                experiment.tell(trial, _told(live, trial))
        trials += asked
        if done < SINGLE <= _rounds(trials):
            found[f"after {SINGLE}"] = summary(live, experiment)
            found[f"explained after {SINGLE}"] = explained(experiment, trials[-1])
    found["choices"] = choices(trial.do for trial in trials)
    looks = trials[:4] + trials[SINGLE - 2 : SINGLE] + trials[-2:]
    found["predicted"] = plain([[trial.predicted, *trial.interval] for trial in looks])
    found["control"] = [trial.number for trial in trials if trial.control]
    found["states"] = "".join(row["state"][0] for row in experiment.trials())  # told, failed, abandoned
    found[f"after {ALL}"] = summary(live, experiment)
    found[f"explained after {ALL}"] = explained(experiment, trials[-1])
    found |= thorough(live, experiment)
    return found


def _rounds(trials: list[dob.Trial]) -> int:
    return sum(trial.size for trial in trials)


def _told(live: Live, trial: dob.Trial) -> Any:
    """What is seen in a trial: a round, or rows with counts."""
    rows: dict[tuple[tuple[str, float], ...], int] = {}
    for number in range(trial.size):
        seen = live.world.round(SEED, 1000 * trial.number + number, {**trial.do, **trial.context})
        if trial.number % 3 == 2:
            seen = {name: value for name, value in seen.items() if name not in live.unseen}
        if trial.size == 1:
            return seen
        row = tuple(sorted(seen.items()))
        rows[row] = rows.get(row, 0) + 1
    return [{**dict(row), "count": count} for row, count in rows.items()]


def _recommendation(told: Any) -> dict[str, Any]:
    numbers = {key: one for key, one in plain(told).items() if one is not None}
    return {**numbers, "do": action_text(told.do), "doubts": len(told.doubts)}


def _context(live: Live) -> dict[str, Any]:
    names = live.world.roles.get("context", ())
    return {"context": dict.fromkeys(names, 1)} if names else {}


def summary(live: Live, experiment: dob.Experiment) -> dict[str, Any]:
    """The answers that a user looks at."""
    found = {"recommend": _recommendation(experiment.recommend(**_context(live)))}
    if (best := experiment.best_observed()) is not None:
        found["best_observed"] = plain({**best._asdict(), "do": action_text(best.do)})
    return found


def explained(experiment: dob.Experiment, trial: dob.Trial) -> dict[str, Any]:
    """Why a trial set what it set, in numbers."""
    told = experiment.explain(trial)
    found = {key: one for key, one in plain(told).items() if one is not None}
    paths = {" ".join([*[""] * path.from_bias, *path.names]): path.contribution for path in told.paths[:4]}
    runner_up = None if told.runner_up is None else [action_text(told.runner_up.do), told.runner_up.optimistic]
    return {**found, "do": action_text(told.do), "paths": plain(paths), "runner_up": plain(runner_up)}


def thorough(live: Live, experiment: dob.Experiment) -> dict[str, Any]:
    """The answers that take longer to read: other actions, weights, status, diagnosis."""
    found: dict[str, Any] = {}
    levers = [name for name in experiment.graph.controllable if name in live.world.means]
    for do in [{}, *({name: 1} for name in levers[:2])]:
        told = experiment.evaluate(do, **_context(live))
        numbers = _recommendation(told._replace(nothing=None, verdict=None))
        found[f"evaluate {action_text(do) or 'nothing'}"] = numbers
    if experiment.learner.keeps_model:
        edges = experiment.estimates()
        found["estimates"] = {
            f"{edge.cause or ''} -> {edge.effect}": plain([edge.value, edge.low, edge.high, edge.rows, edge.radius])
            for edge in edges
        }
    status = experiment.status()
    found["status"] = {key: one for key, one in plain(status).items() if one is not None}
    said = plain(experiment.diagnose().to_document())
    for half in ("calibration", "recent"):
        if said[half] is not None:
            said[half] = {key: one for key, one in said[half].items() if key != "bins"}
    for part in ("nodes", "variables"):
        said[part] = {
            one["name"]: {key: value for key, value in one.items() if value is not None and key != "name"}
            for one in said[part]
        }
    found["diagnose"] = said
    return found
