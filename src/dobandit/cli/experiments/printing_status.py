"""What `create` and `show` print: what an experiment is, and how far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dobandit.cli.experiments.printing import (
    MOST_ON_A_LINE,
    digits,
    duration,
    moment,
    print_facts,
    span,
    values,
)
from dobandit.cli.output import names, say
from dobandit.experiment.reasons import gap_words
from dobandit.report.readable import counted
from dobandit.texts import decimals

if TYPE_CHECKING:
    from dobandit.experiment.experiment import Experiment
    from dobandit.experiment.status import Mean, Status


def print_status(experiment: Experiment, status: Status) -> None:
    flags = ", ".join(f"{getattr(status, flag):,} {flag}" for flag in ("late", "partial") if getattr(status, flag))
    states = [state for state in ("told", "pending", "failed", "abandoned") if getattr(status, state)]
    words = [f"{getattr(status, s):,} {s}" + (f" ({flags})" if s == "told" and flags else "") for s in states]
    mean = "none seen yet" if status.mean_target is None else f"{digits(status.mean_target)} on average"
    say(f"experiment {status.name} in {status.storage}")
    rows = [
        *definition_rows(experiment),
        ("created", moment(status.created_at)),
        ("trials", ", ".join(words) or "none yet"),
    ]
    if status.expired:
        rows.append(("to hand out again", f"{status.expired} whose lease ran out"))
    if status.rounds != status.told:
        rows.append(("rounds", f"{status.rounds:,} in the trials that were told"))
    rows.append((f"{status.target} so far", mean))
    if status.control is not None:
        rows.append((f"{status.target} in control rounds", _mean(status.control)))
        rows.append((f"{status.target} in the others", _mean(status.treated)))
    if status.stop_within is not None:
        rows.append(("may stop", _stopping(status, experiment.delta)))
    rows += [
        (
            f"nothing about {name}",
            f"was learned from {counted(rounds, 'told round')}, for want of its value or a cause's",
        )
        for name, rounds in status.untaught.items()
    ]
    print_facts([*rows, ("last told", moment(status.last_told_at))])


def _mean(mean: Mean | None) -> str:
    if mean is None:
        return "none seen yet"
    value, ends = digits(mean.value, decimals(mean.interval)), span(mean.interval)
    return f"{value} on average  ({ends}, 95% confidence, valid at every look; {counted(mean.rounds, 'round')})"


def _stopping(status: Status, delta: float) -> str:
    if status.gap is None:
        return "depends on the context: `ask` and `recommend` say it for one"
    if status.may_stop:
        return f"yes: {gap_words(status.gap, delta)}"
    if status.doubts:
        return f"no: {' '.join(status.doubts)} If the model were right, {gap_words(status.gap, delta)}"
    return f"not yet: so far {gap_words(status.gap, delta)}; wanted {status.stop_within:g}"


def definition_rows(experiment: Experiment) -> list[tuple[str, str]]:
    graph, kept = experiment.graph, experiment.definition.document
    rules, links, problem = kept["rules"], kept["links"], experiment.definition.problem
    levers = problem.rules.levers
    settable = [
        name if levers.get(name, (1.0,)) == (1.0,) else f"{name} ({' or '.join(f'{to:g}' for to in levers[name])})"
        for name in graph.controllable
        if name not in (*rules["forbid"], *problem.hidden) and name in rules.get("available", graph.controllable)
    ]
    most = [] if rules["budget"] is None else [f"at most {rules['budget']}"]
    most += [] if rules["total_cost"] is None else [f"what costs at most {rules['total_cost']:g}"]
    rows = [
        ("target", graph.target + (", a number from 0 to 1" if kept["continuous"] else "")),
        ("variables", f"{len(graph)}, with {graph.edge_count} edges"),
        ("to set", f"{', '.join(most)} of {names(settable, MOST_ON_A_LINE)}"),
        ("sizes", problem.sets_in_words()),
    ]
    rows += [(key, names(rules[key], MOST_ON_A_LINE)) for key in ("require", "forbid") if rules[key]]
    rows += [("exclusive", names(group, MOST_ON_A_LINE)) for group in rules["exclusive"]]
    rows += [("costs", values(rules["costs"]) + ", others 1")] if rules["costs"] else []
    rows += [("context", f"{names(graph.context, MOST_ON_A_LINE)}, known before acting")] if graph.context else []
    rows += [("hidden", names(graph.latent, MOST_ON_A_LINE))] if graph.latent else []
    if problem.hidden:
        rows.append(("counts as hidden", f"{names(problem.hidden, MOST_ON_A_LINE)}: kept in the log, not learned from"))
    if problem.rules.always_set:
        rows.append(
            ("always set", f"{names(problem.rules.always_set, MOST_ON_A_LINE)}: rounds without it teach nothing")
        )
    if problem.obstacle is not None:
        rows.append(("hidden causes", "cannot be removed: sets are compared by their own rounds alone"))
    by_link: dict[str, list[str]] = {}
    for name, link in links.items():
        if name not in problem.hidden:
            by_link.setdefault(_link(link), []).append(name)
    rows += [("link", f"{link} for {names(nodes, MOST_ON_A_LINE)}") for link, nodes in by_link.items()]
    return [
        *rows,
        ("effects", "no cause does harm" if problem.effects == "nonnegative" else "some cause may do harm"),
        ("policy", experiment.definition.policy_text),
        ("horizon", "not known" if kept["horizon"] is None else f"{kept['horizon']:,} rounds"),
        ("seed", str(kept["seed"])),
        ("lease", "none" if kept["lease"] is None else duration(kept["lease"])),
        *([("control", f"nothing is set in {kept['control']:.3g} of the rounds")] if "control" in kept else []),
        *([("to stop", f"when {gap_words(kept['stop_within'], experiment.delta)}")] if "stop_within" in kept else []),
    ]


def _link(link: Any) -> str:
    if isinstance(link, str):
        return link
    rest = ", ".join(f"{key} {value:g}" for key, value in link.items() if key != "name" and value)
    return str(link["name"]) + (f" ({rest})" if rest else "")
