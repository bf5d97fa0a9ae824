"""Run what a page of the documentation shows, from its first block to its last, as one session in one folder.

    ```python            is executed; names stay for the blocks below
    ```pycon             is executed and compared with what it prints, as doctest does
    ```console           lines with "$ dobandit ..." are carried out and compared with what stands below them;
                         where nothing does, the command has to succeed
    ```csv title="a.csv" becomes a file in the folder, whatever its language
    ```sh, ```py         need something that a test of their own starts, such as a server: commands and options have to
                         exist, and Python has to compile

In what a block says to be printed, "..." stands for anything, and white space does not matter.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Languages of files that are shown and not run; the formats of graphs and models have tests of their own.
SHOWN = {"", "json", "edgelist", "dot", "gml", "dagitty", "bif", "toml", "text", "csv", "nginx"}


class Block(NamedTuple):
    language: str
    title: str | None
    text: str
    line: int


class PageError(AssertionError):
    """A block does not do what the page says."""


def blocks(text: str) -> list[Block]:
    return [
        Block(found["language"], found["title"], found["text"], text.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(text)
    ]


def run_page(page: Path, replaced: Mapping[str, str] | None = None) -> list[Block]:
    """Run the page in the current folder; the blocks that were run. `replaced` are texts that stand for others here."""
    text = page.read_text(encoding="utf-8")
    for old, new in (replaced or {}).items():
        text = text.replace(old, new)
    names: dict[str, Any] = {}
    done = []
    for block in blocks(text):
        place = f"{page.name}, line {block.line}"
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.text, place, "exec", dont_inherit=True), names)
        elif block.language == "pycon":
            _doctest(block.text, names, place)
        elif block.language == "console":
            for command, printed in commands(block.text):
                _carry_out(command, printed, place)
        elif block.language == "py":
            compile(block.text, place, "exec", dont_inherit=True)
        elif block.language == "sh":
            for line in block.text.replace("\\\n", " ").split("\n"):
                if line.startswith("dobandit "):
                    _parse(shlex.split(line, comments=True)[1:], place)
        elif block.language in SHOWN:
            continue
        else:
            raise PageError(f"{place}: nobody runs blocks of {block.language}.")
        done.append(block)
    return done


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, with what is said to be printed."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        length = next(i for i, line in enumerate(lines) if not line.endswith("\\")) + 1
        yield " ".join(line.rstrip("\\").strip() for line in lines[:length]), "\n".join(lines[length:])


def _doctest(text: str, names: dict[str, Any], place: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, names, place, place, 0)
    told = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    runner.run(test, out=told.write, clear_globs=False)
    names.update(test.globs)
    if runner.failures:
        raise PageError(told.getvalue())


def _carry_out(command: str, expected: str, place: str) -> None:
    words = shlex.split(command)
    if words[0] == "dobandit":
        printed, code = printed_by(words[1:])
        if not says(expected, printed) if expected.strip() else code:
            raise PageError(f"{place}: {command}\n\nsays\n{expected}\nbut printed\n{printed}")
    elif words[0] == "export":
        name, _, value = words[1].partition("=")
        os.environ[name] = value
    else:
        _look_up(words, place)


def printed_by(arguments: list[str]) -> tuple[str, int]:
    """What the command line prints for these arguments, errors and warnings included, and its exit code."""
    from dobandit.cli.main import main

    printed, code = io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
        try:
            main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
    return printed.getvalue(), code


def _parse(arguments: list[str], place: str) -> None:
    """Refuse commands and options that do not exist, without carrying anything out."""
    from dobandit.cli.main import cli

    command: click.Command = cli
    context = click.Context(cli, info_name="dobandit")
    while isinstance(command, click.Group) and arguments:
        found = command.get_command(context, arguments[0])
        if found is None:
            raise PageError(f"{place}: there is no command {arguments[0]}.")
        command, context, arguments = found, click.Context(found, info_name=arguments[0], parent=context), arguments[1:]
    try:
        command.make_parser(context).parse_args(list(arguments))
    except click.UsageError as error:
        raise PageError(f"{place}: {error.format_message()}") from None


def says(expected: str, printed: str) -> bool:
    """Whether this was printed, with "..." for anything, nothing included, and any white space for white space."""
    pieces = [r"\s+".join(re.escape(word) for word in piece.split()) for piece in expected.split("...")]
    return re.fullmatch(r"\s*" + r"\s*.*\s*".join(pieces) + r"\s*", printed, re.DOTALL) is not None


def _look_up(words: list[str], place: str) -> None:
    """What a page cannot run in passing is at least there: targets of make, extras of the package, programs."""
    if words[0] == "make":
        known = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        missing = [target for target in words[1:] if target not in known]
    elif words[:2] == ["pip", "install"]:
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        extras = [extra for word in words for found in re.findall(r"\[(.*)\]", word) for extra in found.split(",")]
        missing = [extra for extra in extras if not re.search(rf"^{extra} = \[", project, re.MULTILINE)]
    elif words[0] in ("python", "sh"):
        missing = [] if (ROOT / words[1]).exists() else [words[1]]
    else:
        missing = words[:1]
    if missing:
        raise PageError(f"{place}: there is no {', '.join(missing)}.")
