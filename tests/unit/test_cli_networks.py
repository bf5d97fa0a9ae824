"""Commands that read networks: BIF with tables, states and their ways out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import dobandit as dob
from dobandit.cli.main import cli
from dobandit.errors import DobanditError
from dobandit.texts import for_commands
from helpers.networks import random_tables

ASIA = str(Path(__file__).parents[1] / "fixtures/networks/asia.bif")
pytestmark = pytest.mark.filterwarnings("ignore::dobandit.errors.DobanditWarning")  # xray cannot matter


def answer(*arguments):
    done = CliRunner().invoke(cli, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


@pytest.fixture
def many(tmp_path):
    path = tmp_path / "many.bif.gz"
    dob.Network(*random_tables(0)).save(path)
    return path


def test_a_bif_file_is_a_model():
    assert answer("expect", ASIA, "--target", "dysp", "--do", "tub=1")["means"]["dysp"] == pytest.approx(0.79)
    roles = ["--target", "dysp", "--controllable", "smoke", "--controllable", "tub"]
    assert answer("solve", ASIA, *roles, "-k", "1")["do"] == {"tub": 1}


def test_check_says_what_1_means():
    report = answer("check", ASIA, "--target", "dysp", "-k", "2")
    assert (report["kind"], report["ones"]["smoke"]) == ("model", ["yes"])
    shown = CliRunner().invoke(cli, ["check", ASIA, "--target", "dysp"]).output
    assert "1 means" in shown
    assert answer("check", ASIA, "--target", "dysp", "--structure-only")["kind"] == "graph"


def test_more_than_two_states_have_their_ways_out(many):
    with pytest.raises(DobanditError, match="3 states") as refused:
        answer("expect", many, "--target", "V5")
    said = for_commands(refused.value.marked)
    assert "count as 1, --binarise V0=s2" in said
    assert said.endswith("that are not named, --binarise-rest last.")  # the command has no --structure-only
    with pytest.raises(DobanditError, match="3 states") as refused:
        answer("check", many, "--target", "V5")
    assert for_commands(refused.value.marked).endswith("where the graph alone is wanted, --structure-only.")
    net = dob.Network.from_file(many)
    said = [f"{name}={states[-1]},{states[0]}" for name, states in net.states.items() if len(states) > 2]
    options = [part for pair in said for part in ("--binarise", pair)]
    report = answer("check", many, "--target", "V5", *options)
    assert report["nodes"] == 6
    assert set(report["hidden_states"].values()) <= set(net.states)
    assert answer("check", many, "--target", "V5", "--structure-only")["nodes"] == 6
    assert 0 < answer("expect", many, "--target", "V5", *options)["means"]["V5"] < 1


def test_the_rest_of_the_variables_take_their_last_state(many):
    net = dob.Network.from_file(many)
    last = [f"{name}={states[-1]}" for name, states in net.states.items() if len(states) > 2]
    one_by_one = [part for pair in last for part in ("--binarise", pair)]
    asked = ["expect", many, "--target", "V5"]
    assert answer(*asked, "--binarise-rest", "last") == answer(*asked, *one_by_one)
    assert answer("check", many, "--target", "V5", "--binarise-rest", "first")["ones"]["V0"] == ["s0"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--binarise", "V1"], "NAME=STATE"),
        (["--binarise", "V1=s0", "--binarise", "V1=s1"], "given twice"),
        (["--binarise", "V0=x"], "names states"),
        (["--binarise", 'V0="s0, s1",s2'], "names states .* but got 's0, s1'"),
    ],
)
def test_wrong_options_are_refused(many, options, said):
    with pytest.raises(DobanditError, match=said):
        answer("expect", many, "--target", "V5", *options)


def test_a_model_file_says_its_roles_itself(tmp_path):
    dob.paper.G4.save(tmp_path / "g4.json.gz")
    assert answer("expect", tmp_path / "g4.json.gz")["method"] == "linear"
    with pytest.raises(DobanditError, match="drop the options"):
        answer("expect", tmp_path / "g4.json.gz", "--target", "Y")
