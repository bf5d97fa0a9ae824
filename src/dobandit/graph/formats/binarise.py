"""Variables with named states, as BIF files and pgmpy have them: which states count as 1.

A variable of a causal graph is 0 or 1. Of two states, the one that says so is 1 ("yes" of no and yes, "True" of True
and False), and where neither does, the last one listed. Of more than two, the caller says which: `binarise={"age":
"old"}` or `binarise={"age": ["adult", "old"]}`, and for all the rest `binarise_rest="last"`. Others may take the
structure alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from dobandit.checks import shown
from dobandit.errors import GraphError, closest, listed
from dobandit.texts import keyword

Binarise = Mapping[str, str | Iterable[str]]
REST = ("first", "last")
STRUCTURE = f" Or, where the graph alone is wanted, {keyword('structure_only', True)}."
_SAYS_ONE = frozenset({"1", "true", "yes", "present", "on", "high", "positive", "t", "y", "state1"})
_SAYS_ZERO = frozenset({"0", "false", "no", "absent", "off", "low", "negative", "f", "n", "state0"})


class ManyStatesError(GraphError):
    """Variables have more than two states, and nobody said which of them count as 1.

    variable  the first of them
    """

    def __init__(self, message: str, variable: str = "") -> None:
        super().__init__(message)
        self.variable = variable


def states_of_one(
    states: Mapping[str, tuple[str, ...]],
    binarise: Binarise | None = None,
    binarise_rest: str | None = None,
    unseen: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """By variable, the states that count as 1, in the order of the file.

    states         by variable, all of its states
    binarise       by variable, those that count as 1
    binarise_rest  "first" or "last": the state that does where there are more than two and `binarise` names none
    unseen         variables that may have any number of states, since nobody observes them

    >>> states_of_one({"smoke": ("yes", "no"), "age": ("young", "adult", "old")}, binarise_rest="last")
    {'smoke': ('yes',), 'age': ('old',)}
    """
    binarise = binarise or {}
    for name in binarise:
        if name not in states:
            raise GraphError(
                f"binarise names variables with states, as BIF files have them, but {name!r} is none."
                f"{closest(name, states)}"
            )
    if binarise_rest not in (None, *REST):
        raise GraphError(f"binarise_rest is 'first' or 'last', but got {shown(binarise_rest)}.")
    ones: dict[str, tuple[str, ...]] = {}
    undecided = []
    for name, own in states.items():
        if name in binarise:
            ones[name] = _chosen(name, own, binarise[name])
        elif name in unseen:
            continue
        elif len(own) < 2:
            raise GraphError(too_few_states(name, own))
        elif len(own) == 2:
            ones[name] = (_state_of_one(own),)
        elif binarise_rest:
            ones[name] = (own[0 if binarise_rest == "first" else -1],)
        else:
            undecided.append(name)
    if undecided:
        told = ", ".join(
            f"{name[:40]!r} has {len(states[name])} states ({listed(states[name], 4)})" for name in undecided
        )
        example = {name[:40]: states[name][-1][:40] for name in undecided}
        raise ManyStatesError(
            f"variables are 0 or 1, but {told}. Say which states count as 1, {keyword('binarise', example)}, or take "
            f"the last state of all that are not named, {keyword('binarise_rest', 'last')}.",
            undecided[0],
        )
    return ones


def too_few_states(name: str, states: tuple[str, ...]) -> str:
    """The message on a variable that cannot vary."""
    what = f"{len(states)} states" if states else "no type"
    return f"variables are 0 or 1, but {name[:40]!r} has {what}. Give it two states."


def _state_of_one(states: tuple[str, ...]) -> str:
    one, zero = (
        [state for state in states if state.strip("\"'").lower() in words] for words in (_SAYS_ONE, _SAYS_ZERO)
    )
    return one[0] if len(one) == len(zero) == 1 else states[-1]


def _chosen(name: str, states: tuple[str, ...], wanted: str | Iterable[str]) -> tuple[str, ...]:
    asked = [wanted] if isinstance(wanted, str) else list(wanted)
    strange = [state for state in asked if state not in states]
    if strange:
        raise GraphError(
            f"binarise names states of {name!r}, {listed(states, 6)}, but got {strange[0]!r}."
            f"{closest(strange[0], states)}"
        )
    if not asked or len(set(asked)) == len(states):
        some = "none" if not asked else "all"
        raise GraphError(f"some states of {name!r} count as 1 and some as 0, but binarise names {some} of them.")
    return tuple(state for state in states if state in asked)
