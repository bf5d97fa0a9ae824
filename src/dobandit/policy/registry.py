"""Policies by name, as the command line and files write them: "blm-lr", "ucb:scale=0.1"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module

from dobandit.errors import PolicyError, closest, listed
from dobandit.model.bglm import WeightedModel
from dobandit.oracle.exhaustive import count_sets
from dobandit.policy.base import Policy, Problem

_HOMES = {
    "blm-lr": "blm_lr.BLMLR",
    "bglm-ofu": "bglm_ofu.BGLMOFU",
    "ucb": "ucb.UCB",
    "eps-greedy": "epsilon_greedy.EpsilonGreedy",
    "random": "yardsticks.Random",
    "fixed": "yardsticks.Fixed",
    "oracle": "yardsticks.Oracle",
}
_ALIASES = {"blm-ofu": "bglm-ofu", "epsilon-greedy": "eps-greedy", "blmlr": "blm-lr", "bglmofu": "bglm-ofu"}
NAMES = tuple(_HOMES)
_LISTED_BY_DEFAULT = 20_000
_USUAL_SCALE = 0.1  # the paper's simulations; with 1, a thousand rounds leave intervals of [0, 1]


def policy_class(name: str) -> type[Policy]:
    name = _ALIASES.get(name, name)
    if name not in _HOMES:
        raise PolicyError(f"policies are {listed(_HOMES)}, but got {name!r}.{closest(name, _HOMES)}")
    module, cls = _HOMES[name].split(".")
    found: type[Policy] = getattr(import_module(f"dobandit.policy.{module}"), cls)
    return found


def policy_from_spec(spec: str, model: WeightedModel | None = None) -> Policy:
    """A policy from "name" or "name:key=value,key=value"; a fixed set is "fixed:set=X3+X4"; an oracle knows `model`."""
    name, _, rest = spec.partition(":")
    cls = policy_class(name.strip().lower())
    if cls is policy_class("oracle"):
        if model is None or rest:
            raise PolicyError("the oracle takes no settings and knows the model of the study; it is for simulations.")
        return cls(model)  # type: ignore[call-arg]
    settings: dict[str, object] = {}
    known = [field.name for field in fields(cls)]
    for part in filter(None, rest.split(",")):
        key, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or not value:
            raise PolicyError(f"a policy's settings read key=value, but {spec!r} has {part!r}.")
        if key not in known:
            takes = f"takes {listed(known)}" if known else "takes no settings"
            raise PolicyError(f"{name} {takes}, but got {key!r}.{closest(key, known)}")
        if key in settings:
            raise PolicyError(f"each setting is given once, but {spec!r} gives {key!r} twice.")
        settings[key] = value.split("+") if key == "set" else _value(value)
    return cls(**settings)


def policy_to_document(policy: Policy) -> dict[str, object]:
    """A policy as JSON: its name, and the settings that differ from the defaults."""
    for name in _HOMES:
        if type(policy) is policy_class(name):
            break
    else:
        raise PolicyError(
            f"{type(policy).__name__} is a policy of your own, which a file cannot hold. Files know {listed(NAMES)}."
        )
    document: dict[str, object] = {"name": name}
    for field in fields(policy):
        value = getattr(policy, field.name)
        if name != "oracle" and value != field.default:
            document[field.name] = list(value) if isinstance(value, tuple) else value
    return document


def policy_to_spec(policy: Policy) -> str:
    """A short text for people, in the form that `policy_from_spec` reads."""
    return document_to_spec(policy_to_document(policy))


def document_to_spec(document: Mapping[str, object]) -> str:
    parts = [
        f"{key}={'+'.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in document.items()
        if key != "name"
    ]
    return str(document["name"]) + (":" + ",".join(parts) if parts else "")


def policy_from_document(document: Mapping[str, object], model: WeightedModel | None = None) -> Policy:
    """The inverse of `policy_to_document`; `model` is what an oracle knows."""
    settings = dict(document)
    cls = policy_class(str(settings.pop("name")))
    if cls is policy_class("oracle"):
        return cls(model)  # type: ignore[call-arg]
    return cls(**settings)


def default_policy(problem: Problem) -> Policy:
    """BLM-LR on linear models, with the search where there are too many sets to look at one by one; else BGLM-OFU that
    starts once every node's weights can be estimated at all, since Eq. (3) asks for more rounds than most have."""
    if not problem.is_linear:
        return policy_class("bglm-ofu")(radius_scale=_USUAL_SCALE, lambda_scale=0.0)  # type: ignore[call-arg]
    candidates = problem.rules.candidates(problem.graph)
    many = count_sets(problem.rules, candidates) > _LISTED_BY_DEFAULT
    region = "boxed" if many else "closed-form"
    return policy_class("blm-lr")(radius_scale=_USUAL_SCALE, region=region)  # type: ignore[call-arg]


def _value(text: str) -> object:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
