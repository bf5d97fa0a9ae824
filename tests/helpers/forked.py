"""Processes as people start them, `python -c ...` or a shell script with `dobandit` in it, for the zygote to run: they
are forked from a process that has loaded everything, instead of loading it again."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

COMMAND = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    socket.send_fds(line, [json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
    sys.exit(int(line.recv(10)))
"""


def exit_code(run, streams, arguments, folder, environment):
    """What a forked process ends with that does `run`; `streams` are its standard input, output and error."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        signal.alarm(60)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv, sys.stdin = [sys.argv[0], *arguments], os.fdopen(0)
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def outcome(wait):
    """[exit code, standard output, standard error] of what `wait` does with files for the two."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = wait(out, err)
        out.seek(0), err.seek(0)
        return [code, out.read().decode(), err.read().decode()]


def python(code, arguments, path):
    """`python -c code arguments` with `path` in front of the others on which modules are looked for."""

    def run():
        sys.path[:0] = path
        exec(code, {"__name__": "__main__"})

    with open(os.devnull) as nothing:
        return outcome(
            lambda *files: exit_code(
                run, [one.fileno() for one in (nothing, *files)], arguments, ".", os.environ.copy()
            )
        )


def shell(script):
    """`sh script`, in which each `dobandit` asks for a fork that does what it was told, where it was told."""
    from dobandit.cli.main import main

    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as asked:
        address, command = f"{folder}/asked", Path(folder, "dobandit")
        asked.bind(address)
        asked.listen()
        asked.settimeout(0.02)
        command.write_text(COMMAND.format(python=sys.executable, address=address))
        command.chmod(0o755)

        def wait(out, err):
            path = {"PATH": os.pathsep.join([folder, os.environ["PATH"]])}
            running = subprocess.Popen(["sh", script], env=os.environ | path, stdout=out, stderr=err)
            while running.poll() is None:
                try:
                    line, _ = asked.accept()
                except TimeoutError:
                    continue
                with line:
                    said, streams, *_ = socket.recv_fds(line, 1_000_000, 3)
                    line.send(str(exit_code(main, streams, *json.loads(said))).encode())
                    for stream in streams:
                        os.close(stream)
            return running.returncode

        return outcome(wait)
