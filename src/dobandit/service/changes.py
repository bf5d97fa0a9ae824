"""A change in a visitor's name: the line of the audit is stored with it, and so is the answer where the request has an
Idempotency-Key, so that the change is made once however often the request is repeated."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from starlette.responses import Response

from dobandit.checks import shown
from dobandit.errors import DobanditError
from dobandit.rows.stored_trial import StoredTrial
from dobandit.service.error_responses import Refusal
from dobandit.service.http_requests import dumped, json_response, kind_of, registry_of, visitor_of
from dobandit.storage.access import AuditLine, Books, KeptAnswer
from dobandit.storage.contract import Written, entering

_KEY = re.compile(r"[!-~]{1,200}")


def perform(
    request: Request,
    what: str,
    act: Callable[[], Any],
    document: Any = None,
    *,
    name: str,
    detail: str | None = None,
    status: int = 200,
    repeatable: Callable[[Written], Any] | None = None,
) -> Response:
    """Change something in the visitor's name, and answer.

    act         makes the change; what it returns is the answer, unless that is `document`
    name        of the experiment
    detail      for the audit; None: which trials were written
    repeatable  makes the answer from what was written instead, or None. It is stored with the change, under the
                request's Idempotency-Key, and given again to whoever repeats the request
    """
    key = _answer_under_key(request) if repeatable is not None else None
    replayed = _replayed(request, key, status)
    if replayed is not None:
        return replayed
    change = _Change(_line(request, what, name), detail, repeatable, key)
    try:
        with entering(change.enter):
            result = act()
    except DobanditError:
        replayed = _replayed(request, key, status)  # the same request came twice at once, and the other was first
        if replayed is None:
            raise
        return replayed
    return json_response(change.text or dumped(result if document is None else document), status)


@contextmanager
def in_the_name_of(request: Request, what: str, name: str) -> Iterator[None]:
    """What a form changes in this block is entered in the audit as the visitor's change."""
    with entering(_Change(_line(request, what, name)).enter):
        yield


@dataclass
class _Change:
    line: AuditLine
    detail: str | None = None
    repeatable: Callable[[Written], Any] | None = None
    key: KeptAnswer | None = None
    text: str = ""  # the repeatable answer as JSON

    def enter(self, written: Written, books: Books) -> None:
        """Called in the transaction of the change."""
        detail = _trials_words(written.trials) if self.detail is None else self.detail
        books.note(self.line._replace(experiment=written.experiment, detail=detail))
        answer = None if self.repeatable is None else self.repeatable(written)
        if answer is not None:
            self.text = dumped(answer)
            if self.key is not None:
                books.keep_answer(self.key._replace(answer=self.text))


def _line(request: Request, what: str, name: str) -> AuditLine:
    return AuditLine(0, registry_of(request).settings.clock(), visitor_of(request).name, what, name=name)


def _trials_words(trials: Sequence[StoredTrial]) -> str:
    if len(trials) == 1:
        return f"trial {trials[0].number}"
    return f"{len(trials)} trials" + (f" from {min(trial.number for trial in trials)} on" if trials else "")


def _answer_under_key(request: Request) -> KeptAnswer | None:
    """The request's key, where it has one, with an answer yet to come."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise Refusal(422, f"an Idempotency-Key has 1 to 200 visible ASCII characters, but got {shown(key)}.")
    head = f"{request.method} {request.scope['path']} {kind_of(request)}\n"
    digest = hashlib.sha256(head.encode() + request.state.body).hexdigest()
    return KeptAnswer(visitor_of(request).owner, key, digest, "", registry_of(request).settings.clock())


def _replayed(request: Request, key: KeptAnswer | None, status: int) -> Response | None:
    """The answer to the same request before. Raises a Refusal where another request had its key."""
    before = None if key is None else registry_of(request).storage.answer(key.owner, key.key)
    if key is None or before is None:
        return None
    if before.digest != key.digest:
        raise Refusal(
            422,
            f"an Idempotency-Key belongs to one request, but {key.key!r} came with another one before. Take a new "
            "key for a new request.",
            error="ConflictError",
        )
    return json_response(before.answer, status, {"Idempotency-Replayed": "true"})
