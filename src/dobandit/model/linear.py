"""LinearModel: the continuous linear model on [0, 1] (paper, Appendix F): X = theta_X . parents + eps_X.

eps_X is uniform on +-noise * min(m, 1 - m), m = theta_X . parents: zero-mean, and X stays in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.bglm import WeightedModel, graph_of_weights
from dobandit.model.links import identity
from dobandit.model.weights import Weights


class LinearModel(WeightedModel):
    """A linear model of variables in [0, 1]; its means are those of the BLM with the same weights.

    graph    what causes what
    weights  those of the BLM too: from -1 to 1, with means that stay within [0, 1] whatever the parents are
    noise    0..1, one for all or by node: the share of the room min(m, 1 - m) around the mean m that the noise may use

    >>> from dobandit.graph.causal_graph import CausalGraph
    >>> graph = CausalGraph([("share", "sales")], target="sales")
    >>> model = LinearModel(graph, {"share": 0.2, "sales": 0.1, ("share", "sales"): 0.5})
    >>> model.continuous
    True
    """

    continuous = True

    def __init__(
        self,
        graph: CausalGraph,
        weights: Weights | NDArray[np.float64],
        noise: float | Mapping[str, float] | None = 0.5,
    ) -> None:
        super().__init__(graph, weights, (identity,) * len(graph), noise)

    @classmethod
    def of_weights(
        cls,
        weights: Weights,
        target: str,
        latent: Iterable[str] = (),
        controllable: Iterable[str] | None = None,
        noise: float | Mapping[str, float] | None = 0.5,
        context: Iterable[str] = (),
    ) -> LinearModel:
        """The model whose graph is read off the weights (a bias entry gives the node the constant).

        weights                                       as in `LinearModel`
        target, latent, controllable, noise, context  as in `CausalGraph` and `LinearModel`

        >>> LinearModel.of_weights({"share": 0.2, ("share", "sales"): 0.5}, target="sales").graph.parents("sales")
        ('share',)
        """
        return cls(graph_of_weights(weights, target, latent, controllable, context), weights, noise)

    def _realise(
        self,
        out: NDArray[np.float64],
        mean: NDArray[np.float64],
        uniform: NDArray[np.float64],
        jitter: NDArray[np.float64] | None,
        noise: float,
    ) -> None:
        np.add(mean, (2.0 * uniform - 1.0) * noise * np.minimum(mean, 1.0 - mean), out=out)
