"""Logs that grew long: pages of them, and answers that do not read all of them each time."""

import pytest

from dobandit.errors import ExperimentError
from experiments import case


def test_trials_in_pages():
    experiment = case("random")
    for i in range(7):
        trial = experiment.ask()
        if i % 3 == 1:
            experiment.tell_failed(trial.number, "rain")
        elif i % 3 == 2:
            experiment.tell(trial.number, {"Y": 1})
    every = experiment.trials()
    for state in (None, "pending", "told", "failed", "abandoned"):
        some = [row for row in every if state in (None, row["state"])]
        assert experiment.trials(state=state) == some
        assert experiment.trials(state=state, last=2) == some[-2:]
        assert experiment.trials(2, 2, state) == [row for row in some if row["trial"] > 2][:2]
    assert experiment.trials(last=0) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"after": -2}, "number of a trial"),
        ({"after": 1.5}, "number of a trial"),
        ({"limit": -1}, "limit is a whole number"),
        ({"last": True}, "last is a whole number"),
        ({"last": 3, "limit": 2}, "Give one of the two"),
        ({"state": "open"}, "pending, told, failed or abandoned"),
    ],
)
def test_pages_that_are_none_are_refused(wrong, words):
    with pytest.raises(ExperimentError, match=words):
        case("random").trials(**wrong)
