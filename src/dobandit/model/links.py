"""Links: P(X = 1 | parents) = f(theta . parents), f nondecreasing (paper, Section 2).

x: the weighted sum theta . parents.  L1 = sup f', L2 = sup |f''|, kappa = inf f' over a range of x
(Assumptions 1 and 2). Each link knows where f' and f'' can be extreme, so the bounds are exact.

    name         f(x)                     domain        weights
    identity     x                        [0, 1]        [-1, 1]
    logistic     1 / (1 + exp(shift - x)) any           any
    probit       Phi(x - shift)           any           any
    exponential  1 - exp(-x)              [0, inf)      [0, inf)     independent cascades
    rational     1 - 1 / (a x + 1)        [0, inf)      [0, inf)     the paper's hardness proof

The paper's weights are nonnegative: `Link.nonnegative_range` is the part of the range that its algorithms learn in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dobandit.checks import as_float
from dobandit.errors import ModelError, closest, listed

Array = NDArray[np.float64]
Curve = Callable[[Any], Any]
_ANY = (-math.inf, math.inf)


class LinkBounds(NamedTuple):
    """sup f', sup |f''| and inf f' over a range (the paper's L^(1), L^(2) and kappa)."""

    l1: float
    l2: float
    kappa: float


@dataclass(frozen=True)
class Link:
    """A nondecreasing f with its first two derivatives, each working on floats and arrays.

    name              how files and messages call it
    value             f;  slope: f';  bend: f''
    parameters        the names and numbers that make it, such as a shift
    domain            where f is defined
    weight_range      what one weight, or a bias, may be; a negative weight says that the cause makes its effect less
                      likely. Within it a model must still keep every weighted sum in the domain and every f of one in
                      [0, 1]
    slope_extremes    the x where f' can have an interior extreme
    bend_extremes     the x where |f''| can have one
    given_bounds      bounds of f' and |f''| that were given rather than computed

    The links that come with the package are functions of `dobandit.links`, which make one with its parameters; `custom`
    there makes one of your own.

    >>> from dobandit import links
    >>> float(links.logistic(shift=2.0).value(2.0))
    0.5
    """

    name: str
    value: Curve = field(compare=False, repr=False)
    slope: Curve = field(compare=False, repr=False)
    bend: Curve = field(compare=False, repr=False)
    parameters: tuple[tuple[str, float], ...] = ()
    domain: tuple[float, float] = (-math.inf, math.inf)
    weight_range: tuple[float, float] = (0.0, math.inf)
    slope_extremes: tuple[float, ...] = field(default=(), compare=False, repr=False)
    bend_extremes: tuple[float, ...] = field(default=(), compare=False, repr=False)
    given_bounds: LinkBounds | None = field(default=None, compare=False, repr=False)

    def __call__(self, x: Any) -> Any:
        return self.value(x)

    @property
    def nonnegative_range(self) -> tuple[float, float]:
        """The part of `weight_range` from 0 on: the weights that the paper's algorithms look among."""
        low, high = self.weight_range
        return max(low, 0.0), max(high, 0.0)

    def probability(self, x: Any) -> Array:
        """f(x), free of rounding: x is cut to the domain and f(x) to [0, 1].

        Weights of both signs that add up to the end of a domain miss it by rounding, where f may not be defined.

        >>> float(identity.probability(1.0 + 1e-16)), float(identity.probability(-0.1))
        (1.0, 0.0)
        """
        inside = np.clip(np.asarray(x, dtype=float), *self.domain)
        p: Array = np.clip(np.asarray(self.value(inside), dtype=float), 0.0, 1.0)
        return p

    def bounds(self, low: float, high: float) -> LinkBounds:
        """L1 = sup f', L2 = sup |f''| and kappa = inf f' over a range of weighted sums.

        low, high  its ends, cut to the link's domain

        >>> identity.bounds(0.0, 1.0)
        LinkBounds(l1=1.0, l2=0.0, kappa=1.0)
        """
        if self.given_bounds is not None:
            return self.given_bounds
        low, high = (min(max(end, self.domain[0]), self.domain[1]) for end in (low, high))
        if not low <= high:
            raise ModelError(f"a range needs low <= high, but got [{low}, {high}].")

        def at(curve: Curve, extremes: tuple[float, ...]) -> Array:
            inside = [x for x in extremes if low < x < high]
            return np.array([abs(float(curve(x))) for x in (low, *inside, high)])

        slopes, bends = at(self.slope, self.slope_extremes), at(self.bend, self.bend_extremes)
        return LinkBounds(float(slopes.max()), float(bends.max()), float(slopes.min()))

    def __reduce__(self) -> tuple[Callable[..., Link], tuple[object, ...]]:
        if self.name in BUILDERS:  # closures do not pickle, and identity must stay one object
            return (link_from_document, (self.to_document(),))
        return (Link, tuple(getattr(self, name) for name in self.__dataclass_fields__))

    def to_document(self) -> str | dict[str, object]:
        """The link as it stands in a model file: its name, with its parameters where it has some.

        >>> logistic(2.0).to_document()
        {'name': 'logistic', 'shift': 2.0}
        """
        return {"name": self.name, **dict(self.parameters)} if self.parameters else self.name


_line = (lambda x: x, lambda x: np.ones_like(x, dtype=float), lambda x: np.zeros_like(x, dtype=float))
identity = Link("identity", *_line, domain=(0.0, 1.0), weight_range=(-1.0, 1.0))
# Not a link of a model: a learner's word for "whatever the data say".
auto = Link("auto", *_line, domain=(0.0, 1.0), weight_range=(-1.0, 1.0))


def logistic(shift: float = 0.0) -> Link:
    """The link f(x) = 1 / (1 + exp(shift - x)).

    shift  sets how likely the node is with every parent at 0

    >>> float(logistic(shift=2.0).value(2.0))
    0.5
    """
    shift = _parameter("logistic", "shift", shift)

    def value(x: Any) -> Any:
        # exp(-|z|) never overflows
        z = np.subtract(x, shift)
        small = np.exp(-np.abs(z))
        return np.where(z >= 0, 1.0 / (1.0 + small), small / (1.0 + small))

    def slope(x: Any) -> Any:
        small = np.exp(-np.abs(np.subtract(x, shift)))
        return small / (1.0 + small) ** 2

    def bend(x: Any) -> Any:
        return slope(x) * -np.tanh(np.subtract(x, shift) / 2.0)

    return _shifted("logistic", (value, slope, bend), shift, turn=math.log(2.0 + math.sqrt(3.0)))


def probit(shift: float = 0.0) -> Link:
    """The link f(x) = Phi(x - shift), Phi the standard normal distribution function.

    shift  sets how likely the node is with every parent at 0

    >>> float(probit(shift=2.0).value(2.0))
    0.5
    """
    shift = _parameter("probit", "shift", shift)

    def value(x: Any) -> Any:
        from scipy.special import ndtr

        return ndtr(np.subtract(x, shift))

    def slope(x: Any) -> Any:
        z = np.clip(np.subtract(x, shift), -40.0, 40.0)  # exp(-800) is 0 already, and z * z must not overflow
        return np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)

    def bend(x: Any) -> Any:
        return -np.clip(np.subtract(x, shift), -40.0, 40.0) * slope(x)

    return _shifted("probit", (value, slope, bend), shift, turn=1.0)


def _shifted(name: str, curves: tuple[Curve, Curve, Curve], shift: float, turn: float) -> Link:
    """A curve that is steepest at `shift`, and bends most at a distance of `turn` from there."""
    given, turns = (("shift", shift),), (shift - turn, shift + turn)
    return Link(name, *curves, given, weight_range=_ANY, slope_extremes=(shift,), bend_extremes=turns)


exponential = Link(
    "exponential",
    lambda x: -np.expm1(np.negative(x)),
    lambda x: np.exp(np.negative(x)),
    lambda x: -np.exp(np.negative(x)),
    domain=(0.0, math.inf),
)


def rational(a: float = 1.0) -> Link:
    """The link f(x) = 1 - 1 / (a x + 1).

    a  how steep it is, above 0

    >>> float(rational(a=3.0).value(1.0))
    0.75
    """
    a = _parameter("rational", "a", a)
    if a <= 0:
        raise ModelError(f"the rational link needs a > 0, but got a = {a}.")

    def rise(x: Any) -> Any:  # 1e100 is infinity here, and its cube must not overflow
        return np.minimum(x, 1e100 / a) * a + 1.0

    return Link(
        "rational",
        lambda x: np.minimum(x, 1e100 / a) * a / rise(x),
        lambda x: a / rise(x) ** 2,
        lambda x: -2.0 * a * a / rise(x) ** 3,
        parameters=(("a", a),),
        domain=(0.0, math.inf),
    )


def custom(
    name: str,
    value: Curve,
    slope: Curve,
    bend: Curve,
    *,
    bounds: tuple[float, float, float],
    domain: tuple[float, float] = (-math.inf, math.inf),
    weight_range: tuple[float, float] = (0.0, math.inf),
) -> Link:
    """A nondecreasing link of your own.

    name                how files and messages call it
    value, slope, bend  f, f' and f'', on floats and arrays
    bounds              (sup f', sup |f''|, inf f')
    domain              where f is defined
    weight_range        what one weight may be; below 0 for causes that make their effect less likely, and `domain` must
                        then hold the sums

    The derivatives are compared with numerical ones here, so that a slip does not spoil weeks of learning.

    >>> curves = (lambda x: x / 2, lambda x: 0.5 + 0 * x, lambda x: 0 * x)
    >>> custom("half", *curves, bounds=(0.5, 0.0, 0.5), domain=(0.0, 2.0)).value(1.0)
    0.5
    """
    given = LinkBounds(*(float(b) for b in bounds))
    if not name.strip() or name in BUILDERS:
        raise ModelError(f"a link of your own needs a name of its own, but got {name!r}.")
    if not (given.l1 > 0 and given.l2 >= 0 and 0 <= given.kappa <= given.l1):
        raise ModelError(f"link {name!r}: bounds are (L1 > 0, L2 >= 0, 0 <= kappa <= L1), but got {bounds}.")
    if not (weight_range[0] < weight_range[1] and weight_range[1] > 0):
        raise ModelError(
            f"link {name!r}: a weight_range is (low, high) with low < high and high > 0, but got {weight_range}. "
            "Write (0, inf) for weights that are never negative, (-inf, inf) for any."
        )
    if not domain[0] < domain[1]:
        raise ModelError(f"link {name!r}: a domain needs low < high, but got {domain}.")
    near = min(max(0.0, domain[0]), domain[1])  # the point of the domain nearest to 0
    low, high = max(domain[0], near - 3.0), min(domain[1], near + 3.0)
    x = np.linspace(low, high, 41)[1:-1]
    h = 1e-5 * (high - low)
    for what, curve, below in (("f'", slope, value), ("f''", bend, slope)):
        claimed = np.asarray(curve(x), dtype=float)
        numerical = (np.asarray(below(x + h)) - np.asarray(below(x - h))) / (2 * h)
        wrong = np.flatnonzero(~(np.abs(claimed - numerical) <= 1e-5 * (1 + np.abs(numerical))))
        if len(wrong):
            i = wrong[0]
            raise ModelError(
                f"link {name!r}: {what}({x[i]:.3g}) is given as {claimed[i]:.6g}, but the difference quotient "
                f"there is {numerical[i]:.6g}. Correct {what}, or the function it derives from."
            )
    if np.any(np.diff(np.asarray(value(x), dtype=float)) < -1e-12):
        raise ModelError(f"link {name!r}: f must not decrease, but it does between {low} and {high}.")
    return Link(name, value, slope, bend, domain=domain, weight_range=weight_range, given_bounds=given)


BUILDERS: Mapping[str, tuple[Callable[..., Link], tuple[str, ...]]] = {
    "identity": (lambda: identity, ()),
    "logistic": (logistic, ("shift",)),
    "probit": (probit, ("shift",)),
    "exponential": (lambda: exponential, ()),
    "rational": (rational, ("a",)),
    "auto": (lambda: auto, ()),
}
_ALIASES = {"1-exp(-x)": "exponential", "linear": "identity", "1-1/(ax+1)": "rational"}


def link_from_document(document: object) -> Link:
    """A link from a model file.

    document  a name, or an object such as {"name": "logistic", "shift": 2.0}; a Link is kept

    >>> link_from_document("linear").name
    'identity'
    """
    if isinstance(document, Link):
        return document
    given: dict[str, object] = {"name": document} if isinstance(document, str) else {}
    if isinstance(document, Mapping):
        given = dict(document)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise ModelError(
            f'a link is a name or an object like {{"name": "logistic", "shift": 2}}, but got {document!r}.'
        )
    name = _ALIASES.get(name.replace(" ", ""), name)
    if name not in BUILDERS:
        raise ModelError(f"links are {listed(BUILDERS)}, but got {name!r}.{closest(name, BUILDERS)}")
    build, allowed = BUILDERS[name]
    unknown = [key for key in given if key not in allowed]
    if unknown:
        takes = f"takes {listed(allowed)}" if allowed else "has no parameters"
        raise ModelError(f"the {name} link {takes}, but got {listed(unknown)}.")
    return build(**given)


def _parameter(link: str, name: str, value: object) -> float:
    number = as_float(value)
    if not math.isfinite(number):
        raise ModelError(f"the {link} link's {name} is a finite number, but got {value!r}.")
    return number
