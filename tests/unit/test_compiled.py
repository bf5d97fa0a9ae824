"""Kernels where compiled code cannot be kept, and when it is thrown away."""

from pathlib import Path

import numba
import pytest

from dobandit import compiled


def test_kernels_compile_without_a_place_for_a_cache(monkeypatch):
    njit = numba.njit

    def without_a_cache(*function, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*function, **options)

    monkeypatch.setattr(numba, "njit", without_a_cache)

    def double(x):
        return 2.0 * x

    assert compiled.kernel(double)(1.5) == pytest.approx(3.0)


def test_every_module_with_kernels_counts_for_the_freshness_of_the_cache():
    package = Path(compiled.__file__).parent
    with_kernels = {
        source.relative_to(package).parts[0]
        for source in package.rglob("*.py")
        if "from dobandit.compiled import" in source.read_text()
    }
    assert with_kernels <= set(compiled._WITH_KERNELS)
