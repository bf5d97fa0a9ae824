"""A causal graph as SVG: thick arrows are large weights, faint ones little known; boxes and arrows link to numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dobandit.graph.causal_graph import CausalGraph, Edge
from dobandit.model.bglm import WeightedModel
from dobandit.model.weights import Do
from dobandit.report.figures import Figure
from dobandit.report.graph_layout import Arrow, Box, Picture, note_place, picture_of
from dobandit.report.svg.elements import Drawing, Panel, element, path_through, text_of, words
from dobandit.texts import with_interval

_HEAD = "M0,0L-11,4.6L-8.8,0L-11,-4.6Z"  # its tip is the point it stands at
_FAINTEST = 0.28
_MARGIN = 6.0  # pixels around arrows


class Known(NamedTuple):
    """A weight as it is known."""

    value: float
    low: float
    high: float

    @property
    def share(self) -> float:
        """How much of it is known, from 0 to 1: 1 - the width of its interval."""
        return min(max(1.0 - (self.high - self.low), 0.0), 1.0)


def graph_panel(
    model: WeightedModel | CausalGraph,
    chosen: Do = (),
    *,
    label: str,
    weights: Mapping[Edge, Known] | None = None,
    notes: Mapping[str, str] | None = None,
    lit: Collection[Edge] | None = None,
    link: Callable[[str | Edge], str] | None = None,
) -> Panel:
    """The picture for wide screens, causes on the left, and for narrow ones, causes on top.

    chosen   variables to shade, or what each of them is set to
    weights  of some edges, with their intervals: arrows fade with their width
    lit      the edges that stand out; the others step back
    link     where the numbers of a node or an edge stand, as an address
    """
    values = None if weights is None else {edge: round(known.value, 2) for edge, known in weights.items()}
    look = _Look(label, weights or {}, lit, link)
    return Panel(
        *(look.drawing(picture_of(model, chosen, weights=values, notes=notes, down=down)) for down in (False, True))
    )


def graph_figure(
    model: WeightedModel | CausalGraph, chosen: Do = (), *, title: str | None = None, caption: str | None = None
) -> Figure:
    """The picture of a causal graph, with weights and biases where the model has them.

    chosen   variables to highlight, or what each of them is set to; the best action in most cases
    caption  default: how to read the picture
    """
    graph = model if isinstance(model, CausalGraph) else model.graph
    said = f"The causal graph: what causes {graph.target}" + ("." if model is graph else ", with weights.")
    return Figure(
        f"What causes {graph.target}" if title is None else title,
        _legend(model, picture_of(model, chosen)) if caption is None else caption,
        said,
        (graph_panel(model, chosen, label=said),),
    )


def _legend(model: WeightedModel | CausalGraph, picture: Picture) -> str:
    """How to read a graph's picture."""
    kinds = {box.kind for box in picture.boxes}
    parts = ["Filled: the target."]
    if "chosen" in kinds:
        parts.append("Shaded: the best set.")
    if "latent" in kinds:
        parts.append("Dashed: hidden.")
    if "context" in kinds:
        parts.append("Square: known before acting.")
    if any(arrow.harmful for arrow in picture.arrows):
        parts.append("Red: makes its effect less likely.")
    if picture.weights_shown:
        parts.append("On an arrow: its weight.")
    elif isinstance(model, WeightedModel):
        parts.append("The thicker an arrow, the larger its weight.")
    return " ".join(parts)


@dataclass(frozen=True)
class _Look:
    """How a picture is drawn: what `graph_panel` is told."""

    label: str
    weights: Mapping[Edge, Known]
    lit: Collection[Edge] | None
    link: Callable[[str | Edge], str] | None

    def drawing(self, picture: Picture) -> Drawing:
        arrows = [self._arrow(arrow, picture) for arrow in picture.arrows]
        texts = [self._weight(arrow) for arrow in picture.arrows if arrow.text and picture.weights_shown]
        boxes = [self._box(box) for box in picture.boxes]
        # Arrows may bend around the outermost boxes.
        across, along = ([x for arrow in picture.arrows for x in arrow.points[:, k].tolist()] for k in (0, 1))
        left, top = min([0.0, *(x - _MARGIN for x in across)]), min([0.0, *(y - _MARGIN for y in along)])
        width = max([picture.width, *(x + _MARGIN for x in across)]) - left
        height = max([picture.height + 4.0, *(y + _MARGIN for y in along)]) - top
        content = "".join([*arrows, *texts, *boxes])
        if left or top:
            content = element("g", content, transform=f"translate({-left:.1f} {-top:.1f})")
        return Drawing(width, height, content, self.label, "graph", self.link is not None, 0.62)

    def _classes(self, arrow: Arrow) -> str:
        harm = " harm" if arrow.harmful else ""
        return harm if self.lit is None else f"{harm} lit" if arrow.edge in self.lit else f"{harm} unlit"

    def _linked(self, group: str, to: str | Edge, said: str) -> str:
        return element("a", group, href=self.link(to), aria_label=said) if self.link else group

    def _arrow(self, arrow: Arrow, picture: Picture) -> str:
        known = self.weights.get(arrow.edge)
        weighted = any(other.text for other in picture.arrows)
        thickness = 0.9 + 3.6 * arrow.strength if weighted else 1.4
        fade = None if known is None else f"{_FAINTEST + (1.0 - _FAINTEST) * known.share:.2f}"
        place = f"translate({arrow.tip[0]:.1f} {arrow.tip[1]:.1f}) rotate({arrow.angle:.1f})"
        line = path_through((x, y) for x, y in arrow.points.tolist())
        said = f"{arrow.edge[0]} → {arrow.edge[1]}"
        if known is not None:
            said += f": {with_interval(known.value, known.low, known.high, 2)}"
        content = (
            element("title", text_of(said))
            + (element("path", class_="touch", d=line) if self.link else "")
            + element("path", class_="line", d=line, stroke_width=thickness)
            + element("path", class_="head", d=_HEAD, transform=place)
        )
        group = element("g", content, class_=f"arrow{self._classes(arrow)}", opacity=fade)
        return self._linked(group, arrow.edge, said)

    def _weight(self, arrow: Arrow) -> str:
        x, y = arrow.text_at
        return words(x, y + 4.0, arrow.text, class_=f"weight{self._classes(arrow)}")

    def _box(self, box: Box) -> str:
        corner = 3.0 if box.kind == "context" else min(20.0, box.height / 2)
        left, top = box.x - box.width / 2, box.y - box.height / 2
        shape = element("rect", x=left, y=top, width=box.width, height=box.height, rx=corner)
        content = element("title", text_of(box.name)) + shape + words(box.x, box.y + 4.5, box.text, class_="name")
        if box.note:
            x, y = note_place(box)
            lines = box.note.split("\n")
            top = y - 6.5 * len(lines)
            content += "".join(words(x, top + 13.0 * k + 10.0, line, class_="note") for k, line in enumerate(lines))
        return self._linked(element("g", content, class_=f"box {box.kind}"), box.name, box.name)
