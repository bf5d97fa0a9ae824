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
from dobandit.model.files import print_model
from dobandit.policy.registry import policy_class

HERE = Path(__file__).parents[1]
POLICY = """
from dataclasses import dataclass
from typing import ClassVar

from foreign import ThompsonArms


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


def run(site, *arguments, code=0):
    path = os.pathsep.join([str(site), str(HERE), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == code, done.stderr + done.stdout
    return done


def python(site, code):
    """What a fresh process prints, as JSON."""
    return json.loads(run(site, "-c", code).stdout)


def refusal(site, name="my-policy"):
    """The PolicyError of a fresh process that asks for a policy by name."""
    code = f"""
import json
from dobandit.errors import PolicyError
from dobandit.policy.registry import policy_class
try:
    policy_class({name!r})
except PolicyError as error:
    print(json.dumps(str(error)))
"""
    return python(site, code)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(print_model(paper.G4))
    return path


def test_an_installed_policy_is_known_by_its_name(site):
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
    assert python(site, code) == [5, document, True, ["Mine (3)", "Mine (5)"]]


def test_the_command_line_takes_an_installed_policy(site, model):
    install(site, {"my-policy": "mine:MyPolicy"})
    command = ["-m", "dobandit", "simulate", model, "--rounds", 20, "--replications", 2, "-k", 2, "--json"]
    said = json.loads(run(site, *command, "--policy", "my-policy:extra=4", "--policy", "random").stdout)
    assert list(said["policies"]) == ["Mine (4)", "Random"]


def test_the_command_line_lists_installed_policies(site, model):
    install(site, {"my-policy": "mine:MyPolicy"})
    command = ["-m", "dobandit", "simulate", model, "--rounds", 20, "-k", 2, "--policy"]
    said = run(site, *command, "my-polcy", code=2).stderr
    assert "'my-policy'" in said
    assert "Did you mean 'my-policy'" in said
    assert "install" in said
    said = run(site, *command, "my-policy:extr=4", code=2).stderr
    assert "my-policy takes 'prior', 'extra', but got 'extr'" in said


def test_a_policy_whose_package_is_missing(site):
    said = refusal(site)
    assert "but got 'my-policy'" in said
    assert "If it is of another package, install that here, or import it first." in said


@pytest.mark.parametrize(
    ("leads_to", "words"),
    [
        ("mine:something_else", "must lead to a Policy of that name, but leads to 7"),
        ("mine:dataclass", "must lead to a Policy of that name, but leads to <function dataclass"),
        ("mine:Gone", "'mine:Gone' cannot be loaded"),
        ("nowhere:MyPolicy", "'nowhere:MyPolicy' cannot be loaded (No module named 'nowhere')"),
        ("foreign:ThompsonArms", "'foreign:ThompsonArms' has the name 'thompson-arms'"),
    ],
)
def test_an_entry_point_that_leads_elsewhere(site, leads_to, words):
    install(site, {"my-policy": leads_to})
    said = refusal(site)
    assert words in said
    assert said.endswith("Mend the package mine.")


def test_a_broken_package_leaves_the_others_alone(site):
    install(site, {"broken": "nowhere:MyPolicy", "my-policy": "mine:MyPolicy"})
    code = "import json; from dobandit.policy.registry import policy_class; print(json.dumps(policy_class({!r}).name))"
    assert python(site, code.format("my-policy")) == "my-policy"
    assert python(site, code.format("ucb")) == "ucb"


def test_two_packages_with_one_name(site):
    install(site, {"my-policy": "mine:MyPolicy"})
    install(site, {"my-policy": "yours:MyPolicy"}, package="yours")
    said = refusal(site)
    assert "'mine:MyPolicy'" in said
    assert "'yours:MyPolicy'" in said
    assert "Uninstall all but one" in said


@pytest.mark.parametrize("taken", ["ucb", "blm-lr", "epsilon-greedy"])
def test_a_class_with_a_name_that_is_taken(site, taken):
    install(site, {"my-policy": "mine:MyPolicy"}, name=taken)
    assert f"has a name of its own, but {taken!r} is built in" in refusal(site)


def test_an_entry_point_cannot_take_the_place_of_a_built_in_policy(site):
    install(site, {"ucb": "mine:MyPolicy"})
    code = (
        "import json; from dobandit.policy.registry import policy_class; print(json.dumps(repr(policy_class('ucb'))))"
    )
    assert python(site, code) == repr(policy_class("ucb"))


@pytest.mark.parametrize("bad", ["", "My Policy", "my:policy", "my,policy", "mine=1", "größer"])
def test_a_name_with_bad_characters(site, bad):
    install(site, {"my-policy": "mine:MyPolicy"}, name=bad)
    said = refusal(site)
    assert "lower-case letters, digits and hyphens" in said
    assert repr(bad) in said
