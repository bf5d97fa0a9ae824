"""What is drawn for pages: well-formed, harmless whatever the names, and where the picture says it is."""

import itertools
import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from dobandit import UCB, CausalGraph, EpsilonGreedy, Random, paper, simulate
from dobandit.report.graph_layout import picture_of
from dobandit.report.svg.axes import Frame, tick_text, ticks
from dobandit.report.svg.elements import breadth_of, element, number, text_of
from dobandit.report.svg.graph_drawing import Known, graph_panel

NASTY = ["<script>alert(1)</script>", "\"'>&", "a\x1b[31m\n\x00b", "right\u202eleft", "x" * 200]
FUNNEL = CausalGraph(
    [
        cause_and_effect.split()
        for cause_and_effect in (
            "email visit",
            "coupon visit",
            "visit basket",
            "coupon basket",
            "basket buy",
            "email buy",
            "mood buy",
            "weather visit",
        )
    ],
    target="buy",
    latent=["mood"],
    context=["weather"],
)


def parsed(markup):
    return ElementTree.fromstring(f"<div>{markup}</div>")


def test_elements_escape_texts_and_shorten_numbers():
    assert element("a", "x", href='"><b>', class_="k", stroke_width=1.23) == (
        '<a href="&quot;&gt;&lt;b&gt;" class="k" stroke-width="1.2">x</a>'
    )
    assert element("p", x=None, y=2) == '<p y="2"/>'
    assert [number(x) for x in (0.04, -0.04, 3.0, -2.25, math.nan, math.inf)] == ["0", "0", "3", "-2.2", "0", "0"]
    assert text_of("\u202e") == "\\u202e"


@pytest.mark.parametrize("last", [9, 100, 30_005, 99_999, 400_000, 9_000_000])
@pytest.mark.parametrize("width", [350.0, 580.0])
def test_the_words_below_an_axis_are_not_cut_off(width, last):
    frame = Frame(width, 200.0, 0, last, 0.0, 1.0)
    below = [text for text in parsed(frame.axes()).iter("text") if text.get("class") == "tick middle"]
    assert len(below) > 1
    for text in below:
        half = 0.5 * 0.64 * 11 * len(text.text)  # 11 pixels high; a digit is 0.64 as wide in the widest usual font
        assert float(text.get("x")) - half >= 0
        assert float(text.get("x")) + half <= width + 0.1


def test_ticks_are_round_numbers_inside():
    rng = np.random.default_rng(0)
    for _ in range(200):
        low = float(rng.normal() * 10 ** rng.uniform(-3, 5))
        high = low + float(10 ** rng.uniform(-3, 6))
        found = ticks(low, high, 5)
        assert 2 <= len(found) <= 8
        assert min(found) >= low - 1e-6 * (high - low)
        assert max(found) <= high + 1e-6 * (high - low)
        steps = np.diff(found)
        assert np.allclose(steps, steps[0])
        assert f"{steps[0]:.0e}"[0] in "125"
    assert ticks(1.0, 1.0, 5) == [1.0]
    assert ticks(math.nan, 1.0, 5) == []
    assert [tick_text(x) for x in (0.25, 2500, 200_000, 3_000_000)] == ["0.25", "2,500", "200k", "3M"]


def test_a_frame_puts_ends_at_its_sides():
    frame = Frame(200, 100, 1, 1000, 0, 2, log=True)
    assert frame.x(1) == frame.left_room
    assert frame.x(1000) == pytest.approx(200 - frame.right_room)
    assert frame.x(10) - frame.x(1) == pytest.approx(frame.x(100) - frame.x(10))
    assert (frame.y(2), frame.y(0)) == (frame.top_room, 100 - frame.bottom_room)
    parsed(f"<svg>{frame.axes('rounds')}</svg>")


@pytest.mark.parametrize("graph", [FUNNEL, *(model.graph for model in paper.MODELS.values())])
@pytest.mark.parametrize("down", [False, True])
def test_effects_stand_after_their_causes_and_boxes_apart(graph, down):
    picture = picture_of(graph, down=down)
    boxes = {box.name: box for box in picture.boxes}
    for cause, effect in graph.edges:
        a, b = boxes[cause], boxes[effect]
        assert (a.y < b.y) if down else (a.x < b.x)
    for a, b in itertools.combinations(picture.boxes, 2):
        assert abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
    for box in picture.boxes:
        assert box.x - box.width / 2 >= 0
        assert box.x + box.width / 2 <= picture.width
        assert box.y - box.height / 2 >= 0
    for arrow in picture.arrows:
        effect = boxes[arrow.edge[1]]
        across = (arrow.tip[0] - effect.x) / (effect.width / 2 + 2.5)
        along = (arrow.tip[1] - effect.y) / (effect.height / 2 + 2.5)
        assert max(abs(across), abs(along)) == pytest.approx(1.0, abs=0.3)  # it ends at the box's border


def test_arrows_tell_weight_and_doubt_and_link_to_their_numbers():
    weights = {
        ("coupon", "visit"): Known(0.8, 0.75, 0.85),
        ("email", "visit"): Known(0.1, 0.0, 0.95),
        ("visit", "basket"): Known(-0.4, -0.5, -0.3),
    }
    page = parsed(
        graph_panel(FUNNEL, {"coupon": 1}, label="what causes buy", weights=weights, link=lambda x: f"#{x}").markup()
    )
    assert [svg.get("aria-label") for svg in page.iter("svg")] == ["what causes buy"] * 2
    wide = next(page.iter("svg"))
    links = {link.get("aria-label"): link for link in wide.iter("a")}
    assert len(links) == len(FUNNEL) + FUNNEL.edge_count
    strong, weak = links["coupon → visit: 0.80 (0.75 to 0.85)"], links["email → visit: 0.10 (0.00 to 0.95)"]
    width = {
        k: float(link.find("./g/path[@class='line']").get("stroke-width")) for k, link in enumerate((strong, weak))
    }
    fade = [float(link.find("./g").get("opacity")) for link in (strong, weak)]
    assert width[0] > 2 * width[1]
    assert fade[0] > 2 * fade[1]
    assert "harm" in links["visit → basket: -0.40 (-0.50 to -0.30)"].find("./g").get("class")
    assert links["coupon"].find("./g").get("class") == "box chosen"
    assert links["mood"].find("./g").get("class") == "box latent"
    assert links["buy"].get("href") == "#buy"


def test_lit_paths_stand_out():
    lit = {("coupon", "visit"), ("visit", "basket"), ("basket", "buy")}
    page = parsed(graph_panel(FUNNEL, label="x", lit=lit).markup())
    classes = [group.get("class") for group in next(page.iter("svg")).iter("g") if "arrow" in group.get("class")]
    assert sorted(classes) == ["arrow lit"] * 3 + ["arrow unlit"] * (FUNNEL.edge_count - 3)


def test_hostile_names_do_no_harm():
    graph = CausalGraph([(name, "y") for name in NASTY if "\x00" not in name], target="y")
    markup = graph_panel(graph, label=NASTY[0], link=lambda x: NASTY[1]).markup()
    page = parsed(markup)
    assert {tag.tag for tag in page.iter()} == {"div", "svg", "a", "g", "title", "path", "rect", "text"}
    assert "\x1b" not in markup
    assert "\u202e" not in markup
    assert "<script" not in markup


@pytest.mark.parametrize("graph", [FUNNEL, paper.G2.graph, paper.G5.graph])
def test_everything_drawn_is_inside_of_the_drawing(graph):
    page = parsed(graph_panel(graph, label="x").markup())
    for svg in page.iter("svg"):
        width, height = map(float, svg.get("viewBox").split()[2:])
        moved = svg.find("./g[@transform]")
        shift = (0.0, 0.0)
        if moved is not None and moved.get("transform").startswith("translate") and moved.get("class") is None:
            shift = tuple(map(float, re.findall(r"-?[\d.]+", moved.get("transform"))))
        for line in svg.iter("path"):
            if line.get("class") == "line":
                for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", line.get("d")):
                    assert 0 <= float(x) + shift[0] <= width
                    assert 0 <= float(y) + shift[1] <= height


def test_names_at_the_ends_of_curves_stay_within_their_drawing():
    policies = {"BLM-OFU WITH CAPITALS": Random(), "WWWWMMMM": UCB(), "eps-greedy (0.01)": EpsilonGreedy(0.01)}
    for panel in simulate(paper.G4, policies, 40, 2).chart().panels:
        wide = next(parsed(panel.wide.svg()).iter("svg"))
        width = float(wide.get("viewBox").split()[2])
        labels = [text for text in wide.iter("text") if text.get("class") == "label"]
        assert labels
        for label in labels:
            amount, name = label.iter("tspan")
            assert float(label.get("x")) + breadth_of(amount.text, True) + 6.0 + breadth_of(name.text) <= width
