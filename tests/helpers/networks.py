"""Random networks with named states, and questions about them; without dobandit, so that others can answer too."""

from __future__ import annotations

import numpy as np

SEEDS = range(12)


def random_tables(seed: int, size: int = 6):
    """(states, parents, tables) of a network V0..V5 with 2 to 4 states each; the last one has a parent and no child."""
    rng = np.random.default_rng([41, seed])
    names = [f"V{i}" for i in range(size)]
    states = {name: tuple(f"s{j}" for j in range(int(rng.integers(2, 5)))) for name in names}
    parents = {name: tuple(p for p in names[:i] if rng.random() < 0.5) for i, name in enumerate(names)}
    parents[names[-1]] = parents[names[-1]] or (names[0],)
    tables = {}
    for name in names:
        rows = rng.random((*(len(states[p]) for p in parents[name]), len(states[name])))
        rows = np.where(rows < 0.15, 0.0, rows) + 1e-3 * (rows == rows.max(axis=-1, keepdims=True))
        tables[name] = rows / rows.sum(axis=-1, keepdims=True)
    return states, parents, tables


def questions(seed: int, states) -> list[tuple[str, dict[str, str]]]:
    """(target, do) pairs: the last variable, with nothing, one and two others set to some state."""
    rng = np.random.default_rng([42, seed])
    names = list(states)
    asked = []
    for count in (0, 1, 2):
        chosen = sorted(rng.choice(names[:-1], size=count, replace=False).tolist())
        asked.append((names[-1], {name: states[name][int(rng.integers(len(states[name])))] for name in chosen}))
    return asked
