"""What the tests of the service share: a service that runs in this process, and somebody who calls it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import contextmanager
from functools import cache

import httpx
import uvicorn.server

from dobandit.service.app import bound, create_app, server_of
from dobandit.service.service_settings import Settings
from dobandit.storage import MemoryStorage
from dobandit.storage.access import create_token

FUNNEL = {"graph": "email -> visit\ncoupon -> visit\nvisit -> buy\ncoupon -> buy", "target": "buy", "budget": 1}


class Hurried:
    """asyncio, but nobody sleeps long."""

    def __getattr__(self, name):
        return getattr(asyncio, name)

    def sleep(self, seconds):
        return asyncio.sleep(min(seconds, 0.01))


uvicorn.server.asyncio = Hurried()  # a server looks ten times a second whether it is to end, and tests start many


@cache
def routes():
    """An app prepares its routes for its first request, which takes longer than answering it: one does so for all."""
    return create_app(MemoryStorage(), Settings()).router.routes


def app_of(storage, settings):
    app = create_app(storage, settings)
    assert [type(route) for route in app.router.routes] == [type(route) for route in routes()]
    app.router.routes[:] = routes()
    return app


class Served:
    """A running service.

    call(...)  a request with a token, by its scope
    """

    def __init__(self, app, url, storage):
        self.app, self.url, self.storage = app, url, storage
        self.host = url.removeprefix("http://")
        self.tokens = {scope: self.token(scope) for scope in ("read", "work", "manage")}
        self.client = httpx.Client(base_url=url, timeout=60)

    def token(self, scope, **more):
        return create_token(self.storage, scope, scope, time.time(), "the tests", **more)[0]

    def call(self, method, path, document=None, scope="manage", token=None, **more):
        headers = {"Authorization": f"Bearer {token or self.tokens[scope]}", **more.pop("headers", {})}
        if document is not None:
            more["content"] = document if isinstance(document, (str, bytes)) else json.dumps(document)
            headers.setdefault("Content-Type", "application/json")
        return self.client.request(method, path, headers=headers, **more)

    def create(self, name="spring", **words):
        answer = self.call("POST", "/api/v1/experiments", {"name": name, "seed": 7, **FUNNEL, **words})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def log_in(self):
        """A browser that came by the login link, and its CSRF token."""
        browser = httpx.Client(base_url=self.url, timeout=60)
        entered = browser.get("/login", params={"code": self.app.state.login.code})
        assert entered.status_code == 303
        cookie = next(iter(browser.cookies.jar)).value
        return browser, self.app.state.sessions.find(cookie).csrf


@contextmanager
def served(storage=None, **settings):
    """A service on a port of its own, until the end of the block."""
    storage = MemoryStorage() if storage is None else storage
    app = app_of(storage, Settings(**{"token_seconds": 0.0, "warm": False, **settings}))
    with listening(app) as url:
        one = Served(app, url, storage)
        try:
            yield one
        finally:
            one.client.close()


@contextmanager
def listening(app):
    """An app on a port of its own, in a thread; its address."""
    listener = bound("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = server_of(app)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=30)
