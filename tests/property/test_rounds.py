"""Rounds in the user's words and in the log's: nothing is lost, nothing is made up, and what cannot be is refused."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dobandit import CausalGraph
from dobandit.errors import InterventionError, ObservationError, StorageError
from dobandit.rows.columns import Columns
from helpers.worlds import quietly, relaxed

CHAIN = CausalGraph([("X1", "X2"), ("X2", "Y")], target="Y")
BINARY, SMOOTH = Columns(CHAIN, False, latent=("U",)), Columns(CHAIN, True)

names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5).filter(str.strip)
odd_names = st.one_of(names, st.sampled_from(["do:X", "X", " X", "seen:X", "trial.state", "a,b", 'q"', "n\nr\r", "-0"]))


@st.composite
def some_columns(draw):
    found = draw(st.lists(odd_names, min_size=2, max_size=6, unique=True))
    graph = quietly(CausalGraph, [(name, found[-1]) for name in found[:-1]], target=found[-1])
    return Columns(graph, draw(st.booleans()))


def values(columns):
    floats = st.floats(0.0, 1.0) | st.just(-0.0)
    return st.one_of(st.sampled_from([0, 1, True, False, 0.0, 1.0]), floats if columns.continuous else st.just(1))


@st.composite
def spoken_rounds(draw):
    """(columns, do, observation), all legal."""
    columns = draw(some_columns())
    free = [name for name in columns.names if name != columns.graph.target]
    do = draw(st.dictionaries(st.sampled_from(free), values(columns), max_size=len(free)))
    unset = [name for name in columns.names if name not in do]
    seen = draw(st.dictionaries(st.sampled_from(unset), values(columns), min_size=1, max_size=len(unset)))
    repeated = draw(st.lists(st.sampled_from(list(do)), unique=True)) if do else []
    return columns, do, seen | {name: do[name] for name in repeated}


@relaxed(max_examples=60)
@given(spoken_rounds(), st.sampled_from([None, math.nan, np.float64("nan")]))
def test_what_was_said_is_what_the_log_says(spoken, nothing):
    columns, do, seen = spoken
    done = columns.do_row(do)
    row = columns.observation_row(seen, done)
    together = {**do, **seen}
    assert json.loads(columns.encode(done)) == [do.get(name) for name in columns.names]
    assert json.loads(columns.encode(row)) == [together.get(name) for name in columns.names]
    assert columns.missing(row) == [name for name in columns.names if name not in together]
    assert columns.decode(columns.encode(row)) == together
    assert columns.values(columns.encode(row)) == row

    silent = dict.fromkeys(columns.names, nothing) | seen  # None and NaN say the same as silence
    assert columns.observation_row(silent, done) == row


@relaxed(max_examples=60)
@given(spoken_rounds())
def test_equal_rows_are_written_alike_whatever_the_types(spoken):
    columns, do, seen = spoken
    done = columns.do_row({name: np.float64(value) for name, value in do.items()})
    assert columns.encode(done) == columns.encode(columns.do_row(do))
    row = columns.observation_row(seen, done)
    for kind in (float, np.float64, lambda v: np.bool_(v) if v in (0, 1) else v):
        other = columns.observation_row({name: kind(value) for name, value in seen.items()}, done)
        assert columns.encode(other) == columns.encode(row)
    text = columns.encode(row)
    assert text == json.dumps([None if v is None else int(v) if v in (0, 1) else v for v in row], separators=(",", ":"))


@relaxed(max_examples=60)
@given(st.data())
def test_arrays_are_the_rows_with_the_constant_before(data):
    columns = data.draw(some_columns())
    cell = st.one_of(st.none(), values(columns))
    rows = data.draw(st.lists(st.lists(cell, min_size=len(columns.names), max_size=len(columns.names)), max_size=30))
    found = columns.arrays([columns.encode(row) for row in rows])
    expected = [[1.0, *(math.nan if v is None else float(v) for v in row)] for row in rows]
    np.testing.assert_array_equal(found, np.array(expected).reshape(len(rows), len(columns.names) + 1))


def test_arrays_of_more_rows_than_are_parsed_at_once():
    rng = np.random.default_rng(1)
    wanted = rng.choice([0.0, 1.0, math.nan], size=(45_000, 3))
    texts = [json.dumps([None if math.isnan(v) else int(v) for v in row]) for row in wanted.tolist()]
    np.testing.assert_array_equal(BINARY.arrays(texts)[:, 1:], wanted)


DAMAGED = ["", "[", "[]", "[1,0]", "[1,0,1,1]", "[1,0,1", "1,0,1]", "[1,0,2]", "[1,0,0.5]", "[1,0,-1]", "[1,0,NaN]"]
DAMAGED += [
    '[1,0,"1"]',
    "[1,0,true]",
    "[1,0,[1]]",
    "[[1,0,1]]",
    "null",
    "{}",
    "[1,0,1],[1,0,1]",
    "[1,0,1e400]",
    "[1,,1]",
]
DAMAGED += ["[1,0,1]x", "[1,0,nul]", "[1\n0,1]", "[1,0," + "9" * 5000 + "]", "[" * 100_000, "[1,0,\ud800]", None, 1]


@pytest.mark.parametrize("text", DAMAGED, ids=lambda text: repr(text)[:20])
def test_a_damaged_log_is_refused(text):
    for call in (BINARY.decode, lambda t: BINARY.arrays([t]), lambda t: BINARY.arrays(["[1,0,1]", t, "[null,0,1]"])):
        with pytest.raises(StorageError, match=r"JSON array of 3 values .* restore it"):
            call(text)


def test_damage_in_one_row_is_not_made_good_by_another():
    for texts in (["[1,0", "1]", "[1,0,1],[1,0,1]"], ["[1,0,1,0]", "[1,0]"], ["[1,0,1],[1,0,1]", ""]):
        with pytest.raises(StorageError):
            BINARY.arrays(texts)


def test_any_variable_but_the_target_may_have_been_set():
    graph = CausalGraph([("X1", "X2"), ("X2", "Y")], target="Y", controllable=["X2"])
    assert Columns(graph).do_row({"X1": 0, "X2": True}) == [0, 1, None]
    assert Columns(graph).do_row(iter(["X1"])) == [1, None, None]
    assert Columns(graph).do_row(None) == Columns(graph).do_row({}) == [None, None, None]
    assert SMOOTH.do_row({"X1": 0.25}) == [0.25, None, None]


BAD_DO = [
    ({"Y": 1}, "target"),
    (["Y"], "target"),
    ({"Y": 2}, "target"),
    ({"x1": 1}, "Did you mean 'X1'"),
    ("X1", "string"),
]
BAD_DO += [({"X1": 2}, "0 or 1"), ({"X1": 0.5}, "0 or 1"), ({"X1": "1"}, "number"), ({"X1": None}, "number")]
BAD_DO += [({"X1": math.nan}, "finite"), ({"X1": 10**400}, "finite"), ({"U": 1}, "hidden"), (["U"], "hidden")]
BAD_DO += [
    (3, "list of names"),
    ([["X1"]], "list of names"),
    ([1], "list of names"),
    ({1: 1}, "none"),
    ({"X1": 1j}, "num"),
]


@pytest.mark.parametrize(("do", "message"), BAD_DO)
def test_what_cannot_be_set_is_refused(do, message):
    with pytest.raises(InterventionError, match=message):
        BINARY.do_row(do)


BAD_SEEN = [
    ({"x1": 1}, "Did you mean 'X1'"),
    ({"Q": 1}, "They are 'X1', 'X2', 'Y'"),
    ({"U": 1}, "hidden"),
    ({1: 1}, "none"),
]
BAD_SEEN += [({"Y": bad}, "0 or 1") for bad in (2, -1, 0.5, "1", "", 1j, 10**5000, math.inf, [1], np.array([1]), b"1")]
BAD_SEEN += [({"X1": 0, "Y": 1}, "set to 1 .* been 0"), ({"X1": False, "Y": 1}, "set to 1 .* been 0")]
BAD_SEEN += [({}, "as failed"), ({"X1": 1}, "as failed"), ({"Y": None}, "as failed"), ({"Y": math.nan}, "as failed")]
BAD_SEEN += [(None, "maps names"), ([("Y", 1)], "maps names"), ("Y", "maps names"), ({"Q" * 10**6: 1}, "none")]


@pytest.mark.parametrize(("seen", "message"), BAD_SEEN, ids=lambda case: repr(type(case)))
def test_what_cannot_have_been_seen_is_refused(seen, message):
    with pytest.raises(ObservationError, match=message) as caught:
        BINARY.observation_row(seen, BINARY.do_row({"X1": 1}))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("bad", [1.0000001, -0.1, math.inf, "0.5", 2])
def test_continuous_values_lie_between_0_and_1(bad):
    with pytest.raises(ObservationError, match="from 0 to 1"):
        SMOOTH.observation_row({"Y": bad}, SMOOTH.do_row(None))
    with pytest.raises(InterventionError):
        SMOOTH.do_row({"X1": bad})


def test_reading_a_round_changes_nothing_that_was_given():
    do, seen = {"X1": 1}, {"Y": 1}
    done = BINARY.do_row(do)
    BINARY.observation_row(seen, done)
    BINARY.observation_row({"Y": True}, done)
    assert (do, seen, done) == ({"X1": 1}, {"Y": 1}, [1, None, None])
