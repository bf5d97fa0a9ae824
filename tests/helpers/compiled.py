"""What Numba keeps of the package's kernels."""

from pathlib import Path

import dobandit


def compiled_files() -> set[str]:
    """A file for each kernel and kind of arguments."""
    return {str(path) for path in Path(dobandit.__file__).parent.rglob("*.nbc")}
