"""The code in the README and the documentation runs as it stands."""

import doctest
import inspect
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import dobandit
from helpers import forked
from helpers.worlds import THOROUGH
from page_runner import PageError, blocks, run_page, says

pytestmark = pytest.mark.usefixtures("one_of_many")

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
RUN = [page for page in PAGES if blocks(page.read_text())]
PUBLIC = [name for name in dobandit.__all__ if not inspect.ismodule(getattr(dobandit, name))]
POSTGRES = "postgresql+psycopg://shop@db.example.org/growth"


@pytest.fixture
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("DOBANDIT_STORAGE", "sqlite:///dobandit.db")  # pages may set it: put back afterwards


@pytest.mark.usefixtures("_own_folder")
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_is_what_happens(page, request):
    replaced = {POSTGRES: request.getfixturevalue("database")} if POSTGRES in page.read_text() else {}
    run_page(page, replaced)


@pytest.mark.usefixtures("_own_folder")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("```python\n1 / 0\n```\n", "division by zero"),
        ("```pycon\n>>> 1 + 1\n3\n```\n", "Expected"),
        ("```console\n$ dobandit --version\ndobandit, version 17\n```\n", "but printed"),
        ("```console\n$ pip install 'dobandit[magic]'\n```\n", "there is no magic"),
        ("```console\n$ make coffee\n```\n", "there is no coffee"),
        ("```console\n$ python examples/none.py\n```\n", "there is no examples/none.py"),
        ("```bash\nls\n```\n", "nobody runs blocks of bash"),
        ("```sh\ndobandit paper --coffee\n```\n", "No such option"),
        ("```sh\ndobandit coffee\n```\n", "there is no command coffee"),
        ("```py\nfor\n```\n", "invalid syntax"),
    ],
)
def test_a_page_that_says_what_does_not_happen_fails(text, told, tmp_path):
    (tmp_path / "page.md").write_text(text)
    with pytest.raises((PageError, ZeroDivisionError, SyntaxError), match=told):
        run_page(tmp_path / "page.md")


def test_dots_stand_for_anything_and_for_nothing():
    assert says("a ... d", "a b\n c d\n")
    assert says("a\n...\nb", "a\nb")
    assert says("...\nb (c)", "a\nb  (c)")
    assert not says("a ... c", "a b")
    assert not says("b", "a b")


def test_every_block_of_a_page_is_found():
    for page in PAGES:
        text = page.read_text()
        assert 2 * len(blocks(text)) == len(re.findall(r"^ *```", text, re.MULTILINE)), page


def test_the_policy_of_the_page_keeps_the_contract(zygote, tmp_path):
    page = blocks((ROOT / "CONTRIBUTING.md").read_text())
    code = "\n".join(block.text for block in page if block.language == "python")
    some = f"\nTestTryEach.cases = TestTryEach.cases[::{max(12 // THOROUGH, 1)}]\n"  # test_policy_suite.py has them all
    (tmp_path / "test_try_each.py").write_text(code + some)
    tested = "import os, sys, pytest; os.chdir(sys.argv[1]); sys.exit(pytest.main(sys.argv[2:]))"
    loaded = "ignore::pytest.PytestAssertRewriteWarning"  # a fork may have loaded a plugin for another test
    words = [tmp_path, "-q", "-p", "no:cacheprovider", "-W", "error", "-W", loaded, "test_try_each.py"]
    code, out, err = zygote.run(forked.python, tested, words, [])
    assert code == 0, out + err
    assert "skipped" not in out.splitlines()[-1]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_says_what_it_is_and_what_it_takes(name):
    """What is not made by hand ("Made by ...") need not say how it is made."""
    public = getattr(dobandit, name)
    text = inspect.getdoc(public)
    assert text
    if not re.search(r"\bmade by `", text, re.IGNORECASE):
        unsaid = [word for word in inspect.signature(public).parameters if not re.search(rf"\b{word}\b", text)]
        assert not unsaid


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isclass(getattr(dobandit, name))])
def test_whatever_a_public_class_offers_says_what_it_is(name):
    public = getattr(dobandit, name)
    for member in (member for member in dir(public) if not member.startswith("_")):
        found = [vars(base)[member] for base in public.__mro__ if member in vars(base)]
        if isinstance(found[0], (FunctionType, property, classmethod, staticmethod, cached_property)):
            assert any(one.__doc__ for one in found), member


RESULTS = {"BestFound", "Expectation", "Fit", "OracleResult", "SimulationResult", "Trial"}  # of functions with one


@pytest.mark.parametrize("name", sorted({*PUBLIC} - RESULTS))
def test_whatever_is_public_has_an_example(name):
    assert ">>> " in getattr(dobandit, name).__doc__


def modules_with_examples():
    package = Path(dobandit.__file__).parent
    found = (path for path in package.rglob("*.py") if re.search(r"^\s*>>> ", path.read_text(), re.MULTILINE))
    return sorted(".".join(("dobandit", *path.relative_to(package).with_suffix("").parts)) for path in found)


@pytest.mark.usefixtures("_own_folder")
@pytest.mark.parametrize("module", modules_with_examples())
def test_the_examples_in_docstrings_say_what_happens(module):
    done = doctest.testmod(import_module(module.removesuffix(".__init__")))
    assert done.attempted
    assert not done.failed


def test_every_file_that_the_paper_map_names_exists():
    text = (ROOT / "docs/paper-map.md").read_text()
    for name in re.findall(r"`((?:graph|model|estimation|oracle|policy|simulation|report)/[\w/]+\.py)`", text):
        assert (ROOT / "src/dobandit" / name).exists(), name
    for name in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / name).exists(), name


def test_the_pictures_of_the_readme_are_small_and_in_the_repository():
    pictures = re.findall(r"docs/pictures/[\w.-]+", (ROOT / "README.md").read_text())
    assert {*pictures} == {f"docs/pictures/{path.name}" for path in (ROOT / "docs/pictures").iterdir()}
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 150_000, picture


def test_every_place_that_says_the_version_says_the_same():
    told = {
        "pyproject.toml": r'^version = "(.+)"$',
        "CITATION.cff": r"^version: (.+)$",
        "CHANGELOG.md": r"^## (\S+) \(",
    }
    for name, pattern in told.items():
        found = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
        assert found, name
        assert found[1] == dobandit.__version__, name
