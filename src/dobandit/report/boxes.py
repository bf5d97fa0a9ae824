"""The boxes of a graph's picture: their texts and sizes, in pixels."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.bglm import WeightedModel
from dobandit.model.links import identity
from dobandit.report.readable import breadth, columns, fitted, shortened, shortened_apart

MANY_ARROWS, PORT = 6, 11.0  # arrows into a box that stand side by side, and their distance
_LONGEST_NAME = 20
_BOX, _TARGET_BOX, _CHARACTER = 28.0, 40.0, 7.6


class Box(NamedTuple):
    name: str
    text: str
    note: str  # bias and link, a line each
    side: str  # where the note stands: "left", "above" or "below"
    x: float
    y: float
    width: float
    height: float
    kind: str  # "target", "latent", "context", "chosen" or "plain"


def names_in_boxes(graph: CausalGraph) -> dict[str, str]:
    """What stands in the box of each variable: as much of its name as there is room for, told apart from the others."""
    short = shortened_apart(graph.nodes, _LONGEST_NAME)
    return {name: fitted(text, 1.2 * _LONGEST_NAME) for name, text in short.items()}


def box_of(graph: CausalGraph, note: str, name: str, text: str, chosen: Mapping[str, float], down: bool = False) -> Box:
    """A box that has no place yet. Many arrows need a tall box, or a wide one where they come from above (down); notes
    of roots stand where no arrow comes in."""
    arrows = len(graph.parents(name))
    if chosen.get(name, 1.0) != 1.0:
        text += f" = {chosen[name]:g}"
    height = _TARGET_BOX if name == graph.target else _BOX
    width = max(_TARGET_BOX, _CHARACTER * max(columns(text), 1.04 * breadth(text)) + 22.0)
    if arrows >= MANY_ARROWS:
        room = PORT * arrows + 17.0
        width, height = (max(width, room), height) if down else (width, room)
    side = "below" if arrows else "above" if down else "left"
    return Box(name, text, note, side, 0.0, 0.0, width, height, _kind(graph, name, chosen))


def note_of(model: WeightedModel, name: str) -> str:
    """Bias and link of a node."""
    bias = f"bias {model.weights[name]:.3g}" if model.graph.has_bias(name) else ""
    link = "" if model.link(name) == identity else shortened(model.link(name).name, 16)
    return "\n".join(part for part in (bias, link) if part)


def _kind(graph: CausalGraph, name: str, chosen: Container[str]) -> str:
    if name == graph.target:
        return "target"
    if name in graph.context:
        return "context"
    return "latent" if name in graph.latent else "chosen" if name in chosen else "plain"


def note_size(box: Box) -> tuple[float, float]:
    lines = box.note.split("\n") if box.note else []
    return 6.0 * max(map(columns, lines), default=0), 13.0 * len(lines)


def note_place(box: Box) -> tuple[float, float]:
    """The middle of a box's note."""
    width, height = note_size(box)
    if box.side == "left":
        return box.x - box.width / 2 - 6.0 - width / 2, box.y
    away = box.height / 2 + 4.0 + height / 2
    return box.x, box.y - away if box.side == "above" else box.y + away
