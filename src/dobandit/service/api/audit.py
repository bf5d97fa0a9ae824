"""Who did what, and when."""

from __future__ import annotations

import csv
import io
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dobandit.documents.live import audit_document
from dobandit.experiment.export import guarded
from dobandit.experiment.storage.books import MANAGE, AuditLine
from dobandit.service.api import schemas
from dobandit.service.auth_middleware import require
from dobandit.service.requests import Integer, answer, house_of, visitor_of

router = APIRouter(tags=["audit"])
_MOST = 1000


@router.get("/audit", openapi_extra=schemas.AUDIT)
def audit(
    request: Request,
    after: Integer = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST)] = 100,
    experiment: Integer | None = None,
) -> Response:
    """A page of the audit, of one experiment or of all. `next` is where the next page begins: ?after=."""
    require(visitor_of(request), MANAGE)
    lines = house_of(request).storage.audit(max(after, 0), limit + 1, experiment)
    page = [audit_document(line) for line in lines[:limit]]
    return answer({"audit": page, "next": page[-1]["number"] if len(lines) > limit else None})


@router.get("/audit.csv", openapi_extra=schemas.TABLE)
def audit_csv(request: Request, experiment: Integer | None = None) -> Response:
    """The whole audit as CSV."""
    require(visitor_of(request), MANAGE)
    out, after, house = io.StringIO(newline=""), 0, house_of(request)
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(AuditLine._fields)
    while lines := house.storage.audit(after, _MOST, experiment):
        for line in lines:
            cells = audit_document(line).values()
            writer.writerow(guarded(cell) if isinstance(cell, str) else cell for cell in cells)
        after = lines[-1].number
    headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return Response(out.getvalue().encode("utf-8", "backslashreplace"), 200, headers, "text/csv; charset=utf-8")
