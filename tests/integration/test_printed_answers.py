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
    named |= {"recommendation": experiment.recommend(), "learner's best": experiment.learner.best()}
    return named | {"best": experiment.best_observed(), "ranking": ranking, "fit": ranking.fit}


@pytest.mark.filterwarnings("ignore::dobandit.errors.DobanditWarning")
def test_answers_are_printed_in_words_and_shown_in_notebooks():
    beginnings = {
        "trial": "trial 2: set ",
        "told": "trial 2 told",
        "experiment": "experiment printed in memory, with causal-ucb",
        "status": "experiment printed in memory, with causal-ucb\n  trials: 4 told, 0 pending",
        "explanation": "trial 2: set ",
        "diagnosis": "62 rounds with CausalUCB.",
        "recommendation": "Set ad: buy may rise by 0.81 (",
        "learner's best": "  ad = 1: ",
        "best": "ad = 1: 1.000 (",
        "ranking": "The best 3 of 3 sets, from 60 rounds\n",
        "fit": "60 rounds\n  ",
    }
    for name, answer in answers().items():
        assert str(answer).startswith(beginnings[name]), name
        assert not str(answer).startswith(type(answer).__name__ + "("), name
        assert answer._repr_html_().startswith("<svg" if name == "ranking" else "<pre>"), name


def test_a_list_of_experiments_fits_a_screen():
    storage = MemoryStorage()
    dob.create_experiment("listed", GRAPH, 1, storage=storage, seed=0)
    assert repr(dob.list_experiments(storage)) == "[StoredExperiment(id=1, name='listed', trials=0, closed=0)]"


def test_names_are_harmless_in_a_notebook():
    graph = dob.CausalGraph([("<b>", "buy")], target="buy")
    trial = dob.create_experiment("markup", graph, 1, storage=MemoryStorage(), seed=0).ask(available=["<b>"])
    assert "<b>" not in trial._repr_html_()


def test_a_ranking_is_a_frame():
    frame = pytest.importorskip("pandas") and dob.rank(GRAPH, ROWS, budget=1).to_pandas()
    assert frame["do.ad"].tolist()[0] == 1
    assert frame["observed.rounds"].tolist()[0] == 30
