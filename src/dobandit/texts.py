"""Texts made harmless: what users, files and databases hold may be anything, and is shown, not obeyed."""

from __future__ import annotations

import re

MOST_ECHOED = 200  # characters of what came that a message repeats
_LONGEST_MESSAGE = 2_000
_WORD = re.compile(rf"\S{{{MOST_ECHOED + 1},}}")
# A quotation: not an apostrophe within a word.
_QUOTED = re.compile(
    rf"""(?<!\w)'(?:[^'\\]|\\.){{{MOST_ECHOED - 1},}}'(?!\w)|(?<!\w)"(?:[^"\\]|\\.){{{MOST_ECHOED - 1},}}"(?!\w)""",
    re.S,
)
# How a collection begins: a round bracket alone may be a remark, unless it follows "got" or "but".
_COLLECTION = re.compile(r"((?<!\w)\w{1,60}\(|[\[{]|(?<=\bgot )\(|(?<=\bbut )\()")
_BRACKETS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[(\[{)\]}]""", re.S)


def printable(text: str) -> str:
    r"""Control characters shown, not obeyed: names may hold anything.

    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else _shown(c) for c in text)


def printable_lines(text: str) -> str:
    """`printable`, where the ends of lines stay."""
    return "\n".join(map(printable, text.split("\n")))


def _shown(character: str) -> str:
    return character.encode("unicode_escape").decode()


def message(text: str) -> str:
    """An error's text: printable, and without more than some 200 characters of any one thing that came."""
    lines = printable_lines(text)
    if len(lines) <= MOST_ECHOED:
        return lines
    lines = _WORD.sub(_cut, _QUOTED.sub(_cut, _collections_cut(lines)))
    if len(lines) <= _LONGEST_MESSAGE:
        return lines
    return f"{lines[: _LONGEST_MESSAGE // 2]} ... {lines[-_LONGEST_MESSAGE // 2 :]}"  # the way out stands at the end


def _collections_cut(text: str) -> str:
    """Lists, dictionaries and the like that came: each is one thing, up to its closing bracket."""
    done, at = [], 0
    while found := _COLLECTION.search(text, at):
        start, still_open = found.start(1), 0
        for part in _BRACKETS.finditer(text, found.end() - 1):
            still_open += (part[0] in "([{") - (part[0] in ")]}")
            if not still_open:
                break
        else:
            break  # never closed
        whole = text[start : part.end()]
        done += [text[at:start], whole if len(whole) <= MOST_ECHOED else _shortened(whole)]
        at = part.end()
    return "".join(done) + text[at:]


def _cut(found: re.Match[str]) -> str:
    return _shortened(found[0])


def _shortened(whole: str) -> str:
    return f"{whole[: MOST_ECHOED - 20]}...{whole[-17:]}"
