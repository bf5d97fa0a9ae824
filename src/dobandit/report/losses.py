"""What every policy loses in each of several worlds, in one figure: a bar per policy, a block per world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dobandit.errors import ReportError
from dobandit.report.charts import INK, SOFT, finished
from dobandit.report.curves import COLOURS
from dobandit.report.figures import Figure, altair
from dobandit.simulation.result import StudyResult
from dobandit.texts import amount, counted, headline_amount, shortened, shortened_apart

_ROW, _GAP, _WIDTH, _LONGEST = 19, 34, 460, 30  # pixels, and characters of a name


def losses_figure(
    results: Mapping[str, StudyResult], *, title: str | None = None, subtitle: str | None = None
) -> Figure:
    """The regret of every policy at the last round of each study, by the name of its world; `.save("losses.png")`
    writes PNG, SVG, PDF, HTML or JSON.

    results          by the name of a world, what `simulate` returned
    title, subtitle  what stands above; default: what the figure says in a sentence, and what the bars are

    >>> import dobandit as dob
    >>> study = dob.simulate(dob.paper.G4, [dob.UCB(), dob.Random()], rounds=20, replications=2, seed=0)
    >>> figure = dob.losses_figure({"G4": study})  # figure.save("losses.png") writes it
    """
    return Figure(losses_chart(results, title=title, subtitle=subtitle))


def losses_chart(results: Mapping[str, StudyResult], *, title: str | None = None, subtitle: str | None = None) -> Any:
    if not isinstance(results, Mapping) or not results:
        raise ReportError("a figure of losses needs studies by the name of their world, at least one.")
    for one in results.values():
        if not isinstance(one, StudyResult):
            raise ReportError(f"a figure of losses is made of what `simulate` returns, but got {type(one).__name__}.")
    alt = altair()
    bars, headings, height = _places(results)
    # Room for the amounts at the right.
    x = alt.Scale(domain=[0, 1.12 * max(max(bar["high"] for bar in bars), 1e-9)], nice=False)
    y = {"scale": alt.Scale(domain=[height, 0], nice=False), "axis": None}
    axis = alt.Axis(title="Lost rewards (cumulative regret)", format=",~r", tickCount=5, domain=False, ticks=False)
    base, at = alt.Chart(alt.InlineData(values=bars)), alt.Y("y:Q", **y)
    colour = alt.Color("colour:N", scale=None)
    bar = base.mark_rule(strokeWidth=11, opacity=0.85).encode(
        x=alt.X("zero:Q", scale=x, axis=axis), x2=alt.X2("mean:Q"), y=at, color=colour
    )
    interval = base.mark_rule(strokeWidth=1.5, color=INK).encode(x=alt.X("low:Q", scale=x), x2=alt.X2("high:Q"), y=at)
    text = {"baseline": "middle", "fontSize": 12, "color": INK}
    name = base.mark_text(align="right", **text).encode(x=alt.XValue(-8), y=at, text=alt.Text("name:N"))
    lost = base.mark_text(align="left", dx=6, fontWeight="bold", **text).encode(
        x=alt.X("high:Q", scale=x), y=at, text=alt.Text("amount:N")
    )
    head = alt.Chart(alt.InlineData(values=headings)).mark_text(
        align="left", baseline="middle", fontSize=13, color=SOFT
    )
    head = head.encode(x=alt.XValue(0), y=alt.Y("y:Q", **y), text=alt.Text("text:N"))
    chart = alt.layer(bar, interval, name, lost, head, width=_WIDTH, height=height)
    above = losses_message(results) if title is None else title
    return finished(alt, chart, above, _explained(results) if subtitle is None else subtitle, 92)


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


def _places(results: Mapping[str, StudyResult]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
    labels = list(dict.fromkeys(label for result in results.values() for label in result.labels))
    colours = {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(labels)}
    short = shortened_apart(labels, _LONGEST)
    bars, headings, y = [], [], 0.0
    for world, result in results.items():
        headings.append({"y": y + 0.62 * _GAP, "text": shortened(world, 70)})
        y += _GAP + _ROW / 2
        for label in result.labels:
            summary = result.summary_of(label)
            bars.append(
                {
                    "y": y,
                    "name": short[label],
                    "zero": 0,
                    "mean": max(summary.mean, 0.0),
                    "low": max(summary.low, 0.0),
                    "high": max(summary.high, 0.0),
                    "amount": amount(summary.mean),
                    "colour": colours[label],
                }
            )
            y += _ROW
        y -= _ROW / 2
    return bars, headings, y + 6


def _mean(result: StudyResult, label: str) -> float:
    return float(result.regret(label)[:, -1].mean())
