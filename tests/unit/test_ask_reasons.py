"""Why a trial was chosen, in a sentence that claims no more than is known."""

import math
from types import SimpleNamespace

import pytest

from dobandit.experiment.reasons import APPROXIMATE, reason_for
from dobandit.policy.engine import NOTHING, Choice

LEARNER = SimpleNamespace(keeps_model=True, label="BLM-LR")


@pytest.mark.parametrize(
    ("choice", "ending"),
    [
        (Choice(NOTHING, 0.5), "estimate 0.400 + 0.100"),
        (Choice(NOTHING, 0.5, False), f"estimate 0.400 + 0.100; {APPROXIMATE}"),
    ],
)
def test_what_a_search_found_is_called_approximate(choice, ending):
    assert reason_for(choice, 0.4, "y", LEARNER).endswith(ending)
    assert APPROXIMATE.startswith("approximate")


def test_a_note_promises_no_probability_above_one():
    for value, shown in ((0.75, "y may be 0.750"), (1.5, "y may be 1.000")):
        assert shown in reason_for(Choice(NOTHING, value, note="it is new"), 0.4, "y", LEARNER)
    assert reason_for(Choice(NOTHING, math.inf, note="it is new"), 0.4, "y", LEARNER) == "not tried yet"


def test_what_an_index_adds_is_only_explained_where_its_engine_says_why():
    explained = SimpleNamespace(keeps_model=False, label="UCB", engine=SimpleNamespace(bonus_words="for luck"))
    assert reason_for(Choice(NOTHING, 0.5), 0.4, "y", explained) == "largest index: mean 0.400 + 0.100 for luck"
    plain = SimpleNamespace(keeps_model=False, label="Soft", engine=SimpleNamespace())
    assert reason_for(Choice(NOTHING, 0.3), 0.4, "y", plain) == "its index is 0.300, with a mean of y of 0.400 so far"
