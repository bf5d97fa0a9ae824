"""What policies are called in tables and figures: by their own labels, and, where two are alike, by what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from dobandit.policy.base import Policy


def told_apart(policies: Sequence[Policy], labels: Sequence[str]) -> list[str]:
    """The labels, with the settings in which policies of one label differ behind them.

    >>> import dobandit as dob
    >>> policies = [dob.BLMLR(), dob.BLMLR(radius_scale=0.1), dob.UCB()]
    >>> told_apart(policies, [policy.label for policy in policies])
    ['BLM-LR (radius scale 1)', 'BLM-LR (radius scale 0.1)', 'UCB']
    """
    found = []
    for policy, label in zip(policies, labels, strict=True):
        alike = [other for other, its in zip(policies, labels, strict=True) if its == label]
        words = [_words(name, getattr(policy, name)) for name in _differing(policy, alike)]
        words = [word for word in words if word]
        if len({type(other) for other in alike}) > 1:
            words.insert(0, type(policy).name or type(policy).__name__)
        found.append(f"{label} ({', '.join(words)})" if words else label)
    return [  # settings that print alike, or are no words
        label if found.count(label) == 1 else f"{label} #{found[: i + 1].count(label)}" for i, label in enumerate(found)
    ]


def _differing(policy: Policy, alike: Sequence[Policy]) -> list[str]:
    """The settings in which policies of this kind differ."""
    kind = [other for other in alike if type(other) is type(policy)]
    names = [field.name for field in fields(policy)]
    return [name for name in names if any(repr(getattr(other, name)) != repr(getattr(policy, name)) for other in kind)]


def _words(name: str, value: object) -> str:
    """A setting for people: "radius scale 0.1"; "clipped" where it is simply on, and nothing where it is off."""
    said = name.replace("_", " ")
    if isinstance(value, bool):
        return said if value else ""
    if isinstance(value, float):
        return f"{said} {value:.6g}"
    if isinstance(value, (int, str)):
        return f"{said} {value}"
    if isinstance(value, (tuple, list)) and all(isinstance(item, (int, float, str)) for item in value):
        return f"{said} {', '.join(map(str, value))}"
    return f"no {said}" if value is None else ""
