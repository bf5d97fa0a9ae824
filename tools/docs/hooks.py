"""What MkDocs does here beyond its own: pages made from the package, links between files, formulas as MathML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

import api_pages
import command_pages

ROOT = Path(__file__).parents[2]
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_config(config: Any) -> Any:
    """In the navigation, `api` and `decisions` stand for all pages of that folder; what is not written is left out."""
    decisions = sorted(path.relative_to(config.docs_dir) for path in Path(config.docs_dir, "decisions").glob("*.md"))
    folders = {"api": api_pages.navigation(), "decisions": [str(path) for path in decisions]}
    made = _made_pages()
    config.nav = filled_nav(config.nav, folders, lambda path: path in made or Path(config.docs_dir, path).exists())
    return config


def on_files(files: Any, config: Any) -> Any:
    """Pages that are made from the package when the site is built, so that they are never out of date."""
    for name, text in _made_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """`docs/data.md` in a text is a link on the site, by the title of that page."""
    up = "../" * page.file.src_uri.count("/")

    def link(match: re.Match[str]) -> str:
        found = files.get_file_from_path(match[1])
        return f"[{_title(found.content_string)}]({up}{match[1]})" if found else match[0]

    return re.sub(r"(?<!\[)`docs/([\w/-]+\.md)`", link, markdown)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Formulas become MathML, which browsers draw by themselves."""

    def mathml(match: re.Match[str]) -> str:
        block = match[1] == "div"
        formula = convert(html.unescape(match[2]).strip(), display="block" if block else "inline")
        return f'<div class="formula">{formula}</div>' if block else formula

    return FORMULA.sub(mathml, content)


def _title(text: str) -> str:
    return text.lstrip().split("\n", 1)[0].removeprefix("# ")


@cache
def _made_pages() -> dict[str, str]:
    return {
        "commands.md": command_pages.reference(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        **api_pages.pages(),
    }


def filled_nav(entries: list[Any], folders: dict[str, list[Any]], exists: Callable[[str], bool]) -> list[Any]:
    filled: list[Any] = []
    for entry in entries:
        for title, target in entry.items():
            if isinstance(target, list):
                filled.append({title: filled_nav(target, folders, exists)})
            elif target in folders:
                filled.append({title: folders[target]})
            elif exists(target):
                filled.append({title: target})
    return filled
