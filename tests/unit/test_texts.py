"""What users, files and databases give is shown by messages, never obeyed, and never at full length."""

import time

import pytest

from dobandit.errors import DobanditError, ModelError, ParseError
from dobandit.texts import message, printable


@pytest.mark.parametrize("odd", ["\x00", "\x1b[31m", "\x7f", "\x9b", "\u202e", "\ufffe", "\uffff", "\ud800", "\u2028"])
def test_what_a_terminal_would_obey_is_shown(odd):
    assert printable(f"a{odd}ä").isprintable()
    assert printable(f"a{odd}ä").startswith("a\\")
    assert str(DobanditError(f"got {odd}")).isprintable()


def test_lines_of_a_message_stay_lines():
    assert str(ModelError("one\ntwo \x1b")) == "one\ntwo \\x1b"


@pytest.mark.parametrize(
    "came", ["9" * 4000, repr("a b " * 1000), '"' + 'x \\" y' * 900 + '"', "/".join(["folder"] * 500)]
)
def test_a_message_repeats_some_200_characters_of_what_came(came):
    text = message(f"a number is short, but got {came}. Shorten it.")
    assert text.startswith("a number is short, but got ")
    assert text.endswith("Shorten it.")
    assert 200 <= len(text) < 260


def test_a_message_without_end_keeps_its_rule_and_its_way_out():
    text = str(ParseError("the rule: " + "word " * 10_000 + "the way out.", source="file.txt"))
    assert text.startswith("file.txt: the rule")
    assert text.endswith("the way out.")
    assert len(text) < 2100


def test_apostrophes_are_no_quotations():
    said = "the policy's own rules, which its author's notes explain at length, " * 6
    assert message(said) == said


def test_long_texts_are_read_once():
    start = time.perf_counter()
    for said in (
        "got [" * 20_000,
        "'" * 50_000,
        "([{" * 20_000,
        "[']" * 20_000,
        "a(" * 50_000,
        "a" * 100_000,
        "' a" * 30_000,
    ):
        assert len(message(said)) <= 2100
    assert time.perf_counter() - start < 5.0
