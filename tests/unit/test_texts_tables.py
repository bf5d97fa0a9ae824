"""Tables as text: aligned, wrapped where a screen is narrow, and stacked where it is narrower."""

from dobandit.texts import aligned, columns

HEADINGS = ["set", "value", "why"]
ROWS = [["coupon, email", "0.250", "the largest mean of all that were tried so far"], ["日本", "-0.1", "\x1b[31m"]]


def test_numbers_are_aligned_to_the_right_and_nothing_trails():
    lines = aligned(HEADINGS, ROWS, right=[1])
    assert lines[0] == "set            value  why"
    assert lines[1] == "-" * columns(lines[2])
    assert lines[2] == "coupon, email  0.250  the largest mean of all that were tried so far"
    assert lines[3] == r"日本            -0.1  \x1b[31m"


def test_texts_are_wrapped_and_numbers_are_not():
    lines = aligned(HEADINGS, ROWS, right=[1], width=45)
    assert max(map(columns, lines)) <= 45
    assert any("0.250" in line for line in lines)
    joined = " ".join(line[22:].strip() for line in lines)
    assert "the largest mean of all that were tried so far" in joined


def test_cells_stand_under_each_other_where_wrapping_is_not_enough():
    assert aligned(HEADINGS, ROWS, right=[1], width=22)[:2] == ["set    coupon, email", "value  0.250"]
