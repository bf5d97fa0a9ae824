"""Answers with an ETag: who has the answer already is told so, instead of being sent it again."""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import Request
from starlette.responses import Response

from dobandit.service.audited import dumped
from dobandit.service.house import Answered
from dobandit.service.requests import JSON

_KEEP = {"Cache-Control": "private, no-cache"}  # to be kept, and asked for again each time


def by_content(request: Request, document: Any) -> Response:
    """Tagged by what it says."""
    text = dumped(document)
    return tagged(request, Answered(text, hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]))


def tagged(request: Request, answered: Answered) -> Response:
    """Tagged by the state of the log that it is a function of, which a question's address completes."""
    if answered.tag is None:
        return Response(answered.text.encode("utf-8", "backslashreplace"), 200, None, JSON)
    tag = f'"{answered.tag}"'
    headers = {"ETag": tag, **_KEEP}
    if matches(request, tag):
        return Response(None, 304, headers)
    return Response(answered.text.encode("utf-8", "backslashreplace"), 200, headers, JSON)


def matches(request: Request, tag: str) -> bool:
    """Whether the request says that it has this."""
    given = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    return tag in given or "*" in given
