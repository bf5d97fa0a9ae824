"""Messages in the words of the command line: what Python writes context={'mobile': 1} is --context mobile=1 here.

Messages are made where the mistake is found, which knows nothing of commands, and write a way out as Python has it: a
keyword, =, and its value. This is the one place that spells it as a command does.
"""

from __future__ import annotations

import re

OPTIONS = {
    **{
        word: f"--{word.replace('_', '-')}"
        for word in (
            *(
                "always_set",
                "available",
                "binarise",
                "binarise_rest",
                "context",
                "effects",
                "exclusive",
                "executor",
                "forbid",
                "hide",
            ),
            *("history", "horizon", "issued", "latent", "method", "policy", "replications", "require", "samples"),
            *("stop_within", "total_cost"),
        )
    },
    "budget": "-k",
    "costs": "--cost",
    "levers": "--lever",
    "links": "--link",
}
FLAGS = {
    ("continuous", "True"): "--continuous",
    ("continuous", "False"): "no --continuous",
    ("structure_only", "True"): "--structure-only",
    ("smaller", "True"): "--smaller",
    ("smaller", "False"): "--full-size",
}
# Settings of policies, which stand in --policy NAME:KEY=VALUE.
SETTINGS = (
    *("clipped", "delta", "guarantee", "initial", "kappa", "lambda_scale", "leeway", "oracle", "prune", "radius_scale"),
    *("region", "safe", "zeta"),
)
POLICIES = {"CausalUCB": "causal-ucb", "CausalTS": "causal-ts", "BLMLR": "blm-lr", "BGLMOFU": "bglm-ofu"}

# Not after a quote or within NAME:KEY=VALUE,KEY=VALUE, which is what the user wrote.
_KEYWORD = re.compile(
    r"""(?<![\w'"`:,+-])(?P<word>[a-z][a-z_]*)=(?P<value>\{[^{}]*\}|\[[^\[\]]*\]|'[^']*'|<\w+>|\.\.\.|[\w.]*\w)"""
)
_NAMES = re.compile(rf"(?<!['\"\w])({'|'.join(POLICIES)})(?!['\"\w])")
_ALONE = re.compile(r"(?<!['\"\w])(stop_within|total_cost)(?!['\"\w=])")
_BARE = re.compile(r"^[ ('\[]+|[ )'\]]+$")  # what stands around a value
_NAME = re.compile(r"'([^']*)'")
_PAIR = re.compile(r"'([^']*)': ([^,{}]+)")


def as_command(text: str) -> str:
    """A message for somebody at the command line.

    >>> as_command("Add context={'mobile': 1}, or give region='boxed'.")
    'Add --context mobile=1, or give region=boxed in --policy.'
    >>> as_command("Count them as hidden: hide=['visit', 'mood'].")
    'Count them as hidden: --hide visit --hide mood.'
    """
    text = _KEYWORD.sub(_spelled, text)
    text = _ALONE.sub(lambda found: OPTIONS[found[1]], text)
    return _NAMES.sub(lambda found: POLICIES[found[1]], text)


def _spelled(found: re.Match[str]) -> str:
    word, value = found["word"], found["value"].strip("'")
    if (word, value) in FLAGS:
        return FLAGS[word, value]
    if word in SETTINGS:
        return f"{word}={value} in --policy"
    if word not in OPTIONS:
        return found[0]
    pairs = _PAIR.findall(value)
    if pairs:
        return " ".join(f"{OPTIONS[word]} {name}={_BARE.sub('', to)}" for name, to in pairs)
    if value.startswith("["):
        return " ".join(f"{OPTIONS[word]} {name}" for name in _NAME.findall(value)) or OPTIONS[word]
    return OPTIONS[word] if value == "..." else f"{OPTIONS[word]} {value}"
