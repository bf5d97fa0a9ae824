"""What a form of a page says, and doing things in the visitor's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import FormData

from dobandit.service.audited import Deed, doing

_MOST_FIELDS = 20_000


async def _form(request: Request) -> FormData:
    return await request.form(max_fields=_MOST_FIELDS, max_files=0)


Form = Annotated[FormData, Depends(_form)]


def text(form: FormData, name: str, otherwise: str = "") -> str:
    """One field, without blanks around it."""
    value = form.get(name, otherwise)
    return value.strip() if isinstance(value, str) else otherwise


@contextmanager
def in_the_name_of(request: Request, what: str, name: str | None = None) -> Iterator[None]:
    """What is changed inside is entered in the audit as the visitor's deed."""
    clock = request.app.state.settings.clock
    with doing(Deed(request.state.visitor.name, what, clock(), name=name)):
        yield
