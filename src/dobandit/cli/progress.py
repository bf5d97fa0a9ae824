"""Bars for work that takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager


def quiet(as_json: bool) -> bool:
    """No progress bar where nobody looks: in JSON mode, or when standard error is not a terminal."""
    return as_json or not sys.stderr.isatty()


@contextmanager
def progress_of_a_log(description: str, as_json: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar that appears where the work takes a while: when (trials done, trials in all) are reported for the first
    time. None where nobody looks."""
    if quiet(as_json):
        yield None
        return
    with ExitStack() as stack:
        shown: list[Callable[[int], None]] = []
        reached = 0

        def report(done: int, in_all: int) -> None:
            nonlocal reached
            if not shown:
                from dobandit.report.result import progress_bar

                shown.append(stack.enter_context(progress_bar(description, in_all)))
            shown[0](done - reached)
            reached = done

        yield report
