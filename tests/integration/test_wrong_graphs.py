"""Live experiments on a wrong graph say so: in diagnose, in the reason of an ask and in a recommendation."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from dobandit import UCB, BinaryGLM, CausalGraph, CausalUCB, create_experiment, open_experiment
from dobandit.cli.main import cli

GRAPH = CausalGraph([("ad", "visit"), ("mail", "visit"), ("visit", "buy")], target="buy", controllable=["ad", "mail"])
TRUTH = CausalGraph([*GRAPH.edges, ("ad", "buy")], target="buy", controllable=["ad", "mail"])
WEIGHTS = {"ad": 0.3, "mail": 0.3, "visit": 0.2, "buy": 0.1, ("ad", "visit"): 0.1, ("mail", "visit"): 0.5}
WEIGHTS |= {("visit", "buy"): 0.2, ("ad", "buy"): 0.6}
FOUND = "'buy' and 'ad' move together in ways that the graph does not explain"
RECKONED = f"{FOUND}, which the learner now reckons with"


def told(world, graph, storage, policy, trials=4):
    experiment = create_experiment("spring", graph, budget=1, policy=policy, storage=storage, seed=3, control=0.5)
    for number in range(trials):
        trial = experiment.ask(size=100)
        drawn = world.sample(trial.do, 100, np.random.default_rng(number))
        experiment.tell(
            trial, [dict(zip(drawn, map(int, row), strict=True)) for row in zip(*drawn.values(), strict=True)]
        )
    return experiment


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path / 'log.db'}"


def test_a_wrong_graph_is_said_everywhere(storage):
    experiment = told(BinaryGLM(TRUTH, WEIGHTS), GRAPH, storage, CausalUCB())
    diagnosis = experiment.diagnose()
    (finding,) = diagnosis.graph
    assert (finding.node, finding.extra, finding.rows) == ("buy", "ad", 400)
    assert any("add the edge ad -> buy" in line for line in diagnosis.lines())
    assert f"The learner reckons with a cause that the graph lacks: {FOUND}." in diagnosis.notes
    assert [each.cause for each in experiment.estimates() if each.effect == "buy"] == [None, "ad", "visit"]
    assert experiment.recommend().do == {"ad": 1}
    (document,) = json.loads(json.dumps(diagnosis.to_document()))["graph"]
    assert document == finding._asdict()
    assert experiment.ask(control=False).why.endswith(
        f"; but the rounds speak against the graph: {RECKONED} (see diagnose)"
    )
    assert FOUND not in experiment.ask(control=True).why
    assert experiment.recommend().warnings[0] == f"The rounds speak against the graph: {RECKONED}. See diagnose."
    assert experiment.recommend().verdict == "contradicted"
    again = open_experiment("spring", storage=storage)
    assert again.recommend() == experiment.recommend()
    for command in ("diagnose", "recommend"):
        printed = CliRunner().invoke(cli, ["experiment", command, "spring", "--storage", storage])
        assert printed.exit_code == 0
        assert "against the graph" in printed.output


@pytest.mark.parametrize(
    ("graph", "policy"), [(TRUTH, CausalUCB()), (GRAPH, UCB())], ids=["the right graph", "no model to be wrong"]
)
def test_nothing_is_said_where_nothing_is_wrong(graph, policy, storage):
    experiment = told(BinaryGLM(TRUTH, WEIGHTS), graph, storage, policy)
    assert experiment.diagnose().graph == ()
    assert not any("graph" in warning for warning in experiment.recommend().warnings)
    assert "graph" not in experiment.ask(control=False).why
