"""Which of the paper's assumptions a model meets, what its theorems then promise, and how long BGLM-OFU would observe.

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

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import MOST_ROUNDS_EVER, shown, whole_number
from dobandit.errors import DobanditError, GraphError, ModelError, listed
from dobandit.estimation import confidence
from dobandit.model.bglm import BinaryGLM, LinearModel, WeightedModel
from dobandit.model.links import LinkBounds
from dobandit.model.projection import project
from dobandit.texts import for_python

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
    upsilon: float | None
    zeta: float | None
    impossible: int


@dataclass(frozen=True)
class Assumptions:
    """The constants of a model. None where unknown or infinite; `obstacle` says why nothing is known."""

    n: int
    D: int
    D_out: int
    horizon: int
    delta: float
    c: float
    linear: bool
    continuous: bool
    harmful: tuple[tuple[str, str], ...]  # edges with a negative weight, once hidden variables are removed
    obstacle: DobanditError | None = None
    nodes: tuple[NodeAssumptions, ...] = ()
    l1: float = math.nan
    l2: float = math.nan
    kappa: float = math.nan
    upsilon: float | None = None
    zeta_exact: float | None = None
    zeta_lemma: float | None = None
    rho: float | None = None
    R: float | None = None  # a whole number, as is T0
    initial_rounds: float | None = None

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
        return None if self.zeta is None else self.zeta > 0.0

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
        return [for_python(sentence) for sentence in _sentences(self)]

    def sentences(self) -> list[str]:
        """The same, with keywords marked (`texts.keyword`), as the command line reads them."""
        return list(_sentences(self))


def diagnose_assumptions(
    model: BinaryGLM | LinearModel, horizon: int = 10_000, delta: float | None = None, c: float = confidence.DEFAULT_C
) -> Assumptions:
    """Every constant of the paper's theory for `model`; delta is Algorithm 1's for the horizon unless given.

    >>> from dobandit import paper
    >>> diagnosis = diagnose_assumptions(paper.G1)
    >>> diagnosis.kappa, round(diagnosis.zeta, 6), diagnosis.initial_rounds
    (1.0, 0.1, 3860)
    """
    horizon = whole_number("horizon", horizon, 1, ModelError, MOST_ROUNDS_EVER)
    n = len(model.graph.observed) + 1
    delta = confidence.delta_bglm_ofu(n, horizon) if delta is None else confidence.checked_delta(delta)
    if not c > 0:
        raise ModelError(f"c is a positive constant, but got {shown(c)}. The paper gives no value; ours is 1.")
    try:
        markovian: WeightedModel = project(model)
        obstacle: DobanditError | None = None
    except (GraphError, ModelError) as error:
        markovian, obstacle = model, error
    graph = markovian.graph
    D, D_out = (int(np.diff(ptr)[1:].max()) for ptr in (graph.arrays.parent_ptr, graph.arrays.child_ptr))
    given = n, D, D_out, horizon, delta, float(c), model.is_linear, model.continuous, markovian.harmful
    if obstacle:
        return Assumptions(*given, obstacle)
    degrees = dict(zip(graph.nodes, np.diff(graph.arrays.parent_ptr)[1:].tolist(), strict=True))
    bounds = {name: _bounds(markovian, name) for name in graph.nodes}
    learned = [bounds[name] for name, d in degrees.items() if d]  # a node without any parent has no weight to learn
    l1, l2, kappa = max(b.l1 for b in learned), max(b.l2 for b in learned), min(b.kappa for b in learned)
    joint = _joint(model)
    nodes = []
    for name, d in degrees.items():
        lambda_min = confidence.initial_lambda(d, bounds[name].l2, kappa, delta)
        upsilon = None if model.continuous else _upsilon(markovian, name)
        zeta, impossible = (None, 0) if joint is None else _least_conditional(*joint, graph.parents(name))
        nodes.append(NodeAssumptions(name, d, *bounds[name], lambda_min, upsilon, zeta, impossible))
    upsilon = min((node.upsilon for node in nodes if node.upsilon is not None), default=None)
    exact = min((node.zeta for node in nodes if node.zeta is not None), default=None)
    lemma = zeta_from_upsilon(upsilon, D_out) if upsilon and not model.graph.latent else None
    zeta = exact if exact is not None else lemma
    rho = confidence.radius_bglm_ofu(kappa, delta) if kappa else math.inf
    R = confidence.constant_R(D, l2, kappa, delta)
    rounds = confidence.initial_rounds(n, zeta, delta, R, c) if zeta else math.inf
    if math.isfinite(rounds):
        rounds = math.ceil(rounds * (1.0 - 1e-12))  # zeta carries rounding, which must not cost a round
    constants = l1, l2, kappa, upsilon, exact, lemma or None  # 0 where Appendix B says nothing
    finite = (number if math.isfinite(number) else None for number in (rho, R, rounds))
    return Assumptions(*given, None, tuple(nodes), *constants, *finite)


# -- a node's constants ---------------------------------------------------------------------------------------


def _bounds(model: WeightedModel, name: str) -> LinkBounds:
    """L1, L2 and kappa of a node.

    For given v the ball reaches v . theta* -+ ||v||. The lower end is concave in v and the upper end convex, so that
    both are extreme at 0/1 vectors: the k smallest weights for some k, and the k largest for some k.
    """
    v, ptr = model.graph.index(name), model.graph.arrays.parent_ptr
    theta = np.sort(model.theta[ptr[v] : ptr[v + 1]])
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


def zeta_from_upsilon(upsilon: float, D_out: int) -> float:
    """zeta = u^(D_out + 1) / (u^(D_out + 1) + (1 - u)^(D_out + 1)): Lemma 6 (Appendix B)."""
    one, zero = upsilon ** (D_out + 1), (1.0 - upsilon) ** (D_out + 1)
    return one / (one + zero)


def _joint(model: WeightedModel) -> tuple[Array, dict[str, int]] | None:
    """Joint distribution of the nodes that have children, an axis of length 2 each; None where there are too many, or
    they are continuous."""
    inner = [name for name in model.graph.nodes if model.graph.children(name)]
    if model.continuous or len(inner) > _MOST_INNER:
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


def _least_conditional(joint: Array, axis: Mapping[str, int], parents: Sequence[str]) -> tuple[float | None, int]:
    """min over a parent, its value and the others' pattern v of P(value | v); and how many v never happen."""
    table = joint.sum(axis=tuple(set(range(joint.ndim)) - {axis[name] for name in parents}))
    least, impossible = None, 0
    for i in range(table.ndim):
        total = table.sum(axis=i)
        happens = total > 0.0
        worst = float(np.min(table.min(axis=i)[happens] / total[happens]))
        least = worst if least is None else min(least, worst)
        impossible += int(np.sum(~happens))
    return least, impossible


# -- how long BGLM-OFU would observe --------------------------------------------------------------------------


def lambda_min_rounds(
    model: BinaryGLM | LinearModel, thresholds: Mapping[str, float], most: int, rng: np.random.Generator
) -> int | None:
    """Rounds of pure observation until lambda_min(M_{t,X}) >= thresholds[X] for every X; None if not within `most`.

    "Do no intervention until Eq. (3) holds for every X" (Section 3), simulated once; see `Assumptions.thresholds`.
    Observing more never lowers an eigenvalue, so each node's first such round is found by bisection.
    """
    graph = project(model).graph
    if any(least > most for least in thresholds.values()):
        return None  # values are at most 1, so lambda_min is at most t
    waiting = {name: least for name, least in thresholds.items() if graph.parents(name) or graph.has_bias(name)}
    gram: dict[str, Array] = {name: np.zeros(()) for name in waiting}
    start = reached = 0
    for size in block_sizes(most):
        sample = model.sample(None, size, rng)
        for name, least in list(waiting.items()):
            V = np.array([np.ones(size)] * graph.has_bias(name) + [sample[p] for p in graph.parents(name)], float).T
            if _least_eigenvalue(gram[name] + V.T @ V) >= least:
                reached = max(reached, start + _first_round(gram[name], V, least))
                del waiting[name]
            else:
                gram[name] = gram[name] + V.T @ V
        if not waiting:
            return reached
        start += size
    return None


def block_sizes(most: int) -> Iterator[int]:
    """64, 128, ... up to 16384 at a time, `most` in all: the rounds that are sampled together."""
    size = 64
    while most > 0:
        yield min(size, most)
        most -= min(size, most)
        size = min(2 * size, 1 << 14)


def _first_round(before: Array, V: Array, least: float) -> int:
    return bisect.bisect_left(
        range(len(V) + 1), True, key=lambda rows: _least_eigenvalue(before + V[:rows].T @ V[:rows]) >= least
    )


def _least_eigenvalue(M: Array) -> float:
    """lambda_min, raised by what rounding may have taken: a matrix with lambda_min = 1 must pass for 1."""
    return float(np.linalg.eigvalsh(M)[0]) + 1e-13 * float(np.trace(M))


# -- in words -------------------------------------------------------------------------------------------------


def _sentences(known: Assumptions) -> Iterator[str]:
    if known.harmful:
        edges = listed(f"{cause} -> {effect}" for cause, effect in known.harmful)
        have = "has a negative weight" if len(known.harmful) == 1 else "have negative weights"
        yield (
            f"Harmful effects: {edges} {have}. One more variable set to 1 can lower the target, so it "
            "is not enough to look among sets of exactly K."
        )
    if known.obstacle:
        yield f"No guarantee is known for this model: {known.obstacle.marked}"
        return
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
    yield from _on_assumption3(known)
    if known.harmful:
        yield "BLM-LR and BGLM-OFU: no guarantee is known, since the paper's policies need nonnegative weights."
        return
    if known.linear:
        theorem = 4 if known.continuous else 3
        yield f"BLM-LR is guaranteed regret O(n^2 sqrt(D T) log T) (Theorem {theorem}); it needs no Assumption 3."
    yield from _on_bglm_ofu(known)


def _on_assumption3(known: Assumptions) -> Iterator[str]:
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


def _on_bglm_ofu(known: Assumptions) -> Iterator[str]:
    theorem, order = (2, "n sqrt(D T) log T") if known.linear else (1, "n L1 / kappa sqrt(D T) log T")
    missing = [str(i) for i in (1, 2, 3) if not getattr(known, f"assumption{i}")]
    if known.continuous:
        yield "BGLM-OFU: no guarantee is known for continuous variables."
    elif missing:
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
        name, steepest = max(known.thresholds().items(), key=lambda item: item[1])
        yield f"Instead one may wait until lambda_min(M) meets Eq. (3), here {steepest:.4g} for {name!r}" + (
            " (at least 1, for Lemma 9), which is usually much sooner."
            if steepest < known.horizon
            else f"; but lambda_min(M) is at most t, so that takes more than {known.horizon:,} rounds too."
        )
