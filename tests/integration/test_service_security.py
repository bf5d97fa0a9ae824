"""Who may come in to the service, and what browsers are protected from."""

import re
import time

import httpx
import pytest

from dobandit.storage import MemoryStorage
from dobandit.storage.access import create_token, revoke_token, token_of
from helpers.service_callers import API, problem, raw
from helpers.serving import FUNNEL, served

PUBLIC = {"/login", "/healthz", "/readyz", "/static/drawn.css"}


def routes_of(app, methods=("POST", "PATCH", "DELETE", "PUT")):
    """Every route with one of these verbs, found by walking the app: those that are added later, too."""
    found = set()
    for route in app.routes:
        parts = route.effective_route_contexts() if hasattr(route, "effective_route_contexts") else [route]
        for part in parts:
            for method in (getattr(part, "methods", None) or set()) & set(methods):
                found.add((method, re.sub(r"\{[^}]*\}", "1", part.path)))
    return sorted(found)


def test_walking_finds_the_routes(house):
    found = routes_of(house.app)
    assert ("POST", "/api/v1/experiments/1/ask") in found
    assert ("DELETE", "/api/v1/experiments/1") in found
    assert ("POST", "/logout") in found
    assert len(found) >= 12


# -- nobody, somebody ----------------------------------------------------------------------------------------------


def test_nothing_is_open_but_what_must_be(house):
    for method, path in routes_of(house.app, ("GET", "POST", "PATCH", "DELETE", "PUT")):
        if path in PUBLIC:
            continue
        detail = problem(house.client.request(method, path), 401)
        assert "token" in detail, (method, path)
    assert house.client.get("/healthz").json() == {"status": "ok"}
    assert house.client.get("/", headers={"Accept": "text/html"}).headers["location"] == "/login"
    assert house.client.get("/static/style.css").status_code == 200


@pytest.mark.parametrize(
    "token", ["x", "dob_1_" + "a" * 43, "dob_999_" + "a" * 43, "nonsense", "dob_1", "\xff", "a" * 9000]
)
def test_wrong_tokens(house, token):
    header = b"Bearer " + token.encode("latin-1")
    answer = house.client.get(f"{API}/experiments", headers={"Authorization": header})
    assert "revoked" in problem(answer, 401)
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_token_is_kept_as_a_hash_and_opens_until_it_is_revoked_or_expires():
    storage, now = MemoryStorage(), 1000.0
    text, token = create_token(storage, "shop", "work", now, "me", expires_at=2000.0)
    secret = text.rpartition("_")[2] if text.count("_") == 2 else text.split("_", 2)[2]
    assert secret not in repr(storage.tokens())
    assert token_of(storage, text, 1999.0) == token
    assert token_of(storage, text, 2000.0) is None
    assert token_of(storage, text[:-1] + ("A" if text[-1] != "A" else "B"), now) is None
    revoke_token(storage, token.id, 1500.0, "me")
    assert token_of(storage, text, 1600.0) is None
    assert [line.what for line in storage.audit()] == ["create token", "revoke token"]


def test_scopes(house):
    at = f"{API}/experiments/{house.spring}"
    assert house.call("GET", at, scope="read").status_code == 200
    assert "'work'" in problem(house.call("POST", f"{at}/ask", {}, scope="read"), 403)
    assert house.call("POST", f"{at}/ask", {}, scope="work").status_code == 201
    for method, path, body in (
        ("POST", f"{API}/experiments", {"name": "x", **FUNNEL}),
        ("PATCH", at, {"name": "x"}),
        ("DELETE", at, None),
        ("GET", f"{API}/audit", None),
        ("GET", f"{API}/audit.csv", None),
    ):
        assert "'manage'" in problem(house.call(method, path, body, scope="work"), 403)
    for method, path in routes_of(house.app):
        if path not in PUBLIC | {"/logout"}:
            problem(house.call(method, path, {}, scope="read"), 403)


def test_a_token_for_one_experiment_knows_of_no_other(house):
    token = house.token("manage", experiment="spring")
    assert house.call("GET", f"{API}/experiments/{house.spring}", token=token).status_code == 200
    listed = house.call("GET", f"{API}/experiments", token=token).json()["experiments"]
    assert [one["name"] for one in listed] == ["spring"]
    assert house.call("GET", f"{API}/experiments?name=other", token=token).json() == {"experiments": []}
    for method, path in (
        ("GET", f"{API}/experiments/{house.other}"),
        ("GET", f"{API}/experiments/{house.other}/trials"),
        ("POST", f"{API}/experiments/{house.other}/ask"),
        ("DELETE", f"{API}/experiments/{house.other}"),
        ("GET", f"{API}/audit"),
        ("GET", f"{API}/audit?experiment={house.other}"),
        ("GET", f"{API}/experiments/{house.spring}/../{house.other}"),
        ("GET", f"{API}/experiments/0{house.other}"),
        ("GET", "/metrics"),
    ):
        problem(house.call(method, path, token=token), 403)
    answer = house.call("POST", f"{API}/experiments", {"name": "mine", **FUNNEL}, token=token)
    assert answer.status_code == 403


# -- browsers ------------------------------------------------------------------------------------------------------


def test_rebinding_another_name_leads_nowhere(house):
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:8765", "", "localhost.evil", "[::2]:80"):
        for path in ("/", "/healthz", f"{API}/experiments", "/login", "/static/style.css"):
            answer = house.client.get(path, headers={"Host": host})
            assert answer.status_code in (421, 400), (host, path)
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:8765"):
        assert house.client.get("/healthz", headers={"Host": host}).status_code == 200


def test_two_hosts_in_one_request(house):
    head = f"GET /healthz HTTP/1.1\r\nHost: {house.host}\r\nHost: evil.example\r\n\r\n"
    assert b"200 OK" not in raw(house, head.encode())


def test_the_login_link_works_once(house):
    code = house.app.state.login.code
    assert httpx.get(f"{house.url}/login", params={"code": code + "x"}).status_code == 403
    entered = httpx.get(f"{house.url}/login", params={"code": code})
    cookie = entered.headers["set-cookie"]
    assert entered.status_code == 303
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert httpx.get(f"{house.url}/login", params={"code": code}).status_code == 403


def test_without_a_login_link_a_token_is_asked_for():
    with served(login=False) as one:
        asked = one.client.get("/login", headers={"Accept": "text/html"}).text
        assert "dobandit token create" in asked
        assert "login link" not in asked
        assert one.client.get("/login", params={"code": "x"}).status_code == 403


def test_logging_in_while_logged_in_opens_another_session(house):
    """With a token and with a link; the session before is closed."""
    browser, _ = house.log_in()
    before = dict(browser.cookies)
    own, form = {"Origin": house.url}, {"token": house.tokens["read"]}
    assert browser.post("/login", data=form, headers={"Origin": "http://evil.example"}).status_code == 403
    assert browser.post("/login", data=form, headers=own).status_code == 303
    assert dict(browser.cookies) != before
    assert browser.get(f"{API}/experiments").status_code == 200
    assert browser.get(f"{API}/audit").status_code == 403  # what the token may not
    assert httpx.get(f"{house.url}{API}/experiments", cookies=before).status_code == 401
    assert browser.get("/login", params={"code": house.app.state.login.code}).status_code == 303
    assert browser.get(f"{API}/audit").status_code == 200
    browser.close()


def test_redirects_do_not_leave_https(house):
    """A slash too many leads to the address without it, on whatever scheme and host the visitor is."""
    browser, _ = house.log_in()
    proxied = {"X-Forwarded-Proto": "https"}
    for path, leads in (
        (f"/experiments/{house.spring}/", f"/experiments/{house.spring}"),
        (f"/experiments/{house.spring}/trials/?after=3", f"/experiments/{house.spring}/trials?after=3"),
        (f"{API}/experiments/{house.spring}/", f"{API}/experiments/{house.spring}"),
        ("/login/", "/login"),
        (API, f"{API}/docs"),
        (f"{API}/", f"{API}/docs"),
    ):
        answer = browser.get(path, headers=proxied)
        assert (answer.status_code, answer.headers["location"]) == (307, leads)
    for path in ("/nothing/", "/static/nothing/", "/static/nothing"):
        assert browser.get(path).status_code == 404
    browser.close()


def test_cross_origin_changes_are_refused_for_every_unsafe_verb(house):
    browser, csrf = house.log_in()
    own = house.url
    for method, path in routes_of(house.app):
        if path in ("/login", "/logout"):
            continue
        for headers in (
            {},  # no Origin, no token
            {"X-CSRF-Token": csrf},  # no Origin
            {"Origin": "null", "X-CSRF-Token": csrf},
            {"Origin": "http://evil.example", "X-CSRF-Token": csrf},
            {"Origin": "http://127.0.0.1:1", "X-CSRF-Token": csrf},  # another port of this machine
            {"Origin": f"{own}.evil.example", "X-CSRF-Token": csrf},
            {"Origin": "http://evil@" + house.host, "X-CSRF-Token": csrf},
            {"Origin": own},  # no token
            {"Origin": own, "X-CSRF-Token": csrf[:-1]},
            {"Origin": own, "X-CSRF-Token": csrf, "Sec-Fetch-Site": "cross-site"},
            {"Origin": own, "X-CSRF-Token": csrf, "Sec-Fetch-Site": "same-site"},
        ):
            answer = browser.request(method, path, headers=headers, json={})
            assert answer.status_code == 403, (method, path, headers, answer.text)
    browser.close()


def test_a_form_of_our_own_page_is_let_through(house):
    browser, csrf = house.log_in()
    at, own = f"{API}/experiments/{house.spring}/ask", {"Origin": house.url, "Sec-Fetch-Site": "same-origin"}
    asked = browser.post(at, headers={**own, "X-CSRF-Token": csrf}, json={})
    assert asked.status_code == 201
    form = browser.post(at, headers=own, data={"csrf": csrf})
    assert form.status_code == 415  # past the guard: the API takes no forms
    parts = browser.post(at, headers=own, data={"csrf": csrf}, files={"f": b"x"})
    assert parts.status_code == 415
    assert browser.post(at, headers=own, data={"csrf": "wrong"}, files={"f": b"x"}).status_code == 403
    assert browser.post("/logout", headers=own, data={"csrf": csrf}).status_code == 303
    assert browser.get(f"{API}/experiments").status_code == 401
    browser.close()


def test_a_login_from_another_site_is_refused(house):
    form = {"token": house.tokens["manage"]}
    for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert httpx.post(f"{house.url}/login", data=form, headers=headers).status_code == 403
    entered = httpx.post(f"{house.url}/login", data=form, headers={"Origin": house.url})
    assert entered.status_code == 303


def test_a_cookie_is_read_by_pages_of_this_port_only(house):
    """Browsers send a cookie to every port of a machine, and tell which page asks."""
    browser, _ = house.log_in()
    for site in ("same-site", "cross-site"):
        fetched = browser.get(f"{API}/experiments", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"})
        problem(fetched, 403)
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert browser.get("/", headers=followed).status_code == 200
    assert "access-control-allow-origin" not in browser.get(f"{API}/experiments").headers
    cookie = next(iter(browser.cookies.jar))
    assert cookie.name == "dobandit-8765"  # with the port: another service does not overwrite it
    with served() as another:
        stolen = httpx.get(f"{another.url}{API}/experiments", headers={"Cookie": f"{cookie.name}={cookie.value}"})
        assert stolen.status_code == 401
    browser.close()


def test_a_session_ends_with_the_token_that_opened_it():
    storage = MemoryStorage()
    with served(storage) as one:
        text, token = create_token(storage, "phone", "read", time.time(), "me")
        browser = httpx.Client(base_url=one.url)
        browser.post("/login", data={"token": text}, headers={"Origin": one.url})
        assert browser.get(f"{API}/experiments").status_code == 200
        revoke_token(storage, token.id, time.time(), "me")
        assert browser.get(f"{API}/experiments").status_code == 401
        browser.close()


def test_sessions_expire():
    now = [1000.0]
    with served(clock=lambda: now[0], session_seconds=60.0) as one:
        browser, _ = one.log_in()
        assert browser.get(f"{API}/experiments").status_code == 200
        now[0] += 61.0
        assert browser.get(f"{API}/experiments").status_code == 401
        browser.close()


def test_every_answer_has_the_headers(house):
    for path in ("/", "/login", "/healthz", "/nothing", f"{API}/experiments", f"{API}/docs", "/static/style.css"):
        for answer in (house.client.get(path), house.call("GET", path)):
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "script-src 'self'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["referrer-policy"] == "same-origin"
            assert "server" not in answer.headers


def test_https_cookies_and_headers():
    with served(https=True) as one:
        entered = httpx.get(f"{one.url}/login", params={"code": one.app.state.login.code})
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith("__Host-dobandit-")
        assert "Secure" in cookie
        assert "max-age" in entered.headers["strict-transport-security"]


def test_hostile_names_are_text_on_every_page(house):
    hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{7*7}}"
    number = house.create(hostile)
    browser, _ = house.log_in()
    for path in ("/", "/login", f"/{hostile}", f"{API}/docs"):
        text = browser.get(path, headers={"Accept": "text/html"}).text
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "{{7*7}}" in text or "alert" not in text
    assert house.call("GET", f"{API}/experiments/{number}").json()["name"] == hostile
    assert house.call("DELETE", f"{API}/experiments/{number}").status_code == 200
    browser.close()


def test_a_login_link_is_not_used_up_by_who_asks_for_its_head(house):
    code = house.app.state.login.code
    assert house.client.head("/login", params={"code": code}).status_code == 405
    assert house.app.state.login.code == code


def test_somebody_who_may_only_look_is_told_so_before_a_form_is_filled_in(house):
    answer = house.call("GET", f"/experiments/{house.spring}/today", scope="read", headers={"Accept": "text/html"})
    assert answer.status_code == 403
    assert "needs the scope &#39;work&#39; or a wider one" in answer.text
    audit = house.call("GET", f"{API}/audit", scope="work").json()["detail"]
    assert "needs the scope 'manage', but" in audit
