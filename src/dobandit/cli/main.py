"""The command line: parse, call, print. Bad input ends in one line on stderr and exit code 2."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import click

from dobandit import __version__
from dobandit.cli.spelling import as_command
from dobandit.errors import DobanditError, DobanditWarning
from dobandit.texts import message as harmless

_HOMES = {
    "check": "models.check",
    "project": "models.project_command",
    "expect": "expecting.expect_command",
    "paper": "expecting.paper_command",
    "solve": "solving.solve_command",
    "rank": "ranking.rank_command",
    "simulate": "studies.simulate_command",
    "report": "studies.report_command",
    "reproduce": "studies.reproduce_command",
    "experiment": "experiments.experiment_group",
    "storage": "storage.storage_group",
}


class LazyGroup(click.Group):
    """Imports a command when it is used: a `tell` from a shell script does not wait for Numba."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _HOMES:
            return None
        module, name = _HOMES[cmd_name].split(".")
        command: click.Command = getattr(import_module(f"dobandit.cli.{module}"), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `dobandit` command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names may hold letters that the terminal lacks
    warnings.showwarning = _show_warning
    warnings.simplefilter("ignore", RuntimeWarning)
    warnings.simplefilter("always", DobanditWarning)
    try:
        code = cli.main(args=arguments, prog_name="dobandit", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        sys.exit(2)
    except click.ClickException as error:
        hint = f" See '{error.ctx.command_path} --help'." if isinstance(error, click.UsageError) and error.ctx else ""
        _fail(error.format_message() + hint)
    except DobanditError as error:
        _fail(as_command(str(error)))
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped.", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of a pipe has left
        sys.stderr.close()
        sys.exit(0)
    except SystemExit:
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":  # click's answer to a reader who has left the pipe
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
    click.echo(f"warning: {_one_line(as_command(str(message)))}", err=True)
