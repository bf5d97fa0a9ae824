"""The look of drawings and pages: light or dark as the reader has it, fit for phones and for print.

TOKENS are the colours and sizes; DRAWN is the look of what `report.svg` draws (`drawn.css`) and how it stands on a
page (`drawn_on_pages.css`); CSS is the look of a whole report (`report.css`). In `drawn_on_pages.css` a shadow at an
edge of what scrolls says that there is more beyond it; it goes when the end is reached.
"""

import re
from pathlib import Path

from dobandit.report.svg.elements import FLOOR_STEP, LARGEST_FLOOR

# c0 to c9 are safe for colour-blind readers, and neighbours differ in lightness too.
_LIGHT = """--ink: #1b1d21; --soft: #5a5f66; --line: #dfe2e6; --grid: #e8eaed; --paper: #ffffff; --shade: #f5f6f8;
  --accent: #0b4f94; --accent-ink: #ffffff; --accent-faint: #e4edf7; --good: #1c7c54; --warn: #9a5b00;
  --warn-faint: #fdf3e1; --harm: #b3261e; --harm-faint: #fcebea; --chosen: #ffd9a0; --chosen-ink: #1b1d21;
  --context: #e8eef6; --arrow: #6d737b; --data: #9a5200;
  --c0: #004488; --c1: #d97400; --c2: #8a1c5a; --c3: #008a65; --c4: #3a97d0; --c5: #6e6e6e; --c6: #a88c00;
  --c7: #d0453e; --c8: #111111; --c9: #7a5230;"""
_DARK = """--ink: #e9ebee; --soft: #a9afb7; --line: #353a41; --grid: #2b3036; --paper: #15171a; --shade: #1e2125;
  --accent: #8fbff5; --accent-ink: #10202f; --accent-faint: #1d2c3c; --good: #6fcfa3; --warn: #f0b65c;
  --warn-faint: #33270f; --harm: #ff8f87; --harm-faint: #3a1c1a; --chosen: #7a4f10; --chosen-ink: #fff3df;
  --context: #243042; --arrow: #9aa1aa; --data: #ffa24a;
  --c0: #7db4ff; --c1: #ffa24a; --c2: #e57fb8; --c3: #4fd0a6; --c4: #86d0ff; --c5: #b0b0b0; --c6: #e3c94a;
  --c7: #ff8a80; --c8: #f2f2f2; --c9: #cfa079;"""

TOKENS = f"""
:root {{ color-scheme: light dark; {_LIGHT}
  --font: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
@media print {{ :root {{ color-scheme: light; {_LIGHT} }} }}
"""

_HERE = Path(__file__).parent
_FLOORS = "".join(f".least{floor}{{min-width:{floor}px}}" for floor in range(FLOOR_STEP, LARGEST_FLOOR + 1, FLOOR_STEP))
_LOOK = (_HERE / "drawn.css").read_text(encoding="utf-8")

DRAWN = _FLOORS + "\n" + _LOOK + (_HERE / "drawn_on_pages.css").read_text(encoding="utf-8")
CSS = TOKENS + DRAWN + "\n" + (_HERE / "report.css").read_text(encoding="utf-8")

# Fonts of a file: programs that show SVG know none of a page's names for the system's own font.
_FILE_FONT = "--font: Helvetica Neue, Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif;"


def file_style(dark: bool) -> str:
    """The look of a drawing in a file, with its colours written out: not every program that shows SVG knows variables
    of CSS."""
    tokens = dict(re.findall(r"--([\w-]+): ([^;]+);", (_DARK if dark else _LIGHT) + _FILE_FONT))
    return re.sub(r"var\(--([\w-]+)\)", lambda found: tokens[found[1]], _LOOK)
