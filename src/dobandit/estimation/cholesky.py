"""Sums and positive definite systems of equations on parts of flat arrays: whoever calls says where a part begins."""

from __future__ import annotations

import math
from typing import Any

from dobandit.kernels import inlined, kernel


@inlined
def dot(a: Any, i: int, b: Any, j: int, d: int) -> float:
    """a[i : i + d] . b[j : j + d]"""
    total = 0.0
    for k in range(d):
        total += a[i + k] * b[j + k]
    return total


@kernel
def factorise(work: Any, at: int, d: int) -> bool:
    """Cholesky: overwrite the lower triangle of A (d, d), which begins at `at`, by F with F F^T = A; False if A is not
    positive definite."""
    for j in range(d):
        pivot = work[at + j * d + j]
        for m in range(j):
            pivot -= work[at + j * d + m] * work[at + j * d + m]
        if not pivot > 0.0:
            return False
        pivot = math.sqrt(pivot)
        work[at + j * d + j] = pivot
        for i in range(j + 1, d):
            total = work[at + i * d + j]
            for m in range(j):
                total -= work[at + i * d + m] * work[at + j * d + m]
            work[at + i * d + j] = total / pivot
    return True


@kernel
def solve_factored(work: Any, at: int, d: int, rhs: int, out: int) -> None:
    """out = (F F^T)^-1 rhs, F the factor at `at`; rhs and out are places, too, and may be one."""
    for i in range(d):
        total = work[rhs + i]
        for m in range(i):
            total -= work[at + i * d + m] * work[out + m]
        work[out + i] = total / work[at + i * d + i]
    for i in range(d - 1, -1, -1):
        total = work[out + i]
        for m in range(i + 1, d):
            total -= work[at + m * d + i] * work[out + m]
        work[out + i] = total / work[at + i * d + i]


@kernel
def invert_factor(work: Any, at: int, d: int) -> None:
    """Overwrite the lower triangle F at `at` by F^-1."""
    for j in range(d):
        work[at + j * d + j] = 1.0 / work[at + j * d + j]
        for i in range(j + 1, d):
            total = 0.0
            for m in range(j, i):
                total -= work[at + i * d + m] * work[at + m * d + j]
            work[at + i * d + j] = total / work[at + i * d + i]


@inlined
def inverse_entry(work: Any, at: int, d: int, i: int, j: int) -> float:
    """Entry (i, j), j <= i, of (F F^T)^-1, from F^-1 in the lower triangle at `at`."""
    total = 0.0
    for m in range(i, d):
        total += work[at + m * d + i] * work[at + m * d + j]
    return total
