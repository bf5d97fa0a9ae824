"""Numbers, names and tables as people read them, and what the regret figure shows."""

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from scipy import stats

from dobandit import paper
from dobandit.policy.yardsticks import Random
from dobandit.report.layers import spread
from dobandit.report.simulation_result import SimulationResult
from dobandit.report.summary import message
from dobandit.report.svg.regret_charts import regret_figure
from dobandit.report.tables import Table
from dobandit.simulation.study import study_of
from dobandit.texts import amount, columns, markdown, percent, printable, shortened, signed
from helpers.reports import NASTY, result_of

# -- numbers and names ------------------------------------------------------------------------------------------------


def test_numbers_as_people_read_them():
    assert [amount(x) for x in (0, 1e-12, 0.0123, 1, 40.44, 99.96, 1234.5, -3.21)] == [
        "0",
        "0",
        "0.012",
        "1.0",
        "40.4",
        "100",
        "1,234",
        "-3.2",
    ]
    assert amount(float("nan")) == "–"
    assert [signed(x) for x in (3.0, -3.0, 0.0)] == ["+3.0", "-3.0", "0"]
    assert [percent(x) for x in (0.0, 0.00001, 0.5, 0.99999, 1.0)] == ["0.0%", "<0.1%", "50.0%", ">99.9%", "100.0%"]


def test_names_are_shortened_and_control_characters_shown():
    assert shortened("x" * 50, 10) == "x" * 9 + "…"
    assert printable("a\x1b[31m\n") == "a\\x1b[31m\\n"
    assert columns("因果") == 4


def test_markdown_takes_names_literally():
    assert markdown("a|b") == r"a\|b"
    assert markdown("*x* _y_ `z` [l](u) <b> &amp;") == r"\*x\* \_y\_ \`z\` \[l\](u) &lt;b&gt; &amp;amp;"


# -- spreading --------------------------------------------------------------------------------------------------------


def test_places_keep_their_distance_and_order():
    rng = np.random.default_rng(1)
    for _ in range(100):
        wanted = np.sort(rng.uniform(0, 100, rng.integers(1, 6))).tolist()
        places = spread(wanted, [15.0] * (len(wanted) - 1), 0.0, 100.0)
        assert all(b - a >= 15 - 1e-9 for a, b in itertools.pairwise(places))
        assert min(places) >= -1e-9
        assert max(places) <= 100 + 1e-9


def test_places_move_no_more_than_they_must():
    assert spread([10, 50, 90], [15, 15], 0, 100) == [10, 50, 90]
    assert spread([50, 50], [10], 0, 100) == [45, 55]
    assert spread([0, 0], [10], 0, 100) == [0, 10]
    assert spread([50] * 3, [100, 100], 0, 100) == [0, 50, 100]
    assert spread([], [], 0, 1) == []


# -- tables -----------------------------------------------------------------------------------------------------------


def test_summary_agrees_with_numpy(usual):
    rows = {row["policy"]: row for row in usual.table()}
    best = usual.all_regret[0, :, -1]
    for i, label in enumerate(usual.labels):
        sample = usual.all_regret[i, :, -1]
        row = rows[label]
        assert row["regret_mean"] == pytest.approx(np.mean(sample))
        assert row["regret_standard_error"] == pytest.approx(np.std(sample, ddof=1) / np.sqrt(40))
        assert list(row["regret_quantiles"].values()) == pytest.approx(np.quantile(sample, [0.05, 0.5, 0.95]))
        assert row["best_set_share"] == pytest.approx(np.mean(usual.best_plays[i]) / 1000)
        assert row["microseconds_per_round"] == pytest.approx(np.median(usual.seconds[i]) / 1000 * 1e6)
        assert row["reward_mean"] == pytest.approx(np.mean(usual.all_reward[i, :, -1]))
        if i == 0:
            assert row["difference_to_best"] is None
        else:
            assert row["difference_to_best"]["mean"] == pytest.approx(np.mean(sample - best))
            assert row["difference_to_best"]["smaller_share"] == pytest.approx(np.mean(sample < best))
        if row["regret_ci95_method"] == "normal":
            quantile = stats.t.ppf(0.975, len(sample) - 1)
            assert row["regret_ci95"][1] - row["regret_mean"] == pytest.approx(
                quantile * row["regret_standard_error"], rel=1e-4
            )


def test_text_is_aligned_and_holds_every_policy(usual):
    text = str(usual)
    lines = text.split("\n")
    assert lines[0] == message(usual)
    table = lines[2 : 4 + len(usual.labels)]
    assert all(any(line.startswith(label) for line in table) for label in usual.labels)
    ends = [len(line) for line in table if not line.endswith("best")]
    assert len(set(ends)) == 1  # the last column is aligned to the right
    assert "common random numbers" in text


def test_a_skewed_sample_is_marked():
    result = result_of({"steady": 10.0, "wild": 20.0})
    wild = result.all_regret[1]
    wild *= np.where(np.arange(40) < 38, 0.1, 30.0)[:, None]
    row = result.table()[1]
    assert row["regret_ci95_method"] == "skewed"
    assert "holds less often" in str(result)
    assert "*" not in str(result_of({"steady": 10.0, "calm": 20.0}))


def test_document_is_plain_json(usual):
    document = json.loads(json.dumps(usual.summary().to_document(), allow_nan=False))
    assert document["budget"] == 2
    assert document["best_set"] == ["X2", "X3"]
    policy = document["policies"]["UCB"]
    assert list(policy["regret_quantiles"]) == ["0.05", "0.5", "0.95"]
    assert policy["regret_ci95"][0] < policy["regret_mean"] < policy["regret_ci95"][1]


def test_markdown_table_has_one_cell_a_column_whatever_the_names():
    result = result_of({name: 10.0 + i for i, name in enumerate(NASTY)})
    text = result.summary().markdown()
    rows = [line for line in text.split("\n") if line.startswith("|")]
    assert len(rows) == 2 + len(NASTY)
    counts = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert len(counts) == 1
    assert "<script" not in text
    assert "\x1b" not in text


def test_a_table_of_the_callers_own():
    text = Table(["Graph", "Ours", "Paper"], [["G1", "39", "39"]], ["As *read off* the plots."]).markdown()
    assert text == "| Graph | Ours | Paper |\n|---|---:|---:|\n| G1 | 39 | 39 |\n\nAs \\*read off\\* the plots.\n"


# -- what the regret figure shows -------------------------------------------------------------------------------------


def test_message(usual):
    assert re.fullmatch(r"G4: BLM-LR loses 1\d rewards in 1,000 rounds, UCB( \(scaled\))? loses 1\d\d", message(usual))
    assert message(result_of({"UCB": 110.0})).startswith("G4: UCB loses 1")
    assert "No clear winner" in message(result_of({"a": 10.0, "b": 10.0}))
    assert "No clear winner" in message(result_of({"a": 0.0, "b": 0.0}))
    assert message(usual, named=False) == message(usual).removeprefix("G4: ")


def test_curves_are_means_with_their_intervals(usual):
    whole, close = regret_figure(usual).panels
    assert list(whole.curves) == list(close.curves) == usual.labels
    ucb, sample = whole.curves["UCB"], usual.regret("UCB")[:, -1]
    assert ucb.rounds[-1] == 1000
    assert ucb.mean[-1] == pytest.approx(sample.mean())
    assert ucb.high[-1] - ucb.low[-1] == pytest.approx(
        2 * stats.t.ppf(0.975, 39) * sample.std(ddof=1) / np.sqrt(40), rel=1e-3
    )
    assert [float(part[0]) for part in whole.curves["BLM-LR"]] == [0.0, 0.0, 0.0, 0.0]
    assert not whole.log
    assert close.log
    assert [label.policy for label in close.labels] == ["BLM-LR", "BLM-OFU"]
    assert close.top < whole.top / 4


def test_curves_are_cut_off_where_they_leave_the_close_up(usual):
    close = regret_figure(usual).panels[1]
    assert close.curves["UCB"].mean[-1] > close.top
    drawing = ElementTree.fromstring(usual.chart().panels[1].wide.svg())
    plot = drawing.find("svg")  # an inner svg shows nothing beyond its sides
    left, top, width, height = map(float, plot.get("viewBox").split())
    assert [float(plot.get(side)) for side in ("x", "y", "width", "height")] == [left, top, width, height]
    assert len(list(plot)) == 2 * len(usual.labels)
    highest = min(float(y) for line in plot for y in re.findall(r",(-?[\d.]+)", line.get("d")))
    assert highest < top
    axis = next(line for line in drawing.iter("line") if line.get("class") == "axis")
    assert (left, left + width) == pytest.approx((float(axis.get("x1")), float(axis.get("x2"))), abs=2)
    assert top + height == pytest.approx(float(axis.get("y1")), abs=2)


@pytest.mark.parametrize("count", [1, 2, 6, 12, 30])
def test_labels_never_overlap_and_no_two_curves_look_alike(count):
    figure = regret_figure(result_of({f"policy {i}": 100.0 + 0.01 * i for i in range(count)}, replications=5))
    for panel in figure.panels:
        pixels = sorted(label.place / panel.top * figure.height for label in panel.labels)
        assert all(b - a > 14 for a, b in itertools.pairwise(pixels))
        assert pixels[0] >= 0
        assert pixels[-1] <= figure.height
    assert len(set(figure.looks.values())) == count


def test_every_number_recorded_is_thinned():
    result = result_of({"UCB": 10.0}, rounds=5000, replications=2)
    study = study_of(paper.G4, {"UCB": Random()}, 5000, 2, 2, record="every")
    curves = np.repeat(np.linspace(0, 10, 5000)[None, None], 2, axis=1)
    counts = (result.best_plays, result.all_plays, result.seconds)
    every = SimulationResult(study, 0.7, ("X2",), curves, curves, *counts, 1.0)
    for panel in regret_figure(every).panels:
        assert len(panel.curves["UCB"].rounds) < 200
        assert panel.curves["UCB"].rounds[-1] == 5000
