"""Tables that programs hold by column: frames of pandas and polars, Arrow tables, Parquet files."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from dobandit.errors import ParseError
from dobandit.experiment.export import optional_package
from dobandit.text_files import without_gz

_ENDINGS = (".parquet", ".pq")
_MAGIC, _GZIP = b"PAR1", b"\x1f\x8b"


class Cells(NamedTuple):
    """A table: its columns' names, and its rows as tuples."""

    header: list[Any]
    rows: Iterable[tuple[Any, ...]]


def is_frame(source: Any) -> bool:
    """Whether this is a table that `cells_of` reads: by what it can do, so that no package is needed for it."""
    rows = hasattr(source, "itertuples") or hasattr(source, "iter_rows")
    return (hasattr(source, "columns") and rows) or (hasattr(source, "column_names") and hasattr(source, "to_pydict"))


def cells_of(frame: Any) -> Cells:
    """The cells of a frame of pandas or polars, or of an Arrow table."""
    if hasattr(frame, "itertuples"):
        return Cells(list(frame.columns), frame.itertuples(index=False, name=None))
    if hasattr(frame, "iter_rows"):
        return Cells(list(frame.columns), frame.iter_rows())
    columns: dict[str, list[Any]] = frame.to_pydict()
    return Cells(list(columns), zip(*columns.values(), strict=True))


def is_parquet(source: Any) -> bool:
    """Whether this is the path of a Parquet file, by its ending or its first bytes."""
    if not isinstance(source, (str, os.PathLike)):
        return False
    if without_gz(source).suffix.lower() in _ENDINGS:
        return True
    with suppress(OSError, ValueError), open(source, "rb") as file:  # whoever reads it says what is wrong
        return file.read(len(_MAGIC)) == _MAGIC
    return False


def read_parquet(path: str | os.PathLike[str]) -> Cells:
    """The cells of a Parquet file, compressed as a whole (.gz) or not (needs pyarrow)."""
    arrow = optional_package("pyarrow", "dobandit[parquet]")
    parquet = optional_package("pyarrow.parquet", "dobandit[parquet]")
    try:
        with open(path, "rb") as file:
            zipped = file.read(len(_GZIP)) == _GZIP
        if zipped:  # whole, since Parquet is read from its end
            with gzip.open(path) as unzipped:
                table = parquet.read_table(arrow.BufferReader(unzipped.read()))
        else:
            table = parquet.read_table(os.fspath(path))
    except (OSError, EOFError, ValueError, zlib.error, arrow.ArrowException) as error:
        raise ParseError(f"this Parquet file cannot be read ({error!s:.200}). Check the path.") from None
    return cells_of(table)
