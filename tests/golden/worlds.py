"""Worlds that the goldens are recorded in. They draw their rounds by NumPy alone: no kernel of the library takes part.

Every node has one uniform number per round, whether it is set or not, so that another choice changes no other draw.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

import dobandit as dob

Values = dict[str, float]


@dataclass(frozen=True)
class World:
    """A graph with a mechanism per node.

    means       E[node | its causes], by node in causal order; the last one is the target
    causes      by node; none where it is not named
    roles       latent, controllable and context, as `CausalGraph` takes them
    continuous  whether values are numbers from 0 to 1
    """

    means: Mapping[str, Callable[[Values], float]]
    causes: Mapping[str, tuple[str, ...]]
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    continuous: bool = False

    @property
    def target(self) -> str:
        return list(self.means)[-1]

    @property
    def graph(self) -> dob.CausalGraph:
        edges = [(cause, effect) for effect, causes in self.causes.items() for cause in causes]
        return dob.CausalGraph(edges, target=self.target, **self.roles)

    @property
    def model(self) -> dob.TableModel:
        """The same world as a model with a table per node."""
        graph, tables = self.graph, {}
        for name, mean in self.means.items():
            parents = graph.parents(name)
            patterns = product((0, 1), repeat=len(parents))
            table = {pattern: mean(dict(zip(parents, pattern, strict=True))) for pattern in patterns}
            tables[name] = table if parents else table[()]
        return dob.TableModel(graph, tables)

    def round(self, seed: int, number: int, do: Values) -> Values:
        """What is observed in a round: a function of the seed, the round's number and what is set."""
        uniforms = np.random.default_rng([seed, number]).random(len(self.means))
        values: Values = {}
        for (name, mean), uniform in zip(self.means.items(), uniforms.tolist(), strict=True):
            expected = mean(values) if name not in do else do[name]
            if name in do:
                values[name] = do[name]
            elif self.continuous:
                values[name] = min(max(expected + 0.2 * (uniform - 0.5), 0.0), 1.0)
            else:
                values[name] = float(uniform < expected)
        return {name: value for name, value in values.items() if name not in self.roles.get("latent", ())}

    def context(self, seed: int, number: int) -> Values:
        """The round's context."""
        names = self.roles.get("context", ())
        return {name: value for name, value in self.round(seed, number, {}).items() if name in names}


def world_of(model: dob.BinaryGLM | dob.LinearModel) -> World:
    """The world of a model with weights."""

    def mean_of(name: str) -> Callable[[Values], float]:
        bias, weights = model.parent_weights(name)
        link = model.link(name)
        return lambda values: float(link(bias + sum(weight * values[cause] for cause, weight in weights.items())))

    graph = model.graph
    names = [*(name for name in graph.nodes if name != graph.target), graph.target]
    roles = {"latent": graph.latent, "controllable": graph.controllable, "context": graph.context}
    causes = {name: graph.parents(name) for name in names}
    return World({name: mean_of(name) for name in names}, causes, roles, model.continuous)


def _curve(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


FUNNEL = World(
    {
        "ad": lambda v: 0.2,
        "mail": lambda v: 0.5,
        "visit": lambda v: 0.1 + 0.3 * v["ad"] + 0.4 * v["mail"],
        "buy": lambda v: 0.05 + 0.5 * v["visit"] + 0.2 * v["ad"],
    },
    {"visit": ("ad", "mail"), "buy": ("visit", "ad")},
    {"controllable": ("ad", "mail")},
)
NOISY_OR = World(
    {
        "ad": lambda v: 0.1,
        "mail": lambda v: 0.3,
        "coupon": lambda v: 0.2,
        "visit": lambda v: 1 - 0.9 * 0.5 ** v["ad"] * 0.7 ** v["mail"],
        "cart": lambda v: 1 - 0.95 * 0.6 ** v["visit"] * 0.5 ** v["coupon"],
        "buy": lambda v: 1 - 0.98 * 0.4 ** v["cart"] * 0.9 ** v["visit"],
    },
    {"visit": ("ad", "mail"), "cart": ("visit", "coupon"), "buy": ("cart", "visit")},
    {"controllable": ("ad", "mail", "coupon")},
)
LOGISTIC = World(
    {
        "ad": lambda v: 0.3,
        "mail": lambda v: 0.4,
        "visit": lambda v: _curve(-1.5 + 1.2 * v["ad"] + 0.8 * v["mail"]),
        "cart": lambda v: _curve(-1.0 + 1.5 * v["visit"]),
        "buy": lambda v: _curve(-2.0 + 1.6 * v["cart"] + 0.7 * v["mail"]),
    },
    {"visit": ("ad", "mail"), "cart": ("visit",), "buy": ("cart", "mail")},
    {"controllable": ("ad", "mail")},
)
HARMFUL = World(
    {
        "price": lambda v: 0.5,
        "popup": lambda v: 0.3,
        "ad": lambda v: 0.2,
        "mail": lambda v: 0.4,
        "coupon": lambda v: 0.3,
        "visit": lambda v: 0.3 + 0.3 * v["ad"] - 0.2 * v["popup"] + 0.1 * v["mail"],
        "cart": lambda v: 0.6 if (v["visit"] == 1) != (v["price"] == 1) else 0.2,
        "buy": lambda v: 0.1 + 0.6 * v["cart"] + 0.2 * v["coupon"] * v["visit"] - 0.05 * v["popup"],
    },
    {"visit": ("ad", "popup", "mail"), "cart": ("visit", "price"), "buy": ("cart", "coupon", "visit", "popup")},
    {"controllable": ("price", "popup", "ad", "mail", "coupon")},
)
CONTEXT = World(
    {
        "mobile": lambda v: 0.6,
        "ad": lambda v: 0.2,
        "mail": lambda v: 0.3,
        "visit": lambda v: 0.1 + 0.6 * v["ad"] * v["mobile"] + 0.3 * v["mail"] * (1 - v["mobile"]),
        "buy": lambda v: 0.05 + 0.6 * v["visit"] + 0.1 * v["mobile"],
    },
    {"visit": ("mobile", "ad", "mail"), "buy": ("visit", "mobile")},
    {"controllable": ("ad", "mail"), "context": ("mobile",)},
)
ADMISSIBLE = World(  # a hidden cause of two variables neither of which causes the other
    {
        "mood": lambda v: 0.5,
        "ad": lambda v: 0.2,
        "mail": lambda v: 0.3,
        "visit": lambda v: 0.1 + 0.4 * v["ad"] + 0.3 * v["mood"],
        "call": lambda v: 0.1 + 0.3 * v["mail"] + 0.4 * v["mood"],
        "buy": lambda v: 0.05 + 0.4 * v["visit"] + 0.3 * v["call"],
    },
    {"visit": ("ad", "mood"), "call": ("mail", "mood"), "buy": ("visit", "call")},
    {"controllable": ("ad", "mail"), "latent": ("mood",)},
)
CONFOUNDED = World(  # a hidden cause of a variable and of its effect
    {
        "mood": lambda v: 0.5,
        "ad": lambda v: 0.2,
        "mail": lambda v: 0.3,
        "visit": lambda v: 0.1 + 0.4 * v["ad"] + 0.2 * v["mail"] + 0.2 * v["mood"],
        "buy": lambda v: 0.05 + 0.4 * v["visit"] + 0.4 * v["mood"],
    },
    {"visit": ("ad", "mail", "mood"), "buy": ("visit", "mood")},
    {"controllable": ("ad", "mail"), "latent": ("mood",)},
)
SETTABLE = World(CONFOUNDED.means, CONFOUNDED.causes, {"controllable": ("ad", "mail", "visit"), "latent": ("mood",)})
CONTINUOUS = World(
    {
        "tv": lambda v: 0.3,
        "web": lambda v: 0.4,
        "reach": lambda v: 0.1 + 0.5 * v["tv"] + 0.2 * v["web"],
        "trust": lambda v: 0.6 - 0.3 * v["web"],
        "sales": lambda v: 0.1 + 0.4 * v["reach"] + 0.3 * v["trust"],
    },
    {"reach": ("tv", "web"), "trust": ("web",), "sales": ("reach", "trust")},
    {"controllable": ("tv", "web")},
    continuous=True,
)
