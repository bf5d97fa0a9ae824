"""Finished blocks on disk, so that a study goes on after a crash: one small file a block, whole or absent."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dobandit.checks import shown
from dobandit.errors import SimulationError
from dobandit.simulation.run import Block
from dobandit.simulation.study import Study
from dobandit.text_files import write_atomically

_FOLDER = "unfinished"
UNREADABLE = (OSError, ValueError, LookupError, TypeError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)


def read_arrays(file: Path, names: Iterable[str]) -> dict[str, Any]:
    """The named arrays of an archive; where it is damaged, one of UNREADABLE is raised."""
    with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as archive:
        return {name: archive[name] for name in names}


class Checkpoint:
    """Blocks of one study in a folder; blocks of another study in the same place are refused."""

    def __init__(self, folder: str | os.PathLike[str], study: Study) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise SimulationError(f"a checkpoint is a folder, given by its path, but got {shown(folder)}.")
        fingerprint = study.fingerprint()  # refuses what a file cannot hold, before anything is made
        self.folder = Path(folder) / _FOLDER
        mark = self.folder / "study.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if mark.exists():
                if json.loads(mark.read_text()).get("fingerprint") != fingerprint:
                    raise SimulationError(
                        f"{self.folder} holds an unfinished study with other settings. Finish that one with the same "
                        "settings, choose another folder, or remove it."
                    )
            else:
                write_atomically(mark, json.dumps({"fingerprint": fingerprint}))
        except (OSError, ValueError) as error:
            if isinstance(error, SimulationError):
                raise
            raise SimulationError(f"{self.folder}: cannot keep unfinished work here ({error}).") from None

    def add(self, block: Block) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, **block._asdict())
        write_atomically(self.folder / f"block-{block.replications[0]:09d}.npz", buffer.getvalue())

    def finished(self) -> Iterator[Block]:
        """Blocks of earlier runs; a file that cannot be read counts as absent."""
        for file in sorted(self.folder.glob("block-*.npz")):
            try:
                block = Block(**read_arrays(file, Block._fields))
            except UNREADABLE:
                continue
            yield block


def remove_finished(folder: str | os.PathLike[str], study: Study) -> None:
    """Clear up the unfinished work of a study that is saved whole; that of other studies stays."""
    home = Path(folder) / _FOLDER
    try:
        if json.loads((home / "study.json").read_text()).get("fingerprint") != study.fingerprint():
            return
        for file in home.iterdir():
            file.unlink(missing_ok=True)
        home.rmdir()
    except (OSError, ValueError):
        return
