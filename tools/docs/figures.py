"""The figures of the site: a page is run in an empty folder, and the picture that it makes there is taken. One is drawn
here: the graph of the page on hidden causes in its regimes.

`python tools/docs/figures.py` writes them into docs/figures/.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path

import dobandit as dob
from dobandit.report.figures import Figure
from dobandit.report.svg.elements import Panel
from dobandit.report.svg.graph_drawing import graph_panel
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


def draw_regimes(path: Path) -> None:
    """The graph of docs/hidden-causes.md where nothing is set, where email is, and where demo is."""
    edges = [("email", "demo"), ("demo", "buy"), ("need", "demo"), ("need", "buy")]
    graph = dob.CausalGraph(edges, target="buy", latent=["need"])
    panels = []
    for chosen in ({}, {"email": 1}, {"demo": 1}):
        kept = [edge for edge in edges if edge[1] not in chosen]
        narrow = graph_panel(graph, chosen, label=f"{' and '.join(chosen) or 'nothing'} set", lit=kept).narrow
        panels.append(Panel(narrow, narrow))
    caption = "Dashed: hidden. Shaded: set. Faint: cut off by setting."
    said = "The same graph three times: nothing is set, email is set, and demo is set, which cuts the arrows into demo."
    Figure("Nothing is set; email is set; demo is set", caption, said, tuple(panels)).save(path)


def main() -> None:
    os.environ["COLUMNS"] = "100"
    folder = ROOT / "docs" / "figures"
    folder.mkdir(exist_ok=True)
    for page, picture in PICTURES.items():
        draw(page, picture, folder)
        print(f"docs/figures/{picture}, made by docs/{page}")
    draw_regimes(folder / "regimes.svg")


if __name__ == "__main__":
    main()
