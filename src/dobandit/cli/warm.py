"""The command warm."""

from __future__ import annotations

import logging

import click

from dobandit.cli.output import json_option, print_json, say, several


@click.command("warm")
@several("--policy", "policies", metavar="NAME", help="Another policy than CausalUCB as well; may be repeated.")
@json_option
def warm_command(policies: tuple[str, ...], as_json: bool) -> None:
    """Takes about a minute once per installation, and is instant afterwards. Without it, young experiments run
    uncompiled, and the first one with much work to do compiles what it needs.

    \b
    Examples:
      dobandit warm
      dobandit warm --policy causal-ts --policy lucb
    """
    from dobandit.experiment.rehearsals import is_rehearsed, rehearsals, warm

    logging.getLogger("dobandit").setLevel(logging.ERROR)  # the lines below announce it
    steps, planned = [], rehearsals(policies)
    if not as_json and not all(map(is_rehearsed, planned.values())):
        say("compiling what experiments need, once per installation: about a minute")
    for step in warm(policies):
        steps.append(step)
        done = "compiled before" if step.compiled is None else f"{step.compiled} kernels compiled, {step.seconds:.1f} s"
        if not as_json:
            click.echo(f"{len(steps)} of {len(planned)}  {step.name}: {done}")
    if as_json:
        print_json([step._asdict() for step in steps])
        return
    say(f"ready after {sum(step.seconds for step in steps):.1f} s")
