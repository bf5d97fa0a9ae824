"""How often the parts of a definition are built."""

from dobandit.experiment import definition
from dobandit.graph.formats import files, json_format
from dobandit.policy import learner
from helpers.experiments import again, make


def test_an_experiment_is_built_once_when_it_is_created(monkeypatch):
    """The graph is neither printed nor parsed, and problem and learner are those that the definition was checked by."""
    built = []
    for module, name in (
        (definition, "problem_of"),
        (json_format, "build"),
        (json_format, "text_of"),
        (files, "build"),
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
