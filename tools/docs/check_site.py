"""Look at the built site: it fetches nothing from elsewhere, and everything it needs is there.

`python tools/docs/check_site.py site` ends with exit code 1 where it does not.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself; links that a reader follows may lead anywhere.
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
IN_STYLES = re.compile(r"(?:url\(\s*|@import\s+)['\"]?((?:https?:)?//[^'\")\s]+)")


class Fetches(HTMLParser):
    """Collects what a page fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(FETCHED.get(tag, ""))
        if address and given.get("rel") not in ("canonical", "next", "prev"):
            self.found.append(address)


def problems(site: Path) -> list[str]:
    """What is wrong, a line per fault."""
    pages = sorted(site.rglob("*.html"))
    wrong = [] if pages else [f"{site} has no pages"]
    for page in pages:
        name = str(page.relative_to(site))
        parser = Fetches()
        parser.feed(page.read_text(encoding="utf-8"))
        for address in parser.found:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                wrong.append(f"{name} fetches {address} from elsewhere")
            elif not (page.parent / unquote(parts.path)).exists() and not parts.path.startswith("/"):
                wrong.append(f"{name} needs {address}, which is not there")
        if 'class="arithmatex"' in page.read_text(encoding="utf-8"):
            wrong.append(f"{name} has a formula that was not drawn")
    for style in sorted(site.rglob("*.css")):
        for address in IN_STYLES.findall(style.read_text(encoding="utf-8")):
            wrong.append(f"{style.relative_to(site)} fetches {address} from elsewhere")
    return wrong


def main() -> None:
    site = Path(sys.argv[1])
    wrong = problems(site)
    print("\n".join(wrong) or f"{site}: every page has what it needs, and fetches nothing from elsewhere")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
