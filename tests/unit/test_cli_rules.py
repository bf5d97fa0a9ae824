"""The options that say which actions are allowed, as people write them."""

import json

import click
import pytest
from click.testing import CliRunner

import dobandit as dob
from dobandit.cli.main import cli
from dobandit.cli.options import rule_options, rule_words
from dobandit.errors import InterventionError
from dobandit.oracle.rules import rules_of


@click.command()
@rule_options
def spoken(**given):
    words = rule_words(given)
    rules = rules_of(words.pop("budget"), words)
    click.echo(json.dumps(rules.to_document() | {"words": sorted(words)}))


def said(*arguments):
    result = CliRunner().invoke(spoken, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_nothing_said_is_nothing_given():
    document = said()
    assert document["budget"] is None
    assert document["words"] == []


def test_every_rule_is_read():
    document = said(
        *("-k", "2", "--lever", "price=0,1", "--lever", "a=b=0.5", "--cost", "price=2", "--total-cost", "3"),
        *("--require", "x", "--forbid", "y", "--exclusive", "u, v", "--smaller"),
        *("--available", "price", "--available", "x"),
    )
    assert document["available"] == ["price", "x"]
    assert document["levers"] == {"price": [0, 1], "a=b": [0.5]}
    assert (document["costs"], document["total_cost"]) == ({"price": 2}, 3)
    assert (document["require"], document["forbid"], document["exclusive"]) == (["x"], ["y"], [["u", "v"]])
    assert document["smaller"] is True
    assert said("-k", "1", "--full-size")["smaller"] is False


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--lever", "price"], "--lever takes NAME=VALUE"),
        (["--lever", "price="], "--lever takes NAME=VALUE"),
        (["--lever", "price=a"], "--lever takes NAME=VALUE"),
        (["--lever", "p=0", "--lever", "p=1"], "given twice"),
        (["--lever", "p=2"], "from 0 to 1"),
        (["--cost", "p=1,2"], "--cost takes NAME=COST"),
        (["--cost", "p=1", "--cost", "p=1"], "given twice"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(arguments, says):
    with pytest.raises(InterventionError, match=says):
        CliRunner().invoke(spoken, arguments, catch_exceptions=False)


@pytest.fixture
def file(tmp_path):
    dob.paper.G1.save(tmp_path / "g1.json")
    return str(tmp_path / "g1.json")


def test_solve_prints_what_to_set_and_to_what(file):
    arguments = ["solve", file, "-k", "2", "--lever", "X3=0", "--require", "X3", "--top", "2"]
    document = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).output)
    assert (document["set"], document["do"]) == (["X3", "X5"], {"X3": 0, "X5": 1})
    assert document["top"][0]["do"] == document["do"]
    text = CliRunner().invoke(cli, arguments).output
    assert "X3 = 0, X5" in text
    assert "at most 2" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-k", "2"], "exactly 2 were looked at, because one more variable never lowers"),
        (["-k", "2", "--smaller"], "at most 2, nothing included, were looked at, because smaller ones count, as was"),
        (["-k", "2", "--full-size"], "exactly 2 were looked at, because smaller ones were ruled out"),
        (["-k", "2", "--lever", "X3=0,1"], "at most 2, nothing included, were looked at, because variables can be"),
        (["--total-cost", "2"], "at most 2, nothing included, were looked at, because the rules"),
        (["--total-cost", "2", "--full-size"], "to which nothing can be added were looked at"),
    ],
)
def test_solve_says_which_sizes_it_looked_at_and_why(file, arguments, says):
    assert says in " ".join(CliRunner().invoke(cli, ["solve", file, *arguments]).output.split())


def test_solve_says_that_its_time_is_over_and_how_to_go_on(tmp_path):
    model = dob.random_model("erdos-renyi", 24, seed=1, link="exponential")
    model.save(tmp_path / "model.json")
    arguments = ["solve", str(tmp_path / "model.json"), "-k", "4", "--oracle", "exhaustive", "--time-limit", "0.01"]
    document = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).output)
    assert (document["status"], document["stopped"]) == ("approximate", True)
    assert document["value"] <= document["bound"] <= 1.0
    text = " ".join(CliRunner().invoke(cli, arguments).output.split())
    assert "no set is worth more than" in text
    assert "Stopped at the time limit of 0.01 s" in text
    assert "--time-limit 0.1" in text


def test_a_limit_of_0_is_none(file):
    document = json.loads(CliRunner().invoke(cli, ["solve", file, "-k", "2", "--time-limit", "0", "--json"]).output)
    assert (document["status"], document["stopped"]) == ("optimal", False)
