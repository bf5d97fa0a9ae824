"""Policies of other packages: installed under the entry point group "dobandit.policies", they are known by name in
every process, and what is wrong with a package is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dobandit import paper
from dobandit.model.model_files import print_model
from dobandit.policy.registry import policy_class
from helpers import forked

HERE = Path(__file__).parents[1]
POLICY = """
from dataclasses import dataclass
from typing import ClassVar

from helpers.foreign import ThompsonArms


@dataclass(frozen=True)
class MyPolicy(ThompsonArms):
    name: ClassVar[str] = {name!r}
    extra: int = 3

    @property
    def label(self):
        return f"Mine ({{self.extra}})"


something_else = 7
"""


def install(site, entries, name="my-policy", package="mine"):
    """A distribution as pip would leave it behind: a module and its metadata."""
    site.mkdir(exist_ok=True)
    (site / f"{package}.py").write_text(POLICY.format(name=name))
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    points = "\n".join(f"{key} = {value}" for key, value in entries.items())
    (info / "entry_points.txt").write_text(f"[dobandit.policies]\n{points}\n")


@pytest.fixture
def site(tmp_path):
    return tmp_path / "site"


@pytest.fixture
def python(zygote, site):
    """What a process prints that has not heard of the packages yet."""

    def run(script, *arguments, code=0):
        ended, out, err = zygote.run(forked.python, script, list(map(str, arguments)), [str(site)])
        assert ended == code, err + out
        return json.loads(out) if code == 0 else err

    return run


REFUSAL = """
import json
from dobandit.errors import PolicyError
from dobandit.policy.registry import policy_class
try:
    policy_class("my-policy")
except PolicyError as error:
    print(json.dumps(str(error)))
"""
COMMAND = "from dobandit.cli.main import main; main()"


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(print_model(paper.G4))
    return path


def test_an_installed_policy_is_known_by_its_name(python, site):
    install(site, {"my-policy": "mine:MyPolicy"})
    code = """
import json
import dobandit as dob
from dobandit.policy.registry import policy_from_document, policy_from_spec, policy_to_document
policy = policy_from_spec("my-policy:extra=5")
document = policy_to_document(policy)
result = dob.simulate(dob.paper.G4, ["my-policy", policy], rounds=20, replications=2)
print(json.dumps([policy.extra, document, policy_from_document(document) == policy, result.labels]))
"""
    document = {"name": "my-policy", "extra": 5}
    assert python(code) == [5, document, True, ["Mine (3)", "Mine (5)"]]


def test_the_command_line_takes_an_installed_policy(site, model):
    """In a process of its own, which has loaded nothing yet."""
    install(site, {"my-policy": "mine:MyPolicy"})
    path = os.pathsep.join([str(site), str(HERE), os.environ.get("PYTHONPATH", "")])
    words = ["simulate", model, "--rounds", "20", "--replications", "2", "-k", "2", "--json"]
    command = [sys.executable, "-m", "dobandit", *words, "--policy", "my-policy:extra=4", "--policy", "random"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["policies"]) == ["Mine (4)", "Random"]


def test_the_command_line_lists_installed_policies(python, site, model):
    install(site, {"my-policy": "mine:MyPolicy"})
    words = ["simulate", model, "--rounds", 20, "-k", 2, "--policy"]
    said = python(COMMAND, *words, "my-polcy", code=2)
    assert "'my-policy'" in said
    assert "Did you mean 'my-policy'" in said
    assert "install" in said
    said = python(COMMAND, *words, "my-policy:extr=4", code=2)
    assert "my-policy takes 'prior', 'extra', but got 'extr'" in said


def test_a_policy_whose_package_is_missing(python, site):
    said = python(REFUSAL)
    assert "but got 'my-policy'" in said
    assert "If it is of another package, install that here, or import it first." in said


@pytest.mark.parametrize(
    ("leads_to", "words"),
    [
        ("mine:something_else", "must lead to a Policy of that name, but leads to 7"),
        ("mine:dataclass", "must lead to a Policy of that name, but leads to <function dataclass"),
        ("mine:Gone", "'mine:Gone' cannot be loaded"),
        ("nowhere:MyPolicy", "'nowhere:MyPolicy' cannot be loaded (No module named 'nowhere')"),
        ("helpers.foreign:ThompsonArms", "'helpers.foreign:ThompsonArms' has the name 'thompson-arms'"),
    ],
)
def test_an_entry_point_that_leads_elsewhere(python, site, leads_to, words):
    install(site, {"my-policy": leads_to})
    said = python(REFUSAL)
    assert words in said
    assert said.endswith("Mend the package mine.")


def test_a_broken_package_leaves_the_others_alone(python, site):
    install(site, {"broken": "nowhere:MyPolicy", "my-policy": "mine:MyPolicy"})
    code = "import json; from dobandit.policy.registry import policy_class; print(json.dumps(policy_class({!r}).name))"
    assert python(code.format("my-policy")) == "my-policy"
    assert python(code.format("ucb")) == "ucb"


def test_two_packages_with_one_name(python, site):
    install(site, {"my-policy": "mine:MyPolicy"})
    install(site, {"my-policy": "yours:MyPolicy"}, package="yours")
    said = python(REFUSAL)
    assert "'mine:MyPolicy'" in said
    assert "'yours:MyPolicy'" in said
    assert "Uninstall all but one" in said


@pytest.mark.parametrize("taken", ["ucb", "blm-lr", "epsilon-greedy"])
def test_a_class_with_a_name_that_is_taken(python, site, taken):
    install(site, {"my-policy": "mine:MyPolicy"}, name=taken)
    assert f"has a name of its own, but {taken!r} is built in" in python(REFUSAL)


def test_an_entry_point_cannot_take_the_place_of_a_built_in_policy(python, site):
    install(site, {"ucb": "mine:MyPolicy"})
    code = (
        "import json; from dobandit.policy.registry import policy_class; print(json.dumps(repr(policy_class('ucb'))))"
    )
    assert python(code) == repr(policy_class("ucb"))


@pytest.mark.parametrize("bad", ["", "My Policy", "my:policy", "my,policy", "mine=1", "größer"])
def test_a_name_with_bad_characters(python, site, bad):
    install(site, {"my-policy": "mine:MyPolicy"}, name=bad)
    said = python(REFUSAL)
    assert "lower-case letters, digits and hyphens" in said
    assert repr(bad) in said
