"""E[every node | do(S)]: one entry that picks the method and says which it picked.

linear       every link is the identity: one pass over the edges, e_X = theta_X . e_parents (paper, Appendix D)
elimination  exact, by variable elimination, where the cliques are narrow enough
enumeration  exact, over all worlds: the slow truth that the others are tested against
monte-carlo  the mean of P(X = 1 | parents) over sampled worlds, with its standard error; the same seed uses the
             same random numbers whatever the intervention, so that differences between interventions are sharp
With a nonlinear link E[Y | do(S)] is not f of the parents' means, so there is no pass that would do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import is_whole, whole_number
from dobandit.errors import InferenceError, closest, listed
from dobandit.kernels import kernel
from dobandit.model import elimination
from dobandit.model.bglm import WeightedModel
from dobandit.model.causal_model import CausalModel, FreeNode
from dobandit.model.weights import Do, fixed_values
from dobandit.texts import keyword

Array = NDArray[np.float64]
METHODS = ("auto", "linear", "elimination", "enumeration", "monte-carlo")
_COMPILE_FROM = 20_000  # edges; a smaller pass is over before Numba would be loaded
_WIDEST = 22  # variables in a clique
_MOST_ENTRIES = 1 << 24  # table entries in all: 128 MB
_MOST_WORLDS = 1 << 20
_MOST_SAMPLES = 1_000_000_000


@dataclass(frozen=True)
class Expectation(Mapping[str, float]):
    """What `expect` returns: a mapping from names to means.

    means            by name, E[X | do(...)];  value: that of the target
    target           the target's name
    method           how they were computed
    standard_error   the largest standard error (0 where exact)
    standard_errors  by name, where means were drawn
    samples          how many draws there were (0 where exact)

    >>> import dobandit as dob
    >>> found = dob.expect(dob.paper.G4, {"X2": 1})
    >>> round(found.value, 3), found["X3"], found.method
    (0.36, 0.2, 'linear')
    """

    means: dict[str, float]
    target: str
    method: str
    standard_error: float = 0.0
    standard_errors: dict[str, float] = field(default_factory=dict, repr=False)
    samples: int = 0

    @property
    def value(self) -> float:
        """The target's mean."""
        return self.means[self.target]

    def __getitem__(self, name: str) -> float:
        return self.means[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)


def expect(
    model: CausalModel, do: Do | None = None, method: str = "auto", *, samples: int = 100_000, seed: int = 0
) -> Expectation:
    """E[X | do(...)] of every node X, for any values of any observed nodes.

    model          a `BinaryGLM`, `LinearModel` or `TableModel`
    do             maps names to 0 or 1 (for a continuous model: to numbers from 0 to 1), or lists names set to 1
    method         "auto": exact where that fits into memory, else Monte Carlo; or one of the methods by name
    samples, seed  of Monte Carlo only

    Returns an `Expectation`: `.value` is that of the target, `["visit"]` that of another node.

    >>> from dobandit import paper
    >>> round(expect(paper.G1, ["X3", "X4", "X5"]).value, 3)
    0.84
    """
    if not isinstance(model, CausalModel):
        raise InferenceError(f"an expectation is of a model, but got {type(model).__name__}.")
    if method not in METHODS:
        raise InferenceError(f"method is one of {listed(METHODS)}, but got {method!r}.{closest(method, METHODS)}")
    fixed = fixed_values(model.graph, do, continuous=model.continuous)
    if method == "linear" and not model.is_linear:
        raise InferenceError(
            "the linear pass is right for identity links only, but the model has others. "
            f"Use {keyword('method', 'auto')}."
        )
    if method == "linear" or (method == "auto" and model.is_linear):
        return _answer(model, linear_means(cast(WeightedModel, model), fixed), "linear")
    if model.continuous:
        raise InferenceError(f"a continuous model's means are linear, but {keyword('method', method)} was asked for.")
    if method == "enumeration":
        return _answer(model, _enumerated(model, fixed), method)
    if method in ("auto", "elimination"):
        means = _eliminated(model, fixed)
        if means is not None:
            return _answer(model, means, "elimination")
        if method == "elimination":
            raise InferenceError(
                f"elimination would need tables of more than {_WIDEST} variables or {_MOST_ENTRIES} entries. "
                f"Use {keyword('method', 'monte-carlo')}."
            )
    return _monte_carlo(model, fixed, samples, seed)


def target_value(model: CausalModel, do: Do | None = None) -> tuple[float, bool]:
    """E[target | do(...)] alone, and whether it is exact: what does not lead to the target is left out, so that it is
    quicker than `expect`, and exact for more models."""
    return target_mean(model, fixed_values(model.graph, do, continuous=model.continuous))


def target_mean(model: CausalModel, fixed: Array, samples: int = 100_000) -> tuple[float, bool]:
    """The same by id: `fixed` holds what nodes are set to, NaN where they are free. samples: where it is not exact."""
    target = model.graph.arrays.target
    if model.is_linear:
        means: Array | None = linear_means(cast(WeightedModel, model), fixed)
    else:
        means = _eliminated(model, fixed, _leading_to(model, target, fixed)) if math.isnan(fixed[target]) else fixed
    if means is None:
        return _monte_carlo(model, fixed, samples, 0).value, False
    return min(max(float(means[target]), 0.0), 1.0), True


def linear_means(model: WeightedModel, fixed: Array) -> Array:
    """The linear pass, by id."""
    arrays = model.graph.arrays
    means = np.empty(len(fixed))
    run = _compiled_pass if len(arrays.parent) >= _COMPILE_FROM else linear_pass
    run(arrays.parent_ptr, arrays.parent, model.theta, fixed, means)
    return means


def linear_pass(parent_ptr: Any, parent: Any, theta: Any, fixed: Any, means: Any) -> None:
    """means[v] = theta_v . means of v's parents, in topological order; set nodes keep their value."""
    means[0] = 1.0
    for v in range(1, len(means)):
        if math.isnan(fixed[v]):
            total = 0.0
            for slot in range(parent_ptr[v], parent_ptr[v + 1]):
                total += theta[slot] * means[parent[slot]]
            means[v] = total
        else:
            means[v] = fixed[v]


_compiled_pass = kernel(linear_pass)


def _answer(model: CausalModel, means: Array, method: str) -> Expectation:
    named = dict(zip(model.graph.nodes, np.clip(means[1:], 0.0, 1.0).tolist(), strict=True))
    return Expectation(named, model.target, method)


# -- exact for any link --------------------------------------------------------------------------------------


def _free_nodes(model: CausalModel, fixed: Array) -> dict[int, FreeNode]:
    return {v: model.free_node(v, fixed) for v in range(1, len(fixed)) if math.isnan(fixed[v])}


def _leading_to(model: CausalModel, target: int, fixed: Array) -> list[int]:
    """The free nodes from which a path of free nodes leads to the target, and itself."""
    arrays, found, waiting = model.graph.arrays, {target}, [target]
    while waiting:
        fresh = {p for p in arrays.parents_of(waiting.pop()) if p not in found and math.isnan(fixed[p])}
        found |= fresh
        waiting += fresh
    return sorted(found)


def _eliminated(model: CausalModel, fixed: Array, wanted: list[int] | None = None) -> Array | None:
    """Exact means (of all nodes, or of `wanted`, a list with all free ancestors), or None where the cliques would be
    too wide.

    Only nodes that are not affine need the joint distribution of their parents, hence of their ancestors.
    """
    nodes = _free_nodes(model, fixed) if wanted is None else {v: model.free_node(v, fixed) for v in wanted}
    joint: set[int] = set()
    for v in reversed(nodes):
        if v in joint or not nodes[v].affine:
            joint.add(v)
            joint.update(nodes[v].parents)
    cliques = elimination.elimination_cliques([(*nodes[v].parents, v) for v in sorted(joint)], _WIDEST)
    if cliques is None or elimination.total_entries(cliques) > _MOST_ENTRIES:
        return None
    factors = [elimination.parents_and_self(nodes[v].table(), nodes[v].parents, v) for v in sorted(joint)]
    exact = elimination.marginals(factors, cliques)
    means = fixed.copy()
    for v, node in nodes.items():
        means[v] = exact[v] if v in exact else node.mean(means)
    return means


def _enumerated(model: CausalModel, fixed: Array) -> Array:
    """Sum over all worlds of the free nodes, one node at a time."""
    nodes = _free_nodes(model, fixed)
    if 1 << len(nodes) > _MOST_WORLDS:
        raise InferenceError(
            f"enumeration visits 2^(free nodes) worlds, here 2^{len(nodes)}; the most is {_MOST_WORLDS}. "
            f"Use {keyword('method', 'auto')}."
        )
    probability = np.ones(1)
    worlds: dict[int, NDArray[np.intp]] = {}
    for v, node in nodes.items():
        p = np.broadcast_to(node.table()[tuple(worlds[parent] for parent in node.parents)], probability.shape)
        worlds = {u: np.concatenate([value, value]) for u, value in worlds.items()}
        worlds[v] = np.repeat([0, 1], len(probability))
        probability = np.concatenate([probability * (1.0 - p), probability * p])
    means = fixed.copy()
    for v in nodes:
        means[v] = worlds[v] @ probability
    return means


# -- sampling -------------------------------------------------------------------------------------------------


def _monte_carlo(model: CausalModel, fixed: Array, samples: int, seed: int) -> Expectation:
    if not is_whole(samples) or not 2 <= samples <= _MOST_SAMPLES:
        raise InferenceError(f"samples must be a whole number from 2 to {_MOST_SAMPLES:,}, but got {samples!r}.")
    whole_number("seed", seed, 0, InferenceError)
    total, squares = np.zeros(len(fixed)), np.zeros(len(fixed))
    for _, means in model.draw(fixed, int(samples), np.random.default_rng(seed)):
        total += means.sum(axis=1)
        squares += np.einsum("ij,ij->i", means, means)
    mean = total / samples
    variance = np.maximum(squares / samples - mean**2, 0.0) * samples / (samples - 1)
    errors = np.where(variance > 1e-14 * mean**2, np.sqrt(variance / samples), 0.0)
    names = model.graph.nodes
    return Expectation(
        dict(zip(names, mean[1:].tolist(), strict=True)),
        model.target,
        "monte-carlo",
        float(errors.max()),
        dict(zip(names, errors[1:].tolist(), strict=True)),
        int(samples),
    )
