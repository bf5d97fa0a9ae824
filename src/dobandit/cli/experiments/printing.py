"""What the commands on experiments print."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from dobandit.cli.output import names, print_table, say
from dobandit.cli.storage import VARIABLE, usual_storage
from dobandit.experiment.reasons import gap_words, lever_words, may_stop, stop_words
from dobandit.policy.answers import percent
from dobandit.texts import action_words, counted, decimals, fixed

if TYPE_CHECKING:
    from dobandit.experiment.answers import BestObserved, EdgeEstimate
    from dobandit.experiment.experiment import Experiment
    from dobandit.experiment.explanation import Explanation
    from dobandit.policy.answers import Recommendation
    from dobandit.rows.trial import Trial

_VERDICTS = {
    "fits": "fits the rounds so far",
    "untested": "predicts the rounds so far; its graph was not tested",
    "contradicted": "is contradicted by the rounds",
    "unknown": "was not checked against the rounds",
}
HIDDEN = "***"  # what stands in an address instead of a password
Fact = tuple[str, Any]  # a label and its text
_MOST_TYPED = 10  # values that a command to type has a place for


def moment(at: float | None) -> str:
    return "never" if at is None else datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")


def print_facts(rows: Iterable[Fact]) -> None:
    """Two aligned columns; a row whose text is empty, None or False is left out."""
    shown = [(what, text) for what, text in rows if text]
    width = max(len(what) for what, _ in shown)
    for what, text in shown:
        say(f"  {what:<{width}}  {text}")


def digits(value: float | None, places: int | None = None, sign: str = "") -> str:
    """A number, with as many decimals as it needs by itself, or as are given."""
    if value is None or not math.isfinite(value):
        return "-"
    return fixed(value, decimals(value) if places is None else places, sign)


def span(interval: Sequence[float | None] | None, places: int) -> str:
    return "-" if interval is None else " .. ".join(digits(end, places) for end in interval)


def estimated(value: float | None, interval: Sequence[float | None] | None, more: str = "", sign: str = "") -> str:
    """A number with its interval: 0.409  (0.324 .. 0.501). more: what else stands in the brackets."""
    places = decimals(interval)
    return f"{digits(value, places, sign)}  ({span(interval, places)}{more})"


def chance(value: float) -> str:
    """A probability, which is never quite 0 or 1."""
    return "above 0.99" if value > 0.99 else "below 0.01" if value < 0.01 else f"{value:.2f}"


def reach_words(far: str) -> str:
    """What the interval of a weight is."""
    return f"reaches {far} standard errors, as the policy's optimism does: it has no level of its own"


def duration(seconds: float) -> str:
    """As --lease takes it."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def values(row: Mapping[str, float], nothing: str = "nothing", equals: str = " = ") -> str:
    return names([f"{name}{equals}{value:g}" for name, value in row.items()]) if row else nothing


# -- ask ---------------------------------------------------------------------------------------------------------


def print_trial(experiment: Experiment, trial: Trial) -> None:
    say(f"trial {trial.number}: set {values(trial.do, 'nothing, only observe')}")
    lease = "none: it is yours until you tell"
    if trial.lease_expires is not None:
        lease = f"until {moment(trial.lease_expires)}, then somebody else may get it"
    words = experiment.interval_words
    guess = "none yet" if math.isnan(trial.predicted) else estimated(trial.predicted, trial.interval, f"; {words}")
    print_facts(
        [
            ("planned for", trial.size > 1 and counted(trial.size, "round")),
            ("context", trial.context and values(trial.context)),
            (f"predicted E[{experiment.graph.target}]", guess),
            ("why", trial.why),
            ("lease", lease),
        ]
    )
    # What cannot happen by itself is 0 unless it is set, and the context is known.
    unset = [name for name in experiment.columns.to_see if name not in trial.do]
    what = "a number from 0 to 1" if experiment.columns.continuous else "0 or 1"
    how = f"type this with {what} for each _, without what was not seen:"
    options, seen = ["--issued", str(trial.issued)] if trial.issued > 1 else [], [f"{name}=_" for name in unset]
    if trial.size > 1:
        from dobandit.rows.export import seen_column

        table, count = names([*map(seen_column, unset)]), experiment.columns.count_key
        how = (
            f"write rows.csv with the columns {table}, a line per round (or per distinct row, with a column {count}), "
            "and type this:"
        )
        options, seen = [*options, "--rows", "rows.csv"], []
    elif len(unset) > _MOST_TYPED:
        how = f"write what was seen to seen.json, as {{NAME: {what}, ...}}, and type this:"
        options, seen = [*options, "--json-file", "seen.json"], []
    click.echo()
    say(f"Carry it out, then {how}")
    click.echo()
    say(f"  {command_line(experiment, 'tell', [experiment.name, str(trial.number), *seen], options)}")
    password_note(experiment)


def command_line(experiment: Experiment, command: str, words: Sequence[str], options: Sequence[str] = ()) -> str:
    """A command on the same storage, for a shell. One that holds a password is not repeated: see `password_note`."""
    url = experiment.storage.url
    where = [] if url == usual_storage() or HIDDEN in url else ["--storage", url]
    separator = ["--"] if any(word.startswith("-") for word in words) else []
    return shlex.join(["dobandit", "experiment", command, *where, *options, *separator, *words])


def password_note(experiment: Experiment) -> None:
    """Where a command's storage is not repeated, how it runs all the same."""
    if HIDDEN in experiment.storage.url and not os.environ.get(VARIABLE):
        say(f"The address holds a password, which is not repeated here: export it as {VARIABLE}, and this runs.")


# -- trials ------------------------------------------------------------------------------------------------------


def print_trials(experiment: Experiment, rows: Sequence[Mapping[str, Any]]) -> None:
    target = experiment.graph.target
    cells = []
    means = {
        row["trial"]: _mean_in(row["observation"], experiment) for row in rows if isinstance(row["observation"], list)
    }
    of_means, places = decimals(*means.values()), decimals(*(row["predicted"] for row in rows))
    for row in rows:
        batch = isinstance(row["observation"], list)
        told = {} if batch else row["observation"] or {}
        seen = {name: value for name, value in told.items() if name not in row["do"]}
        outcome = f"{seen.pop(target):g}" if target in seen else ""
        if batch:
            outcome = digits(means[row["trial"]], of_means) if means[row["trial"]] is not None else ""
        cells.append(
            (
                str(row["trial"]),
                row["state"],
                action_words(row["do"]),
                outcome,
                f"{row['rounds']:,} rounds" if batch else values(seen, "", "="),
                "" if row["predicted"] is None else digits(row["predicted"], places),
                "; ".join(_notes(row)),
            )
        )
    print_table(["trial", "state", "set", target, "also seen", "predicted", "notes"], cells, right=[0, 3, 5])


def _mean_in(rows: Sequence[Mapping[str, float]], experiment: Experiment) -> float | None:
    """The target's mean over the rounds of a trial; None where none saw it."""
    key, target = experiment.columns.count_key, experiment.graph.target
    seen = [row for row in rows if target in row]
    rounds = sum(row[key] for row in seen)
    return sum(row[key] * row[target] for row in seen) / rounds if rounds else None


def _notes(row: Mapping[str, Any]) -> list[str]:
    notes = [word for word in ("control", "late", "partial") if row[word]]
    if row["context"]:
        notes.append("context " + values(row["context"], "", "="))
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


def print_recommendation(
    experiment: Experiment, told: Recommendation, context: Mapping[str, float] | None, within: float | None
) -> None:
    """First what to do, in a sentence; then what was measured, what the model says, and what is proved.

    within  how small the gap is to be, where one might stop with this action
    """
    causal, delta = experiment.learner.keeps_model, experiment.delta
    target = experiment.graph.target
    say(told.sentence)
    control = None if context else experiment.status().control  # which is over all contexts
    seen = f"no round with exactly this set saw {target}"
    if told.observed is not None:
        rounds = counted(told.observed.rounds, "round")
        seen = f"{observed_words(told.observed.mean, told.observed.interval)} in {rounds} with exactly this set"
    click.echo()
    click.echo("what was measured")
    alone = (
        control and f"{observed_words(control.value, control.interval)} in {counted(control.rounds, 'control round')}"
    )
    print_facts([("observed", seen), ("doing nothing", alone)])
    click.echo()
    click.echo("what the model says" if causal else "what the policy says, which keeps averages and no model")
    best, loss, gap = told.probability_best, told.expected_loss, told.gap
    doubts, stop = told.doubts and ["something speaks against it, see the notes"], None
    if gap is not None and within is not None:
        stop = stop_words(may_stop(told, within), gap, told.more_rounds, doubts, within, delta)
    print_facts(
        [
            ("set", values(told.do)),
            (f"estimated E[{target}]", estimated(told.value, told.interval)),
            ("doing nothing", told.nothing and estimated(*told.nothing)),
            ("uplift", told.uplift and estimated(*told.uplift, sign="+")),
            ("each interval", told.interval_words),
            ("best allowed set", best is not None and f"with probability {chance(best)}"),
            ("expected loss", loss is not None and f"{loss:.3g} if another set is best"),
            ("gap", gap is not None and gap_words(gap, delta)),
            ("may stop", stop),
            ("the model", causal and told.verdict and _VERDICTS[told.verdict]),
        ]
    )
    for words in lever_words(told, target):
        say(f"  {words}")
    for warning in told.warnings:
        say(f"  note: {warning}")
    proof = told.guaranteed
    if proof is not None:
        click.echo()
        say(f"what is guaranteed, with {percent(delta)}, at every look, as far as the graph is right")
        uplift = proof.uplift if told.do else None
        rows = [(f"E[{target}]", proof.interval), ("doing nothing", proof.nothing), ("uplift", uplift)]
        facts: list[Fact] = [(what, interval and span(interval, decimals(interval))) for what, interval in rows]
        print_facts([*facts, ("gap", proof.gap is not None and gap_words(proof.gap, delta))])


def print_observed(target: str, observed: BestObserved | None) -> None:
    click.echo("what the data alone say, without any model")
    if observed is None:
        print_facts([("set", f"no answer: no round with an allowed set has seen {target} yet")])
        return
    mean, rounds = observed_words(observed.mean, observed.interval), f"{observed.rounds:,}"
    print_facts([("set", values(observed.do)), (f"mean of {target}", mean), ("rounds with this set", rounds)])


def observed_words(mean: float, interval: Sequence[float]) -> str:
    """The mean of some rounds, with its interval."""
    return estimated(mean, interval, ", 95% confidence, valid at every look")


def print_explanation(target: str, told: Explanation, words: str) -> None:
    """words: what its interval promises."""
    say(f"trial {told.number}: set {values(told.do, 'nothing, only observe')}")
    places = decimals(told.interval)
    rows: list[Fact] = [
        ("context", told.context and values(told.context)),
        ("why", told.why),
        ("known by then", f"{counted(told.rounds, 'round')}; {counted(told.pending, 'other trial')} under way"),
        (f"estimated E[{target}]", estimated(told.predicted, told.interval, f"; {words}")),
    ]
    if told.bonus is not None and told.optimistic is not None and math.isfinite(told.bonus):
        beyond = "; above 1: too little is known to bound it" if told.optimistic > 1.0 else ""
        rows.append(("with optimism", f"{digits(told.optimistic, places)}  ({fixed(told.bonus, places, '+')}{beyond})"))
    if told.runner_up is not None:
        optimistic, margin = digits(told.runner_up.optimistic, places), told.margin
        how = f"at most {optimistic}"
        if margin is not None:
            alike = len(told.runner_up.do) == len(told.do)  # of equal sets some policies play the largest
            tie = "a tie, broken at random" if alike else "a tie"
            apart = tie if margin == 0 else f"{abs(margin):.3g} {'less' if margin > 0 else 'more'}"
            how = f"{optimistic}, {apart}"
        rows.append(("better one" if margin and margin < 0 else "runner-up", f"{values(told.runner_up.do)}: {how}"))
    print_facts(rows)
    if told.shares:
        places = decimals(*told.shares.values())
        cells = [(name, fixed(share, places, "+")) for name, share in told.shares.items()]
        print_table(["setting", "adds to the estimate"], cells, right=[1])
    if told.paths:
        places, other = decimals(*(path.contribution for path in told.paths)), told.other_paths or 0.0
        ways = [("1 -> " if path.from_bias else "") + " -> ".join(path.names) for path in told.paths]
        paths = [(way, fixed(path.contribution, places, "+")) for way, path in zip(ways, told.paths, strict=True)]
        rest = [("other paths", fixed(other, places, "+"))] if abs(other) >= 0.5 * 0.1**places else []
        print_table(["path (1: by itself)", "adds to the estimate"], paths + rest, right=[1])


def print_estimates(rows: Sequence[EdgeEstimate]) -> None:
    places = decimals(*((row.low, row.high) for row in rows))
    cells = [
        (
            row.cause or "(by itself)",
            row.effect,
            digits(row.value, places),
            span((row.low, row.high), places),
            str(row.rows),
            row.status + (" (outside)" if row.outside else ""),
        )
        for row in rows
    ]
    print_table(["cause", "effect", "weight", "interval", "rounds", "status"], cells, right=[2, 3, 4])
    reach = sorted({round(row.radius, 3) for row in rows})
    if reach:
        far = f"{reach[0]:g}" if len(reach) == 1 else f"{reach[0]:g} to {reach[-1]:g}"
        say(f"an interval {reach_words(far)}")
    forms = {row.effect: row.form for row in rows if row.form and row.cause is not None}
    if forms:
        say("what each looks like by the rounds so far; its weights above are those of a straight line")
        print_facts(forms.items())
    if any(row.outside for row in rows):
        say("(outside): not a weight that the policy takes for granted, shown as the data have it")
