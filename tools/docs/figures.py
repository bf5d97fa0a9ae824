"""The figures of the site: a page is run in an empty folder, and the picture that it makes there is taken.

`python tools/docs/figures.py` writes them into docs/figures/.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path

from page_runner import ROOT, run_page

PICTURES = {"tasks/rank.md": "ranking.svg", "tasks/influence.md": "influence.svg", "tasks/cluster.md": "study.svg"}


def draw(page: str, picture: str, folder: Path) -> None:
    """Run the page where nobody else is, and keep its picture."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run_page(ROOT / "docs" / page)
            shutil.copyfile(picture, folder / picture)
        finally:
            os.chdir(before)


def main() -> None:
    os.environ["COLUMNS"] = "100"
    folder = ROOT / "docs" / "figures"
    folder.mkdir(exist_ok=True)
    for page, picture in PICTURES.items():
        draw(page, picture, folder)
        print(f"docs/figures/{picture}, made by docs/{page}")


if __name__ == "__main__":
    main()
