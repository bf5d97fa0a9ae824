"""The code in the README and the documentation runs as it stands."""

import doctest
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if FENCE.search(page.read_text())], ids=lambda page: page.name)
def test_the_code_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in FENCE.findall(page.read_text()):
        exec(compile(code, page.name, "exec"), names)  # one page, one session
    assert names


def test_the_policy_of_the_page_keeps_the_contract(tmp_path):
    code = "\n".join(FENCE.findall((ROOT / "CONTRIBUTING.md").read_text()))
    (tmp_path / "test_try_each.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "test_try_each.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "module",
    [
        "policy.base",
        "policy.engine",
        "policy.learner",
        "oracle.rules",
        "oracle.possibly_optimal",
        "graph.hiding",
        "graph.borders",
    ],
)
def test_the_examples_in_docstrings_say_what_happens(module):
    done = doctest.testmod(import_module(f"dobandit.{module}"))
    assert done.attempted
    assert not done.failed


def test_every_file_that_the_paper_map_names_exists():
    text = (ROOT / "docs/paper-map.md").read_text()
    for name in re.findall(r"`((?:graph|model|estimation|oracle|policy|simulation|report)/[\w/]+\.py)`", text):
        assert (ROOT / "src/dobandit" / name).exists(), name
    for name in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / name).exists(), name
