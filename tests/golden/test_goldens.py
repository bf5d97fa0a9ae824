"""Today's answers against the recorded ones. `python tests/golden/record.py` records them anew."""

import os

import pytest

from golden.cases import GROUPS, answered
from golden.comparing import choices, read, report

CASES = [(group, name) for group, cases in GROUPS.items() for name in cases()]
# NUMBA_DISABLE_JIT=1 interprets the kernels: the small worlds take a second each then, and the others are skipped.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
SMALL = ("live: funnel", "live: context", "live: continuous", "live: logistic", "live: hidden", "offline: ", "data: ")


@pytest.mark.filterwarnings("ignore::dobandit.errors.DobanditWarning")
@pytest.mark.parametrize(("group", "name"), CASES, ids=[f"{group}: {name}" for group, name in CASES])
def test_answers_are_as_recorded(group, name):
    if INTERPRETED and not f"{group}: {name}".startswith(SMALL):
        pytest.skip("takes long without compiled kernels")
    recorded = read(group)
    assert name in recorded, f"no golden is recorded for {name!r}: python tests/golden/record.py {group}"
    if found := report(recorded[name], answered(group, name)):
        pytest.fail(f"{group}.json, {name}:\n{found}", pytrace=False)


@pytest.mark.parametrize("group", GROUPS)
def test_every_golden_has_a_case(group):
    assert set(read(group)) <= set(GROUPS[group]())


def test_a_comparison_names_the_place_and_both_values():
    recorded = {"after 30": {"value": 0.5, "interval": [0.1, 0.9]}, "do": "ad"}
    assert report(recorded, {"do": "ad", "after 30": {"interval": [0.1, 0.9 + 1e-12], "value": 0.5, "new": 1}}) == ""
    assert report(recorded, {"do": "ad", "after 30": {"value": 0.5, "interval": [0.1, 0.9 + 1e-7]}}) == (
        "/after 30/interval/1: expected 0.9, got 0.9000001"
    )
    assert report(recorded, {"after 30": recorded["after 30"]}) == '/do: expected "ad", but it is missing'
    assert "from round 1 on" in report(choices([{"ad": 1}, {"ad": 0}]), choices([{"ad": 1}, {"mail": 1}]))
    assert report(choices([{"ad": 1}, {}]), choices([{"ad": 1.0}, {}])) == ""
