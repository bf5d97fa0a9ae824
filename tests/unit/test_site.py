"""What the documentation site is made of, beside its pages."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import click
import yaml

import api_pages
import check_site
import command_pages
import dobandit
import docstrings
import figures
import hooks
from dobandit.cli.main import cli

ROOT = Path(__file__).parents[2]


def test_the_command_reference_has_every_command_with_its_own_help():
    page = command_pages.reference()
    context = click.Context(cli)
    for name in cli.list_commands(context):
        assert f"\n### dobandit {name}\n" in page
    group = cli.get_command(context, "experiment")
    for name in group.list_commands(context):
        assert f"\n#### dobandit experiment {name}\n" in page
    assert "Usage: dobandit experiment tell [OPTIONS] NAME TRIAL" in page
    assert "-h, --help" in page
    assert max(len(line) for line in page.split("\n")) <= 120


def test_the_api_reference_has_every_public_name_once_and_what_it_names_is_there():
    names = [name for page in api_pages.placed().values() for name in page]
    assert len(set(names)) == len(names)
    last_words = [name.rpartition(".")[2] for name in names]
    assert all(last_words.count(name) == 1 for name in dobandit.__all__ if name != "errors")
    for name in names:
        module, _, last = name.rpartition(".")
        assert getattr(import_module(module), last), name


def test_the_columns_of_a_docstring_become_a_table_and_its_examples_code():
    text = """A sentence.

budget         how many
rules, levers  what else, in two lines that
               go on | further right
More text.

>>> 1 + 1
2
"""
    assert docstrings.as_markdown(text) == (
        "A sentence.\n\n"
        "| | |\n|---|---|\n"
        "| `budget` | how many |\n"
        "| `rules`, `levers` | what else, in two lines that go on \\| further right |\n\n"
        "More text.\n\n"
        "```pycon\n>>> 1 + 1\n2\n```"
    )


def test_formulas_become_mathml():
    html = hooks.on_page_content('<p><span class="arithmatex">\\(x_1 &lt; 2\\)</span></p>', None, None, None)
    assert "<math" in html
    assert "<msub>" in html
    assert "arithmatex" not in html


def test_a_page_that_is_named_in_a_text_is_a_link_by_its_title():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="tasks/rank.md"))
    known = {"data.md": SimpleNamespace(content_string="# From data\n\nYou have a table.\n")}
    files = SimpleNamespace(get_file_from_path=known.get)
    text = "See `docs/data.md`, `docs/none.md` and [docs](../data.md)."
    linked = hooks.on_page_markdown(text, page, None, files)
    assert linked == "See [From data](../data.md), `docs/none.md` and [docs](../data.md)."


def test_the_navigation_leaves_out_what_is_not_written():
    nav = [{"Home": "index.md"}, {"Tasks": [{"One": "one.md"}, {"None": "none.md"}]}, {"All": "decisions"}]
    filled = hooks.filled_nav(nav, {"decisions": ["a.md"]}, lambda path: path != "none.md")
    assert filled == [{"Home": "index.md"}, {"Tasks": [{"One": "one.md"}]}, {"All": ["a.md"]}]


def test_what_a_page_fetches_from_elsewhere_or_lacks_is_found(tmp_path):
    assert check_site.problems(tmp_path) == [f"{tmp_path} has no pages"]
    (tmp_path / "here.png").touch()
    (tmp_path / "page.html").write_text(
        '<img src="here.png"><a href="https://example.org">a link is fine</a><script src="https://cdn.org/x.js"></script>'
        '<link rel="stylesheet" href="//fonts.org/f.css"><img src="gone.png">'
    )
    (tmp_path / "style.css").write_text("@import 'https://fonts.org/g.css'; a { background: url(here.png) }")
    assert check_site.problems(tmp_path) == [
        "page.html fetches https://cdn.org/x.js from elsewhere",
        "page.html fetches //fonts.org/f.css from elsewhere",
        "page.html needs gone.png, which is not there",
        "style.css fetches https://fonts.org/g.css from elsewhere",
    ]


def test_every_figure_on_a_page_is_made_by_one():
    shown = {
        name
        for page in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"!\[[^\]]*\]\((?:\.\./)?figures/([^)]+)\)", page.read_text())
    }
    assert shown == {*figures.PICTURES.values(), "regimes.svg"}
    for page, picture in figures.PICTURES.items():
        assert picture in (ROOT / "docs" / page).read_text()


def test_citation_and_issue_forms_can_be_read():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["title"].startswith("dobandit")
    for form in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        assert yaml.safe_load(form.read_text()), form
