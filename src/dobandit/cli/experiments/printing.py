"""What the commands on experiments print."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from dobandit.cli.output import names, print_table
from dobandit.cli.storage import usual_storage

if TYPE_CHECKING:
    from dobandit.experiment.answers import BestObserved, EdgeEstimate, Status
    from dobandit.experiment.experiment import Experiment
    from dobandit.experiment.explanation import Explanation
    from dobandit.experiment.trial import Trial
    from dobandit.policy.learner import Recommendation

_MOST = 10  # variables on one line


def document(value: Any) -> Any:
    """As JSON can say it: tuples with names become objects, intervals pairs, and NaN and infinity null."""
    if hasattr(value, "_asdict"):
        fields = value._asdict()
        return [document(end) for end in value] if tuple(fields) == ("low", "high") else document(fields)
    if isinstance(value, Mapping):
        return {str(key): document(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [document(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def iso(at: float | None) -> str | None:
    """As in an export: ISO 8601 in UTC."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def moment(at: float | None) -> str:
    return "never" if at is None else datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")


def shown(text: str) -> str:
    """Names may hold anything: control characters are shown, not obeyed."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(text: str) -> None:
    click.echo(shown(text))


def print_facts(rows: Iterable[tuple[str, str]]) -> None:
    """Two aligned columns."""
    rows = list(rows)
    width = max(len(what) for what, _ in rows)
    for what, text in rows:
        say(f"  {what:<{width}}  {text}")


def digits(value: float | None) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.3f}"


def span(interval: Sequence[float | None] | None) -> str:
    return "-" if interval is None else " .. ".join(digits(end) for end in interval)


def signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}"  # never -0.000


def many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def duration(seconds: float) -> str:
    """As --lease takes it."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def values(row: Mapping[str, float], nothing: str = "nothing", equals: str = " = ") -> str:
    return names([f"{name}{equals}{value:g}" for name, value in row.items()], _MOST) if row else nothing


# -- ask ---------------------------------------------------------------------------------------------------------


def trial_document(trial: Trial) -> dict[str, Any]:
    told: dict[str, Any] = document(
        {"trial": trial.number, **trial._asdict(), "lease_expires": iso(trial.lease_expires)}
    )
    del told["number"]
    return told


def print_trial(experiment: Experiment, trial: Trial) -> None:
    say(f"trial {trial.number}: set {values(trial.do, 'nothing, only observe')}")
    lease = "none: it is yours until you tell"
    if trial.lease_expires is not None:
        lease = f"until {moment(trial.lease_expires)}, then somebody else may get it"
    guess = "none yet" if math.isnan(trial.predicted) else f"{digits(trial.predicted)}  ({span(trial.interval)})"
    print_facts([(f"predicted E[{experiment.graph.target}]", guess), ("why", trial.why), ("lease", lease)])
    unset = [name for name in experiment.columns.names if name not in trial.do]
    what = "a number from 0 to 1" if experiment.columns.continuous else "0 or 1"
    how = f"type this with {what} for each _, without what was not seen:"
    if len(unset) > _MOST:
        how = f"write what was seen to seen.json, as {{NAME: {what}, ...}}, and type this:"
    click.echo(f"\nCarry it out, then {how}\n")
    say(f"  {tell_command(experiment, trial, unset)}")


def tell_command(experiment: Experiment, trial: Trial, unset: Sequence[str]) -> str:
    """The command for what was seen, with places to fill in."""
    options = ["--issued", str(trial.issued)] if trial.issued > 1 else []
    seen = [f"{name}=_" for name in unset]
    if len(seen) > _MOST:
        options, seen = [*options, "--json-file", "seen.json"], []
    return command_line(experiment, "tell", [experiment.name, str(trial.number), *seen], options)


def command_line(experiment: Experiment, command: str, words: Sequence[str], options: Sequence[str] = ()) -> str:
    """A command on the same storage, for a shell."""
    url = experiment.storage.url
    where = [] if url == usual_storage() else ["--storage", url]
    separator = ["--"] if any(word.startswith("-") for word in words) else []
    return shlex.join(["dobandit", "experiment", command, *where, *options, *separator, *words])


# -- trials ------------------------------------------------------------------------------------------------------


def print_trials(experiment: Experiment, rows: Sequence[Mapping[str, Any]]) -> None:
    target = experiment.graph.target
    cells = []
    for row in rows:
        seen = {name: value for name, value in (row["observation"] or {}).items() if name not in row["do"]}
        cells.append(
            (
                str(row["trial"]),
                row["state"],
                names(list(row["do"]), _MOST) if set(row["do"].values()) == {1} else values(row["do"], "nothing", "="),
                f"{seen.pop(target):g}" if target in seen else "",
                values(seen, "", "="),
                "" if row["predicted"] is None else digits(row["predicted"]),
                "; ".join(_notes(row)),
            )
        )
    print_table(["trial", "state", "set", target, "also seen", "predicted", "notes"], cells, right=[0, 3, 5])


def _notes(row: Mapping[str, Any]) -> list[str]:
    notes = [word for word in ("late", "partial") if row[word]]
    if row["source"] != "asked":
        notes.append(row["source"])
    if row["issued"] > 1:
        notes.append(f"{row['issued']} hand-outs")
    lease = row["lease_expires"] if row["state"] == "pending" else None
    if lease is not None:
        until = datetime.fromisoformat(lease)
        notes.append("lease ran out" if until <= datetime.now(UTC) else f"lease until {moment(until.timestamp())}")
    return [*notes, *filter(None, [row["reason"]])]


# -- answers -----------------------------------------------------------------------------------------------------


def status_document(status: Status) -> dict[str, Any]:
    said: dict[str, Any] = document(status._asdict())
    return {**said, "created_at": iso(status.created_at), "last_told_at": iso(status.last_told_at)}


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
    print_facts([*rows, (f"{status.target} so far", mean), ("last told", moment(status.last_told_at))])


def definition_rows(experiment: Experiment) -> list[tuple[str, str]]:
    graph, document = experiment.graph, experiment.definition.document
    rules, links = document["rules"], document["links"]
    settable = [name for name in graph.controllable if name not in rules["forbid"]]
    most = [] if rules["budget"] is None else [f"at most {rules['budget']}"]
    most += [] if rules["total_cost"] is None else [f"what costs at most {rules['total_cost']:g}"]
    rows = [
        ("target", graph.target + (", a number from 0 to 1" if document["continuous"] else "")),
        ("variables", f"{len(graph)}, with {graph.edge_count} edges"),
        ("to set", f"{', '.join(most)} of {names(settable, _MOST)}"),
    ]
    rows += [(key, names(rules[key], _MOST)) for key in ("require", "forbid") if rules[key]]
    rows += [("exclusive", names(group, _MOST)) for group in rules["exclusive"]]
    rows += [("costs", values(rules["costs"]) + ", others 1")] if rules["costs"] else []
    rows += [("hidden", names(graph.latent, _MOST))] if graph.latent else []
    by_link: dict[str, list[str]] = {}
    for name, link in links.items():
        by_link.setdefault(_link(link), []).append(name)
    rows += [("link", f"{link} for {names(nodes, _MOST)}") for link, nodes in by_link.items()]
    return [
        *rows,
        ("policy", experiment.definition.policy_text),
        ("horizon", "not known" if document["horizon"] is None else f"{document['horizon']:,} rounds"),
        ("seed", str(document["seed"])),
        ("lease", "none" if document["lease"] is None else duration(document["lease"])),
    ]


def _link(link: Any) -> str:
    if isinstance(link, str):
        return link
    rest = ", ".join(f"{key} {value:g}" for key, value in link.items() if key != "name" and value)
    return str(link["name"]) + (f" ({rest})" if rest else "")


def print_recommendation(target: str, best: Recommendation, causal: bool, observed: BestObserved | None) -> None:
    """causal: the policy keeps a model of the causes."""
    click.echo("what the model says" if causal else "what the policy says, which keeps averages and no model")
    guess = f"{digits(best.value)}  ({span(best.interval)})"
    print_facts([("set", values(best.do)), (f"estimated E[{target}]", guess)])
    click.echo("\nwhat the data alone say, without any model")
    if observed is None:
        print_facts([("set", f"no answer: {target} was not seen yet")])
        return
    mean = f"{digits(observed.mean)}  ({span(observed.interval)})"
    rounds = f"{observed.rounds:,}"
    print_facts([("set", values(observed.do)), (f"mean of {target}", mean), ("rounds with this set", rounds)])


def print_explanation(target: str, told: Explanation) -> None:
    say(f"trial {told.number}: set {values(told.do, 'nothing, only observe')}")
    rows = [
        ("why", told.why),
        ("known by then", f"{many(told.rounds, 'round')}; {many(told.pending, 'other trial')} under way"),
    ]
    rows.append((f"estimated E[{target}]", f"{digits(told.predicted)}  ({span(told.interval)})"))
    if told.bonus is not None and math.isfinite(told.bonus):
        rows.append(("with optimism", f"{digits(told.optimistic)}  ({signed(told.bonus)})"))
    if told.runner_up is not None and told.margin is not None:
        how = "a tie, broken at random" if told.margin == 0 else f"{told.margin:.3g} less"
        rows.append(("runner-up", f"{values(told.runner_up.do)}: {digits(told.runner_up.optimistic)}, {how}"))
    print_facts(rows)
    if told.shares:
        cells = [(name, signed(share)) for name, share in told.shares.items()]
        print_table(["setting", "adds to the estimate"], cells, right=[1])
    if told.paths:
        paths = [(("1 -> " if p.from_bias else "") + " -> ".join(p.names), signed(p.contribution)) for p in told.paths]
        rest = [("other paths", signed(told.other_paths or 0.0))] if abs(told.other_paths or 0.0) >= 0.0005 else []
        print_table(["path (1: by itself)", "adds to the estimate"], paths + rest, right=[1])


def print_estimates(rows: Sequence[EdgeEstimate]) -> None:
    cells = [
        (
            row.cause or "(by itself)",
            row.effect,
            digits(row.value),
            span((row.low, row.high)),
            str(row.rows),
            row.status,
        )
        for row in rows
    ]
    print_table(["cause", "effect", "weight", "interval", "rounds", "status"], cells, right=[2, 3, 4])
