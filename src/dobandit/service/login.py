"""Logging in with a browser: by the one-time link that `serve` prints, or with a token."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from dobandit.service.auth_middleware import LOGIN, LOGOUT, cookie_name, cookie_of
from dobandit.service.pages.rendering import page
from dobandit.service.sessions import Visitor
from dobandit.storage.access import MANAGE

router = APIRouter(include_in_schema=False)
OWNER = Visitor("login link", MANAGE)


@router.get(LOGIN)
async def login_page(request: Request, code: str = "") -> Response:
    """With a code, the session; without, a form."""
    state = request.app.state
    if code:
        if state.login is not None and state.login.take(code):
            state.used_login()
            return _entered(request, OWNER)
        return _form(request, 403, "This login link was used already, or is of another start.")
    return _form(request)


@router.post(LOGIN)
async def login(request: Request) -> Response:
    async with request.form(max_fields=10) as form:
        token = str(form.get("token", ""))
    visitor = await request.app.state.tokens.visitor(token)
    if visitor is None:
        return _form(request, 403, "This token is not known here, or it was revoked or has expired.")
    return _entered(request, visitor)


@router.post(LOGOUT)
async def logout(request: Request) -> Response:
    state = request.app.state
    _leave(request)
    response = RedirectResponse(LOGIN, 303)
    response.delete_cookie(cookie_name(state.settings), secure=state.settings.https, httponly=True, samesite="strict")
    return response


def _form(request: Request, status: int = 200, said: str = "") -> Response:
    return page(request, "login.html", status, said=said, link=request.app.state.login is not None)


def _entered(request: Request, visitor: Visitor) -> Response:
    """A new session, in place of the one that the browser had."""
    settings = request.app.state.settings
    _leave(request)
    response = RedirectResponse("/", 303)
    response.set_cookie(
        cookie_name(settings),
        request.app.state.sessions.open(visitor),
        max_age=int(settings.session_seconds),
        httponly=True,
        samesite="strict",
        secure=settings.https,
    )
    return response


def _leave(request: Request) -> None:
    cookie = cookie_of(request, request.app.state.settings)
    if cookie is not None:
        request.app.state.sessions.close(cookie)
