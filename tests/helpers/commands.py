"""The command line, carried out in this process, where everything is loaded, or in one of its own, as users do."""

import io
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from dobandit.cli.main import main


def dobandit(*arguments, code=0):
    """What a command prints, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert (ended.value.code or 0) == code, err.getvalue() + out.getvalue()
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())


def dobandit_process(*arguments, code=0, cwd=None):
    """What a command prints, in a process that has loaded nothing yet."""
    command = [sys.executable, "-m", "dobandit", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done
