"""SQLite, in a file (one writer at a time, readers undisturbed, a commit that has reached the disk) or in memory."""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
import threading
import time
from contextlib import closing
from itertools import count
from pathlib import Path

from sqlalchemy import Connection, QueuePool, create_engine
from sqlalchemy.exc import DBAPIError

from dobandit.errors import StorageError, listed
from dobandit.storage.database import PATIENCE, Database
from dobandit.storage.fork_safety import remember
from dobandit.storage.storage_errors import NOTHING_STORED

_POLL = 0.02  # seconds that SQLite waits by itself; its pauses grow, and whoever came first would wait longest
_ENDINGS = ("", "-wal", "-shm", "-journal")  # of the files of a database
_CLOSED_FOLDER = (
    "cannot be opened: the file and its folder must exist, and SQLite must be allowed to write there, even to read. "
    "{nothing} Change the permissions, or work on a copy in another folder."
)
_TROUBLE = {
    "SQLITE_FULL": "has no room left on its disk. {nothing} Free some space, then repeat this.",
    "SQLITE_IOERR": "could not be written or read ({error}): the disk is full, or failing. {nothing} Free some space "
    "or check the disk, then repeat this.",
    "SQLITE_READONLY_DIRECTORY": _CLOSED_FOLDER,
    "SQLITE_READONLY": "may not be written by you. {nothing} Change the permissions of the file and its folder, or "
    "work on a copy.",
    "SQLITE_PERM": "may not be opened by you. {nothing} Change the permissions of the file and its folder.",
    "SQLITE_CANTOPEN": _CLOSED_FOLDER,
    "SQLITE_NOTADB": "must be an SQLite database, but is a file of another kind. {nothing} Choose another file.",
    "SQLITE_CORRUPT": "is damaged ({error}). {nothing} Restore it from a backup.",
    "SQLITE_BUSY": f"was kept by another process for more than {PATIENCE:.0f} seconds. {{nothing}} Repeat this when "
    "the other is done, or end it.",
}


class SQLite(Database):
    """What a file and memory have in common."""

    def begin(self, connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def table_names(self, connection: Connection) -> set[str]:
        """We make no triggers. A file comes by mail more easily than a server."""
        found = connection.exec_driver_sql("SELECT type, name FROM sqlite_master").fetchall()
        triggers = [str(name)[:60] for kind, name in found if kind == "trigger"]
        if triggers:
            raise StorageError(
                f"{self.url} must have no triggers, which would run whenever a round is stored, but has "
                f"{listed(triggers)}. {NOTHING_STORED} If you trust them, drop them first; otherwise take a backup of "
                "which you know where it comes from."
            )
        return {name for kind, name in found if kind == "table"}

    def passes(self, error: DBAPIError, attempt: int, seconds: float) -> bool:
        return _waits(error.orig, seconds)

    def explain(self, error: Exception, committing: bool = False) -> StorageError:
        cause = (error.orig if isinstance(error, DBAPIError) else None) or error
        name = getattr(cause, "sqlite_errorname", None) or ""
        if committing and name in ("SQLITE_IOERR_FSYNC", "SQLITE_IOERR_DIR_FSYNC"):  # all was written, and may be there
            return StorageError(
                f"{self.url}: the disk failed while this was being stored ({cause}), so it is not known whether it "
                "was. Check the disk, then look at the experiment's last trials before repeating this."
            )
        if isinstance(cause, UnicodeDecodeError) or "decode to UTF-8" in str(cause):
            name = "SQLITE_CORRUPT"
        for code, words in _TROUBLE.items():
            if name.startswith(code):
                return StorageError(f"{self.url} " + words.format(error=cause, nothing=NOTHING_STORED))
        return StorageError(f"{self.url} refused this ({cause}). {NOTHING_STORED}")


class SQLiteFile(SQLite):
    """One file. It is made by `make` only: looking into a file that is not there leaves nothing behind."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()  # the process may change its folder
        self.url = f"sqlite:///{path}"
        self.alone = threading.RLock()
        self._identity: tuple[int, int] | None = None
        self.engine = self.reader = create_engine(
            "sqlite+pysqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            pool_size=2,
            max_overflow=-1,  # readers need not wait for each other
            pool_use_lifo=True,
        )
        remember(self)

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self.path)
        status = os.stat(self.path)
        self._identity = self._identity or (status.st_dev, status.st_ino)
        return connection

    def present(self) -> bool:
        """SQLite would go on writing into a file that was removed, and all of that would be lost."""
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            if self._identity is None:
                return False
            status = None
        except OSError as error:
            raise StorageError(f"{self.url} cannot be reached ({error.strerror}). Check the path.") from None
        if self._identity is None or (status and self._identity == (status.st_dev, status.st_ino)):
            return True
        raise StorageError(
            f"{self.url} must stay in its place while it is used, but it was {'replaced' if status else 'removed'}. "
            f"{NOTHING_STORED} Put it back, or open the storage anew."
        )

    def files(self) -> tuple[str, ...]:
        return tuple(f"{self.path}{ending}" for ending in _ENDINGS)

    def make(self) -> None:
        """SQLite makes the file: opening it in another way, and closing that, would drop the locks of this process."""
        if not self.path.parent.is_dir():
            raise StorageError(
                f"{self.url} must be in a folder that exists, but there is no folder {self.path.parent}. "
                "Make the folder, or choose another file."
            )
        started = time.monotonic()
        while True:  # SQLite does not wait by itself when several processes do this at once
            try:
                with closing(connect(self.path, "rwc")) as connection:
                    connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.Error as error:
                if not _waits(error, time.monotonic() - started):
                    raise self.explain(error) from None

    def backup(self, target: Path) -> None:
        """The file appears when it is complete, and never takes the place of another. Nobody is kept from writing."""
        if not self.present():
            raise StorageError(f"{self.url} must exist to be backed up, but is not there. Check the path.")
        _refuse_existing(target)
        try:
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            os.close(handle)
        except OSError as error:
            raise StorageError(
                f"A backup needs a folder that can be written, but: {error.strerror} ({target.parent}). Choose another "
                "one."
            ) from None
        try:
            with closing(connect(self.path)) as reading, closing(sqlite3.connect(name)) as writing:
                reading.backup(writing)  # in one step, which is one read transaction
            with open(name, "rb+") as file:
                os.fsync(file.fileno())
            _refuse_existing(target)
            os.replace(name, target)
        except sqlite3.Error as error:
            raise self.explain(error) from None
        except OSError as error:
            raise StorageError(f"The backup {target} could not be written ({error.strerror}); there is none.") from None
        finally:
            for ending in _ENDINGS:
                Path(name + ending).unlink(missing_ok=True)


def _refuse_existing(target: Path) -> None:
    if target.exists():
        raise StorageError(f"A backup never replaces a file, but {target} exists. Choose another name, or remove it.")


class SQLiteMemory(SQLite):
    """A database that lives as long as the process: for tests, notebooks and simulations.

    Its connections share one cache, which stays while one of them is open. There, whoever reads waits for whoever
    writes: both are quick, and neither waits for a disk.
    """

    url = "memory"
    reads_alone = True
    _names = count()

    def __init__(self) -> None:
        self.alone = threading.RLock()
        self._address = f"file:dobandit-{next(self._names)}?mode=memory&cache=shared"
        self._open = self._connect()
        self.engine = self.reader = create_engine(
            "sqlite+pysqlite://", creator=self._connect, poolclass=QueuePool, pool_size=1, max_overflow=-1
        )
        remember(self)

    def backup(self, target: Path) -> None:
        raise StorageError("Only an SQLite file can be backed up, but this storage is in memory. Export its trials.")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._address, uri=True, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA foreign_keys=ON")
        return connection


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """An existing file (mode "rwc": also a new one), with transactions left to the caller."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=_POLL, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA trusted_schema=OFF")  # nothing in a file from elsewhere is run
        connection.execute("PRAGMA synchronous=FULL")  # an acknowledged round survives the loss of power
        if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):  # then a commit may have to wait, too
            connection.execute(f"PRAGMA busy_timeout={PATIENCE * 1000:.0f}")
    except BaseException:
        connection.close()
        raise
    return connection


def _waits(error: BaseException | None, seconds: float) -> bool:
    """Wait a moment, where somebody else is busy."""
    name = getattr(error, "sqlite_errorname", None) or ""
    if not name.startswith("SQLITE_BUSY") or seconds > PATIENCE:
        return False
    time.sleep(random.uniform(0.001, 0.01))
    return True
