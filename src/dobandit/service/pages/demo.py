"""A shop to show the pages with: a simulated world that asks, carries out and tells, round after round."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from dobandit.errors import DobanditError
from dobandit.experiment.catalogue import create_experiment
from dobandit.experiment.experiment import Experiment
from dobandit.model.bglm import BinaryGLM
from dobandit.storage import Storage

NAME = "Spring sale"
_CHANCE = 0x53484F50
# What the experimenter does not know.
WORLD = BinaryGLM.blm(
    {
        "email": 0.1,
        "advert": 0.15,
        "coupon": 0.1,
        "season": 0.4,
        "visit": 0.05,
        "wishlist": 0.05,
        "basket": 0.03,
        "purchase": 0.02,
        ("email", "visit"): 0.25,
        ("advert", "visit"): 0.35,
        ("season", "visit"): 0.25,
        ("email", "wishlist"): 0.2,
        ("season", "wishlist"): 0.2,
        ("visit", "basket"): 0.45,
        ("coupon", "basket"): 0.2,
        ("wishlist", "purchase"): 0.2,
        ("basket", "purchase"): 0.5,
        ("coupon", "purchase"): 0.1,
    },
    target="purchase",
    latent=["season"],
    controllable=["email", "advert", "coupon"],
)
GRAPH = WORLD.graph


def begin(storage: Storage, seed: int = 0) -> Experiment:
    """The experiment: which two of e-mail, advert and coupon make a purchase most likely?"""
    return create_experiment(NAME, GRAPH, budget=2, links="identity", storage=storage, seed=seed, control=0.05)


def carried_out(do: Mapping[str, float], seed: int, number: int) -> dict[str, int]:
    """What is seen in a round of the shop. Its chance is its own: the experiment's seed and number also choose which
    rounds are control rounds, and those would have seasons of their own."""
    drawn = WORLD.sample(do, size=1, rng=np.random.default_rng([seed, number, _CHANCE]))
    return {name: int(values[0]) for name, values in drawn.items() if name not in GRAPH.latent}


class Shop:
    """Plays an experiment's rounds, in a thread of its own while it is open."""

    def __init__(self, experiment: Experiment, pace: float) -> None:
        """pace: rounds per second; 0: none"""
        self.experiment, self.pace = experiment, pace
        self._closing = threading.Event()

    def play(self, rounds: int) -> None:
        """Ask, carry out and tell."""
        for _ in range(rounds):
            trial = self.experiment.ask()
            self.experiment.tell(trial, carried_out(trial.do, self.experiment.definition.seed, trial.number))

    @contextmanager
    def open(self) -> Iterator[None]:
        """While this is entered, rounds are played at the shop's pace."""
        clerk = threading.Thread(target=self._work, name="shop", daemon=True)
        if self.pace > 0.0:
            clerk.start()
        try:
            yield
        finally:
            self._closing.set()
            if clerk.is_alive():
                clerk.join(timeout=10.0)

    def _work(self) -> None:
        while not self._closing.wait(1.0 / self.pace):
            try:
                self.play(1)
            except DobanditError:
                return  # somebody deleted the experiment
