"""Sampling against exact distributions. Seeds are fixed and bounds come from statistics at 1e-6, never from trying.

`frequencies_agree` is a chi-square test on the joint distribution; means are held to Hoeffding's bound, shared out
over all means of a test.
"""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dobandit import BinaryGLM, CausalGraph, LinearModel, expect, paper
from helpers.worlds import ARCTAN, brute_force_means, hidden_blm, joint, random_bglm, random_do, tabulated

LEVEL = 1e-6
DRAWS = 100_000

THRESHOLD = {
    "a": 0.4,
    "b": 0.3,
    "c": 0.1,
    ("a", "c"): 0.5,
    ("b", "c"): 0.4,
    ("a", "d"): 0.3,
    ("c", "d"): 0.3,
    ("c", "Y"): 0.5,
    ("d", "Y"): 0.25,
    ("b", "Y"): 0.15,
    "Y": 0.05,
}
ORDER = ("a", "b", "c", "d", "Y")
INTERVENTIONS = [{}, {"c": 1}, {"a": 0, "d": 1}]


def frequencies_agree(samples: dict[str, np.ndarray], worlds, names) -> None:
    """Chi-square at LEVEL, rare worlds pooled; impossible worlds must not occur at all."""
    exact = tabulated(worlds, names)
    counts = Counter(zip(*(samples[name].astype(int).tolist() for name in names), strict=True))
    assert counts.keys() <= exact.keys(), "a world that cannot happen"
    size = sum(counts.values())
    observed, expected = [0.0], [0.0]
    for world, p in exact.items():
        if p * size < 10:
            observed[0] += counts[world]
            expected[0] += p * size
        else:
            observed.append(counts[world])
            expected.append(p * size)
    if expected[0] < 10:  # too rare even together: add it to the rarest that is not
        i = int(np.argmin(expected[1:])) + 1
        observed[i] += observed[0]
        expected[i] += expected[0]
        observed, expected = observed[1:], expected[1:]
    if len(expected) > 1:
        statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
        assert stats.chi2(len(expected) - 1).sf(statistic) > LEVEL


def means_agree(samples: dict[str, np.ndarray], exact: dict[str, float], tests: int = 1) -> None:
    """Hoeffding for values in [0, 1] at LEVEL over all means of all `tests`."""
    for name, values in samples.items():
        bound = math.sqrt(math.log(2 * len(samples) * tests / LEVEL) / (2 * len(values)))
        assert abs(values.mean() - exact[name]) <= bound, name


# -- thresholds and cascades, simulated as their definitions say ------------------------------------------------


def by_thresholds(do: dict[str, int], rng) -> dict[str, np.ndarray]:
    """A node is active when the weights of its active parents, and its own, reach a uniform threshold."""
    values: dict[str, np.ndarray] = {}
    for name in ORDER:
        threshold = rng.random(DRAWS)
        weight = np.full(DRAWS, THRESHOLD.get(name, 0.0))
        for key, w in THRESHOLD.items():
            if isinstance(key, tuple) and key[1] == name:
                weight += w * values[key[0]]
        values[name] = np.full(DRAWS, do[name]) if name in do else (weight >= threshold).astype(int)
    return values


def by_coins(do: dict[str, int], rng) -> dict[str, np.ndarray]:
    """Flip a coin for every edge first; a node is active if a live edge comes from an active node."""
    live = {key: rng.random(DRAWS) < p for key, p in THRESHOLD.items()}
    values: dict[str, np.ndarray] = {}
    for name in ORDER:
        active = live.get(name, np.zeros(DRAWS, dtype=bool)).copy()
        for key, edge in live.items():
            if isinstance(key, tuple) and key[1] == name:
                active |= edge & (values[key[0]] == 1)
        values[name] = np.full(DRAWS, do[name]) if name in do else active.astype(int)
    return values


@pytest.mark.parametrize("do", INTERVENTIONS, ids=str)
@pytest.mark.parametrize(
    ("model", "simulate"),
    [
        (BinaryGLM.linear_threshold(THRESHOLD, target="Y"), by_thresholds),
        (BinaryGLM.independent_cascade(THRESHOLD, target="Y"), by_coins),
    ],
    ids=["linear threshold", "independent cascade"],
)
def test_the_diffusion_model_is_the_binary_model(model, simulate, do):
    worlds = joint(model, do)
    frequencies_agree(simulate(do, np.random.default_rng(11)), worlds, ORDER)
    frequencies_agree(model.sample(do, DRAWS, rng=12), worlds, ORDER)


def test_thresholds_and_cascades_differ():
    """The chi-square test has the power to tell the two apart."""
    cascade = BinaryGLM.independent_cascade(THRESHOLD, target="Y")
    with pytest.raises(AssertionError):
        frequencies_agree(by_thresholds({}, np.random.default_rng(11)), joint(cascade), ORDER)


# -- samples match the exact distribution ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_samples_of_any_links_have_the_exact_joint_distribution(seed):
    rng = np.random.default_rng(seed)
    model = random_bglm(rng, 6)
    do = random_do(rng, model.graph)
    samples = model.sample(do, DRAWS, rng=rng)
    assert all(values.dtype == np.uint8 for values in samples.values())
    frequencies_agree(samples, joint(model, do), model.graph.nodes)


@pytest.mark.parametrize("seed", range(4))
def test_samples_of_hidden_models_have_the_exact_joint_distribution(seed):
    rng = np.random.default_rng(seed)
    model = hidden_blm(rng)
    do = random_do(rng, model.graph)
    frequencies_agree(model.sample(do, DRAWS, rng=rng, latent=True), joint(model, do), model.graph.nodes)
    frequencies_agree(model.sample(do, DRAWS, rng=rng), joint(model, do), model.graph.observed)


@pytest.mark.parametrize("name", paper.MODELS)
def test_the_papers_models_have_their_exact_means(name):
    model = paper.MODELS[name]
    for do in ({}, {"X2": 1, "X3": 1}, {"X4": 0}):
        means_agree(model.sample(do, DRAWS, rng=5), expect(model, do).means, tests=3)


@pytest.mark.parametrize("noise", [0.4, 1.0, {"a": 0.9, "c": 1.0, "Y": 0.5}], ids=str)
@pytest.mark.parametrize("links", [None, "exponential", {"c": "logistic", "Y": ARCTAN}], ids=["linear", "exp", "mixed"])
def test_noise_changes_neither_means_nor_the_joint_distribution(noise, links):
    graph = CausalGraph([k for k in THRESHOLD if isinstance(k, tuple)], target="Y", bias=["a", "b", "c", "Y"])
    noisy, clean = (BinaryGLM(graph, THRESHOLD, links=links, noise=n) for n in (noise, None))
    do = {"b": 1}
    samples = noisy.sample(do, DRAWS, rng=6)
    means_agree(samples, brute_force_means(clean, do))
    frequencies_agree(samples, joint(clean, do), ORDER)
    assert expect(noisy, do).means == expect(clean, do).means


def test_noise_moves_the_probability_of_a_single_draw():
    """With full noise a probability of 1/2 is drawn anew from [0, 1] each time, so equal seeds give other values."""
    weights = {"a": 0.5, ("a", "Y"): 0.5}
    noisy, clean = (BinaryGLM.blm(weights, target="Y", noise=n).sample(size=10_000, rng=1) for n in (1.0, 0.0))
    assert not np.array_equal(noisy["a"], clean["a"])


# -- continuous models ----------------------------------------------------------------------------------------

CONTINUOUS = LinearModel.of_weights(THRESHOLD, target="Y", noise=1.0)


@pytest.mark.parametrize("do", [{}, {"c": 0.37}, {"a": 1, "b": 0}], ids=str)
def test_continuous_samples_stay_in_the_unit_interval_with_the_blms_means(do):
    samples = CONTINUOUS.sample(do, DRAWS, rng=7)
    assert all(values.dtype == np.float64 for values in samples.values())
    assert all(values.min() >= 0.0 and values.max() <= 1.0 for values in samples.values())
    means_agree(samples, expect(CONTINUOUS, do).means, tests=3)


def test_continuous_means_are_those_of_brute_force_on_the_blm():
    blm = BinaryGLM.blm(THRESHOLD, target="Y")
    for do in INTERVENTIONS:
        means_agree(CONTINUOUS.sample(do, DRAWS, rng=8), brute_force_means(blm, do), tests=len(INTERVENTIONS))


def test_continuous_noise_has_mean_zero_given_the_parents():
    """E[eps g(parents)] = 0 for g = 1, each parent, each product of two: |eps g| <= 1/2, so Hoeffding applies."""
    samples = CONTINUOUS.sample({}, DRAWS, rng=9)
    checks = []
    for name in ORDER:
        bias, weights = CONTINUOUS.parent_weights(name)
        eps = samples[name] - bias - sum(w * samples[p] for p, w in weights.items())
        assert np.abs(eps).max() <= 0.5
        assert eps.std() > 0.01, "there is noise at all"
        columns = [np.ones(DRAWS), *(samples[p] for p in weights)]
        checks += [(eps * one * other).mean() for one in columns for other in columns]
    bound = math.sqrt(math.log(2 * len(checks) / LEVEL) / (2 * DRAWS))
    assert max(map(abs, checks)) <= bound


def test_continuous_noise_may_be_absent():
    samples = LinearModel.of_weights(THRESHOLD, target="Y", noise=None).sample(size=3, rng=0)
    exact = expect(BinaryGLM.blm(THRESHOLD, target="Y")).means
    for name in ORDER:
        assert samples[name] == pytest.approx(exact[name], abs=1e-12)


@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_continuous_noise_fills_its_share_of_the_room(noise):
    samples = LinearModel.of_weights({"a": 0.3, ("a", "Y"): 1.0}, target="Y", noise=noise).sample(size=DRAWS, rng=2)
    scaled = (samples["a"] - 0.3) / (noise * 0.3)
    assert stats.kstest(scaled, stats.uniform(-1, 2).cdf).pvalue > LEVEL


# -- seeds, common random numbers, shapes ---------------------------------------------------------------------

MODELS = [
    BinaryGLM.blm(THRESHOLD, target="Y", noise=0.5),
    BinaryGLM.independent_cascade(THRESHOLD, target="Y"),
    CONTINUOUS,
]
every_model = pytest.mark.parametrize("model", MODELS, ids=["blm", "cascade", "continuous"])


@every_model
def test_the_seed_decides(model):
    one, same, other = (model.sample({"a": 1}, 1000, rng=s) for s in (3, np.random.default_rng(3), 4))
    assert all(np.array_equal(one[name], same[name]) for name in ORDER)
    assert any(not np.array_equal(one[name], other[name]) for name in ORDER)


def test_a_generator_moves_on():
    rng = np.random.default_rng(3)
    first, second = (MODELS[0].sample(size=1000, rng=rng) for _ in range(2))
    assert any(not np.array_equal(first[name], second[name]) for name in ORDER)


@every_model
def test_interventions_share_their_random_numbers(model):
    free, at_zero, at_one = (model.sample(do, 5000, rng=1) for do in ({}, {"c": 0}, {"c": 1}))
    for name in ("a", "b"):  # not caused by c
        assert np.array_equal(free[name], at_zero[name])
        assert np.array_equal(free[name], at_one[name])
    for name in ("d", "Y"):
        assert np.all(at_zero[name] <= free[name])
        assert np.all(free[name] <= at_one[name])
        assert np.any(at_zero[name] < at_one[name])


@every_model
def test_blocks_are_joined_without_a_seam(model):
    block = 1 << 15
    size = 3 * block + 300
    samples = model.sample({"b": 1}, size, rng=4)
    assert all(len(values) == size for values in samples.values())
    means_agree(samples, brute_force_means(BinaryGLM(model.graph, model.weights, links=model.link("a")), {"b": 1}))
    assert len({samples["a"][start : start + 300].tobytes() for start in range(0, size, block)}) == 4


@every_model
def test_no_draws_are_no_trouble(model):
    samples = model.sample(size=0, rng=0)
    assert list(samples) == list(model.graph.observed)
    assert all(values.shape == (0,) for values in samples.values())


def test_hidden_variables_are_shown_on_request_only():
    model = BinaryGLM.blm({"U": 0.5, ("U", "a"): 0.5, ("a", "Y"): 0.5}, target="Y", latent=["U"])
    shown, hidden = model.sample(size=500, rng=1, latent=True), model.sample(size=500, rng=1)
    assert set(shown) == {"U", "a", "Y"}
    assert set(hidden) == {"a", "Y"}
    assert all(np.array_equal(shown[name], hidden[name]) for name in hidden)


@every_model
def test_setting_a_node_sets_every_draw(model):
    samples = model.sample({"c": 1, "Y": 0}, 100, rng=1)
    assert np.all(samples["c"] == 1)
    assert np.all(samples["Y"] == 0)
