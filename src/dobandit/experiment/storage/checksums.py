"""A checksum per closed trial, over all that a learner takes from it: a flipped bit is found before it is learned from.

Rows repeat themselves, so the sum is made of two parts: one of the texts, which is worked out once for equal rows, and
one of the trial's place in the log, which is worked out for thousands of rows at a time. It guards against disks and
slips, not against people: whoever can write the file can write a checksum, too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Whole = TypeVar("Whole", int, NDArray[np.uint64])

NUMBER, POSITION = 2_654_435_761, 2_246_822_519  # odd, so that no two places close to each other have the same sum
LARGEST = 0xFFFF_FFFF


@lru_cache(maxsize=4096)
def text_sum(state: str, do: str, observation: str | None, counts: str | None, rounds: int) -> int:
    """Of what a closed trial says."""
    return crc32(f"{state}\0{do}\0{observation or ''}\0{counts or ''}\0{rounds}".encode("utf-8", "surrogatepass"))


def place_sum(number: Whole, position: Whole) -> Whole:
    """Of where it stands in the log; also of many at once."""
    return (number * NUMBER + position * POSITION) & LARGEST  # type: ignore[return-value]


def checksum(
    number: int, position: int, state: str, do: str, observation: str | None, counts: str | None, rounds: int
) -> int:
    """Of a closed trial, from 0 to LARGEST."""
    return text_sum(state, do, observation, counts, rounds) ^ place_sum(number, position)
