"""Policies by name, as the command line and files write them: "blm-lr", "ucb:scale=0.1".

Packages add theirs under the entry point group "dobandit.policies" (name = "package.module:Class"); a policy defined in
this process is known as soon as its class is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from dobandit.checks import shown
from dobandit.errors import PolicyError, closest, listed
from dobandit.model.causal_model import CausalModel

if TYPE_CHECKING:
    from dobandit.policy.base import Policy

GROUP = "dobandit.policies"
_HOMES = {
    "causal-ucb": "causal_ucb.CausalUCB",
    "causal-ts": "causal_ucb.CausalTS",
    "blm-lr": "paper_policies.BLMLR",
    "bglm-ofu": "paper_policies.BGLMOFU",
    "ucb": "arms.UCB",
    "kl-ucb": "arms.KLUCB",
    "thompson": "arms.ThompsonSampling",
    "best-set": "best_set.BestSet",
    "lucb": "lucb.LUCB",
    "eps-greedy": "arms.EpsilonGreedy",
    "random": "yardsticks.Random",
    "fixed": "yardsticks.Fixed",
    "oracle": "yardsticks.Oracle",
}
_ALIASES = {"blm-ofu": "bglm-ofu", "epsilon-greedy": "eps-greedy", "blmlr": "blm-lr", "bglmofu": "bglm-ofu"}
NAMES = tuple(_HOMES)
_known: dict[str, type[Policy]] = {}  # classes of this process, by name


def remember(cls: type[Policy]) -> None:
    """Called for every policy class: its name leads to it."""
    if cls.name in (*_HOMES, *_ALIASES) and not cls.__module__.startswith("dobandit.policy."):
        raise PolicyError(f"a policy of your own has a name of its own, but {cls.name!r} is built in. Rename it.")
    if not cls.name or not set(cls.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_."):
        raise PolicyError(
            f"a policy's name has lower-case letters, digits and hyphens, such as 'my-ucb', but got {cls.name!r}."
        )
    _known[cls.name] = cls


def policy_class(name: str) -> type[Policy]:
    """The class of a policy: built in, known in this process, or of an installed package."""
    name = _ALIASES.get(name, name)
    if name in _HOMES:
        module, cls = _HOMES[name].split(".")
        found: type[Policy] = getattr(import_module(f"dobandit.policy.{module}"), cls)
        return found
    if name in _known:
        return _known[name]
    installed = entry_points(group=GROUP)
    if name in installed.names:
        return _installed(name, {point.value: point for point in installed.select(name=name)})
    everything = [*_HOMES, *_known, *sorted(installed.names)]
    raise PolicyError(
        f"policies are {listed(dict.fromkeys(everything), 20)}, but got {name!r}.{closest(name, everything)} "
        "If it is of another package, install that here, or import it first."
    )


def _installed(name: str, points: Mapping[str, EntryPoint]) -> type[Policy]:
    """The class of an installed package; `points` by where they lead, since a path may list a package twice."""
    from dobandit.policy.base import Policy

    rule = f"the entry point {name!r} of {GROUP} must lead to a Policy of that name"
    if len(points) > 1:
        raise PolicyError(f"{rule}, but leads to {listed(points)}. Uninstall all but one of their packages.")
    (where, point) = next(iter(points.items()))
    owner = f" {point.dist.name}" if point.dist else ""
    try:
        loaded = point.load()
    except (ImportError, AttributeError) as error:
        raise PolicyError(f"{rule}, but {where!r} cannot be loaded ({error}). Mend the package{owner}.") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Policy)):
        raise PolicyError(f"{rule}, but leads to {loaded!r}. Mend the package{owner}.")
    if loaded.name != name:
        raise PolicyError(f"{rule}, but {where!r} has the name {loaded.name!r}. Mend the package{owner}.")
    return loaded


def policy_with(cls: type[Policy], settings: Mapping[str, Any]) -> Policy:
    """A policy with settings from a file or a command. What its class refuses, whether it says so by a TypeError
    or not at all, is a PolicyError that names the setting."""
    known = [field.name for field in fields(cls) if field.init]
    takes = f"takes {listed(known)}" if known else "takes no settings"
    for key in settings:
        if key not in known:
            raise PolicyError(f"{cls.name} {takes}, but got {key!r}.{closest(key, known)}")
    policy, refused = None, None
    try:
        policy = cls(**settings)
    except TypeError as error:
        refused = error
    for field in fields(cls):
        written = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
        if field.name in settings and not _fits(settings[field.name], written):
            raise PolicyError(
                f"the setting {field.name!r} of {cls.name} is of type {written}, but got "
                f"{shown(settings[field.name])}. Change it."
            ) from refused
    if policy is None:
        came = ", ".join(f"{key}={shown(value)}" for key, value in settings.items()) or "none of them"
        raise PolicyError(f"{cls.name} {takes}, but {came} does not suit it ({refused}). Change it.") from refused
    return policy


def _fits(value: object, written: str) -> bool:
    """Whether a value from a file or a command may be of the type that is written, as far as plain types tell."""
    plain = {"float": (int, float), "int": (int,), "str": (str,), "bool": (bool,), "None": (type(None),)}
    words = [word.strip() for word in written.split("|")]
    if any(word not in plain for word in words):
        return True
    kinds = {kind for word in words for kind in plain[word]}
    return type(value) in kinds or (isinstance(value, tuple(kinds)) and not isinstance(value, bool))


def policy_from_spec(spec: str, model: CausalModel | None = None) -> Policy:
    """A policy from "name" or "name:key=value,key=value"; a fixed action is "fixed:set=X3+price=0"; an oracle knows
    `model`."""
    name, _, rest = spec.partition(":")
    cls = policy_class(name.strip().lower())
    if cls.name == "oracle" and (model is None or rest):
        raise PolicyError("the oracle takes no settings and knows the model of the study; it is for simulations.")
    settings: dict[str, object] = {}
    for part in filter(None, rest.split(",")):
        key, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or not value:
            raise PolicyError(f"a policy's settings read key=value, but {spec!r} has {part!r}.")
        if key in settings:
            raise PolicyError(f"each setting is given once, but {spec!r} gives {key!r} twice.")
        settings[key] = _set_from(value) if key == "set" else _value(value)
    return policy_from_document({"name": cls.name, **settings}, model)


def policy_to_document(policy: Policy) -> dict[str, object]:
    """A policy as JSON: its name, and the settings that differ from the defaults."""
    cls = type(policy)
    if not cls.name or policy_class(cls.name) is not cls:
        raise PolicyError(
            f"a file holds a policy by its name, but {cls.__name__} has none of its own. Give the class name = '...'."
        )
    return {"name": cls.name, **policy.settings()}


def policy_to_spec(policy: Policy) -> str:
    """A short text for people, in the form that `policy_from_spec` reads."""
    return document_to_spec(policy_to_document(policy))


def document_to_spec(document: Mapping[str, object]) -> str:
    """A policy's document as a short text for people."""
    settings: dict[str, Any] = {key: value for key, value in document.items() if key != "name"}
    if isinstance(settings.get("set"), list):
        to = settings.pop("values", None) or [1] * len(settings["set"])
        pairs = zip(settings["set"], to, strict=True)
        settings["set"] = "+".join(name if value == 1 else f"{name}={value:g}" for name, value in pairs)
    parts = ",".join(f"{key}={value}" for key, value in settings.items())
    return f"{document['name']}:{parts}" if parts else str(document["name"])


def policy_from_document(document: Mapping[str, object], model: CausalModel | None = None) -> Policy:
    """The inverse of `policy_to_document`; `model` is what an oracle knows."""
    settings = dict(document)
    cls = policy_class(str(settings.pop("name")))
    if cls.name == "oracle":
        return cls(model)  # type: ignore[call-arg]
    return policy_with(cls, settings)


def default_policy() -> Policy:
    """The policy of those who name none."""
    return policy_class("causal-ucb")()


def _set_from(text: str) -> dict[str, float]:
    """X3+price=0: names that are set to 1, or to the number after the last =."""
    found: dict[str, float] = {}
    for piece in text.split("+"):
        name, separator, value = piece.rpartition("=")
        number = _value(value) if separator else None
        found |= {name: number} if isinstance(number, (int, float)) else {piece: 1}
    return found


def _value(text: str) -> object:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
