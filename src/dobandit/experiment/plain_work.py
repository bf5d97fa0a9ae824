"""How long the work of an experiment takes as plain Python: a rough estimate, which decides whether to compile.

Measured on one core, with CausalUCB on graphs of 4, 8 and 10 nodes. Answers of CausalTS and of safe=True took up to 1.5
times as long, those of BLM-LR 0.3 s on each of the graphs, which the estimate leaves out.
    learning    1.2, 2.8 and 5.5 ms a round for 8, 21 and 34 weights
    an ask      3.6, 35 and 62 ms for 7 x 12, 29 x 132 and 16 x 528 actions x states of the frontier
    an answer   73, 1535 and 3268 ms for the same: 400 draws of all that is not known
A rule to stop (`stop_within`) adds half an answer to each ask.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from dobandit.compile_mode import is_worth_compiling, work
from dobandit.policy.questions import Believes, listed_actions

if TYPE_CHECKING:
    from dobandit.policy.engine import Engine

_LEARN, _ASK, _ANSWER = 1.6e-4, 1e-5, 4e-4  # seconds per weight and round; per action and state


def learning(engine: Engine, rounds: int) -> AbstractContextManager[None]:
    """Taking in so many rounds, of which equal ones count once."""
    return work(_learning_seconds(engine, rounds))


def asking(engine: Engine, trials: int, stops: bool) -> AbstractContextManager[None]:
    """Choosing so many trials."""
    return work(trials * _scored(engine) * (_ASK + (_ANSWER / 2 if stops else 0.0)))


def answering(engine: Engine) -> AbstractContextManager[None]:
    """A recommendation, or another answer with intervals."""
    return work(_scored(engine) * _ANSWER)


def needs_compiling(engine: Engine, rounds: int) -> bool:
    """Whether an experiment that begins with so many rounds has more to do than suits plain Python."""
    return is_worth_compiling(max(_learning_seconds(engine, rounds), _scored(engine) * _ANSWER))


def _learning_seconds(engine: Engine, rounds: int) -> float:
    return float(rounds * engine.problem.graph.arrays.parent_ptr[-1] * _LEARN)


def _scored(engine: Engine) -> float:
    """Actions times states of the frontier, or nodes where there is none; infinite where actions are searched for."""
    actions = listed_actions(engine)
    if actions is None:
        return math.inf if isinstance(engine, Believes) else 0.0
    evaluator = getattr(engine, "evaluator", None)
    states = len(getattr(getattr(evaluator, "plan", None), "states", engine.problem.graph))
    return float(len(actions.ids) * states)
