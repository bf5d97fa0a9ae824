"""Names in double quotes, in the two ways that the formats have.

Edge list and BIF: \\\\ \\" \\n \\t \\r \\uXXXX, and nothing else may follow a backslash.
DOT and dagitty: \\\\ \\" \\n, and a backslash at the end of a line joins lines; any other backslash is itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dobandit.graph.formats.tokens import Tokens

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[\s\S])")
_UNESCAPED = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_ESCAPED = {value: f"\\{key}" for key, value in _UNESCAPED.items()}
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029]')


def quote(name: str) -> str:
    """The name in double quotes, on one line."""
    return '"' + _TO_ESCAPE.sub(lambda m: _ESCAPED.get(m[0]) or f"\\u{ord(m[0]):04x}", name) + '"'


def unquote(tokens: Tokens) -> str:
    """What the quoted token at hand says; an unknown escape is refused, since it may mean anything."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code not in _UNESCAPED:
            message = f'{match[0]!r} is no escape. Write one of \\\\ \\" \\n \\t \\r \\uXXXX.'
            raise tokens.error(message, tokens.at + 1 + match.start())
        return _UNESCAPED[code]

    inner = tokens.value[1:-1]
    return _ESCAPE.sub(character, inner) if "\\" in inner else inner


def take_name(tokens: Tokens) -> str:
    """The name at hand, bare or in quotes; on to the next token."""
    if tokens.kind not in ("word", "quoted"):
        raise tokens.unexpected("a name")
    name = unquote(tokens) if tokens.kind == "quoted" else tokens.value
    tokens.advance()
    return name


_DOT_ESCAPE = re.compile(r'\\(\r\n|[\\"n\n])')
_DOT_SPECIAL = re.compile(r'[\\"\n]')


def unescape(quoted: str) -> str:
    inner = quoted[1:-1]
    return _DOT_ESCAPE.sub(_dot_character, inner) if "\\" in inner else inner


def _dot_character(match: re.Match[str]) -> str:
    return {"n": "\n", "\n": "", "\r\n": ""}.get(match[1], match[1])


def quoted(names: Iterable[str], bare: re.Pattern[str], keywords: frozenset[str]) -> dict[str, str]:
    """Each name as it is written: in quotes unless it is a plain word."""
    return {name: name if bare.fullmatch(name) and name.lower() not in keywords else in_quotes(name) for name in names}


def in_quotes(name: str) -> str:
    return '"' + _DOT_SPECIAL.sub(lambda m: "\\n" if m[0] == "\n" else "\\" + m[0], name) + '"'
