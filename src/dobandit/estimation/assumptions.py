"""Which of the paper's assumptions a model meets, and what its theorems then promise.

d = |Pa(X)|, the constant counted.  theta*: X's weights.  D_out: most children of a named node.
L1, L2, kappa: sup f', sup |f''|, inf f' (Assumptions 1, 2).  upsilon: the least chance that a node is 1, or 0, whatever
its parents are.  zeta: the same for a parent given the other parents (Assumption 3).  M: a node's Gram matrix.

Where the paper leaves a choice:
- x = v . theta runs over v in [0, 1]^d, ||theta - theta*|| <= 1 (definition of kappa), cut to the link's domain. L1 is
  also taken over all weights in [0, 1]^d ([-1, 1]^d where theta* has negative ones): Lemma 2 compares theta* with any
  of them.
- The constant is never 0, so Assumption 3 cannot hold for X' = X1 as printed; it is about named parents.
- A pattern of the other parents that never happens constrains nothing: Lemma 7 sums over those that do. They are
  counted in `impossible`.
- With hidden variables the parents are those of G', but the probabilities are those of G, where the data come from;
  the two models share P(X | Pa'(X)), not the joint distribution. For the same reason Appendix B does not apply.
- The paper's weights are nonnegative. With negative ones the constants are still what their definitions say (Appendix B
  only needs the least and the largest probability of a node), but no theorem covers the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import shown
from dobandit.errors import GraphError, ModelError, listed
from dobandit.estimation import confidence
from dobandit.graph.causal_graph import CausalGraph
from dobandit.model.bglm import BinaryGLM, LinearModel, WeightedModel
from dobandit.model.links import LinkBounds
from dobandit.model.projection import project

Array = NDArray[np.float64]
_MOST_INNER = 16  # nodes with children: the exact zeta looks at 2^16 worlds
_CERTAIN = 1e-12  # probabilities this near to 0 or 1 are rounding: weights that should add up to 1


@dataclass(frozen=True)
class NodeAssumptions:
    """One node's constants; `lambda_min` is what Eq. (3) asks of its Gram matrix, with the model's kappa."""

    name: str
    parents: int
    l1: float
    l2: float
    kappa: float
    lambda_min: float
    upsilon: float | None = None
    zeta: float | None = None
    impossible: int = 0


@dataclass(frozen=True)
class Assumptions:
    """The constants of a model. None where unknown; `obstacle` says why nothing is known."""

    n: int
    D: int
    D_out: int
    horizon: int
    delta: float
    c: float
    linear: bool
    continuous: bool
    nodes: tuple[NodeAssumptions, ...] = ()
    l1: float = math.nan
    l2: float = math.nan
    kappa: float = math.nan
    upsilon: float | None = None
    zeta_exact: float | None = None
    zeta_lemma: float | None = None
    rho: float | None = None
    R: int | None = None
    initial_rounds: int | None = None
    obstacle: str | None = None
    harmful: tuple[tuple[str, str], ...] = ()  # edges with a negative weight, once hidden variables are removed

    @property
    def zeta(self) -> float | None:
        """The exact zeta where the model is small enough, else that of Appendix B where it says something."""
        return self.zeta_exact if self.zeta_exact is not None else self.zeta_lemma

    @property
    def assumption1(self) -> bool | None:
        """f' and f'' are bounded."""
        return None if self.obstacle else math.isfinite(self.l1) and math.isfinite(self.l2)

    @property
    def assumption2(self) -> bool | None:
        """kappa > 0."""
        return None if self.obstacle else self.kappa > 0.0

    @property
    def assumption3(self) -> bool | None:
        """zeta > 0."""
        return None if self.obstacle or self.zeta is None else self.zeta > 0.0

    def thresholds(self, least: float = 1.0) -> dict[str, float]:
        """By node: max(Eq. (3), least), what lambda_min(M) should reach before the first intervention.

        Lemma 9 is printed with lambda_min >= 1, hence the default; its proof needs lambda_min >= d, hence D is safe.
        """
        return {node.name: max(node.lambda_min, least) for node in self.nodes if node.parents}

    def regret_bound_bglm_ofu(self, t: int) -> float | None:
        """Theorem 1 (or 2) after t rounds; None where no T0 is known, or some weight is negative."""
        if self.initial_rounds is None or self.zeta is None or self.harmful:
            return None
        degrees = [node.parents for node in self.nodes]
        return confidence.regret_bound_bglm_ofu(
            t, self.n, degrees, self.l1, self.kappa, self.zeta, self.delta, self.initial_rounds, self.c
        )

    def regret_bound_blm_lr(self, t: int) -> float | None:
        """Theorem 3 after t rounds; None for models that are not linear, or have a negative weight."""
        if self.obstacle or not self.linear or self.harmful:
            return None
        return confidence.regret_bound_blm_lr(t, self.n, self.D, confidence.delta_blm_lr(self.n, self.horizon))

    def in_words(self) -> list[str]:
        """The diagnosis as sentences: the assumptions, then what each algorithm is guaranteed."""
        if self.obstacle:
            return [*on_signs(self), f"No guarantee is known for this model: {self.obstacle}"]
        return [*on_signs(self), *on_assumptions(self), *on_guarantees(self)]


def diagnose_assumptions(
    model: BinaryGLM | LinearModel, horizon: int = 10_000, delta: float | None = None, c: float = confidence.DEFAULT_C
) -> Assumptions:
    """Every constant of the paper's theory for `model`; delta is Algorithm 1's for the horizon unless given.

    >>> from dobandit import paper
    >>> diagnosis = diagnose_assumptions(paper.G1)
    >>> diagnosis.kappa, round(diagnosis.zeta, 6), diagnosis.initial_rounds
    (1.0, 0.1, 3860)
    """
    horizon = confidence.checked_horizon(horizon)
    n = len(model.graph.observed) + 1
    delta = confidence.delta_bglm_ofu(n, horizon) if delta is None else confidence.checked_delta(delta)
    if not c > 0:
        raise ModelError(f"c is a positive constant, but got {shown(c)}. The paper gives no value; ours is 1.")
    try:
        markovian: WeightedModel = project(model)
        obstacle = None
    except (GraphError, ModelError) as error:
        markovian, obstacle = model, str(error)
    arrays = markovian.graph.arrays
    D, D_out = (int(np.diff(ptr)[1:].max()) for ptr in (arrays.parent_ptr, arrays.child_ptr))
    known = Assumptions(
        n,
        D,
        D_out,
        horizon,
        delta,
        float(c),
        model.is_linear,
        model.continuous,
        obstacle=obstacle,
        harmful=markovian.harmful,
    )
    return known if obstacle else _initialisation(_zeta(_curves(known, markovian), model, markovian.graph))


# -- Assumptions 1 and 2 --------------------------------------------------------------------------------------


def _curves(known: Assumptions, model: WeightedModel) -> Assumptions:
    """L1, L2, kappa and upsilon. A node without any parent has no weight to learn and constrains none but upsilon."""
    bounds = {name: _bounds(model, name) for name in model.graph.nodes}
    learned = [bounds[name] for name in model.graph.nodes if len(_weights(model, name))]
    kappa = min(each.kappa for each in learned)
    nodes = []
    for name, (l1, l2, own_kappa) in bounds.items():
        d = len(_weights(model, name))
        lambda_min = confidence.initial_lambda(d, l2, kappa, known.delta)
        upsilon = None if model.continuous else _upsilon(model, name)
        nodes.append(NodeAssumptions(name, d, l1, l2, own_kappa, lambda_min, upsilon))
    least = min((node.upsilon for node in nodes if node.upsilon is not None), default=None)
    l1, l2 = max(each.l1 for each in learned), max(each.l2 for each in learned)
    return replace(known, nodes=tuple(nodes), l1=l1, l2=l2, kappa=kappa, upsilon=least)


def _weights(model: WeightedModel, name: str) -> Array:
    v = model.graph.index(name)
    return model.theta[model.graph.arrays.parent_ptr[v] : model.graph.arrays.parent_ptr[v + 1]]


def _bounds(model: WeightedModel, name: str) -> LinkBounds:
    """L1, L2 and kappa of a node.

    For given v the ball reaches v . theta* -+ ||v||. The lower end is concave in v and the upper end convex, so that
    both are extreme at 0/1 vectors: the k smallest weights for some k, and the k largest for some k.
    """
    theta = np.sort(_weights(model, name))
    d = len(theta)
    lengths = np.sqrt(np.arange(1, d + 1))
    low = float(np.min(np.cumsum(theta) - lengths, initial=0.0))
    high = float(np.max(np.cumsum(theta[::-1]) + lengths, initial=0.0))
    link = model.link(name)
    least = min(low, -float(d)) if np.any(theta < 0) else low
    return link.bounds(low, high)._replace(l1=link.bounds(least, max(high, float(d))).l1)


def _upsilon(model: WeightedModel, name: str) -> float:
    """min{f(least weighted sum), 1 - f(largest)}: Appendix B, where these are the bias and the sum of theta*."""
    v = model.graph.index(name)
    ends = _probability(model.link(name).probability(np.array([model.reach.low[v], model.reach.high[v]])))
    return float(min(ends[0], 1.0 - ends[1]))


def _probability(p: Array) -> Array:
    """Probabilities free of rounding at 0 and 1, so that what is impossible has probability 0."""
    p = np.where(p < _CERTAIN, 0.0, p)
    return np.where(p > 1.0 - _CERTAIN, 1.0, p)


# -- Assumption 3 ---------------------------------------------------------------------------------------------


def zeta_from_upsilon(upsilon: float, D_out: int) -> float:
    """zeta = u^(D_out + 1) / (u^(D_out + 1) + (1 - u)^(D_out + 1)): Lemma 6 (Appendix B)."""
    one, zero = upsilon ** (D_out + 1), (1.0 - upsilon) ** (D_out + 1)
    return one / (one + zero)


def _zeta(known: Assumptions, model: WeightedModel, graph: CausalGraph) -> Assumptions:
    """The exact zeta of data from `model` and parents in `graph`, and the one that Appendix B derives."""
    if model.continuous:
        return known
    derived = zeta_from_upsilon(known.upsilon, known.D_out) if known.upsilon and not model.graph.latent else 0.0
    lemma = derived or None  # 0 where Appendix B says nothing
    worlds = _joint(model)
    if worlds is None:
        return replace(known, zeta_lemma=lemma)
    joint, axis = worlds
    nodes = []
    for node in known.nodes:
        axes = [axis[name] for name in graph.parents(node.name)]
        table = joint.sum(axis=tuple(set(range(joint.ndim)) - set(axes)))
        zeta, impossible = _least_conditional(table)
        nodes.append(replace(node, zeta=zeta, impossible=impossible))
    exact = min(node.zeta for node in nodes if node.zeta is not None)
    return replace(known, nodes=tuple(nodes), zeta_exact=exact, zeta_lemma=lemma)


def _joint(model: WeightedModel) -> tuple[Array, dict[str, int]] | None:
    """Joint distribution of the nodes that have children, an axis of length 2 each; None where there are too many."""
    inner = [name for name in model.graph.nodes if model.graph.children(name)]
    if len(inner) > _MOST_INNER:
        return None
    axis = {name: i for i, name in enumerate(inner)}
    joint = np.ones(())
    for name in inner:
        bias, weights = model.parent_weights(name)
        x = np.full(joint.shape, bias)
        for parent, weight in weights.items():
            x = x + weight * np.arange(2.0).reshape([2 if i == axis[parent] else 1 for i in range(joint.ndim)])
        p = _probability(model.link(name).probability(x))
        joint = np.stack([joint * (1.0 - p), joint * p], axis=-1)
    return joint, axis


def _least_conditional(table: Array) -> tuple[float | None, int]:
    """min over a parent, its value and the others' pattern v of P(value | v); and how many v never happen."""
    least, impossible = None, 0
    for i in range(table.ndim):
        total = table.sum(axis=i)
        happens = total > 0.0
        worst = float(np.min(table.min(axis=i)[happens] / total[happens]))
        least = worst if least is None else min(least, worst)
        impossible += int(np.sum(~happens))
    return least, impossible


# -- initialisation -------------------------------------------------------------------------------------------


def _initialisation(known: Assumptions) -> Assumptions:
    """rho, R and T0 of Algorithm 1, line 2; None where infinite."""
    rho = confidence.radius_bglm_ofu(known.kappa, known.delta) if known.kappa else math.inf
    R = confidence.constant_R(known.D, known.l2, known.kappa, known.delta)
    rounds = math.inf
    if known.zeta:
        rounds = confidence.initial_rounds(known.n, known.zeta, known.delta, R, known.c)
    return replace(
        known,
        rho=rho if math.isfinite(rho) else None,
        R=int(R) if math.isfinite(R) else None,
        # zeta carries rounding, which must not cost a round
        initial_rounds=math.ceil(rounds * (1.0 - 1e-12)) if math.isfinite(rounds) else None,
    )


def on_signs(known: Assumptions) -> Iterator[str]:
    """What changes where some cause makes its effect less likely."""
    if known.harmful:
        edges = listed(f"{cause} -> {effect}" for cause, effect in known.harmful)
        have = "has a negative weight" if len(known.harmful) == 1 else "have negative weights"
        yield (
            f"Harmful effects: {edges} {have}. One more variable set to 1 can lower the target, so it "
            "is not enough to look among sets of exactly K."
        )


def on_assumptions(known: Assumptions) -> Iterator[str]:
    if known.linear:
        yield (
            "Assumptions 1 and 2 hold: the model is linear, so L1 = kappa = 1, and L2 may be as small as we like. "
            "So Eq. (3) only asks for an invertible M, and R = 1."
        )
    else:
        yield f"Assumption 1 holds: f' <= L1 = {known.l1:.4g} and |f''| <= L2 = {known.l2:.4g}."
        flattest = min((node for node in known.nodes if node.parents), key=lambda node: node.kappa).name
        verdict = f"holds: f' >= kappa = {known.kappa:.4g}" if known.assumption2 else "fails: f' can be 0"
        yield f"Assumption 2 {verdict} (at {flattest!r})."
    if known.continuous:
        yield "Assumption 3 is about binary variables; these are continuous."
    elif known.zeta_exact is not None:
        tightest = min((n for n in known.nodes if n.zeta is not None), key=lambda n: (n.zeta, n.name)).name
        verdict = f"holds with zeta = {known.zeta_exact:.4g}" if known.assumption3 else "fails"
        why = "is the closest to being" if known.assumption3 else "is"
        yield f"Assumption 3 {verdict}: a parent of {tightest!r} {why} decided by the other parents."
        never = [node.name for node in known.nodes if node.impossible]
        if never:
            yield f"Some patterns of the parents of {listed(never)} never happen; they were left out of zeta."
    elif known.zeta_lemma is not None:
        yield (
            f"Assumption 3 holds with zeta = {known.zeta_lemma:.4g} at least (Appendix B, from upsilon = "
            f"{known.upsilon:.4g} and D_out = {known.D_out}); the model is too large for the exact zeta."
        )
    else:
        yield "Assumption 3 is open: the model is too large for the exact zeta, and Appendix B does not settle it."


def on_guarantees(known: Assumptions) -> Iterator[str]:
    """What BLM-LR and BGLM-OFU are guaranteed, and when."""
    if known.harmful:
        yield "BLM-LR and BGLM-OFU: no guarantee is known, since the paper's policies need nonnegative weights."
        return
    if known.linear:
        theorem = 4 if known.continuous else 3
        yield f"BLM-LR is guaranteed regret O(n^2 sqrt(D T) log T) (Theorem {theorem}); it needs no Assumption 3."
    theorem, order = (2, "n sqrt(D T) log T") if known.linear else (1, "n L1 / kappa sqrt(D T) log T")
    if known.continuous:
        yield "BGLM-OFU: no guarantee is known for continuous variables."
    elif not (known.assumption1 and known.assumption2 and known.assumption3):
        missing = [str(i) for i in (1, 2, 3) if not getattr(known, f"assumption{i}")]
        yield f"BGLM-OFU: no guarantee is known without Assumption {' and '.join(missing)} (Theorem {theorem})."
    elif known.initial_rounds is None:
        yield f"BGLM-OFU: Theorem {theorem} holds, but kappa is so small that its T0 is no number."
    else:
        yield f"BGLM-OFU is guaranteed regret O({order}) (Theorem {theorem}) after T0 rounds of pure observation."
        late = f" That is more than the horizon of {known.horizon:,}, so the theorem says nothing for it."
        yield (
            f"T0 = {known.initial_rounds:,} rounds (with c = {known.c:g}; the paper gives no value for c)."
            + (late if known.initial_rounds >= known.horizon else "")
        )
        steepest = max(known.thresholds().items(), key=lambda item: item[1])
        yield f"Instead one may wait until lambda_min(M) meets Eq. (3), here {steepest[1]:.4g} for {steepest[0]!r}" + (
            " (at least 1, for Lemma 9), which is usually much sooner."
            if steepest[1] < known.horizon
            else f"; but lambda_min(M) is at most t, so that takes more than {known.horizon:,} rounds too."
        )
