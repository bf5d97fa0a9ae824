"""One suite for every link: a new link is tested by adding it to LINKS."""

import copy
import math
import pickle

import numpy as np
import pytest

from dobandit import Link
from dobandit.errors import ModelError
from dobandit.model.links import BUILDERS, custom, exponential, identity, link_from_document, logistic, probit, rational
from helpers.worlds import ARCTAN, PLAIN_LINKS, arctan_bend, arctan_slope, arctan_value

LINKS = {
    "identity": identity,
    "logistic": logistic(),
    "logistic(2.5)": logistic(2.5),
    "logistic(-4)": logistic(-4),
    "probit": probit(),
    "probit(1.5)": probit(1.5),
    "probit(-2)": probit(-2.0),
    "exponential": exponential,
    "rational": rational(),
    "rational(0.05)": rational(0.05),
    "rational(30)": rational(30),
    "arctan": ARCTAN,
}
BUILT_IN = {name: link for name, link in LINKS.items() if name != "arctan"}

every_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS.keys())
every_built_in = pytest.mark.parametrize("link", BUILT_IN.values(), ids=BUILT_IN.keys())


def grid(link: Link, points: int = 2001) -> np.ndarray:
    low, high = max(link.domain[0], -9.0), min(link.domain[1], 9.0)
    return np.linspace(low, high, points)


def difference_quotient(f, x: np.ndarray) -> np.ndarray:
    """Fourth-order central differences."""
    h = 1e-4
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


# -- the mathematics ------------------------------------------------------------------------------------------


@every_link
def test_value_is_the_formula(link):
    x = grid(link, 301)
    expected = [PLAIN_LINKS[link.name](float(v), **dict(link.parameters)) for v in x]
    np.testing.assert_allclose(link(x), expected, rtol=1e-13, atol=1e-15)


@every_link
def test_derivatives_agree_with_numerical_ones(link):
    x = grid(link)[1:-1]
    np.testing.assert_allclose(link.slope(x), difference_quotient(link.value, x), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(link.bend(x), difference_quotient(link.slope, x), rtol=1e-7, atol=1e-9)


@every_link
def test_monotone_with_values_in_the_unit_interval(link):
    x = grid(link)
    values = link(x)
    assert np.all(np.diff(values) >= 0)
    assert np.all((values >= 0) & (values <= 1))
    assert np.all(link.slope(x) >= 0)


@every_link
def test_floats_and_arrays_give_the_same(link):
    x = grid(link, 11)
    for curve in (link, link.value, link.slope, link.bend):
        assert [float(curve(float(v))) for v in x] == pytest.approx(list(curve(x)), rel=1e-15)
        assert curve(x.reshape(1, 11, 1)).shape == (1, 11, 1)
        assert curve(np.zeros(0)).shape == (0,)
    assert np.array_equal(x, grid(link, 11)), "the argument was overwritten"


@every_built_in
@pytest.mark.parametrize("size", [1e-300, 1e3, 1e6, 1e160, 1e300, math.inf])
@pytest.mark.parametrize("as_array", [False, True])
def test_extreme_arguments_are_harmless(link, size, as_array):
    for x in {min(max(v, link.domain[0]), link.domain[1]) for v in (-size, size)}:
        given = np.array([x]) if as_array else x
        value, slope, bend = (float(np.squeeze(curve(given))) for curve in (link.value, link.slope, link.bend))
        assert 0 <= value <= 1
        assert slope >= 0
        assert math.isfinite(slope)
        assert math.isfinite(bend)
        if abs(x) >= 1e160:
            assert value == pytest.approx(1.0 if x > 0 else 0.0)
            assert slope == pytest.approx(0.0)
            assert bend == pytest.approx(0.0)


@pytest.mark.parametrize("link", [exponential, rational(3.0)], ids=["exponential", "rational"])
def test_small_probabilities_keep_their_digits(link):
    slope_at_zero = {"exponential": 1.0, "rational": 3.0}[link.name]
    assert float(link(1e-18)) == pytest.approx(slope_at_zero * 1e-18, rel=1e-12)


# -- bounds ---------------------------------------------------------------------------------------------------

RANGES = [(-8.0, 8.0), (0.0, 1.0), (0.0, 0.3), (-0.7, 0.1), (1.0, 6.0), (-5.0, -3.0), (0.5, 0.5), (2.4, 2.6)]


@every_link
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_bounds_hold_on_a_fine_grid(link, low, high):
    x = np.clip(np.linspace(low, high, 20_001), *link.domain)
    l1, l2, kappa = link.bounds(low, high)
    assert l1 >= link.slope(x).max() * (1 - 1e-12)
    assert l2 >= np.abs(link.bend(x)).max() * (1 - 1e-12)
    assert kappa <= link.slope(x).min() * (1 + 1e-12)


@every_built_in
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_bounds_are_attained(link, low, high):
    x = np.clip(np.linspace(low, high, 20_001), *link.domain)
    attained = (link.slope(x).max(), np.abs(link.bend(x)).max(), link.slope(x).min())
    assert link.bounds(low, high) == pytest.approx(attained, rel=1e-5, abs=1e-12)


@every_built_in
def test_bounds_over_the_whole_line(link):
    l1, l2, kappa = link.bounds(-math.inf, math.inf)
    wide = link.bounds(-50.0, 50.0)
    assert (l1, l2) == pytest.approx((wide.l1, wide.l2))
    assert kappa == pytest.approx(1.0 if link is identity else 0.0, abs=1e-100)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        (identity, (1, 0, 1)),
        (logistic(), (1 / 4, 1 / (6 * math.sqrt(3)), math.e / (1 + math.e) ** 2)),
        (
            probit(),
            (
                1 / math.sqrt(2 * math.pi),
                math.exp(-0.5) / math.sqrt(2 * math.pi),
                math.exp(-0.5) / math.sqrt(2 * math.pi),
            ),
        ),
        (exponential, (1, 1, math.exp(-1))),
        (rational(3.0), (3, 18, 3 / 16)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_bounds_by_hand_from_0_to_1(link, expected):
    low = -2.0 if link.name == "logistic" else 0.0  # |f''| of the logistic is greatest at -ln(2 + sqrt 3)
    l1, l2, kappa = link.bounds(low, 1.0)
    kappa = link.bounds(0.0, 1.0).kappa
    assert (l1, l2, kappa) == pytest.approx(expected, rel=1e-12)


def test_custom_links_state_their_own_bounds():
    assert ARCTAN.bounds(0, 1) == ARCTAN.bounds(-5, 5) == pytest.approx((0.3183098862, 0.2067483, 0.0), rel=1e-6)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (math.nan, 1.0), (0.0, math.nan)])
def test_an_empty_range_is_refused(low, high):
    with pytest.raises(ModelError, match="low <= high"):
        logistic().bounds(low, high)


# -- documents and pickles ------------------------------------------------------------------------------------


@every_link
def test_pickles_and_copies_are_equal(link):
    for again in (pickle.loads(pickle.dumps(link)), copy.deepcopy(link)):
        assert again == link
        assert hash(again) == hash(link)
        x = grid(link, 50)
        for curve, other in ((link.value, again.value), (link.slope, again.slope), (link.bend, again.bend)):
            np.testing.assert_array_equal(curve(x), other(x))
        assert again.bounds(0, 1) == link.bounds(0, 1)


def test_the_identity_stays_one_object():
    assert pickle.loads(pickle.dumps(identity)) is identity
    assert copy.deepcopy(identity) is identity


@every_built_in
def test_document_round_trip(link):
    assert link_from_document(link.to_document()) == link
    assert link_from_document(link) is link


def test_links_with_other_parameters_differ():
    assert len(set(BUILT_IN.values())) == len(BUILT_IN)
    assert logistic(2) == logistic(2.0) == link_from_document({"name": "logistic", "shift": 2})


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("logistic", logistic()),
        ("probit", probit()),
        ("rational", rational()),
        ("linear", identity),
        ("1-exp(-x)", exponential),
        ("1 - exp(-x)", exponential),
        ("1 - 1/(ax + 1)", rational()),
    ],
)
def test_names_and_aliases(text, link):
    assert link_from_document(text) == link


@pytest.mark.parametrize("number", [2, 2.0, np.float64(2), np.float32(2), np.int64(2)], ids=lambda n: type(n).__name__)
def test_parameters_may_be_any_real_number_type(number):
    assert logistic(number) == logistic(2.0)
    assert type(logistic(number).parameters[0][1]) is float


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("logistics", ["'logistics'", "Did you mean 'logistic'?", "'identity'"]),
        ({"name": "cloglog"}, ["'cloglog'", "'exponential'"]),
        ({"name": "logistic", "shft": 1}, ["logistic", "takes 'shift'", "'shft'"]),
        ({"name": "identity", "shift": 1}, ["identity", "no parameters", "'shift'"]),
        ({"name": "logistic", 3: 1}, ["logistic", "3"]),
        ({"shift": 1}, ["a link is a name"]),
        ({"name": None}, ["a link is a name", "None"]),
        (None, ["a link is a name", "None"]),
        (3, ["a link is a name", "3"]),
        (["logistic"], ["a link is a name", "['logistic']"]),
        ({"name": "logistic", "shift": "2"}, ["logistic", "shift", "finite number", "'2'"]),
        ({"name": "logistic", "shift": None}, ["logistic", "shift", "None"]),
        ({"name": "logistic", "shift": True}, ["logistic", "shift", "True"]),
        ({"name": "probit", "shift": math.inf}, ["probit", "shift", "inf"]),
        ({"name": "probit", "shift": math.nan}, ["probit", "shift", "nan"]),
        ({"name": "probit", "shift": 10**400}, ["probit", "shift"]),
        ({"name": "rational", "a": 0}, ["rational", "a > 0", "0"]),
        ({"name": "rational", "a": -1.5}, ["rational", "a > 0", "-1.5"]),
    ],
)
def test_a_bad_document_is_refused_in_words(document, words):
    with pytest.raises(ModelError) as caught:
        link_from_document(document)
    assert all(word in str(caught.value) for word in words), caught.value


# -- links of one's own ---------------------------------------------------------------------------------------

BOUNDS = (1.0, 1.0, 0.0)


def test_a_wrong_first_derivative_is_refused_with_both_numbers():
    with pytest.raises(ModelError, match=r"link 'mine': f'\(.*is given as .* but the difference quotient there is"):
        custom("mine", arctan_value, lambda x: 1.01 * arctan_slope(x), arctan_bend, bounds=BOUNDS)


def test_a_wrong_second_derivative_is_refused():
    with pytest.raises(ModelError, match=r"link 'mine': f''\("):
        custom("mine", arctan_value, arctan_slope, lambda x: -arctan_bend(x), bounds=BOUNDS)


def test_a_derivative_of_nan_is_refused():
    with pytest.raises(ModelError, match=r"f'\(.*nan"):
        custom("mine", arctan_value, lambda x: np.full_like(x, np.nan), arctan_bend, bounds=BOUNDS)


def test_a_decreasing_link_is_refused():
    with pytest.raises(ModelError, match="must not decrease"):
        custom("mine", lambda x: 0.5 - 0.1 * x, lambda x: -0.1 + 0 * x, lambda x: 0 * x, bounds=BOUNDS)


@pytest.mark.parametrize("name", ["identity", "logistic", "", "  "])
def test_a_link_needs_a_name_of_its_own(name):
    with pytest.raises(ModelError, match="name of its own"):
        custom(name, arctan_value, arctan_slope, arctan_bend, bounds=BOUNDS)


@pytest.mark.parametrize("bounds", [(0, 1, 0), (1, -1, 0), (1, 1, -0.1), (1, 1, 2), (math.nan, 1, 0), (1, math.nan, 0)])
def test_impossible_bounds_are_refused(bounds):
    with pytest.raises(ModelError, match="bounds are"):
        custom("mine", arctan_value, arctan_slope, arctan_bend, bounds=bounds)


@pytest.mark.parametrize("domain", [(4.0, math.inf), (4.0, 6.0), (-math.inf, -5.0), (0.0, 1.0), (-3.0, 3.0)])
def test_a_link_of_ones_own_may_live_anywhere(domain):
    def inside(f):
        def checked(x):
            assert np.all((np.asarray(x) >= domain[0]) & (np.asarray(x) <= domain[1])), "asked outside its domain"
            return f(x)

        return checked

    link = custom("mine", *map(inside, (arctan_value, arctan_slope, arctan_bend)), bounds=BOUNDS, domain=domain)
    assert link.domain == domain


@pytest.mark.parametrize("weight_range", [(1.0, 1.0), (0.5, 0.0), (-2.0, -1.0), (-1.0, 0.0), (math.nan, 1.0)])
def test_a_weight_range_that_holds_no_positive_weight_is_refused(weight_range):
    with pytest.raises(ModelError, match="weight_range"):
        custom("mine", arctan_value, arctan_slope, arctan_bend, bounds=BOUNDS, weight_range=weight_range)


def test_a_link_of_ones_own_may_take_negative_weights():
    link = custom("mine", arctan_value, arctan_slope, arctan_bend, bounds=BOUNDS, weight_range=(-2.0, 3.0))
    assert (link.weight_range, link.nonnegative_range) == ((-2.0, 3.0), (0.0, 3.0))


def test_ranges_of_weights():
    ranges = {name: build().weight_range for name, (build, _) in BUILDERS.items()}
    anything = (-math.inf, math.inf)
    assert ranges == {
        "identity": (-1.0, 1.0),
        "logistic": anything,
        "probit": anything,
        "exponential": (0.0, math.inf),
        "rational": (0.0, math.inf),
        "auto": (-1.0, 1.0),
    }
    assert all(build().nonnegative_range == (0.0, ranges[name][1]) for name, (build, _) in BUILDERS.items())


@pytest.mark.parametrize("link", [build() for build, _ in BUILDERS.values()], ids=lambda link: link.name)
def test_probability_is_f_within_the_domain_and_its_nearest_point_outside(link):
    x = np.linspace(-3.0, 3.0, 61)
    inside = np.array([min(max(one, link.domain[0]), link.domain[1]) for one in x.tolist()])
    np.testing.assert_array_equal(link.probability(x), link.value(inside))
    assert link.probability(0.5) == link.value(0.5)
