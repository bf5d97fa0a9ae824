"""What the tests of pages share: a visitor with the manners of a browser, and a strict reader of HTML."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser

import httpx

from dobandit.service.app import create_app
from dobandit.service.service_settings import Settings
from dobandit.storage import MemoryStorage

ADDRESS = "http://127.0.0.1:8765"
FUNNEL = "target: buy\nemail -> visit\ncoupon -> visit\ncoupon -> buy\nvisit -> buy\n"
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7*7 }}{% raw %}",
    "right\u202eleft",
    "bell\x07tab\tline\nbreak",
    "x" * 200,
]


class Visit:
    """A logged-in visitor of a service."""

    def __init__(self, storage=None, **settings):
        self.storage = MemoryStorage() if storage is None else storage
        self.app = create_app(self.storage, Settings(**settings))
        self.cookies = {}
        self.get("/login", 303, code=self.app.state.login.code)
        self.visitor = self.app.state.sessions.find(next(iter(self.cookies.values())))
        self.csrf = self.visitor.csrf

    def request(self, method, path, **more):
        async def send():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, cookies=self.cookies) as client:
                return await client.request(method, path, **more)

        answer = asyncio.run(send())
        self.cookies |= dict(answer.cookies)
        return answer

    def get(self, path, status=200, **query):
        answer = self.request("GET", path, params=query or None, headers={"accept": "text/html"})
        assert answer.status_code == status, answer.text[:2000]
        return answer

    def post(self, path, status=303, **form):
        headers = {"accept": "text/html", "origin": ADDRESS}
        answer = self.request("POST", path, data={"csrf": self.csrf, **form}, headers=headers)
        assert answer.status_code == status, answer.text[:2000]
        return answer


class Strict(HTMLParser):
    """Reads a page, and remembers what could do harm or leave somebody out."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.inline, self.outside, self.ids, self.links = [], [], [], [], []
        self.nameless, self.labelled, self.controls = [], set(), []
        self._script = False
        self.words = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self._script = tag == "script" and "src" not in given
        self.inline += [f"{tag} {key}" for key in given if key == "style" or key.startswith("on")]
        self.ids += [given["id"]] if "id" in given else []
        for key in ("href", "src", "action"):
            address = given.get(key)
            if address is not None:
                self.links.append(address)
                if re.match(r"\w+:|//", address):
                    self.outside.append(address)
        if tag == "label" and "for" in given:
            self.labelled.add(given["for"])

    def handle_data(self, data):
        if self._script and data.strip():
            self.inline.append("script")
        self.words.append(data)

    def handle_endtag(self, tag):
        self._script = False

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def harmless(text):
    """The page, once nothing in it can do harm."""
    page = Strict(text)
    assert page.inline == []
    assert page.outside == []
    assert "img" not in page.tags
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)
    assert len(page.ids) == len(set(page.ids))
    return page
