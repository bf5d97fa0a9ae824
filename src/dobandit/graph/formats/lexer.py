"""The tokenizer that the text formats share: one compiled pattern a format, matched at one place after another.

Lines and columns are counted only when an error needs them; while all is well a token is a kind and a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dobandit.errors import ParseError, located

_SHOWN = 40
# Possessive (`*+`), so that no text, however hostile, makes the matcher walk back.
QUOTED = r'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"'


def token_pattern(skip: str, **kinds: str) -> re.Pattern[str]:
    """A master pattern: what to skip, then the kinds of token, tried in order.

    The kind `sign` is for punctuation: such a token's kind is its own text.
    """
    named = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items())
    return re.compile(rf"(?:{skip})*+(?:{named}|(?P<end>\Z)|(?P<bad>[\s\S]))")


class Tokens:
    """A stream of tokens that shows one token: its `kind` and its `value`."""

    __slots__ = ("_advice", "_match", "_pattern", "kind", "text", "value")

    def __init__(self, text: str, pattern: re.Pattern[str], advice: str) -> None:
        """`advice` ends the message about a character that begins no token."""
        self.text = text
        self._pattern = pattern.match
        self._advice = advice
        self.jump(0)

    @property
    def at(self) -> int:
        """Offset of the current token."""
        return self._match.start(self._match.lastgroup or 0)

    @property
    def keyword(self) -> str:
        """The bare word at hand in lower case, as keywords are compared; a quoted text is no keyword."""
        return self.value.lower() if self.kind == "word" else ""

    def advance(self) -> None:
        self.jump(self._match.end())

    def jump(self, offset: int) -> None:
        """Go on with the token that begins at or after `offset`."""
        match = self._pattern(self.text, offset)
        assert match is not None  # the pattern ends in "any character"
        kind = match.lastgroup
        assert kind is not None  # it consists of named alternatives
        self._match = match
        self.value: str = match[kind]
        self.kind: str = self.value if kind == "sign" else kind
        if kind == "bad":
            raise self._bad_character()

    def take(self, kind: str, wanted: str) -> str:
        """The current token's value, which must be of this kind; `wanted` says so in the error."""
        if self.kind != kind:
            raise self.unexpected(wanted)
        value = self.value
        self.advance()
        return value

    def skip(self, *kinds: str) -> bool:
        """Whether the current token is of one of these kinds; it is passed over then."""
        here = self.kind in kinds
        if here:
            self.advance()
        return here

    def error(self, message: str, at: int | None = None) -> ParseError:
        return located(self.text, self.at if at is None else at, message)

    def unexpected(self, wanted: str) -> ParseError:
        return self.error(f"expected {wanted}, but {self.shown()}.")

    def shown(self) -> str:
        """The current token, for a message."""
        if self.kind == "end":
            return "the text ends here"
        if self.kind == "newline":
            return "the line ends here"
        return f"found {self.value[:_SHOWN]!r}" + ("..." if len(self.value) > _SHOWN else "")

    def _bad_character(self) -> ParseError:
        if self.value == '"':
            return self.error("a quoted text ends with a second quote, but this one never does. Close it.")
        if self.text.startswith("/*", self.at):
            return self.error("a comment ends with */, but this one never does. Close it.")
        return self.error(f"{self.value!r} cannot stand here. {self._advice}")


# -- names in double quotes, in the two ways that the formats have ---------------------------------------------------

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
    special = {"n": "\n", "\n": "", "\r\n": ""}
    return _DOT_ESCAPE.sub(lambda match: special.get(match[1], match[1]), quoted[1:-1])


def quoted(names: Iterable[str], bare: re.Pattern[str], keywords: frozenset[str]) -> dict[str, str]:
    """Each name as it is written: in quotes unless it is a plain word."""
    return {name: name if bare.fullmatch(name) and name.lower() not in keywords else in_quotes(name) for name in names}


def in_quotes(name: str) -> str:
    return '"' + _DOT_SPECIAL.sub(lambda m: "\\n" if m[0] == "\n" else "\\" + m[0], name) + '"'
