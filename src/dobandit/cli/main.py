"""The command line: parse, call, print. Bad input ends in one line on stderr and exit code 2."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress

import click

from dobandit import __version__
from dobandit.cli.output import LazyGroup
from dobandit.errors import DobanditError, DobanditWarning
from dobandit.texts import for_commands
from dobandit.texts import message as harmless

_HOMES = {
    "check": {
        "check": "Check a graph or model FILE: hidden causes, roles, sizes, and a model's assumptions.",
        "project": "Remove the hidden variables of a graph or linear model FILE.",
    },
    "solve": {
        "expect": "Means of every variable of a model FILE (JSON, or BIF with tables) under an intervention.",
        "paper": "List the paper's models G1..G5 with the best set of each.",
        "rank": "Rank every allowed set by what it would bring, from DATA (.csv, .csv.gz, .parquet).",
        "solve": "The best action on a model FILE (JSON, or BIF with tables): what to set, and to what, so that the "
        "target becomes most likely.",
    },
    "simulate": {
        "simulate": "Compare policies on a model FILE (JSON, or BIF with tables) over many simulated runs.",
        "report": "Make the figures and tables of a saved study again.",
        "reproduce": "Run the paper's experiments: five models, six policies, 600 runs of each.",
    },
    "experiments": {"experiment": "Run an experiment: ask what to set, carry it out, tell what was seen."},
    "storage": {"storage": "Back up a storage, and read its audit log."},
    "serve": {
        "serve": "Serve the dashboard, and the REST API at /api/v1.",
        "demo": "Show the dashboard with a simulated experiment that runs while you look.",
    },
    "warm": {"warm": "Compile everything that experiments need, ahead of time."},
    "tokens": {"token": "Create, list and revoke tokens for `dobandit serve`."},
}


@click.group(
    cls=LazyGroup, homes=_HOMES, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="dobandit")
def cli() -> None:
    """Combinatorial causal bandits: which variables to set so that the target becomes most likely.

    \b
    Examples:
      dobandit check funnel.txt --target buy -k 2
      dobandit expect model.json --do coupon=1 --do email=0
      dobandit project model.json -o observed.json
      dobandit solve model.json -k 3
      dobandit rank visits.csv funnel.txt --target buy -k 2
      dobandit simulate model.json --policy blm-lr --policy ucb --rounds 2000 -k 2
      dobandit reproduce
      dobandit experiment create spring funnel.txt -k 2
      dobandit experiment ask spring
      dobandit experiment tell spring 0 visit=1 buy=0
      dobandit serve
      dobandit demo
      dobandit warm
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `dobandit` command."""
    atexit.register(gc.freeze)  # or Python looks for garbage among all that was imported, just before it ends
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names may hold letters that the terminal lacks
    warnings.showwarning = _show_warning
    warnings.simplefilter("ignore", RuntimeWarning)
    warnings.simplefilter("always", DobanditWarning)
    try:
        code = cli.main(args=arguments, prog_name="dobandit", standalone_mode=False)
        sys.stdout.flush()  # now, where it can be said that it failed
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        sys.exit(2)
    except click.ClickException as error:
        hint = f" See '{error.ctx.command_path} --help'." if isinstance(error, click.UsageError) and error.ctx else ""
        _fail(error.format_message() + hint)
    except DobanditError as error:
        _fail(for_commands(error.marked))
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped.", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of a pipe has left; nor will Python write what is left when it ends
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except SystemExit:
        if type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):  # click's answer to a reader who has left the pipe
            sys.exit(0)
        raise
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}")
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    click.echo(f"error: {_one_line(message)}", err=True)
    sys.exit(2)


def _one_line(text: str) -> str:
    """One line that a terminal prints as it stands, without more than some 200 characters of what came."""
    return harmless(" ".join(text.split()))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    text = for_commands(message.marked) if isinstance(message, DobanditWarning) else str(message)
    click.echo(f"warning: {_one_line(text)}", err=True)
