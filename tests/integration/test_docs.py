"""The code in the README and the documentation runs as it stands."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if FENCE.search(page.read_text())], ids=lambda page: page.name)
def test_the_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in FENCE.findall(page.read_text()):
        exec(compile(code, page.name, "exec"), names)  # one page, one session
    assert names


def test_every_file_that_the_paper_map_names_exists():
    text = (ROOT / "docs/paper-map.md").read_text()
    for name in re.findall(r"`((?:graph|model|estimation|oracle|policy|simulation|report)/[\w/]+\.py)`", text):
        assert (ROOT / "src/dobandit" / name).exists(), name
    for name in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / name).exists(), name
