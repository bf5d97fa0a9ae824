"""What every policy loses in each of several worlds, in one figure: a bar per policy, a block per world."""

from __future__ import annotations

from collections.abc import Mapping

from dobandit.errors import ReportError
from dobandit.report.curves import COLOURS
from dobandit.report.drawn.bars import Scale, Value, values_panel
from dobandit.report.figures import Figure
from dobandit.simulation.result import StudyResult
from dobandit.texts import amount, counted, headline_amount, shortened


def losses_figure(
    results: Mapping[str, StudyResult], *, title: str | None = None, subtitle: str | None = None
) -> Figure:
    """The regret of every policy at the last round of each study, by the name of its world; `.save("losses.png")`
    writes PNG, SVG, PDF or HTML.

    results          by the name of a world, what `simulate` returned
    title, subtitle  what stands above; default: what the figure says in a sentence, and what the bars are

    >>> import dobandit as dob
    >>> study = dob.simulate(dob.paper.G4, [dob.UCB(), dob.Random()], rounds=20, replications=2, seed=0)
    >>> figure = dob.losses_figure({"G4": study})  # figure.save("losses.png") writes it
    """
    if not isinstance(results, Mapping) or not results:
        raise ReportError("a figure of losses needs studies by the name of their world, at least one.")
    for one in results.values():
        if not isinstance(one, StudyResult):
            raise ReportError(f"a figure of losses is made of what `simulate` returns, but got {type(one).__name__}.")
    said = losses_message(results)
    rows = _rows(results)
    highest = max(row.high for row in rows if isinstance(row, Value))
    scale = Scale(0.0, 1.2 * max(highest, 1e-9), "lost rewards (cumulative regret)")  # with room for the amounts
    above, below = said if title is None else title, _explained(results) if subtitle is None else subtitle
    return Figure(above, below, said, (values_panel(rows, said, scale),))


def losses_message(results: Mapping[str, StudyResult]) -> str:
    """The figure in a sentence: the policy that loses least over all worlds, and what it loses at worst."""
    shared = [
        label for label in next(iter(results.values())).labels if all(label in r.labels for r in results.values())
    ]
    if not shared:
        return "What each policy loses"
    means = {label: {name: _mean(result, label) for name, result in results.items()} for label in shared}
    best = min(shared, key=lambda label: sum(means[label].values()))
    worst = max(means[best], key=means[best].__getitem__)
    where = (
        f", at most {headline_amount(means[best][worst])} in one ({shortened(worst, 40)})" if len(results) > 1 else ""
    )
    total = headline_amount(sum(means[best].values()))
    name, worlds = shortened(best, 40), counted(len(results), "world")
    if len(shared) == 1:
        return f"{name} loses {total} rewards in {worlds}{where}"
    return f"{name} loses least over {worlds}: {total} rewards in all{where}"


def _explained(results: Mapping[str, StudyResult]) -> str:
    rounds, runs = ({getattr(r.study, key) for r in results.values()} for key in ("rounds", "replications"))
    how = f"Mean of {counted(min(runs), 'run')} of {counted(min(rounds), 'round')}"
    more = " or more" if len(rounds) + len(runs) > 2 else ""
    return f"{how}{more} in each world, on common random numbers; line: 95% interval of the mean. Less is better."


def _rows(results: Mapping[str, StudyResult]) -> list[Value | str]:
    labels = list(dict.fromkeys(label for result in results.values() for label in result.labels))
    colours = {label: f"c{i % COLOURS}" for i, label in enumerate(labels)}
    rows: list[Value | str] = []
    for world, result in results.items():
        rows.append(world)
        for label in result.labels:
            summary = result.summary_of(label)
            mean, low, high = (max(end, 0.0) for end in (summary.mean, summary.low, summary.high))
            rows.append(Value(label, mean, low, high, kind=colours[label], bar=amount(summary.mean)))
    return rows


def _mean(result: StudyResult, label: str) -> float:
    return float(result.regret(label)[:, -1].mean())
