"""Small problems of every kind that a policy may meet, each with a model that plays the world."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dobandit.model.bglm import BinaryGLM, LinearModel, WeightedModel
from dobandit.model.links import logistic
from dobandit.model.weights import Weights
from dobandit.oracle.rules import Rules
from dobandit.policy.problem import Problem, problem_of


@dataclass(frozen=True)
class Case:
    """A problem with its world.

    model    what the rounds are drawn from; the policy sees its graph and links, never its weights
    rules    which actions are allowed
    horizon  how many rounds are announced; None: not known
    """

    name: str
    model: WeightedModel
    rules: Rules
    horizon: int | None = 200

    @cached_property
    def problem(self) -> Problem:
        """What a policy is started on."""
        model, effects = self.model, "nonnegative" if self.model.nonnegative else "any"
        links = {name: model.link(name) for name in model.graph.nodes}
        return problem_of(model.graph, self.rules, self.horizon, 7, links, model.continuous, effects)


_HELPFUL: Weights = {
    "X1": 0.3,
    "X2": 0.5,
    "X3": 0.1,
    ("X1", "X3"): 0.6,
    "X4": 0.2,
    ("X2", "X4"): 0.4,
    "Y": 0.1,
    ("X3", "Y"): 0.4,
    ("X4", "Y"): 0.3,
    ("X2", "Y"): 0.1,
}
_SIGNED: Weights = {**_HELPFUL, "X4": 0.8, ("X2", "X4"): -0.5, "Y": 0.4, ("X4", "Y"): -0.3}
_HIDDEN: Weights = {**_HELPFUL, "U": 0.5, ("U", "X1"): 0.4, ("U", "X2"): 0.3}
_GRAPH = BinaryGLM.blm(_HELPFUL, "Y").graph
_STEEP: Weights = {slot: 1.5 * weight for slot, weight in _HELPFUL.items()}
_SETTABLE = ("X1", "X3", "X4")

CASES = (
    Case("nonnegative", BinaryGLM.blm(_HELPFUL, "Y"), Rules(2)),
    Case("no horizon", BinaryGLM.blm(_HELPFUL, "Y"), Rules(2), None),
    Case("nothing to set", BinaryGLM.blm(_HELPFUL, "Y"), Rules(0)),
    Case("signed", BinaryGLM.blm(_SIGNED, "Y"), Rules(2)),
    Case("levers", BinaryGLM.blm(_HELPFUL, "Y"), Rules(2, levers={"X1": (0, 1), "X4": (0,)})),
    Case("signed levers", BinaryGLM.blm(_SIGNED, "Y"), Rules(2, levers=dict.fromkeys(_SETTABLE, (0, 1)))),
    Case(
        "costs and groups",
        BinaryGLM.blm(_HELPFUL, "Y"),
        Rules(costs={"X1": 2.0, "X3": 1.5}, total_cost=3.0, exclusive=(("X2", "X4"),)),
    ),
    Case("required and forbidden", BinaryGLM.blm(_HELPFUL, "Y"), Rules(2, require=("X1",), forbid=("X4",))),
    Case("context", BinaryGLM.blm(_HELPFUL, "Y", controllable=_SETTABLE, context=["X2"]), Rules(1)),
    Case("signed context", BinaryGLM.blm(_SIGNED, "Y", controllable=_SETTABLE, context=["X2"]), Rules(2)),
    Case("hidden", BinaryGLM.blm(_HIDDEN, "Y", latent=["U"]), Rules(2)),
    Case("logistic", BinaryGLM(_GRAPH, _STEEP, links=logistic(1.0)), Rules(2)),
    Case("continuous", LinearModel.of_weights(_HELPFUL, "Y"), Rules(2)),
    Case("continuous levers", LinearModel.of_weights(_SIGNED, "Y"), Rules(2, levers={"X1": (0, 0.5, 1)})),
)
