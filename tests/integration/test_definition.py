"""How often the parts of a definition are built."""

import json

from dobandit import CausalUCB
from dobandit.experiment import definition
from dobandit.graph import formats
from dobandit.graph.formats import json_format
from dobandit.policy import learner
from helpers.experiments import again, make


def test_an_experiment_is_built_once_when_it_is_created(monkeypatch):
    """The graph is neither printed nor parsed, and problem and learner are those that the definition was checked by."""
    built = []
    for module, name in (
        (definition, "problem_of"),
        (json_format, "build"),
        (json_format, "text_of"),
        (formats, "build"),
    ):
        plain = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, plain=plain, name=name, **b: built.append(name) or plain(*a, **b))
    start = learner.Learner.__init__
    monkeypatch.setattr(learner.Learner, "__init__", lambda self, *a: built.append("Learner") or start(self, *a))
    experiment = make()
    experiment.ask()
    assert sorted(built) == ["Learner", "problem_of"]
    built.clear()
    again(experiment).ask()
    assert sorted(built) == ["Learner", "build", "problem_of"]


def test_a_definition_is_the_same_when_it_is_opened_again():
    experiment = make(policy=CausalUCB(), costs={"X4": 2.0, "X2": 1.5}, total_cost=3.0)
    assert json.dumps(experiment.definition.document) == json.dumps(again(experiment).definition.document)
    assert experiment.definition.problem == again(experiment).definition.problem
    assert experiment.definition.policy == again(experiment).definition.policy
