"""Charts: the regret of a study and the picture of a graph, as Altair charts. What they show is computed elsewhere."""

from __future__ import annotations

import textwrap
from typing import Any

from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.bglm import WeightedModel
from dobandit.model.weights import Do
from dobandit.report.curves import Panel, RegretFigure, regret_figure
from dobandit.report.figures import altair, save_chart
from dobandit.report.picture import Box, Picture, note_place, picture_of
from dobandit.simulation.result import StudyResult

__all__ = ["graph_chart", "regret_chart", "save_chart"]

INK, SOFT, GRID = "#1a1a1a", "#595959", "#e4e4e4"
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"
_TARGET, _CHOSEN, _CONTEXT, _HARM = "#004488", "#ffd9a0", "#e8eef6", "#a3231f"
_HALO = {"stroke": "white", "strokeWidth": 6, "strokeJoin": "round", "color": "white"}
_BOX_STYLES: dict[str, dict[str, Any]] = {
    "plain": {"fill": "white", "stroke": SOFT, "strokeWidth": 1.5, "cornerRadius": 14},
    "chosen": {"fill": _CHOSEN, "stroke": INK, "strokeWidth": 2.0, "cornerRadius": 14},
    "latent": {"fill": "white", "stroke": SOFT, "strokeWidth": 1.5, "cornerRadius": 14, "strokeDash": [4, 3]},
    "context": {"fill": _CONTEXT, "stroke": SOFT, "strokeWidth": 1.5, "cornerRadius": 0},
    "target": {"fill": _TARGET, "stroke": _TARGET, "strokeWidth": 1.5, "cornerRadius": 20},
}
_ARROW_HEAD = "M0,0L-1,0.42L-0.8,0L-1,-0.42Z"  # its tip is the point it stands at


def regret_chart(result: StudyResult, *, title: str | None = None, subtitle: str | None = None) -> Any:
    """Cumulative expected regret of every policy: the whole run, and the lowest curves from the first round on.

    The title is the study's message unless one is given; "" leaves it out.
    """
    alt = altair()
    figure = regret_figure(result, title=title, subtitle=subtitle)
    wide = len(figure.panels) == 1
    widths = [620] if wide else [400, 340]
    panels = [_panel(alt, figure, number, width) for number, width in enumerate(widths)]
    chart = panels[0] if wide else alt.hconcat(*panels, spacing=34)
    finished(alt, chart, figure.title, figure.subtitle, 86 if wide else 120)
    # Rows go in last, by name: Altair would copy and check them at every step.
    chart.datasets = {f"curves{i}": panel.rows for i, panel in enumerate(figure.panels)}
    return chart


def _panel(alt: Any, figure: RegretFigure, number: int, width: int) -> Any:
    panel = figure.panels[number]
    scale = alt.Scale(type="log" if panel.log else "linear", domain=[panel.first, panel.last], nice=False)
    tens = [10**k for k in range(12) if panel.first <= 10**k <= panel.last]
    ticks = {"values": tens} if panel.log and len(tens) > 1 else {"tickCount": 5, "tickMinStep": 1}
    x = alt.X("round:Q", scale=scale, axis=alt.Axis(title="Round", format=",~r", grid=False, labelFlush=False, **ticks))
    height = {
        "scale": alt.Scale(domain=[0, panel.top], nice=False),
        "axis": alt.Axis(title=None, format=",~r", tickCount=5, domain=False, ticks=False),
    }
    colour = alt.Color("policy:N", legend=None, scale=alt.Scale(domain=figure.policies, range=figure.colours))
    dash = alt.StrokeDash("policy:N", legend=None, scale=alt.Scale(domain=figure.policies, range=figure.dashes))
    curves = alt.Chart(alt.NamedData(f"curves{number}"))
    band = curves.mark_area(fillOpacity=0.16).encode(x=x, y=alt.Y("low:Q", **height), y2=alt.Y2("high:Q"), color=colour)
    line = curves.mark_line(strokeWidth=2).encode(x=x, y=alt.Y("mean:Q", **height), color=colour, strokeDash=dash)
    heading = alt.Chart(alt.InlineData(values=[{}])).mark_text(align="left", fontSize=13, color=INK)
    heading = heading.encode(x=alt.XValue(0), y=alt.YValue(-22), text=alt.TextValue(panel.title))
    labels = _end_labels(alt, panel, height, width, colour, dash)
    return alt.layer(band, line, heading, *labels, width=width, height=figure.height)


def _end_labels(alt: Any, panel: Panel, height: dict[str, Any], width: int, colour: Any, dash: Any) -> tuple[Any, ...]:
    """Names at the line ends; a piece of each line leads to its name, so that colour and dash need no legend."""
    base = alt.Chart(alt.InlineData(values=[label._asdict() for label in panel.labels]))
    place = alt.Y("place:Q", **height)
    ends = alt.Y("at:Q", **height)
    left = width + 44
    middle = left + 7.2 * max(len(label.amount) for label in panel.labels)
    leader = base.mark_rule(strokeWidth=1).encode(
        x=alt.XValue(width + 1), x2=alt.X2Value(width + 12), y=ends, y2=alt.Y2("place:Q"), color=colour
    )
    sample = base.mark_rule(strokeWidth=2).encode(
        x=alt.XValue(width + 12), x2=alt.X2Value(width + 40), y=place, color=colour, strokeDash=dash
    )
    text = {"baseline": "middle", "fontSize": 12, "color": INK}
    amount = base.mark_text(align="right", fontWeight="bold", **text).encode(
        x=alt.XValue(middle), y=place, text=alt.Text("amount:N")
    )
    name = base.mark_text(align="left", **text).encode(x=alt.XValue(middle + 6), y=place, text=alt.Text("name:N"))
    return leader, sample, amount, name


def graph_chart(
    model: WeightedModel | CausalGraph,
    *,
    chosen: Do = (),
    title: str | None = None,
    subtitle: str | None = None,
) -> Any:
    """The picture of a causal graph, causes on the left; with weights and biases where the model has them.

    chosen: variables to highlight, or what each of them is set to; the best action in most cases.
    """
    alt = altair()
    picture = picture_of(model, chosen)
    graph = model if isinstance(model, CausalGraph) else model.graph
    x = {"scale": alt.Scale(domain=[0, picture.width], nice=False), "axis": None}
    y = {"scale": alt.Scale(domain=[picture.height, 0], nice=False), "axis": None}
    layers = [*_arrow_layers(alt, picture, x, y), *_box_layers(alt, picture, x, y)]
    chart = alt.layer(*layers, width=picture.width, height=picture.height)
    heading = f"What causes {graph.target}" if title is None else title
    legend = graph_legend(model, picture) if subtitle is None else subtitle
    return finished(alt, chart, heading, legend, max(36, int(picture.width / 7.6)))


def _arrow_layers(alt: Any, picture: Picture, x: dict[str, Any], y: dict[str, Any]) -> list[Any]:
    points, heads, texts = [], [], []
    for number, arrow in enumerate(picture.arrows):
        line, head = (_HARM, _HARM) if arrow.harmful else ("#8a8a8a", "#5a5a5a")
        look = {"thickness": 0.8 + 2.0 * arrow.strength if arrow.text else 1.2, "line": line}
        points += [
            {"edge": number, "order": k, "x": round(px, 1), "y": round(py, 1), **look}
            for k, (px, py) in enumerate(arrow.points.tolist())
        ]
        across, down = (round(place, 1) for place in arrow.tip)
        heads.append({"x": across, "y": down, "angle": round(arrow.angle, 1), "tip": head})
        texts.append({"x": arrow.text_at[0], "y": arrow.text_at[1], "text": arrow.text})
    where = {"x": alt.X("x:Q", **x), "y": alt.Y("y:Q", **y)}
    lines = alt.Chart(alt.InlineData(values=points)).mark_line()
    width = alt.StrokeWidth("thickness:Q", scale=None)
    tips = alt.Chart(alt.InlineData(values=heads)).mark_point(shape=_ARROW_HEAD, size=480, filled=True, opacity=1)
    layers = [
        lines.encode(
            **where,
            detail=alt.Detail("edge:N"),
            order=alt.Order("order:Q"),
            strokeWidth=width,
            color=alt.Color("line:N", scale=None),
        ),
        tips.encode(**where, angle=alt.Angle("angle:Q", scale=None), color=alt.Color("tip:N", scale=None)),
    ]
    if picture.weights_shown:
        base = alt.Chart(alt.InlineData(values=texts)).encode(**where, text=alt.Text("text:N"))
        layers += [base.mark_text(fontSize=12, **_HALO), base.mark_text(fontSize=12, color=INK)]
    return layers


def _box_layers(alt: Any, picture: Picture, x: dict[str, Any], y: dict[str, Any]) -> list[Any]:
    layers = []
    for kind, style in _BOX_STYLES.items():
        rows = [_box_row(box) for box in picture.boxes if box.kind == kind]
        if not rows:
            continue
        base = alt.Chart(alt.InlineData(values=rows))
        sides = {"x": alt.X("left:Q", **x), "x2": alt.X2("right:Q"), "y": alt.Y("top:Q", **y), "y2": alt.Y2("bottom:Q")}
        ink = {"color": "white" if kind == "target" else INK, "fontWeight": "bold", "fontSize": 13}
        slant = {"fontStyle": "italic"} if kind == "latent" else {}
        layers += [
            base.mark_rect(opacity=1, **style).encode(**sides),
            base.mark_text(**ink, **slant).encode(x=alt.X("x:Q", **x), y=alt.Y("y:Q", **y), text=alt.Text("text:N")),
        ]
        if any(row["note"] for row in rows):
            note = base.encode(x=alt.X("note_x:Q", **x), y=alt.Y("note_y:Q", **y), text=alt.Text("note:N"))
            text = {"fontSize": 11, "lineBreak": "\n", "lineHeight": 13, "baseline": "line-top"}
            layers += [note.mark_text(**text, **_HALO), note.mark_text(**text, color=SOFT)]
    return layers


def _box_row(box: Box) -> dict[str, Any]:
    note_x, note_y = note_place(box)
    return {
        "x": box.x,
        "y": box.y,
        "left": box.x - box.width / 2,
        "right": box.x + box.width / 2,
        "top": box.y - box.height / 2,
        "bottom": box.y + box.height / 2,
        "text": box.text,
        "note": box.note,
        "note_x": note_x,
        "note_y": note_y - 6.5 * (box.note.count("\n") + 1),
    }


def graph_legend(model: WeightedModel | CausalGraph, picture: Picture) -> str:
    """How to read a graph's picture."""
    graph = model if isinstance(model, CausalGraph) else model.graph
    parts = ["Filled: the target."]
    if any(box.kind == "chosen" for box in picture.boxes):
        parts.append("Shaded: the best set.")
    if graph.latent:
        parts.append("Dashed: hidden.")
    if graph.context:
        parts.append("Square: known before acting.")
    if any(arrow.harmful for arrow in picture.arrows):
        parts.append("Red: makes its effect less likely.")
    if isinstance(model, WeightedModel):
        parts.append(
            "On an arrow: its weight." if picture.weights_shown else "The thicker an arrow, the larger its weight."
        )
    return " ".join(parts)


def finished(alt: Any, chart: Any, title: str, subtitle: str, characters: int) -> Any:
    """The chart with its title and the house style; `characters` of plain text fit its width in any font."""
    lines, sublines = textwrap.wrap(title, int(0.75 * characters)), textwrap.wrap(subtitle, int(1.15 * characters))
    heading = alt.TitleParams(
        lines or sublines,
        subtitle=sublines if lines else [],
        anchor="start",
        fontSize=18 if lines else 13,
        fontWeight="bold" if lines else "normal",
        color=INK if lines else SOFT,
        subtitleFontSize=13,
        subtitleColor=SOFT,
        subtitlePadding=6,
        offset=18 if lines else 10,
    )
    # Set one by one, without Altair's methods, each of which would copy the whole chart.
    chart.title, chart.padding, chart.background = heading, 16, "white"
    axis = alt.AxisConfig(
        gridColor=GRID,
        domainColor=SOFT,
        tickColor=SOFT,
        labelColor=SOFT,
        titleColor=SOFT,
        labelFontSize=12,
        titleFontSize=12,
        titleFontWeight="normal",
        labelPadding=6,
    )
    chart.config = alt.Config(font=FONT, aria=False, view=alt.ViewConfig(stroke=None), axis=axis)
    return chart
