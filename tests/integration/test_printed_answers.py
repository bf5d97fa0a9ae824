"""What answers look like when they are printed, at a prompt and in a notebook."""

import pytest

import dobandit as dob
from dobandit.storage import MemoryStorage

GRAPH = dob.CausalGraph([("ad", "buy"), ("mail", "buy")], target="buy")
ROWS = [{"do:ad": 1, "mail": 0, "buy": 1, "count": 30}, {"ad": 0, "do:mail": 1, "buy": 0, "count": 30}]


def answers():
    experiment = dob.create_experiment("printed", GRAPH, 1, storage=MemoryStorage(), seed=0)
    experiment.record({"ad": 1}, {"mail": 0, "buy": 1, "count": 30}, randomised=True)
    experiment.record({"mail": 1}, {"ad": 0, "buy": 0, "count": 30}, randomised=True)
    trial = experiment.ask(control=False)
    told = experiment.tell(trial, {"ad": 0, "buy": 1, **trial.do})
    experiment.tell(experiment.ask(control=True), {"ad": 0, "mail": 0, "buy": 0})
    ranking = dob.rank(GRAPH, ROWS, budget=1)
    named = {"trial": trial, "told": told, "experiment": experiment, "status": experiment.status()}
    named |= {"explanation": experiment.explain(trial), "diagnosis": experiment.diagnose()}
    named |= {"best": experiment.best_observed(), "recommendation": experiment.recommend()}
    return named | {"ranking": ranking, "fit": ranking.fit}


@pytest.mark.filterwarnings("ignore::dobandit.errors.DobanditWarning")
def test_answers_are_printed_in_words_and_shown_in_notebooks():
    beginnings = {
        "trial": "trial 2: set ",
        "told": "trial 2 told",
        "experiment": "experiment printed in memory, with causal-ucb",
        "status": "experiment printed in memory, with causal-ucb\n  trials: 4 told, 0 pending",
        "explanation": "trial 2: set ",
        "diagnosis": "62 rounds with CausalUCB.",
        "best": "ad = 1: 1.000 (",
        "recommendation": "Set ad: buy ",
        "ranking": "The best 3 of 3 sets, from 60 rounds\n",
        "fit": "60 rounds\n  ",
    }
    for name, answer in answers().items():
        assert str(answer).startswith(beginnings[name]), name
        assert not str(answer).startswith(type(answer).__name__ + "("), name
        assert answer._repr_html_().startswith("<svg" if name == "ranking" else "<pre>"), name


def test_names_are_harmless_in_a_notebook():
    graph = dob.CausalGraph([("<b>", "buy")], target="buy")
    trial = dob.create_experiment("markup", graph, 1, storage=MemoryStorage(), seed=0).ask(available=["<b>"])
    assert "<b>" not in trial._repr_html_()


def test_a_ranking_is_a_frame():
    frame = pytest.importorskip("pandas") and dob.rank(GRAPH, ROWS, budget=1).to_pandas()
    assert frame["set"].tolist()[0] == "ad = 1"
    assert frame["rounds"].tolist()[0] == 30
