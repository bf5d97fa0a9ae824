"""A real PostgreSQL server for the tests, started where its programs are installed."""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest


def program(name):
    """The path of one of PostgreSQL's programs, or None."""
    found = shutil.which(name)
    candidates = [found] if found else sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)
    return os.path.realpath(candidates[0]) if candidates else None


def account():
    """PostgreSQL refuses to run as root: another account, or None where it is not needed."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return pytest.skip("PostgreSQL does not run as root, and there is no account postgres or nobody.")


def roomy_memory():
    """A folder in memory, where there is room for it: the server's files need some 500 MB, and disks may be busy."""
    shared = "/dev/shm"
    return shared if os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 2**30 else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Listens on 127.0.0.1 only; for speed it does not wait for the disk, unless it is to be durable."""

    def __init__(self, folder, owner, durable=False):
        self.folder, self.port, self.durable = Path(folder), free_port(), durable
        self._as = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}
        self._databases = 0
        self._run("initdb", "-D", f"{folder}/data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")

    def _run(self, name, *arguments):
        command = [program(name), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, **self._as)
        if done.returncode:
            raise RuntimeError(f"{name} failed: {done.stdout[-500:]} {done.stderr[-500:]}")

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        options += " -c shared_buffers=32MB -c max_connections=60"
        if not self.durable:
            options += " -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
        log = f"{self.folder}/log"
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-l", log, "-w", "-t", "30", "-o", options, "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "-t", "30", "stop")

    def url(self, database="postgres"):
        return f"postgresql+psycopg://tester:geheim@127.0.0.1:{self.port}/{database}"

    def new_database(self):
        """The URL of an empty database of its own."""
        self._databases += 1
        name = f"fresh{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement, database="postgres"):
        import psycopg

        conninfo = f"host=127.0.0.1 port={self.port} user=tester dbname={database}"
        with psycopg.connect(conninfo, autocommit=True) as connection:
            return connection.execute(statement).statusmessage


@contextmanager
def running_server(durable=False):
    if program("initdb") is None or program("pg_ctl") is None:
        message = "PostgreSQL's initdb and pg_ctl are not installed; its tests were left out."
        if os.environ.get("DOBANDIT_REQUIRE_POSTGRES"):
            pytest.fail(message)
        pytest.skip(message)
    owner = account()
    folder = tempfile.mkdtemp(
        prefix="dobandit-postgres-", dir=roomy_memory()
    )  # pytest's own folders are closed to other accounts
    try:
        if owner:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        server = Server(folder, owner, durable)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
