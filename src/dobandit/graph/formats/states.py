"""Variables with named states, as BIF files and pgmpy have them: which states count as 1.

A variable of a causal graph is 0 or 1. Of two states, the one that says so is 1 ("yes" of no and yes, "True" of True
and False), and where neither does, the last one listed. Of more than two, the caller says which: `binarise={"age":
"old"}` or `binarise={"age": ["adult", "old"]}`. Others may take the structure alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dobandit.errors import GraphError, closest, listed

Binarise = Mapping[str, str | Iterable[str]]
_SAYS_ONE = frozenset({"1", "true", "yes", "present", "on", "high", "positive", "t", "y", "state1"})
_SAYS_ZERO = frozenset({"0", "false", "no", "absent", "off", "low", "negative", "f", "n", "state0"})


STRUCTURE = " Or, where the graph alone is wanted, structure_only=True."


class ManyStatesError(GraphError):
    """A variable has more than two states, and nobody said which of them count as 1."""


def refuse_unknown(binarise: Binarise, variables: Iterable[str]) -> None:
    """Refuse what names no variable."""
    known = list(variables)
    for name in binarise:
        if name not in known:
            raise GraphError(f"binarise names variables of the file, but {name!r} is none.{closest(name, known)}")


def states_of_one(name: str, states: tuple[str, ...], binarise: Binarise) -> tuple[str, ...]:
    """The states of a variable that count as 1, in the order of the file."""
    if name in binarise:
        return _chosen(name, states, binarise[name])
    if len(states) != 2:
        raise ManyStatesError(many_states(name, states))
    said = [state for state in states if state.strip("\"'").lower() in _SAYS_ONE]
    other = [state for state in states if state.strip("\"'").lower() in _SAYS_ZERO]
    return (said[0],) if len(said) == len(other) == 1 else (states[-1],)


def many_states(name: str, states: tuple[str, ...]) -> str:
    """What to say of a variable that is not 0 or 1."""
    if len(states) < 2:
        what = f"{len(states)} states" if states else "no type"
        return f"variables are 0 or 1, but {name[:40]!r} has {what}. Give it two states."
    return (
        f"variables are 0 or 1, but {name[:40]!r} has {len(states)} states ({_shown(states)}). Say which states count "
        f"as 1, binarise={{{name[:40]!r}: {states[-1][:40]!r}}}."
    )


def _chosen(name: str, states: tuple[str, ...], wanted: str | Iterable[str]) -> tuple[str, ...]:
    asked = [wanted] if isinstance(wanted, str) else list(wanted)
    strange = [state for state in asked if state not in states]
    if strange:
        raise GraphError(
            f"binarise names states of {name!r}, {_shown(states)}, but got {strange[0]!r}.{closest(strange[0], states)}"
        )
    if not asked or len(set(asked)) == len(states):
        some = "none" if not asked else "all"
        raise GraphError(f"some states of {name!r} count as 1 and some as 0, but binarise names {some} of them.")
    return tuple(state for state in states if state in asked)


def _shown(states: tuple[str, ...]) -> str:
    return listed(states, 6)
